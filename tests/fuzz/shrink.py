"""Makes a failing model smaller: elements, attributes and digits go while it fails.

Knows XML, and of lanes only that a model's bits differ.
"""

import copy
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator

import mujoco
import random_models
from closed_loop import STEPS, compare

Element = ET.Element
REFERENCES = (
    "joint", "jointinparent", "site", "tendon", "geom", "mesh", "hfield", "joint1", "joint2",
    "site1", "site2", "tendon1", "tendon2", "geom1", "geom2", "body1", "body2", "refsite",
    "actuator", "body", "camera", "objname", "refname", "subtree1", "subtree2",
)  # fmt: skip
SPARED = 40  # steps behind the first difference that a smaller model may take


def fails(root: Element, seed: int, steps: int) -> int | None:
    """The step at which a model's bits differ first, 0 if the trial alone finds that they do; None:
    it does not compile, or they do not."""
    try:
        model = mujoco.MjModel.from_xml_string(random_models.render(copy.deepcopy(root)))
        verdict = compare(model, seed, steps=steps)
    except (ValueError, RuntimeError, mujoco.FatalError):
        return None
    if verdict.difference is not None:
        return verdict.difference.step
    return 0 if verdict.kind == "differs" else None


def shrunk(root: Element, seed: int, seconds: float) -> Element:
    """A smaller model whose bits differ as well; the same if this one's do not."""
    end = time.monotonic() + seconds
    step = fails(root, seed, STEPS)
    if step is None:
        return root
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for smaller_models in (_without_elements, _without_attributes, _with_fewer_digits):
            root, step, changed = _pass(root, seed, step, smaller_models, end)
            smaller = smaller or changed
    return root


# what may tell why bits differ: options under which they perhaps do not
SUSPECTS = {
    "midphase": "disable", "contact": "disable", "limit": "disable", "equality": "disable",
    "frictionloss": "disable", "eulerdamp": "disable", "solver": "Newton", "integrator": "Euler",
    "cone": "pyramidal", "gravity": "disable", "multiccd": "disable",
}  # fmt: skip


def suspects(root: Element, seed: int) -> list[str]:
    """Options, changed one at a time, under which a failing model's bits are equal."""
    found = []
    for key, value in SUSPECTS.items():
        tried = copy.deepcopy(root)
        option = tried.find("option")
        if option is None:
            option = ET.SubElement(tried, "option")
        flag = option.find("flag")
        if value == "disable":
            flag = ET.SubElement(option, "flag") if flag is None else flag
            flag.set(key, value)
        else:
            option.set(key, value)
        if fails(tried, seed, STEPS) is None:
            found.append(f"{key}={value}")
    return found


Candidates = Callable[[Element], Iterator[Callable[[Element], None]]]


def _pass(
    root: Element, seed: int, step: int, candidates: Candidates, end: float
) -> tuple[Element, int, bool]:
    """Tries every way of one kind once; starts anew from what has become of the model."""
    changed = False
    skipped = 0  # of the ways in front, those that were tried
    while time.monotonic() < end:
        ways = list(candidates(root))[skipped:]
        if not ways:
            break
        for way in ways:
            tried = copy.deepcopy(root)
            way(tried)
            skipped += 1
            found = fails(tried, seed, min(STEPS, step + SPARED))
            if found is not None:
                root, step, changed = tried, found, True
                skipped -= 1  # what came behind has moved up
                break
            if time.monotonic() > end:
                return root, step, changed
    return root, step, changed


def _at(root: Element, path: tuple[int, ...]) -> Element:
    for index in path:
        root = root[index]
    return root


def _paths(root: Element, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Places of all elements, outer ones first."""
    for index, child in enumerate(root):
        yield (*path, index)
        yield from _paths(child, (*path, index))


def _remove(root: Element, path: tuple[int, ...]) -> None:
    """Removes an element, and whatever refers to something in it."""
    parent = _at(root, path[:-1])
    gone = parent[path[-1]]
    parent.remove(gone)
    names = {element.get("name") for element in gone.iter()} - {None}
    for holder in list(root.iter()):
        for child in list(holder):
            if any(child.get(key) in names for key in REFERENCES):
                holder.remove(child)


def _without_elements(root: Element) -> Iterator[Callable[[Element], None]]:
    for path in _paths(root):
        yield lambda tried, path=path: _remove(tried, path)


def _without_attributes(root: Element) -> Iterator[Callable[[Element], None]]:
    for path in _paths(root):
        for key in _at(root, path).attrib:
            if key not in ("name", "type"):
                yield lambda tried, path=path, key=key: _at(tried, path).attrib.pop(key)


def _with_fewer_digits(root: Element) -> Iterator[Callable[[Element], None]]:
    for path in _paths(root):
        for key, value in _at(root, path).attrib.items():
            for digits in (1, 2):
                simple = _rounded(value, digits)
                if simple is not None and simple != value:
                    yield lambda tried, path=path, key=key, simple=simple: _at(tried, path).set(
                        key, simple
                    )


def _rounded(value: str, digits: int) -> str | None:
    """Numbers with fewer digits; None if these are none, or have no more."""
    try:
        return " ".join(f"{float(number):.{digits}g}" for number in value.split())
    except ValueError:
        return None
