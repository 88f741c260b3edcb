"""Random numbers of MJCF: often round ones, at times those at which formulas have corners."""

import random
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
UNITS = ("1 0 0", "0 1 0", "0 0 1", "-1 0 0", "0 -1 0", "0 0 -1")
HALF = 0.7071067811865476  # √½: quarter turns
TURNS = (
    "1 0 0 0", "0 1 0 0", "0 0 1 0", "0 0 0 1", "-1 0 0 0", f"{HALF} {HALF} 0 0",
    f"{HALF} 0 {HALF} 0", f"{HALF} 0 0 {HALF}", f"{HALF} 0 {-HALF} 0", "1 1 0 0", "1 0 -1 0",
    "1 1 1 1",
)  # fmt: skip


def text(*numbers: float) -> str:
    """Numbers as an attribute has them, to the bit."""
    return " ".join(str(x) if isinstance(x, int) else repr(float(x)) for x in numbers)


class Dice(random.Random):
    """A generator of random numbers whose every draw is a function of its seed."""

    def maybe(self, share: float) -> bool:
        """True in ``share`` of all calls."""
        return self.random() < share

    def pick(self, *options: T) -> T:
        return self.choice(options)

    def weighed(self, options: dict[T, float]) -> T:
        """One of the keys, as often as its value says."""
        return self.choices(list(options), list(options.values()))[0]

    def number(self, low: float, high: float) -> float:
        """A number between two bounds: in a tenth of all calls a bound, often a round one."""
        kind = self.random()
        drawn = self.uniform(low, high)
        if kind < 0.05:
            return float(low)
        if kind < 0.1:
            return float(high)
        return float(f"{drawn:.1g}") if kind < 0.5 else drawn

    def numbers(self, count: int, low: float, high: float) -> str:
        return text(*(self.number(low, high) for _ in range(count)))

    def direction(self) -> str:
        """An axis: mostly along a coordinate, else any, of any length."""
        if self.maybe(0.6):
            return self.pick(*UNITS)
        return text(*(self.gauss(0, 1) for _ in range(3)))

    def quat(self, *, aligned: bool) -> str:
        """A rotation: quarter turns, or any, its length seldom one."""
        if aligned or self.maybe(0.4):
            return self.pick(*TURNS)
        return text(*(self.gauss(0, 1) for _ in range(4)))

    def some(self, options: Sequence[T], share: float) -> list[T]:
        """Each option with the same probability."""
        return [option for option in options if self.maybe(share)]


def negate_zeros(root: ET.Element, dice: Dice) -> None:
    """Makes half of the zeros of all vectors negative: MuJoCo's shortcuts lose or keep signs."""
    for element in root.iter():
        for key, value in element.attrib.items():
            numbers = value.split()
            if len(numbers) < 3:
                continue
            signed = ["-0" if x in ("0", "0.0") and dice.maybe(0.5) else x for x in numbers]
            element.set(key, " ".join(signed))
