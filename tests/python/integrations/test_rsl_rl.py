"""rsl_rl: its runner learns the same weights on our environments as on gymnasium's."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from parity import make_gymnasium
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from run_example import run_example
from tensordict import TensorDict

import pyfastenv
from pyfastenv.integrations.rsl_rl import FastRslRlEnv, make_rsl_rl, to_rsl_rl

NUM_ENVS = 3


class Gymnasiums(VecEnv):
    """gymnasium's SyncVectorEnv, written as plainly as possible."""

    def __init__(self, env_id: str, limit: int, seed: int):
        self.envs = make_gymnasium(env_id, NUM_ENVS, "SameStep", limit)
        self.num_envs = NUM_ENVS
        self.num_actions = self.envs.single_action_space.shape[0]  # type: ignore[index]
        self.max_episode_length = limit
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.int64)
        self.device = "cpu"
        self.cfg = {}
        self.obs = self._groups(self.envs.reset(seed=seed)[0])

    @staticmethod
    def _groups(obs: np.ndarray) -> TensorDict:
        return TensorDict({"policy": torch.tensor(obs, dtype=torch.float32)}, [NUM_ENVS])

    def get_observations(self) -> TensorDict:
        return self.obs

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        space = self.envs.single_action_space
        clipped = np.clip(actions.numpy(), space.low, space.high)  # type: ignore[attr-defined]
        obs, rewards, terminations, truncations, _ = self.envs.step(clipped)
        self.obs = self._groups(obs)
        dones = torch.from_numpy(terminations | truncations)
        time_outs = torch.from_numpy(truncations & ~terminations)
        return self.obs, torch.tensor(rewards).float(), dones.long(), {"time_outs": time_outs}


@pytest.mark.parametrize(("env_id", "limit"), [("Hopper-v5", 20), ("HalfCheetah-v5", 15)])
def test_same_steps(env_id: str, limit: int) -> None:
    ours = make_rsl_rl(env_id, NUM_ENVS, seed=5, max_episode_steps=limit)
    theirs = Gymnasiums(env_id, limit, seed=5)
    for name in ("num_envs", "num_actions", "max_episode_length"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert torch.equal(ours.get_observations()["policy"], theirs.get_observations()["policy"])
    generator = torch.Generator().manual_seed(0)
    lengths = torch.zeros(NUM_ENVS, dtype=torch.int64)
    ended = 0
    for _ in range(60):
        actions = torch.randn((NUM_ENVS, ours.num_actions), generator=generator)
        *our_results, our_extras = ours.step(actions)
        *their_results, their_extras = theirs.step(actions)
        for our, their in zip(our_results[1:], their_results[1:], strict=True):
            assert our.dtype == their.dtype and torch.equal(our, their)
        assert torch.equal(our_results[0]["policy"], their_results[0]["policy"])
        assert torch.equal(our_extras["time_outs"], their_extras["time_outs"])
        dones = our_results[2].bool()
        lengths = torch.where(dones, 0, lengths + 1)
        assert torch.equal(ours.episode_length_buf, lengths)
        ended += int(dones.sum())
    assert ended >= 2 * NUM_ENVS
    ours.close()


def config() -> dict[str, Any]:
    network = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
    noise = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
    return {
        "num_steps_per_env": 12,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": noise},
        "critic": network,
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2,
                      "rnd_cfg": None, "symmetry_cfg": None},
    }  # fmt: skip


def test_same_training() -> None:
    """The same weights, bit for bit."""
    weights = []
    for env in (
        make_rsl_rl("Hopper-v5", NUM_ENVS, seed=2, max_episode_steps=20),
        Gymnasiums("Hopper-v5", 20, seed=2),
    ):
        torch.manual_seed(0)
        runner = OnPolicyRunner(env, config())
        runner.learn(3)
        weights.append({k: w.clone() for k, w in runner.alg.get_policy().state_dict().items()})
    for name, weight in weights[1].items():
        assert torch.equal(weights[0][name], weight), name


def test_episodes_that_begin_in_the_middle() -> None:
    """Episodes may begin in the middle, as ``learn(init_at_random_ep_len=True)`` does."""
    env = make_rsl_rl("HalfCheetah-v5", NUM_ENVS, seed=0, max_episode_steps=10)
    env.get_observations()
    env.episode_length_buf = torch.tensor([0, 4, 9])
    ends = []
    for step in range(1, 21):
        obs, _, dones, extras = env.step(torch.zeros(NUM_ENVS, 6))
        assert torch.equal(dones.bool(), extras["time_outs"])
        ends += [(step, i) for i in dones.nonzero().flatten().tolist()]
        # a fresh episode's velocities are noise, here of 0.1
        for i in dones.nonzero().flatten().tolist():
            assert obs["policy"][i, 8:].abs().max() < 0.6
    assert ends == [(1, 2), (6, 1), (10, 0), (11, 2), (16, 1), (20, 0)]


def test_what_does_not_fit_is_refused() -> None:
    for env_id, kwargs, message in (
        ("Hopper-v5", {}, "rsl_rl needs .*'SameStep', got autoreset_mode='NextStep'"),
        ("CartPole-v1", {"autoreset_mode": "SameStep"}, "needs continuous actions, CartPole-v1"),
        (
            "Hopper-v5",
            {"autoreset_mode": "SameStep", "max_episode_steps": 0},
            "with max_episode_steps, got None",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            to_rsl_rl(pyfastenv.make_vec(env_id, **kwargs))  # type: ignore[arg-type]


def test_a_dict_gives_groups() -> None:
    pytest.importorskip("numba")
    from dict_tasks import Arm

    env: FastRslRlEnv = make_rsl_rl(Arm, NUM_ENVS, max_episode_steps=10)
    space = env._envs.single_observation_space
    assert isinstance(space, gymnasium.spaces.Dict)
    groups = env.get_observations()
    assert set(groups.keys()) == set(space.spaces)
    for name, part in space.spaces.items():
        assert groups[name].shape == (NUM_ENVS, *part.shape)  # type: ignore[misc]


def test_example() -> None:
    assert "mean return" in run_example("integration_rsl_rl.py", "2")
