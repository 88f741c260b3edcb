"""All randomness comes from the seed, no two seeds share any; presets stand under all names."""

import itertools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from algorithms import NAMES, kind_of, options_of, small

import pyfastenv
from pyfastenv.algorithms.ppo import PPO
from pyfastenv.runs import evaluation, seeds
from pyfastenv.runs.evaluation import evaluate
from pyfastenv.runs.registry import ALGORITHMS, algorithm_module
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.training import distributed

pytestmark = pytest.mark.usefixtures("recorded")

kinds = pytest.mark.parametrize("name", NAMES)


def training_seeds(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch, **fields: Any
) -> set[int]:
    """The seeds that a new training's environments are reset with."""
    noted: list[Any] = []
    reset = pyfastenv.FastVectorEnv.flat_reset  # reset calls it too

    def note(self: Any, *, seed: Any = None, options: Any = None) -> Any:
        noted.append((self, seed))
        return reset(self, seed=seed, options=options)

    with monkeypatch.context() as patched:
        patched.setattr(pyfastenv.FastVectorEnv, "flat_reset", note)
        algorithm = kind_of(name)(small(name, **{"num_envs": 6, **fields, "seed": seed}))
        algorithm.iterate()
        algorithm.envs.close()
    given = [seeds for envs, seeds in noted if envs is algorithm.envs]  # not a teacher's
    assert given and all(each == given[0] for each in given)
    return set(given[0])


def random_states(env_seeds_: set[int]) -> set[int]:
    """The states of the generators that the environments then have, as gymnasium makes them."""
    return {np.random.default_rng(s).bit_generator.state["state"]["state"] for s in env_seeds_}


@kinds
def test_no_two_seeds_share_an_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states = [random_states(training_seeds(name, seed, monkeypatch)) for seed in range(10)]
    assert [len(mine) for mine in states] == [6] * 10
    states += [random_states(set(env_seeds(s, 64, Stream.EVALUATION_ENVS))) for s in range(10)]
    for one, other in itertools.combinations(states, 2):
        assert not one & other


@pytest.mark.parametrize("name", [name for name in NAMES if "num_seeds" in options_of(name)])
def test_seeds_side_by_side_have_their_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together = training_seeds(name, 3, monkeypatch, num_seeds=3)
    alone = [training_seeds(name, seed, monkeypatch) for seed in (3, 4, 5)]
    assert together == set.union(*alone) and len(together) == 18


@pytest.mark.parametrize("name", ["ppo", "ddpg"])
def test_processes_share_out_the_environments_of_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = training_seeds(name, 3, monkeypatch, num_envs=8)
    parts = []
    for rank in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(distributed, "rank", lambda rank=rank: rank)
            parts.append(training_seeds(name, 3, patched, num_envs=4))
    assert parts[0] | parts[1] == whole and not parts[0] & parts[1]


def test_an_evaluation_resets_with_the_tree() -> None:
    envs = pyfastenv.make_vec("CartPole-v1", 3, autoreset_mode="SameStep")
    policy = PPO(small("ppo", env_id="CartPole-v1")).eval_policy()
    evaluate(envs, policy, 3, seed=7)
    assert list(envs.np_random_seed) == env_seeds(7, 3, Stream.EVALUATION_ENVS)


def test_how_many_steps_an_evaluation_takes_at_a_time_is_nothing_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    envs = pyfastenv.make_vec("Hopper-v5", 2, num_threads=1, autoreset_mode="SameStep")
    policy = PPO(small("ppo", env_id="Hopper-v5")).eval_policy()
    whole = evaluate(envs, policy, 5, seed=7)
    monkeypatch.setattr(evaluation, "_MOST_STEPS", 3)
    parts = evaluate(envs, policy, 5, seed=7)
    assert whole.lengths.tolist() == parts.lengths.tolist() and len(set(whole.lengths.tolist())) > 1
    assert whole.returns.tolist() == parts.returns.tolist()
    with pytest.raises(ValueError, match="seed: expected one, or 1 of them, got 2"):
        evaluate(envs, policy, 5, seed=range(2))


def test_streams_differ_in_every_key() -> None:
    given = [seeds.stream(s, kind, n) for s in range(20) for kind in Stream for n in range(4)]
    given += [x for s in range(20) for x in env_seeds(s, 100)]
    assert len(set(given)) == len(given)
    assert env_seeds(5, 7)[3:] == env_seeds(5, 4, first=3)
    # the tree is part of what a seed means: it must not change unnoticed
    assert env_seeds(1, 1) == [int(_child(1, 0)[0])] and seeds.stream(1, Stream.MODEL) == int(
        _child(1, 4)[0]
    )


def _child(seed: int, *key: int) -> Any:
    return np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)


@kinds
def test_networks_are_those_of_the_seed(name: str) -> None:
    """Whatever was drawn before, and without a trace in torch's default generator."""
    states = []
    for seed, drawn in ((3, 0), (3, 5), (4, 0)):
        torch.manual_seed(0)
        torch.rand(drawn)
        before = torch.get_rng_state()
        algorithm = kind_of(name)(small(name, seed=seed))
        assert torch.equal(torch.get_rng_state(), before)
        network = algorithm.learner.actor if hasattr(algorithm, "learner") else algorithm.policy
        states.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
        algorithm.envs.close()
    assert torch.equal(states[0], states[1]) and not torch.equal(states[0], states[2])


# ---- presets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_presets_are_found_under_every_name(name: str) -> None:
    config = algorithm_module(name).Config
    for env, fields in config.presets.items():
        for env_id in (
            f"{env}-v5",
            f"{env}-v4",
            f"pyfastenv/{env}-v5",
            f"pyfastenv:pyfastenv/{env}-v5",
        ):
            found = config.preset(env_id, seed=9)
            assert found.env_id == env_id and found.seed == 9
            assert {field: getattr(found, field) for field in fields} == dict(fields)
    assert config.preset("NotThere-v5") == config(env_id="NotThere-v5")
    known = {env_id.removeprefix("pyfastenv/").partition("-v")[0] for env_id in gymnasium.registry}
    assert known.issuperset(config.presets)  # the names are environments'


def test_an_environment_without_a_preset_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those that nobody has trained with the algorithm; the defaults hold."""
    for name, env in (
        *(("mbpo", env) for env in ("HalfCheetah", "Ant", "Humanoid")),
        *(("flashsac", env) for env in ("Ant", "Humanoid")),
    ):
        config = algorithm_module(name).Config.preset(f"{env}-v5")
        assert config == type(config)(env_id=f"{env}-v5")
        said = f"{name} has no preset for {env}-v5: what is not given has its default."
        assert config.preset_note() == said
    for name, env_id in (("ppo", "Hopper-v5"), ("ppo", "Reacher-v5"), ("ddpg", "Hopper-v5")):
        assert algorithm_module(name).Config.preset(env_id).preset_note() == ""
    small = {"total_steps": 60, "learning_starts": 50, "eval_episodes": 1, "loggers": ()}
    small |= {"policy_width": 8, "critic_width": 8, "batch_size": 8, "torch_threads": 1}
    module = algorithm_module("flashsac")
    module.train(module.Config.preset("Reacher-v5", run_dir=tmp_path / "run", **small))
    assert (
        "flashsac has no preset for Reacher-v5: what is not given has its default."
        in capsys.readouterr().out
    )


def test_options_win_over_presets(tmp_path: Path) -> None:
    config = algorithm_module("ppo").Config.preset("Hopper-v5", num_envs=3, run_dir=tmp_path)
    assert (config.num_envs, config.num_steps) == (3, 64)
