"""Unitree's Go1 under a joystick on stairs, slopes, waves and blocks, harder as it learns."""

import numpy as np

from pyfastenv.suites.playground.go1 import FEET, NOISE, PRIVILEGED, STATE, Go1JoystickFlatTerrain
from pyfastenv.tasks.language import terrain
from pyfastenv.tasks.language.contact_sensors import add_contact_forces
from pyfastenv.tasks.language.fields import curriculum, memory
from pyfastenv.tasks.language.helpers import ground_height, height_scan, move_level
from pyfastenv.tasks.language.noise import uniform

SEEN = ("scan", *STATE)
STAIRS = (0.01, 0.1)  # heights of a step [m]
GROUND = terrain.Terrain(
    {
        "stairs": terrain.pyramid_stairs(STAIRS, platform_width=2.0),
        "stairs_down": terrain.pyramid_stairs(STAIRS, platform_width=2.0, inverted=True),
        "slope": terrain.pyramid_slope((0.0, 0.4), platform_width=2.0),
        "waves": terrain.wave((0.0, 0.2), num_waves=3),
        "rough": terrain.random_uniform((-0.06, 0.06), 0.01, downsampled_scale=0.2),
        "blocks": terrain.random_grid(0.4, (0.0, 0.08), platform_width=2.0),
    },
    num_levels=10,
    border_width=8.0,
    horizontal_scale=0.05,
)


class Go1RoughTerrain(Go1JoystickFlatTerrain):
    """Unitree's Go1 follows a joystick over six kinds of ground of ten levels.

    Robot, observations and rewards are Playground's, with heights above the ground below, and a
    height scan of 187 points. An episode starts on a tile of the environment's level, of a kind
    that is drawn; the level is legged_gym's curriculum.

    Attributes:
        level: Of the ground, from 0 to 9.
        lowest_trunk: Height of the trunk above the ground below which an episode ends [m].
    """

    observation_dict = {"policy": SEEN, "critic": (*SEEN, *PRIVILEGED, "forces")}
    observation_noise = {**NOISE, "scan": uniform(-0.03, 0.03)}
    level = curriculum(0, len(GROUND.origins) - 1, start=(0, 3))
    max_foot_height, lowest_trunk = 0.15, 0.1
    lin_vel_z_weight, orientation_weight = -0.1, -1.0
    velocity_low, velocity_high = (-1.0, -0.5, -1.0), (1.0, 0.5, 1.0)

    start = memory(2)  # the tile's centre [m]
    # of the last episode: how far it has come from there, how far along commands, how far commands
    # would have led [m], and whether it fell
    trip = memory(4, lasting=True)

    def read_sensors(self):
        return (*super().read_sensors(), *(f"{foot}_force" for foot in FEET))

    def prepare(self, spec):
        super().prepare(spec)
        floor = spec.geom("floor")
        as_the_floor = {
            name: getattr(floor, name)
            for name in ("friction", "condim", "contype", "conaffinity", "priority", "material")
        }
        spec.delete(floor)
        GROUND.add_to(spec, "floor", **as_the_floor)
        add_contact_forces(spec, FEET)

    def setup(self):
        super().setup()
        self.ground = self.model.geom("floor").id
        self.origins, self.points = GROUND.origins, terrain.grid_pattern()
        self.half_tile = 0.5 * GROUND.size
        self.forces_at = self.model.sensor(f"{FEET[0]}_force").adr[0]

    def reset(self, data, rng):
        walked, followed, commanded, fell = self.trip
        up, down = walked > self.half_tile, fell > 0.0 or followed < 0.5 * commanded
        self.level = move_level(self.level, up, down, self.level_low, self.level_high, rng)
        self.trip[:] = 0.0
        super().reset(data, rng)
        origin = self.origins[int(self.level), rng.integers(0, self.origins.shape[1])]
        self.start[:] = origin[:2]
        data.qpos[:3] += origin

    def step(self, data, action, info, rng):
        reward, ended = super().step(data, action, info, rng)
        place, told = data.qpos[:3], self.velocity
        velocity, speed = data.sensor("local_linvel").data, np.sqrt(told[0] ** 2 + told[1] ** 2)
        lies = place[2] - ground_height(self.model, self.ground, place[0], place[1])
        ended = ended or lies < self.lowest_trunk
        self.trip[0] = np.hypot(place[0] - self.start[0], place[1] - self.start[1])
        if speed > 0.0:
            along = told[0] * velocity[0] + told[1] * velocity[1]
            self.trip[1] += self.dt * along / speed
            self.trip[2] += self.dt * speed
        self.trip[3] = 1.0 * ended
        return reward, ended

    def heights(self, data):
        """The feet's above the ground below them [m]."""
        found = np.zeros(len(self.sole_ids))
        for i in range(len(found)):
            x, y, z = data.site_xpos[self.sole_ids[i]]
            found[i] = z - ground_height(self.model, self.ground, x, y)
        return found

    def observation(self, data, obs):
        scan = height_scan(self.model, self.ground, data.qpos[:3], data.qpos[3:7], self.points)
        obs["scan"] = np.clip(scan - self.home[2], -1.0, 1.0)
        super().observation(data, obs)
        obs["forces"] = 0.01 * data.sensordata[self.forces_at : self.forces_at + 12]
