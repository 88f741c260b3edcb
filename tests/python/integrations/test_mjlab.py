"""mjlab: its tasks on physics.Batch, every substep with mj_step's bits."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from mjlab_suite import compare
from run_example import run_example

from pyfastenv.suites import MJLAB
from pyfastenv.suites.mjlab.rough import GROUND

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of mjlab's own dependencies
    pytest.importorskip("mjlab", reason="needs mjlab (docs/physics.md#mjlab)")
    from mjlab.envs import ManagerBasedRlEnv, manager_based_rl_env
    from mjlab.managers.event_manager import RecomputeLevel
    from mjlab.sim import MujocoCfg, SimulationCfg
    from mjlab.tasks.registry import load_env_cfg
    from mjlab.terrains import TerrainGenerator
    from mjlab.terrains.config import ROUGH_TERRAINS_CFG

    from pyfastenv.integrations.mjlab import Simulation

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
STATE = mujoco.mjtState.mjSTATE_INTEGRATION
WALKER = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="base" pos="0 0 .3">
      <freejoint/>
      <geom name="trunk" type="box" size=".2 .1 .05" mass="3"/>
      <geom name="head" type="sphere" size=".05" pos=".25 0 0" mass=".3"/>
      <body name="leg" pos=".15 0 -.05">
        <joint name="hip" axis="0 1 0" damping=".1"/>
        <geom name="foot" type="capsule" size=".03" fromto="0 0 0 0 0 -.2" mass=".4"/>
      </body>
    </body>
  </worldbody>
  <actuator><position joint="hip" kp="20"/></actuator>
  <sensor><gyro site="imu"/></sensor>
</mujoco>
""".replace('<geom name="trunk"', '<site name="imu"/><geom name="trunk"')


class Checked(Simulation):
    """Steps every simulation by mj_step too, and compares states and what tensors show."""

    substeps = 0

    def step(self) -> None:
        self._take_over()
        before = self.batch.state.copy()
        super().step()
        if self.substeps == 0:
            self.models = [self.batch.get_model(i) for i in range(self.num_envs)]
            self.scratch = mujoco.MjData(self.mj_model)
        self.substeps += 1
        row = np.empty_like(before[0])
        for i, model in enumerate(self.models):
            mujoco.mj_setState(model, self.scratch, before[i], STATE)
            mujoco.mj_step(model, self.scratch)
            mujoco.mj_getState(model, self.scratch, row, STATE)
            assert row.tobytes() == self.batch.state[i].tobytes(), (self.substeps, i)
            assert_shows(self.data.qpos[i], self.scratch.qpos)
            for name in self._outputs:
                assert_shows(getattr(self.data, name)[i], getattr(self.scratch, name))


def assert_shows(tensor: Any, exact: Any) -> None:
    """A tensor has the digits of these numbers that float32 has."""
    shown = tensor.numpy().reshape(exact.shape)
    assert shown.tobytes() == exact.astype(np.float32).tobytes()


@pytest.mark.parametrize("robot", ["Go1", "G1"])
def test_environments_step_by_mj_steps_bits(robot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_based_rl_env, "Simulation", Checked)
    cfg = load_env_cfg(f"Mjlab-Velocity-Flat-Unitree-{robot}")
    cfg.scene.num_envs, cfg.seed = 9, 0
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset(seed=0)
    num_actions, resets = env.action_manager.total_action_dim, 0
    for _ in range(200):
        obs, rewards, terminated, timeouts, _ = env.step(torch.randn(9, num_actions))
        resets += int((terminated | timeouts).sum())
    assert resets and torch.isfinite(rewards).all() and torch.isfinite(obs["critic"]).all()
    sim: Any = env.sim
    assert sim.substeps == 800 and {"sensordata", "xpos", "cvel"} <= set(sim._outputs)
    assert np.ptp(sim.batch.expand("body_ipos"), axis=0).any()  # their own centres of mass
    if robot == "Go1":
        lane_steps, left = sim.batch._core.lane_steps()
        assert lane_steps > 0 and left < lane_steps / 2
    assert_rays_are_mj_rays(env.scene["foot_height_scan"], sim)


def assert_rays_are_mj_rays(sensor: Any, sim: Any) -> None:
    groups = np.array([i in sensor.include_geom_groups for i in range(6)], np.uint8)
    data, geom = sim.batch.get_data(0), np.zeros(1, np.int32)
    model = sim.batch.get_model(0)
    mujoco.mj_forward(model, data)
    begin, along = sensor._ray_pnt.numpy()[0], sensor._ray_vec.numpy()[0]
    for ray, excluded in enumerate(sensor._ray_bodyexclude.numpy()):
        at, to = begin[ray].astype(float), along[ray].astype(float)
        found = mujoco.mj_ray(model, data, at, to, groups, 1, excluded, geom)
        assert sensor.data.distances[0, ray] == np.float32(found)
    assert (sensor.data.distances > 0).any()


def small(num_envs: int = 3, **kwargs: Any) -> Simulation:
    model = mujoco.MjModel.from_xml_string(WALKER)
    return Simulation(num_envs, SimulationCfg(mujoco=MujocoCfg(timestep=0.004)), model, **kwargs)


def test_a_field_read_late_is_as_the_last_call_left_it() -> None:
    sim = small(num_threads=1)
    data = mujoco.MjData(sim.mj_model)
    for _ in range(5):
        sim.step()
        mujoco.mj_step(sim.mj_model, data)
    state = sim.batch.state.copy()
    for name in ("xpos", "geom_xmat", "qfrc_actuator", "sensordata"):
        assert_shows(getattr(sim.data, name)[2], getattr(data, name))
    assert sim.data.geom_xmat.shape == (3, sim.mj_model.ngeom, 3, 3)
    np.testing.assert_array_equal(sim.batch.state, state)
    sim.data.qvel[:, 2] = 1.5
    sim.forward()
    mujoco.mj_setState(sim.mj_model, data, sim.batch.state[1], STATE)
    mujoco.mj_forward(sim.mj_model, data)
    assert_shows(sim.data.cvel[1], data.cvel)


def test_what_was_written_is_taken_over_and_nothing_else() -> None:
    sim = small()
    for _ in range(3):
        sim.step()
    expected = sim.batch.state.copy()
    digits = expected.astype(np.float32) != expected
    assert digits.any()  # more of them than tensors have
    sim.data.qpos[1, 2:4] = torch.tensor([0.7, 0.1])
    sim.data.xfrc_applied[2, 1, 0] = 0.3
    sim.forward()
    now = sim.batch
    assert now.qpos[1, 2] == np.float32(0.7) and now.xfrc_applied[2, 1, 0] == np.float32(0.3)
    written = now.state != expected
    assert written.sum(axis=1).tolist() == [0, 2, 1]

    sim.reset(torch.tensor([2, 0]))
    assert_shows(sim.data.qpos[0], sim.mj_model.qpos0)
    assert not sim.data.xfrc_applied.any() and not now.qacc_warmstart[[0, 2]].any()
    np.testing.assert_array_equal(now.state[1, ~written[1]], expected[1, ~written[1]])
    sim.reset()
    assert np.ptp(now.state, axis=0).max() == 0 and now.time[0] == 0


def test_own_fields_and_what_is_derived_of_them() -> None:
    sim = small()
    mass = sim.mj_model.body_mass.copy()
    sim.expand_model_fields(("body_mass", "body_subtreemass", "geom_friction", "tendon_length0"))
    sim.model.body_mass[torch.tensor([1]), torch.tensor([2])] = 2.5
    sim.recompute_constants(RecomputeLevel.set_const)
    heavier = copy.copy(sim.mj_model)
    heavier.body_mass[2] = 2.5
    mujoco.mj_setConst(heavier, mujoco.MjData(heavier))
    np.testing.assert_array_equal(sim.batch.expand("body_mass")[[0, 2]], [mass, mass])
    assert not sim.batch.is_expanded("geom_friction")  # which nobody wrote
    assert_shows(sim.model.body_subtreemass[1], heavier.body_subtreemass)
    model = sim.batch.get_model(1)
    for name in ("body_mass", "body_subtreemass", "body_invweight0", "dof_M0"):
        np.testing.assert_array_equal(getattr(model, name), getattr(heavier, name))
    sim.model.geom_friction[0, 1, 0] = 0.25
    sim.step()
    assert sim.batch.get_model(0).geom_friction[1, 0] == 0.25
    alone = small(1)
    alone.expand_model_fields(("geom_friction",))
    alone.model.geom_friction[0, 1, 0] = 0.25
    alone.step()
    assert alone.batch.expand("geom_friction")[0, 1, 0] == 0.25
    with pytest.raises(ValueError, match="not found in model"):
        sim.expand_model_fields(("body_masses",))


def test_a_geom_stays_where_its_body_s_centre_of_mass_moves() -> None:
    sim = small()
    foot = sim.mj_model.geom("foot").id
    assert sim.mj_model.geom_sameframe[foot] != 0  # of the leg's inertia
    sim.forward()
    where = sim.data.geom_xpos[0, foot].clone()
    sim.expand_model_fields(("body_ipos",))
    sim.model.body_ipos[1, 2, 0] += 0.02
    sim.recompute_constants(RecomputeLevel.set_const)
    sim.forward()
    assert (sim.data.geom_xpos[:, foot] == where).all()
    assert sim.data.xipos[1, 2, 0] - sim.data.xipos[0, 2, 0] == pytest.approx(0.02, abs=1e-6)


def test_what_is_not_here_says_so() -> None:
    with pytest.raises(ValueError, match=r"device: expected 'cpu', .* got 'cuda:0'"):
        small(device="cuda:0")
    with pytest.raises(ValueError, match="variant_info: expected none"):
        small(variant_info=[("robot", None)])
    sim = small()
    with pytest.raises(AttributeError, match="wp_data: these simulations are not Warp's"):
        _ = sim.wp_data
    for name in ("contact", "nacon", "efc"):
        with pytest.raises(AttributeError, match=f"{name} has no array in a batch"):
            getattr(sim.data, name)
    with pytest.raises(AttributeError, match="no attribute 'qqpos'"):
        _ = sim.data.qqpos
    camera = SimpleNamespace(cfg=SimpleNamespace(name="front"))
    with pytest.raises(ValueError, match=r"cameras: expected none.*'front'"):
        sim.set_sensor_context(SimpleNamespace(has_cameras=True, camera_sensors=[camera]))  # type: ignore[arg-type]


@pytest.mark.parametrize("env_id", MJLAB)
def test_own_tasks_equal_mjlab(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_based_rl_env, "Simulation", Simulation)  # put back afterwards
    gaps = compare(env_id, 60, episode=15)["gaps"]
    most = 1e-4 if "Rough" in env_id else 1e-5  # places far from the origin, in float32
    assert len(gaps) > 12 and max(gaps.values()) < most, gaps


def test_our_rough_ground_is_nearly_mjlabs() -> None:
    """As the docs say; mjlab's edges of steps are upright, and its slopes up to 0.1 m wider."""
    grounds = [mujoco.MjSpec() for _ in range(2)]
    generator = TerrainGenerator(replace(ROUGH_TERRAINS_CFG, curriculum=True, seed=0))
    generator.compile(grounds[0])
    GROUND.add_to(grounds[1])
    models = [ground.compile() for ground in grounds]
    datas = [mujoco.MjData(model) for model in models]
    for model, data in zip(models, datas, strict=True):
        mujoco.mj_forward(model, data)
    assert tuple(ROUGH_TERRAINS_CFG.sub_terrains) == GROUND.names
    np.testing.assert_allclose(generator.terrain_origins[..., :2], GROUND.origins[..., :2])
    rng, gaps, down = np.random.default_rng(0), {}, np.array([0.0, 0.0, -1.0])
    for column, name in enumerate(GROUND.names):
        starts = rng.uniform(-4.0, 4.0, (400, 3))
        starts[:, :2] += GROUND.origins[9, column, :2]
        starts[:, 2] = 9.0
        one, other = (
            [
                mujoco.mj_ray(*ground, start, down, None, 1, -1, np.zeros(1, np.int32))
                for start in starts
            ]
            for ground in zip(models, datas, strict=True)
        )
        gaps[name] = np.median(np.abs(np.subtract(one, other)))
    assert max(gaps[name] for name in GROUND.names[:3]) < 1e-6
    assert max(gaps.values()) < 0.025, gaps


def test_example(tmp_path: Path) -> None:
    assert "Mean value loss" in run_example("integration_mjlab.py", "2", "8", cwd=tmp_path)
