"""physics.rollout's sensordata has mujoco.rollout's bits in lanes, and is not computed unread."""

import copy
import re
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import pytest
from mujoco import rollout as theirs
from physics_models import (
    CART_POLE,
    ROPE,
    SENSORS,
    assert_bits,
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

N, STEPS = 20, 120

# a robot on a floor, beside fixed things and a mocap body
ROBOT = """
<mujoco>
  <option magnetic="0.1 -0.5 0.2" {option}/>
  <asset>
    <mesh name="tetrahedron" vertex="-.1 -.2 -.2  .3 -.1 -.2  0 .3 -.2  0 0 .4"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <geom name="wall" type="box" size=".1 1 1" pos="1 0 0"/>
    <site name="home" pos=".1 .2 .3" euler="20 0 10"/>
    <body name="hand" mocap="true" pos="0 0 1"><geom name="palm" size=".05" contype="0"
      conaffinity="0"/></body>
    <body name="torso" pos="0 0 .3">
      <freejoint/>
      <camera name="eye" pos="0 0 .2" resolution="4 3"/>
      <geom name="trunk" type="capsule" fromto="-.2 0 0 .2 0 .1" size=".08"/>
      <site name="imu" pos=".05 0 .02" euler="10 20 30"/>
      <body name="leg" pos="-.2 0 0">
        <joint name="hip" axis="0 1 0" damping=".5" range="-20 20"/>
        <geom name="shin" type="capsule" fromto="0 .02 -.03 0 .05 -.2" size=".05"/>
        <site name="sole" pos="0 .05 -.2" size=".06"/>
        <site name="net" pos="0 .1 -.1" type="mesh" mesh="tetrahedron" euler="10 50 30"/>
      </body>
      <body name="head" pos=".25 0 .1">
        <joint name="neck" type="ball" range="0 30" damping=".1"/>
        <geom name="skull" type="box" size=".05 .06 .07" mass=".3"/>
        <site name="nose" pos=".05 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="string" range="-.4 .4"><joint joint="hip" coef="2"/></fixed>
  </tendon>
  <equality><weld body1="hand" body2="head" active="false"/></equality>
  <actuator>
    <position name="servo" joint="hip" kp="5" ctrlrange="-1 1"/>
    <motor name="winch" tendon="string"/>
  </actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""
# that lanes compute
OF_LANES = """
  <accelerometer site="imu"/> <velocimeter site="imu"/> <gyro site="imu" noise=".1" cutoff="1"/>
  <accelerometer site="home" cutoff="3"/> <velocimeter site="home"/> <gyro site="home"/>
  <magnetometer site="imu"/> <force site="sole"/> <torque site="imu"/> <force site="home"/>
  <jointpos joint="hip"/> <jointvel joint="hip"/> <jointactuatorfrc joint="hip"/>
  <jointlimitpos joint="hip"/> <jointlimitvel joint="hip"/> <jointlimitfrc joint="hip"/>
  <jointlimitpos joint="neck"/> <jointlimitvel joint="neck"/> <jointlimitfrc joint="neck"/>
  <tendonpos tendon="string"/> <tendonvel tendon="string"/> <tendonactuatorfrc tendon="string"/>
  <tendonlimitpos tendon="string"/> <tendonlimitvel tendon="string" cutoff=".2"/>
  <tendonlimitfrc tendon="string"/> <ballquat joint="neck"/> <ballangvel joint="neck"/>
  <actuatorpos actuator="servo"/> <actuatorvel actuator="winch"/> <actuatorfrc actuator="servo"/>
  <framepos objtype="body" objname="leg"/> <framepos objtype="xbody" objname="hand"/>
  <framepos objtype="geom" objname="shin" reftype="site" refname="imu"/>
  <framequat objtype="geom" objname="shin"/> <framequat objtype="site" objname="imu"/>
  <framequat objtype="body" objname="head" reftype="xbody" refname="torso"/>
  <framequat objtype="body" objname="hand" reftype="geom" refname="wall"/>
  <framexaxis objtype="geom" objname="trunk"/> <frameyaxis objtype="site" objname="imu"/>
  <framezaxis objtype="xbody" objname="leg" reftype="body" refname="torso"/>
  <framelinvel objtype="geom" objname="shin"/> <framelinvel objtype="geom" objname="palm"/>
  <framelinvel objtype="xbody" objname="leg" reftype="site" refname="imu"/>
  <frameangvel objtype="body" objname="leg" reftype="geom" refname="skull"/>
  <framelinacc objtype="site" objname="imu"/> <framelinacc objtype="geom" objname="wall"/>
  <frameangacc objtype="geom" objname="shin"/> <clock/>
  <subtreecom body="torso"/> <subtreelinvel body="torso"/> <subtreeangmom body="leg"/>
  <contact name="steps" geom1="floor" body2="leg" data="found"/>
  <contact name="falls" subtree1="torso" subtree2="world" data="found" num="3"/>
  <contact body1="leg" data="found" reduce="mindist" num="2" cutoff="1.5"/>
  <contact geom2="floor" data="found" reduce="netforce"/>
  <contact data="found" num="2"/> <contact geom1="skull" geom2="shin" data="found"/>
"""
# that MuJoCo's functions compute of lanes' fields
OF_MUJOCO = """
  <touch name="touch" site="sole"/> <rangefinder site="imu"/> <rangefinder camera="eye"/>
  <camprojection site="nose" camera="eye"/> <framepos objtype="camera" objname="eye"/>
  <framequat objtype="camera" objname="eye" reftype="geom" refname="skull"/>
  <framequat objtype="site" objname="imu" reftype="camera" refname="eye"/>
  <framelinvel objtype="camera" objname="eye"/> <framelinacc objtype="camera" objname="eye"/>
  <insidesite site="sole" objtype="geom" objname="floor"/>
  <insidesite site="net" objtype="body" objname="leg" enclosed="true"/>
  <distance geom1="shin" geom2="wall" cutoff="2"/> <normal geom1="skull" geom2="floor" cutoff="2"/>
  <fromto geom1="skull" geom2="wall" cutoff="3"/>
  <contact name="found" geom1="floor" data="found force dist pos normal" num="3"/>
  <contact body1="leg" data="found force torque" reduce="netforce"/>
  <contact subtree1="torso" data="found dist" reduce="mindist" num="2"/>
  <e_potential/> <e_kinetic/>
"""


def the_robot(sensors: str, option: str = "") -> Any:
    return from_text(ROBOT.format(sensors=sensors, option=option))


OPTIONS = {
    "Euler": "", "implicitfast": 'integrator="implicitfast"', "elliptic": 'cone="elliptic"',
    "PGS": 'solver="PGS"', "RK4": 'integrator="RK4"', "weightless": 'gravity="0 0 0"',
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("threads", [1, 2])
def test_sensors_of_lanes(option: str, threads: int) -> None:
    model = the_robot(OF_LANES, OPTIONS[option])
    assert physics.lanes_refusal(model) is None
    x, u = states(model, N), controls(model, N, STEPS)
    _, sensordata = assert_same_rollouts(model, x, u, threads=threads)
    asked, left = lane_steps(model, x, u)
    assert asked > 0 and left < asked / 4
    kinds = mujoco.mjtSensor
    for kind in (kinds.mjSENS_JOINTLIMITFRC, kinds.mjSENS_TENDONLIMITFRC, kinds.mjSENS_FORCE):
        at = model.sensor_adr[model.sensor_type == kind]
        assert (sensordata[..., at] != 0).any(), kind  # something happens
    for name in ("steps", "falls"):
        counts = sensordata[..., model.sensor(name).adr[0]]
        assert counts.min() == 0 < counts.max(), name


@pytest.mark.parametrize("option", OPTIONS)
def test_sensors_of_mujocos_functions(option: str) -> None:
    model = the_robot(OF_LANES + OF_MUJOCO, OPTIONS[option])
    assert physics.lanes_refusal(model) is None
    x, u = states(model, N), controls(model, N, STEPS)
    _, sensordata = assert_same_rollouts(model, x, u)
    assert lane_steps(model, x, u)[0] > 0
    for name in ("touch", "found"):
        at = model.sensor(name).adr[0]
        assert (sensordata[..., at] > 0).any(), name


CONTACTS = "".join(
    f'<contact geom1="floor" data="{data}" reduce="{reduction}"/>'
    for data in ("force", "torque", "dist", "pos", "normal", "tangent", "linvel", "angvel")
    for reduction in ("none", "maxforce", "netforce")
    if reduction != "netforce" or not data.endswith("vel")
)


@pytest.mark.parametrize("sensor", re.findall(r"<[^>]*/>", OF_LANES + OF_MUJOCO + CONTACTS))
def test_a_sensor_alone(sensor: str) -> None:
    """No other one asks for what it is computed from."""
    model = the_robot(sensor)
    assert physics.lanes_refusal(model) is None
    x, u = states(model, 8), controls(model, 8, 80)
    assert_same_rollouts(model, x, u)
    assert lane_steps(model, x, u)[0] > 0


@pytest.mark.parametrize("width", [1, 2, 4])
def test_instruction_sets(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = the_robot(OF_LANES + OF_MUJOCO)
    monkeypatch.setenv("PYFASTENV_LANES", str(width))
    try:
        assert_same_rollouts(model, states(model, N), controls(model, N, STEPS))
    except ValueError:
        pytest.skip(f"no {width} lanes on this processor")


def test_stages_and_programs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    model = the_robot(OF_LANES + OF_MUJOCO)
    model.opt.timestep *= 1.5  # which no other test has a plan of
    monkeypatch.setenv("PYFASTENV_LANE_PROGRAMS", "0")
    assert_same_rollouts(model, states(model, N), controls(model, N, STEPS))


def test_planar_models_have_zeros_of_both_signs() -> None:
    text = SENSORS.replace(
        "<sensor>",
        '<sensor><framequat objtype="geom" objname="tip"/><framexaxis objtype="body"'
        ' objname="pole"/><frameangvel objtype="body" objname="pole"/><framelinacc objtype="xbody"'
        ' objname="cart"/><subtreeangmom body="cart"/>',
    )
    model = from_text(text)
    assert physics.lanes_refusal(model) is None
    x, u = states(model, N), controls(model, N, STEPS)
    x[::2, 1:] = 0.0
    u[::4] = 0.0
    _, sensordata = assert_same_rollouts(model, x, u)
    assert ((sensordata == 0) & np.signbit(sensordata)).any()


def test_rollouts_that_diverge_or_are_left_to_mj_step() -> None:
    model = the_robot(OF_LANES + OF_MUJOCO)
    x, u = states(model, N), controls(model, N, STEPS)
    x[3, 5] = np.nan
    x[7, 1 + model.nq] = 1e9
    u[11, 30, 0] = np.inf
    u[12, 30, 1] = np.nan
    assert_same_rollouts(model, x, u)
    spec = mujoco.mjtState.mjSTATE_XFRC_APPLIED
    forces = np.random.default_rng(0).normal(size=(N, 20, 6 * model.nbody))
    forces[:, ::2] = 0
    assert_same_rollouts(model, x, forces, control_spec=spec)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (from_text(ROPE.replace("<sensor>", '<sensor><force site="a"/>')),
         r"forces and torques where spatial tendons pull \(sensor 0\)"),
        (from_text(CART_POLE.replace("</mujoco>", '<sensor><user dim="1"/></sensor></mujoco>')),
         r"sensors of users and plugins \(sensor 0\)"),
        (from_text(SENSORS.replace(
            "<worldbody>", '<option><flag sensor="disable"/></option><worldbody>')),
         "sensors that are disabled"),
        (the_robot("<e_kinetic/>", '><flag energy="enable"/></option><option'),
         r"kinetic energy where <flag energy> is enabled \(sensor 0\)"),
    ],
    ids=["spatial", "user", "disabled", "energy"],
)  # fmt: skip
def test_sensors_that_lanes_refuse(model: Any, reason: str) -> None:
    """They run by mj_step, by name, unless nobody reads them."""
    assert re.search(reason, physics.lanes_refusal(model) or "")
    assert physics.engine(model)[0] == "mujoco"
    x, u = states(model, 8), controls(model, 8, 300)
    assert_same_rollouts(model, x, u)
    if physics.lanes_refusal(model, sensordata=False) is not None:
        return
    assert lane_steps(model, x, u) == (0, 0)
    assert lane_steps(model, x, u, sensordata=False)[0] > 0


@pytest.mark.parametrize("skip_checks", [False, True])
def test_sensordata_that_nobody_reads(skip_checks: bool) -> None:
    model = the_robot(OF_LANES + OF_MUJOCO)
    x, u = states(model, N), controls(model, N, STEPS)
    expected = theirs.rollout(model, make_data(model), x, u)[0]
    models = [model] * N if skip_checks else model
    given = {"nstep": STEPS, "state": np.empty_like(expected)} if skip_checks else {}
    state, sensordata = physics.rollout(
        models, make_data(model), x, u, sensordata=False, skip_checks=skip_checks, **given
    )
    assert sensordata is None
    assert_bits(state, expected)


def test_edited_sensors_are_noticed() -> None:
    model = the_robot(OF_LANES + OF_MUJOCO)
    x, u = states(model, N), controls(model, N, STEPS)
    seen = [assert_same_rollouts(model, x, u)[1]]
    for change in (
        lambda: model.site_pos.__imul__(1.5),
        lambda: model.opt.magnetic.__imul__(2),
        lambda: model.sensor_cutoff.__setitem__(2, 0.01),
        lambda: model.cam_pos.__iadd__(0.1),
        lambda: model.body_inertia.__imul__(1.1),
    ):
        change()
        seen.append(assert_same_rollouts(model, x, u)[1])
        assert not np.array_equal(seen[-1], seen[-2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((N, STEPS, 3)), "trailing dimension of sensordata must be 2, got 3"),
        (np.zeros((N, STEPS + 1, 2)), "dimension 1 inferred as 120 but sensordata has 121"),
        ([1.0], "sensordata must be a numpy array or float"),
        (np.zeros((N, STEPS, 2), "U1"), "sensordata: expected an array of numbers"),
        (np.broadcast_to(np.zeros(2), (N, STEPS, 2)), "sensordata: expected a writeable array"),
    ],
    ids=["numbers", "steps", "list", "text", "read-only"],
)
def test_outputs_that_do_not_fit(given: Any, message: str) -> None:
    sensors = '<sensor><jointpos joint="hinge"/><clock/></sensor></mujoco>'
    model = from_text(CART_POLE.replace("</mujoco>", sensors))
    x, u = states(model, N), controls(model, N, STEPS)
    with pytest.raises(ValueError, match=message):
        physics.rollout(model, make_data(model), x, u, sensordata=given)


def test_robots_without_sensors_have_none() -> None:
    model = robot("Hopper")
    _, sensordata = physics.rollout(model, make_data(model), states(model, 3), nstep=2)
    assert sensordata is not None and sensordata.shape == (3, 2, 0)


# what range finders meet: a height field that stands, one that turns, every shape, what is unseen
RAYS = """
<mujoco>
  <asset>
    <hfield name="hills" nrow="23" ncol="31" size="6 4 1.5 .3"/>
    <hfield name="tray" nrow="2" ncol="3" size=".4 .3 .2 .05"/>
    <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale=".5 .5 .5"/>
    <material name="glass" rgba="1 1 1 0"/>
  </asset>
  <default><geom contype="0" conaffinity="0" mass=".2"/></default>
  <worldbody>
    <geom type="hfield" hfield="hills" pos="0 0 -1"/> <geom type="plane" size="9 0 1" pos="0 0 -2"/>
    <geom type="box" size=".1 4 2" pos="3 0 0" euler="0 0 20"/>
    <body pos="0 0 1">
      <freejoint/>
      <geom type="ellipsoid" size=".2 .3 .1"/>
      {sites}
      <body pos=".5 0 0"><joint axis="1 2 0"/><geom type="hfield" hfield="tray"/>
        <geom size=".4" material="glass"/></body>
      <body pos="0 .5 0"><joint axis="0 1 1"/><geom type="capsule" size=".1 .2"/>
        <geom size=".5" rgba="1 1 1 0"/><geom type="mesh" mesh="wedge" pos="0 .4 0"/></body>
      <body pos="-.5 0 0"><joint axis="0 1 1"/><geom type="cylinder" size=".1 .2"/>
        <geom size=".1" pos="-.3 .1 0"/></body>
    </body>
  </worldbody>
  <sensor>{sensors} <clock/></sensor>
</mujoco>
"""


@pytest.mark.parametrize("other", ["", '<rangefinder site="s3" data="dist normal"/><e_kinetic/>'])
def test_range_finders(other: str) -> None:
    """Alone and beside sensors of MuJoCo's functions, above every kind of ground."""
    turns = np.random.default_rng(1).uniform(-180, 180, (24, 3)).round(1)
    sites = "".join(f'<site name="s{i}" euler="{a} {b} {c}"/>' for i, (a, b, c) in enumerate(turns))
    sensors = "".join(
        f'<rangefinder site="s{i}" cutoff="{(0, 0, 0.4, 3)[i % 4]}"/>' for i in range(24)
    )
    model = from_text(RAYS.format(sites=sites, sensors=other + sensors))
    assert physics.lanes_refusal(model) is None
    rng = np.random.default_rng(0)
    heights = rng.uniform(size=model.hfield_data.shape)
    x = states(model, N)
    for ground in (0 * heights, heights, heights.round(), heights**8, 1 + 0 * heights):
        model.hfield_data[:] = ground
        _, sensordata = assert_same_rollouts(model, x, nstep=STEPS)
        rays = sensordata[..., -25:-1]
        assert {-1.0, -0.4, 0.4, 3.0} <= set(np.unique(rays))
        assert ((rays > 0) & (rays < 0.4)).any() and (rays > 3).any()
    asked, left = lane_steps(model, x, nstep=STEPS)
    assert asked > 0 and left < asked / 4


def sites_of(where: str, rng: Any, aligned: bool) -> str:
    """Six sites, in turn upright or anyhow turned."""
    turns = rng.choice([0, 90, 180, 270], (6, 3)) if aligned else rng.uniform(0, 360, (6, 3))
    places = rng.choice([-0.5, 0, 0.25], (6, 3)) if aligned else rng.normal(size=(6, 3)) / 3
    return "".join(
        f'<site name="{where}{i}" pos="{x} {y} {z}" euler="{a} {b} {c}"/>'
        for i, ((x, y, z), (a, b, c)) in enumerate(zip(places, turns, strict=True))
    )


def scene(seed: int, aligned: bool) -> str:
    """Every shape many times over, among them rays of four bodies, and a field of odd sizes."""
    rng = np.random.default_rng(seed)

    def geoms(count: int) -> str:
        made = []
        for _ in range(count):
            kind = rng.choice(
                ["plane", "sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh"]
            )
            if kind == "plane" and count == 4:
                kind = "hfield"  # on bodies that move, too
            what = {"mesh": 'mesh="wedge"', "hfield": 'hfield="dunes"'}.get(
                str(kind), 'size="{} {} {}"'.format(*rng.choice([0.1, 0.3, 0.6], 3))
            )
            x, y, z = rng.choice([-1, -0.5, 0, 0.25, 1], 3)
            a, b, c = rng.choice([0, 90], 3) if aligned else rng.uniform(0, 360, 3)
            at = f'pos="{x} {y} {z}" euler="{a} {b} {c}"'
            made.append(f'<geom type="{kind}" {what} {at} rgba="1 1 1 {rng.integers(4)}"/>')
        return "".join(made)

    inertia = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    bodies = "".join(
        f'<body pos="{i - 1} 0 {0 if aligned else 0.1 * i}"><freejoint/>{inertia}'
        f"{geoms(4)}{sites_of(f'b{i}_', rng, aligned)}</body>"
        for i in range(3)
    )
    nrow, ncol = rng.integers(2, 40, 2)
    sensors = "".join(
        f'<rangefinder site="{where}{i}" cutoff="{rng.choice([0, 0, 0.7])}"/>'
        for where in ("w", "b0_", "b1_", "b2_")
        for i in range(6)
    )
    return f"""
<mujoco>
  <option gravity="0 0 0"/>
  <compiler autolimits="true"/>
  <asset>
    <hfield name="hills" nrow="{nrow}" ncol="{ncol}" size="2 3 .5 .1"/>
    <hfield name="dunes" nrow="9" ncol="17" size=".5 1 .25 .25"/>
    <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale=".5 .5 .5"/>
  </asset>
  <default><geom contype="0" conaffinity="0" mass="0"/></default>
  <worldbody>
    <body mocap="true" pos="0 0 {-0.5 if aligned else -0.3}">
      <geom type="hfield" hfield="hills"/></body>
    {geoms(8)} {sites_of("w", rng, aligned)} {bodies}
  </worldbody>
  <sensor>{sensors} <clock/></sensor>
</mujoco>"""


@pytest.mark.parametrize("aligned", [False, True], ids=["anyhow", "along edges"])
@pytest.mark.parametrize("seed", range(6))
def test_range_finders_in_any_scene(seed: int, aligned: bool) -> None:
    """From inside, along edges and faces, from afar: mj_ray's bits, in lanes."""
    model = from_text(scene(seed, aligned))
    assert physics.lanes_refusal(model) is None
    rng = np.random.default_rng(seed)
    x = states(model, N, seed, speed=0 if aligned else 1)
    if aligned:  # bodies stand as they are placed
        x[: N // 2, 1 : 1 + model.nq] = model.qpos0
    x[-2:, 1] += 300  # a body far away
    grounds: list[Any] = [np.zeros(model.nhfield and model.hfield_data.size)]
    grounds += [
        rng.uniform(-0.2, 1.3, model.hfield_data.shape),
        rng.integers(0, 3, grounds[0].shape) / 2,
    ]
    for ground in grounds:
        model.hfield_data[:] = ground
        _, sensordata = assert_same_rollouts(model, x, nstep=STEPS)
        rays = sensordata[..., :-1]
        assert (rays < 0).any() and (rays > 0).sum() > rays.size / 10
    asked, left = lane_steps(model, x, nstep=STEPS)
    assert asked > 0 and left < asked / 4


def test_range_finders_see_what_each_model_shows() -> None:
    """Sizes of their own in one plan; what is hidden in one model alone, as that model has it."""
    model = from_text(scene(1, aligned=False))
    models = [copy.copy(model) for _ in range(N)]
    for i, each in enumerate(models):
        each.geom_size[:] *= 1 + 0.02 * i
    x = states(model, N)
    seen = [assert_same_rollouts(models, x, nstep=STEPS)[1]]
    assert lane_steps(models, x, nstep=STEPS)[0] > 0
    for change in (
        lambda: models[3].geom_rgba.__setitem__((slice(None), 3), 0),
        lambda: [each.geom_rgba.__setitem__((slice(None), 3), 1) for each in models],
    ):
        change()
        seen.append(assert_same_rollouts(models, x, nstep=STEPS)[1])
        assert not np.array_equal(seen[-1], seen[-2])
    assert (seen[1][3, :, :-1] < 0).all()


def test_range_finders_of_a_batch_see_what_each_simulation_shows() -> None:
    model = from_text(scene(1, aligned=False))
    batches = physics.Batch(model, 4, 1), mujoco.batch.Batch(model, 4, 1)
    for batch in batches:
        batch.expand("geom_size")[:] *= [[[1]], [[1.1]], [[1.2]], [[1.3]]]
        batch.bind("sensordata")
        batch.step(nstep=200)
        batch.expand("geom_rgba")[1, :, 3] = 0
        batch.step(nstep=3)
    seen, expected = (batch.bind("sensordata") for batch in batches)
    assert_bits(seen, expected)
    assert (seen[1, :-1] < 0).all() and (seen[0, :-1] > 0).any()
