"""mjlab's tasks as own tasks; `make parity NAME=mjlab` and the integration's tests compare them."""

from importlib.util import find_spec
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from plain_python import beside_plain

import pyfastenv
from pyfastenv.suites import packages, tasks
from pyfastenv.suites.mjlab import rough
from pyfastenv.suites.mjlab.velocity import site_pose
from pyfastenv.tasks.language.find import load_task

GO1, G1, ROUGH_GO1, ROUGH_G1 = (
    f"Mjlab-Velocity-{ground}-Unitree-{robot}"
    for ground in ("Flat", "Rough")
    for robot in ("Go1", "G1")
)
needs_mjlab = pytest.mark.skipif(find_spec("mjlab") is None, reason="needs mjlab's models")
QUIET: dict[str, Any] = {"randomise": False, "push_velocity": (0.0,) * 6}


def test_without_mjlab_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"mjlab: pip install --no-deps mjlab==1\.6\.0"):
        pyfastenv.debug(GO1)


@needs_mjlab
@pytest.mark.parametrize(
    "env_id", [GO1, ROUGH_GO1, *(pytest.param(g1, marks=pytest.mark.slow) for g1 in (G1, ROUGH_G1))]
)
def test_rides_lanes_with_the_bits_of_plain_python(env_id: str) -> None:
    count = load_task(tasks()[env_id]["task"]).action_space.shape[0]
    own: dict[str, Any] = {"velocity_every": (0.1, 0.3), "push_every": (0.1, 0.3)}
    own["action_space"] = gymnasium.spaces.Box(-0.5, 0.5, (count,), np.float64)
    own["observation_dict"] = False
    for pair in beside_plain(env_id, 60, num_envs=9, pool={"engine": "lanes"}, **own):
        stats = pair.envs.stats()
    least = stats["steps"] - 9 if "Flat" in env_id else 0.3 * stats["steps"]
    assert stats["lane_steps"] >= least


@needs_mjlab
@pytest.mark.slow
def test_g1_starts_and_moves_in_plain_python() -> None:
    env = pyfastenv.debug(G1)
    obs, _ = env.reset(seed=0)
    assert {name: values.shape for name, values in obs.items()} == {
        "policy": (99,),
        "critic": (111,),
    }


@needs_mjlab
def test_commands_are_of_mjlabs_kinds_and_held_ones_are_not() -> None:
    env: Any = pyfastenv.debug(GO1, velocity_every=0.02, **QUIET).unwrapped
    env.reset(seed=0)
    told, raw = [], []
    for _ in range(600):
        shown, drawn = env.task.told(env.data), env.task.velocity.copy()
        info = env.step(np.zeros(12))[4]
        assert (info["command"] == shown).all()  # a reward is for what the policy has seen
        told.append(shown), raw.append(drawn)
        if env.task.drawn[1] <= 0.3 and drawn.any():
            forward = np.zeros(3)
            mujoco.mju_rotVecQuat(forward, np.array([1.0, 0.0, 0.0]), env.data.qpos[3:7])
            left = env.task.drawn[0] - np.arctan2(forward[1], forward[0])
            left = (left + np.pi) % (2.0 * np.pi) - np.pi
            assert shown[2] == pytest.approx(np.clip(0.5 * left, -0.5, 0.5), abs=0.02)
    still = ~np.any(raw, axis=1)
    moving = np.array(told)[~still]
    ahead = moving[:, 1] == 0.0
    assert np.mean(still) == pytest.approx(0.1, abs=0.05)
    assert np.mean(ahead) == pytest.approx(0.2, abs=0.06) and (moving[ahead, 0] >= 0.3).all()
    straight = moving[ahead, 2] == 0.0  # but where a heading is wanted
    assert np.mean(straight) == pytest.approx(0.7, abs=0.12)
    env.set_command("velocity", (0.1, 0.2, 0.3))
    env.step(np.zeros(12))
    env.step(np.zeros(12))
    assert (env.task.told(env.data) == (0.1, 0.2, 0.3)).all()


@needs_mjlab
def test_contacts_of_every_substep_change_terms_of_contacts_alone() -> None:
    envs: list[Any] = [
        pyfastenv.debug(GO1, every_substep=each, **QUIET).unwrapped for each in (False, True)
    ]
    rng, differs = np.random.default_rng(0), set[str]()
    for env in envs:
        env.reset(seed=3)
    for _ in range(40):
        action = rng.normal(0.0, 0.7, 12)
        once, each = (env.step(action)[4] for env in envs)
        assert (envs[0].data.qpos == envs[1].data.qpos).all()
        differs |= {n for n in once if n.startswith("reward_") and once[n] != each[n]}
        times = envs[1].task.air_time / 0.005
        assert times == pytest.approx(np.round(times), abs=1e-6)
    assert differs and differs <= {"reward_foot_swing_height", "reward_soft_landing"}


@needs_mjlab
def test_pushes_add_to_all_velocities_and_friction_is_the_feet_s() -> None:
    envs = pyfastenv.make_vec(GO1, 64, push_every=(0.02, 0.02), observation_dict=False)
    envs.reset(seed=0)
    obs = envs.step(np.zeros((64, 12)))[0]
    calm = pyfastenv.make_vec(GO1, 64, push_velocity=(0.0,) * 6, observation_dict=False)
    calm.reset(seed=0)
    gap = (obs - calm.step(np.zeros((64, 12)))[0])[:, envs.observation_groups["true_base_ang_vel"]]
    assert 0.4 < np.abs(gap).max() < 1.0
    friction = envs.get_model_field("geom_friction")
    feet = [envs.task.model.geom(f"robot/{foot}_foot_collision").id for foot in ("FR", "RL")]
    assert (friction[:, feet[0]] == friction[:, feet[1]]).all()
    sliding, spinning = friction[:, feet[0], 0], friction[:, feet[0], 1]
    assert sliding.min() >= 0.3 and sliding.max() <= 1.5
    assert spinning.min() >= 1e-4 and spinning.max() <= 2e-2
    assert np.median(spinning) == pytest.approx(np.sqrt(1e-4 * 2e-2), rel=1.0)


@needs_mjlab
def test_commands_widen_by_steps_as_mjlabs_do() -> None:
    envs: Any = pyfastenv.make_vec(GO1, 64, stage_over=(0, 40), **QUIET)
    envs.reset(seed=0)
    for stage, farthest in enumerate((1.0, 2.0, 3.0)):
        assert envs.command_ranges["velocity"][1].tolist() == [farthest, 1.0, (0.5, 0.7)[stage > 0]]
        for _ in range(20):
            envs.step(np.zeros((64, 12)))


# ---- rough ground --------------------------------------------------------------------------------


@pytest.fixture
def on_rough() -> Any:
    env: Any = pyfastenv.debug(ROUGH_GO1, **QUIET).unwrapped
    env.reset(seed=0)
    return env


def stand(env: Any, level: int, kind: str, away: Any = (0.0, 0.0), height: float = 0.3) -> None:
    """Puts the robot on a kind of ground, so far from a tile's middle."""
    at = rough.GROUND.origins[level, rough.GROUND.names.index(kind)]
    env.data.qpos[:3] = at + np.array((*away, height))
    mujoco.mj_forward(env.task.model, env.data)
    env.task.measure_heights(env.data)


def rays(env: Any, place: Any, mat: Any, points: Any, farthest: float) -> Any:
    """How far below a place the ground is, by MuJoCo's rays; -1: none, or the ground is above."""
    (x, y), (aside_x, aside_y) = mat.reshape(3, 3)[:2, :2].T
    ahead = np.array((x, y) if np.hypot(x, y) > 0.1 else (aside_y, -aside_x))
    ahead /= np.linalg.norm(ahead)
    found, geom = [], np.zeros(1, np.int32)
    for forward, left in points:
        x, y = place[:2] + forward * ahead + left * np.array((-ahead[1], ahead[0]))
        start = np.array((x, y, place[2] + 9.0))
        down, groups = np.array([0.0, 0.0, -1.0]), np.array([1, 0, 0, 0, 0, 0], np.uint8)
        far = mujoco.mj_ray(env.task.model, env.data, start, down, groups, 1, -1, geom) - 9.0
        found.append(far if 0.0 <= far <= farthest else -1.0)
    return np.array(found)


@needs_mjlab
def test_scans_and_feet_are_as_rays_say(on_rough: Any) -> None:
    rng, misses, task, data = np.random.default_rng(0), 0, on_rough.task, on_rough.data
    grid = [(x, y) for y in np.linspace(-0.5, 0.5, 11) for x in np.linspace(-0.8, 0.8, 17)]
    ring = [(0.0, 0.0), (0.04, 0.0), (0.0, 0.04), (-0.04, 0.0), (0.0, -0.04)]
    for kind in rough.GROUND.names * 3:
        turn, away = rng.normal(size=4), rng.uniform(-3.5, 3.5, 2)
        data.qpos[3:7] = turn / np.linalg.norm(turn)
        data.qpos[7:] = task.pose + rng.uniform(-0.3, 0.3, 12)
        stand(on_rough, 9, kind, away, 0.2)
        expected = rays(on_rough, data.qpos[:3], data.xmat[task.root_id], grid, 5.0)
        seen = on_rough._observe()["true_height_scan"]
        np.testing.assert_allclose(seen, np.where(expected < 0.0, 1.0, 0.2 * expected), atol=1e-6)
        misses += (expected < 0.0).sum()
        for i, site in enumerate(task.foot_sites):
            place, quat = site_pose(task.model, data.qpos, site)
            pose = np.zeros(9)
            mujoco.mju_quat2Mat(pose, quat)
            np.testing.assert_allclose(place, data.site_xpos[site], atol=1e-12)
            np.testing.assert_allclose(pose, data.site_xmat[site], atol=1e-12)
            found = rays(on_rough, place, pose, ring, 1.0)
            hits = found[found >= 0.0]
            least = hits.min() if len(hits) else np.clip(place[2], 0.0, 1.0)
            assert task.foot_height[i] == pytest.approx(least, abs=1e-6)
    assert misses > 100


def test_the_normal_is_of_the_plane_that_fits_best() -> None:
    rng, points = np.random.default_rng(0), np.random.default_rng(1).uniform(-0.8, 0.8, (32, 2))
    for _ in range(50):
        slope = rng.uniform(-0.6, 0.6, 2)
        depths = 3.0 + points @ slope + rng.normal(0.0, 0.05, 32)
        depths[rng.random(32) < 0.2] = -1.0
        there = np.column_stack((points, -depths))[depths >= 0.0]
        normal = np.linalg.eigh(np.cov(there.T))[1][:, 0]
        ours = rough.plane_normal(points, depths)
        np.testing.assert_allclose(ours, normal * np.sign(normal[2]), atol=1e-9)
    up = [0.0, 0.0, 1.0]
    in_line = np.column_stack((np.linspace(-1.0, 1.0, 32), np.zeros(32)))
    assert rough.plane_normal(in_line, 2.0 + 0.5 * in_line[:, 0]).tolist() == up
    assert rough.plane_normal(points, np.where(np.arange(32) < 2, 1.0, -1.0)).tolist() == up
    assert rough.plane_normal(points, rng.uniform(0.0, 3.0, 32)).tolist() == up  # no plane


@needs_mjlab
def test_levels_move_by_how_far_the_robot_has_come(on_rough: Any) -> None:
    task, columns = on_rough.task, set()

    def after(level: float, come: float, speed: float) -> float:
        task.level = level
        task.trip[:] = come, speed
        on_rough.reset()
        columns.add(task.column)
        origin = rough.GROUND.origins[int(task.level), int(task.column) - 1]
        assert np.all(abs(on_rough.data.qpos[:2] - origin[:2]) <= 0.5)
        assert 0.01 <= on_rough.data.qpos[2] - origin[2] - 0.278 <= 0.05
        return float(task.level)

    trips = (4.1, 1.0), (4.1, 0.0), (3.9, 0.3), (2.9, 0.6)
    assert [after(4, *trip) for trip in trips] == [5, 5, 4, 3]
    assert after(0, 0.0, 1.0) == 0
    assert len({after(9, 5.0, 0.0) for _ in range(30)}) > 4
    assert len(columns) == 1
    on_rough.data.qpos[0] += 1.0
    on_rough.step(np.zeros(12))
    assert task.trip[0] == pytest.approx(np.hypot(*(on_rough.data.qpos[:2] - task.start_place)))
    envs: Any = pyfastenv.make_vec(ROUGH_GO1, 1000)
    assert set(envs.reset(seed=0)[1]["episode_level"]) == set(range(6))
    kinds = np.bincount(envs._memory("column")[:, 0].astype(int))[1:]
    assert kinds == pytest.approx([200, 200, 200, 100, 100, 100, 100], abs=40)


@needs_mjlab
def test_thighs_on_the_ground_and_its_edge_end_episodes_and_tilt_does_not(on_rough: Any) -> None:
    stand(on_rough, 0, "flat", height=0.1)
    infos = on_rough.step(np.zeros(12))[4]
    assert infos["terminated_illegal_contact"] and infos["reward_shank_collision"] < 0.0
    on_rough.reset()
    on_rough.data.qpos[:7] = 0.0, 0.0, 1.5, 0.0, 1.0, 0.0, 0.0
    assert not on_rough.step(np.zeros(12))[2]
    on_rough.data.qpos[0] = 59.8  # of 60 m
    assert on_rough.step(np.zeros(12))[4]["terminated_out_of_terrain_bounds"]
