"""Every number of a compiled model that physics reads, edited in place: lanes against mj_step.

Tasks, planners and identification write into models after compiling them. MuJoCo keeps what the
compiler has derived (bounding volumes, masks of bodies, margins, frames that coincide), and so must
whatever steps the model.
"""

import copy
from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco import rollout as theirs

from pyfastenv import physics

ROLLOUTS, STEPS = 9, 50  # lanes and a rest

BODIES = """
  <default><geom solref="0.01 1" margin="0.003" gap="0.001"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" pos="0 0 -0.0251"/>
    <geom type="box" size="0.3 0.3 0.05" pos="0.5 0 0"/>
    <body name="a" pos="0 0 0.25" gravcomp="0.2">
      {root}
      <geom name="trunk" type="box" size="0.1 0.1 0.05"/>
      <geom type="sphere" size="0.06" pos="0.1 0 0.05" condim="1"/>
      <geom name="seen" type="sphere" size="0.2" contype="0" conaffinity="0" mass="0.1"/>
      <site name="s" pos="0 0.1 0" quat="0.9 0.1 0.2 0.3"/>
      <body name="b" pos="0.12 0 0">
        <joint name="hip" axis="0 1 0" range="-40 40" damping="0.2" frictionloss="0.05"
               stiffness="2" armature="0.01" actuatorfrcrange="-3 3"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 -0.1" size="0.04"/>
        <body name="c" pos="0.2 0 -0.1">
          <joint name="knee" type="slide" axis="1 0 0.2" range="-0.05 0.1" margin="0.01"/>
          <geom name="foot" type="cylinder" size="0.04 0.05" condim="{condim}"/>
        </body>
      </body>
    </body>
    <body name="d" pos="0.1 0.15 0.6">
      <joint name="ball" type="ball" range="0 60" damping="0.1" stiffness="0.5"/>
      <geom type="capsule" size="0.05 0.1"/>
      <site name="e" pos="0 0 0.1"/>
      <geom name="egg" type="ellipsoid" size="0.08 0.06 0.1" pos="0 0.1 -0.15" priority="1"/>
    </body>
  </worldbody>
  <contact>
    <pair geom1="foot" geom2="floor" friction="0.7 0.7 0.01 0.001 0.001" margin="0.01"/>
    <exclude body1="a" body2="d"/>
  </contact>
  <tendon>
    <fixed name="t" range="-0.3 0.3" limited="true" stiffness="1" damping="0.1" frictionloss="0.02">
      <joint joint="hip" coef="0.4"/><joint joint="knee" coef="1"/>
    </fixed>
    {tendons}
  </tendon>
  <equality>
    <joint joint1="knee" joint2="hip" polycoef="0 0.05 0.01 0 0" solref="0.1 1"/>
    <connect body1="d" anchor="0 0 0.1" active="false"/>
    <weld body1="c" body2="d" solref="0.3 1"/>
  </equality>
  <actuator>
    <motor joint="hip" gear="2" ctrlrange="-1 1" forcerange="-1.5 1.5"/>
    <position joint="knee" kp="30" kv="1" ctrlrange="-0.1 0.1"/>
    <general tendon="t" dyntype="filterexact" dynprm="0.05" gainprm="2" biastype="affine"
             biasprm="0.1 -1 -0.1" actrange="-1 1" actlimited="true"/>
    {actuators}
  </actuator>
"""
ROPES = """
    <spatial name="rope" stiffness="5" damping="0.2" springlength="0.1" frictionloss="0.1"
             range="0 0.6" limited="true">
      <site site="s"/><geom geom="foot" sidesite="e"/><site site="e"/>
      <pulley divisor="2"/><site site="e"/><site site="s"/>
    </spatial>
"""
MUSCLES = """
    <muscle tendon="rope" lengthrange="0.1 1" scale="20"/>
    <muscle joint="hip" lengthrange="-1 1" force="5" tausmooth="0.1"/>
    <motor site="s" gear="1 0 2 0 0 0.1"/>
    <general site="e" gear="0 0 1 0 0 0" biastype="affine" biasprm="0.1 0 -0.1"/>
"""
MODELS = {
    "tumbling": (
        '<option timestep="0.004" density="1.2" viscosity="0.002" wind="0.5 0 0"/>',
        {"root": "<freejoint/>", "condim": "4", "tendons": "", "actuators": ""},
    ),
    "hanging": (
        '<option timestep="0.004" integrator="implicitfast" cone="elliptic" impratio="3"/>',
        {
            "root": '<joint name="lift" type="slide" axis="0 0 1"/>',
            "condim": "6",
            "tendons": "",
            "actuators": "",
        },
    ),
    "pulled": (
        '<option timestep="0.004" solver="PGS"/>',
        {"root": "<freejoint/>", "condim": "3", "tendons": ROPES, "actuators": MUSCLES},
    ),
}
# what only looks, or would make another model
NOT_PHYSICS = (
    "bvh_", "cam_", "flex", "hfield_", "key_", "light_", "mat_", "mesh_", "name", "numeric_",
    "oct_", "paths", "plugin", "sensor_", "skin_", "tex_", "text_", "tuple_", "plastic",
)  # fmt: skip
SWITCHES = (
    "geom_contype", "geom_conaffinity", "geom_condim", "geom_priority", "eq_active0",
    "body_contype", "body_conaffinity", "jnt_limited", "jnt_actfrclimited", "tendon_limited",
    "actuator_ctrllimited", "actuator_forcelimited", "actuator_actlimited", "actuator_actearly",
    "pair_dim",
)  # fmt: skip
OPTIONS = (
    "timestep", "impratio", "tolerance", "ls_tolerance", "gravity", "wind", "density", "viscosity",
    "ccd_tolerance", "iterations", "ls_iterations", "disableflags",
)  # fmt: skip


def load(name: str) -> Any:
    option, pieces = MODELS[name]
    return mujoco.MjModel.from_xml_string(f"<mujoco>{option}{BODIES.format(**pieces)}</mujoco>")


def numbers(model: Any) -> list[str]:
    """The names of the model's arrays of floating-point numbers that physics may read."""
    return [
        name
        for name in dir(model)
        if not name.startswith(("_", *NOT_PHYSICS))
        and not name.endswith(("_user", "rgba", "matid"))
        and isinstance(getattr(model, name), np.ndarray)
        and getattr(model, name).dtype == np.float64
        and getattr(model, name).size
    ]


def outcome(model: Any, seed: int) -> str:
    """Compares rollouts; returns why lanes refuse the model, or nothing."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    states = []
    for rollout in range(ROLLOUTS):
        mujoco.mj_resetData(model, data)
        if rollout:
            moved = rng.normal(size=model.nv) * 0.05 * (rollout % 4)
            mujoco.mj_integratePos(model, data.qpos, moved, 1)
            data.qvel[:] = rng.normal(size=model.nv)
        state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        states.append(state)
    control = rng.uniform(-1.5, 1.5, (ROLLOUTS, STEPS, model.nu))
    refusal = physics.lanes_refusal(model) or ""
    assert "differ" not in refusal
    ours, other = (
        module.rollout(model, mujoco.MjData(model), np.array(states), control)[0]
        for module in (physics, theirs)
    )
    assert ours.tobytes() == other.tobytes()
    assert "differ" not in (physics.lanes_refusal(model) or "")
    return refusal


@pytest.mark.parametrize("name", MODELS)
def test_as_it_is_the_model_rides(name: str) -> None:
    assert outcome(load(name), 0) == ""


@pytest.mark.parametrize("field", numbers(load("tumbling")))
@pytest.mark.parametrize("name", MODELS)
def test_numbers(name: str, field: str) -> None:
    if name == "pulled" and field == "wrap_prm":
        pytest.skip("it has indices of sites, of which MuJoCo checks nothing")
    rng = np.random.default_rng(len(field))
    for spread in (0.4, 0.02):  # lengths of quaternions too; what refuses the one takes the other
        model = load(name)
        values = getattr(model, field)
        values *= rng.uniform(1 - spread, 1 + spread, values.shape)
        values += spread / 20 * rng.normal(size=values.shape) * (np.abs(values) > 0)
        if not outcome(model, 1):
            return
    pytest.fail("a small edit takes the model out of lanes")


@pytest.mark.parametrize("field", SWITCHES)
@pytest.mark.parametrize("name", MODELS)
def test_switches(name: str, field: str) -> None:
    rng = np.random.default_rng(len(field))
    drawn = (1, 3, 4, 6) if "dim" in field else (0, 1, 1, 3) if "geom" in field else (0, 1)
    for _ in range(2):
        model = load(name)
        values = getattr(model, field)
        values[:] = rng.choice(drawn, values.shape)
        outcome(model, 2)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", MODELS)
def test_options(name: str, option: str) -> None:
    for factor in (0, 0.5, 3):
        model = load(name)
        value = getattr(model.opt, option)
        if option == "disableflags":
            value = int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE) if factor else 0
            setattr(model.opt, option, value)
        elif option == "timestep" and not factor:
            continue
        else:
            setattr(
                model.opt,
                option,
                type(value)(value * factor) if np.isscalar(value) else value * factor,
            )
        outcome(model, 3)


def test_equalities_switched_between_two_calls() -> None:
    model = load("hanging")
    for active in (True, False, True):
        model.eq_active0[:] = active
        outcome(model, 4)
        outcome(copy.deepcopy(model), 4)


ON_A_BOX = """<mujoco><worldbody><geom type="box" size="1 1 .1"/><body pos="0 0 .19"><freejoint/>
  <geom type="{shape}" size=".1 .1 .1" {range}/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("range_", ['gap="-0.01"', 'margin="-0.01"', 'margin="0.01" gap="-0.02"'])
@pytest.mark.parametrize("shape", ["box", "capsule", "cylinder", "ellipsoid"])
def test_contacts_that_begin_under_the_surface(shape: str, range_: str) -> None:
    text = ON_A_BOX.format(shape=shape, range=range_)
    refusal = outcome(mujoco.MjModel.from_xml_string(text), 5)
    assert ("a negative margin and gap" in refusal) == (shape in ("cylinder", "ellipsoid"))


def test_an_accuracy_below_zero_is_refused() -> None:
    model = mujoco.MjModel.from_xml_string(ON_A_BOX.format(shape="sphere", range=""))
    model.opt.ccd_tolerance = -1e-4
    assert outcome(model, 6) == "lanes do not do a negative ccd_tolerance"


def test_planes_have_no_end() -> None:
    model = load("tumbling")
    model.geom_rbound[model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = 1e-20
    assert outcome(model, 6) == "lanes do not do planes with a bounding radius (geom 'floor')"


def test_directions_that_are_no_numbers_end() -> None:
    """Squares of such lengths overflow, and so do directions from one mesh to another."""
    corners = "0 0 0  1 0 0  0 1 0  0 0 1  1 1 1  .2 .3 1.2"
    meshes = "".join(f"<mesh name='m{i}' vertex='{corners}' scale='.1 .1 .1'/>" for i in (0, 1))
    body = "<body pos='0 0 {i}'><freejoint/><geom type='mesh' mesh='m{i}'/></body>"
    bodies = "".join(body.format(i=i) for i in (0, 1))
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><asset>{meshes}</asset><worldbody>{bodies}</worldbody></mujoco>"
    )
    model.geom_quat *= 1e80
    outcome(model, 7)


# ---- numbers and places that random ones never are -----------------------------------------------

TWO_SPHERES = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body><freejoint/><geom size=".1"/></body><body><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def rollouts(model: Any, states: np.ndarray, control: Any = None, warmstart: Any = None) -> Any:
    """(ours, MuJoCo's), the model in lanes."""
    assert physics.lanes_refusal(model) is None
    given = {} if control is None else {"control": control}
    return tuple(
        module.rollout(
            model, mujoco.MjData(model), states, nstep=STEPS, initial_warmstart=warmstart, **given
        )[0]
        for module in (physics, theirs)
    )


def test_spheres_that_meet_at_the_origin() -> None:
    """There a touch has no coordinates whose last places could be compared with its depth."""
    model = mujoco.MjModel.from_xml_string(TWO_SPHERES)
    rng = np.random.default_rng(0)
    states = np.zeros((64, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    for row in states:
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        for body, side in enumerate((-1, 1)):
            at = 1 + 7 * body
            row[at : at + 3] = side * way * (0.1 + rng.choice([0.01, 0.02, 0.05, 0.1]))
            row[at + 3] = 1
            at = 1 + model.nq + 6 * body
            row[at : at + 3] = -side * way * rng.choice([0.5, 1, 2])
    ours, other = rollouts(model, states)
    assert ours.tobytes() == other.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200, -0.0])
def test_warm_starts_that_mean_nothing(value: float) -> None:
    model = load("tumbling")
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = rng.uniform(-1, 1, (ROLLOUTS, STEPS, model.nu))
    warmstart = np.full((ROLLOUTS, model.nv), value)
    ours, other = rollouts(model, np.tile(state, (ROLLOUTS, 1)), control, warmstart)
    assert ours.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    ("field", "value"),
    [("geom_friction", 1e155), ("geom_friction", 1e200), ("actuator_gainprm", 1e300),
     ("actuator_gear", 1e120), ("jnt_stiffness", 1e305), ("dof_damping", 1e300)],
)  # fmt: skip
def test_numbers_whose_products_have_no_end(field: str, value: float) -> None:
    for name in MODELS:
        model = load(name)
        getattr(model, field)[0] = value
        outcome(model, 5)


@pytest.mark.parametrize("impratio", [1e155, 1e200])
def test_impratios_whose_squares_have_no_end(impratio: float) -> None:
    for name in MODELS:
        model = load(name)
        model.opt.impratio = impratio
        outcome(model, 5)
