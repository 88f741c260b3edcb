"""Helpers that many tasks call, of a few lines each: delays, histories, motors, pushes, noise, a
robot's own view.

They are functions as a user would write them. What lasts is in memories of the task, what is drawn
comes from the environment's own stream, so both are part of snapshots.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np


def enqueue(queue: Any, values: Any) -> None:
    """Puts ``values`` at the end of a queue and drops as many at its front.

    An action that arrives ``n`` steps late::

        late = pyfastenv.memory(n * 8)

        def control(self, data, action, ctrl):
            ctrl[:] = self.late[:8]

        def step(self, data, action):
            self.simulate(data)
            enqueue(self.late, action)

    Args:
        queue: A memory, ``(n * size,)``; zeros when an episode starts.
        values: ``(size,)``.
    """
    size = len(values)
    kept = len(queue) - size
    for i in range(kept):
        queue[i] = queue[i + size]
    for i in range(size):
        queue[kept + i] = values[i]


def refill(queue: Any, values: Any) -> None:
    """Puts ``values`` into every place of a queue, so that a history begins full: in ``reset``.

    A history of what was seen is a queue that ``step`` fills behind ``simulate``::

        seen = pyfastenv.memory(5 * 12)  # five frames, the newest last

        def reset(self, data):
            refill(self.seen, data.qpos[7:])

        def step(self, data, action):
            self.simulate(data)
            enqueue(self.seen, data.qpos[7:])

        def observation(self, data, obs):
            obs["joints"] = self.seen

    Args:
        queue: A memory, ``(n * size,)``.
        values: ``(size,)``.
    """
    size = len(values)
    for i in range(len(queue)):
        queue[i] = values[i % size]


def delayed(queue: Any, newest: Any, late: Any) -> Any:
    """Tells what was new some steps ago, which may be other numbers of steps in every episode.

    Actions that arrive up to three steps late::

        late, sent = pyfastenv.memory(), pyfastenv.memory(3 * 8)

        def reset(self, rng):
            self.late = rng.integers(0, 4)

        def control(self, action, ctrl):
            ctrl[:] = delayed(self.sent, action, self.late)

        def step(self, data, action):
            self.simulate(data)
            enqueue(self.sent, action)

    Args:
        queue: What was new before, ``(n * size,)``, the latest last: of :func:`enqueue`.
        newest: What is new, ``(size,)``, and not in the queue yet.
        late: How many steps, 0 to n; 0 means ``newest``.

    Returns:
        ``(size,)``.

    Raises:
        ValueError: ``late`` is more than the queue has, or below 0.
    """
    size, steps = len(newest), int(late)
    first = len(queue) - steps * size
    if steps < 0 or first < 0:
        raise ValueError("delayed: late: expected 0 to as many steps as the queue has")
    found = np.zeros(size)
    for i in range(size):
        found[i] = newest[i] if steps == 0 else queue[first + i]
    return found


def dc_motor(torque: Any, velocity: Any, limit: float, stall: float, speed: float) -> Any:
    """Bounds torques by what DC motors have at their speed, as Isaac Lab's ``DCMotor`` does.

    The faster a motor turns, the less it pushes that way: from ``stall`` at rest to nothing at
    ``speed``. With ``control_every = 1`` and the model's actuators being motors::

        def control(self, data, action, ctrl):
            wanted = 20.0 * (self.pose + action - data.qpos[7:]) - 0.5 * data.qvel[6:]
            ctrl[:] = dc_motor(wanted, data.qvel[6:], 23.7, 35.5, 30.0)

    A bound that does not depend on the speed is MuJoCo's own: ``forcerange`` of a position servo.

    Args:
        torque: Those wanted, ``(n,)`` [N m].
        velocity: Of the joints, ``(n,)`` [rad/s].
        limit: The greatest torque that is given at any speed [N m].
        stall: That of the torque-speed curve at rest [N m], not below ``limit``.
        speed: Without a load [rad/s].

    Returns:
        ``(n,)``.
    """
    given = np.zeros(len(torque))
    for i in range(len(torque)):
        most = min(max(stall * (1.0 - velocity[i] / speed), 0.0), limit)
        least = max(min(stall * (-1.0 - velocity[i] / speed), 0.0), -limit)
        given[i] = min(max(torque[i], least), most)
    return given


def push(velocity: Any, rng: Any, chance: float, speed: float) -> None:
    """Adds a random velocity now and then: ``push(data.qvel[:2], rng, 0.02, 0.5)``.

    Args:
        velocity: ``(n,)`` of ``data.qvel``, before ``simulate``.
        rng: The method's.
        chance: Per call.
        speed: Each component's greatest change [m/s or rad/s].
    """
    if rng.random() < chance:
        for i in range(len(velocity)):
            velocity[i] += rng.uniform(-speed, speed)


def draw_noise(noise: Any, rng: Any, scale: float) -> None:
    """Draws Gaussian noise for the next observation: in ``reset`` and at the end of ``step``.

    Where the noise is of one observation, ``observation_noise`` says so in a line.

    ``observation`` adds it, ``obs["gyro"] = data.sensor("gyro").data + self.noise``; it has no
    stream of its own, since it may be asked more than once about the same state.

    Args:
        noise: A memory, ``(n,)``.
        rng: The method's.
        scale: Standard deviation.
    """
    for i in range(len(noise)):
        noise[i] = scale * rng.standard_normal()


def touching(data: Any, geoms: Any) -> Any:
    """Finds which geoms touch something, feet the ground say; after ``simulate``.

    Args:
        data: The method's.
        geoms: ``(n,)`` ids, of setup: ``np.array([self.model.geom(name).id for name in FEET])``.

    Returns:
        ``(n,)``: 1 for a geom in a contact without a gap, else 0.
    """
    found = np.zeros(len(geoms))
    for k in range(len(geoms)):
        geom = int(geoms[k])  # a name is none
        for i in range(data.ncon):
            contact = data.contact[i]
            if contact.dist <= 0.0 and (contact.geom1 == geom or contact.geom2 == geom):
                found[k] = 1.0
    return found


def land(air_time: Any, contact: Any, dt: float) -> Any:
    """Counts the time that feet are in the air; once per step.

    A reward for long strides is ``np.sum((landed - 0.2) * (landed > 0))``; ``landed > 0`` is the
    first contact::

        landed = land(self.air_time, touching(data, self.feet), self.dt)

    Args:
        air_time: A memory, ``(n,)``: seconds since a foot has left the ground, 0 where it stands.
        contact: ``(n,)``, not 0 where a foot stands: of :func:`touching`, or of touch sensors.
        dt: A step [s].

    Returns:
        ``(n,)``: how long a foot that has come down in this step was in the air [s], else 0.
    """
    landed = np.zeros(len(air_time))
    for i in range(len(air_time)):
        if contact[i] > 0.0:
            landed[i] = air_time[i]
            air_time[i] = 0.0
        else:
            air_time[i] += dt
    return landed


def in_frame(quat: Any, vector: Any) -> Any:
    """Turns a vector of the world into the frame of a body: ``in_frame(data.qpos[3:7], …)``.

    A robot's own velocity is ``in_frame(data.qpos[3:7], data.qvel[:3])``. Of a free joint the
    angular velocity ``data.qvel[3:6]`` is in the body's frame already.

    Args:
        quat: ``(4,)`` of the body. A free joint's in ``qpos`` is always the state's own, where
            ``xquat`` is one substep behind.
        vector: ``(3,)``.

    Returns:
        ``(3,)``.
    """
    back, turned = np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(back, quat)
    mujoco.mju_rotVecQuat(turned, vector, back)
    return turned


def projected_gravity(quat: Any) -> Any:
    """Tells where down is in the frame of a body: ``(0, 0, -1)`` where it stands upright.

    Args:
        quat: As of :func:`in_frame`.
    """
    return in_frame(quat, np.array([0.0, 0.0, -1.0]))


def move_level(level: Any, up: Any, down: Any, low: float, high: float, rng: Any) -> Any:
    """Moves a level of terrain: one up, one down, or from the top to a random one; in ``reset``.

    legged_gym's rule of a curriculum is up where a robot has walked out of its tile, and down where
    it has walked less than half of what was commanded::

        up, down = self.walked > 4.0, self.walked < 0.5 * self.commanded
        self.level = move_level(self.level, up, down, self.level_low, self.level_high, rng)

    Args:
        level: Of the last episode.
        up: Whether it was easy; comes before ``down``.
        down: Whether it was too hard.
        low, high: The lowest and the highest level: ``self.level_low``, ``self.level_high``.
        rng: The method's.

    Returns:
        From ``low`` to ``high``.
    """
    moved = level + 1.0 if up else (level - 1.0 if down else level + 0.0)
    if moved > high:
        moved = low + rng.integers(0, int(high - low) + 1)
    return max(moved, low)


def ground_height(model: Any, ground: Any, x: Any, y: Any) -> Any:
    """Finds how high a height field stands at a place, on its triangles, as ``mj_ray`` does.

    A foot's clearance is its site's height less that of the ground at its ``x`` and ``y``.

    Args:
        model: ``self.model``.
        ground: The id of the geom, which stands upright in the world and is not turned, of setup:
            ``self.ground = self.model.geom("terrain").id``.
        x, y: In the world; beyond the height field's edge its edge counts [m].

    Returns:
        The height in the world [m].
    """
    field = model.geom_dataid[ground]
    rows, columns = model.hfield_nrow[field], model.hfield_ncol[field]
    half_x, half_y = model.hfield_size[field, 0], model.hfield_size[field, 1]
    u = (x - model.geom_pos[ground, 0] + half_x) * (columns - 1) / (2.0 * half_x)
    v = (y - model.geom_pos[ground, 1] + half_y) * (rows - 1) / (2.0 * half_y)
    column = min(max(int(u), 0), columns - 2)
    row = min(max(int(v), 0), rows - 2)
    u, v = min(max(u - column, 0.0), 1.0), min(max(v - row, 0.0), 1.0)
    at = model.hfield_adr[field] + row * columns + column
    here = np.float64(model.hfield_data[at])
    across = np.float64(model.hfield_data[at + columns + 1])
    if u >= v:  # each cell is two triangles, on this side and that of its diagonal
        ahead = np.float64(model.hfield_data[at + 1])
        height = here + u * (ahead - here) + v * (across - ahead)
    else:
        aside = np.float64(model.hfield_data[at + columns])
        height = here + v * (aside - here) + u * (across - aside)
    return model.geom_pos[ground, 2] + model.hfield_size[field, 2] * height


def height_scan(model: Any, ground: Any, place: Any, quat: Any, points: Any) -> Any:
    """Measures how far below a robot the ground is, at points that turn with its heading alone.

    It sees the height field alone, in no more time than the points' places take::

        def setup(self):
            self.ground = self.model.geom("terrain").id
            self.points = terrain.grid_pattern()  # (187, 2)

        def observation(self, data, obs):
            scan = height_scan(self.model, self.ground, data.qpos[:3], data.qpos[3:7], self.points)
            obs["scan"] = np.clip(scan - 0.5, -1.0, 1.0)

    Args:
        model, ground: As of :func:`ground_height`.
        place: ``(3,)`` of the robot.
        quat: ``(4,)`` of the robot.
        points: ``(n, 2)`` ahead and to the left [m]: of :func:`.terrain.grid_pattern`.

    Returns:
        ``(n,)``: ``place``'s height above the ground at each point [m].
    """
    ahead_x = 1.0 - 2.0 * (quat[2] * quat[2] + quat[3] * quat[3])
    ahead_y = 2.0 * (quat[1] * quat[2] + quat[0] * quat[3])
    length = np.sqrt(ahead_x * ahead_x + ahead_y * ahead_y)
    if length > 0.0:
        ahead_x, ahead_y = ahead_x / length, ahead_y / length
    else:
        ahead_x, ahead_y = 1.0, 0.0
    found = np.zeros(len(points))
    for i in range(len(points)):
        x = place[0] + ahead_x * points[i, 0] - ahead_y * points[i, 1]
        y = place[1] + ahead_y * points[i, 0] + ahead_x * points[i, 1]
        found[i] = place[2] - ground_height(model, ground, x, y)
    return found
