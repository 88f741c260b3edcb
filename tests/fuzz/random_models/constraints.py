"""Tendons, equality constraints, explicit contact pairs and exclusions."""

import xml.etree.ElementTree as ET

from random_models.dice import text
from random_models.scene import Scene
from random_models.shapes import friction, impedance, reference


def _more_sites(scene: Scene) -> None:
    """Sites on any bodies and on the world, for tendons to run through."""
    dice = scene.dice
    bodies = [scene.section("worldbody"), *scene.root.iter("body")]
    for _ in range(dice.randint(1, 4)):
        site = ET.SubElement(dice.choice(bodies), "site", name=scene.name("site"))
        site.set("pos", text(*scene.place(0.3)))
        scene.sites.append(site.get("name", ""))


def _add_spatial_tendon(scene: Scene) -> None:
    """A path over sites, at times through pulleys or round spheres and cylinders."""
    dice = scene.dice
    _more_sites(scene)
    name = scene.name("tendon")
    tendon = ET.SubElement(scene.section("tendon"), "spatial", name=name)
    scene.tendons.append(name)
    round_geoms = [geom.get("name", "") for geom in scene.root.iter("geom")
                   if geom.get("type") in ("sphere", "cylinder") and geom.get("name")]  # fmt: skip
    for branch in range(dice.pick(1, 1, 1, 2)):
        if branch > 0:
            ET.SubElement(tendon, "pulley", divisor=text(dice.pick(1, 2, dice.number(0.5, 4))))
        sites = dice.sample(scene.sites, min(len(scene.sites), dice.randint(2, 4)))
        for number, site in enumerate(sites):
            if number > 0 and round_geoms and dice.maybe(0.5):
                geom = ET.SubElement(tendon, "geom", geom=dice.choice(round_geoms))
                if dice.maybe(0.5):
                    geom.set("sidesite", dice.choice(scene.sites))
            ET.SubElement(tendon, "site", site=site)


def add_tendons(scene: Scene) -> None:
    """Fixed tendons over hinges and slides, spatial ones over sites."""
    dice = scene.dice
    scalars = scene.scalar_joints()
    for _ in range(dice.pick(0, 0, 0, 1, 1, 2) if scalars else 0):
        name = scene.name("tendon")
        tendon = ET.SubElement(scene.section("tendon"), "fixed", name=name)
        for joint in dice.sample(scalars, min(len(scalars), dice.randint(1, 3))):
            coefficient = text(0 if dice.maybe(0.03) else dice.pick(1, -1, dice.number(-2, 2)))
            ET.SubElement(tendon, "joint", joint=joint, coef=coefficient)
        scene.tendons.append(name)
    for _ in range(dice.pick(0, 0, 0, 0, 1, 1, 2) if scene.sites else 0):
        _add_spatial_tendon(scene)
    all_fixed = scene.root.find("tendon/spatial") is None
    for tendon in scene.root.iterfind("tendon/*"):
        bound = dice.number(0.05, 1)
        drawn = {
            "stiffness": text(dice.number(0, 50)),
            "damping": text(dice.number(0, 3)),
            "frictionloss": text(dice.number(0, 2)),
            "range": text(-bound, bound + 0.1),
            "springlength": dice.pick("0", "0.1", "0 0.3", "-0.1 0.1"),
            "margin": text(dice.number(0, 0.2)),
            "solreflimit": reference(dice, rude=scene.rude),
            "solimplimit": impedance(dice),
            "solreffriction": reference(dice),
            "solimpfriction": impedance(dice),
        }
        if all_fixed or scene.rude:
            drawn["armature"] = text(dice.number(0, 0.5))
        drawn["actuatorfrcrange"] = dice.pick("-3 4", "-0.1 0.1", "-1 0")
        for key in dice.some(list(drawn), 0.25):
            tendon.set(key, drawn[key])


def add_equalities(scene: Scene) -> None:
    dice = scene.dice
    scalars = scene.scalar_joints()
    for _ in range(dice.pick(0, 0, 0, 0, 1, 1, 2)):
        kinds = ["connect", "weld"] * 2
        kinds += ["joint"] * 3 if scalars else []
        kinds += ["tendon"] * 2 if scene.tendons else []
        kind = dice.choice(kinds)
        named = {"joint": scalars, "tendon": scene.tendons}.get(kind)
        attributes = {}
        if named is not None:
            pair = dice.sample(named, min(len(named), dice.randint(1, 2)))
            attributes = {f"{kind}{i + 1}": name for i, name in enumerate(pair)}
            polynomial = [dice.number(-0.3, 0.3), dice.number(-1, 1), *(dice.number(-0.3, 0.3)
                          for _ in range(3))]  # fmt: skip
            attributes["polycoef"] = dice.pick(text(*polynomial), "0 1 0 0 0", "0.1 0 0 0 0")
        elif len(scene.sites) > 1 and dice.maybe(0.3):
            attributes["site1"], attributes["site2"] = dice.sample(scene.sites, 2)
        else:
            pair = dice.sample(scene.bodies, min(len(scene.bodies), dice.randint(1, 2)))
            attributes = {f"body{i + 1}": name for i, name in enumerate(pair)}
            if kind == "connect" or dice.maybe(0.3):
                attributes["anchor"] = text(*scene.place(0.2))
        if kind == "weld" and dice.maybe(0.3):
            attributes["torquescale"] = text(dice.pick(0, 1, dice.number(0, 3)))
        if kind == "weld" and "body1" in attributes and dice.maybe(0.3):
            attributes["relpose"] = f"{text(*scene.place(0.3))} {dice.quat(aligned=scene.aligned)}"
        if dice.maybe(0.2):
            attributes["active"] = "false"
        if dice.maybe(0.3):
            attributes["solref"] = reference(dice, rude=scene.rude)
        if dice.maybe(0.3):
            attributes["solimp"] = impedance(dice)
        ET.SubElement(scene.section("equality"), kind, attributes)


def add_pairs(scene: Scene) -> None:
    """Explicit pairs of geoms of different bodies, of which one at least moves; exclusions."""
    dice = scene.dice
    for _ in range(dice.pick(0, 0, 0, 0, 1, 1, 2)):
        if len(scene.geoms) < 2:
            return
        (geom1, body1), (geom2, body2) = dice.sample(scene.geoms, 2)
        if body1 == body2 or not {body1, body2} & scene.moving:
            continue
        pair = ET.SubElement(scene.section("contact"), "pair", geom1=geom1, geom2=geom2)
        drawn = {
            "condim": dice.pick("1", "3", "4", "6"),
            "friction": friction(dice, 5),
            "margin": text(dice.number(0, 0.1)),
            "gap": text(dice.number(0, 0.05)),
            "solref": reference(dice, rude=scene.rude),
            "solimp": impedance(dice),
        }
        if scene.rude:
            drawn["solreffriction"] = reference(dice)
        for key in dice.some(list(drawn), 0.3):
            pair.set(key, drawn[key])
        scene.rolls = scene.rolls or pair.get("condim") in ("4", "6")
    if len(scene.bodies) > 1 and dice.maybe(0.1):
        body1, body2 = dice.sample(scene.bodies, 2)
        ET.SubElement(scene.section("contact"), "exclude", body1=body1, body2=body2)
