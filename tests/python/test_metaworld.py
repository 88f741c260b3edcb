"""MetaWorld as own tasks: its numbers from the first reset on, and its benchmarks."""

import pickle
from typing import Any

import mujoco
import numpy as np
import pytest
from metaworld_suite import NAMES, compare, mend

import pyfastenv
from pyfastenv.suites import METAWORLD
from pyfastenv.suites.metaworld import make_benchmark
from pyfastenv.tasks.language.find import load_task

pytest.importorskip("metaworld")

# a free thing and its contacts' forces; a start that nothing computes anew; two things
FEW = ["pick-place-v3", "window-close-v3", "stick-pull-v3"]


@pytest.mark.parametrize("name", FEW)
def test_equals_metaworld(name: str) -> None:
    counted = compare(name, 150, length=75)
    assert counted["numbers"] > 7_000
    assert counted["most"] > 0.1


def test_equals_metaworld_on_one_of_its_tasks() -> None:
    task = make_benchmark("MT1", 0, "drawer-open-v3").train["drawer-open-v3"][7]
    assert compare("drawer-open-v3", 90, length=30, task=task)["episodes"] == 3


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_equals_metaworld_for_1_000_steps(name: str) -> None:
    assert compare(name, 1_000, seed=2)["episodes"] == 5


def test_every_task_is_there() -> None:
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS

    assert sorted(ALL_V3_ENVIRONMENTS) == sorted(METAWORLD)
    for place in METAWORLD.values():
        assert load_task(f"pyfastenv.suites.metaworld.{place}").max_episode_steps == 500


def skip_settling(env: Any, steps: int = 50) -> None:
    mujoco.mj_forward(env.model, env.data)
    env.init_tcp = env.tcp_center


@pytest.mark.parametrize(
    ("name", "task"), [("MT1", "sweep-into-v3"), ("ML1", "push-v3"), ("MT10", None)]
)
def test_benchmarks_have_metaworlds_tasks(
    name: str, task: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import metaworld

    mend()
    monkeypatch.setattr(metaworld.SawyerXYZEnv, "_reset_hand", skip_settling)  # of 20,000 resets
    monkeypatch.setattr(metaworld, "_N_GOALS", goals := 50 if task else 5)
    theirs = getattr(metaworld, name)(*([task] if task else []), seed=3)
    ours = make_benchmark(name, 3, task)
    for mine, tasks in ((ours.train, theirs.train_tasks), (ours.test, theirs.test_tasks)):
        found: dict[str, list[Any]] = {}
        for each in tasks:
            found.setdefault(each.env_name, []).append(pickle.loads(each.data)["rand_vec"])
        assert list(found) == list(mine)
        # of fewer goals, MetaWorld's stream is another one behind the first task
        for each in list(found)[: None if goals == 50 else 1]:
            np.testing.assert_array_equal(found[each], mine[each][:goals])
    assert ours.partially_observable == (name == "ML1")


@pytest.mark.parametrize("name", ["MT25", "MT50", "ML10", "ML25", "ML45"])
def test_benchmarks_name_metaworlds_tasks(name: str) -> None:
    from metaworld import env_dict

    theirs, ours = getattr(env_dict, f"{name}_V3"), make_benchmark(name, 0)
    if name.startswith("MT"):
        theirs = {"train": theirs, "test": {}}
    for split, mine in (("train", ours.train), ("test", ours.test)):
        assert list(mine) == list(theirs[split])
        assert all(numbers.shape in ((50, 3), (50, 6)) for numbers in mine.values())


def test_a_task_holds_and_its_goal_may_be_hidden() -> None:
    tasks = make_benchmark("ML1", 0, "reach-v3").train["reach-v3"][:3]
    hidden, seen = (
        pyfastenv.make_vec("metaworld/reach-v3", 3, partially_observable=each)
        for each in (True, False)
    )
    for envs in (hidden, seen):
        envs.reset_task(tasks)
        for seed in (0, 1):
            obs, _ = envs.reset(seed=seed)
            np.testing.assert_array_equal(obs[:, 4:7], tasks[:, :3])
            goals = 0.0 if envs is hidden else tasks[:, 3:]
            np.testing.assert_array_equal(obs[:, 36:], np.broadcast_to(goals, (3, 3)))
            after = envs.step(np.zeros((3, 4)))[0]
            np.testing.assert_array_equal(after[:, 36:], obs[:, 36:])
    drawn = seen.sample_tasks(100, seed=0)
    task = seen.task
    assert drawn.shape == (100, 6)
    assert ((task.low <= drawn) & (drawn <= task.high)).all()
    assert (np.linalg.norm(drawn[:, :2] - drawn[:, 3:5], axis=1) >= 0.15).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("MT11",), "name: expected MT1, ML1, MT10, .*, got 'MT11'"),
        (("MT1",), "task: expected one of reach-v3, .*, got None"),
        (("ML1", 0, "reach"), "task: expected one of reach-v3, .*, got 'reach'"),
        (("MT10", 0, "reach-v3"), "task: MT10 has tasks of its own, got 'reach-v3'"),
    ],
)
def test_wrong_benchmarks_are_named(arguments: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_benchmark(*arguments)
