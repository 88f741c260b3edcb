"""gymnasium-robotics as own tasks: its numbers from the first reset on."""

from typing import Any

import numpy as np
import pytest
from robotics_suite import IDS, SHORT, compare

import pyfastenv
from pyfastenv.suites import robotics_ids
from pyfastenv.tasks.language.find import load_task

pytest.importorskip("gymnasium_robotics")

# Fetch once with an object and once without, one hand: the others differ in goals and rewards
FEW = [
    ("FetchReach-v4", "NextStep"),
    ("FetchPickAndPlaceDense-v4", "SameStep"),
    ("PointMaze_Medium_Diverse_G-v3", "Disabled"),
    ("AntMaze_UMazeDense-v5", "SameStep"),
    ("AdroitHandHammer-v1", "NextStep"),
]


@pytest.mark.parametrize(("env_id", "mode"), FEW)
def test_equals_gymnasium_robotics(env_id: str, mode: str) -> None:
    numbers, episodes = compare(env_id, mode, 60, max_episode_steps=25)
    assert numbers > 1_000
    assert episodes >= 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("env_id", IDS)
def test_equals_gymnasium_robotics_for_1_000_steps(env_id: str, mode: str) -> None:
    numbers, episodes = compare(env_id, mode, 500, seed=1, max_episode_steps=SHORT)
    assert numbers > 1_000
    assert episodes >= 8


def test_every_id_of_the_package_is_there() -> None:
    import gymnasium
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    kinds = ("Fetch", "PointMaze", "AntMaze", "AdroitHand")
    versions = ("v4", "v3", "v5", "v1")  # the newest, which need no mujoco_py
    theirs = [
        env_id
        for env_id in gymnasium.registry
        for kind, version in zip(kinds, versions, strict=True)
        if env_id.startswith(kind) and env_id.endswith(version)
    ]
    assert sorted(theirs) == sorted(IDS)
    for env_id, arguments in robotics_ids().items():
        limit = arguments["max_episode_steps"]
        assert gymnasium.spec(env_id).max_episode_steps == limit
        if "maze" not in arguments:
            assert load_task(arguments["task"]).max_episode_steps == limit


def near_its_goal(**kwargs: Any) -> Any:
    """A ball that lies 0.4 m from its goal, at rest."""
    env = pyfastenv.debug("PointMaze_Open-v3", **kwargs)
    env.reset(seed=0)
    plain: Any = env.unwrapped
    plain.data.qpos[:] = plain.task.goal + np.array([0.4, 0.0])
    plain.data.qvel[:] = 0.0
    return env


def test_who_reaches_the_goal() -> None:
    """Ends, goes on, or gets another goal, which is seen with the next step."""
    still = np.zeros(2, np.float32)
    for kwargs, ends in (({"continuing_task": False}, True), ({}, False)):
        _, reward, terminated, *_ = near_its_goal(**kwargs).step(still)
        assert (reward, terminated) == (1.0, ends)
    env = near_its_goal(reset_target=True)
    obs, reward, *_ = env.step(still)
    first = obs["desired_goal"].copy()
    obs, later, *_ = env.step(still)
    assert (reward, later) == (1.0, 0.0)
    assert not np.array_equal(obs["desired_goal"], first)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"maze": "Huge"}, "maze: expected a map of gymnasium_robotics, got 'Huge'"),
        ({"maze": ["Huge"]}, r"maze: expected a name such as 'UMaze', got \['Huge'\]"),
        ({"position_noise_range": np.nan}, "position_noise_range: expected a number, got nan"),
    ],
)
def test_wrong_parameters_are_named(kwargs: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        pyfastenv.make_vec("PointMaze_UMaze-v3", 1, **kwargs)


def test_a_start_is_not_sought_for_ever() -> None:
    with pytest.raises(ValueError, match=r"obj_range: no place is 0\.1 m away"):
        pyfastenv.debug("FetchPush-v4", obj_range=0.05).reset(seed=0)
