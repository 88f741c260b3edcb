"""The planar arm of manipulator and stacker."""

import numpy as np

from pyfastenv.suites.dm_control.base import SuiteTask, pick

JOINTS = (
    "arm_root", "arm_shoulder", "arm_elbow", "arm_wrist",
    "finger", "fingertip", "thumb", "thumbtip",
)  # fmt: skip


class ArmTask(SuiteTask):
    frame_skip = 10
    objects: tuple[str, ...] = ()  # bodies, each on the joints <name>_x, _y, _z

    def setup(self):
        self.arm = [self.model.joint(name).id for name in JOINTS]
        self.arm_qpos, self.arm_qvel = self.addresses(JOINTS)
        self.object_ids = [self.model.body(name).id for name in self.objects]

    def addresses(self, joints):
        """The addresses of joints in qpos and qvel."""
        ids = [self.model.joint(name).id for name in joints]
        return self.model.jnt_qposadr[ids], self.model.jnt_dofadr[ids]

    def draw_arm(self, data, rng):
        for joint in self.arm:
            low, high = -np.pi, np.pi
            if self.model.jnt_limited[joint]:
                low, high = self.model.jnt_range[joint]
            data.qpos[self.model.jnt_qposadr[joint]] = rng.uniform(low, high)
        data.joint("finger").qpos[:] = data.joint("thumb").qpos

    def distance(self, data, first, second):
        """Between two sites."""
        return np.linalg.norm(data.site_xpos[first] - data.site_xpos[second])

    def pose(self, data, body):
        """In the plane: x, z and two numbers of the quaternion."""
        position, quaternion = data.xpos[body], data.xquat[body]
        return (position[0], position[2], quaternion[0], quaternion[2])

    def observation(self, data, obs):
        angles = pick(data.qpos, self.arm_qpos)
        sines = np.empty((8, 2))
        sines[:, 0] = np.sin(angles)
        sines[:, 1] = np.cos(angles)
        obs["arm_pos"] = sines
        obs["arm_vel"] = pick(data.qvel, self.arm_qvel)
        obs["touch"] = np.log1p(data.sensordata)
        obs["hand_pos"] = self.pose(data, self.hand)
