"""A hand turns things of many shapes and sizes as it is asked to: the tasks of SAR.

Formulas: MyoSuite 2.11.6, envs/myo/myobase/reorient_sar_v0.py (Berg et al. 2023), from which the
sizes are read.
"""

import ast

import mujoco
import numpy as np

from pyfastenv.suites.myosuite.hand import HandPenTwirlRandom
from pyfastenv.suites.packages import package_file

# the kinds of things, and MyoSuite's names of their sizes
KINDS = {
    mujoco.mjtGeom.mjGEOM_CAPSULE: "caps",
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: "ellips",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cyl",
    mujoco.mjtGeom.mjGEOM_BOX: "box",
}


def thing_sizes(name: str) -> np.ndarray:
    """Sizes ``(4, n, 3)`` of the things of one of MyoSuite's classes, by their kinds [m].

    Raises:
        ImportError: There is no myosuite, or none with such a class.
    """
    install = "--no-deps myosuite==2.11.6"
    file = package_file("myosuite", "envs/myo/myobase/reorient_sar_v0.py", install)
    sizes = {}
    for found in ast.walk(ast.parse(file.read_text())):
        if isinstance(found, ast.ClassDef) and found.name == name:
            for node in ast.walk(found):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                    things = ast.literal_eval(node.value).values()  # sizes and colours
                    sizes[ast.unparse(node.targets[0])] = [size for size, _ in things]
    if not sizes.keys() >= {*KINDS.values()}:
        raise ImportError(f"{file} has no sizes of {name}: pip install {install}")
    return np.array([sizes[kind] for kind in KINDS.values()])


class HandReorient8(HandPenTwirlRandom):
    """Turn one of eight things in the palm until it points as its image above does.

    As MyoSuite, it gives a geom another kind and size but not the volume in which MuJoCo looks for
    contacts: what of a thing sticks out of the file's ellipsoid may go through fingers.

    Attributes:
        group: MyoSuite's class, which has the sizes.
        draws_colour: MyoSuite draws a colour, which it does not use.
    """

    file = "envs/myo/assets/hand/myohand_sar.xml"
    model_fields = ("body_quat", "geom_pos", "geom_size", "geom_type")
    tilt_low, tilt_high = (-1.0, -0.8), (1.0, 1.2)
    group, condim, draws_colour = "Geometries8EnvV0", 4, False

    def setup(self):
        super().setup()
        self.kinds, self.sizes = np.array([int(kind) for kind in KINDS]), thing_sizes(self.group)
        self.count = self.sizes.shape[1]
        model = self.model
        thing, image, *ends = (
            model.geom(name).id for name in ("obj", "target", "top", "bot", "t_top", "t_bot")
        )
        model.body_mass[model.geom_bodyid[thing]] = 1.2
        model.geom_condim[thing] = self.condim
        self.things = np.array([thing, image])
        self.tops, self.bottoms = np.array(ends[::2]), np.array(ends[1::2])
        self.pen_length, self.target_length = (
            np.linalg.norm(model.geom_pos[top] - model.geom_pos[bottom])
            for top, bottom in zip(self.tops, self.bottoms, strict=True)
        )

    def draw_goal(self, rng):
        kind = rng.integers(0, 4)
        which = rng.integers(0, self.count)
        if self.draws_colour:
            rng.integers(0, self.count)
        size = self.sizes[kind, which]
        end = 1.3 * size[1] if kind == 0 else size[1] if kind == 2 else size[2]
        for i in range(2):
            self.model.geom_type[self.things[i]] = self.kinds[kind]
            self.model.geom_size[self.things[i]] = size
            self.model.geom_pos[self.tops[i], 2] = end
            self.model.geom_pos[self.bottoms[i], 2] = -end
        super().draw_goal(rng)

    def advance(self, data, action):
        super().advance(data, action)
        mujoco.mj_forward(self.model, data)  # for the muscles' forces

    def pen(self, data):
        along = data.geom_xpos[self.tops[0]] - data.geom_xpos[self.bottoms[0]]
        return along / self.pen_length

    def goal(self, data):
        along = data.geom_xpos[self.tops[1]] - data.geom_xpos[self.bottoms[1]]
        return along / self.target_length

    def observe_muscles(self, data, obs):
        obs["mlen"] = data.actuator_length
        obs["mvel"] = data.actuator_velocity
        obs["mforce"] = data.actuator_force
        super().observe_muscles(data, obs)


class HandReorient100(HandReorient8):
    """The same, of a hundred things."""

    group, condim, draws_colour = "Geometries100EnvV0", 3, True


class HandReorientID(HandReorient100):
    """The same, of a thousand things of such sizes."""

    group = "InDistribution"


class HandReorientOOD(HandReorient100):
    """The same, of a thousand things of other sizes."""

    group = "OutofDistribution"
