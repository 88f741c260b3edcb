"""Contact sensors, added to a model by a line each; methods read them as ``data.sensor(…).data``.

    def model(self):
        spec = mujoco.MjSpec.from_file("robot.xml")
        add_contact_forces(spec, FEET)
        add_self_contacts(spec, "trunk")
        return spec

Which feet stand, how long they were in the air and first contacts: :mod:`.helpers`.
"""

from __future__ import annotations

from collections.abc import Iterable

import mujoco

_FOUND, _FORCE = (
    1 << int(bit)
    for bit in (mujoco.mjtConDataField.mjCONDATA_FOUND, mujoco.mjtConDataField.mjCONDATA_FORCE)
)
_NO_REDUCTION, _NET_FORCE = 0, 3  # mjSpec's numbers of reduce="none" and "netforce"


def add_contact_forces(spec: mujoco.MjSpec, geoms: Iterable[str]) -> None:
    """Adds a sensor of the net contact force of each geom, ``"FOOT_force"``.

    ``data.sensor("FOOT_force").data`` is ``(3,)`` in the world's frame [N]: what the geom presses
    with, so its last number is below 0 where a foot stands, and all are 0 where it does not.

    Args:
        spec: The model's.
        geoms: Their names.
    """
    for geom in geoms:
        _add(spec, f"{geom}_force", mujoco.mjtObj.mjOBJ_GEOM, geom, _FORCE, _NET_FORCE)


def add_self_contacts(spec: mujoco.MjSpec, body: str, name: str = "self_contacts") -> None:
    """Adds a sensor that counts the contacts of a body and its descendants among each other.

    ``data.sensor("self_contacts").data[0]`` is their number.

    Args:
        spec: The model's.
        body: The root's name.
        name: Of the sensor.
    """
    tree = mujoco.mjtObj.mjOBJ_XBODY
    sensor = _add(spec, name, tree, body, _FOUND, _NO_REDUCTION)
    sensor.reftype, sensor.refname = tree, body


def _add(
    spec: mujoco.MjSpec, name: str, kind: mujoco.mjtObj, of: str, data: int, reduce: int
) -> mujoco.MjsSensor:
    return spec.add_sensor(
        name=name,
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=kind,
        objname=of,
        intprm=[data, reduce, 1],
    )
