"""Hindsight's goals are what an episode reached later, and rewards those of the goals."""

import re

import numpy as np
import pytest
import torch
from algorithms import make, small

import pyfastenv
from pyfastenv.training.actor_critic import Batch

NUM_ENVS, CAPACITY = 3, 100  # of each seed: the ring does not end with a step of all environments


@pytest.mark.parametrize("name", ["sac", "td3"])
def test_goals_are_those_of_a_slow_program(name: str) -> None:
    options = {
        "env_id": "dict_tasks:GoalArm",
        "env_kwargs": {"max_episode_steps": 7},
        "buffer_size": CAPACITY,
    }
    algorithm = make(small(name, num_seeds=2, num_envs=NUM_ENVS, her_goals=3, **options))
    views = algorithm.envs.obs_views.views
    achieved, desired = (views[f"{kind}_goal"].place for kind in ("achieved", "desired"))
    collected = []
    algorithm.observe = lambda rows: collected.append((rows.clone(), algorithm.collector.ended))
    shares, come_to = [], set()
    for until in (60, 90, 180):  # explored; following; the ring has turned
        while algorithm.global_step < until:
            algorithm.iterate()
        rows, ended = (torch.cat(parts, 1) for parts in zip(*collected, strict=True))
        total = rows.shape[1]
        size = min(total, CAPACITY)
        numbers = torch.arange(size).repeat(2, 8)
        drawn = Batch.of(algorithm.replayed(numbers), algorithm.layout)
        plain = Batch.of(rows, algorithm.layout)
        newest = {i % CAPACITY: i for i in range(total - size, total)}
        for k, column in np.ndindex(*numbers.shape):
            at = first = newest[int(numbers[k, column])]
            goals = [plain.next_obs[k, at, achieved]]
            while not ended[k, at] and at + NUM_ENVS < total:
                at += NUM_ENVS
                goals.append(plain.next_obs[k, at, achieved])
            goal = drawn.obs[k, column, desired]
            found = [n for n, each in enumerate(goals) if torch.equal(each, goal)]
            changed = bool(found)
            if not changed:
                assert torch.equal(goal, plain.obs[k, first, desired])
            shares.append(changed)
            come_to |= {(len(goals), n) for n in found}
            assert torch.equal(drawn.next_obs[k, column, desired], goal)
            gap = (drawn.next_obs[k, column, achieved].double() - goal.double()).norm()
            assert drawn.rewards[k, column].item() == pytest.approx(-gap.item(), abs=1e-6)
            for part in ("actions", "continues"):
                its = getattr(drawn, part)[k, column]
                assert torch.equal(its, getattr(plain, part)[k, first])
    assert np.mean(shares) == pytest.approx(0.75, abs=0.03)
    # of episodes of every length, every later step
    assert come_to >= {(length, n) for length in range(1, 8) for n in range(length)}


@pytest.mark.parametrize(
    "env_id",
    ["FetchReach-v4", "FetchReachDense-v4", "PointMaze_UMaze-v3", "PointMaze_UMazeDense-v3"],
)
def test_rewards_of_robots_goals_are_their_steps(env_id: str) -> None:
    pytest.importorskip("gymnasium_robotics")
    envs = pyfastenv.make_vec(env_id, 4, num_threads=1)
    envs.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        actions = rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32)
        obs, rewards, *_ = envs.step(actions)
        found = envs.task.compute_reward(obs["achieved_goal"], obs["desired_goal"], {})
        np.testing.assert_allclose(found, rewards, rtol=0, atol=1e-12)


def test_what_has_no_goals_says_so() -> None:
    sentence = re.escape("her_goals: expected an environment whose observations have achieved_goal")
    for env_id in ("Pendulum-v1", "dict_tasks:Arm"):  # which has goals, and no reward of them
        with pytest.raises(ValueError, match=f"{sentence}.* got {env_id.split(':')[-1]}"):
            make(small("sac", env_id=env_id, her_goals=4))
    with pytest.raises(ValueError, match="n_step: expected 1, got 3: with her_goals"):
        small("sac", her_goals=4, n_step=3).check()


@pytest.mark.parametrize("wrong", ["keepdims", "nan"])
def test_rewards_that_no_step_can_have_are_named(wrong: str) -> None:
    """Not the learning rate's fault, and no traceback of a broadcast."""
    algorithm = make(small("td3", env_id="dict_tasks:GoalArm", her_goals=4))

    def reward(achieved: np.ndarray, desired: np.ndarray, info: object) -> np.ndarray:
        gaps = -np.linalg.norm(achieved - desired, axis=-1, keepdims=wrong == "keepdims")
        return gaps * (np.nan if wrong == "nan" else 1.0)

    algorithm.hindsight._reward = reward
    algorithm.iterate()
    shape = r"\(10, 1, 16\)"
    message = f"compute_reward: expected finite rewards {shape}, got {shape[:-2]}(, 1)?[)] from"
    with pytest.raises(ValueError, match=message):
        algorithm.iterate()
