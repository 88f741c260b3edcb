"""Unitree's Go1 trots over stairs, slopes, waves and blocks, harder as it learns."""

import numpy as np

from pyfastenv.suites.playground.go1 import NOISE
from pyfastenv.suites.robots.go1 import SHARED, STATE, TRUTH, Go1Trot
from pyfastenv.tasks.language import terrain
from pyfastenv.tasks.language.fields import curriculum, memory
from pyfastenv.tasks.language.helpers import ground_height, height_scan, move_level
from pyfastenv.tasks.language.noise import uniform

STAIRS = (0.01, 0.1)  # heights of a step [m]
GROUND = terrain.Terrain(
    {
        "stairs": terrain.pyramid_stairs(STAIRS, platform_width=2.0),
        "stairs_down": terrain.pyramid_stairs(STAIRS, platform_width=2.0, inverted=True),
        "slope": terrain.pyramid_slope((0.0, 0.4), platform_width=2.0),
        "waves": terrain.wave((0.0, 0.2), num_waves=3),
        "rough": terrain.random_uniform((-0.06, 0.06), 0.01, downsampled_scale=0.2),
        "blocks": terrain.random_grid(0.4, (0.0, 0.05), platform_width=2.0),
    },
    num_levels=10,
    border_width=20.0,  # no robot walks farther in an episode
    horizontal_scale=0.05,
)


class Go1RoughTerrain(Go1Trot):
    """:class:`Go1Trot` over six kinds of ground of ten levels, with a height scan of 77 points.

    Shins touch the ground, too: with feet alone legs went through the edges of stairs, and a foot
    was caught behind them.

    An episode starts on a tile of the environment's level and kind; one that has followed its
    command for more than half a tile moves the level up, one that has not, or has fallen, down.

    Attributes:
        level: Of the ground, from 0 to 9.
        kind: Column of the ground at which episodes start; -1: each environment has drawn one.
        around: How far from a foot the highest ground counts for its height [m].
        lowest_trunk: Height of the trunk above the ground below which an episode ends [m].
    """

    observation_dict = {
        "policy": (*STATE, "scan"),
        "critic": (*SHARED, "scan", *TRUTH),
    }
    observation_noise = {**NOISE, "scan": uniform(-0.3, 0.3)}
    level = curriculum(0, len(GROUND.origins) - 1, start=(0, len(GROUND.origins) - 1))
    velocity_low, velocity_high = (-1.0, -0.5, -1.0), (1.0, 0.5, 1.0)
    swing, around, kind, lowest_trunk = (0.06, 0.2), 0.08, -1, 0.1
    orientation_weight = -1.0

    # of the last episode: how far it has come along commands, how far they would have led [m],
    # and whether it fell
    trip = memory(3, lasting=True)
    column = memory(lasting=True)  # of the ground, counted from 1; 0: not drawn yet

    def prepare(self, spec):
        super().prepare(spec)
        floor = spec.geom("floor")
        as_the_floor = {
            name: getattr(floor, name)
            for name in ("friction", "condim", "contype", "conaffinity", "priority", "material")
        }
        spec.delete(floor)
        GROUND.add_to(spec, "floor", **as_the_floor)
        for geom in spec.geoms:
            if geom.classname.name in ("calf1", "calf2"):
                geom.conaffinity = 1

    def setup(self):
        super().setup()
        self.ground = self.model.geom("floor").id
        points = terrain.grid_pattern((1.0, 0.6))
        self.origins, self.points = GROUND.origins, np.array((points, points * (1.0, -1.0)))
        self.half_tile, kinds = 0.5 * GROUND.size, len(GROUND.names)
        if not -1 <= self.kind < kinds:
            raise ValueError(f"kind: expected -1, or 0 to {kinds - 1}, got {self.kind}")

    def reset(self, data, rng):
        followed, commanded, fell = self.trip
        down = fell > 0.0 or followed < 0.5 * commanded
        up = fell == 0.0 and followed > max(0.8 * commanded, self.half_tile)
        self.level = move_level(self.level, up, down, self.level_low, self.level_high, rng)
        self.trip[:] = 0.0
        super().reset(data, rng)
        if self.column == 0.0:
            self.column = 1.0 + rng.integers(0, self.origins.shape[1])
        kind = self.kind if self.kind >= 0 else int(self.column) - 1
        data.qpos[:3] += self.origins[int(self.level), kind]

    def step(self, data, action, info, rng):
        reward, ended = super().step(data, action, info, rng)
        velocity, speed = data.sensor("local_linvel").data, np.hypot(self.told[0], self.told[1])
        if speed > 0.0:
            along = self.told[0] * velocity[0] + self.told[1] * velocity[1]
            self.trip[0] += self.dt * along / speed
            self.trip[1] += self.dt * speed
        self.trip[2] = 1.0 * ended
        return reward, ended

    def is_low(self, data):
        """Whether the trunk is so low that the episode ends."""
        return self.clearance(data) < self.lowest_trunk

    def clearance(self, data):
        """The trunk's height above the ground below it [m]."""
        return data.qpos[2] - self.ground_at(data.qpos[0], data.qpos[1])

    def ground_at(self, x, y):
        """The ground's height at a place [m]."""
        return ground_height(self.model, self.ground, x, y)

    def heights(self, data):
        """The feet's above the highest ground around them: they rise before a step [m]."""
        found, r = np.zeros(len(self.sole_ids)), self.around
        for i in range(len(found)):
            x, y, z = data.site_xpos[self.sole_ids[i]]
            along = max(self.ground_at(x - r, y), self.ground_at(x + r, y))
            across = max(self.ground_at(x, y - r), self.ground_at(x, y + r))
            found[i] = z - max(self.ground_at(x, y), along, across)
        return found

    def show_state(self, data, obs, body):
        super().show_state(data, obs, body)
        points = self.points[self.side()]
        scan = height_scan(self.model, self.ground, data.qpos[:3], data.qpos[3:7], points)
        obs["scan"] = np.clip(10.0 * (scan - self.home[2]), -10.0, 10.0)  # [0.1 m]

    def show_more(self, data, obs, body):
        super().show_more(data, obs, body)
        obs["height"] = self.clearance(data)
