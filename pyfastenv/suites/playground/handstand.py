"""Go1 stands on its front feet, or on its hind feet.

Formulas: MuJoCo Playground 0.2, _src/locomotion/go1/handstand.py and base.py.
"""

import numpy as np

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.go1 import BODY, NOISE, TRUTH, Go1
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.noise import uniform
from pyfastenv.tasks.language.rewards import reward_terms

LIMBS = tuple(
    (f"f{side}_{part}", "floor")
    for side in "lr"
    for part in ("calf1", "calf2", "thigh1", "thigh2", "thigh3", "hip")
)


class Go1Handstand(Go1):
    """Unitree's Go1 stands on its front feet; an action moves the servos' targets on.

    Attributes:
        crouch: Probability that an episode starts crouched and at rest.
        wanted_height: Of the trunk [m].
        nose_up: 1: the nose is to point up, -1: down.
        pose_weights: Of the joints' errors: those of the legs that are in the air.
    """

    max_episode_steps = 500
    scene = "locomotion/go1/xmls/scene_mjx_flat_terrain.xml"
    collisions = LIMBS
    action_scale, soft_limit = 0.3, 0.9
    observation_dict = {"policy": ("linvel", *BODY), "critic": ("linvel", *BODY, *TRUTH)}
    observation_noise = {**NOISE, "joints": uniform(-0.01, 0.01)}
    crouch, wanted_height, nose_up = 0.0, 0.55, -1.0
    pose_weights = (0.0,) * 6 + (1.0,) * 6

    target = memory(12)

    def setup(self):
        super().setup()
        self.crouched = self.model.key("pre_recovery").qpos.copy()

    def reset(self, data, rng):
        super().reset(data, rng)
        if rng.random() < self.crouch:
            data.qpos[2], data.qpos[7:] = self.crouched[2], self.crouched[7:]
            data.qvel[:] = 0.0
            data.ctrl[:] = data.qpos[7:]
        self.target[:] = data.ctrl

    def control(self, action, ctrl):
        ctrl[:] = self.target + self.action_scale * action

    @reward_terms(
        0.0,
        height=1.0,
        orientation=1.0,
        contact=-0.1,
        action_rate=0.0,
        torques=0.0,
        termination=0.0,
        dof_pos_limits=-0.5,
        dof_acc=0.0,
        pose=-0.1,
        stay_still=0.0,
        energy=0.0,
    )
    def step(self, data, action, info):
        self.remember(action)
        self.simulate(data)
        self.target[:] = data.ctrl
        dt, angles, forces, turned = self.dt, data.qpos[7:], data.actuator_force, data.site("imu")
        nose = self.nose_up * turned.xmat[6]
        low = max(self.wanted_height - turned.xpos[2], 0.0)
        fallen, touches = (
            data.sensor("upvector").data[2] < -0.25,
            t.sizes(self.touching(data)) > 0.0,
        )
        terms = {
            "height": dt * np.exp(-low),
            "orientation": dt * np.square(0.5 * nose + 0.5),
            "contact": dt * (t.sizes(self.standing(data)) > 0.0),
            "action_rate": dt * t.distance(action, self.last_action),
            "torques": dt * t.squares(forces),
            "termination": dt * (fallen or touches),
            "dof_pos_limits": dt * t.beyond(angles, self.lowest, self.highest),
            "dof_acc": dt * t.squares(data.qacc[6:]),
            "pose": dt * t.weighted(angles, self.pose, self.pose_weights),
            "stay_still": dt * (t.squares(data.qvel[:2]) + np.square(data.qvel[5])),
            "energy": dt * t.power(data.qvel[6:], forces),
        }
        return terms, {"fallen": fallen, "touches": touches}

    def observation(self, data, obs):
        obs["linvel"] = data.sensor("local_linvel").data
        self.show_body(data, obs)
        self.show_fallen(data, obs)


class Go1Footstand(Go1Handstand):
    """Unitree's Go1 stands on its hind feet.

    As in Playground, it is the front legs whose contact ends the episode here, too.
    """

    wanted_height, nose_up = 0.53, 1.0
    pose_weights = (1.0,) * 6 + (0.0,) * 6
