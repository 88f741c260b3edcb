"""Lists of models in physics.rollout: one plan steps those that differ in numbers alone."""

import copy
import itertools
import re
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from physics_models import (
    CART_POLE,
    SENSORS,
    assert_same_rollouts,
    controls,
    from_text,
    lane_steps,
    make_data,
    robot,
    states,
)

from pyfastenv import physics

pytestmark = pytest.mark.usefixtures("in_tmp_path")

N, STEPS = 16, 150


def varied(model: Any, count: int, change: Callable[[Any, np.random.Generator], None]) -> list[Any]:
    """Copies of a model, each changed in its own way."""
    models = []
    for i in range(count):
        models.append(copy.deepcopy(model))
        change(models[-1], np.random.default_rng(i))
    return models


def scale(*fields: str) -> Callable[[Any, np.random.Generator], None]:
    def change(model: Any, rng: np.random.Generator) -> None:
        for field in fields:
            holder, name = (model.opt, field[4:]) if field.startswith("opt.") else (model, field)
            value = getattr(holder, name)
            setattr(holder, name, value * rng.uniform(0.8, 1.2, np.shape(value)))

    return change


FIELDS = {
    "masses": ("body_mass", "body_inertia"),
    "damping": ("dof_damping", "dof_armature", "jnt_stiffness"),
    "friction": ("geom_friction",),
    "motors": ("actuator_gear", "actuator_gainprm", "actuator_ctrlrange"),
    "gravity": ("opt.gravity",),
    "limits": ("jnt_range", "jnt_solref", "jnt_margin"),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fields", FIELDS)
def test_numbers_of_their_own(fields: str, threads: int) -> None:
    models = varied(robot("Hopper"), N, scale(*FIELDS[fields]))
    x, u = states(models[0], N), controls(models[0], N, STEPS)
    state, _ = assert_same_rollouts(models, x, u, threads=threads)
    asked, left = lane_steps(models, x, u)
    assert asked == N * STEPS and left < asked / 10
    assert not np.array_equal(state, assert_same_rollouts(models[0], x, u)[0])


@pytest.mark.parametrize("name", ["Ant", "HalfCheetah", "Humanoid"])
def test_models_compiled_apart(name: str) -> None:
    """What the compiler derives (inverse weights, subtrees' masses) differs as well."""

    def change(model: Any, rng: np.random.Generator) -> None:
        scale("body_mass", "body_inertia", "dof_damping", "geom_friction")(model, rng)
        mujoco.mj_setConst(model, mujoco.MjData(model))

    models = varied(robot(name), N, change)
    x, u = states(models[0], N), controls(models[0], N, STEPS)
    assert_same_rollouts(models, x, u)
    assert lane_steps(models, x, u)[0] > 0


# shapes that lanes collide themselves, alone and several on a body
SHAPES = """<mujoco><option timestep=".004"/>
<worldbody><geom name="floor" type="plane" size="5 5 .1"/>
  <body pos="0 0 .3"><freejoint/>
    <geom type="capsule" fromto="-.1 0 0 .1 0 0" size=".05"/>
    <geom type="sphere" size=".04" pos="0 .12 0"/> <geom type="sphere" size=".04" pos="0 -.12 0"/>
    <body pos=".15 0 0"><joint name="hip" axis="0 1 0" damping=".1"/>
      <geom name="foot" type="capsule" fromto="0 0 0 0 0 -.2" size=".03"/>
      <site name="sole" pos="0 0 -.2" size=".05"/></body></body>
  <body pos=".5 0 .2"><freejoint/><geom type="box" size=".1 .08 .06"/></body>
  <body pos="-.5 0 .2"><freejoint/><geom type="cylinder" size=".07 .05"/></body>
</worldbody>
<actuator><motor joint="hip"/></actuator>
<sensor><touch site="sole"/></sensor></mujoco>"""
ROUND = re.sub(r'  <body pos="-?.5 0 .2">.*</body>\n', "", SHAPES)


def resize(model: Any, rng: np.random.Generator) -> None:
    model.geom_size[1:] *= rng.uniform(0.9, 1.1, (model.ngeom - 1, 1))
    model.geom_margin[:] = rng.uniform(0, 0.02, model.ngeom)


def compiled(text: str, count: int) -> list[Any]:
    """A model compiled with other sizes, volumes, masses and centres of mass for each."""
    models = []
    for i in range(count):
        spec, rng = mujoco.MjSpec.from_string(text), np.random.default_rng(i)
        for geom in spec.geoms[1:]:
            geom.size = geom.size * rng.uniform(0.9, 1.1)
            geom.margin = rng.uniform(0, 0.01)
        models.append(spec.compile())
    return models


def test_sizes_of_their_own() -> None:
    """Written in place, so that MuJoCo's bounding volumes do not enclose them."""
    models = varied(from_text(ROUND), N, resize)
    x, u = states(models[0], N), controls(models[0], N, STEPS)
    assert_same_rollouts(models, x, u)
    assert lane_steps(models, x, u)[0] == N * STEPS


@pytest.mark.parametrize("threads", [1, 2])
def test_models_compiled_with_sizes_of_their_own(threads: int) -> None:
    models = compiled(ROUND, N)
    assert np.ptp([m.geom_rbound[1] for m in models]) > 0
    x, u = states(models[0], N), controls(models[0], N, STEPS)
    assert_same_rollouts(models, x, u, threads=threads)
    asked, left = lane_steps(models, x, u)
    assert asked == N * STEPS and left < asked / 2


def test_sizes_that_only_mujoco_s_functions_read() -> None:
    """Boxes and cylinders collide with other shapes by functions that see one model."""
    for models in (varied(from_text(SHAPES), N, resize), compiled(SHAPES, N)):
        x, u = states(models[0], N), controls(models[0], N, STEPS)
        assert_same_rollouts(models, x, u)


def test_sensors_of_models_of_their_own() -> None:
    text = SENSORS.replace("<sensor>", '<sensor><subtreelinvel body="cart"/><clock/>')
    models = varied(from_text(text), N, scale("body_mass", "body_ipos", "geom_pos"))
    x, u = states(models[0], N), controls(models[0], N, STEPS)
    assert_same_rollouts(models, x, u)
    assert lane_steps(models, x, u)[0] > 0


def test_deep_copies_are_one_model() -> None:
    """They take the plan of the model itself, whose numbers are folded in."""
    model = robot("HalfCheetah")
    model.opt.timestep *= 1.25  # no other test's
    copies = [copy.deepcopy(model) for _ in range(N)]
    x, u = states(model, N), controls(model, N, STEPS)
    assert_same_rollouts(copies, x, u)
    assert lane_steps(copies, x, u)[0] == N * STEPS
    assert physics.engine(copies[3])[0] == "lanes"


def test_a_model_that_differs_in_structure_falls_back_alone() -> None:
    model = from_text(CART_POLE)
    models = varied(model, N, scale("body_mass"))
    models[5].geom_contype[0] = 1  # no number of an environment's own
    models[N - 1] = from_text(CART_POLE.replace('range="-1 1"', 'range="-1 .5"', 1))
    models[7].opt.timestep *= 2
    x, u = states(model, N), controls(model, N, STEPS)
    for _ in range(2):
        assert_same_rollouts(models, x, u)
    # the model of another range differs in a number alone
    assert lane_steps(models, x, u)[0] == (N - 2) * STEPS


def test_models_that_are_all_different() -> None:
    """More structures than are kept apart."""
    models = []
    for i in range(24):
        models.append(from_text(CART_POLE))
        models[-1].opt.timestep = 0.001 + 1e-4 * i
    x, u = states(models[0], 24), controls(models[0], 24, 20)
    assert_same_rollouts(models, x, u)
    assert_same_rollouts(models[:8] * 3, x, u, threads=2)


def test_numbers_that_change_from_call_to_call() -> None:
    """As an identification changes them: one plan serves all calls, and no number is stale."""
    model = robot("Hopper")
    x, u = states(model, N), controls(model, N, STEPS)
    seen = []
    for call in range(4):
        models = varied(model, N, scale("body_mass", "dof_damping"))
        for other in models:
            other.body_mass *= 1 + 0.1 * call
        seen.append(assert_same_rollouts(models, x, u)[0])
    assert all(not np.array_equal(a, b) for a, b in itertools.pairwise(seen))
    # in place, between two calls
    models[3].dof_damping[3] *= 2
    assert_same_rollouts(models, x, u)
    models[3].geom_gap[2] = 0.01  # which no environment may have its own of
    assert_same_rollouts(models, x, u)


def test_numbers_that_ask_for_another_step() -> None:
    """A model without damping beside those with it, and one that is no number: mj_step's."""
    model = robot("Hopper")
    models = varied(model, N, scale("dof_damping"))
    models[2].dof_damping[:] = 0
    models[9].dof_damping[4] = 1e200
    x, u = states(model, N), controls(model, N, 40)
    x[4, 2] = np.nan
    assert_same_rollouts(models, x, u)


def test_the_last_rollout_is_what_the_data_hold() -> None:
    model = from_text(CART_POLE)
    other = from_text(CART_POLE)
    other.opt.timestep *= 2
    x, u = states(model, 12), controls(model, 12, 200)
    for models in ([model] * 6 + [other] * 6, [other, model] * 6, [model] * 11 + [other]):
        assert_same_rollouts(models, x, u)  # compares the data too


TOUCHING_MESHES = """
<mujoco>
  <asset>
    <mesh name="brick" vertex="-.2 -.1 -.05 .2 -.1 -.05 -.2 .1 -.05 .2 .1 -.05 -.2 -.1 .05
      .2 -.1 .05 -.2 .1 .05 .2 .1 .05 .25 0 0 -.25 0 0 0 .15 0 0 -.15 0"/>
  </asset>
  <worldbody>
    <geom type="box" size="1 1 .1" pos="0 0 -.1"/>
    <body pos="0 0 .06"><freejoint/><geom type="mesh" mesh="brick"/></body>
    <body pos=".05 0 .2"><freejoint/><geom type="mesh" mesh="brick"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_hulls_of_touching_meshes_of_their_own(threads: int) -> None:
    """Lanes read hulls and faces of the model at hand, however many others were there before."""
    model = from_text(TOUCHING_MESHES)
    models = [copy.deepcopy(model) for _ in range(N)]
    for own in models[::3]:
        own.mesh_polynormal *= -1
        own.mesh_extrema[:] = own.mesh_extrema[:, ::-1]
    for own in models[1::3]:
        own.mesh_polyvertnum[:] = 3
    for own in models[2::3]:
        own.body_mass *= 1.1
    x = states(model, N, speed=0.1)
    x[:, 1:] = x[0, 1:]
    for turn in (models, models[::-1], [model] * N, models[:1] * N, models[1:2] * N):
        assert_same_rollouts(turn, x, nstep=STEPS, threads=threads)
    assert lane_steps(models, x, nstep=STEPS)[0] > 0
    differ = [physics.rollout(m, make_data(m), x[:3], nstep=STEPS)[0] for m in (model, *models[:2])]
    assert not np.array_equal(differ[0], differ[1]) and not np.array_equal(differ[0], differ[2])


def test_mediums_of_their_own() -> None:
    """Where there is none, what geoms are in one is not compared; where there is, it is."""
    text = CART_POLE.replace('name="tip"', 'name="tip" fluidshape="ellipsoid"')
    model = from_text(text)
    models = [copy.deepcopy(model) for _ in range(N)]
    for i, own in enumerate(models):
        own.opt.density = (0, 500)[i % 2]
        own.geom_fluid *= (1, 1, 3, 3)[i % 4]
    x, u = states(model, N), controls(model, N, STEPS)
    x[:], u[:] = x[0], u[0]
    for turn in (models, models[::-1], models[::2] * 2, models[1::2] * 2):
        state, _ = assert_same_rollouts(turn, x, u)
    ends = {row.tobytes() for row in state[:, -1]}
    assert len(ends) == 2
    assert lane_steps(models[::2] * 2, x, u)[0] == N * STEPS
