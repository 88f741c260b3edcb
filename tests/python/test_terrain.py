"""Terrain, height scans and contact sensors of robots on legs, beside MuJoCo's own functions."""

from typing import Any

import mujoco
import numpy as np
import pytest
from plain_python import beside_plain

import pyfastenv
from pyfastenv.tasks.language import terrain
from pyfastenv.tasks.language.contact_sensors import add_contact_forces, add_self_contacts
from pyfastenv.tasks.language.helpers import ground_height, height_scan, land, touching

KINDS: dict[str, terrain.Kind] = {
    "flat": terrain.flat(),
    "slope": terrain.pyramid_slope((0.1, 0.4), platform_width=2.0),
    "stairs": terrain.pyramid_stairs((0.02, 0.1), platform_width=2.0),
    "pit": terrain.pyramid_stairs((0.02, 0.1), platform_width=2.0, inverted=True),
    "wave": terrain.wave((0.05, 0.2)),
    "rough": terrain.random_uniform((-0.05, 0.05), downsampled_scale=0.2),
    "fine": terrain.random_uniform((0.0, 0.05)),
    "grid": terrain.random_grid(0.4, (0.02, 0.1)),
    "obstacles": terrain.discrete_obstacles((0.4, 1.0), (0.03, 0.12), 30),
    "stones": terrain.stepping_stones((0.3, 0.8), (0.05, 0.2), 0.02),
    "bordered": terrain.bordered(terrain.random_grid(0.4, (0.02, 0.1)), 1.0),
}
GROUND = terrain.Terrain(KINDS, 3, size=6.0, border_width=2.0, seed=1)


def tile(ground: terrain.Terrain, level: int, name: str) -> Any:
    """A tile's heights."""
    column, cells = ground.names.index(name), round(ground.size / ground.scale)
    x, y = (20 + k * cells for k in (level, column))
    return ground.heights[x : x + cells + 1, y : y + cells + 1]


def test_kinds_are_what_their_names_say() -> None:
    assert GROUND.heights.shape == (3 * 60 + 40 + 1, 11 * 60 + 40 + 1)
    assert not tile(GROUND, 2, "flat")[1:-1, 1:-1].any()
    stairs = tile(GROUND, 2, "stairs")
    assert stairs.max() == pytest.approx(0.6)  # six steps of 10 cm, up to the platform
    assert set(np.round(np.diff(stairs[30]), 9)) == {-0.1, 0.0, 0.1}
    assert (stairs[20:41, 20:41] == stairs.max()).all()
    np.testing.assert_allclose(tile(GROUND, 2, "pit"), -stairs, atol=1e-12)
    slope = tile(GROUND, 2, "slope")
    np.testing.assert_allclose(np.diff(slope[:20, 30]), 0.04, atol=1e-12)
    wave = tile(GROUND, 2, "wave")
    assert wave.max() == pytest.approx(0.2, abs=0.01)
    assert wave.min() == pytest.approx(-0.2, abs=0.01)
    stones, middle = tile(GROUND, 2, "stones"), np.s_[25:36, 25:36]
    assert (stones[middle] == 0.0).all()
    assert 0.2 < (stones == -1.0).mean() < 0.9
    assert abs(stones[stones > -1.0]).max() <= 0.02
    for name in ("grid", "obstacles"):
        assert (tile(GROUND, 2, name)[middle] == 0.0).all()
        assert len(np.unique(tile(GROUND, 2, name))) > 4
    for name in ("slope", "stairs", "pit", "wave", "rough", "grid", "obstacles"):
        spreads = [np.ptp(tile(GROUND, level, name)[1:-1, 1:-1]) for level in range(3)]
        assert spreads[0] < spreads[1] < spreads[2], name
    bordered = tile(GROUND, 2, "bordered").copy()
    assert np.ptp(bordered[11:50, 11:50]) > 0.1
    bordered[10:51, 10:51] = 0.0
    assert not bordered[1:-1, 1:-1].any()
    holes = [(tile(GROUND, level, "stones") == -1.0).mean() for level in range(3)]
    assert holes[0] < holes[1] < holes[2]
    fine = tile(GROUND, 2, "fine")[1:-1, 1:-1] / 0.005
    np.testing.assert_allclose(fine, np.rint(fine), atol=1e-9)


def test_tiles_are_drawn_by_seed_and_place_alone() -> None:
    again = terrain.Terrain(KINDS, 3, size=6.0, border_width=2.0, seed=1)
    np.testing.assert_array_equal(again.heights, GROUND.heights)
    more = terrain.Terrain({**KINDS, "more": KINDS["wave"]}, 3, size=6.0, border_width=2.0, seed=1)
    np.testing.assert_array_equal(tile(more, 1, "grid"), tile(GROUND, 1, "grid"))
    other = terrain.Terrain(KINDS, 3, size=6.0, border_width=2.0, seed=2)
    assert (tile(other, 1, "rough") != tile(GROUND, 1, "rough")).any()


def compiled(ground: terrain.Terrain, **geom: Any) -> tuple[Any, Any]:
    spec = mujoco.MjSpec()
    ground.add_to(spec, **geom)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def straight_down(model: Any, data: Any, x: float, y: float) -> float:
    geom, down = np.zeros(1, np.int32), np.array([0.0, 0.0, -1.0])
    distance = mujoco.mj_ray(model, data, np.array([x, y, 9.0]), down, None, 1, -1, geom)
    assert geom[0] == 0
    return float(9.0 - distance)


def test_origins_are_where_robots_may_stand() -> None:
    model, data = compiled(GROUND)
    assert GROUND.origins.shape == (3, 11, 3)
    for level, row in enumerate(GROUND.origins):
        for name, (x, y, z) in zip(GROUND.names, row, strict=True):
            assert (x, y) == pytest.approx(
                (6.0 * (level - 1), 6.0 * (GROUND.names.index(name) - 5.0))
            )
            near = [
                straight_down(model, data, x + dx, y + dy)
                for dx in np.linspace(-0.99, 0.99, 5)
                for dy in np.linspace(-0.99, 0.99, 5)
            ]
            assert max(near) <= z + 1e-6
            if name in ("flat", "slope", "stairs", "pit"):
                np.testing.assert_allclose(near, z, atol=1e-6)


def test_the_ground_is_as_high_as_rays_say() -> None:
    model, data = compiled(GROUND)
    rng = np.random.default_rng(0)
    for i in range(3000):
        x, y = rng.uniform((-10.9, -31.9), (10.9, 31.9))
        if i % 3 == 0:  # on the edges of triangles, and on their corners
            x, y = round(x, 1), round(y, 1) if i % 2 else y
        height = ground_height(model, 0, x, y)
        assert height == pytest.approx(straight_down(model, data, x, y), abs=1e-12)
    edge = ground_height(model, 0, -11.0, 3.0)
    assert ground_height(model, 0, -40.0, 3.0) == edge


def test_a_scan_turns_with_the_heading_alone() -> None:
    model, data = compiled(GROUND)
    points = terrain.grid_pattern()
    assert points.shape == (187, 2)
    assert (points.max(0), points.min(0)) == (
        pytest.approx((0.8, 0.5)),
        pytest.approx((-0.8, -0.5)),
    )
    assert terrain.grid_pattern((0.4, 0.2), 0.2).tolist() == pytest.approx(
        np.array([[-0.2, -0.1], [-0.2, 0.1], [0, -0.1], [0, 0.1], [0.2, -0.1], [0.2, 0.1]])
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        heading, tilt = rng.uniform(-np.pi, np.pi), rng.uniform(-0.5, 0.5)
        turn, lean, quat = (np.zeros(4) for _ in range(3))
        mujoco.mju_axisAngle2Quat(turn, np.array([0.0, 0.0, 1.0]), heading)
        mujoco.mju_axisAngle2Quat(lean, np.array([0.0, 1.0, 0.0]), tilt)
        mujoco.mju_mulQuat(quat, turn, lean)
        place = np.array([*rng.uniform((-8.0, -25.0), (8.0, 25.0)), 1.5])
        ahead, left = (
            np.array([np.cos(heading), np.sin(heading)]),
            [-np.sin(heading), np.cos(heading)],
        )
        expected = [
            1.5 - straight_down(model, data, *(place[:2] + a * ahead + b * np.array(left)))
            for a, b in points
        ]
        np.testing.assert_allclose(height_scan(model, 0, place, quat, points), expected, atol=1e-9)
    upright = np.array([np.sqrt(0.5), 0.0, -np.sqrt(0.5), 0.0])  # its nose in the air
    assert np.isfinite(height_scan(model, 0, place, upright, points)).all()


def test_flat_ground_alone_is_a_model_too() -> None:
    model, data = compiled(terrain.Terrain({"flat": terrain.flat()}, 1), friction=[0.5, 0.1, 0.1])
    assert straight_down(model, data, 1.0, 1.0) == pytest.approx(0.0, abs=1e-6)
    assert model.geom_friction[0].tolist() == [0.5, 0.1, 0.1]


# ---- in a task -----------------------------------------------------------------------------------

BALLS = """<mujoco><option timestep="0.004"><flag filterparent="disable"/></option><worldbody>
<body name="trunk" pos="0 0 0.4"><freejoint/><geom name="a" size="0.1" pos="0.2 0 0"/>
<geom name="b" size="0.1" pos="-0.2 0 0"/><body name="leg" pos="0 0 0.25">
<joint name="swing" axis="0 1 0" damping="0.1"/><geom name="c" size="0.1" pos="0.19 0 0"/>
</body></body></worldbody><actuator><motor joint="swing" ctrlrange="-1 1" gear="4"/></actuator>
</mujoco>"""
FEET = ("a", "b")


class Balls(pyfastenv.Task):
    """Two balls roll over the ground; a third one swings and hits the first."""

    frame_skip, max_episode_steps = 4, 60
    level = pyfastenv.curriculum(0, 2)
    air_time = pyfastenv.memory(2)
    landed = pyfastenv.memory(2)

    def model(self):
        spec = mujoco.MjSpec.from_string(BALLS)
        GROUND.add_to(spec)
        add_contact_forces(spec, FEET)
        add_self_contacts(spec, "trunk")
        return spec

    def setup(self):
        self.ground = self.model.geom("terrain").id
        self.feet = np.array([self.model.geom(name).id for name in FEET])
        self.points, self.origins = terrain.grid_pattern(), GROUND.origins

    def reset(self, data, rng):
        data.qpos[:3] = self.origins[int(self.level), rng.integers(0, 10)]
        data.qpos[2] += 0.15
        data.qvel[:3] = rng.uniform(-1.0, 1.0, 3)

    def step(self, data, action, info):
        self.simulate(data)
        self.landed[:] = land(self.air_time, touching(data, self.feet), self.dt)
        info["self_contacts"] = data.sensor("self_contacts").data[0]
        return data.sensor("a_force").data[2], False

    def observation(self, data, obs):
        obs["scan"] = height_scan(
            self.model, self.ground, data.qpos[:3], data.qpos[3:7], self.points
        )
        obs["forces"] = np.concatenate((data.sensor("a_force").data, data.sensor("b_force").data))
        obs["landed"] = self.landed


@pytest.mark.parametrize("engine", ["mujoco", "lanes"])
def test_plain_python_gives_the_same_bits(engine: str) -> None:
    forces, counts, landed = [], [], []
    for pair in beside_plain(Balls, 150, pool={"engine": engine}):
        forces.append(pair.results[0][0, 187:193])
        landed.append(pair.results[0][0, 193:])
        if len(pair.results) == 5:
            counts.append(pair.results[4]["self_contacts"][0])
    assert pair.envs.stats()["engine"] == engine
    assert len(np.unique(np.array(forces)[:, 2])) > 20
    assert set(counts) == {0.0, 1.0}
    assert np.array(landed).max() > 0.0


def test_sensors_are_the_contacts_forces() -> None:
    env = pyfastenv.debug(Balls)
    env.reset(seed=2)
    task, data = env.unwrapped.task, env.unwrapped.data
    seen = 0
    for _ in range(60):
        env.step(np.ones(1))
        expected, touches, wrench = np.zeros((2, 3)), 0, np.zeros(6)
        for i, contact in enumerate(data.contact):
            mujoco.mj_contactForce(task.model, data, i, wrench)
            world = contact.frame.reshape(3, 3).T @ wrench[:3]  # from the first geom to the second
            for foot, geom in enumerate(task.feet):
                expected[foot] += world * ((contact.geom1 == geom) * 1.0 - (contact.geom2 == geom))
            touches += task.ground not in contact.geom
        for foot, name in enumerate(FEET):
            force = data.sensor(f"{name}_force").data
            np.testing.assert_allclose(force, expected[foot], atol=1e-9)
            seen += force[2] < -1.0
        assert data.sensor("self_contacts").data[0] == touches
    assert seen > 10


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kinds": {}}, "expected at least one kind, one level and one cell"),
        ({"num_levels": 0}, "expected at least one kind, one level and one cell"),
        ({"size": 6.05}, "expected a multiple of the horizontal scale 0.1, got 6.05"),
        ({"border_width": -1.0}, "expected a multiple of the horizontal scale 0.1, got -1.0"),
        (
            {"kinds": {"odd": lambda difficulty, tile, rng: np.zeros(3)}},
            r"Terrain: 'odd': expected finite heights \(61, 61\), got \(3,\)",
        ),
        (
            {"kinds": {"nan": lambda difficulty, tile, rng: tile.x + np.nan}},
            r"Terrain: 'nan': expected finite heights \(61, 61\), got \(61, 61\)",
        ),
    ],
)
def test_grounds_that_cannot_be(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"kinds": KINDS, "num_levels": 2, "size": 6.0, **arguments}
    with pytest.raises(ValueError, match=said):
        terrain.Terrain(given.pop("kinds"), given.pop("num_levels"), **given)
