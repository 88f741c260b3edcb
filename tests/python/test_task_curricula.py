"""Curricula: numbers that outlive episodes, moved by rules or by steps, in every way alike."""

import inspect
from typing import Any

import numpy as np
import pytest
from parity import assert_same
from plain_python import beside_plain
from pole_task import Pole

import pyfastenv
from pyfastenv.errors import EnvError, TaskCodeError
from pyfastenv.tasks.language.helpers import move_level


class Climber(Pole):
    """Its level rises where an episode was long, and pushes it; its share rises by steps."""

    max_episode_steps = 12
    level = pyfastenv.curriculum(0, 3, start=(0, 2))
    share = pyfastenv.curriculum(0.5, 2.0, over=(10, 30))
    lasted = pyfastenv.memory(2, lasting=True)

    def reset(self, data, rng):
        up, down = self.lasted[0] > 11.0, self.lasted[0] < 9.0 and self.lasted[1] > 0.0
        self.level = move_level(self.level, up, down, self.level_low, self.level_high, rng)
        self.lasted[0] = 0.0
        self.lasted[1] += 1.0
        data.qpos[1] = rng.uniform(-0.05, 0.05) * self.level

    def step(self, data, action, info):
        self.lasted[0] += 1.0
        self.simulate(data)
        return self.level + self.share, abs(data.qpos[1]) > 0.1

    def observation(self, data, obs):
        obs["state"] = np.concatenate((data.qpos, data.qvel))
        obs["level"] = self.level


def steps_of(envs: Any, count: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [envs.step(rng.uniform(-1, 1, (envs.num_envs, 1))) for _ in range(count)]


@pytest.mark.parametrize("engine", ["mujoco", "lanes"])
def test_plain_python_gives_the_same_bits(engine: str) -> None:
    pairs = beside_plain(Climber, 200, pool={"engine": engine})
    levels = {float(pair.results[-1]["episode_level"][0]) for pair in pairs}
    assert len(levels) > 2


def test_it_starts_in_its_range_moves_and_does_not_depend_on_threads() -> None:
    pools = [
        pyfastenv.make_vec(Climber, 64, num_threads=n, autoreset_mode="SameStep") for n in (1, 3)
    ]
    starts = [envs.reset(seed=7)[1]["episode_level"] for envs in pools]
    assert sorted(set(starts[0].tolist())) == [0.0, 1.0, 2.0]
    ours, theirs = (steps_of(envs, 100) for envs in pools)
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine[:4], other[:4], strict=True):
            assert_same(a, b)
    moved = np.array([step[4]["episode_level"] for step in ours])
    assert set(moved.ravel().tolist()) == {0.0, 1.0, 2.0, 3.0}
    assert (abs(np.diff(moved, axis=0)) > 0).any(0).all()


def test_it_moves_by_steps() -> None:
    still = {"max_episode_steps": 60, "level_high": 0, "level_start": 0}
    envs = pyfastenv.make_vec(Climber, 3, **still)
    envs.reset(seed=0)
    shares = np.array([step[4]["episode_share"] for step in steps_of(envs, 45)])
    expected = 0.5 + 1.5 * np.clip((np.arange(45) - 10) / 20, 0.0, 1.0)
    np.testing.assert_allclose(shares, np.tile(expected[:, None], 3), atol=1e-15)
    at_once = pyfastenv.make_vec(Climber, 3, share_over=0)
    assert (at_once.reset(seed=0)[1]["episode_share"] == 2.0).all()


def test_snapshots_have_it_and_seeds_begin_anew() -> None:
    envs, other = (pyfastenv.make_vec(Climber, 8, autoreset_mode="SameStep") for _ in range(2))
    first = envs.reset(seed=3)
    begun = steps_of(envs, 60)
    other.reset(seed=9)
    steps_of(other, 20)
    other.set_state(envs.get_state())
    for mine, theirs in zip(steps_of(envs, 60, 1), steps_of(other, 60, 1), strict=True):
        assert_same(mine[0], theirs[0])
        assert_same(mine[1], theirs[1])
    other.take_values(envs.own_values())  # what evaluations take of a training's environments
    for each in (envs, other):
        again = each.reset(seed=3)
        assert_same(again[0], first[0])
        assert_same(again[1]["episode_level"], first[1]["episode_level"])
        for mine, theirs in zip(steps_of(each, 60), begun, strict=True):
            assert_same(mine[1], theirs[1])


def test_rollouts_go_on_with_it_and_tell_its_last_value() -> None:
    pytest.importorskip("torch")
    envs, rolled = (pyfastenv.make_vec(Climber, 4, autoreset_mode="SameStep") for _ in range(2))
    for each in (envs, rolled):
        each.reset(seed=5)
    still = pyfastenv.PolicySpec(
        weights=[np.zeros((1, 5, 1), np.float32)],
        biases=[np.zeros((1, 1), np.float32)],
        log_std=np.zeros((1, 1), np.float32),
        greedy=True,
    )
    batch = pyfastenv.rollout(rolled, still, 80)
    steps = [envs.step(np.zeros((4, 1))) for _ in range(80)]
    np.testing.assert_allclose(np.asarray(batch.rewards), [step[1] for step in steps], rtol=1e-6)
    last = [step[4]["final_info"]["episode_level"] for step in steps if "final_info" in step[4]]
    told = np.asarray(batch.episodes.infos["episode_level"])
    assert len(told) >= 20
    assert set(told.tolist()) == set(np.concatenate(last).tolist())
    assert len(set(told.tolist())) > 1


def test_a_range_of_one_value_holds_it() -> None:
    envs = pyfastenv.make_vec(Climber, 8, autoreset_mode="SameStep", level_low=3, level_start=3)
    envs.reset(seed=0)
    assert (np.array([step[4]["episode_level"] for step in steps_of(envs, 50)]) == 3.0).all()


def test_lasting_memory_is_for_episodes_of_its_own_environment() -> None:
    class Counting(Pole):
        max_episode_steps = 5
        before = pyfastenv.memory()
        episodes = pyfastenv.memory(lasting=True)
        after = pyfastenv.memory(2)

        def reset(self, data, rng):
            self.episodes += 1.0
            self.before = 7.0

        def step(self, data, action, info):
            self.simulate(data)
            self.after[1] += 1.0
            return self.episodes + 100.0 * self.after[1] + 1000.0 * self.before, False

    envs = pyfastenv.make_vec(Counting, 2, autoreset_mode="SameStep")
    envs.reset(seed=0)
    rewards = np.array([step[1][0] for step in steps_of(envs, 12)])
    assert (rewards - 7000.0).tolist() == [
        101, 201, 301, 401, 501, 102, 202, 302, 402, 502, 103, 203
    ]  # fmt: skip


# ---- mistakes ------------------------------------------------------------------------------------


class Wild(Climber):
    def step(self, data, action, info):
        self.simulate(data)
        if data.time > 0.1:
            self.level = 3.5
        return 0.0, False


def test_a_value_out_of_range_is_an_error_with_its_line() -> None:
    line = inspect.getsourcelines(Wild.step)[1] + 3
    said = rf"test_task_curricula.py:{line}.*self.level: expected 0 to 3, its curriculum, got 3.5"
    envs = pyfastenv.make_vec(Wild, 2)
    envs.reset(seed=0)
    with pytest.raises(EnvError, match=rf"(?s){said}"):
        steps_of(envs, 20)
    env = pyfastenv.debug(Wild)
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.zeros(1))
    with pytest.raises(ValueError, match=r"self\.level: expected 0 to 3"):
        env.step(np.zeros(1))


class Meddling(Climber):
    def step(self, data, action, info):
        self.share = 1.0
        return super().step(data, action, info)


def test_what_moves_by_itself_is_only_read() -> None:
    line = inspect.getsourcelines(Meddling.step)[1] + 1
    said = rf"test_task_curricula.py:{line}.*self.share: a curriculum over steps moves by itself"
    with pytest.raises(TaskCodeError, match=rf"(?s){said}"):
        pyfastenv.make_vec(Meddling, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"level_start": (2, 5)}, "Climber.level: expected low <= start <= high, got 0, "),
        ({"level_start": (2, 1)}, "Climber.level: expected low <= start <= high, got 0, "),
        ({"level_low": 9}, "Climber.level: expected low <= start <= high, got 9, "),
        ({"level_high": "hard"}, "Climber.level_high: expected a number, got 'hard'"),
        ({"share_over": (30, 10)}, "Climber.share_over: expected steps from 0 on, or the first"),
        ({"share_over": np.inf}, "Climber.share_over: expected a number, or the first and"),
    ],
)
def test_ranges_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pyfastenv.make_vec(Climber, 1, **given)


def test_a_start_beside_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="expected start, or over, not both"):
        pyfastenv.curriculum(0, 1, start=0, over=10)
