"""Apptronik's Apollo follows a joystick.

Formulas: MuJoCo Playground 0.2, _src/locomotion/apollo/joystick.py and base.py.
"""

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.walkers import STATE, Walker
from pyfastenv.tasks.language.commands import MOTION
from pyfastenv.tasks.language.fields import command
from pyfastenv.tasks.language.rewards import reward_terms

_LIMB = "collision_capsule_body"
TANGLES = (
    ("collision_l_hand_plate", f"{_LIMB}_l_thigh"),
    ("collision_r_hand_plate", f"{_LIMB}_r_thigh"),
    ("collision_l_sole", "collision_r_sole"),
    (f"{_LIMB}_l_shin", f"{_LIMB}_r_shin"),
    (f"{_LIMB}_l_thigh", f"{_LIMB}_r_thigh"),
)
PRIVILEGED = (
    "true_gyro", "true_gravity", "true_linvel", "true_joints", "true_joint_velocities", "torques",
    "root",
)  # fmt: skip


class ApolloJoystickFlatTerrain(Walker, joints=32):
    """Apptronik's Apollo walks as it is told; its clock stops where it is to stand."""

    scene = "locomotion/apollo/xmls/scene_mjx_feetonly_flat_terrain.xml"
    keyframe, trunk, soles, collisions = "knees_bent", "torso_link", ("l_foot", "r_foot"), TANGLES
    frame_skip, timestep, holds = 4, 0.005, False
    gait, clock_stops = (1.25, 1.75), True
    observation_dict = {"policy": STATE, "critic": (*STATE, *PRIVILEGED)}
    velocity = command(
        low=(-1.5, -0.8, -1.5),
        high=(1.5, 0.8, 1.5),
        every=(0.02, 20.0),
        standing=(0.1, 0.75, 0.5),
        names=MOTION,
    )
    pose_weights = (
        *(5.0, 5.0, 5.0),  # torso
        *(1.0, 1.0, 1.0),  # neck
        *(1.0, 1.0, 0.1, 1.0, 1.0, 1.0, 1.0) * 2,  # arms
        *(1.0, 1.0, 0.01, 0.01, 1.0, 1.0) * 2,  # legs
    )

    def setup(self):
        super().setup()
        self.most_torque = self.model.jnt_actfrcrange[1:, 1].copy()

    def control(self, action, ctrl):
        ctrl[:] = self.held + self.action_scale * action

    @reward_terms(
        tracking=1.0,
        lin_vel_z=0.0,
        ang_vel_xy=-0.15,
        orientation=-1.0,
        torques=0.0,
        action_rate=0.0,
        energy=0.0,
        feet_phase=1.0,
        alive=0.0,
        termination=0.0,
        pose=-1.0,
        collision=-1.0,
    )
    def step(self, data, action, info, rng):
        self.begin(data, action, rng)
        self.simulate(data)
        self.walk_on()
        told, dt = self.velocity, self.dt
        linvel, angvel = data.sensor("local_linvel").data, data.sensor("gyro").data
        up, forces = data.sensor("upvector").data, data.actuator_force
        follows = t.closeness(t.distance(told[:2], linvel), self.tracking_sigma)
        turns = t.closeness(np.square(told[2] - angvel[2]), self.tracking_sigma)
        path_error = t.off_path(self.heights(data), self.phase, self.max_foot_height)
        fallen = up[2] < 0.0
        terms = {
            "tracking": dt * (follows + 0.5 * turns),
            "lin_vel_z": dt * np.square(linvel[2]),
            "ang_vel_xy": dt * t.squares(angvel[:2]),
            "orientation": dt * t.squares(up[:2]),
            "torques": dt * t.sizes(forces),
            "action_rate": dt * t.distance(action, self.last_action),
            "energy": dt * t.power(data.qvel[6:], forces / self.most_torque),
            "feet_phase": dt * t.closeness(path_error, 0.01),
            "alive": dt * (1.0 - fallen),
            "termination": dt * fallen,
            "pose": dt * self.pose_cost(data),
            "collision": dt * (t.sizes(self.touching(data)) > 0.0),
        }
        return terms, {"fallen": fallen}

    def pose_cost(self, data):
        """Hips may roll where the robot walks sideways; all joints are alike where it stands."""
        sideways = abs(self.velocity[1]) > 0.3
        stands = t.length(self.velocity) < 0.01
        cost = 0.0
        for i in range(len(self.pose)):
            weight = 1.0 if stands else self.pose_weights[i]
            if i == 21 or i == 27:
                weight = 0.01 if sideways else 1.0
            cost += weight * np.square(data.qpos[7 + i] - self.pose[i])
        return cost

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["true_gyro"] = data.sensor("gyro").data
        obs["true_gravity"] = -data.site_xmat[self.imu_id, 6:]
        obs["true_linvel"] = data.sensor("local_linvel").data
        obs["true_joints"] = data.qpos[7:] - self.pose
        obs["true_joint_velocities"] = data.qvel[6:]
        obs["torques"] = data.actuator_force
        obs["root"] = data.qpos[:7]
