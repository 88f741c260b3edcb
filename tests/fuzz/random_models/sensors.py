"""Sensors of all kinds that MuJoCo computes itself, on whatever the model has."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import partial

from random_models.dice import text
from random_models.scene import Element, Scene

OF_SITES = ("accelerometer", "gyro", "velocimeter", "force", "torque", "magnetometer", "touch")
OF_FRAMES = (
    "framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel",
    "framelinacc", "frameangacc",
)  # fmt: skip
WITHOUT_REFERENCE = ("framelinacc", "frameangacc")
OF_JOINTS = ("jointpos", "jointvel", "jointactuatorfrc")
OF_JOINT_LIMITS = ("jointlimitpos", "jointlimitvel", "jointlimitfrc")
OF_TENDON_LIMITS = ("tendonlimitpos", "tendonlimitvel", "tendonlimitfrc")
OF_SUBTREES = ("subtreecom", "subtreelinvel", "subtreeangmom")
OF_BALLS = ("ballquat", "ballangvel")
OF_TENDONS = ("tendonpos", "tendonvel", "tendonactuatorfrc")
OF_ACTUATORS = ("actuatorpos", "actuatorvel", "actuatorfrc")
OF_DISTANCES = ("distance", "normal", "fromto")
OF_THE_WORLD = ("clock", "e_potential", "e_kinetic")
CONTACT_DATA = (
    "found", "force", "torque", "dist", "pos", "normal", "tangent", "linvel", "angvel",
)  # fmt: skip
REDUCTIONS = ("none", "mindist", "maxforce", "netforce")
SENSING = 0.5  # of the models


class _Objects:
    """What of the model sensors can be attached to."""

    def __init__(self, scene: Scene) -> None:
        self.cameras = [camera.get("name", "") for camera in scene.root.iter("camera")]
        self.geoms = [geom.get("name", "") for geom in scene.root.iter("geom") if geom.get("name")]
        self.limited = [
            joint.get("name", "") for joint in scene.root.iter("joint")
            if joint.get("range") and joint.get("name")
        ]  # fmt: skip
        tendons = list(scene.root.iterfind("tendon/*"))
        self.tendons = [tendon.get("name", "") for tendon in tendons]
        self.limited_tendons = [t.get("name", "") for t in tendons if t.get("range")]
        self.actuators = [a.get("name", "") for a in scene.root.iterfind("actuator/*")]
        frames = {"body": scene.bodies, "xbody": scene.bodies, "geom": self.geoms,
                  "site": scene.sites, "camera": self.cameras}  # fmt: skip
        self.frames = {kind: names for kind, names in frames.items() if names}


def _attached(scene: Scene, names: list[str], kinds: tuple[str, ...], attribute: str) -> Element:
    return Element(scene.dice.choice(kinds), {attribute: scene.dice.choice(names)})


def _frame(scene: Scene, objects: _Objects) -> Element:
    dice = scene.dice
    kind, attached = dice.choice(OF_FRAMES), dice.choice(list(objects.frames))
    sensor = Element(kind, objtype=attached, objname=dice.choice(objects.frames[attached]))
    if kind not in WITHOUT_REFERENCE and dice.maybe(0.4):
        reference = dice.choice(list(objects.frames))
        sensor.set("reftype", reference)
        sensor.set("refname", dice.choice(objects.frames[reference]))
    return sensor


def _distance(scene: Scene, objects: _Objects) -> Element:
    dice = scene.dice
    geom1, geom2 = dice.sample(objects.geoms, 2)
    sensor = Element(dice.choice(OF_DISTANCES), geom1=geom1, geom2=geom2)
    sensor.set("cutoff", text(dice.pick(0.1, 1, 5)))
    return sensor


def _contact(scene: Scene, objects: _Objects) -> Element:
    dice = scene.dice
    data = [name for name in CONTACT_DATA if dice.maybe(0.5)] or ["found"]
    sensor = Element("contact", data=" ".join(data), num=text(dice.randint(1, 4)))
    moves = "linvel" in data or "angvel" in data
    sensor.set("reduce", dice.choice(REDUCTIONS[:-1] if moves else REDUCTIONS))
    if objects.geoms and dice.maybe(0.5):
        sensor.set("geom1", dice.choice(objects.geoms))
    elif dice.maybe(0.5):
        sensor.set(dice.pick("body1", "subtree1"), dice.choice(scene.bodies))
    elif scene.sites and dice.maybe(0.5):
        sensor.set("site", dice.choice(scene.sites))
    if dice.maybe(0.3):
        sensor.set(dice.pick("body2", "subtree2"), dice.choice(scene.bodies))
    return sensor


def _inside(scene: Scene, objects: _Objects) -> Element:
    kind = scene.dice.choice(list(objects.frames))
    name = scene.dice.choice(objects.frames[kind])
    return Element("insidesite", site=scene.dice.choice(scene.sites), objtype=kind, objname=name)


def _makers(scene: Scene, objects: _Objects) -> list[tuple[float, Callable[[], Element]]]:
    """Ways to draw a sensor of this model, and how often each is taken."""
    balls = [name for name, kind in scene.joints if kind == "ball"]
    named = [
        (4.0, scene.sites, OF_SITES, "site"), (2.0, scene.scalar_joints(), OF_JOINTS, "joint"),
        (1.0, objects.limited, OF_JOINT_LIMITS, "joint"), (1.0, balls, OF_BALLS, "joint"),
        (1.0, objects.tendons, OF_TENDONS, "tendon"),
        (0.7, objects.limited_tendons, OF_TENDON_LIMITS, "tendon"),
        (1.5, objects.actuators, OF_ACTUATORS, "actuator"),
        (1.5, scene.bodies, OF_SUBTREES, "body"), (0.5, scene.sites, ("rangefinder",), "site"),
    ]  # fmt: skip
    makers: list[tuple[float, Callable[[], Element]]] = [
        (weight, partial(_attached, scene, names, kinds, attribute))
        for weight, names, kinds, attribute in named
        if names
    ]
    makers.append((5.0, partial(_frame, scene, objects)))
    makers.append((0.7, lambda: Element(scene.dice.choice(OF_THE_WORLD))))
    makers.append((0.5, partial(_contact, scene, objects)))
    if len(objects.geoms) > 1:
        makers.append((0.5, partial(_distance, scene, objects)))
    if scene.sites:
        makers.append((0.3, partial(_inside, scene, objects)))
        if objects.cameras:
            cameras = {"site": scene.dice.choice(scene.sites), "camera": objects.cameras[0]}
            makers.append((0.3, lambda: Element("camprojection", cameras)))
    return makers


def add_sensors(scene: Scene) -> None:
    """Adds sensors to half of the models; comes last, so that the others are what they were."""
    dice = scene.dice
    if not dice.maybe(SENSING):
        return
    body = scene.root.find(".//body")
    if body is not None and dice.maybe(0.3):
        fixed = {"name": "camera1", "pos": "0 0 1", "resolution": "40 30"}
        ET.SubElement(body, "camera", fixed, mode=dice.pick("fixed", "track", "trackcom"))
    option = scene.root.find("option")
    if option is not None and dice.maybe(0.2):
        option.set("magnetic", dice.pick("0 0 0", "0 0.5 0", "0.1 -0.5 0.2"))
    makers = _makers(scene, _Objects(scene))
    weights = [weight for weight, _ in makers]
    for _ in range(dice.pick(1, 2, 3, 5, 8, 13)):
        sensor = dice.choices(makers, weights)[0][1]()
        scene.section("sensor").append(sensor)
        directions = ("quat", "axis", "normal", "contact")
        takes_cutoff = not sensor.tag.endswith(directions) and sensor.get("cutoff") is None
        if takes_cutoff and dice.maybe(0.15):
            sensor.set("cutoff", text(dice.pick(0.1, 1, dice.number(0.01, 5))))
        if dice.maybe(0.1):
            sensor.set("noise", "0.1")
