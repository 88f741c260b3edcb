"""What of a model costs most: what is tried in its stead, and what is said of it."""

import copy
from pathlib import Path

import mujoco
import numpy as np
import pytest

from pyfastenv import cli
from pyfastenv.physics import costs

# has all that can be left out
RICH = """<mujoco>
  <option cone="elliptic" integrator="RK4" noslip_iterations="2"><flag override="enable"/></option>
  <asset>
    <mesh name="corner" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/>
    <hfield name="hills" nrow="2" ncol="2" size="1 1 .1 .1" elevation="0 1 1 0"/>
  </asset>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <geom type="hfield" hfield="hills" pos="3 0 0"/>
    <body name="a" pos="0 0 .09"><freejoint/><geom size=".1" condim="6"/>
      <geom size=".02" contype="0" conaffinity="0"/></body>
    <body name="b" pos=".1 0 .1"><joint type="slide" axis="1 0 0"/>
      <geom size=".05" contype="4" conaffinity="1"/></body>
    <body pos="0 2 1"><joint/><geom type="mesh" mesh="corner"/><site name="s"/></body>
  </worldbody>
  <sensor><accelerometer site="s"/></sensor>
</mujoco>"""
BARE = '<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.fixture(autouse=True)
def one_short_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_ROUNDS", 1)
    monkeypatch.setattr(costs, "_SECONDS_PER_CALL", 0.0)


def model_of(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


def touching(model: mujoco.MjModel) -> set[tuple[int, int]]:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return {tuple(sorted(contact.geom)) for contact in data.contact}


def test_all_that_a_model_has_is_tried_and_the_model_stays() -> None:
    model = model_of(RICH)
    before = copy.deepcopy(model)
    measured = costs.measure_costs(model)
    tried = {what for what, _, _ in costs._EDITS} | {"sensors are not computed"}
    assert {saving.what for saving in measured.savings} == tried
    ratios = [saving.ratio for saving in measured.savings]
    assert ratios == sorted(ratios, reverse=True) and min(ratios) > 0
    assert measured.steps_per_second > 0 and measured.times_mj_step > 0
    assert measured.refusal is not None and "override" in measured.refusal
    for name in ("geom_contype", "geom_condim", "body_conaffinity"):
        np.testing.assert_array_equal(getattr(model, name), getattr(before, name))
    assert (model.opt.cone, model.opt.integrator) == (before.opt.cone, before.opt.integrator)


def test_what_a_model_does_not_have_is_not_tried() -> None:
    tried = {saving.what for saving in costs.measure_costs(model_of(BARE)).savings}
    assert tried <= {"nothing touches anything", "the solver makes 4 iterations at most"}


def test_what_moves_touches_only_what_does_not() -> None:
    model = model_of(RICH)
    assert touching(model) == {(0, 2), (2, 4)}
    assert costs._no_self_collision(model)
    assert touching(model) == {(0, 2)}
    assert not costs._no_self_collision(model), "there is none any more"


def test_masks_of_bodies_are_the_compilers() -> None:
    model = model_of(RICH)
    compiled = model.body_contype.copy(), model.body_conaffinity.copy()
    costs._set_masks(model, model.geom_contype.copy(), model.geom_conaffinity.copy())
    np.testing.assert_array_equal((model.body_contype, model.body_conaffinity), compiled)


def test_doctor_looks_at_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rich.xml"
    file.write_text(RICH)
    assert cli.main(["doctor", "--model", str(file)]) == 0
    out = capsys.readouterr().out
    assert "note  speed" in out and "by mj_step\n" in out and "noslip" in out
    file.write_text("<mujoco><worldbody><geom/></worldbody></mujoco>")
    python = tmp_path / "robot.py"
    python.write_text("class Robot: pass\n")
    got_python = (
        f"model: {python}: expected a model's file (MJCF, URDF or .mjb), got Python; a task"
    )
    binary = tmp_path / "robot.mjb"
    binary.write_text("<mujoco/>")
    for wrong, said in (
        (binary, f"model: {binary}: mj_loadModel: failed to load"),
        (file, f"model: {file}: Error: size"),
        (tmp_path / "none.xml", "none.xml: no such file"),
        (python, got_python),
    ):
        assert cli.main(["doctor", "--model", str(wrong)]) == 1
        assert said in capsys.readouterr().err
