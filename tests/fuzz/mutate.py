"""Breaks MJCF files: by structure (elements, attributes, references, sizes) and as text.

Knows MuJoCo's schema and no environment. Everything random comes from the generator given.
"""

import copy
import random
import re
import xml.etree.ElementTree as ET
from functools import cache

import mujoco

NUMBERS = (
    "0", "-1", "1", "1e-320", "1e-12", "1e10", "-1e10", "1e39", "1e300", "1e308", "nan", "inf",
    "-inf", "2147483647", "-2147483648", "4294967296", "1e3", "0.5", "3", "x", "",
)  # fmt: skip
WORDS: dict[str, tuple[str, ...]] = {
    "integrator": ("Euler", "RK4", "implicit", "implicitfast"),
    "solver": ("PGS", "CG", "Newton"),
    "cone": ("pyramidal", "elliptic"),
    "jacobian": ("dense", "sparse", "auto"),
    "dyntype": ("none", "integrator", "filter", "filterexact", "muscle", "dcmotor", "user"),
    "gaintype": ("fixed", "affine", "muscle", "user"),
    "biastype": ("none", "affine", "muscle", "user"),
    "interp": ("zoh", "linear", "cubic"),
    "kind": ("main", "twist", "stretch"),
    "angle": ("radian", "degree"),
    "inertiafromgeom": ("true", "false", "auto"),
    "type": (
        "free", "ball", "slide", "hinge", "plane", "sphere", "capsule", "ellipsoid", "cylinder",
        "box", "mesh", "hfield", "sdf", "grid", "direct",
    ),
    "mocap": ("true", "false"),
    "sleep": ("auto", "never", "allowed", "init"),
}  # fmt: skip
FLAGS = ("true", "false", "auto", "enable", "disable")
# Asking for a billion solver iterations, or bodies, is asking to wait: not a defect to look for.
WORK = re.compile(
    r"iterations|count|^n?(row|col|sample)|numslices|numstacks|numquads|^num$|cellcount"
)
MOST_WORK = ("0", "-1", "1", "2", "3", "7", "20", "1e3", "nan", "x")
SKIPPED = {"plugin", "include", "extension", "visual", "custom", "skin"}


@cache
def schema() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Children and attributes of every element, from MuJoCo itself."""
    children: dict[str, list[str]] = {}
    attributes: dict[str, list[str]] = {}
    path: list[tuple[int, str]] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        element = re.match(r"^( *)(?:\(world\))?(\w+) \(.\) *(.*)$", line)
        if element is None:
            if path:
                attributes[path[-1][1]] += line.split()
            continue
        depth, name = len(element[1]), element[2]
        while path and path[-1][0] >= depth:
            path.pop()
        if path:
            children.setdefault(path[-1][1], []).append(name)
        attributes.setdefault(name, []).extend(element[3].split())
        path.append((depth, name))
    children["body"].append("body")
    children["worldbody"] = children["body"]
    children["mujoco"][children["mujoco"].index("body")] = "worldbody"
    return (
        {name: tuple(dict.fromkeys(of)) for name, of in children.items()},
        {name: tuple(dict.fromkeys(of)) for name, of in attributes.items()},
    )


class Mutator:
    """Changes one document."""

    def __init__(self, text: str, rng: random.Random):
        self.root = ET.fromstring(text)
        self.rng = rng

    def text(self) -> str:
        return ET.tostring(self.root, encoding="unicode")

    def mutate(self) -> None:
        """One change."""
        changes = (
            (self.change_attribute, 8), (self.add_attribute, 6), (self.delete_attribute, 2),
            (self.add_element, 4), (self.delete_element, 2), (self.duplicate_element, 2),
            (self.move_element, 2), (self.swap_elements, 1), (self.multiply_bodies, 0.3),
            (self.nest_bodies, 0.2), (self.set_option, 3),
        )  # fmt: skip
        self.rng.choices([c for c, _ in changes], [w for _, w in changes])[0]()

    # ---- elements ----

    def _elements(self) -> list[ET.Element]:
        return list(self.root.iter())

    def _parents(self) -> list[tuple[ET.Element, ET.Element]]:
        return [(parent, child) for parent in self.root.iter() for child in parent]

    def delete_element(self) -> None:
        if pairs := self._parents():
            parent, child = self.rng.choice(pairs)
            parent.remove(child)

    def duplicate_element(self) -> None:
        if pairs := self._parents():
            parent, child = self.rng.choice(pairs)
            parent.append(self._renamed(child) if self.rng.random() < 0.8 else copy.deepcopy(child))

    def _renamed(self, element: ET.Element) -> ET.Element:
        twin = copy.deepcopy(element)
        for part in twin.iter():
            if "name" in part.attrib:
                part.set("name", f"{part.get('name')}_{self.rng.getrandbits(32)}")
        return twin

    def move_element(self) -> None:
        if pairs := self._parents():
            parent, child = self.rng.choice(pairs)
            inside = set(child.iter())
            targets = [e for e in self._elements() if e not in inside]
            same = [e for e in targets if e.tag == parent.tag]
            parent.remove(child)
            self.rng.choice(same or targets).append(child)

    def swap_elements(self) -> None:
        pairs = self._parents()
        parent, first = self.rng.choice(pairs)
        second = self.rng.choice(list(parent))
        i, j = list(parent).index(first), list(parent).index(second)
        parent[i], parent[j] = second, first

    def multiply_bodies(self) -> None:
        bodies = [(p, c) for p, c in self._parents() if c.tag == "body"]
        if bodies:
            parent, body = self.rng.choice(bodies)
            for _ in range(self.rng.choice([2, 6, 20])):
                parent.append(self._renamed(body))

    def nest_bodies(self) -> None:
        bodies = [e for e in self._elements() if e.tag == "body"]
        if not bodies:
            return
        place = self.rng.choice(bodies)
        for _ in range(self.rng.choice([5, 60, 300])):
            place = ET.SubElement(place, "body", pos="0 0 0.05")
            if self.rng.random() < 0.8:
                ET.SubElement(place, "joint", type=self.rng.choice(["hinge", "ball", "slide"]))
            ET.SubElement(place, "geom", size="0.02")

    def add_element(self) -> None:
        children, attributes = schema()
        parent = self.rng.choice([e for e in self._elements() if e.tag in children])
        known = [tag for tag in children[parent.tag] if tag not in SKIPPED]
        if not known:
            return
        child = ET.SubElement(parent, self.rng.choice(known))
        names = attributes.get(child.tag, ())
        for name in self.rng.sample(names, min(len(names), self.rng.choice([1, 2, 3, 5]))):
            self._set(child, name)

    # ---- attributes ----

    def _set(self, element: ET.Element, name: str) -> None:
        if name not in ("file", "plugin", "instance"):
            element.set(name, self._value(name, element.get(name)))

    def change_attribute(self) -> None:
        elements = [e for e in self._elements() if e.attrib]
        if elements:
            element = self.rng.choice(elements)
            self._set(element, self.rng.choice(list(element.attrib)))

    def add_attribute(self) -> None:
        attributes = schema()[1]
        element = self.rng.choice([e for e in self._elements() if attributes.get(e.tag)])
        self._set(element, self.rng.choice(attributes[element.tag]))

    def delete_attribute(self) -> None:
        elements = [e for e in self._elements() if e.attrib]
        if elements:
            element = self.rng.choice(elements)
            del element.attrib[self.rng.choice(list(element.attrib))]

    def set_option(self) -> None:
        option = self.root.find("option")
        if option is None:
            option = ET.SubElement(self.root, "option")
        attributes = schema()[1]
        if self.rng.random() < 0.4:
            flag = option.find("flag")
            if flag is None:
                flag = ET.SubElement(option, "flag")
            flag.set(self.rng.choice(attributes["flag"]), self.rng.choice(["enable", "disable"]))
        else:
            self._set(option, self.rng.choice(attributes["option"]))

    def _value(self, name: str, old: str | None) -> str:
        rng = self.rng
        if WORK.search(name):
            return rng.choice(MOST_WORK)
        if name in WORDS and rng.random() < 0.9:
            return rng.choice(WORDS[name])
        numbers = _numbers(old)
        if numbers:
            return self._spoiled(numbers)
        if old is not None or rng.random() < 0.5:
            names = [e.get("name", "") for e in self._elements() if e.get("name")]
            choices = [*rng.sample(names, min(3, len(names))), *FLAGS, "no such thing", "world"]
            if old is not None or rng.random() < 0.6:
                return rng.choice(choices)
        return " ".join(rng.choice(NUMBERS) for _ in range(rng.choice([1, 1, 2, 3, 3, 5])))

    def _spoiled(self, numbers: list[float]) -> str:
        rng = self.rng
        form = rng.random()
        words = [f"{x:g}" for x in numbers]
        place = rng.randrange(len(words))
        if form < 0.35:  # plausible
            words[place] = f"{numbers[place] * rng.choice([0.1, 0.5, -1.0, 2.0, 10.0, 1e3]):g}"
        elif form < 0.75:
            words[place] = rng.choice(NUMBERS)
        elif form < 0.85:
            words = [rng.choice(NUMBERS)] * len(words)
        elif form < 0.93:
            words.append(rng.choice(NUMBERS))
        else:
            words.pop()
        return " ".join(words)


def _numbers(text: str | None) -> list[float]:
    try:
        return [float(word) for word in (text or "").split()]
    except ValueError:
        return []


def spoil_text(text: str, rng: random.Random) -> bytes:
    """Changes bytes, whatever they mean."""
    data = bytearray(text.encode())
    for _ in range(rng.choice([1, 1, 3, 20])):
        place = rng.randrange(len(data))
        form = rng.randrange(6)
        if form == 0:
            del data[place:]  # cut off
        elif form == 1:
            data[place] = rng.randrange(256)
        elif form == 2:
            data[place:place] = rng.choice(
                [b"<", b">", b'"', b"\0", b"&x;", b"<!--", b"]]>", b"\xff"]
            )
        elif form == 3:
            del data[place : place + rng.choice([1, 10, 100])]
        elif form == 4:
            data[place:place] = data[place : place + rng.choice([10, 300, 3000])]
        else:
            digits = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
            if digits:
                data[rng.choice(digits)] = ord(rng.choice("0123456789-e."))
        if len(data) < 2:
            break
    return bytes(data)


def mutated(text: str, rng: random.Random) -> bytes:
    """A broken version of a model."""
    mutator = Mutator(text, rng)
    for _ in range(rng.choice([1, 1, 2, 2, 3, 5, 8])):
        mutator.mutate()
    if rng.random() < 0.1:
        return spoil_text(mutator.text(), rng)
    return mutator.text().encode()
