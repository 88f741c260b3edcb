"""Arms that grasp: what Panda's and Aloha's share.

Formulas: MuJoCo Playground 0.2, panda.py and base.py in _src/manipulation's folders of
franka_emika_panda and aloha.
"""

from pyfastenv.suites.playground import terms as t
from pyfastenv.suites.playground.base import Robot


class Arms(Robot):
    """Arms, and things before them; an action moves the servos' targets on.

    What a subclass says: ``targets``, a memory of as many numbers as there are servos, and
    ``place``, which lays out an episode's things; ``collisions``, what is not to touch.
    """

    def reset(self, data, rng):
        data.qpos[:], data.ctrl[:] = self.home, self.held
        self.place(data, rng)
        self.targets[:] = data.ctrl

    def control(self, action, ctrl):
        self.aim(ctrl, self.targets, action)

    def move(self, data):
        """The physics of a step."""
        self.simulate(data)
        self.targets[:] = data.ctrl

    def is_clear(self, data):
        """1 where no pair of ``collisions`` touches, else 0."""
        return 1.0 - (t.sizes(self.touching(data)) > 0.0)
