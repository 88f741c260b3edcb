"""rl_games: its IVecEnv contract, its agents and its players on our environments."""

from __future__ import annotations

import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import make_gymnasium, wrong_mode
from run_example import run_example

import pyfastenv

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what PyTorch has deprecated
    pytest.importorskip("rl_games.torch_runner")

import torch
from rl_games.common import env_configurations, vecenv
from rl_games.common.ivecenv import IVecEnv
from rl_games.torch_runner import Runner

from pyfastenv.integrations.rl_games import make_rl_games, register_rl_games, to_rl_games

NUM_ENVS = 4

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]


class Theirs(IVecEnv):
    """gymnasium's environments in arrays, as rl_games' own IVecEnvs return them."""

    def __init__(self, env_id: str, num_envs: int, seed: int, max_episode_steps: int):
        self.envs = make_gymnasium(env_id, num_envs, "SameStep", max_episode_steps)
        self.seed = seed

    def reset(self) -> Any:
        return self.envs.reset(seed=self.seed)[0]

    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = self.envs.step(actions)
        infos["time_outs"] = truncations & ~terminations
        return obs, rewards, terminations | truncations, infos

    def get_env_info(self) -> dict[str, Any]:
        return {
            "observation_space": self.envs.single_observation_space,
            "action_space": self.envs.single_action_space,
        }


def register_theirs(env_id: str, **kwargs: Any) -> str:
    name = f"theirs/{env_id}"
    env_configurations.register(name, {"env_creator": None, "vecenv_type": "THEIRS"})
    vecenv.register(
        "THEIRS", lambda _, num_actors, **config: Theirs(env_id, num_actors, **kwargs, **config)
    )
    return name


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("Hopper-v5", 23), ("HalfCheetah-v5", 40), ("CartPole-v1", 9), ("Pendulum-v1", 30)],
)
def test_same_steps(env_id: str, limit: int) -> None:
    name = register_rl_games(env_id, max_episode_steps=limit)
    assert name == f"pyfastenv/{env_id}"
    ours = vecenv.create_vec_env(name, NUM_ENVS, seed=3)
    theirs = Theirs(env_id, NUM_ENVS, 3, limit)
    info = ours.get_env_info()
    assert info["action_space"] == theirs.get_env_info()["action_space"]
    assert info["observation_space"].shape == theirs.get_env_info()["observation_space"].shape
    assert torch.equal(ours.reset(), torch.FloatTensor(theirs.reset()))
    time_outs = ended = 0
    rng = np.random.default_rng(0)
    for _ in range(100):
        if isinstance(info["action_space"], gymnasium.spaces.Discrete):
            actions = rng.integers(0, 2, NUM_ENVS)
        else:
            size = (NUM_ENVS, *info["action_space"].shape)
            actions = rng.uniform(-1, 1, size).astype(np.float32)
        obs, rewards, dones, infos = ours.step(torch.from_numpy(actions))
        their_obs, their_rewards, their_dones, their_infos = theirs.step(actions)
        assert torch.equal(obs, torch.FloatTensor(their_obs))
        assert torch.equal(rewards, torch.FloatTensor(their_rewards))
        assert torch.equal(dones, torch.from_numpy(their_dones))
        assert torch.equal(infos["time_outs"], torch.from_numpy(their_infos["time_outs"]))
        time_outs += int(infos["time_outs"].sum())
        ended += int(dones.sum())
    assert time_outs > 0
    assert (time_outs < ended) == (env_id in ("Hopper-v5", "CartPole-v1"))
    ours.close()


MLP = {"units": [16], "activation": "elu", "initializer": {"name": "default"}}
SHARED = {
    "device": "cpu", "device_name": "cpu", "torch_compile": False, "num_actors": NUM_ENVS,
    "reward_shaper": {"scale_value": 0.1}, "gamma": 0.99, "normalize_input": True,
    "value_bootstrap": True, "print_stats": False, "max_epochs": 3, "save_best_after": 100,
}  # fmt: skip
PPO = SHARED | {
    "horizon_length": 16, "minibatch_size": 32, "mini_epochs": 2, "normalize_advantage": True,
    "normalize_value": True, "tau": 0.95, "learning_rate": 1e-3, "lr_schedule": None, "e_clip": 0.2,
    "clip_value": True, "critic_coef": 1, "grad_norm": 1.0, "entropy_coef": 0.01,
    "bounds_loss_coef": 0.0,
}  # fmt: skip
SAC = SHARED | {
    "max_epochs": 40, "num_steps_per_episode": 1, "num_warmup_steps": 5, "num_warmup_frames": 20,
    "num_updates_per_step": 1, "policy_frequency": 1, "batch_size": 16, "replay_buffer_size": 1000,
    "init_alpha": 1.0, "alpha_lr": 1e-3, "actor_lr": 1e-3, "critic_lr": 1e-3, "critic_tau": 5e-3,
    "learnable_temperature": True,
}  # fmt: skip
CONTINUOUS = {
    "mu_activation": "None", "sigma_activation": "None", "mu_init": {"name": "default"},
    "sigma_init": {"name": "const_initializer", "val": 0}, "fixed_sigma": True,
}  # fmt: skip
ALGORITHMS = {
    "a2c_continuous": {
        "env_id": "Pendulum-v1",
        "model": "continuous_a2c_logstd",
        "network": {"name": "actor_critic", "space": {"continuous": CONTINUOUS}},
        "config": PPO,
    },
    "a2c_discrete": {
        "env_id": "CartPole-v1",
        "model": "discrete_a2c",
        "network": {"name": "actor_critic", "space": {"discrete": None}},
        "config": PPO,
    },
    "sac": {
        "env_id": "Pendulum-v1",
        "model": "soft_actor_critic",
        "network": {
            "name": "soft_actor_critic",
            "space": {"continuous": None},
            "log_std_bounds": [-5, 2],
        },
        "config": SAC,
    },
}


def make_params(algorithm: str, env_name: str, **config: Any) -> dict[str, Any]:
    parts = deepcopy(ALGORITHMS[algorithm])
    return {
        "seed": 5,
        "torch_threads": 1,
        "algo": {"name": algorithm},
        "model": {"name": parts["model"]},
        "network": {**parts["network"], "separate": True, "mlp": MLP},
        "config": {
            **parts["config"],
            "name": "test",
            "env_name": env_name,
            "env_config": {},
            **config,
        },
    }


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_same_training(algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same weights, bit for bit, as on gymnasium's environments."""
    monkeypatch.chdir(tmp_path)  # it writes to runs/
    weights = []
    for register in (register_rl_games, register_theirs):
        env_name = register(ALGORITHMS[algorithm]["env_id"], max_episode_steps=12)
        runner = Runner()
        runner.load({"params": make_params(algorithm, env_name)})
        agent = runner.algo_factory.create(algorithm, base_name="run", params=runner.params)
        agent.train()
        weights.append({name: w.clone() for name, w in agent.model.state_dict().items()})
        assert agent.game_rewards.current_size > 0
    for name in weights[1]:
        assert torch.equal(weights[0][name], weights[1][name]), name


@pytest.mark.parametrize("use_vecenv", [False, True])
def test_player(
    use_vecenv: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = Runner()
    player = {"use_vecenv": use_vecenv, "games_num": 6}
    params = make_params("a2c_discrete", register_rl_games("CartPole-v1"), player=player)
    runner.load({"params": params})
    runner.run({"train": False, "play": True})
    assert "av reward:" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("rl_games", "SameStep", mode):
        to_rl_games(pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode))
    name = register_rl_games("CartPole-v1", autoreset_mode=mode)
    with wrong_mode("rl_games", "SameStep", mode):
        vecenv.create_vec_env(name, NUM_ENVS)


def test_seeds_and_rendering() -> None:
    env = make_rl_games("Pendulum-v1", NUM_ENVS, seed=2)
    first = env.reset()
    assert not torch.equal(env.reset(), first)
    env.seed(2)
    assert torch.equal(env.reset(), first)
    assert env.render() is None
    env.close()
    with pytest.raises(pyfastenv.ClosedError):
        env.reset()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_is_the_cpu() -> None:
    """The same trajectories, through pinned memory."""
    on_cpu = make_rl_games("Hopper-v5", NUM_ENVS, seed=1)
    on_gpu = make_rl_games("Hopper-v5", NUM_ENVS, seed=1, device="cuda")
    assert torch.equal(on_gpu.reset().cpu(), on_cpu.reset())
    for _ in range(60):
        actions = torch.rand((NUM_ENVS, 3)) - 0.5
        *theirs, their_infos = on_cpu.step(actions)
        *ours, our_infos = on_gpu.step(actions.cuda())
        for our, their in zip(ours, theirs, strict=True):
            assert our.is_cuda
            assert torch.equal(our.cpu(), their)
        assert torch.equal(our_infos["time_outs"].cpu(), their_infos["time_outs"])


def test_example(tmp_path: Path) -> None:
    assert "MAX EPOCHS NUM!" in run_example("integration_rl_games.py", "1", cwd=tmp_path)
