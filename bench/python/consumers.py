"""Steps/s inside other people's trainers: ``python bench/python/consumers.py [--only NAME …]``.

HalfCheetah-v5 x 16 (mjlab: its Go1 x 16) as each library steps it: its own parallel environments,
its own serial ones, and ours through the adapter. The libraries' pins collide, so each runs in an
environment of its own (`make bench NAME=integrations`); a run measures the libraries it is told and
adds them to consumers.json and consumers.md.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import tyro

from pyfastenv.experiments import measure, sections
from pyfastenv.vector.cpus import available_cpus

ENV_ID = "HalfCheetah-v5"
NUM_ENVS = 16
NUM_STEPS = 64  # of each environment between two looks at the clock


class Contestant(NamedTuple):
    """Environments in a library's hands."""

    run: Callable[[], int]
    """Steps them; returns how many steps that were."""
    close: Callable[[], object]


Contest = dict[str, Callable[[], Contestant]]


def _actions() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1.0, 1.0, (NUM_ENVS, 6)).astype(np.float32)


def _repeating(
    step: Callable[[], object], envs: Any, times: int = NUM_STEPS, num_envs: int = NUM_ENVS
) -> Contestant:
    """A contestant that calls ``step()``, which steps so many environments, so often in a run."""

    def run() -> int:
        for _ in range(times):
            step()
        return times * num_envs

    return Contestant(run, getattr(envs, "close", lambda: None))


def _stepping(envs: Any, actions: Any = None) -> Contestant:
    """A contestant that calls ``reset()`` and ``step(actions)``."""
    envs.reset()
    return _repeating(partial(envs.step, _actions() if actions is None else actions), envs)


# ---- the libraries -----------------------------------------------------------------------------


def gymnasium_vectors() -> Contest:
    return {
        "workers": lambda: _stepping(
            gymnasium.make_vec(ENV_ID, NUM_ENVS, vectorization_mode="async")
        ),
        "serial": lambda: _stepping(
            gymnasium.make_vec(ENV_ID, NUM_ENVS, vectorization_mode="sync")
        ),
        "pyfastenv": lambda: _stepping(gymnasium.make_vec(f"pyfastenv/{ENV_ID}", NUM_ENVS)),
    }


def stable_baselines(contestant: Callable[[Any], Contestant] = _stepping) -> Contest:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from pyfastenv.integrations.sb3 import make_sb3

    def theirs(kind: type) -> Contestant:
        return contestant(make_vec_env(ENV_ID, NUM_ENVS, vec_env_cls=kind))

    return {
        "workers": lambda: theirs(SubprocVecEnv),
        "serial": lambda: theirs(DummyVecEnv),
        "pyfastenv": lambda: contestant(make_sb3(ENV_ID, NUM_ENVS)),
    }


def stable_baselines_ppo() -> Contest:
    """Its PPO, learning included."""
    from stable_baselines3 import PPO

    def learning(venv: Any) -> Contestant:
        model = PPO("MlpPolicy", venv, n_steps=128, batch_size=256, device="cpu")

        def run() -> int:
            model.learn(2048, reset_num_timesteps=False)
            return 2048

        return Contestant(run, venv.close)

    return stable_baselines(learning)


def cleanrl() -> Contest:
    """The environments of its ppo_continuous_action.py, wrappers included."""
    from gymnasium import wrappers

    from pyfastenv.integrations.cleanrl import make_cleanrl_ppo

    def make_env() -> gymnasium.Env[Any, Any]:
        env = wrappers.RecordEpisodeStatistics(
            wrappers.FlattenObservation(gymnasium.make(ENV_ID, disable_env_checker=True))
        )
        env = wrappers.NormalizeObservation(wrappers.ClipAction(env))
        env = wrappers.TransformObservation(env, lambda obs: np.clip(obs, -10, 10), None)
        env = wrappers.NormalizeReward(env, gamma=0.99)
        return wrappers.TransformReward(env, lambda reward: np.clip(reward, -10, 10))

    return {
        "serial": lambda: _stepping(
            gymnasium.vector.SyncVectorEnv([make_env] * NUM_ENVS, autoreset_mode="SameStep")
        ),
        "pyfastenv": lambda: _stepping(make_cleanrl_ppo(ENV_ID, NUM_ENVS)),
    }


def dm_env() -> Contest:
    """One environment."""
    from pyfastenv.integrations.dm_env import make_dm_env

    def stepping(env: Any) -> Contestant:
        env.reset()
        return _repeating(partial(env.step, _actions()[0]), env, 400, 1)

    return {
        "serial": lambda: stepping(
            gymnasium.wrappers.Autoreset(gymnasium.make(ENV_ID, disable_env_checker=True))
        ),
        "pyfastenv": lambda: stepping(make_dm_env(ENV_ID)),
    }


def tianshou() -> Contest:
    from tianshou.env import DummyVectorEnv, SubprocVectorEnv

    from pyfastenv.integrations.tianshou import make_tianshou

    makers = [lambda: gymnasium.make(ENV_ID, disable_env_checker=True)] * NUM_ENVS

    def stepping(envs: Any) -> Contestant:
        actions = _actions()
        envs.reset()

        def step() -> None:
            _, _, terminated, truncated, _ = envs.step(actions)
            if (ended := terminated | truncated).any():  # as its collectors do
                envs.reset(np.flatnonzero(ended))

        return _repeating(step, envs)

    return {
        "workers": lambda: stepping(SubprocVectorEnv(makers)),
        "serial": lambda: stepping(DummyVectorEnv(makers)),
        "pyfastenv": lambda: stepping(make_tianshou(ENV_ID, NUM_ENVS)),
    }


def torchrl() -> Contest:
    from torchrl.envs import GymEnv, ParallelEnv, SerialEnv

    from pyfastenv.integrations.torchrl import make_torchrl

    def stepping(env: Any) -> Contestant:
        last = env.reset()

        def step() -> None:  # as its collectors do
            nonlocal last
            _, last = env.step_and_maybe_reset(env.rand_action(last))

        return _repeating(step, env)

    return {
        "workers": lambda: stepping(ParallelEnv(NUM_ENVS, lambda: GymEnv(ENV_ID))),
        "serial": lambda: stepping(SerialEnv(NUM_ENVS, lambda: GymEnv(ENV_ID))),
        "pyfastenv": lambda: stepping(make_torchrl(ENV_ID, NUM_ENVS)),
    }


def skrl() -> Contest:
    import torch
    from skrl.envs.wrappers.torch import wrap_env

    from pyfastenv.integrations.skrl import make_skrl

    actions = torch.from_numpy(_actions())

    def theirs(mode: str) -> Contestant:
        envs = gymnasium.make_vec(
            ENV_ID,
            NUM_ENVS,
            vectorization_mode=mode,
            vector_kwargs={"autoreset_mode": "SameStep"},
        )
        return _stepping(wrap_env(envs, "gymnasium", verbose=False), actions)

    return {
        "workers": lambda: theirs("async"),
        "serial": lambda: theirs("sync"),
        "pyfastenv": lambda: _stepping(make_skrl(ENV_ID, NUM_ENVS), actions),
    }


def rllib() -> Contest:
    """An env runner that samples its policy."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    from pyfastenv.integrations.rllib import register_rllib

    def sampling(env_id: str, mode: str) -> Contestant:
        runner = SingleAgentEnvRunner(
            config=PPOConfig()
            .environment(env_id)
            .env_runners(
                num_env_runners=0, num_envs_per_env_runner=NUM_ENVS, gym_env_vectorize_mode=mode
            )
            .debugging(log_level="ERROR")
        )

        def run() -> int:
            runner.sample(num_timesteps=NUM_STEPS * NUM_ENVS, random_actions=False)
            return NUM_STEPS * NUM_ENVS

        return Contestant(run, runner.stop)

    return {
        "workers": lambda: sampling(ENV_ID, "async"),
        "serial": lambda: sampling(ENV_ID, "sync"),
        "pyfastenv": lambda: sampling(
            register_rllib(ENV_ID, obs_dtype="float32"), "vector_entry_point"
        ),
    }


def rl_games() -> Contest:
    """Its own way to MuJoCo on the CPU is EnvPool."""
    import torch
    from rl_games.envs.envpool import Envpool

    from pyfastenv.integrations.rl_games import make_rl_games

    return {
        "EnvPool": lambda: _stepping(Envpool("", NUM_ENVS, env_name=ENV_ID)),
        "pyfastenv": lambda: _stepping(
            make_rl_games(ENV_ID, NUM_ENVS), torch.from_numpy(_actions())
        ),
    }


def sample_factory() -> Contest:
    """Its own way to many MuJoCo environments in a process is EnvPool."""
    import torch
    from sample_factory.algo.utils.make_env import make_env_func_batched
    from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
    from sample_factory.envs.env_utils import register_env
    from sample_factory.utils.attr_dict import AttrDict
    from sf_examples.envpool.envpool_utils import add_envpool_common_args
    from sf_examples.envpool.mujoco.envpool_mujoco_utils import make_mujoco_env

    from pyfastenv.integrations.sample_factory import register_sample_factory

    def batched(name: str, actions: Any) -> Contestant:
        arguments = [f"--env={name}", "--batched_sampling=True", f"--env_agents={NUM_ENVS}"]
        parser, _ = parse_sf_args(arguments)
        parser.add_argument("--env_agents", type=int)
        add_envpool_common_args(name, parser)
        env = make_env_func_batched(
            parse_full_cfg(parser, arguments), AttrDict(worker_index=0, vector_index=0, env_id=0)
        )
        return _stepping(env, actions)

    register_env("mujoco_halfcheetah", make_mujoco_env)
    return {
        "EnvPool": lambda: batched("mujoco_halfcheetah", _actions().astype(np.float64)),
        "pyfastenv": lambda: batched(
            register_sample_factory(ENV_ID, NUM_ENVS), torch.from_numpy(_actions())
        ),
    }


@cache
def _alone() -> gymnasium.Env[Any, Any]:
    return gymnasium.make(ENV_ID, disable_env_checker=True)


def _evaluated(vector: np.ndarray) -> tuple[float, float, float]:
    """An episode of a policy, as pyribs' tutorials play it: its return, where it ends, how fast."""
    env = _alone()
    obs, _ = env.reset(seed=0)
    weights, bias = vector[:-6].reshape(17, 6), vector[-6:]
    total, truncated = 0.0, False
    while not truncated:
        obs, reward, _, truncated, info = env.step(np.tanh(obs @ weights + bias))
        total += float(reward)
    return total, info["x_position"], info["x_velocity"]


def ribs() -> Contest:
    """CMA-ME over linear policies, an episode of 1,000 steps each."""
    from ribs.archives import GridArchive
    from ribs.emitters import EvolutionStrategyEmitter
    from ribs.schedulers import Scheduler

    from pyfastenv import PolicySpec, make_vec
    from pyfastenv.sampling.population import evaluate_population

    def searching(evaluate: Callable[[np.ndarray], Any], close: Callable[[], object]) -> Contestant:
        size = 6 * 17 + 6
        archive = GridArchive(solution_dim=size, dims=(20, 20), ranges=((-50, 50), (-5, 5)), seed=0)
        emitter = EvolutionStrategyEmitter(
            archive, x0=np.zeros(size), sigma0=0.3, batch_size=NUM_ENVS, seed=0
        )
        scheduler = Scheduler(archive, [emitter])

        def run() -> int:
            found = np.asarray(evaluate(scheduler.ask()))
            scheduler.tell(found[:, 0], found[:, 1:])
            return NUM_ENVS * 1000

        return Contestant(run, close)

    def in_processes() -> Contestant:
        pool = ProcessPoolExecutor(available_cpus())
        return searching(lambda vectors: list(pool.map(_evaluated, vectors)), pool.shutdown)

    def in_lanes() -> Contestant:
        envs = make_vec(ENV_ID, NUM_ENVS, autoreset_mode="SameStep")

        def evaluate(vectors: np.ndarray) -> np.ndarray:
            policies = PolicySpec.of_vectors(vectors, (17, 6), distribution="deterministic")
            ended = evaluate_population(envs, policies, seed=0)
            infos = (ended.infos[name] for name in ("x_position", "x_velocity"))
            return np.concatenate([ended.returns, *infos], axis=1)

        return searching(evaluate, envs.close)

    return {
        "workers": in_processes,
        "serial": lambda: searching(lambda vectors: [*map(_evaluated, vectors)], lambda: None),
        "pyfastenv": in_lanes,
    }


def mjlab() -> Contest:
    """Its velocity task for Go1, on MuJoCo Warp's kernels for the CPU and on batches."""
    import mujoco.batch
    import torch
    from mjlab.envs import ManagerBasedRlEnv, manager_based_rl_env
    from mjlab.sim import Simulation
    from mjlab.tasks.registry import load_env_cfg

    from pyfastenv import physics
    from pyfastenv.integrations import mjlab as ours

    def task(simulation: type, batch: type = physics.Batch) -> Contestant:
        manager_based_rl_env.Simulation = simulation
        ours.Batch = batch  # whose interfaces are the same
        cfg = load_env_cfg("Mjlab-Velocity-Flat-Unitree-Go1")
        cfg.scene.num_envs = NUM_ENVS
        return _stepping(ManagerBasedRlEnv(cfg, device="cpu"), torch.zeros(NUM_ENVS, 12))

    return {
        "MuJoCo Warp": lambda: task(Simulation),
        "mujoco.batch": lambda: task(ours.Simulation, mujoco.batch.Batch),
        "pyfastenv": lambda: task(ours.Simulation),
    }


CONSUMERS: dict[str, tuple[str, Callable[[], Contest]]] = {
    "gymnasium": ("gymnasium", gymnasium_vectors),
    "sb3": ("stable-baselines3", stable_baselines),
    "sb3_ppo": ("stable-baselines3", stable_baselines_ppo),
    "cleanrl": ("gymnasium", cleanrl),
    "dm_env": ("dm-env", dm_env),
    "ribs": ("ribs", ribs),
    "tianshou": ("tianshou", tianshou),
    "torchrl": ("torchrl", torchrl),
    "skrl": ("skrl", skrl),
    "rllib": ("ray", rllib),
    "rl_games": ("rl_games", rl_games),
    "sample_factory": ("sample-factory", sample_factory),
    "mjlab": ("mjlab", mjlab),
}


# ---- measuring ---------------------------------------------------------------------------------


def measured(contest: Contest, seconds: float, repeats: int) -> dict[str, Any]:
    """Medians, and our ratio to each of the others in the same rounds."""
    contestants = {}
    with contextlib.ExitStack() as stack:
        with measure.quiet_stderr():  # MuJoCo warns of its model files in every worker
            for name, make in contest.items():
                contestants[name] = make()
                stack.callback(contestants[name].close)
        rates = measure.race({name: c.run for name, c in contestants.items()}, seconds, repeats)
    found = measure.compared({"pyfastenv": rates.pop("pyfastenv"), **rates})
    return {"steps_per_s": found["summary"], "gain": found["ratios"]}


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    warnings.simplefilter("ignore")  # the libraries use what their own parts deprecate

    def row(package: str, contest: Callable[[], Contest]) -> sections.Row:
        found = measured(contest(), *((0.5, 2) if options.quick else (2.0, 5)))
        return {"version": version(package)} | found

    sections.run(
        "consumers",
        {name: partial(row, *about) for name, about in CONSUMERS.items()},
        options,
        template=Path(__file__).parent / "templates" / "consumers.md",
    )


if __name__ == "__main__":
    main()
