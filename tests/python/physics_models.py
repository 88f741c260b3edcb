"""Models and comparisons of the tests of pyfastenv.physics."""

import re
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout as theirs

from pyfastenv import physics
from pyfastenv.vector import specs

STATE = mujoco.mjtState
ROBOTS = {
    "InvertedPendulum": "inverted_pendulum.xml",
    "InvertedDoublePendulum": "inverted_double_pendulum.xml",
    "Reacher": "reacher.xml",
    "Pusher": "pusher_v5.xml",
    "Swimmer": "swimmer.xml",
    "Hopper": "hopper.xml",
    "HalfCheetah": "half_cheetah.xml",
    "Walker2d": "walker2d_v5.xml",
    "Ant": "ant.xml",
    "Humanoid": "humanoid.xml",
    "HumanoidStandup": "humanoidstandup.xml",
}

CART_POLE = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0" range="-1 1" limited="true"/>
      <geom type="capsule" size=".1 .1" contype="0" conaffinity="0"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="0 1 0"/>
        <geom name="tip" fromto="0 0 0 0 0 .6" type="capsule" size=".05" contype="0"
          conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="slide" ctrlrange="-1 1" gear="10"/>
    <motor joint="hinge" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""

SENSORS = CART_POLE.replace(
    "</mujoco>",
    '<sensor><jointpos joint="hinge"/><framelinacc objtype="geom" objname="tip"/></sensor>'
    "</mujoco>",
)

EQUALITIES = CART_POLE.replace(
    "</mujoco>",
    '<equality><connect body1="pole" anchor="0 0 .6"/>'
    '<joint joint1="slide" active="false"/></equality></mujoco>',
).replace('<body name="pole">', '<body name="pole" pos="0 .1 0">')

# what lanes refuse, and every kind of input and state
EVERYTHING = """
<mujoco>
  <size nuserdata="3"/>
  <default><geom density="500"/></default>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="hand" mocap="true" pos="0 0 1"><geom size=".05" contype="0" conaffinity="0"/></body>
    <body pos="0 0 .5">
      <freejoint/>
      <geom type="box" size=".1 .1 .1"/>
      <body pos=".2 0 0">
        <joint name="ball" type="ball" damping=".1"/>
        <geom type="capsule" size=".04 .1"/>
        <site name="a" pos=".1 0 0"/>
      </body>
    </body>
    <body name="held" pos="0 0 1"><freejoint/><geom size=".05"/><site name="b"/></body>
    <body pos="1 0 .3">
      <joint name="hinge" axis="0 1 0" frictionloss=".01"/>
      <geom type="cylinder" size=".05 .2"/>
    </body>
  </worldbody>
  <equality><weld body1="hand" body2="held"/><joint joint1="hinge" active="false"/></equality>
  <tendon>
    <spatial name="rope" range="0 .9" limited="true" stiffness="3" armature=".01">
      <site site="a"/><site site="b"/>
    </spatial>
  </tendon>
  <actuator>
    <motor joint="hinge" ctrlrange="-1 1"/>
    <general tendon="rope" dyntype="integrator" gainprm="2"/>
  </actuator>
  <sensor><framepos objtype="site" objname="a"/><tendonpos tendon="rope"/></sensor>
</mujoco>
"""

# what rides of that: a rope that pulls, by muscles and thrusters too; …
ROPE = EVERYTHING.replace(' armature=".01"', "").replace(
    "</actuator>",
    '<muscle tendon="rope" lengthrange=".1 1" force="9"/><motor site="a" gear="1 0 2 0 0 .1"/>'
    "</actuator>",
)  # fmt: skip
# … a hand that leads a body, and an equality that can be switched on
LED = re.sub(r"(?s)<tendon>.*</tendon>|<general.*?/>|<sensor>.*</sensor>", "", EVERYTHING)

# what an mjData holds after a rollout; the last step must have left it
_DATA_FIELDS = [
    *("time", "qpos", "qvel", "act", "ctrl", "qacc_warmstart", "qfrc_applied", "xfrc_applied"),
    *("eq_active", "mocap_pos", "qacc", "xpos", "xquat", "geom_xpos", "cinert", "cvel"),
    *("qfrc_bias", "qfrc_passive", "qfrc_actuator", "qfrc_constraint", "actuator_force"),
    "sensordata",
]


def robot(name: str) -> Any:
    return mujoco.MjModel.from_xml_path(str(Path(specs.assets_dir(), ROBOTS[name])))


def from_text(text: str) -> Any:
    return mujoco.MjModel.from_xml_string(text)


def make_data(model: Any, threads: int = 1) -> Any:
    """The data that rollouts on so many threads take."""
    return mujoco.MjData(model) if threads == 1 else [mujoco.MjData(model) for _ in range(threads)]


def states(model: Any, count: int, seed: int = 0, speed: float = 1.0) -> Any:
    """(count, nstate) full-physics states near the model's own, moving."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    rows = np.empty((count, mujoco.mj_stateSize(model, STATE.mjSTATE_FULLPHYSICS)))
    for row in rows:
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, rng.normal(0, 0.1, model.nv), 1.0)
        data.qvel = rng.normal(0, speed, model.nv)
        data.time = rng.uniform(0, 10)
        mujoco.mj_getState(model, data, row, STATE.mjSTATE_FULLPHYSICS)
    return rows


def controls(model: Any, count: int, nstep: int, seed: int = 0) -> Any:
    """(count, nstep, nu), a little beyond their ranges."""
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (count, nstep, model.nu))


def lane_steps(model: Any, *args: Any, **kwargs: Any) -> tuple[int, int]:
    """Steps of a rollout that lanes were asked for, and those that they left to mj_step."""
    first = model[0] if isinstance(model, (list, tuple)) else model
    with physics.Rollout(nthread=0) as pool:
        pool.rollout(model, mujoco.MjData(first), *args, **kwargs)
        steps: tuple[int, int] = pool._pool.lane_steps()
    return steps


def assert_bits(ours: Any, expected: Any) -> None:
    """Equal arrays, zeros' signs and NaN included."""
    assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
    differ = np.flatnonzero(ours.view(np.int64).ravel() != expected.view(np.int64).ravel())
    assert differ.size == 0, np.unravel_index(differ[0], ours.shape)


def assert_same_data(ours: Any, expected: Any) -> None:
    """The mjData of a rollout on one thread."""
    for field in _DATA_FIELDS:
        a, b = np.asarray(getattr(ours, field)), np.asarray(getattr(expected, field))
        assert a.tobytes() == b.tobytes(), field
    assert ours.ncon == expected.ncon


def assert_same_rollouts(model: Any, *args: Any, threads: int = 1, **kwargs: Any) -> Any:
    """Runs both; returns our results.

    Args:
        model: As the first argument of ``rollout``.
        args: What comes after ``data``.
        threads: Of both.
        kwargs: Of both; outputs among them are given to ours, and copies to theirs.
    """
    first = model[0] if isinstance(model, (list, tuple)) else model
    our_data, their_data = make_data(first, threads), make_data(first, threads)
    copies = {
        name: kwargs[name].copy()
        for name in ("state", "sensordata")
        if kwargs.get(name) is not None
    }
    expected = theirs.rollout(model, their_data, *args, **kwargs | copies)
    results = physics.rollout(model, our_data, *args, **kwargs)
    for ours, reference in zip(results, expected, strict=True):
        if reference is None:
            assert ours is None
        else:
            assert_bits(ours, reference)
    if threads == 1:
        assert_same_data(our_data, their_data)
    return results
