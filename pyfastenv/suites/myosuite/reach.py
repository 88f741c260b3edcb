"""Sites of a limb are brought to places: a finger's tip, all of a hand's, an arm's.

Formulas: MyoSuite 2.11.6, envs/myo/myobase/reach_v0.py and myoedits.
"""

import mujoco
import numpy as np

from pyfastenv.suites.myosuite.base import Muscles, length, myosuite_file
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.rewards import reward_terms


class Reach(Muscles):
    """Bring sites to their places.

    Attributes:
        sites: Their names.
        target_low: The least of what is drawn for their places, ``(3 * sites,)`` [m].
        target_high: The greatest.
        near: Within which distance they are there, by site [m].
        far: Beyond which distance an episode ends, by site [m].
    """

    max_episode_steps = 100
    sites: tuple[str, ...] = ("IFtip",)
    target_low: tuple[float, ...] = (0.2, 0.05, 0.2)
    target_high: tuple[float, ...] = target_low
    near, far = 0.0125, 0.35

    def __init_subclass__(cls, **arguments):
        cls.target = memory(3 * len(cls.sites))
        super().__init_subclass__(**arguments)

    def setup(self):
        super().setup()
        self.tips = np.array([self.model.site(name).id for name in self.sites])

    def reset(self, data, rng):
        self.rest()
        self.target[:] = rng.uniform(self.target_low, self.target_high)
        data.qpos[:] = self.start

    def places(self, data):
        """Where the sites are, one behind the other."""
        places = np.zeros(3 * len(self.tips))
        for i in range(len(self.tips)):
            places[3 * i : 3 * i + 3] = data.site_xpos[self.tips[i]]
        return places

    @reward_terms(reach=1.0, bonus=4.0, penalty=50.0)
    def step(self, data, action, info):
        self.advance(data, action)
        gap, count = length(self.target - self.places(data)), len(self.tips)
        is_far = data.time > 2 * self.dt and gap > self.far * count
        info["solved"] = gap < count * self.near
        terms = {
            "reach": -1.0 * gap,
            "bonus": 1.0 * (gap < 2 * (count * self.near)) + 1.0 * (gap < count * self.near),
            "penalty": -1.0 * is_far,
        }
        return terms, {"far": is_far}

    def observation(self, data, obs):
        places = self.places(data)
        obs["qpos"] = data.qpos
        obs["qvel"] = data.qvel * self.dt
        obs["tip_pos"] = places
        obs["reach_err"] = self.target - places
        self.observe_muscles(data, obs)


class FingerReachFixed(Reach, actuators=5):
    """An index finger of four joints and five muscles."""

    file = "simhive/myo_sim/finger/myofinger_v0.xml"


class FingerReachRandom(FingerReachFixed):
    """The same, to any place."""

    target_low, target_high = (0.1, -0.1, 0.1), (0.27, 0.1, 0.3)


class MotorFingerReachFixed(FingerReachFixed):
    """A finger that motors pull."""

    file = "simhive/myo_sim/finger/motorfinger_v0.xml"
    frame_skip, max_episode_steps = 5, 200


class MotorFingerReachRandom(MotorFingerReachFixed):
    """The same, to any place."""

    target_low, target_high = FingerReachRandom.target_low, FingerReachRandom.target_high


class HandReachFixed(Reach, actuators=39):
    """The tips of a hand's five fingers."""

    file = "envs/myo/assets/hand/myohand_pose.xml"
    sites = ("THtip", "IFtip", "MFtip", "RFtip", "LFtip")
    target_low = target_high = (
        -0.165, -0.537, 1.495, -0.151, -0.547, 1.455, -0.146, -0.547, 1.447,
        -0.148, -0.543, 1.445, -0.148, -0.528, 1.434,
    )  # fmt: skip
    far = 0.044


class HandReachRandom(HandReachFixed):
    """The same, to any places."""

    target_low = tuple(
        np.subtract(HandReachFixed.target_low, (0.02, 0.04, 0.04, *(0.04, 0.02, 0.01) * 4))
    )
    target_high = tuple(
        np.add(HandReachFixed.target_low, (0.04, 0.02, 0.04, *(0.04, 0.02, 0.01) * 4))
    )
    far = 0.034


class ArmReachFixed(Reach, actuators=34):
    """The tip of an arm's index finger; all fingers are stiff."""

    file = "simhive/myo_sim/arm/myoarm.xml"
    max_episode_steps = 150
    target_low = target_high = (-0.175, -0.245, 1.405)
    far = 1.0

    def model(self):
        """MyoSuite's arm, whose fingers' bones are bodies without joints."""
        spec = mujoco.MjSpec.from_file(str(myosuite_file(f"myosuite/{self.file}")))
        tip = spec.site("IFtip")
        tip_size, tip_place = tip.size * 2, tip.pos.copy()
        for root in ("firstmc", "secondmc", "thirdmc", "fourthmc", "fifthmc"):
            bones, bone = [], spec.body(root).first_body()
            while bone is not None:
                meshes = [g.name for g in bone.geoms if g.type == mujoco.mjtGeom.mjGEOM_MESH]
                bones.append((bone.name, bone.pos.copy(), meshes))
                bone = bone.first_body()
            spec.delete(spec.body(root).first_body())
            body = spec.body(root)
            for name, place, meshes in bones:
                body = body.add_body(name=name, pos=place)
                for mesh in meshes:
                    body.add_geom(meshname=mesh, name=name, type=mujoco.mjtGeom.mjGEOM_MESH)
                if name == "distph2":
                    body.add_site(name="IFtip", size=tip_size, pos=tip_place)
        spec.compile()
        written = mujoco.MjSpec.from_string(spec.to_xml())  # as MyoSuite does, with fewer digits
        written.modelfiledir = spec.modelfiledir
        return written.compile()


class ArmReachRandom(ArmReachFixed):
    """The same, to any place."""

    target_low = (-0.175 - 0.175, -0.245 - 0.175, 1.405 - 0.425)
    target_high = (-0.175 + 0.175, -0.245 + 0.175, 1.405 + 0.425)
