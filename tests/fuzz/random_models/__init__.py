"""Random MJCF: about thirty features, typical ones beside nasty ones.

A model is a function of (seed, number) alone and comes as an XML tree, so that the shrinker can
remove features. Knows MuJoCo's schema and no environment.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from random_models.actuators import add_actuators
from random_models.avoid import AVOIDED
from random_models.constraints import add_equalities, add_pairs, add_tendons
from random_models.dice import Dice, negate_zeros
from random_models.options import add_options
from random_models.scene import MANY, SEVERAL, Scene
from random_models.sensors import add_sensors
from random_models.trees import add_floor, add_trees

RUDE = 0.12  # share of models that may have what lanes refuse
NEGATIVE_ZEROS = 0.1  # share of models in which half of all vectors' zeros are -0
ALIGNED = 0.4
LARGE = 0.02


def draw(seed: int, number: int, avoided: Sequence[str] = ()) -> ET.Element:
    """The n-th model of a run, without known causes of differences (avoid.py)."""
    dice = Dice(f"{seed} {number}")
    most_dofs = MANY if dice.maybe(LARGE) else SEVERAL
    scene = Scene(dice, dice.maybe(RUDE), dice.maybe(ALIGNED), most_dofs)
    ET.SubElement(scene.root, "compiler", angle="radian")
    add_floor(scene)
    add_trees(scene)
    add_tendons(scene)
    add_equalities(scene)
    add_pairs(scene)
    add_actuators(scene)
    add_options(scene)
    add_sensors(scene)
    for name in avoided:
        AVOIDED[name](scene.root)
    zeros = Dice(f"zeros {seed} {number}")  # of their own: other draws stay what they were
    if zeros.maybe(NEGATIVE_ZEROS):
        negate_zeros(scene.root, zeros)
    return scene.root


def render(root: ET.Element) -> str:
    """The model as text, one element a line."""
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"
