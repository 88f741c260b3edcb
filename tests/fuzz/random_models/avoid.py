"""Takes a known cause of differences out of random models, to look for what is behind it."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

Element = ET.Element


def _upright(root: Element) -> None:
    """No capsule stands exactly upright, or lies exactly along another."""
    for number, geom in enumerate(root.iter("geom")):
        if geom.get("type") != "capsule":
            continue
        odd = 0.0313 + 0.0017 * number
        if "fromto" in geom.attrib:
            ends = [float(x) for x in geom.attrib["fromto"].split()]
            geom.set("fromto", " ".join(repr(x + odd * (i == 3)) for i, x in enumerate(ends)))
        else:
            geom.set("quat", f"1 {odd} {odd / 3} 0.4")


def _force_range(root: Element) -> None:
    """No clamp of joints' actuator forces with implicitfast."""
    option = root.find("option")
    if option is not None and option.get("integrator") == "implicitfast":
        for joint in root.iter("joint"):
            joint.attrib.pop("actuatorfrcrange", None)


def _no_time(root: Element) -> None:
    """No activation without a time constant."""
    for actuator in root.iterfind("actuator/*"):
        for key in ("dynprm", "timeconst"):
            if key in actuator.attrib and float(actuator.attrib[key]) < 1e-3:
                actuator.set(key, "0.001")


def _velocity_gain(root: Element) -> None:
    """No gain that depends on the velocity with implicitfast."""
    for actuator in root.iterfind("actuator/general"):
        gains = actuator.get("gainprm", "1").split()
        actuator.set("gainprm", " ".join([*gains[:2], "0"][: len(gains)]))


def _midphase(root: Element) -> None:
    """No bounding volumes."""
    option = root.find("option")
    if option is None:
        option = ET.SubElement(root, "option")
    flag = option.find("flag")
    (ET.SubElement(option, "flag") if flag is None else flag).set("midphase", "disable")


def _pgs(root: Element) -> None:
    """No other solver than Newton."""
    option = root.find("option")
    if option is not None:
        option.set("solver", "Newton")


AVOIDED: dict[str, Callable[[Element], None]] = {
    "upright": _upright,
    "force_range": _force_range,
    "no_time": _no_time,
    "velocity_gain": _velocity_gain,
    "midphase": _midphase,
    "pgs": _pgs,
}
