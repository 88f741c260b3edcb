"""A policy at play, without a browser: its pace, pushes, commands, and what is said of it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from pole_task import Pole
from test_task_commands import Driven

import pyfastenv
from pyfastenv.algorithms import ppo
from pyfastenv.publish.play.pace import Pace
from pyfastenv.publish.play.player import Player
from pyfastenv.publish.play.pushes import pushed
from pyfastenv.publish.play.source import open_source
from pyfastenv.publish.play.text import status, table
from pyfastenv.runs.saved import evaluate_run

FREE = """<mujoco><worldbody><body pos="0 0 1" euler="0 0 90"><freejoint/>
<geom type="box" size=".2 .1 .05" mass="3"/><body pos=".2 0 0"><joint axis="0 1 0"/>
<geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3" mass="1"/></body></body></worldbody>
</mujoco>"""


def make(task: Any = Pole, num_envs: int = 3, **kwargs: Any) -> Player:
    envs = pyfastenv.make_vec(task, num_envs, autoreset_mode="SameStep", **kwargs)
    still = np.zeros(envs.action_space.shape, envs.action_space.dtype)
    return Player(envs, lambda obs: still, seed=1)


# ---- time ----------------------------------------------------------------------------------------


def test_steps_are_due_in_time() -> None:
    pace = Pace(0.02)
    taken = [pace.due(now) for now in np.arange(0.0, 10.0, 0.013)]
    assert abs(sum(taken) - 10.0 / 0.02) <= 1
    assert set(taken) == {0, 1}
    assert pace.rate == pytest.approx(1.0, abs=0.03) and not pace.late
    pace.speed = 0.25
    assert sum(pace.due(10.0 + now) for now in np.arange(0.0, 4.0, 0.01)) == 50
    assert pace.wait(14.0) == pytest.approx(0.0, abs=1e-6)
    assert pace.wait(13.95) == pytest.approx(0.05)


def test_what_is_late_is_dropped_and_said() -> None:
    pace = Pace(0.02)
    taken = [pace.due(0.5 * i) for i in range(20)]
    assert max(taken) == 5
    assert pace.late and pace.rate == pytest.approx(5 * 0.02 / 0.5, rel=0.1)
    pace.restart()
    assert (pace.rate, pace.late, pace.due(100.0), pace.due(100.0)) == (None, False, 1, 0)


@pytest.mark.parametrize("speed", [0.0, -1.0, np.inf, np.nan])
def test_a_speed_is_above_0(speed: float) -> None:
    with pytest.raises(ValueError, match="speed: expected more than 0"):
        Pace(0.02).speed = speed


def test_a_player_pauses_and_steps() -> None:
    player = make()
    assert player.pace.period == 0.02
    steps = [player.advance(now) for now in (0.0, 0.01, 0.02, 0.041)]
    assert steps == [1, 0, 1, 1] and player.steps == 3
    player.pause(True)
    assert player.advance(9.0) == 0
    player.step()
    assert player.steps == 4 and player.episode[1] == 4
    player.pause(False)
    assert player.advance(10.0) == 1  # the pause is not made up for


# ---- what is shown -------------------------------------------------------------------------------


def test_an_episode_is_told_until_its_end_and_after() -> None:
    player = make()
    rewards = []
    for _ in range(30):
        player.step()
        rewards.append(player.reward)
        terms = {n: v for n, v in player.numbers().items() if n.startswith("reward_")}
        assert sum(terms.values()) == pytest.approx(rewards[-1])
    ended = player.ended
    assert ended is not None and (ended.length, ended.why) == (30, "time is up")
    assert ended.total == pytest.approx(sum(rewards))
    assert player.episode == (0.0, 0)
    assert player.numbers()["episode_reward_upright"] == pytest.approx(30.0, rel=0.1)
    shown = status(player, "<pole>") + table(player)
    for text in ("&lt;pole&gt;", "30 steps, return", "time is up", "reward_upright", "latest"):
        assert text in shown
    assert "episode_" not in shown


def test_another_environment_is_shown_and_reset_alone() -> None:
    player = make()
    player.step()
    player.select(2)
    with pytest.raises(IndexError, match="env_id: expected 0 to 2, got 3"):
        player.select(3)
    before = player.envs.get_state()
    player.reset()
    changed = (player.envs.get_state() != before).any(1)
    assert changed.tolist() == [False, False, True]
    assert player.episode == (0.0, 0)
    player.select(0)
    assert player.episode[1] == 1


def test_the_mirror_is_what_is_shown() -> None:
    player = make(Pole, engine="lanes")
    player.step()
    player.select(1)
    mirror = player.reflect()
    row, _ = player.envs._core.row(1)
    np.testing.assert_array_equal(np.append(mirror.data.qpos, mirror.data.qvel), row[1:5])


# ---- pushes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "moved"), [((0.5, 0.0), (0.0, 0.5)), ((0.0, 0.5), (-0.5, 0.0))])
def test_a_push_moves_the_whole_robot_by_so_much(way: Any, moved: Any) -> None:
    model = mujoco.MjModel.from_xml_string(FREE)
    data = mujoco.MjData(model)
    data.qpos[7] = 0.7
    mujoco.mj_forward(model, data)
    data.qvel[:] = pushed(data, way)
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    np.testing.assert_allclose(data.subtree_linvel[1], (*moved, 0.0), atol=1e-9)


def test_a_push_changes_velocities_alone_and_of_one() -> None:
    player = make(Pole)
    player.step()
    player.select(1)
    before = [player.envs._core.row(i)[0] for i in range(3)]
    player.push((1.0, 0.0))
    after = [player.envs._core.row(i)[0] for i in range(3)]
    changed = [np.flatnonzero(a != b).tolist() for a, b in zip(before, after, strict=True)]
    assert changed == [[], [3, 4], []]  # time, two positions, two velocities
    total, moving = 5.3, after[1][3:5] - before[1][3:5]
    assert moving[0] * total == pytest.approx(5.3, rel=0.2)
    player.step()
    assert player.envs._core.row(1)[0][1] > before[1][1] + 0.01


def test_classic_control_cannot_be_pushed() -> None:
    player = make("CartPole-v1")
    player.step()
    assert player.mirror is None and player.dials == []
    with pytest.raises(ValueError, match="CartPole-v1 has no bodies"):
        player.push((1.0, 0.0))


# ---- commands ------------------------------------------------------------------------------------


def test_a_command_is_held_for_the_one_that_is_shown() -> None:
    player = make(Driven)
    speed, where = player.dials
    assert (speed.name, speed.low.tolist(), speed.high.tolist()) == ("speed", [-1.0], [2.0])
    assert where.low.tolist() == [-0.2, 0.1, 5.0] and where.drawn
    assert speed.elements == ("speed",) and where.elements == ("ahead", "up", "far")
    player.select(1)
    player.hold("speed", [1.5])
    player.hold("where", [0.1, 0.2, 5.0])
    for _ in range(40):
        player.step()
    assert player.command("speed").tolist() == [1.5] and player.reward == 1.5
    assert player.command("where").tolist() == [0.1, 0.2, 5.0]
    assert player.holds("speed")
    player.select(0)
    assert not player.holds("speed") and player.command("speed").tolist() != [1.5]
    player.select(1)
    player.hold("speed", None)
    for _ in range(40):
        player.step()
    assert not player.holds("speed") and player.command("speed").tolist() != [1.5]


# ---- what is played ------------------------------------------------------------------------------


def test_a_run_is_played_as_it_is_evaluated(tmp_path: Path) -> None:
    """With its normaliser, from the same state."""
    options: dict[str, Any] = {"total_steps": 4096, "eval_episodes": 3, "quiet": True}
    ppo.train(ppo.Config.preset("Hopper-v5", run_dir=tmp_path / "run", **options))
    expected = evaluate_run(tmp_path / "run", 3, seed=5)
    source = open_source(str(tmp_path / "run"), num_envs=3)
    assert source.title.startswith("ppo on Hopper-v5, ")
    player = Player(source.envs, source.act, seed=5)
    while player.ended is None:
        player.step()
    assert player.ended.length == expected.lengths[0]
    assert player.ended.total == pytest.approx(float(expected.returns[0]), rel=1e-4)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("play Antt-v5", "nearest ones: Ant-v5"),
        ("play nowhere", "there is no run folder nowhere"),
        ("play nowhere.pt", "no such checkpoint"),
        ("play Hopper-v5 --best", "--best and --policy-id are for a run folder's policies"),
        ("play Hopper-v5 --num-envs 0", "num_envs: expected at least 1, got 0"),
        ("play Hopper-v5 --num-envs 65", "num_envs: expected less than 65"),
        ("play nowhere.py:Task", "nowhere.py"),
    ],
)
def test_mistakes_are_one_sentence(
    line: str,
    words: str,
    one_sentence: Callable[[list[str], str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyfastenv.publish.play.server._import_viser", lambda: None)
    one_sentence(line.split(), words)


def test_without_viser_it_says_what_to_install(
    one_sentence: Callable[[list[str], str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mjviser", None)
    one_sentence(["play", "Hopper-v5"], "pip install 'pyfastenv[play]'")
