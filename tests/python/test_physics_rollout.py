"""physics.rollout gives mujoco.rollout's results, bit for bit."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco import rollout as theirs
from physics_models import (
    CART_POLE,
    EQUALITIES,
    EVERYTHING,
    LED,
    ROBOTS,
    ROPE,
    SENSORS,
    STATE,
    assert_bits,
    assert_same_rollouts,
    controls,
    from_text,
    make_data,
    robot,
    states,
)

from pyfastenv import physics
from pyfastenv.vector import specs

pytestmark = pytest.mark.usefixtures("in_tmp_path")


def enough(num_rollouts: int) -> int:
    """So many steps of so many rollouts that a plan is made at once."""
    return -(-2000 // num_rollouts)


# ---- models and threads --------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ROBOTS)
def test_robots(name: str, threads: int) -> None:
    model = robot(name)
    assert physics.lanes_refusal(model) is None
    # incomplete groups too, and fallen robots
    initial, nstep = states(model, 29), enough(29)
    assert_same_rollouts(model, initial, controls(model, 29, nstep), threads=threads)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("name", ["Reacher", "Hopper", "HalfCheetah", "Humanoid"])
def test_instruction_sets(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer lanes, chosen when other plans of the model exist."""
    model = robot(name)
    x, u = states(model, 29), controls(model, 29, enough(29))
    expected = physics.rollout(model, make_data(model), x, u)[0]
    monkeypatch.setenv("PYFASTENV_LANES", "3")
    with pytest.raises(ValueError, match="PYFASTENV_LANES: expected 1, 2, 4 or 8"):
        physics.rollout(model, make_data(model), x, u)
    monkeypatch.setenv("PYFASTENV_LANES", str(width))
    try:
        ours = physics.rollout(model, make_data(model), x, u)[0]
    except ValueError:
        pytest.skip(f"no {width} lanes on this processor")
    assert_bits(ours, expected)
    assert_same_rollouts(model, x, u, threads=2)


@pytest.mark.parametrize("threads", [1, 3])
def test_models_that_lanes_refuse(threads: int) -> None:
    model = from_text(EVERYTHING)
    assert physics.lanes_refusal(model) is not None
    assert_same_rollouts(model, states(model, 29), controls(model, 29, 40), threads=threads)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("text", [EQUALITIES, ROPE], ids=["equalities", "ropes"])
def test_models_that_ride(text: str, threads: int) -> None:
    """Equalities that the model switches on hold in lanes too, the others do not; ropes, muscles
    and thrusters pull."""
    model = from_text(text)
    assert physics.lanes_refusal(model) is None
    initial, nstep = states(model, 29), enough(29)
    assert_same_rollouts(model, initial, controls(model, 29, nstep), threads=threads)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9, 15, 16, 17])
def test_numbers_of_rollouts(count: int) -> None:
    model = from_text(CART_POLE)
    nstep = enough(count)
    for threads in (1, 3):
        assert_same_rollouts(
            model, states(model, count), controls(model, count, nstep), threads=threads
        )


@pytest.mark.parametrize("name", ["InvertedPendulum", "Reacher", "Hopper", "HalfCheetah", "Ant"])
def test_signs_of_zeros(name: str) -> None:
    """States, warm starts and controls of zeros of either sign."""
    model, rng = robot(name), np.random.default_rng(0)
    x, u = states(model, 24), controls(model, 24, 60)
    warmstart = rng.normal(size=(24, model.nv))
    for array in (x, u, warmstart):
        array[rng.random(array.shape) < 0.5] = 0.0
        array[rng.random(array.shape) < 0.5] *= -1
    x[:8, 1 + model.nq :] = -0.0
    u[::3] = -0.0
    for start in (None, warmstart, -0.0 * warmstart):
        assert_same_rollouts(model, x, u, initial_warmstart=start)
    assert_same_rollouts(model, x, nstep=60)


def test_no_degrees_of_freedom() -> None:
    model = from_text("<mujoco/>")
    assert_same_rollouts(model, states(model, 5), nstep=7)


# ---- arguments -----------------------------------------------------------------------------------

N, STEPS = 12, 90
TEXTS = {"lanes": CART_POLE, "sensors": SENSORS, "tendons": ROPE, "mj_step": EVERYTHING}


@pytest.fixture(params=TEXTS)
def model(request: pytest.FixtureRequest) -> Any:
    return from_text(TEXTS[request.param])


def variants(model: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Positional and keyword arguments."""
    x, u = states(model, N), controls(model, N, STEPS)
    warmstart = np.random.default_rng(2).normal(size=(N, model.nv))
    nstate, nsensordata = x.shape[1], model.nsensordata
    yield (x, u), {}
    yield (x, None), {}
    yield (x,), {"nstep": STEPS}
    yield (x[0], u), {}
    yield (x[:1], u[:, :1]), {"nstep": STEPS}
    yield (x, u[0, 0]), {"nstep": STEPS}
    yield (x, u[0]), {"nstep": 1}  # 1 is "not known"
    yield (x, u[:1, :1]), {"nstep": np.int64(STEPS)}
    yield (x, u), {"nstep": STEPS, "initial_warmstart": warmstart}
    yield (x[0], u[0]), {"initial_warmstart": warmstart}
    yield (x, u), {"initial_warmstart": warmstart[0]}
    yield (x, u), {"initial_warmstart": np.full_like(warmstart, np.nan)}
    for chunk_size in (1, 5, 100):
        yield (x, u), {"chunk_size": chunk_size}
    yield (x.astype(np.float32), u.astype(np.float32)), {}
    yield (np.asfortranarray(x), u[:, ::-1]), {}
    yield (np.repeat(x, 2, axis=1)[:, ::2], u.transpose(2, 0, 1).copy().transpose(1, 2, 0)), {}
    yield (np.zeros(nstate, np.int64), np.ones((N, STEPS, model.nu), bool)), {}
    yield (x, u), {"state": np.full((N, STEPS, nstate), 7.0)}
    yield (x[0],), {"state": np.empty((N, STEPS, nstate))}
    yield (x, u), {"sensordata": np.full((N, STEPS, nsensordata), 7.0)}
    yield (x[0], u[0]), {"state": np.empty((STEPS, nstate))}
    yield (x, u[:, :1]), {"nstep": 0}
    yield (x, u[..., :0]), {"control_spec": 0}
    yield (x, u), {"control_spec": STATE.mjSTATE_CTRL}
    yield (x, u), {"persistent_pool": True}


@pytest.mark.parametrize("threads", [1, 2])
def test_argument_variants(model: Any, threads: int) -> None:
    for args, kwargs in variants(model):
        assert_same_rollouts(model, *args, threads=threads, **kwargs)
    physics.shutdown_persistent_pool()
    theirs.shutdown_persistent_pool()


def test_float_arguments() -> None:
    body = '<body><joint name="j" type="slide"/><geom size=".1"/></body>'
    actuator = '<actuator><motor joint="j"/></actuator>'
    model = from_text(f"<mujoco><worldbody>{body}</worldbody>{actuator}</mujoco>")
    assert_same_rollouts(model, np.zeros((4, 3)), 0.5, initial_warmstart=0.25, nstep=300)


@pytest.mark.parametrize("spec", [*range(6, 13), None])
def test_control_spec(spec: int | None) -> None:
    """Each kind of input alone, and all of them."""
    bits = int(STATE.mjSTATE_USER) if spec is None else 1 << spec
    for text in (CART_POLE, SENSORS, ROPE, EVERYTHING):
        model = from_text(text)
        size = mujoco.mj_stateSize(model, bits)
        u = np.random.default_rng(0).uniform(-1, 1, (9, 30, size))
        assert_same_rollouts(model, states(model, 9), u, control_spec=bits)
        assert_same_rollouts(model, states(model, 9), control_spec=bits, nstep=30, threads=2)


INPUTS = (
    "CTRL",
    "QFRC_APPLIED",
    "XFRC_APPLIED",
    "EQ_ACTIVE",
    "MOCAP_POS",
    "MOCAP_QUAT",
    "USERDATA",
)


@pytest.mark.parametrize("name", INPUTS)
def test_control_spec_in_lanes(name: str) -> None:
    """What controls say nothing of is the model's."""
    model, count = from_text(LED), 16
    nstep = enough(count)
    assert physics.lanes_refusal(model) is None
    bits = int(getattr(STATE, f"mjSTATE_{name}"))
    size = mujoco.mj_stateSize(model, bits)
    u = np.random.default_rng(0).uniform(-1, 1, (count, nstep, size)).cumsum(axis=1) * 0.01
    u[:, :, -1] += 1
    pool = physics.Rollout(nthread=0)
    with pool:
        states_, _ = pool.rollout(model, mujoco.MjData(model), states(model, count), u,
                                  control_spec=bits)  # fmt: skip
        asked, left = pool._pool.lane_steps()
    expected, _ = theirs.rollout(
        model, mujoco.MjData(model), states(model, count), u, control_spec=bits
    )
    assert_bits(states_, expected)
    assert asked > 0
    assert left < asked / 10
    assert_same_rollouts(model, states(model, count), u, control_spec=bits)


@pytest.mark.parametrize("field", ["ctrl", "qfrc_applied", "xfrc_applied", "userdata"])
def test_inputs_that_data_have(model: Any, field: str) -> None:
    """Without controls the inputs stay as they are, until a divergence resets them."""
    x = states(model, N)
    x[5, 1] = np.nan
    for spec in (STATE.mjSTATE_CTRL, STATE.mjSTATE_QFRC_APPLIED, STATE.mjSTATE_XFRC_APPLIED):
        our_data, their_data = make_data(model), make_data(model)
        for data in (our_data, their_data):
            getattr(data, field)[...] = 0.3
        expected = theirs.rollout(model, their_data, x, control_spec=spec, nstep=STEPS)
        results = physics.rollout(model, our_data, x, control_spec=spec, nstep=STEPS)
        assert_bits(results[0], expected[0])
        assert getattr(our_data, field).tobytes() == getattr(their_data, field).tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_lists_of_models(model: Any, threads: int) -> None:
    heavier = copy.deepcopy(model)
    heavier.body_mass[1:] *= 2
    x, u = states(model, N), controls(model, N, enough(6))
    assert_same_rollouts([model], x, u, threads=threads)
    assert_same_rollouts((model,) * N, x, u, threads=threads)
    assert_same_rollouts([model, heavier] * (N // 2), x, u, threads=threads)
    blocks = [model] * (N // 2) + [heavier] * (N // 2)
    results = assert_same_rollouts(blocks, x, u, threads=threads)
    assert not np.array_equal(results[0], assert_same_rollouts(model, x, u)[0])
    assert_same_rollouts([model, heavier, model], x[0], u[0], threads=threads)


def test_models_of_other_sizes() -> None:
    """Rollouts of a model need data of its sizes or larger ones."""
    small = from_text(CART_POLE)
    large = from_text(CART_POLE.replace("<worldbody>", "<worldbody><site name='here'/>"))
    x, u = states(small, N), controls(small, N, enough(N))
    assert_same_rollouts([large, small] * (N // 2), x, u)
    with pytest.raises(
        ValueError, match=r"data\[0\] was made for a model of other sizes.*rollout 1"
    ):
        physics.rollout([small, large], make_data(small), x[:2], u[:2])


def test_skip_checks(model: Any) -> None:
    x, u = states(model, N), controls(model, N, STEPS)
    shapes = {"state": (N, STEPS, x.shape[1]), "sensordata": (N, STEPS, model.nsensordata)}
    outputs = {name: np.empty(shape) for name, shape in shapes.items()}
    models = [model] * N
    assert_same_rollouts(models, x, u, nstep=STEPS, skip_checks=True, **outputs)
    flat = {"state": np.empty((N * STEPS, x.shape[1]))}
    results = assert_same_rollouts(models + models, x, u, nstep=STEPS, skip_checks=True, **flat)
    assert results[0] is flat["state"] and results[1] is None
    assert_bits(flat["state"].reshape(shapes["state"]), outputs["state"])
    assert_same_rollouts(models, x, nstep=0, skip_checks=True)


def test_outputs_are_filled(model: Any) -> None:
    """In place where that is possible; arrays of another kind get a copy."""
    x, u = states(model, N), controls(model, N, STEPS)
    both = physics.rollout(model, make_data(model), x, u)
    for i, (name, expected) in enumerate(zip(("state", "sensordata"), both, strict=True)):
        assert expected is not None
        exact, single = np.empty_like(expected), np.empty_like(expected, np.float32)
        assert physics.rollout(model, make_data(model), x, u, **{name: exact})[i] is exact
        spread = np.empty((N, STEPS, 2 * expected.shape[2]))
        physics.rollout(model, make_data(model), x, u, **{name: spread[..., ::2]})
        physics.rollout(model, make_data(model), x, u, **{name: single})
        for filled in (exact, spread[..., ::2].copy()):
            assert_bits(filled, expected)
        assert np.array_equal(single, expected.astype(np.float32))


def test_rollout_object(model: Any) -> None:
    x, u = states(model, N), controls(model, N, STEPS)
    expected = theirs.rollout(model, make_data(model), x, u)
    for nthread, threads in ((None, 1), (0, 1), (1, 1), (3, 3)):
        data = make_data(model, threads)
        with physics.Rollout(nthread=nthread) as pool:
            for _ in range(3):
                assert_bits(pool.rollout(model, data, x, u)[0], expected[0])
        with pytest.raises(RuntimeError, match="rollout requested after thread pool shutdown"):
            pool.rollout(model, data, x, u)
        pool.close()


# ---- divergence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["HalfCheetah", "Hopper", "Humanoid", "Pusher"])
def test_divergence(name: str, threads: int) -> None:
    """Rollouts that diverge stand still, in their first step, later, by state or by control."""
    model = robot(name)
    x, u = states(model, 21), controls(model, 21, 60)
    x[2, 1] = np.nan
    x[5, 1 + model.nq] = np.inf
    x[8, 1 + model.nq :] = 1e9
    x[9, 1 + model.nq :] *= 1e4
    x[20, 2] = 1e11
    u[11, 30, 0] = np.nan
    u[12, 0] = np.inf  # is clamped
    u[13, 17:] = -1e11
    state, _ = assert_same_rollouts(model, x, u, threads=threads)
    for rollout, since in ((2, 0), (5, 0), (11, 30), (20, 0)):
        assert (state[rollout, since:] == state[rollout, since]).all()
    assert not (state[0, 1:] == state[0, 0]).all()
    assert_same_rollouts(model, x[[0, 1, 2, 3, 20]], u[:5], threads=threads)


def test_divergence_without_autoreset() -> None:
    model = robot("HalfCheetah")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    x = states(model, 16)
    x[3, 1] = np.nan
    assert_same_rollouts(model, x, controls(model, 16, 70))


def failing_rollouts(model: Any, x: Any, u: Any) -> list[int]:
    """Those of which mujoco.rollout makes an error of the engine, each by itself."""
    failed = []
    for i in range(len(x)):
        try:
            theirs.rollout(model, make_data(model), x[i], u[i])
        except mujoco.FatalError:
            failed.append(i)
    return failed


def test_little_memory() -> None:
    """Where contacts do not fit into MuJoCo's memory, lanes must not go on."""
    text = Path(specs.assets_dir(), "half_cheetah.xml").read_text()
    for kib in range(5, 40):  # how much is too little for some, depends on MuJoCo's version
        small, count = re.subn(r"<size nstack=\"\d+\"", f'<size memory="{kib}K"', text)
        assert count == 1
        model = from_text(small)
        x, u = states(model, 16), controls(model, 16, 130)
        failed = failing_rollouts(model, x, u)
        if 0 < len(failed) < 16:
            break
    else:
        pytest.fail("memory: expected an amount that is enough for some, got none")
    assert "less memory" in str(physics.lanes_refusal(model))
    with pytest.raises(physics.RolloutError) as caught:
        physics.rollout(model, make_data(model), x, u)
    assert caught.value.rollouts == tuple(failed)
    state = caught.value.results[0]
    for i in set(range(16)) - set(failed):
        assert_bits(state[i], theirs.rollout(model, make_data(model), x[i], u[i])[0][0])


# ---- plans follow their models -------------------------------------------------------------------


def test_a_changed_model_is_noticed() -> None:
    """Any array, option or flag may be changed between two calls."""
    model = robot("Hopper")
    x, u = states(model, 16), controls(model, 16, 70)
    seen = [assert_same_rollouts(model, x, u)[0]]
    changes = {
        "mass": lambda: model.body_mass.__imul__(1.3),
        "gravity": lambda: model.opt.gravity.__setitem__(2, -3.0),
        "timestep": lambda: setattr(model.opt, "timestep", 0.001),
        "friction": lambda: model.geom_friction.__imul__(0.1),
        "gear": lambda: model.actuator_gear.__imul__(2),
        "disabled": lambda: setattr(model.opt, "disableflags", 1 << 4),
        "iterations": lambda: setattr(model.opt, "iterations", 1),
        "implicit": lambda: setattr(model.opt, "integrator", 2),  # refused
    }
    for name, change in changes.items():
        change()
        assert (physics.lanes_refusal(model) is None) == (name != "implicit")
        seen.append(assert_same_rollouts(model, x, u)[0])
        assert not np.array_equal(seen[-1], seen[-2]), name


GAPS = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body><joint type="slide" axis="1 0 0"/><geom size=".1" gap=".05"/></body>
  <body pos="1 0 0"><joint type="slide" axis="1 0 0"/><geom size=".1" gap=".05"/></body>
</worldbody></mujoco>"""


def test_adhesion_written_into_a_model_is_left_to_mj_step() -> None:
    """Its compiled flag stays off, and the states at the start do not touch."""
    model = from_text(GAPS)
    x = states(model, 16)
    x[:, 1:] = 0.0
    x[:, 3] = np.linspace(1.0, 1.75, 16)  # the left one's speed
    assert physics.lanes_refusal(model) is None
    before = assert_same_rollouts(model, x, None, nstep=600)[0]
    model.geom_adhesion[:] = 1.0
    assert "adhesion" in str(physics.lanes_refusal(model))
    assert not np.array_equal(before, assert_same_rollouts(model, x, None, nstep=600)[0])


@pytest.mark.parametrize("compiled", ["", 'damping="0.3" armature="0.02"'])
def test_actuators_bring_what_the_compiler_has_noted(compiled: str) -> None:
    """mj_step does not ask an actuator whose damping and armature were none when compiled."""
    model = from_text(
        f"""<mujoco><worldbody><body><joint name="j"/><geom size=".1" pos="0 0 -.3"/></body>
        </worldbody><actuator><motor joint="j"/><motor joint="j" {compiled}/></actuator></mujoco>"""
    )
    model.actuator_damping[0] = 0.5
    model.actuator_armature[0] = 0.01
    assert physics.lanes_refusal(model) is None
    assert_same_rollouts(model, states(model, 16), controls(model, 16, 200))


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("transmission", ['joint="j"', 'tendon="t"'])
def test_actuators_add_to_damping_one_after_the_other(transmission: str, integrator: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(8):  # other sums differ in some of these
        own, *each = (" ".join(map(str, rng.uniform(0, 1, 3))) for _ in range(4))
        model = from_text(
            f"""<mujoco><option integrator="{integrator}"/><worldbody><body>
            <joint name="j" damping="{own}"/><geom size=".1" pos="0 0 -.3"/></body></worldbody>
            <tendon><fixed name="t" damping="{own}"><joint joint="j" coef="1.5"/></fixed></tendon>
            <actuator>{"".join(f'<motor {transmission} damping="{d}"/>' for d in each)}</actuator>
            </mujoco>"""
        )
        assert physics.lanes_refusal(model) is None
        assert_same_rollouts(model, states(model, 8), controls(model, 8, 100))


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
@pytest.mark.parametrize("tendon", ['frictionloss="2"', 'range=".1 .3"', 'stiffness="3"'])
def test_tendons_that_nothing_moves_are_left_to_mj_step(tendon: str, jacobian: str) -> None:
    model = from_text(
        f"""<mujoco><option jacobian="{jacobian}"/><worldbody><body><joint name="j"/>
        <geom size=".1" pos="0 0 -.3"/></body></worldbody><tendon><fixed name="t" {tendon}>
        <joint joint="j" coef="0"/></fixed></tendon></mujoco>"""
    )
    said = "tendons whose coefficients are all zero (tendon 't')"
    assert physics.lanes_refusal(model) == f"lanes do not do {said}"
    assert_same_rollouts(model, states(model, 8), None, nstep=50)


def test_models_that_come_and_go() -> None:
    """At whatever address; more of them than plans are kept."""
    for seed in range(40):
        model = from_text(CART_POLE)
        model.body_mass[2] *= 1 + seed % 25
        assert_same_rollouts(model, states(model, 8), controls(model, 8, enough(8)))


def test_plans_pay_before_they_are_made() -> None:
    """A model that is seen again and again goes to lanes in between; nothing is seen of it."""
    model = robot("Walker2d")
    for seed in range(6):
        assert_same_rollouts(model, states(model, 8, seed), controls(model, 8, 40, seed))


@pytest.mark.parametrize("threads", [1, 2])
def test_inputs_may_be_views_of_outputs(threads: int) -> None:
    """A planner's next rollouts begin where the first of these ended, in the same array."""
    model = from_text(CART_POLE)
    state = np.random.default_rng(0).normal(0, 0.1, (24, 50, 5))
    data = [mujoco.MjData(model) for _ in range(threads)]
    expected = theirs.rollout(model, data, np.tile(state[0, -1], (24, 1)), nstep=50)[0]
    physics.rollout(model, data, state[0, -1], nstep=50, state=state)
    assert_bits(state, expected)


def test_data_with_less_room_than_the_model() -> None:
    """mj_step runs out of it, so lanes do not step on."""
    boxes = "".join(
        f'<body pos="0 0 {0.3 * i + 0.2}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for i in range(6)
    )
    text = f"""<mujoco><size memory="{{}}"/><worldbody><geom type="plane" size="1 1 1"/>{boxes}
      </worldbody></mujoco>"""
    model, small = from_text(text.format("50M")), from_text(text.format("40K"))
    initial = np.empty(mujoco.mj_stateSize(model, int(STATE.mjSTATE_FULLPHYSICS)))
    mujoco.mj_getState(model, mujoco.MjData(model), initial, int(STATE.mjSTATE_FULLPHYSICS))
    with pytest.raises(physics.RolloutError, match="out of memory"):
        physics.rollout(model, mujoco.MjData(small), np.tile(initial, (16, 1)), nstep=300)


def test_userdata_of_controls_stays_in_data() -> None:
    text = CART_POLE.replace("<mujoco>", '<mujoco><size nuserdata="3"/>')
    model = from_text(text)
    spec = int(STATE.mjSTATE_CTRL | STATE.mjSTATE_USERDATA)
    control = np.random.default_rng(0).normal(0, 0.1, (16, 100, model.nu + 3))
    left = []
    for roll in (physics, theirs):
        data = mujoco.MjData(model)
        data.userdata[:] = 7.0
        roll.rollout(model, data, np.zeros((16, 5)), control, control_spec=spec)
        left.append(data.userdata.copy())
    assert_bits(left[0], control[-1, -1, -3:])
    assert_bits(*left)
