"""physics.Batch has mujoco.batch's interface, and mj_step's bits, in lanes and out of them."""

import copy
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import pytest
import torch
from mujoco import rollout as mujoco_rollout
from physics_models import (
    CART_POLE,
    EQUALITIES,
    SENSORS,
    STATE,
    assert_bits,
    controls,
    from_text,
    robot,
)
from threads import run_threads

from pyfastenv import _core, physics
from pyfastenv.physics import batch as ours


@pytest.fixture(autouse=True)
def default_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the whole run is made with; MuJoCo may write its log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYFASTENV_ENGINE", raising=False)
    monkeypatch.delenv("PYFASTENV_MEASURE", raising=False)


def test_names_are_mujocos() -> None:
    theirs = pytest.importorskip("mujoco.batch")
    assert theirs.DATA_FIELDS == ours.DATA_FIELDS
    assert theirs.MODEL_FIELDS == ours.MODEL_FIELDS


def assert_equals_mj_step(batch: Any, models: list[Any], calls: list[tuple[Any, int]]) -> None:
    """Steps a batch, and an MjData per simulation: states and what is bound have equal bits."""
    data = [mujoco.MjData(model) for model in models]
    for d, model, row in zip(data, models, batch.state, strict=True):
        mujoco.mj_setState(model, d, row, STATE.mjSTATE_INTEGRATION)
    expected = np.empty_like(batch.state)
    for ctrl, nstep in calls:
        batch.ctrl = ctrl
        batch.step(nstep=nstep)
        for d, model, u, row in zip(data, models, ctrl, expected, strict=True):
            d.ctrl = u
            for _ in range(nstep):
                mujoco.mj_step(model, d)
            mujoco.mj_getState(model, d, row, STATE.mjSTATE_INTEGRATION)
        assert_bits(batch.state, expected)
        for name in batch._bound:
            assert_bits(batch.bind(name), np.stack([getattr(d, name) for d in data]))


def wild_calls(model: Any, nsim: int, steps: tuple[int, ...]) -> list[tuple[Any, int]]:
    return list(zip(controls(model, len(steps), nsim), steps, strict=True))


@pytest.mark.parametrize("nthread", [1, 3])
@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("HalfCheetah", ()),
        ("Hopper", ("xpos", "qacc", "cvel", "qfrc_actuator", "sensordata")),
        ("Ant", ("cvel", "cfrc_ext")),  # one that lanes do not have: mj_step does the last substep
    ],
)
def test_lanes_have_the_bits_of_mj_step(name: str, bound: tuple[str, ...], nthread: int) -> None:
    model, nsim = robot(name), 29
    batch = physics.Batch(model, nsim, nthread)
    batch.qvel = np.random.default_rng(0).normal(0, 1, (nsim, model.nv))
    for field in bound:
        batch.bind(field)
    calls = wild_calls(model, nsim, (70, 2, 5, 1, 1))
    assert_equals_mj_step(batch, [model] * nsim, calls)
    lane_steps, left = batch._core.lane_steps()
    assert lane_steps - left > nsim * 70 * 0.9


def test_sensors_and_applied_forces() -> None:
    model, nsim = from_text(SENSORS), 16
    batch = physics.Batch(model, nsim, 2)
    batch.bind("sensordata")
    batch.xfrc_applied[::5, -1, 2] = 3.0
    assert_equals_mj_step(batch, [model] * nsim, wild_calls(model, nsim, (130, 3, 1)))
    asked, left = batch._core.lane_steps()
    assert left < asked / 10


def test_sensors_and_fields_of_runge_kutta_s_steps() -> None:
    """Sensors are those of a step's first evaluation, fields those of its last."""
    text = SENSORS.replace("<sensor>", "<sensor><e_potential/>")
    model, nsim = from_text(text), 16
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    for record in (("xpos", "qacc"), ("sensordata", "qacc")):
        batches = physics.Batch(model, nsim, 1), mujoco.batch.Batch(model, nsim, 1)
        u = np.random.default_rng(0).normal(0, 1, (nsim, 4, model.nu))
        for batch in batches:
            batch.step(nstep=200)
            batch.bind("sensordata")
        found, expected = (batch.rollout(4, u, record=record) for batch in batches)
        for name in record:
            assert_bits(found[name], expected[name])
        assert_bits(batches[0].bind("sensordata"), batches[1].bind("sensordata"))


def test_own_fields_stay_in_lanes() -> None:
    model, nsim = robot("HalfCheetah"), 24
    rng = np.random.default_rng(0)
    batch = physics.Batch(model, nsim, 2)
    batch.bind("xpos")
    mass = batch.expand("body_mass")
    mass *= rng.uniform(0.7, 1.4, mass.shape)
    batch.expand("opt.gravity")[:, 2] = rng.uniform(-12, -7, nsim)
    batch.geom("floor").rgba = 0.5  # which no step reads
    batch.set_const()
    models = [batch.get_model(sim) for sim in range(nsim)]
    for sim in (0, 7):
        alone = robot("HalfCheetah")
        alone.body_mass, alone.opt.gravity = mass[sim], batch.expand("opt.gravity")[sim]
        mujoco.mj_setConst(alone, mujoco.MjData(alone))
        assert_bits(models[sim].dof_invweight0, alone.dof_invweight0)
    assert_equals_mj_step(batch, models, wild_calls(model, nsim, (90, 4, 1)))
    assert batch._core.lane_steps()[0] > nsim * 80
    # written again at any time; what lanes do not take is mj_step's
    mass[3] *= 1.1
    batch.expand("opt.timestep")[:] = rng.uniform(0.002, 0.01, nsim)
    before = batch._core.lane_steps()
    models = [batch.get_model(sim) for sim in range(nsim)]
    assert_equals_mj_step(batch, models, wild_calls(model, nsim, (90, 4)))
    assert batch._core.lane_steps() == before


def test_own_centres_of_mass_stay_in_lanes_without_bounding_volumes() -> None:
    """``set_const`` derives volumes and lengths, which nothing reads without a middle phase."""
    text = """<mujoco><option><flag midphase="disable"/></option><worldbody>
      <geom type="plane" size="5 5 .1"/>
      <body pos="0 0 .15"><freejoint/>
        <inertial pos=".01 0 .02" mass="1" diaginertia=".01 .02 .02"/>
        <geom size=".05" pos=".1 0 0"/><geom size=".05" pos="-.1 0 0"/>
        <body pos=".1 0 .1"><joint name="arm" axis="0 1 0"/>
          <inertial pos="0 .1 0" mass=".1" diaginertia=".001 .001 .001"/>
          <geom size=".03" pos="0 .1 0" contype="0" conaffinity="0"/>
    </body></body></worldbody><actuator><motor joint="arm"/></actuator></mujoco>"""
    model, nsim = from_text(text), 24
    batch = physics.Batch(model, nsim, 2)
    batch.expand("body_ipos")[:, 1] += np.random.default_rng(0).normal(0, 0.02, (nsim, 3))
    batch.set_const()
    assert {"bvh_aabb", "dof_length"} <= set(batch._constants.values)
    models = [batch.get_model(sim) for sim in range(nsim)]
    assert_equals_mj_step(batch, models, wild_calls(model, nsim, (100, 4, 1)))
    lane_steps, left = batch._core.lane_steps()
    assert lane_steps > nsim * 100 and left < lane_steps / 2


@pytest.mark.parametrize(
    ("text", "bound", "in_lanes"),
    [
        (SENSORS, ("sensordata", "qacc", "cvel", "qfrc_constraint"), True),
        (SENSORS, ("qacc", "cfrc_ext"), False),
        (SENSORS.replace("<mujoco>", '<mujoco><option integrator="RK4"/>'), ("qacc",), False),
    ],
    ids=["lanes", "another output", "RK4"],
)
def test_forward_has_the_bits_of_mj_forward(
    text: str, bound: tuple[str, ...], in_lanes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYFASTENV_MEASURE", "0")  # lanes, whatever is faster
    model, nsim = from_text(text), 26
    batch, data = physics.Batch(model, nsim, 2), mujoco.MjData(model)
    for name in bound:
        batch.bind(name)
    for ctrl in controls(model, 4, nsim):
        batch.ctrl = ctrl
        batch.step(nstep=100)  # pays for a plan
        before, counted = batch.state.copy(), batch._core.lane_steps()
        ids = np.arange(1, nsim)
        batch.forward(ids)
        assert_bits(batch.state, before)
        assert (batch._core.lane_steps()[0] - counted[0] == len(ids)) == in_lanes
        for sim in ids:
            mujoco.mj_resetData(model, data)
            mujoco.mj_setState(model, data, before[sim], STATE.mjSTATE_INTEGRATION)
            mujoco.mj_forward(model, data)
            for name in bound:
                assert_bits(batch.bind(name)[sim].copy(), getattr(data, name))


@pytest.mark.parametrize("bound", ["xpos", "cfrc_ext"])
def test_rollouts_in_lanes(bound: str) -> None:
    model, nsim, nstep = robot("Hopper"), 24, 90
    batch = physics.Batch(model, nsim, 2)
    batch.bind(bound)
    u = controls(model, nsim, nstep)
    full = int(STATE.mjSTATE_FULLPHYSICS)
    start = batch.state[:, : mujoco.mj_stateSize(model, full)].copy()
    out = batch.rollout(nstep, u, record=(full, "qpos", "qacc"))
    states, _ = mujoco_rollout.rollout(model, mujoco.MjData(model), start, u)
    assert_bits(out[full], states)
    assert_bits(out["qpos"], np.ascontiguousarray(states[:, :, 1 : 1 + model.nq]))
    assert_bits(batch.ctrl.copy(), u[:, -1])
    assert batch._core.lane_steps()[0] > nsim * nstep * 0.9


def test_lanes_are_watched() -> None:
    """A wrong bit of lanes is found and told, and mj_step goes on from the rows."""
    text = CART_POLE.replace("<mujoco>", '<mujoco model="batch that is watched">')
    model, nsim = from_text(text), 8
    batch = physics.Batch(model, nsim, 1)
    _core.disturb_lanes(True)
    try:
        with pytest.warns(RuntimeWarning, match="at step 63 of a batch's call in q"):
            assert_equals_mj_step(batch, [model] * nsim, wild_calls(model, nsim, (300, 2, 2)))
    finally:
        _core.disturb_lanes(False)


def test_torch_shares_the_memory() -> None:
    model = robot("Hopper")
    batch = physics.Batch(model, 4, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ctrl, qpos = torch.from_numpy(batch.ctrl), torch.from_numpy(batch.qpos)
        xpos = torch.from_dlpack(batch.xpos)  # read-only, which from_numpy warns of
    ctrl[:] = 0.3
    batch.step(nstep=3)
    np.testing.assert_array_equal(batch.ctrl, 0.3)
    assert_bits(qpos.numpy().copy(), batch.qpos.copy())
    assert xpos.data_ptr() == batch.xpos.ctypes.data
    assert xpos.abs().sum() > 0


# ---- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda b: b.step([0, 2, 2]), r"sorted and unique, got 2 before 2"),
        (lambda b: b.step(np.ones(3, bool)), r"expected \(8,\) bool, got \(3,\) bool"),
        (lambda b: b.step(nstep=0), "nstep must be a positive integer, got 0"),
        (lambda b: b.step(nstep=2**40), "nstep: expected at most 2147483647, got 1099511627776"),
        (lambda b: b.step(stage=9), "stage: expected an mjtStage, got 9"),
        (lambda b: b.reset(keyframe=[0, 1]), r"keyframe: expected integers in \[-1, 0\), got 0"),
        (lambda b: b.rollout(3, np.zeros((8, 2, 1))), "could not be broadcast"),
        (lambda b: b.rollout(3, 0.0, control_spec=2), "can only contain bits in mjSTATE_USER"),
        (lambda b: b.rollout(3, record=(1 << 29,)), "record: 536870912 is no state"),
        (lambda b: b.rollout(3, out={"qpos": np.zeros((8, 3, 9))}), r"out\['qpos'\]: expected"),
        (lambda b: b.rollout(3, out={"qpos": _locked((8, 3, 2))}), r"out\['qpos'\]: .* writeable"),
        (lambda b: b.jac(1, np.zeros((8, 2))), "could not be broadcast"),
        (lambda b: b.ray([0, 0, 0], [0, 0, 1], geomgroup=[1]), "geomgroup: expected 6 bytes"),
        (lambda b: b.set_models([b.model] * 7), "a model per simulation, 8, got 7"),
        (lambda b: b.set_models(robot("Hopper")), r"models\[0\] has other sizes"),
        (lambda b: setattr(b, "xpos", 0), "computed by every call"),
        (lambda b: b.qpos.__setitem__(0, np.zeros(5)), "could not broadcast"),
        (lambda b: physics.Batch(b.model, 0), "nsim must be a positive integer, got 0"),
    ],
)
def test_bad_arguments_move_nothing(call: Any, said: str) -> None:
    batch = physics.Batch(from_text(CART_POLE), 8, 2)
    before = batch.state.copy()
    with pytest.raises(ValueError, match=said):
        call(batch)
    assert_bits(batch.state, before)
    batch.step()
    assert (batch.time > 0).all()


def _locked(shape: tuple[int, ...]) -> Any:
    array = np.zeros(shape)
    array.flags.writeable = False
    return array


def test_a_failure_names_its_simulations_and_keeps_the_others_results() -> None:
    model = from_text(SENSORS)
    batch = physics.Batch(model, 40, 2)
    batch.expand("sensor_type")[[3, 17]] = 999
    with pytest.raises(physics.SimulationError, match=r"2 of 40 simulations \(3, 17\)") as caught:
        batch.rollout(4, record=("qpos", "ncon"))
    assert caught.value.ids.tolist() == [3, 17] == np.flatnonzero(batch.status).tolist()
    assert batch.error(3) == caught.value.messages[0] != ""
    records = caught.value.results["qpos"]
    assert np.isnan(records[[3, 17]]).all()
    assert np.isfinite(np.delete(records, [3, 17], axis=0)).all()
    assert (batch.time[[3, 17]] == 0).all()
    assert (np.delete(batch.time, [3, 17]) > 0).all()
    batch.step([0, 1])
    assert batch.error(3) != ""  # of its last call
    batch.expand("sensor_type")[:] = model.sensor_type
    batch.step()
    assert batch.error(3) == ""


def test_two_threads_wait_for_each_other() -> None:
    model = from_text(SENSORS)
    batch = physics.Batch(model, 64, 2)
    batch.expand("sensor_type")[0] = 999
    said: list[Any] = []

    def fails() -> None:
        for _ in range(20):
            with pytest.raises(physics.SimulationError) as caught:
                batch.step(range(32), nstep=5)
            said.append(caught.value.ids.tolist())

    def runs() -> None:
        for _ in range(20):
            batch.step(range(32, 64), nstep=5)

    run_threads(fails, runs)
    assert said == [[0]] * 20
    assert batch.time[0] == 0
    np.testing.assert_allclose(batch.time[1:], 100 * model.opt.timestep)


def test_some_move_while_others_are_written() -> None:
    """One half's steps run on another thread; the other half's controls and snapshots meanwhile."""
    model, nsim, nstep = robot("Hopper"), 32, 40
    batch, alone = physics.Batch(model, nsim, 2), physics.Batch(model, nsim, 2)
    halves, u = np.arange(nsim).reshape(2, -1), controls(model, 6, nsim)
    snapshot = batch.state[:0]
    with ThreadPoolExecutor(1) as executor:
        for turn, ctrl in enumerate(u):
            moving, waiting = halves[turn % 2], halves[1 - turn % 2]
            moved = executor.submit(batch.step, moving, nstep=nstep)
            batch.ctrl[waiting] = ctrl[waiting]
            snapshot = batch.state[waiting].copy()
            moved.result()
            alone.step(moving, nstep=nstep)
            alone.ctrl[waiting] = ctrl[waiting]
    assert_bits(batch.state, alone.state)
    batch.step(nstep=nstep)
    batch.state[waiting] = snapshot  # and from it the same again
    batch.step(waiting, nstep=nstep)
    alone.step(nstep=nstep)
    assert_bits(batch.state, alone.state)


def test_a_model_that_changes_afterwards_is_not_the_batch_s() -> None:
    model = robot("Hopper")
    batch, alone = physics.Batch(model, 16, 1), physics.Batch(copy.copy(model), 16, 1)
    for _ in range(3):
        batch.step(nstep=100)
        alone.step(nstep=100)
        model.body_mass[1:] *= 2
    assert_bits(batch.state, alone.state)


def test_a_batch_is_one_process_s() -> None:
    batch = physics.Batch(from_text(CART_POLE), 4, 2)
    with pytest.raises(TypeError, match="cannot be pickled or copied: make another one"):
        copy.deepcopy(batch)
    with pytest.raises(TypeError, match="stage: expected an mjtStage, got 'vel'"):
        batch.step(stage="vel")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["step", "rollout"])
@pytest.mark.parametrize("text", [CART_POLE, SENSORS], ids=["lanes", "mj_step"])
def test_ctrl_c(text: str, kind: str) -> None:
    """Every simulation has done all of the call, or nothing; then the batch goes on."""
    model = from_text(text)
    if text is SENSORS:
        model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    batch = physics.Batch(model, 40, 2)
    batch.step(nstep=300)
    before = batch.state.copy()
    calls: dict[str, Callable[[], Any]] = {
        "step": partial(batch.step, nstep=20_000_000),
        "rollout": partial(batch.rollout, 400_000, record=(mujoco.mjtState.mjSTATE_TIME,)),
    }
    timer = threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        calls[kind]()
    timer.join()
    assert (batch.status == 2).all()  # none can have come so far
    assert_bits(batch.state, before)
    batch.step()
    assert (batch.status == 0).all()
    np.testing.assert_allclose(batch.time, 301 * model.opt.timestep)


def test_a_callback_between_substeps() -> None:
    model = from_text(CART_POLE)
    batch, alone = physics.Batch(model, 8, 2), physics.Batch(model, 8, 2)

    def push() -> None:
        batch.ctrl = 0.1 - batch.qvel[:, :1]

    batch.step(nstep=4, callback=push)
    for k in range(4):
        if k > 0:
            alone.ctrl = 0.1 - alone.qvel[:, :1]
        alone.step()
    assert_bits(batch.state, alone.state)

    calls = iter(range(2))
    with pytest.raises(StopIteration):
        batch.step(nstep=9, callback=lambda: next(calls))
    np.testing.assert_allclose(batch.time, 7 * model.opt.timestep)
    batch.step()


def test_persistent_batches_keep_what_is_outside_the_state() -> None:
    flag = getattr(mujoco.mjtEnableBit, "mjENBL_SLEEP", None)
    if flag is None:
        pytest.skip("this MuJoCo does not let bodies sleep")
    model = from_text(CART_POLE)
    model.opt.enableflags |= flag
    with pytest.raises(ValueError, match="use persistent=True"):
        physics.Batch(model, 2)
    batch = physics.Batch(model, 2, 1, persistent=True)
    batch.qvel[1] = 0.5
    batch.bind("qacc")
    batch.forward()
    assert_bits(batch.get_data(1).qacc, batch.bind("qacc")[1].copy())


WEIGHTLESS = """<mujoco><option gravity="0 0 0"/><worldbody><body gravcomp="1"><freejoint/>
  <geom size=".1"/></body></worldbody></mujoco>"""


def test_gravity_that_comes_later() -> None:
    """A model without weight has bodies that compensate for it all the same."""
    batch = physics.Batch(from_text(WEIGHTLESS), 16, 1)
    gravity = batch.expand("opt.gravity")
    batch.step(nstep=200)
    gravity[::2, 2] = -9.81
    batch.step(nstep=100)
    assert (batch.qpos[:, :3] == 0.0).all()


ELLIPSOID = """<mujoco><worldbody><body><joint axis="1 0 0"/><geom type="ellipsoid" mass="1"
  size=".1 .2 .3" pos=".1 .2 .3" fluidshape="ellipsoid"/></body></worldbody></mujoco>"""
LIFTED = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body gravcomp="2">
  <joint axis="0 1 0"/><geom pos=".3 0 0" size=".1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (ELLIPSOID, "opt.viscosity", -1.0),
        (ELLIPSOID, "opt.density", -1.0),
        (LIFTED, "opt.gravity", [0.0, 0.0, 1e-200]),  # whose length is 0
    ],
)
def test_options_that_switch_forces_on_and_off(text: str, field: str, value: Any) -> None:
    model, nsim = from_text(text), 16
    batch = physics.Batch(model, nsim, 1)
    own = batch.expand(field)
    batch.qvel[:] = np.random.default_rng(0).normal(size=batch.qvel.shape)
    batch.step(nstep=200)
    own[::2] = value
    models = [batch.get_model(sim) for sim in range(nsim)]
    assert_equals_mj_step(batch, models, [(np.empty((nsim, 0)), n) for n in (20, 1)])


def test_data_of_another_model_is_refused() -> None:
    bodies = "<body><freejoint/><geom size='.1'/></body>" * 9
    batch = physics.Batch(from_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"), 4, 1)
    data = mujoco.MjData(from_text(WEIGHTLESS))
    with pytest.raises(ValueError, match=r"^data: it is of a model of other sizes"):
        batch.get_data(0, data)
    assert not data.xpos[1:].any()
    for not_data in (batch.model, batch.state[0]):
        with pytest.raises(TypeError, match=r"^data: expected an MjData, got"):
            batch.get_data(0, not_data)
    with pytest.raises(TypeError, match="float"):
        batch.get_data(0.5)  # type: ignore[arg-type]
    assert batch.get_data(np.int64(3), mujoco.MjData(batch.model)).qpos.size == 63


def test_zeros_keep_their_signs() -> None:
    """MuJoCo does not turn by the identity, so what is turned by it keeps them."""
    model, nsim = from_text(NEGATIVE_ZEROS), 16
    assert np.signbit(model.jnt_axis[model.jnt_axis == 0.0]).any()
    batch = physics.Batch(model, nsim, 1)
    for field in ("xpos", "xquat", "xmat", "xanchor", "xaxis", "geom_xpos"):
        batch.bind(field)
    batch.qvel[::2] = np.random.default_rng(0).normal(0, 1, (nsim // 2, model.nv))
    batch.qpos[1, -4:] = [1.0, -0.0, 0.0, -0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_equals_mj_step(
            batch, [model] * nsim, [(np.empty((nsim, 0)), n) for n in (200, 1, 1)]
        )


GROUPS = """<mujoco><option actuatorgroupdisable="1" gravity="0 0 0"/><worldbody><body>
  <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
  <geom size=".1"/></body></worldbody>
  <actuator><motor joint="x" group="1"/><motor joint="y" group="0"/></actuator></mujoco>"""


def test_groups_of_actuators_are_models_own() -> None:
    model, nsim = from_text(GROUPS), 16
    batch = physics.Batch(model, nsim, 1)
    batch.step(nstep=100)
    batch.expand("actuator_group")[1::2] = [0, 1]
    batch.ctrl = 1.0
    batch.step(nstep=100)
    moved = batch.qpos != 0.0
    np.testing.assert_array_equal(moved, np.arange(nsim)[:, None] % 2 != np.arange(2))


SPATIAL = """<mujoco><worldbody><site name="a" pos=".3 0 1"/>
  <body><joint name="turn" axis="0 1 0"/><geom size=".1" pos="0 0 .4"/>
    <site name="b" pos="0 0 .5"/></body></worldbody>
  <tendon><spatial name="cord"><site site="a"/><site site="b"/></spatial></tendon>
  <actuator><motor joint="turn"/></actuator></mujoco>"""


def test_tendons_that_only_measure() -> None:
    """Lanes leave them out, so what is read of them is mj_step's."""
    model, nsim = from_text(SPATIAL), 16
    batch = physics.Batch(model, nsim, 1)
    for field in ("ten_length", "ten_velocity", "ten_J"):
        batch.bind(field)
    assert_equals_mj_step(batch, [model] * nsim, wild_calls(model, nsim, (200, 3)))
    recorded = batch.rollout(3, record=("ten_length",))["ten_length"]
    assert (np.abs(recorded - 1.0) < 1.0).all() and np.ptp(recorded) > 0.0


@pytest.mark.parametrize("nthread", [1, 2])
def test_equalities_are_active_or_not(nthread: int) -> None:
    """A number other than 0 and 1 is read as mj_setState reads it."""
    model, nsim = from_text(EQUALITIES), 16
    batch = physics.Batch(model, nsim, nthread)
    batch.eq_active[::3] = 2.0
    batch.step(nstep=200)
    assert set(batch.eq_active.ravel().tolist()) <= {0.0, 1.0}


NEGATIVE_ZEROS = """<mujoco><worldbody><body pos="-0 .1 -0">
  <joint pos="0 -0 .1" axis="-0 1 0"/><geom size=".1" pos="0 -0 .2"/>
  <body pos="-0 -0 -0"><joint type="slide" pos="-0 -0 0" axis="1 -0 0"/><geom size=".1"/></body>
  </body><body quat="1 -0 0 -0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


ENERGY = """<mujoco><option><flag energy="enable"/></option><worldbody><body><freejoint/>
  <geom size=".1"/></body></worldbody><sensor><e_kinetic/></sensor></mujoco>"""


def test_energies_need_data_of_their_own() -> None:
    """MuJoCo's sensor shows the energy of the step before, which is no part of the state."""
    model = from_text(ENERGY)
    with pytest.raises(ValueError, match=r"model: .*energy=\"disable\".* or use persistent=True"):
        physics.Batch(model, 2)
    batch = physics.Batch(model, 3, 1, persistent=True)
    batch.qvel[:, 0] = [1.0, 2.0, 3.0]
    batch.bind("sensordata")
    assert_equals_mj_step(batch, [model] * 3, [(np.empty((3, 0)), 1)] * 3)


def test_sleep_needs_data_of_its_own_whatever_asks_for_it() -> None:
    flag = getattr(mujoco.mjtEnableBit, "mjENBL_SLEEP", None)
    if flag is None:
        pytest.skip("this MuJoCo does not let bodies sleep")
    model = from_text(CART_POLE)
    asleep = copy.copy(model)
    asleep.opt.enableflags |= flag
    batch = physics.Batch(model, 2, 1)
    with pytest.raises(ValueError, match=r"models\[1\]: .*use persistent=True"):
        batch.set_models([model, asleep])
    batch.step()
    batch.expand("opt.enableflags")[1] |= flag
    with pytest.raises(physics.SimulationError, match=r"opt.enableflags: sleep, .*persistent=True"):
        batch.step()
    assert batch.status.tolist() == [0, 1]
    batch.set_const()
    assert batch.status.tolist() == [0, 0] and batch.error(1) == ""


@pytest.mark.parametrize("solver", ["Newton", "PGS", "CG"])
@pytest.mark.parametrize(
    "constraint",
    [
        '<tendon><fixed name="t" limited="true" range="-.1 .1">{}</fixed></tendon>',
        '<tendon><fixed name="t" frictionloss=".1">{}</fixed></tendon>',
        '<tendon><fixed name="t">{}</fixed></tendon><equality><tendon tendon1="t"/></equality>',
    ],
    ids=["limit", "friction", "equality"],
)
def test_a_coefficient_that_was_zero_binds_another_tree(constraint: str, solver: str) -> None:
    wraps = '<joint joint="a" coef="1"/><joint joint="c" coef="0"/>'
    bodies = "".join(
        f'<body><joint name="{name}" type="slide" axis="1 0 0"/><geom size=".1"/></body>'
        for name in "ac"
    )
    model = from_text(
        f'<mujoco><option solver="{solver}"/><default><geom contype="0" conaffinity="0"/>'
        f"</default><worldbody>{bodies}</worldbody>{constraint.format(wraps)}</mujoco>"
    )
    assert physics.lanes_refusal(model) is None
    batch = physics.Batch(model, 8, 1)
    coefficients = batch.expand("wrap_prm")
    for _ in range(60):
        batch.step(nstep=300)  # at rest, where a trial finds nothing
    coefficients[:, 1] = np.linspace(-1.0, -0.5, 8)
    batch.qvel[:, 1] = 1.0
    start = batch.state.copy()
    batch.step(nstep=200)
    for i in range(8):
        own, data = batch.get_model(i), mujoco.MjData(model)
        mujoco.mj_setState(own, data, start[i], STATE.mjSTATE_INTEGRATION)
        mujoco.mj_step(own, data, 200)
        assert_bits(batch.qvel[i], data.qvel)


def test_energies_that_a_sensor_shows_need_data_of_their_own() -> None:
    model = from_text(CART_POLE.replace("</mujoco>", "<sensor><e_kinetic/></sensor></mujoco>"))
    batch = physics.Batch(model, 2, 1)
    batch.expand("opt.enableflags")[1] = mujoco.mjtEnableBit.mjENBL_ENERGY
    with pytest.raises(physics.SimulationError, match=r"e_kinetic need persistent=True"):
        batch.step()
    assert batch.status.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("ids", "said"),
    [([-1], "got -1"), ([2], "got 2"), ([0, 0], "sorted and unique"), ([1, 0], "sorted and")],
)
def test_constants_are_of_simulations_that_there_are(ids: list[int], said: str) -> None:
    batch = physics.Batch(from_text(CART_POLE), 2, 1)
    batch.expand("body_gravcomp")
    for call in (batch.set_const, batch.step):
        with pytest.raises(ValueError, match=f"ids must be .*{said}"):
            call(ids)


def test_models_of_simulations_have_their_counts() -> None:
    """The model that get_model gives steps as the simulation does."""
    model = from_text(CART_POLE)
    batch = physics.Batch(model, 2, 1)
    batch.expand("body_gravcomp")[0] = 0.5
    batch.set_const()
    for into in (None, copy.copy(model)):
        data = mujoco.MjData(model)
        own = batch.get_model(0, into)
        mujoco.mj_setState(own, data, batch.state[0], STATE.mjSTATE_INTEGRATION)
        mujoco.mj_step(own, data)
        again = physics.Batch(model, 2, 1)
        again.expand("body_gravcomp")[0] = 0.5
        again.set_const()
        again.step()
        assert_bits(again.qvel[0], data.qvel)
    assert batch.get_model(1, batch.get_model(0)).body_gravcomp.max() == 0.0
