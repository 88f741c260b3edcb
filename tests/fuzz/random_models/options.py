"""Options: integrator, solver, cone, tolerances, flags, medium and memory."""

import xml.etree.ElementTree as ET

from random_models.dice import text
from random_models.scene import Scene
from random_models.shapes import add_surface

OFF = (
    "constraint", "contact", "limit", "gravity", "midphase", "filterparent", "refsafe", "equality",
    "frictionloss", "sensor", "nativeccd", "multiccd", "clampctrl", "eulerdamp", "spring", "damper",
    "warmstart", "actuation", "autoreset", "island",
)  # fmt: skip
ON = ("energy", "fwdinv", "invdiscrete", "diagexact")
RUDELY_ON = ("override", "sleep")


def add_options(scene: Scene) -> None:
    """Adds options of the whole model; comes last, since lanes do not do every combination."""
    dice = scene.dice
    option = ET.Element("option")
    scene.root.insert(0, option)
    integrators = {"Euler": 4.0, "RK4": 2.0, "implicitfast": 4.0}
    if scene.rude:
        integrators["implicit"] = 0.3
    option.set("integrator", dice.weighed(integrators))
    option.set("solver", dice.weighed({"Newton": 7, "PGS": 2, "CG": 0.7}))
    if dice.maybe(0.35):
        option.set("cone", "elliptic")
    step = dice.pick(0.002, 0.002, 0.002, 0.001, 0.005, 0.01, dice.uniform(5e-4, 0.008))
    drawn = {
        "timestep": text(step),
        "gravity": dice.pick("0 0 0", "0 0 -9.81", "0 0 9.81", "1 2 -5", "0 -9.81 0"),
        "impratio": text(dice.pick(0.5, 3, 10, 100)),
        "tolerance": dice.pick("0", "1e-4", "1e-10", "1e-2"),
        "iterations": text(dice.pick(0, 1, 2, 3, 5, 20)),
        "ls_iterations": text(dice.pick(1, 2, 3, 5, 10)),
        "ls_tolerance": dice.pick("0", "0.1", "1e-5"),
    }
    if option.get("solver") == "PGS" and dice.maybe(0.7):
        option.set("iterations", text(dice.randint(5, 40)))
    for key in dice.some(list(drawn), 0.2):
        option.set(key, drawn[key])
    if dice.maybe(0.12):
        medium = {"density": text(dice.pick(0, 1.2, 1000)), "viscosity": text(dice.pick(0, 0.1, 1)),
                  "wind": dice.pick("0 0 0", dice.numbers(3, -5, 5))}  # fmt: skip
        for key, value in medium.items():
            option.set(key, value)
    if dice.maybe(0.05):
        option.set("ccd_iterations", text(dice.pick(5, 20)))
        option.set("ccd_tolerance", dice.pick("1e-3", "1e-8"))
    if dice.maybe(0.1):
        option.set("actuatorgroupdisable", dice.pick("0", "1", "1 2"))
    if dice.maybe(0.06):
        option.set("noslip_iterations", text(dice.randint(1, 20)))
        option.set("noslip_tolerance", dice.pick("0", "1e-6", "1e-3"))
    if dice.maybe(0.1):
        option.set("jacobian", dice.pick("sparse", "sparse", "dense"))
    _add_flags(scene, option)
    if dice.maybe(0.25):
        add_surface(scene, ET.SubElement(scene.section("default"), "geom"), 0.2)
    if scene.rolls and not (scene.rude and dice.maybe(0.05)):
        ET.SubElement(scene.root, "size", memory="8M")


def _add_flags(scene: Scene, option: ET.Element) -> None:
    dice = scene.dice
    flags = dict.fromkeys(dice.some(OFF, 0.03), "disable")
    flags |= dict.fromkeys(dice.some(ON, 0.03), "enable")
    if scene.rude:
        flags |= dict.fromkeys(dice.some(RUDELY_ON, 0.02), "enable")
        if flags.get("override") == "enable":
            option.set("o_margin", text(dice.number(0, 0.05)))
            option.set("o_solref", "0.03 1")
    if flags:
        ET.SubElement(option, "flag", flags)
