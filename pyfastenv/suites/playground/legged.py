"""The base of Playground's robots on legs: model, start, feet, kicks and pushes.

Formulas: MuJoCo Playground 0.2, _src/locomotion, base.py and joystick.py of each robot.
"""

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.base import Robot
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.symmetry import (
    AXIAL_VECTOR,
    SCALAR,
    VECTOR,
    Symmetry,
    actuator_mirror,
    joined,
    joint_mirror,
    mirror,
    site_mirror,
)

TORSO = ("gyro", "local_linvel", "accelerometer", "upvector", "global_linvel", "global_angvel")


class Legged(Robot):
    """A robot of Playground's that has a trunk and legs, and position servos in all joints.

    What a subclass says: ``joints`` and ``feet``, how many; the other class attributes. What an
    observation shows of actions and feet is what was before its step, as in Playground: so a step
    begins with ``remember`` and has ``feel`` after the physics.

    Attributes:
        scene: The model's file, for :func:`playground_file`.
        timestep: Of the physics [s].
        ccd_iterations: At most, of collisions of convex shapes; 0: the model's.
        keyframe: At which episodes start; its joints are the default pose.
        trunk, imu: The body that is kicked; the site of its sensors.
        sensors: Those that are read, beside the feet's; the others go, since they cost time.
        soles: Sites under the feet.
        stands: For each foot the geoms on which it stands.
        collisions: Pairs of geoms whose touch is looked at, too.
        stiffness: Of the position servos, one for all or one each [Nm/rad]; 0: the model's.
        damping: Of the joints [Nm s/rad]; 0: the model's.
        action_scale: How far an action of 1 moves a servo's target from the default pose [rad].
        soft_limit: Share of joints' ranges beyond which they cost, about the range's middle.
        place: Greatest distance of the start from the origin, along each axis [m].
        heading: Greatest angle of the start's heading [rad].
        speed: Greatest velocities of the trunk at the start [m/s, rad/s].
        holds: Whether servos hold the start's pose before the first step.
        bend: The least and the most that the start's joint angles are multiplied with.
        kick: Greatest speed of kicks [m/s], forces of half a sine on the trunk; 0: none.
        kick_least: The least [m/s].
        kick_every, kick_duration: The least and the most [s].
        push_speed: The least and the most of what pushes add to the trunk's velocity [m/s].
        push_velocity: The most that they add to each of its velocities, up or down, as mjlab's
            pushes do: along the world's axes [m/s], about its own axes [rad/s].
        push_every: The least and the most [s]; an episode has one of its own.
    """

    trunk, imu = "", "imu"
    frame_skip, timestep = 5, 0.004
    sensors: tuple[str, ...] = TORSO
    soles: tuple[str, ...] = ()
    stands: tuple[tuple[str, ...], ...] = ()
    stiffness: float | tuple[float, ...] = 0.0
    damping, action_scale, soft_limit = 0.0, 0.5, 0.95
    place, heading, speed, bend, holds = 0.0, 0.0, 0.0, (1.0, 1.0), False
    kick, kick_least, kick_every, kick_duration = 0.0, 0.0, (1.0, 3.0), (0.05, 0.2)
    push_speed, push_velocity, push_every = (0.0, 0.0), (0.0,) * 6, (5.0, 10.0)

    kick_for, kick_speed, kick_direction = memory(), memory(), memory(2)
    kick_wait, steps_since_kick, steps_of_kick = memory(), memory(), memory()
    push_steps, push_in = memory(), memory()

    def __init_subclass__(cls, joints=0, feet=0, **arguments):
        for name in ("contact", "last_contact", "landed", "air_time", "swing_peak") if feet else ():
            setattr(cls, name, memory(feet))
        super().__init_subclass__(actions=joints, **arguments)

    def model(self):
        """Playground's, with these gains."""
        model = super().model()
        if self.damping > 0.0:
            model.dof_damping[6:] = self.damping
        if np.max(self.stiffness) > 0.0:
            model.actuator_gainprm[:, 0] = self.stiffness
            model.actuator_biasprm[:, 1] = -model.actuator_gainprm[:, 0]
        return model

    def read_sensors(self):
        return (*self.sensors, *(f"{sole}_global_linvel" for sole in self.soles))

    def setup(self):
        super().setup()
        model, self.pose = self.model, self.home[7:].copy()
        low, high = model.jnt_range[1:].T
        middle, reach = 0.5 * (low + high), 0.5 * self.soft_limit * (high - low)
        self.lowest, self.highest = middle - reach, middle + reach
        self.trunk_id, self.imu_id = model.body(self.trunk).id, model.site(self.imu).id
        self.mass = model.body_subtreemass[self.trunk_id]
        self.sole_ids = np.array([model.site(name).id for name in self.soles])
        sensors = {model.sensor(i).name: model.sensor_adr[i] for i in range(model.nsensor)}
        ground = model.geom("floor").id
        feet = [(foot, name) for foot, names in enumerate(self.stands) for name in names]
        self.foot_of = np.array([foot for foot, _ in feet], np.int64)
        self.foot_geoms = np.array([model.geom(name).id for _, name in feet], np.int64)
        self.grounds = np.full(len(feet), ground)
        speeds = [f"{sole}_global_linvel" for sole in self.soles]
        self.feet_at = np.array([sensors[name] for name in speeds if name in sensors], np.int64)

    def symmetry(self):
        """The mirrors of actions and of all that these robots' observations have, by name."""
        actions, joints = actuator_mirror(self.model), joint_mirror(self.model)
        feet = site_mirror(self.model, self.sole_ids)
        places = mirror(tuple(feet.order), (1, -1, 1))
        vectors = (
            "linvel", "true_linvel", "accelerometer", "gravity", "true_gravity", "upvector",
            "true_upvector", "kick_force",
        )  # fmt: skip
        return Symmetry(
            actions,
            {
                "last_action": actions,
                "torques": actions,
                **dict.fromkeys(vectors, VECTOR),
                **dict.fromkeys(("gyro", "true_gyro", "angvel"), AXIAL_VECTOR),
                "command": mirror((0,), (1, -1, -1)),
                **dict.fromkeys(("joints", "true_joints", "angles"), joints),
                **dict.fromkeys(("joint_velocities", "true_joint_velocities"), joints),
                "errors": joined(*[joints] * 3),
                **dict.fromkeys(("height", "root_height", "kicked"), SCALAR),
                **dict.fromkeys(("contacts", "air_time"), feet),
                **dict.fromkeys(("feet_velocities", "feet_places", "true_feet_places"), places),
                "phase": joined(feet, feet),
                "root": joined(VECTOR, mirror((0,), (1, -1, 1, -1))),  # place and quaternion
            },
        )

    def reset(self, data, rng):
        data.qpos[:] = self.home
        data.qpos[:2] += rng.uniform(-self.place, self.place, 2)
        turn = rng.uniform(-self.heading, self.heading)
        data.qpos[3], data.qpos[6] = np.cos(0.5 * turn), np.sin(0.5 * turn)
        if self.bend[0] < self.bend[1]:
            data.qpos[7:] *= rng.uniform(self.bend[0], self.bend[1], len(self.pose))
        data.qvel[:6] = rng.uniform(-self.speed, self.speed, 6)
        if self.holds:
            data.ctrl[:] = data.qpos[7:]
        self.plan_blows(rng)

    def plan_blows(self, rng):
        """Draws when kicks and pushes come, and how strong kicks are."""
        self.kick_wait = np.rint(rng.uniform(self.kick_every[0], self.kick_every[1]) / self.dt)
        self.kick_for = rng.uniform(self.kick_duration[0], self.kick_duration[1])
        self.kick_speed = rng.uniform(self.kick_least, self.kick)
        self.push_steps = np.rint(rng.uniform(self.push_every[0], self.push_every[1]) / self.dt)
        self.push_in = self.push_steps

    def control(self, action, ctrl):
        ctrl[:] = self.pose + self.action_scale * action

    def is_bent_too_far(self, data):
        """Whether some joint is beyond what its servo can be told."""
        return t.beyond(data.qpos[7:], self.least_target, self.most_target) > 0.0

    def is_kicked(self):
        """Whether a kick is due or under way."""
        return self.steps_since_kick >= self.kick_wait

    def suffer_kicks(self, data, rng):
        """Applies the force of a kick that is under way, in a direction of its own."""
        if self.is_kicked():
            phase = np.pi * self.steps_of_kick * self.dt / self.kick_for
            force = 0.5 * np.sin(phase) * self.mass * self.kick_speed / self.kick_for
            data.xfrc_applied[self.trunk_id, :2] = force * self.kick_direction
            if self.steps_of_kick >= np.rint(self.kick_for / self.dt):
                self.steps_since_kick = 0.0
            self.steps_of_kick += 1.0
        else:
            data.xfrc_applied[self.trunk_id, :2] = 0.0
            self.steps_since_kick += 1.0
            if self.is_kicked():
                self.steps_of_kick = 0.0
                angle = rng.uniform(0.0, 2.0 * np.pi)
                self.kick_direction[:] = np.cos(angle), np.sin(angle)

    def is_pushed(self):
        """Whether this robot is ever pushed."""
        return self.push_speed[1] > 0.0 or t.sizes(self.push_velocity) > 0.0

    def suffer_pushes(self, data, rng):
        """Adds to the trunk's velocities, in a direction of its own, where a push is due."""
        self.push_in -= 1.0
        if self.push_in <= 0.0:
            self.push_in = self.push_steps
            angle = rng.uniform(0.0, 2.0 * np.pi)
            speed = rng.uniform(self.push_speed[0], self.push_speed[1])
            data.qvel[0] += speed * np.cos(angle)
            data.qvel[1] += speed * np.sin(angle)
            if t.sizes(self.push_velocity) > 0.0:
                for i in range(6):
                    most = self.push_velocity[i]
                    data.qvel[i] += rng.uniform(-most, most)

    def remember_feet(self):
        """Begins a step: a foot that stood has not been in the air since."""
        for i in range(len(self.contact)):
            self.last_contact[i] = self.contact[i]
            if self.contact[i] > 0.0:
                self.air_time[i], self.swing_peak[i] = 0.0, 0.0

    def feel(self, data):
        """After the physics: which feet stand, which have come down, for how long they flew."""
        self.contact[:] = self.standing(data)
        heights = self.heights(data)
        for i in range(len(self.contact)):
            self.landed[i] = self.contact[i] * (self.air_time[i] > 0.0)
            self.air_time[i] += self.dt
            self.swing_peak[i] = max(self.swing_peak[i], heights[i])

    def motion(self, data, told):
        """How a robot under a joystick moves, as rewards and costs.

        Args:
            data: The method's.
            told: The command: forward, sideways [m/s], turning [rad/s].

        Returns:
            How near its velocity and its turning are to the command; the squares of its rising
            [m²/s²], of its rolling [rad²/s²] and of its upright axis' level part.
        """
        linvel = data.sensor("local_linvel").data
        turn_miss = np.square(told[2] - data.sensor("gyro").data[2])
        return (
            t.closeness(t.distance(told[:2], linvel), self.tracking_sigma),
            t.closeness(turn_miss, self.tracking_sigma),
            np.square(data.sensor("global_linvel").data[2]),
            t.squares(data.sensor("global_angvel").data[:2]),
            t.squares(data.sensor("upvector").data[:2]),
        )

    def show_truth(self, data, obs):
        """Writes what critics of robots under joysticks see besides."""
        obs["true_gyro"] = data.sensor("gyro").data
        obs["accelerometer"] = data.sensor("accelerometer").data
        obs["true_gravity"] = -data.site_xmat[self.imu_id, 6:]
        obs["true_linvel"] = data.sensor("local_linvel").data
        obs["angvel"] = data.sensor("global_angvel").data
        obs["true_joints"] = data.qpos[7:] - self.pose
        obs["true_joint_velocities"] = data.qvel[6:]

    def standing(self, data):
        """1 for a foot that stands on the ground, else 0."""
        found, touching = np.zeros(len(self.contact)), t.meet(data, self.foot_geoms, self.grounds)
        for k in range(len(touching)):
            found[self.foot_of[k]] = max(found[self.foot_of[k]], touching[k])
        return found

    def heights(self, data):
        """The feet's [m]."""
        found = np.zeros(len(self.sole_ids))
        for i in range(len(found)):
            found[i] = data.site_xpos[self.sole_ids[i], 2]
        return found

    def ground_speeds(self, data):
        """The feet's squared speeds along the ground [m²/s²]."""
        found = np.zeros(len(self.feet_at))
        for i in range(len(found)):
            at = self.feet_at[i]
            found[i] = np.square(data.sensordata[at]) + np.square(data.sensordata[at + 1])
        return found

    def feet_velocities(self, data):
        """The feet's velocities in the world, one behind the other [m/s]."""
        found = np.zeros(3 * len(self.feet_at))
        for i in range(len(self.feet_at)):
            at = self.feet_at[i]
            found[3 * i : 3 * i + 3] = data.sensordata[at : at + 3]
        return found
