"""CleanRL: our environments equal those that its scripts make of gymnasium's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import assert_same, random_actions, wrong_mode
from run_example import run_example

import pyfastenv
from pyfastenv.integrations.cleanrl import make_cleanrl, make_cleanrl_ppo, to_cleanrl

NUM_ENVS = 3
GAMMA = 0.98


def sac_env(env_id: str, limit: int) -> gymnasium.Env[Any, Any]:
    """The environment of CleanRL's sac_continuous_action.py, as its make_env makes it."""
    env = gymnasium.make(env_id, disable_env_checker=True, max_episode_steps=limit)
    return gymnasium.wrappers.RecordEpisodeStatistics(env)


def ppo_env(env_id: str, limit: int) -> gymnasium.Env[Any, Any]:
    """The environment of CleanRL's ppo_continuous_action.py, as its make_env makes it."""
    env = gymnasium.make(env_id, disable_env_checker=True, max_episode_steps=limit)
    env = gymnasium.wrappers.FlattenObservation(env)
    env = gymnasium.wrappers.RecordEpisodeStatistics(env)
    env = gymnasium.wrappers.ClipAction(env)
    env = gymnasium.wrappers.NormalizeObservation(env)
    env = gymnasium.wrappers.TransformObservation(env, lambda obs: np.clip(obs, -10, 10), None)
    env = gymnasium.wrappers.NormalizeReward(env, gamma=GAMMA)
    return gymnasium.wrappers.TransformReward(env, lambda reward: np.clip(reward, -10, 10))


def in_sync(make_env: Callable[[], gymnasium.Env[Any, Any]]) -> gymnasium.vector.SyncVectorEnv:
    return gymnasium.vector.SyncVectorEnv([make_env] * NUM_ENVS, autoreset_mode="SameStep")


def without_times(infos: dict[str, Any]) -> dict[str, Any]:
    if "final_info" in infos:
        for key in ("t", "_t"):
            assert infos["final_info"]["episode"].pop(key).shape == (NUM_ENVS,)
    return infos


def compare(ours: Any, theirs: Any, num_steps: int = 120) -> int:
    """Returns the number of episodes ended."""
    rng = np.random.default_rng(0)
    assert_same(ours.reset(seed=1), theirs.reset(seed=1), "reset")
    episodes = 0
    for step in range(num_steps):
        actions = random_actions(theirs.unwrapped.envs[0].unwrapped.action_space, rng, NUM_ENVS)
        *arrays, infos = ours.step(actions)
        *their_arrays, their_infos = theirs.step(actions)
        assert_same(tuple(arrays), tuple(their_arrays), f"step {step}")
        assert_same(without_times(infos), without_times(their_infos), f"step {step}")
        if "final_info" in infos:
            ended = infos["final_info"]["_episode"]
            assert_same(ended, arrays[2] | arrays[3])
            episodes += len(infos["final_info"]["episode"]["r"][ended])
    ours.close()
    theirs.close()
    return episodes


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("Hopper-v5", 19), ("HalfCheetah-v5", 30), ("Pendulum-v1", 25), ("CartPole-v1", 30)],
)
def test_same_as_in_sac(env_id: str, limit: int) -> None:
    ours = make_cleanrl(env_id, NUM_ENVS, max_episode_steps=limit)
    assert compare(ours, in_sync(lambda: sac_env(env_id, limit))) > NUM_ENVS


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("Hopper-v5", 19), ("HalfCheetah-v5", 30), ("Ant-v5", 40), ("Pendulum-v1", 25)],
)
def test_same_as_in_ppo(env_id: str, limit: int) -> None:
    """Observations, final observations and rewards, normalised per environment."""
    ours = make_cleanrl_ppo(env_id, NUM_ENVS, gamma=GAMMA, max_episode_steps=limit)
    theirs = in_sync(lambda: ppo_env(env_id, limit))
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert compare(ours, theirs) > NUM_ENVS


@pytest.mark.parametrize("make", [make_cleanrl, make_cleanrl_ppo])
@pytest.mark.parametrize("infos", [True, False])
def test_old_infos(make: Any, infos: bool) -> None:
    """As scripts for gymnasium 0.29 read them, against the new ones."""
    new = make("Hopper-v5", NUM_ENVS, infos=infos)
    old = make("Hopper-v5", NUM_ENVS, infos=infos, old_infos=True)
    rng = np.random.default_rng(0)
    new.reset(seed=1)
    old.reset(seed=1)
    ended = np.zeros(NUM_ENVS, bool)
    for _ in range(80):
        actions = rng.uniform(-1, 1, (NUM_ENVS, 3)).astype(np.float32)
        _, _, terminations, truncations, new_infos = new.step(actions)
        *_, old_infos = old.step(actions)
        assert ("final_info" in old_infos) == bool((terminations | truncations).any())
        if "final_info" not in old_infos:
            continue
        ended |= terminations | truncations
        for i, info in enumerate(old_infos["final_info"]):
            if not terminations[i]:
                assert info is None
                assert old_infos["final_observation"][i] is None
                continue
            assert info["episode"]["r"] == new_infos["final_info"]["episode"]["r"][i]
            assert info["episode"]["l"] == new_infos["final_info"]["episode"]["l"][i]
            assert_same(old_infos["final_observation"][i], new_infos["final_obs"][i])
            assert ("x_position" in info) == infos
    assert ended.all()
    new.close()
    old.close()


def test_masked_reset_leaves_other_statistics_alone() -> None:
    envs = make_cleanrl_ppo("Hopper-v5", NUM_ENVS)
    first, _ = envs.reset(seed=0)
    mask = np.array([False, True, False])
    obs, _ = envs.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal((obs == first).all(axis=1), ~mask)


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("CleanRL", "SameStep", mode):
        to_cleanrl(pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode))


def test_an_own_task() -> None:
    pytest.importorskip("numba")
    from dict_tasks import Arm

    ours = make_cleanrl(Arm, NUM_ENVS, observation_dict=False)
    theirs = pyfastenv.make_vec(Arm, NUM_ENVS, observation_dict=False, autoreset_mode="SameStep")
    assert_same(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    for _ in range(30):
        actions = np.full((NUM_ENVS, 2), 0.3)
        results = ours.step(actions)
        assert_same(results[:4], theirs.step(actions)[:4])
        ended = results[2] | results[3]
    assert results[4]["is_success"].shape == ended.shape
    with pytest.raises(ValueError, match=r"CleanRL needs flat .*observation_dict=False"):
        make_cleanrl(Arm, NUM_ENVS)
    with pytest.raises(ValueError, match="CleanRL needs flat"):
        make_cleanrl_ppo(Arm, NUM_ENVS)
    with pytest.raises(ValueError, match=r"CleanRL needs observations of numbers: .*without pix"):
        make_cleanrl("HalfCheetah-v5", NUM_ENVS, pixels={"height": 16, "width": 16})
    with pytest.raises(ValueError, match=r"CartPole-v1's are Discrete\(2\): make_cleanrl takes"):
        make_cleanrl_ppo("CartPole-v1", NUM_ENVS)


def test_ppo_example() -> None:
    pytest.importorskip("torch")
    assert "episodic_return" in run_example("integration_cleanrl_ppo.py", "10000")


def test_sac_example() -> None:
    pytest.importorskip("torch")
    assert "episodic_return" in run_example("integration_cleanrl_sac.py", "800")
