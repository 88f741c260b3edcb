"""Actuators of all kinds, with all their clamps, on joints, tendons and sites."""

from random_models.dice import Dice, text
from random_models.scene import Element, Scene

KINDS = {"motor": 5, "position": 4, "velocity": 3, "general": 5, "damper": 1.5, "cylinder": 1,
         "intvelocity": 1, "muscle": 2}  # fmt: skip


def _general(scene: Scene, actuator: Element) -> None:
    dice = scene.dice
    dynamics = {"none": 3, "integrator": 2, "filter": 2, "filterexact": 2, "muscle": 0.5}
    gain, bias = {"fixed": 3, "affine": 2}, {"none": 2, "affine": 3}
    kind = dice.weighed(dynamics)
    actuator.set("dyntype", kind)
    if kind != "none":
        actuator.set("dynprm", text(dice.pick(1, 0.1, 0.01, 0, dice.number(0.001, 1))))
        if dice.maybe(0.4):
            actuator.set("actearly", "true")
        if dice.maybe(0.4):
            bound = dice.number(0.1, 2)
            actuator.set("actrange", text(-dice.pick(0, 1, bound), bound))
    actuator.set("gaintype", dice.weighed(gain))
    actuator.set("gainprm", dice.numbers(3, -5, 5))
    actuator.set("biastype", dice.weighed(bias))
    actuator.set("biasprm", dice.pick(dice.numbers(3, -5, 2), "0 0 -1", "0 -5 0", "1"))


def _set_muscle(dice: Dice, actuator: Element) -> None:
    low = dice.number(-0.5, 0.5)
    actuator.set("lengthrange", text(low, low + dice.number(0.05, 1.5)))
    drawn = {
        "timeconst": text(dice.number(0.001, 0.1), dice.number(0.001, 0.1)),
        "tausmooth": text(dice.pick(0, 0.1, dice.number(0, 2))),
        "range": text(dice.number(0.3, 0.9), dice.number(1, 1.6)),
        "force": text(dice.pick(-1, 10, dice.number(0, 200))),
        "scale": text(dice.number(1, 300)),
        "lmin": text(dice.number(0.1, 0.9)),
        "lmax": text(dice.uniform(1.1, 2)),
        "vmax": text(dice.number(0.2, 3)),
        "fpmax": text(dice.number(0.1, 2)),
        "fvmax": text(dice.number(1, 2)),
    }
    for key in dice.some(list(drawn), 0.5):
        actuator.set(key, drawn[key])


def _set_gains(dice: Dice, actuator: Element, kind: str) -> None:
    if kind in ("position", "intvelocity"):
        actuator.set("kp", text(dice.number(0, 80)))
        if dice.maybe(0.5):
            actuator.set("kv", text(dice.number(0, 5)))
        elif dice.maybe(0.2):
            actuator.set("dampratio", text(dice.number(0, 2)))
    if kind == "position" and dice.maybe(0.25):
        actuator.set("timeconst", text(dice.pick(0, 0.05, dice.number(0.001, 0.5))))
    if kind in ("velocity", "damper"):
        actuator.set("kv", text(dice.number(0, 5)))
    if kind == "cylinder":
        actuator.set("timeconst", text(dice.number(0.01, 1)))
        actuator.set("area", text(dice.number(0.1, 5)))
        actuator.set("bias", dice.numbers(3, -3, 1))
    if kind == "muscle":
        _set_muscle(dice, actuator)
    if kind == "intvelocity":
        bound = dice.number(0.1, 2)
        actuator.set("actrange", text(-bound, bound))


def _set_target(scene: Scene, actuator: Element) -> bool:
    """Sets the target that it acts on; returns False if there is none."""
    dice = scene.dice
    scalars = scene.scalar_joints()
    free = [name for name, kind in scene.joints if kind == "free"]
    balls = [name for name, kind in scene.joints if kind == "ball"]
    targets = [("joint", scalars, 8.0), ("jointinparent", scalars, 1.0), ("joint", free, 1.0),
               ("jointinparent", free, 0.3), ("tendon", scene.tendons, 3.0),
               ("site", scene.sites, 1.0)]  # fmt: skip
    if scene.rude or actuator.tag not in ("position", "velocity", "intvelocity"):
        targets += [("joint", balls, 0.7), ("jointinparent", balls, 0.5)]
    takes_sites = actuator.tag != "muscle"
    targets = [t for t in targets if t[1] and (takes_sites or t[0] != "site")]
    if not targets:
        return False
    chosen = dice.choices(range(len(targets)), [share for *_, share in targets])[0]
    attribute, names, _ = targets[chosen]
    actuator.set(attribute, dice.choice(names))
    if names is free or names is balls or attribute == "site":
        actuator.set("gear", dice.pick("0 0 1 0 0 0", "1 0 0 0 0 0", dice.numbers(6, -3, 3)))
    elif dice.maybe(0.4):
        actuator.set("gear", text(dice.pick(1, -1, 0, 10, dice.number(-20, 20))))
    return True


def add_actuators(scene: Scene) -> None:
    dice = scene.dice
    for _ in range(dice.pick(0, 1, 1, 2, 2, 3, 4)):
        kind = dice.weighed(KINDS)
        actuator = Element(kind, name=scene.name("actuator"))
        if not _set_target(scene, actuator):
            return
        scene.section("actuator").append(actuator)
        if kind == "general":
            _general(scene, actuator)
        _set_gains(dice, actuator, kind)
        bound = dice.number(0.2, 3)
        if kind in ("damper", "muscle"):
            actuator.set("ctrlrange", text(0, dice.pick(1, bound)))
        elif dice.maybe(0.6):
            actuator.set("ctrlrange", text(-dice.pick(bound, 0, 1), bound))
        if dice.maybe(0.25):
            force = dice.number(0.1, 20)
            actuator.set("forcerange", text(-dice.pick(force, 0, 1), force))
        if dice.maybe(0.3):
            actuator.set("group", dice.pick("1", "2"))
        if actuator.get("site") is None:
            damping = text(*(dice.number(0, 1) for _ in range(dice.randint(1, 3))))
            drawn = {"damping": damping, "armature": "0.05"}
            for key in dice.some(list(drawn), 0.15):
                actuator.set(key, drawn[key])
