"""How a robot mirrors left to right: what a task says of its observations and actions.

    from pyfastenv.tasks.language.symmetry import AXIAL_VECTOR, VECTOR, Symmetry, joint_mirror

    class Quadruped(pyfastenv.Task):
        def symmetry(self):
            joints = joint_mirror(self.model)
            return Symmetry(actions=joints, observations={"gyro": AXIAL_VECTOR, "joints": joints})

The mirror is the plane of x and z, in the world and in the robot: what points to y, its left, turns
around. What points to one side in the world mirrors as what points to one side of the robot does,
for the whole world is mirrored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv.tasks.language.spelling import did_you_mean

_PLANE = np.array([1.0, -1.0, 1.0])
_SCALAR_JOINTS = (2, 3)  # mjJNT_SLIDE, mjJNT_HINGE


@dataclass(frozen=True, eq=False)
class Mirror:
    """Mirrored numbers: element i of them is ``signs[i]`` times element ``order[i]``."""

    order: NDArray[np.int64]  # (n,)
    signs: NDArray[np.float64]  # (n,)

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """The mirrored values, ``(…, n)`` as these."""
        return np.asarray(values[..., self.order] * self.signs)


class Symmetry(NamedTuple):
    """How a task mirrors, which its method ``symmetry(self)`` returns.

    Attributes:
        actions: The mirror of an action's elements.
        observations: By names of observations; those that no network sees may be missing.
    """

    actions: Mirror
    observations: Mapping[str, Mirror]


def _involution(order: NDArray[np.int64], signs: NDArray[np.float64]) -> Mirror:
    twice = order[order]
    for i in np.flatnonzero((twice != np.arange(len(order))) | (signs * signs[order] != 1.0)):
        raise ValueError(
            f"mirrored twice, element {i} would be {signs[i] * signs[order[i]]:+.0f} times element "
            f"{twice[i]}: expected itself"
        )
    return Mirror(order, signs)


def mirror(order: Sequence[int], signs: Sequence[float] = (1.0,)) -> Mirror:
    """A mirror of groups of elements, a group as long as ``signs``.

    ``mirror((0,), (1, -1, 1))`` is a vector's, ``mirror((1, 0, 3, 2))`` that of four feet's
    contacts, ``mirror((1, 0, 3, 2), (1, -1, 1))`` that of their velocities, twelve numbers.

    Args:
        order: For each group, which one it shows in the mirror.
        signs: Of a group's elements, 1 or -1.

    Raises:
        ValueError: A group is missing, a sign is neither, or what is mirrored twice differs.
    """
    groups, size = [int(group) for group in order], len(signs)
    if sorted(groups) != list(range(len(groups))) or not groups:
        raise ValueError(
            f"mirror: expected each group from 0 to {len(groups) - 1} once, got {tuple(order)}"
        )
    if not size or not np.isin(signs, (-1.0, 1.0)).all():
        raise ValueError(f"mirror: expected signs 1 or -1, got {tuple(signs)}")
    elements = np.add.outer(np.multiply(groups, size), np.arange(size)).flatten()
    return _involution(elements, np.tile(np.asarray(signs, np.float64), len(groups)))


SCALAR = mirror((0,))
VECTOR = mirror((0,), (1.0, -1.0, 1.0))
"""The mirror of a velocity, an acceleration, a force, a direction such as gravity's."""
AXIAL_VECTOR = mirror((0,), (-1.0, 1.0, -1.0))
"""The mirror of an angular velocity or a torque."""


def joined(*mirrors: Mirror) -> Mirror:
    """The mirror of numbers that stand one behind the other: ``joined(*[frame] * 15)``."""
    starts = np.cumsum([0, *(len(each.order) for each in mirrors)])
    orders = [each.order + start for each, start in zip(mirrors, starts, strict=False)]
    return Mirror(np.concatenate(orders), np.concatenate([each.signs for each in mirrors]))


def both_sides(one: Mirror) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The order and the signs, ``(2, n)`` each, of numbers as they are and of mirrored ones.

    ``signs[side] * values[order[side]]`` is ``values`` where ``side`` is 0, their mirror image
    where it is 1: in the second half of a stride, say, so that networks learn one half for both.
    """
    same = np.arange(len(one.order))
    return np.array((same, one.order)), np.array((np.ones(len(same)), one.signs))


def joint_mirror(model: Any, tolerance: float = 0.01) -> Mirror:
    """The mirror of a robot's hinges and slides in the model's order, of ``data.qpos[7:]`` say.

    The joint that mirrors another is the one at the mirrored place, with the mirrored axis, in the
    pose ``qpos0``; its sign is that of the axes. What is shown must be relative to a pose that is
    its own mirror image.

    Args:
        model: An ``MjModel`` whose pose ``qpos0`` looks along x, in the plane of x and z.
        tolerance: How far a joint may be from its mirrored place [m].

    Raises:
        ValueError: No joint is there, or none with such an axis, or it mirrors another one.
    """
    return _of_joints(model, np.flatnonzero(np.isin(model.jnt_type, _SCALAR_JOINTS)), tolerance)


def actuator_mirror(model: Any, tolerance: float = 0.01) -> Mirror:
    """The mirror of controls and forces of actuators that move a joint each, as joints mirror.

    Raises:
        ValueError: As there; or an actuator moves something else.
    """
    joints = model.actuator_trnid[:, 0]
    for i, kind in enumerate(model.actuator_trntype):
        if kind != 0:  # mjTRN_JOINT
            raise ValueError(f"actuator_mirror: {model.actuator(i).name!r} moves no joint")
    found = _of_joints(model, joints, tolerance)
    gears = np.sign(model.actuator_gear[:, 0])
    return Mirror(found.order, found.signs * gears * gears[found.order])


def site_mirror(model: Any, sites: ArrayLike, tolerance: float = 0.01) -> Mirror:
    """The mirror of a number for each of these sites, contacts of feet say.

    Args:
        model: As of :func:`joint_mirror`.
        sites: ``(n,)`` ids.
        tolerance: How far a site may be from its mirrored place [m].

    Raises:
        ValueError: No site is there.
    """
    ids = np.asarray(sites)
    places = _posed(model).site_xpos[ids]
    names = [f"site {model.site(int(i)).name!r}" for i in ids]
    order = _partners(places, np.zeros((len(ids), 0)), names, tolerance)
    return _involution(order, np.ones(len(order)))


def flat_symmetry(
    symmetry: Any,
    written: Mapping[str, slice],
    seen: NDArray[np.bool_],
    num_actions: int,
    owner: str,
) -> tuple[Mirror, Mirror]:
    """The mirrors of flat observations and of actions.

    Args:
        symmetry: What the task says.
        written: Where observations stand, by name.
        seen: ``(obs_size,)``: which elements somebody sees.
        num_actions: Elements of an action.
        owner: The task's name.

    Raises:
        TypeError: It is no Symmetry. ValueError: An observation is missing, or of another size.
    """
    if not isinstance(symmetry, Symmetry) or not isinstance(symmetry.observations, Mapping):
        raise TypeError(
            f"{owner}.symmetry: expected it to return Symmetry(actions=…, observations={{…}}), got "
            f"{symmetry!r}"
        )
    _check(symmetry.actions, num_actions, f"{owner}.symmetry: actions")
    order, signs = np.arange(len(seen)), np.ones(len(seen))
    for name, place in written.items():
        if not seen[place].any():
            continue
        if name not in symmetry.observations:
            raise ValueError(
                f"{owner}.symmetry: it does not say how obs[{name!r}] mirrors"
                f"{did_you_mean(name, list(symmetry.observations))}"
            )
        each = symmetry.observations[name]
        _check(each, place.stop - place.start, f"{owner}.symmetry: obs[{name!r}]")
        order[place], signs[place] = place.start + each.order, each.signs
    return Mirror(order, signs), symmetry.actions


def _check(each: Any, size: int, what: str) -> None:
    if not isinstance(each, Mirror):
        raise TypeError(f"{what}: expected a Mirror, of mirror((0,), (1, -1, 1)) say, got {each!r}")
    if len(each.order) != size:
        raise ValueError(f"{what}: expected a mirror of {size} elements, got {len(each.order)}")
    try:
        _involution(each.order, each.signs)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def _posed(model: Any) -> Any:
    import mujoco

    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return data


def _of_joints(model: Any, ids: NDArray[np.int64], tolerance: float) -> Mirror:
    data = _posed(model)
    names = [f"joint {model.joint(int(i)).name!r}" for i in ids]
    axes = data.xaxis[ids]
    # a turn about an axis is mirrored as a turn, not as the axis
    mirrored = axes * np.where(model.jnt_type[ids][:, None] == _SCALAR_JOINTS[0], _PLANE, -_PLANE)
    order = _partners(data.xanchor[ids], axes, names, tolerance)
    return _involution(order, np.sign((mirrored * axes[order]).sum(1)))


def _partners(
    places: NDArray[np.float64], axes: NDArray[np.float64], names: Sequence[str], tolerance: float
) -> NDArray[np.int64]:
    """For each thing which one is at its mirrored place, with its mirrored axis if it has one."""
    apart = np.linalg.norm(places[:, None] * _PLANE - places[None], axis=-1)
    if axes.shape[1]:
        askew = 1.0 - np.abs((axes * _PLANE) @ axes.T)
        apart = np.where(askew < 1e-3, apart, np.inf)
    order: NDArray[np.int64] = apart.argmin(1)
    for i, partner in enumerate(order):
        if not apart[i, partner] <= tolerance:
            raise ValueError(
                f"{names[i]}: nothing is at its mirrored place, {(places[i] * _PLANE).round(4)}"
                + (f" with its mirrored axis, within {tolerance} m" if axes.shape[1] else "")
            )
        if order[partner] != i:
            raise ValueError(
                f"{names[i]}: {names[partner]} is at its mirrored place, but mirrors "
                f"{names[order[partner]]}"
            )
    return order
