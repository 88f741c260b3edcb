"""Own tasks whose physics runs in lanes: drawn models and sensors have the bits of mj_step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parity import assert_same

import pyfastenv
from pyfastenv.tasks.randomise import scale, shift, uniform

pytest.importorskip("numba")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "own_tasks"))
from hopper import Hopper

NUM_ENVS = 11  # a group and a rest


class Drawn(Hopper):
    randomise = {
        "body_mass": scale(0.8, 1.2),
        "geom_friction": uniform(0.5, 2.0, together=True),
        "dof_damping": shift(0.0, 0.3),
        "actuator_gear": scale(0.9, 1.1),
    }


WALKER = """<mujoco><option timestep=".004"/>
  <default><joint damping=".5" armature=".01"/></default>
  <worldbody><geom type="plane" size="20 20 1"/>
    <body name="trunk" pos="0 0 .4"><freejoint/>
      <geom type="capsule" fromto="-.2 0 0 .2 0 0" size=".07"/><site name="imu" pos=".1 0 .02"/>
      <body name="leg" pos=".15 0 0"><joint name="hip" axis="0 1 0" range="-60 60"/>
        <geom type="capsule" fromto="0 0 0 .05 0 -.25" size=".04"/></body>
    </body></worldbody>
  <actuator><position name="servo" joint="hip" kp="20" kv=".5" ctrlrange="-1 1"/></actuator>
  <sensor><gyro name="gyro" site="imu"/><accelerometer name="acceleration" site="imu"/>
    <jointpos name="angle" joint="hip"/><subtreelinvel name="velocity" body="trunk"/>
    <framezaxis name="up" objtype="site" objname="imu"/><clock name="clock"/></sensor>
  </mujoco>"""


class Feeling(pyfastenv.Task):
    model = WALKER
    frame_skip = 3

    def reset(self, data: Any, rng: Any) -> None:
        data.qpos[:] = self.init_qpos
        data.qvel[:3] = 0.3 * rng.standard_normal(3)

    def step(self, data: Any, action: Any, info: Any, rng: Any) -> tuple[Any, Any]:
        self.simulate(data)
        info["clock"] = data.sensor("clock").data[0]
        return data.sensor("velocity").data[0], data.qpos[2] < 0.12

    def observation(self, data: Any, obs: Any) -> None:
        obs["motion"] = data.qvel
        obs["gyro"] = data.sensor("gyro").data
        obs["acceleration"] = data.sensor("acceleration").data
        obs["angle"] = data.sensor("angle").data
        obs["up"] = data.sensor("up").data


class Weighed(Feeling):
    randomise = {"body_mass": scale(0.7, 1.3), "body_inertia": scale(0.7, 1.3)}


@pytest.mark.parametrize("task", [Drawn, Feeling, Weighed])
def test_lanes_and_mj_step_are_the_same(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFASTENV_POISON", "1")
    lanes, mujoco = (
        pyfastenv.make_vec(task, NUM_ENVS, num_threads=2, engine=engine, max_episode_steps=25)
        for engine in ("lanes", "mujoco")
    )
    assert_same(lanes.reset(seed=3), mujoco.reset(seed=3))
    space: Any = lanes.single_action_space
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.uniform(-1, 1, (NUM_ENVS, *space.shape)).astype(space.dtype)
        assert_same(lanes.step(actions), mujoco.step(actions))
    assert lanes.get_state().tobytes() == mujoco.get_state().tobytes()
    assert lanes.stats()["lane_steps"] == lanes.stats()["steps"] > 500


def test_set_fields_join_drawn_ones() -> None:
    lanes, mujoco = (
        pyfastenv.make_vec(Drawn, NUM_ENVS, num_threads=1, engine=engine)
        for engine in ("lanes", "mujoco")
    )
    stiffness = np.linspace(0.0, 3.0, NUM_ENVS)[:, None] * np.ones(6)
    for envs in (lanes, mujoco):
        envs.reset(seed=3)
        envs.set_model_field("jnt_stiffness", stiffness)
    for _ in range(10):
        actions = np.full((NUM_ENVS, 3), 0.3, np.float32)
        assert_same(lanes.step(actions), mujoco.step(actions))
    assert lanes.stats()["lane_steps"] == lanes.stats()["steps"]


class Skin(Feeling):
    model = WALKER.replace('<clock name="clock"/>', '<touch name="clock" site="imu"/>')


def test_sensors_of_contacts_are_left_to_mj_step() -> None:
    envs = pyfastenv.make_vec(Skin, 2, engine="auto")
    assert envs.stats()["engine"] == "mujoco"
    assert "the task reads sensordata" in envs.stats()["engine_reason"]
