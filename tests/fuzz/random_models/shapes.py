"""Geoms: shapes, their sizes, and what their contacts are like."""

import xml.etree.ElementTree as ET

from random_models.dice import Dice, text
from random_models.scene import Element, Scene

MOVING = {"sphere": 5, "capsule": 6, "box": 5, "cylinder": 2.5, "ellipsoid": 2, "mesh": 2}
FIXED = {**MOVING, "plane": 4, "hfield": 2}
SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3, "plane": 3}


def reference(dice: Dice, *, rude: bool = False) -> str:
    """A solref: time constant and damping ratio, or stiffness and damping; rude: one of each."""
    if rude and dice.maybe(0.03):
        return dice.pick("-100 1", "0.02 -10", "0 0")
    if dice.maybe(0.25):
        return text(-dice.number(10, 3000), -dice.number(0.1, 80))
    return text(dice.number(0.002, 0.1), dice.number(0.3, 1.5))


def impedance(dice: Dice) -> str:
    """A solimp, among them those at which its sigmoid is a line, a step or flat."""
    return dice.pick(
        text(dice.number(0.1, 0.95), dice.number(0.8, 0.99), dice.number(0.0005, 0.05)),
        text(dice.number(0.1, 0.95), dice.number(0.8, 0.99), dice.number(0.0005, 0.05),
             dice.number(0, 1), dice.number(1, 4)),
        "0.9 0.9 0.001", "0.8 0.95 0", "0 1 0.01 0.5 1", "0.9 0.95 0.001 0 2", "0.5 0.9 0.1 1 3",
        "0.95 0.8 0.01 0.5 2",
    )  # fmt: skip


def friction(dice: Dice, count: int) -> str:
    """Coefficients of sliding, torsion and rolling; at times none at all."""
    drawn = [dice.number(0, 2), dice.number(0, 0.1), dice.number(0, 0.05), 0.01, 0.01]
    if count == 5:
        drawn = [drawn[0], dice.number(0, 2), drawn[1], drawn[2], dice.number(0, 0.05)]
    return text(*drawn[:count])


def add_surface(scene: Scene, geom: Element, share: float) -> None:
    """Attributes of contacts, each with probability ``share``."""
    dice = scene.dice
    drawn = {
        "friction": friction(dice, dice.pick(1, 3)),
        "condim": dice.pick("1", "3", "4", "6"),
        "margin": text(dice.pick(0, 0.001, 0.01, dice.number(-0.01, 0.05))),
        "gap": text(dice.pick(0.001, 0.01, dice.number(-0.01, 0.03))),
        "solref": reference(dice, rude=scene.rude),
        "solimp": impedance(dice),
        "solmix": text(dice.number(0, 3)),
        "priority": dice.pick("1", "2", "-1"),
        "contype": dice.pick("0", "1", "2", "3"),
        "conaffinity": dice.pick("0", "1", "2", "3"),
    }
    for key in dice.some(list(drawn), share):
        geom.set(key, drawn[key])
    scene.rolls = scene.rolls or geom.get("condim") in ("4", "6")
    if scene.rude and dice.maybe(0.02):
        geom.set("fluidshape", "ellipsoid")


def _mesh(scene: Scene) -> str:
    """A mesh of few vertices, one in aligned scenes is an octahedron or a tetrahedron."""
    dice = scene.dice
    name = scene.name("mesh")
    if scene.aligned:
        vertices = dice.pick(
            ".1 0 0 -.1 0 0 0 .1 0 0 -.1 0 0 0 .1 0 0 -.1",
            "0 0 0 .1 0 0 0 .1 0 0 0 .1",
            ".1 .1 .1 -.1 .1 .1 .1 -.1 .1 .1 .1 -.1 -.1 -.1 .1 -.1 .1 -.1 .1 -.1 -.1 -.1 -.1 -.1",
        )
    else:
        vertices = text(*(dice.uniform(-0.12, 0.12) for _ in range(3 * dice.randint(5, 9))))
    ET.SubElement(scene.section("asset"), "mesh", name=name, vertex=vertices)
    return name


def _hfield(scene: Scene) -> str:
    """A height field's name; its cells are larger or smaller than geoms, some of it is flat."""
    dice = scene.dice
    name = scene.name("hills")
    most = dice.pick(5, 30)
    rows, columns = dice.randint(2, most), dice.randint(2, most)
    rough = dice.maybe(0.6)
    heights = text(
        *(
            dice.pick(0, 1, dice.randint(0, 9)) if rough else int(dice.maybe(0.9))
            for _ in range(rows * columns)
        )
    )
    ET.SubElement(
        scene.section("asset"), "hfield", name=name, nrow=str(rows), ncol=str(columns),
        elevation=heights,
        size=text(1, dice.pick(1, 0.3), dice.pick(0.05, 0.2, 1), dice.pick(0.1, 0.005)),
    )  # fmt: skip
    return name


def _set_size(scene: Scene, geom: Element, kind: str) -> float:
    """Sets a geom's size; returns about how far it reaches."""
    dice = scene.dice
    if kind in ("mesh", "hfield"):
        geom.set(kind, _mesh(scene) if kind == "mesh" else _hfield(scene))
        return 0.1
    if kind == "plane":
        geom.set("size", dice.pick("5 5 1", "0 0 1", ".3 .3 1"))
        return 0.0
    count = SIZES[kind]
    sizes = [dice.pick(0.05, 0.1) if scene.aligned else dice.number(0.03, 0.15)
             for _ in range(count)]  # fmt: skip
    if dice.maybe(0.03):
        sizes[dice.randrange(count)] = dice.pick(1e-3, 1e-6, 0.5)
    if kind in ("capsule", "cylinder") and dice.maybe(0.25):
        ends = [0.0] * 6
        axis = dice.randrange(3)
        ends[3 + axis] = 2 * sizes[1]
        if not scene.aligned:
            ends = [x + dice.uniform(-0.05, 0.05) for x in ends]
        geom.set("size", text(sizes[0]))
        geom.set("fromto", text(*ends))
        return sizes[0]
    geom.set("size", text(*sizes))
    return sizes[0] + sizes[1] if kind == "capsule" else sizes[-1]


def add_geom(scene: Scene, body: Element, *, moving: bool, centred: bool) -> float:
    """A geom of a random shape; returns how far below its centre it reaches if it is not turned.

    Args:
        moving: No planes and height fields.
        centred: At the body's place.
    """
    dice = scene.dice
    kind = dice.weighed(MOVING if moving else FIXED)
    geom = ET.SubElement(body, "geom", name=scene.name("geom"), type=kind)
    reach = _set_size(scene, geom, kind)
    if "fromto" not in geom.attrib:
        if not centred:
            geom.set("pos", text(*scene.place(0.2)))
        if dice.maybe(0.35) and kind not in ("sphere", "hfield"):
            geom.set("quat", dice.quat(aligned=scene.aligned))
    if moving and dice.maybe(0.1):
        geom.set("mass", text(dice.pick(0.01, 1, dice.number(0.1, 20))))
    elif moving and dice.maybe(0.1):
        geom.set("density", dice.pick("10", "500", "5000"))
    if moving and kind != "mesh" and dice.maybe(0.05):
        geom.set("shellinertia", "true")
    add_surface(scene, geom, 0.05)
    scene.geoms.append((geom.get("name", ""), body.get("name", "world")))
    return reach
