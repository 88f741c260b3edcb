"""dm_env: its own conformance tests, and the same episodes as gymnasium's."""

from __future__ import annotations

from typing import Any

import dm_env
import gymnasium
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import specs, test_utils
from run_example import run_example

import pyfastenv
from pyfastenv.integrations.dm_env import make_dm_env, to_dm_env


class HopperTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    """Episodes that end by falling."""

    def make_object_under_test(self) -> dm_env.Environment:
        return make_dm_env("Hopper-v5", seed=0)

    def make_action_sequence(self) -> Any:
        return (self.make_action() for _ in range(300))


class CheetahTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    """Episodes that end by time."""

    def make_object_under_test(self) -> dm_env.Environment:
        return make_dm_env("HalfCheetah-v5", max_episode_steps=7)


class CartPoleTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    """Discrete actions, bounded observations."""

    def make_object_under_test(self) -> dm_env.Environment:
        return make_dm_env("CartPole-v1")

    def make_action_sequence(self) -> Any:
        return [np.int64(1)] * 40


@pytest.mark.parametrize(("env_id", "limit"), [("Hopper-v5", 25), ("CartPole-v1", 12)])
def test_same_as_gymnasium(env_id: str, limit: int) -> None:
    env = make_dm_env(env_id, seed=3, max_episode_steps=limit)
    theirs = gymnasium.make(env_id, max_episode_steps=limit, disable_env_checker=True)
    theirs.action_space.seed(0)
    step = env.step(None)  # starts the first episode
    obs, _ = theirs.reset(seed=3)
    discounts = set()
    for _ in range(150):
        np.testing.assert_array_equal(step.observation, obs, strict=True)
        if step.last():
            step = env.step(None)
            assert step.first()
            obs, _ = theirs.reset()
            continue
        action = theirs.action_space.sample()
        step = env.step(action)
        obs, reward, terminated, truncated, _ = theirs.step(action)
        assert step.reward == reward
        assert step.last() == (terminated or truncated)
        assert step.discount == (0.0 if terminated else 1.0)
        discounts.add((step.last(), step.discount))
    assert discounts == {(False, 1.0), (True, 0.0), (True, 1.0)}
    env.close()


def test_specs() -> None:
    hopper, cart_pole = make_dm_env("Hopper-v5"), make_dm_env("CartPole-v1")
    assert hopper.observation_spec() == specs.Array((11,), np.float64, "observation")
    bounds = -np.ones(3, np.float32), np.ones(3, np.float32)
    assert hopper.action_spec() == specs.BoundedArray((3,), np.float32, *bounds, "action")
    assert cart_pole.action_spec() == specs.DiscreteArray(2, np.int64, "action")
    assert isinstance(cart_pole.observation_spec(), specs.BoundedArray)


def test_an_own_task_with_dict_observations() -> None:
    pytest.importorskip("numba")
    from dict_tasks import Arm

    with make_dm_env(Arm, seed=3) as env:
        plain = pyfastenv.debug(Arm)
        spec = env.observation_spec()
        assert spec["frame"] == specs.Array((3, 3), np.float64, "frame")
        assert env.action_spec() == specs.BoundedArray((2,), np.float64, -1.0, 1.0, "action")
        step, (obs, _) = env.reset(), plain.reset(seed=3)
        while not step.last():
            for name, values in obs.items():
                np.testing.assert_array_equal(step.observation[name], values)
                spec[name].validate(values)
            step = env.step(np.ones(2))
            obs, reward, *_ = plain.step(np.ones(2))
            assert step.reward == reward


def test_rendering_and_wrapped_environments() -> None:
    pytest.importorskip("pygame")
    env = make_dm_env("pyfastenv/CartPole-v1", render_mode="rgb_array")
    env.reset()
    assert env.render().shape == (400, 600, 3)
    env.close()
    wrapped = gymnasium.wrappers.FlattenObservation(gymnasium.make("pyfastenv/Hopper-v5"))
    with to_dm_env(wrapped, seed=1) as env:
        assert env.reset().observation.shape == (11,)


def test_example() -> None:
    assert "return" in run_example("integration_dm_env.py", "3")
