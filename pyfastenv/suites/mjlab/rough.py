"""Go1 and G1 follow a velocity on rough ground, by mjlab's terms.

Formulas: mjlab 1.6, tasks/velocity (velocity_env_cfg.py, config, mdp), terrains and
sensor/terrain_height_sensor.py.
"""

import mujoco
import numpy as np

from pyfastenv.suites.mjlab.base import FEET, OWN, SHANKS, THIGHS, TRUNK
from pyfastenv.suites.mjlab.velocity import (
    OF_FEET,
    SEEN,
    SHARED,
    TRUE,
    Velocity,
    VelocityFlatG1,
    VelocityFlatGo1,
    site_pose,
)
from pyfastenv.suites.playground import terms as t
from pyfastenv.tasks.language import terrain
from pyfastenv.tasks.language.fields import curriculum, memory
from pyfastenv.tasks.language.helpers import height_scan, move_level
from pyfastenv.tasks.language.noise import uniform


def hill(steepest, platform_width, inverted=False):
    """mjlab's slope: a product of two tents, cut off at the height of the platform's corners."""

    def heights(difficulty, tile, rng):
        half = 0.5 * tile.size
        rise = (1.0 - abs(tile.x) / half) * (1.0 - abs(tile.y) / half)
        rise = np.minimum(rise, np.square(1.0 - 0.5 * platform_width / half))
        return (-1.0 if inverted else 1.0) * difficulty * steepest * half * rise

    return heights


def waves(highest, count):
    """mjlab's waves: one along x and one along y, added."""

    def heights(difficulty, tile, rng):
        x, y = (2.0 * np.pi * count * (p / tile.size + 0.5) for p in (tile.x, tile.y))
        return 0.5 * difficulty * highest * (np.cos(x) + np.sin(y))

    return heights


def as_hard(kind):
    """A kind that is as hard at every level."""
    return lambda difficulty, tile, rng: kind(1.0, tile, rng)


def stairs(inverted=False):
    """Steps that begin 1 m from the tile's edge."""
    steps = terrain.pyramid_stairs((0.0, 0.1), 0.3, platform_width=3.0, inverted=inverted)
    return terrain.bordered(steps, 0.7)  # the first of our kind's is at 0


_KINDS = {
    "flat": (0.2, terrain.flat()),
    "pyramid_stairs": (0.2, stairs()),
    "pyramid_stairs_inv": (0.2, stairs(inverted=True)),
    "hf_pyramid_slope": (0.1, terrain.bordered(hill(1.0, 2.0), 0.2)),
    "hf_pyramid_slope_inv": (0.1, terrain.bordered(hill(1.0, 2.0, inverted=True), 0.2)),
    "random_rough": (
        0.1,
        terrain.bordered(as_hard(terrain.random_uniform((0.02, 0.1), 0.02, 0.1)), 0.2),
    ),
    "wave_terrain": (0.1, terrain.bordered(waves(0.2, 4), 0.2)),
}
GROUND = terrain.Terrain(
    {name: kind for name, (_, kind) in _KINDS.items()},
    num_levels=10,
    border_width=20.0,
    horizontal_scale=0.05,
)
_TINY = 1.2e-7  # of float32, in which mjlab computes
_MARGIN, _FARTHEST, _FOOT_FARTHEST = 0.3, 5.0, 1.0  # to the edge, of a ray, of one at a foot [m]


class Rough(Velocity):
    """:class:`Velocity` over seven kinds of ground of ten levels, which is seen by a height scan.

    Each environment keeps the kind that it has drawn. A level is harder after an episode that has
    ended more than half a tile from where it began, and easier after one that has come less than
    half as far as its last command would lead in all of an episode.

    What a subclass says: ``ring``.

    Attributes:
        level: Of the ground, from 0 to 9.
        ring: Radius [m] and number of points around a foot, whose lowest height is the foot's.
        episode: Length of a whole episode [s].
    """

    observation_noise = {**Velocity.observation_noise, "height_scan": uniform(-0.02, 0.02)}
    observation_dict = {
        "policy": ("height_scan", *SEEN, *SHARED),
        "critic": (*SHARED, *TRUE, *OF_FEET, "true_height_scan"),
    }
    options = {"ccd_iterations": 500}
    level = curriculum(0, len(GROUND.origins) - 1, start=(0, 5))
    ring: tuple[float, int] = (0.0, 0)
    episode = 20.0

    start_place = memory(2)
    # of the last episode: how far it has come [m], and its last command's speed [m/s]
    trip = memory(2, lasting=True)
    column = memory(lasting=True)  # of the ground, counted from 1; 0: not drawn yet

    def lay_ground(self, spec, body):
        GROUND.add_to(spec, body=body)

    def setup(self):
        super().setup()
        self.ground = self.model.geom("terrain").id
        self.origins, self.half_tile = GROUND.origins, 0.5 * GROUND.size
        self.shares = np.cumsum([share for share, _ in _KINDS.values()])
        half = self.model.hfield_size[self.model.geom_dataid[self.ground], :2]
        self.farthest_out = half - _MARGIN
        grid = terrain.grid_pattern().reshape(17, 11, 2)
        self.points = grid.transpose(1, 0, 2).reshape(-1, 2)  # mjlab's order: row by row ahead
        angles = 2.0 * np.pi * np.arange(self.ring[1]) / self.ring[1]
        around = self.ring[0] * np.stack((np.cos(angles), np.sin(angles)), axis=-1)
        self.around_foot = np.concatenate((np.zeros((1, 2)), around))

    def origin(self, rng):
        up, down = self.trip[0] > self.half_tile, self.trip[0] < 0.5 * self.episode * self.trip[1]
        self.level = move_level(self.level, up, down, self.level_low, self.level_high, rng)
        self.trip[:] = 0.0
        if self.column == 0.0:
            drawn = rng.random()
            self.column = 1.0
            for i in range(len(self.shares) - 1):
                self.column += 1.0 * (drawn > self.shares[i])
        place = self.origins[int(self.level), int(self.column) - 1].copy()
        self.start_place[:] = place[:2]
        return place

    def step(self, data, action, info, rng):
        reward, ended = super().step(data, action, info, rng)
        x, y = self.start_place
        self.trip[0] = np.hypot(data.qpos[0] - x, data.qpos[1] - y)
        self.trip[1] = t.length(self.told(data)[:2])
        return reward, ended

    def is_out(self, data):
        x, y = self.farthest_out
        return abs(data.qpos[0]) > x or abs(data.qpos[1]) > y

    def depths(self, place, quat, points, farthest):
        """How deep the ground lies below a place, at points that turn with a heading [m].

        Less than 0 where a ray down does not meet it, as mjlab's: too far below, or above.
        """
        scan = height_scan(self.model, self.ground, place, heading(quat), points)
        for i in range(len(scan)):
            scan[i] = scan[i] if 0.0 <= scan[i] <= farthest else -1.0
        return scan

    def measure_heights(self, data):
        for i in range(len(self.foot_sites)):
            place, quat = site_pose(self.model, data.qpos, self.foot_sites[i])
            least = 2.0 * _FOOT_FARTHEST
            for depth in self.depths(place, quat, self.around_foot, _FOOT_FARTHEST):
                least = min(least, depth) if depth >= 0.0 else least
            if least > _FOOT_FARTHEST:
                least = min(max(place[2], 0.0), _FOOT_FARTHEST)  # mjlab's where no ray meets it
            self.foot_height[i] = least

    def observation(self, data, obs):
        scan = self.depths(data.qpos[:3], data.qpos[3:7], self.points, _FARTHEST)
        for i in range(len(scan)):
            scan[i] = scan[i] / _FARTHEST if scan[i] >= 0.0 else 1.0
        obs["height_scan"] = scan
        super().observation(data, obs)
        obs["true_height_scan"] = scan


def heading(quat):
    """Finds an orientation's turn about the upright axis, ``(4,)``, by its side if ahead is up."""
    x = np.zeros(3)
    mujoco.mju_rotVecQuat(x, np.array([1.0, 0.0, 0.0]), quat)
    ahead, aside = x[0], x[1]
    if np.hypot(ahead, aside) < 0.1:
        mujoco.mju_rotVecQuat(x, np.array([0.0, 1.0, 0.0]), quat)
        ahead, aside = x[1], -x[0]
    turn = np.arctan2(aside, ahead)
    return np.array([np.cos(0.5 * turn), 0.0, 0.0, np.sin(0.5 * turn)])


def plane_normal(points, depths):
    """The upward normal of the plane that fits points best; straight up where they are no plane.

    Args:
        points: ``(n, 2)`` [m].
        depths: ``(n,)`` below 0 [m]; a point counts where this is not negative.

    Returns:
        ``(3,)``, by mjlab's rule: of the least eigenvalue of their covariance.
    """
    up, middle, spread, count = np.array([0.0, 0.0, 1.0]), np.zeros(3), np.zeros(9), 0
    for i in range(len(points)):
        if depths[i] >= 0.0:
            middle += np.array((points[i, 0], points[i, 1], -depths[i]))
            count += 1
    if count < 3:
        return up
    middle /= count
    for i in range(len(points)):
        if depths[i] >= 0.0:
            away = np.array((points[i, 0], points[i, 1], -depths[i])) - middle
            for j in range(3):
                spread[3 * j : 3 * j + 3] += away[j] * away
    values, vectors, quat = np.zeros(3), np.zeros(9), np.zeros(4)
    mujoco.mju_eig3(values, vectors, quat, spread)  # the least comes last
    if values[2] >= 0.1 * max(values[1], _TINY) or values[1] <= 1e-6 * max(values[0], _TINY):
        return up
    return np.array((vectors[2], vectors[5], vectors[8])) * (1.0 if vectors[8] >= 0.0 else -1.0)


_PARTS = {
    **{f"{leg}_calf_collision{i}": SHANKS for leg in FEET for i in (1, 2)},
    **dict.fromkeys(("trunk_collision", "head_collision"), TRUNK),
    **{f"{leg}_thigh_collision{i}": THIGHS for leg in FEET for i in (1, 2, 3)},
}


class VelocityRoughGo1(Rough, VelocityFlatGo1):
    """mjlab's Mjlab-Velocity-Rough-Unitree-Go1: upright is along the ground's normal."""

    options = VelocityFlatGo1.options | Rough.options
    touches = {"self_contact": OWN, **_PARTS}
    self_collisions_weight = shank_collision_weight = trunk_head_collision_weight = -0.1
    ring, most_tilt = (0.04, 4), np.pi  # an episode ends where a thigh touches the ground
    normal = memory(3)  # of the ground

    def setup(self):
        super().setup()
        self.few = self.points[np.linspace(0, len(self.points) - 1, 32).astype(int)]

    def measure_heights(self, data):
        super().measure_heights(data)
        depths = self.depths(data.qpos[:3], data.qpos[3:7], self.few, _FARTHEST)
        normal = np.zeros(3)
        turn = heading(data.qpos[3:7])
        mujoco.mju_rotVecQuat(normal, plane_normal(self.few, depths), turn)
        self.normal[:] = normal

    def tilt(self, data):
        x, y = 0.0, 0.0
        for i in range(3):
            x += data.xmat[self.upright_id, 3 * i] * self.normal[i]
            y += data.xmat[self.upright_id, 3 * i + 1] * self.normal[i]
        return np.square(x) + np.square(y)


class VelocityRoughG1(Rough, VelocityFlatG1):
    """mjlab's Mjlab-Velocity-Rough-Unitree-G1."""

    ring = (0.03, 6)
