"""A model that is being drawn: its XML tree, and the names that later parts refer to."""

import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field

from random_models.dice import Dice

Element = ET.Element
SEVERAL, MANY = 16, 70  # dofs; of 60 and more MuJoCo's Jacobians are sparse
MOST_GEOMS = 12  # more would take seconds of mj_step, unless they are far from each other


@dataclass
class Scene:
    """Attributes:
    rude: May have what lanes refuse by name.
    aligned: Places and turns are on a grid, so that faces, axes and centres coincide.
    most_dofs: Of all trees; nearly so many, if it is more than SEVERAL.
    joints: Names and types.
    geoms: Names and bodies.
    """

    dice: Dice
    rude: bool
    aligned: bool
    most_dofs: int
    root: Element = field(default_factory=lambda: Element("mujoco"))
    joints: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    geoms: list[tuple[str, str]] = field(default_factory=list)
    tendons: list[str] = field(default_factory=list)
    dofs: int = 0
    moving: set[str] = field(default_factory=set)  # bodies that do
    rolls: bool = False  # some contact may have condim 4 or 6
    counts: Counter[str] = field(default_factory=Counter)

    def section(self, tag: str) -> Element:
        """A child of the root, made when it is asked for first."""
        found = self.root.find(tag)
        return ET.SubElement(self.root, tag) if found is None else found

    def name(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"{kind}{self.counts[kind]}"

    def place(self, reach: float) -> list[float]:
        """A point within ``reach``; on a grid of a tenth in aligned scenes."""
        drawn = [self.dice.uniform(-reach, reach) for _ in range(3)]
        return [round(x, 1) for x in drawn] if self.aligned else drawn

    def scalar_joints(self) -> list[str]:
        return [name for name, kind in self.joints if kind in ("hinge", "slide")]
