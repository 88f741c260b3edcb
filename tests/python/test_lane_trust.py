"""Lanes are watched in use: a wrong bit is found, reported once, and mj_step goes on."""

import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco import rollout as mujoco_rollout
from parity import random_policy

import pyfastenv
from pyfastenv import _core, physics

SENTENCE = (
    r"lanes and mj_step differ on this machine, at substep 1 of an environment's step of 5 in "
    r"qvel\[0\] of joint 'rootx': "
    r"-?0x1\.\S+ \(\S+\) in lanes, -?0x1\.\S+ \(\S+\) by mj_step \(model '{}', Euler, "
    r"\d lanes, pyfastenv {}, MuJoCo {}\); please report it"
)

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def default_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the whole run is made with."""
    monkeypatch.delenv("PYFASTENV_ENGINE", raising=False)
    monkeypatch.delenv("PYFASTENV_MEASURE", raising=False)


@pytest.fixture
def wrong_lanes() -> Iterator[None]:
    """Every result of lanes is wrong in a bit."""
    _core.disturb_lanes(True)
    yield
    _core.disturb_lanes(False)


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    """A model that is no other test's, nor is its mass: trust in a model is the process's."""
    source = Path(pyfastenv.vector.specs.assets_dir()) / "half_cheetah.xml"
    file = tmp_path / "robot.xml"
    number = next(_numbers)
    text = source.read_text().replace('model="cheetah"', f'model="robot{number}"')
    file.write_text(text.replace('settotalmass="14"', f'settotalmass="14.{number:03}1"'))
    return file


def both(robot: Path, num_envs: int = 8, **kwargs: Any) -> list[pyfastenv.FastVectorEnv]:
    made = [
        pyfastenv.make_vec("HalfCheetah-v5", num_envs, xml_file=robot, engine=engine, **kwargs)
        for engine in ("auto", "mujoco")
    ]
    for envs in made:
        envs.reset(seed=1)
    return made


def actions_of(envs: pyfastenv.FastVectorEnv, num_steps: int) -> np.ndarray:
    shape = (num_steps, *envs.action_space.shape)  # type: ignore[misc]
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def warned(envs: pyfastenv.FastVectorEnv, actions: np.ndarray) -> list[str]:
    """Steps; returns what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for action in actions:
            envs.step(action)
    assert all(item.category is RuntimeWarning for item in caught)
    return [str(item.message) for item in caught]


# ---- vector environments -------------------------------------------------------------------------


def test_lanes_that_are_right_are_compared_now_and_then(
    robot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYFASTENV_MEASURE", "0")  # compared all the same
    lanes, mujoco_alone = both(robot)
    actions = actions_of(lanes, 60)
    assert warned(lanes, actions) == warned(mujoco_alone, actions) == []
    stats = lanes.stats()
    assert 0 < stats["lane_checks"] < 200
    assert stats["lane_differences"] == 0
    assert stats["engine"] == "lanes"
    assert lanes.get_state().tobytes() == mujoco_alone.get_state().tobytes()
    assert mujoco_alone.stats()["lane_checks"] == 0


def test_a_wrong_bit_is_found_and_mj_steps_results_stand(robot: Path, wrong_lanes: None) -> None:
    """With one group the first step is compared, so no wrong number leaves it."""
    lanes, mujoco_alone = both(robot, num_threads=1)
    if _core.lane_width() < 8:
        pytest.skip("more than one group")
    actions = actions_of(lanes, 20)
    (said,) = warned(lanes, actions)
    version = re.escape(pyfastenv.__version__)
    assert re.match(SENTENCE.format(r"robot\d+", version, mujoco.mj_versionString()), said)
    assert said.endswith("from now on mj_step steps this model")
    warned(mujoco_alone, actions)
    assert lanes.get_state().tobytes() == mujoco_alone.get_state().tobytes()
    stats = lanes.stats()
    assert stats["engine"] == "mujoco"
    assert said.startswith(stats["engine_reason"])
    assert stats["lane_differences"] == stats["lane_checks"] == 8
    assert stats["lane_steps"] == 0
    assert stats["lane_misses"] == stats["steps"] == 160


@pytest.mark.parametrize("num_threads", [1, 3])
def test_from_the_difference_on_mj_step_steps(
    robot: Path, wrong_lanes: None, num_threads: int
) -> None:
    lanes, mujoco_alone = both(robot, 37, num_threads=num_threads)
    actions = actions_of(lanes, 20)
    assert len(warned(lanes, actions[:5])) == 1
    mujoco_alone.set_state(lanes.get_state())
    for action in actions[5:]:
        ours, theirs = lanes.step(action), mujoco_alone.step(action)
        assert ours[0].tobytes() == theirs[0].tobytes()
        assert ours[1].tobytes() == theirs[1].tobytes()
    assert lanes.get_state().tobytes() == mujoco_alone.get_state().tobytes()
    assert lanes.stats()["engine"] == "mujoco"


def test_later_plans_of_the_model_are_not_made(robot: Path, wrong_lanes: None) -> None:
    lanes, other = both(robot)[0], both(robot)[0]
    warned(lanes, actions_of(lanes, 5))
    assert other.stats()["engine"] == "mujoco", "made before, by the same model"
    _core.disturb_lanes(False)
    with pytest.warns(RuntimeWarning, match="lanes and mj_step differ"):
        later = pyfastenv.make_vec("HalfCheetah-v5", 2, xml_file=robot)
    assert later.stats()["engine_reason"] == lanes.stats()["engine_reason"]
    lanes.set_model_field("body_mass", lanes.get_model_field("body_mass"))
    assert lanes.stats()["engine"] == "mujoco"
    with pytest.raises(ValueError, match="engine='lanes': lanes and mj_step differ"):
        pyfastenv.make_vec("HalfCheetah-v5", 2, xml_file=robot, engine="lanes")
    model = mujoco.MjModel.from_xml_path(str(robot))
    assert str(physics.lanes_refusal(model)).startswith("lanes and mj_step differ")


def test_received_results_are_watched(robot: Path, wrong_lanes: None) -> None:
    lanes, mujoco_alone = both(robot, num_threads=1)
    found: list[str] = []
    for action in actions_of(lanes, 10):
        mujoco_alone.step(action)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lanes.send(action)
            lanes.recv(min_envs=8)
        found += [str(item.message) for item in caught]
    assert len(found) == 1
    assert lanes.stats()["lane_differences"] > 0
    mujoco_alone.set_state(lanes.get_state())
    action = actions_of(lanes, 1)[0]
    assert lanes.step(action)[0].tobytes() == mujoco_alone.step(action)[0].tobytes()


@pytest.mark.parametrize("num_threads", [1, 3])
def test_rollouts_are_watched(robot: Path, wrong_lanes: None, num_threads: int) -> None:
    lanes, mujoco_alone = both(robot, 16, num_threads=num_threads)
    policy = random_policy(lanes)
    with pytest.warns(RuntimeWarning, match="lanes and mj_step differ") as caught:
        pyfastenv.rollout(lanes, policy, 30)
    assert len(caught) == 1
    mujoco_alone.set_state(lanes.get_state())
    ours, theirs = (pyfastenv.rollout(envs, policy, 30) for envs in (lanes, mujoco_alone))
    assert ours.obs.numpy().tobytes() == theirs.obs.numpy().tobytes()
    assert lanes.get_state().tobytes() == mujoco_alone.get_state().tobytes()


def test_warnings_may_be_errors(robot: Path, wrong_lanes: None) -> None:
    lanes = both(robot)[0]
    with pytest.raises(RuntimeWarning, match="lanes and mj_step differ"):
        lanes.step(actions_of(lanes, 1)[0])
    lanes.step(actions_of(lanes, 1)[0])
    assert lanes.stats()["steps"] == 16


# ---- rollouts of one's own model -----------------------------------------------------------------


def rollouts(model: Any, nthread: int, num: int = 48, nstep: int = 300) -> tuple[Any, ...]:
    data = [mujoco.MjData(model) for _ in range(nthread)]
    start = np.zeros((num, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    start[:, 1 + model.nq :] = np.random.default_rng(0).normal(size=(num, model.nv))
    return model, data, start, np.random.default_rng(1).uniform(-1, 1, (num, nstep, model.nu))


@pytest.mark.parametrize("nthread", [1, 3])
def test_physics_rollouts_are_watched(robot: Path, wrong_lanes: None, nthread: int) -> None:
    model, data, *problem = rollouts(mujoco.MjModel.from_xml_path(str(robot)), nthread)
    assert physics.lanes_refusal(model) is None
    assert physics.engine(model) == ("lanes", "")
    with pytest.warns(RuntimeWarning, match="at step 0 of a rollout in qvel") as caught:
        first, _ = physics.rollout(model, data, *problem)
    assert len(caught) == 1
    expected, _ = mujoco_rollout.rollout(model, data, *problem)
    if nthread == 1:  # the first group is compared from the first step on; mj_step goes on
        assert first is not None and first[:8].tobytes() == expected[:8].tobytes()
    refusal = physics.lanes_refusal(model)
    assert refusal is not None and refusal.startswith("lanes and mj_step differ on this machine")
    assert physics.engine(model) == ("mujoco", refusal)
    again, _ = physics.rollout(model, data, *problem)
    assert again is not None and again.tobytes() == expected.tobytes()


def test_a_model_that_is_edited_is_another(robot: Path) -> None:
    model, data, *problem = rollouts(mujoco.MjModel.from_xml_path(str(robot)), 1)
    _core.disturb_lanes(True)
    with pytest.warns(RuntimeWarning, match="lanes and mj_step differ"):
        physics.rollout(model, data, *problem)
    _core.disturb_lanes(False)
    model.body_mass[1] *= 1.1
    assert physics.lanes_refusal(model) is None
    ours, _ = physics.rollout(model, data, *problem)
    expected, _ = mujoco_rollout.rollout(model, data, *problem)
    assert ours is not None and ours.tobytes() == expected.tobytes()


# ---- the faster of the two -----------------------------------------------------------------------

# Sticks that lie crosswise above each other, rolled by 45 degrees: only along the axis across their
# edges are they apart. Lanes ask MuJoCo for each pair, which MuJoCo's own broad phase does not.
ROLLED = (".9239 .3827 0 0", ".6533 .2706 .2706 .6533")
SLATS = "".join(
    f"<body pos='0 0 {0.08 * k}'>"
    f"<joint type='slide' axis='0 0 1' range='-.01 .01' limited='true'/>"
    f"<geom type='box' size='2 .02 .02' mass='1' quat='{ROLLED[k % 2]}'/></body>"
    for k in range(28)
)
SLOW = f"<mujoco><size memory='20M'/><worldbody>{SLATS}</worldbody></mujoco>"


def test_mj_step_steps_what_lanes_do_more_slowly() -> None:
    model = mujoco.MjModel.from_xml_string(SLOW)
    assert physics.lanes_refusal(model) is None
    model, data, *problem = rollouts(model, 1, nstep=150)
    ours, _ = physics.rollout(model, data, *problem)
    expected, _ = mujoco_rollout.rollout(model, data, *problem)
    assert ours is not None and ours.tobytes() == expected.tobytes()
    engine, reason = physics.engine(model)
    assert engine == "mujoco"
    assert re.fullmatch(r"mj_step is faster here, [\d.]+ times as fast as lanes", reason)
    ours, _ = physics.rollout(model, data, *problem)
    assert ours is not None and ours.tobytes() == expected.tobytes()


def test_whoever_asks_for_lanes_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFASTENV_MEASURE", "0")
    model = mujoco.MjModel.from_xml_string(SLOW.replace("2 .02 .02", "2 .02 .021"))
    model, data, *problem = rollouts(model, 1, nstep=150)
    physics.rollout(model, data, *problem)
    assert physics.engine(model) == ("lanes", "")


def test_vector_environments_take_the_faster_way(tmp_path: Path) -> None:
    """And results are the same, whichever it is; lanes that are asked for stay."""
    file = tmp_path / "slow.xml"
    motor = "<actuator><motor joint='first' ctrlrange='-1 1'/></actuator></mujoco>"
    slow = SLOW.replace("<joint ", "<joint name='first' ", 1).replace("</mujoco>", motor)
    file.write_text(slow)
    made = {
        engine: pyfastenv.make_vec(
            "HalfCheetah-v5", 24, xml_file=file, engine=engine, num_threads=3
        )
        for engine in ("auto", "lanes", "mujoco")
    }
    for envs in made.values():
        envs.reset(seed=1)
    for _ in range(50):  # on a busy machine trials may have to be repeated
        for action in actions_of(made["auto"], 60):
            results = {engine: envs.step(action)[0].tobytes() for engine, envs in made.items()}
            assert len(set(results.values())) == 1
        if made["auto"].stats()["engine"] == "mujoco":
            break
    assert len({envs.get_state().tobytes() for envs in made.values()}) == 1
    stats = made["auto"].stats()
    assert stats["engine"] == "mujoco"
    assert stats["engine_reason"].startswith("mj_step is faster here")
    assert stats["lane_steps"] + stats["lane_misses"] == stats["steps"]
    assert stats["lane_steps"] > 0 and stats["lane_misses"] > 0
    assert made["lanes"].stats()["engine"] == "lanes"
    assert made["lanes"].stats()["lane_misses"] == 0
