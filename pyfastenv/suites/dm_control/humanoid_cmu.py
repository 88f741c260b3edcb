"""The humanoid of CMU's motion capture: stand, walk, run."""

from pyfastenv.suites.dm_control.base import SuiteModel
from pyfastenv.suites.dm_control.humanoid import HumanoidStand


class HumanoidCMUStand(HumanoidStand):
    model = SuiteModel("humanoid_CMU")
    frame_skip = 10
    root = "thorax"
    up = 7
    limbs = ("lhand", "lfoot", "rhand", "rfoot")


class HumanoidCMUWalk(HumanoidCMUStand):
    speed = 1.0


class HumanoidCMURun(HumanoidCMUStand):
    speed = 10.0
