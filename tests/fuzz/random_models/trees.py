"""Kinematic trees: bodies, their joints, inertias and sites, and the fixed world around them."""

import xml.etree.ElementTree as ET

from random_models.dice import text
from random_models.scene import MOST_GEOMS, SEVERAL, Element, Scene
from random_models.shapes import add_geom, add_surface, impedance, reference

DOFS = {"free": 6, "ball": 3, "hinge": 1, "slide": 1}


def _polynomial(scene: Scene, low: float, high: float) -> str:
    """A coefficient, seldom followed by those of higher powers."""
    dice = scene.dice
    first = dice.number(low, high)
    if not dice.maybe(0.15):
        return text(first)
    return text(first, *(dice.number(0, 2) for _ in range(dice.randint(1, 2))))


def _add_joint(scene: Scene, body: Element, kind: str) -> None:
    dice = scene.dice
    joint = ET.SubElement(body, "joint", name=scene.name("joint"), type=kind)
    scene.joints.append((joint.get("name", ""), kind))
    scene.dofs += DOFS[kind]
    scalar = kind in ("hinge", "slide")
    if scalar:
        joint.set("axis", dice.direction())
    if kind != "free" and kind != "slide" and dice.maybe(0.3):
        joint.set("pos", text(*scene.place(0.15)))
    reach = 0.4 if kind == "slide" else 1.2
    if scalar and dice.maybe(0.45):
        low, high = sorted((dice.number(-reach, 0.2), dice.number(0, reach)))
        joint.set("range", text(low, high) if low < high else "-0.5 0.5")
    if kind == "ball" and dice.maybe(0.4):
        joint.set("range", text(0, dice.number(0.2, 2)))
    stiff = 0.25 if kind != "free" else 0.05
    if dice.maybe(stiff):
        joint.set("stiffness", _polynomial(scene, 0, 50))
        if scalar and dice.maybe(0.5):
            joint.set("springref", text(dice.number(-0.5, 0.5)))
    if dice.maybe(0.5 if kind != "free" else 0.1):
        joint.set("damping", _polynomial(scene, 0, 3))
    if dice.maybe(0.35 if kind != "free" else 0.1):
        joint.set("armature", text(dice.pick(0.01, 1, dice.number(0, 0.5))))
    drawn = {
        "frictionloss": text(dice.pick(0, 0.1, dice.number(0, 3))),
        "margin": text(dice.pick(0.01, dice.number(0, 0.3))),
        "solreflimit": reference(dice, rude=scene.rude),
        "solimplimit": impedance(dice),
        "solreffriction": reference(dice, rude=scene.rude),
        "solimpfriction": impedance(dice),
    }
    drawn["actuatorgravcomp"] = "true"
    if scalar:
        bound = dice.number(0.5, 10)
        drawn["actuatorfrcrange"] = text(-dice.pick(bound, dice.number(0.1, 5), 0), bound)
        drawn["ref"] = text(dice.number(-0.3, 0.3))
    for key in dice.some(list(drawn), 0.1):
        joint.set(key, drawn[key])
    if scene.rude and dice.maybe(0.02):
        joint.set("springyield", text(dice.number(0.1, 1)))


def _joint_kinds(scene: Scene, *, root: bool) -> list[str]:
    dice = scene.dice
    if root:
        kind = dice.weighed({"free": 5, "planar": 2, "hinge": 2, "slide": 2, "ball": 1, "none": 1})
    else:
        kind = dice.weighed({"hinge": 6, "slide": 2, "ball": 1.5, "mixed": 1.5, "none": 1})
    if kind == "none":
        return []
    if kind == "planar":
        return ["slide", "slide", "hinge"]
    if kind == "mixed":
        return dice.pick(
            ["hinge", "hinge"], ["slide", "hinge"], ["hinge", "hinge", "hinge"], ["slide", "ball"],
            ["slide", "slide", "ball"], ["hinge", "slide"],
        )  # fmt: skip
    return [kind]


def _add_body(scene: Scene, parent: Element, depth: int, place: list[float]) -> None:
    dice = scene.dice
    body = ET.SubElement(parent, "body", name=scene.name("body"), pos=text(*place))
    scene.bodies.append(body.get("name", ""))
    if dice.maybe(0.25):
        body.set("quat", dice.quat(aligned=scene.aligned))
    if dice.maybe(0.08):
        body.set("gravcomp", text(dice.pick(1, 0.5, dice.number(0, 2))))
    before = scene.dofs
    for kind in _joint_kinds(scene, root=depth == 0):
        if scene.dofs + DOFS[kind] <= scene.most_dofs:
            _add_joint(scene, body, kind)
    if scene.dofs > before or parent.get("name") in scene.moving:
        scene.moving.add(body.get("name", ""))
    if dice.maybe(0.12):
        inertial = ET.SubElement(
            body, "inertial", mass=text(dice.number(0.1, 5)), pos=text(*scene.place(0.1)),
            diaginertia=dice.pick("0.01 0.01 0.01", "0.02 0.015 0.01", "0.1 0.1 0.05"),
        )  # fmt: skip
        if dice.maybe(0.5):
            inertial.set("quat", dice.quat(aligned=scene.aligned))
    reach = add_geom(scene, body, moving=True, centred=dice.maybe(0.75))
    for _ in range(dice.pick(0, 0, 0, 0, 1, 2)):
        add_geom(scene, body, moving=True, centred=False)
    if depth == 0 and dice.maybe(0.5):
        body.set("pos", text(place[0], place[1], reach))  # where it just touches a floor at 0
    if dice.maybe(0.25):
        site = ET.SubElement(body, "site", name=scene.name("site"), pos=text(*scene.place(0.1)))
        scene.sites.append(site.get("name", ""))
        if dice.maybe(0.5):
            site.set("quat", dice.quat(aligned=scene.aligned))
    while depth < 4 and dice.maybe(0.5 - 0.1 * depth):
        if scene.dofs >= scene.most_dofs or len(scene.geoms) >= MOST_GEOMS:
            break
        at = scene.place(0.25)
        _add_body(scene, body, depth + 1, [0.0, 0.0, 0.0] if dice.maybe(0.1) else at)


def add_floor(scene: Scene) -> None:
    """A plane, often not at 0 and at times tilted; fixed shapes and fixed bodies around it."""
    dice = scene.dice
    world = scene.section("worldbody")
    if dice.maybe(0.85):
        floor = ET.SubElement(world, "geom", name="floor", type="plane", size="5 5 1")
        scene.geoms.append(("floor", "world"))
        if dice.maybe(0.35):
            floor.set("pos", text(0, 0, dice.pick(-0.1, 0.05, dice.number(-0.3, 0.1))))
        if dice.maybe(0.12):
            floor.set("quat", dice.pick("1 0.1 0 0", "1 0 -0.05 0.2", "0 1 0 0", "2 0 0 0"))
        add_surface(scene, floor, 0.06)
    for _ in range(dice.pick(0, 0, 0, 1, 1, 2)):
        add_geom(scene, world, moving=False, centred=False)
    if dice.maybe(0.15):
        body = ET.SubElement(world, "body", name=scene.name("body"), pos=text(*scene.place(0.3)))
        scene.bodies.append(body.get("name", ""))
        for _ in range(dice.randint(1, 2)):
            add_geom(scene, body, moving=False, centred=False)
    if dice.maybe(0.12):
        body = ET.SubElement(world, "body", name=scene.name("body"), pos=text(*scene.place(0.3)))
        body.set("mocap", "true")
        scene.bodies.append(body.get("name", ""))
        for _ in range(dice.randint(0, 2)):
            add_geom(scene, body, moving=False, centred=dice.maybe(0.5))


def add_trees(scene: Scene) -> None:
    """One to three trees near each other, some exactly on or in each other; many farther away."""
    dice = scene.dice
    world = scene.section("worldbody")
    near = dice.pick(1, 1, 1, 2, 2, 3)
    dofs = scene.most_dofs - 8 if scene.most_dofs > SEVERAL else 0
    while near > 0 or scene.dofs < dofs:
        place = scene.place(0.4 if near > 0 else 3)
        near -= 1
        place[2] = dice.pick(0.1, 0.2, 0.3, abs(place[2]) + 0.1)
        _add_body(scene, world, 0, place)
    if scene.dofs == 0:
        _add_joint(scene, world.findall("body")[-1], "hinge")
