"""Commands that environments draw for themselves: when, what, held from outside, and shown."""

from typing import Any

import numpy as np
import pytest
from parity import assert_same
from plain_python import beside_plain
from pole_task import Pole

import pyfastenv
from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.compiler import cache


class Driven(Pole):
    """Two commands; its control reads one, which lanes prepare ahead of the step."""

    max_episode_steps = 120
    speed = pyfastenv.command(low=-1.0, high=2.0, every=0.3)
    where = pyfastenv.command(
        low=(-0.2, 0.1, 5.0), high=(0.2, 0.4, 5.0), every=(0.1, 0.5), names=("ahead", "up", "far")
    )

    def control(self, data, action, ctrl):
        ctrl[:] = 0.1 * action + 0.01 * self.speed

    def step(self, data, action, info):
        self.simulate(data)
        return self.speed, abs(data.qpos[0]) > 0.4

    def observation(self, data, obs):
        obs["state"] = np.concatenate((data.qpos, data.qvel))
        obs["speed"] = self.speed
        obs["where"] = self.where


@pytest.mark.parametrize("engine", ["mujoco", "lanes"])
def test_plain_python_gives_the_same_bits(engine: str) -> None:
    kwargs: dict[str, Any] = {"where_high": (0.2, 0.4, 7), "speed_standing": 0.3}
    envs = pyfastenv.make_vec(Driven, 2, autoreset_mode="Disabled", engine=engine, **kwargs)
    plain = pyfastenv.debug(Driven, **kwargs)
    (obs, infos), (plain_obs, plain_infos) = envs.reset(seed=2), plain.reset(seed=2)
    held = np.array([0.0, 0.25, 6.0])
    drawn = []
    for step in range(140):
        assert_same(obs[0], plain_obs)
        assert_same(infos["where"][0], plain_infos["where"])
        assert infos["speed"][0] == plain_infos["speed"]
        if step in (30, 60):
            for each, values in (("where", held), ("speed", 1.5)):
                envs.set_command(each, values if step == 30 else None, [0])
                plain.unwrapped.set_command(each, values if step == 30 else None)
        drawn.append(envs.get_command("where"))
        action = np.full(1, np.sin(step / 3))
        obs, rewards, terminations, truncations, infos = envs.step(np.stack([action] * 2))
        plain_obs, reward, terminated, truncated, plain_infos = plain.step(action)
        assert (rewards[0], terminations[0], truncations[0]) == (reward, terminated, truncated)
        if terminated or truncated:
            (obs, infos), (plain_obs, plain_infos) = envs.reset(), plain.reset()
    assert (np.array(drawn)[31:60, 0] == held).all()
    assert len(np.unique(np.array(drawn)[31:60, 1], axis=0)) > 2


def test_they_are_drawn_in_time_and_in_range() -> None:
    envs = pyfastenv.make_vec(Driven, 40, max_episode_steps=0, speed_standing=0.25)
    _, infos = envs.reset(seed=0)
    speeds, places = [infos["speed"]], [infos["where"]]
    for step in range(150):
        obs, *_, infos = envs.step(np.zeros((40, 1)))
        assert (infos["speed"] == speeds[-1]).all()  # what the reward was for
        speeds.append(obs[:, envs.observation_groups["speed"]][:, 0])
        places.append(obs[:, envs.observation_groups["where"]])
        np.testing.assert_array_equal(envs.get_command("speed"), speeds[-1])
        changes = (speeds[-1] != speeds[-2]).any()
        assert changes == ((step + 1) % 15 == 0), step  # steps of 0.02 s
        infos = {"speed": speeds[-1]}
    drawn = np.array(speeds[::15])
    assert 0.15 < (drawn == 0.0).mean() < 0.35
    assert drawn.min() < -0.8
    assert drawn.max() > 1.8
    wheres = np.array(places)
    assert ((wheres >= (-0.2, 0.1, 5.0)) & (wheres <= (0.2, 0.4, 5.0))).all()
    lengths = np.diff(np.flatnonzero((np.diff(wheres[:, 0], axis=0) != 0).any(1)))
    assert lengths.min() >= 5
    assert lengths.max() <= 26
    assert len(np.unique(lengths)) > 3


class Steered(Driven):
    where = pyfastenv.command(
        low=(-0.2, 0.1, 5.0), high=(0.2, 0.4, 5.0), every=0.1, standing=(0.0, 0.25, 1.0)
    )


def test_each_element_may_be_zero_for_itself() -> None:
    plain = pyfastenv.debug(Steered)
    envs = pyfastenv.make_vec(Steered, 2000, autoreset_mode="Disabled")
    places = envs.reset(seed=0)[1]["where"]
    assert_same(places[0], plain.reset(seed=0)[1]["where"])
    zero = (places == 0.0).mean(0)
    assert (zero[0], zero[2]) == (0.0, 1.0)
    assert 0.22 < zero[1] < 0.28
    moving = pyfastenv.make_vec(Steered, 64, where_standing=0.0).reset(seed=0)[1]["where"]
    assert (moving[:, 1:] > 0.0).all()


def test_other_ranges_need_no_compiling() -> None:
    pyfastenv.make_vec(Driven, 1)
    before = sorted(cache.folder().glob("*"))
    envs = pyfastenv.make_vec(Driven, 64, where_low=0, where_high=(1, 1, 9), where_every=2)
    assert sorted(cache.folder().glob("*")) == before
    places = envs.reset(seed=0)[1]["where"]
    assert (places.max(0) > (0.8, 0.8, 7.0)).all()
    assert (places.min(0) < (0.2, 0.2, 2.0)).all()


def test_a_held_command_outlives_episodes_and_snapshots() -> None:
    envs = pyfastenv.make_vec(Driven, 3, autoreset_mode="SameStep", max_episode_steps=4)
    envs.set_command("speed", [0.5, 0.75], [0, 2])
    _, infos = envs.reset(seed=0)
    assert infos["speed"][[0, 2]].tolist() == [0.5, 0.75]
    for _ in range(9):
        _, rewards, *_ = envs.step(np.zeros((3, 1)))
        assert rewards[[0, 2]].tolist() == [0.5, 0.75]
    other = pyfastenv.make_vec(Driven, 3, autoreset_mode="SameStep", max_episode_steps=4)
    other.reset(seed=1)
    other.set_state(envs.get_state())
    copy = pyfastenv.make_vec(Driven, 2, autoreset_mode="SameStep")  # as evaluations have them
    copy.take_values(envs.own_values())
    assert copy.reset(seed=3)[1]["speed"][0] == 0.5
    for _ in range(9):
        assert_same(envs.step(np.zeros((3, 1)))[0], other.step(np.zeros((3, 1)))[0])
    envs.set_command("speed", None)
    values = [envs.step(np.zeros((3, 1)))[1] for _ in range(9)]
    assert len(np.unique(values)) > 4


def test_commands_that_nobody_draws_have_the_same_calls() -> None:
    class Told(Pole):
        goal = pyfastenv.command(2, low=-1.0, high=1.0)

        def observation(self, data, obs):
            obs["goal"] = self.goal

    envs = pyfastenv.make_vec(Told, 3)
    envs.set_command("goal", [0.5, -0.5], [1])
    assert envs.get_command("goal").tolist() == [[0.0, 0.0], [0.5, -0.5], [0.0, 0.0]]
    assert envs.reset(seed=0)[0][1].tolist() == [0.5, -0.5]
    with pytest.raises(ValueError, match="goal is not drawn by the environments: expected numbers"):
        envs.set_command("goal", None)


class Widening(Driven):
    """One range widens by steps, the other where the cart has gone far."""

    max_episode_steps = 25
    stage = pyfastenv.curriculum(0, 2, over=(0, 80))
    reach = pyfastenv.curriculum(0, 1)
    farthest = pyfastenv.memory(lasting=True)
    speed = pyfastenv.command(low=0.0, high=(1, 2, 3), every=0.1, curriculum="stage")
    where = pyfastenv.command(
        low=((-1, 0.1), (-2, 0.1)),
        high=(0.0, 0.4),
        every=0.1,
        names=("ahead", "up"),
        curriculum="reach",
    )

    def reset(self, data, rng):
        super().reset(data, rng)
        self.reach = 1.0 * (self.farthest > 0.03)
        self.farthest = 0.0

    def step(self, data, action, info):
        result = super().step(data, action, info)
        self.farthest = max(self.farthest, abs(data.qpos[0] * self.speed))
        return result


def widened(infos: dict[str, Any], envs: Any) -> None:
    """Asserts that the infos have the ranges of the stages, and the pool those of them all."""
    reach, stage = (infos[f"episode_{name}"].astype(int) for name in ("reach", "stage"))
    assert_same(infos["episode_where_ahead_low"], np.array([-1.0, -2.0])[reach])
    assert_same(infos["episode_where_up_high"], np.full(len(reach), 0.4))
    assert_same(infos["episode_speed_high"], stage + 1.0)
    assert envs.command_ranges["where"][0].tolist() == [-1.0 - reach.max(), 0.1]
    assert envs.command_ranges["where"][1].tolist() == [0.0, 0.4]


@pytest.mark.parametrize("engine", ["mujoco", "lanes"])
def test_curricula_move_ranges_in_plain_python_alike(engine: str) -> None:
    speeds, reached = [], set()
    for pair in beside_plain(Widening, 130, num_envs=8, pool={"engine": engine}):
        infos = pair.results[-1]
        widened(infos, pair.envs)
        speeds.append(infos["speed"])
        reached |= set(infos["episode_reach"].tolist())
    assert reached == {0.0, 1.0}
    for first, last, high in ((0, 40, 1.0), (45, 80, 2.0), (85, 130, 3.0)):
        assert high - 0.6 < np.max(speeds[first:last]) <= high


def test_moved_ranges_are_in_snapshots_and_begin_anew_with_a_seed() -> None:
    envs, other = (pyfastenv.make_vec(Widening, 4, autoreset_mode="SameStep") for _ in range(2))
    assert envs.command_ranges["speed"][1] == [1.0]
    envs.reset(seed=1)
    for _ in range(50):
        envs.step(np.ones((4, 1)))
    assert envs.command_ranges["speed"][1] == [2.0]
    other.set_state(envs.get_state())
    for _ in range(50):
        mine, theirs = (each.step(np.ones((4, 1))) for each in (envs, other))
        assert_same(mine[0], theirs[0])
        widened(theirs[4], other)
    envs.reset(seed=1)
    assert envs.command_ranges["speed"][1] == [1.0]


def test_a_stage_may_be_held_and_one_row_is_for_all() -> None:
    given: dict[str, Any] = {"stage_over": 0, "reach_start": 1, "where_high": (0.5, 0.6)}
    envs = pyfastenv.make_vec(Widening, 500, **given)
    assert envs.command_ranges["speed"][1] == [3.0]
    infos = envs.reset(seed=0)[1]
    assert 2.9 < infos["speed"].max() < 3.0
    assert (infos["where"].min(0) < (-1.9, 0.11)).all()
    assert (infos["where"].max(0) > (0.45, 0.59)).all()
    first = pyfastenv.make_vec(Widening, 2, stage_high=1, reach_start=(0, 1))
    assert first.command_ranges["where"][0].tolist() == [-2.0, 0.1]  # of what will be drawn


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"speed_high": (1, -1, 3)},
            "Widening.speed: expected low <= high at stage 1, got 0.0 and",
        ),
        (
            {"speed_high": (1, 2)},
            "curriculum stage from 0 to 1, since low or high have 2 rows, got",
        ),
        ({"stage_low": -1}, "Widening.speed: expected its curriculum stage from 0 to 2, since low"),
        ({"where_low": ((0, 0), (0, 0), (0, 0)), "where_high": ((1, 1), (1, 1))}, "3 rows of 2"),
        (
            {"where_low": (1, 2, 3)},
            "Widening.where_low: expected a number, or 2 of them, or 2 rows",
        ),
        ({"stage_high": "far"}, "Widening.stage_high: expected a number, got 'far'"),
    ],
)
def test_moved_ranges_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pyfastenv.make_vec(Widening, 1, **given)


def test_a_curriculum_must_be_there() -> None:
    class Lost(Driven):
        level = pyfastenv.curriculum(0, 1)
        speed = pyfastenv.command(low=0, high=(1, 2), every=1, curriculum="levl")

    with pytest.raises(ValueError, match="Lost has no curriculum 'levl'; there are level"):
        pyfastenv.make_vec(Lost, 1)
    with pytest.raises(
        TypeError, match="curriculum is for commands that are drawn: expected every"
    ):
        pyfastenv.command(low=0, high=1, curriculum="level")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"where_high": (0.2, 0.0, 5.0)}, "Driven.where: expected low <= high, got"),
        ({"where_low": (0.2, 0.0)}, "Driven.where_low: expected a number, or 3 of them, got"),
        ({"speed_low": "fast"}, "Driven.speed_low: expected a number, got 'fast'"),
        ({"speed_every": 0.0}, "Driven.speed_every: expected seconds above 0"),
        ({"where_every": (8, 3)}, "Driven.where_every: expected seconds above 0, or the least and"),
        ({"speed_standing": 1.5}, "Driven.speed_standing: expected a probability, got 1.5"),
        ({"speed_standing": (0.1, 0.2)}, "Driven.speed_standing: expected a number, got"),
    ],
)
def test_ranges_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pyfastenv.make_vec(Driven, 1, **given)


def test_other_mistakes() -> None:
    envs = pyfastenv.make_vec(Driven, 4)
    with pytest.raises(ValueError, match="Driven has no command 'sped'; there are speed, where"):
        envs.set_command("sped", 1.0)
    with pytest.raises(ValueError, match=r"values: expected .* \(2, 3\) or \(3,\), got \(2,\)"):
        envs.set_command("where", [1.0, 2.0], [0, 1])
    with pytest.raises(ValueError, match=r"values: expected numbers of shape \(\), got 'fast'"):
        pyfastenv.debug(Driven).unwrapped.set_command("speed", "fast")
    for wrong in ([], [1.0], 1, np.array([True, False, True, False])):
        with pytest.raises(ValueError, match="env_ids: expected a vector of integers, got "):
            envs.set_command("speed", 1.0, wrong)
    with pytest.raises(IndexError, match="env_ids: expected 0 to 3, got -1"):
        envs.set_command("speed", 1.0, [0, -1])
    with pytest.raises(ValueError, match="expected finite numbers, got NaN"):
        envs.set_command("speed", np.nan)
    with pytest.raises(ValueError, match="draw speed, where themselves; set_command holds"):
        envs.sample_tasks(4)
    with pytest.raises(ValueError, match="standing is for commands that are drawn"):
        pyfastenv.command(low=0.0, high=1.0, standing=0.1)

    class Writes(Driven):
        def reset(self, data, rng):
            self.speed = 1.0

    with pytest.raises(
        TaskCodeError, match=r"test_task_commands.py:\d+, in reset: self.speed: a c"
    ):
        pyfastenv.make_vec(Writes, 1)


def test_numbers_of_a_command_have_names() -> None:
    for task, where in (
        (Driven, ("ahead", "up", "far")),
        (Steered, ("where[0]", "where[1]", "where[2]")),
    ):
        envs = pyfastenv.make_vec(task, 1)
        assert envs.command_elements == {"speed": ("speed",), "where": where}
    for names in (("a", "b"), "ab"):
        with pytest.raises(ValueError, match="command: names: expected 3 of them, or none, got"):
            pyfastenv.command(low=(0, 0, 0), high=1, every=1, names=names)
    with pytest.raises(ValueError, match="command: names: expected 1 of them, or none, got"):
        pyfastenv.command(low=0, high=1, names=("a", "b"))
