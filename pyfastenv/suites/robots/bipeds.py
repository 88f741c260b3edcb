"""G1, T1 and the Berkeley Humanoid walk to a clock, as a joystick says, and are pushed."""

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.robots.go1 import Go1Trot
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.symmetry import Mirror

LEGS = 12
ORDER = (0.1, 1.0, 1.0, 0.1, 0.3, 1.0) * 2  # hips' pitch, roll, yaw; knees; ankles' pitch, roll


class Biped(Go1Trot, joints=LEGS, feet=2):
    """A humanoid of Playground's walks as Go1 trots, by its legs; what is above follows no action.

    Its servos hold the default pose there. Where it is to stand it steps on the spot, so that it
    can where it is pushed. Physics takes steps of 4 ms, twice Playground's.

    Attributes:
        flex: By how much more than in the default pose a leg bends in the middle of its swing,
            before actions are added.
        first_leg: The number of the legs' first joint; all twelve stand together.
        least_height: Of the trunk, below which an episode ends, as a share of the start's.
        iterations: Of the solver, at most.
    """

    action_space = gymnasium.spaces.Box(-4.0, 4.0, (LEGS,), np.float64)
    velocity_low, velocity_high = (-1.0, -0.5, -1.0), (1.0, 0.5, 1.0)
    acceleration, phases = (1.0, 1.0, 2.0), (0.0, 0.5)
    stiffness: float | tuple[float, ...] = 0.0
    ccd_iterations, damping, lift = 0, 0.0, 0.0
    tempo, swing, swing_width = 1.5, (0.07, 0.1), 0.06
    tracking_ang_vel_weight, trot_weight, landing_weight = 2.0, 2.0, -0.1
    flex, first_leg, least_height, iterations = 0.6, 0, 0.6, 3

    landing = memory(2)

    def model(self):
        model = super().model()
        model.opt.iterations = self.iterations
        return model

    def setup(self):
        super().setup()
        legs = slice(self.first_leg, self.first_leg + LEGS)
        self.bends = self.pose[legs] * (np.array(self.pose_weights)[legs] < 1.0)

    def sole_height(self):
        """As there; besides, the start's feet touch the ground."""
        data = mujoco.MjData(self.model)
        data.qpos[:] = self.home
        mujoco.mj_kinematics(self.model, data)
        sizes, feet = self.model.geom_size[self.foot_geoms], data.geom_xmat[self.foot_geoms]
        boxes = self.model.geom_type[self.foot_geoms] == mujoco.mjtGeom.mjGEOM_BOX
        reach = np.where(boxes, (abs(feet[:, 6:]) * sizes).sum(1), sizes[:, 0])
        ground = (data.geom_xpos[self.foot_geoms, 2] - reach).min()
        self.home[2] -= ground
        return data.site_xpos[self.sole_ids, 2].min() - ground

    def action_mirror(self):
        """How the legs' servos mirror."""
        whole, legs = super().action_mirror(), slice(self.first_leg, self.first_leg + LEGS)
        return Mirror(whole.order[legs] - self.first_leg, whole.signs[legs])

    def control(self, action, ctrl):
        ctrl[:] = self.pose
        done = self.by_robot(action)
        for i in range(len(done)):
            wave = np.sin(2.0 * np.pi * (self.clock + self.phases[i // 6]))
            bend = self.flex * max(wave, 0.0) * self.bends[i]
            ctrl[self.first_leg + i] += bend + self.action_scale * done[i]

    def is_told(self):
        """Whether the clock runs: always."""
        return True

    def is_low(self, data):
        """Whether the trunk is so low that the episode ends."""
        return data.qpos[2] < self.least_height * self.home[2]


class BerkeleyHumanoidWalk(Biped):
    """The Berkeley Humanoid."""

    scene = "locomotion/berkeley_humanoid/xmls/scene_mjx_feetonly_flat_terrain.xml"
    trunk, soles = "torso", ("l_foot", "r_foot")
    stands = (("l_foot1",), ("r_foot1",))
    pose_weights = (1.0, 1.0, 0.1, 0.1, 0.3, 1.0) * 2
    tempo, swing = 1.75, (0.06, 0.085)


class G1Walk(Biped):
    """Unitree's G1."""

    scene = "locomotion/g1/xmls/scene_mjx_feetonly_flat_terrain.xml"
    keyframe, trunk = "knees_bent", "torso_link"
    soles = ("left_foot", "right_foot")
    stands = (("left_foot",), ("right_foot",))
    pose_weights, flex = (*ORDER, *(0.0,) * 17), 0.8

    def prepare(self, spec):
        """As there; the pelvis' sensors and their site have the names that other robots' have."""
        spec.site("imu_in_pelvis").name = "imu"
        for sensor in spec.sensors:
            sensor.name = sensor.name.removesuffix("_pelvis")
            if sensor.objname == "imu_in_pelvis":
                sensor.objname = "imu"
        super().prepare(spec)


class T1Walk(Biped):
    """Booster's T1. Its legs are 2.5 and 3 times as stiff as Playground's.

    Booster's own gym has 200 Nm/rad, and 50 for ankles, too stiff for steps of 4 ms
    (github.com/BoosterRobotics/booster_gym).
    """

    scene = "locomotion/t1/xmls/scene_mjx_feetonly_flat_terrain.xml"
    trunk, soles = "Trunk", ("left_foot", "right_foot")
    stands = tuple(tuple(f"{side}_foot_{i}" for i in range(1, 5)) for side in ("left", "right"))
    first_leg, pose_weights, flex = 11, (*(0.0,) * 11, *ORDER), 2.5
    # head and arms, waist, legs with ankles
    stiffness = (*(20.0,) * 10, 50.0, *((75.0,) * 4 + (30.0,) * 2) * 2)
