"""Intervals of the rounds' ratios, and one judge of claims: which way, with which margin.

Contestants run in turn, so a drift of the machine meets both of a round. The judge is an interval
of 90 % for the geometric mean of the ratios (two one-sided t tests of 5 %, Schuirmann 1987): equal
if it lies within the margin, more or less if it lies beyond 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pyfastenv.experiments.tables import number

Outcome = Literal["more", "less", "equal", "open"]


@dataclass(frozen=True)
class Ratio:
    """The mean of the rounds' ratios and its interval."""

    mean: float  # geometric
    low: float  # of its interval of 90 %, which is infinite with a single round
    high: float
    rounds: int
    margin: float  # within which ratios count as equal: 0.05 is 1/1.05 to 1.05

    @property
    def outcome(self) -> Outcome:
        """``"equal"`` wins: a difference below the margin is none that matters."""
        bound = 1.0 + self.margin
        if 1.0 / bound <= self.low and self.high <= bound:
            return "equal"
        if self.low > 1.0:
            return "more"
        return "less" if self.high < 1.0 else "open"

    @property
    def at_most(self) -> float:
        """How far the ratio may be from 1 either way, as a share."""
        return max(self.high, 1.0 / max(self.low, 1e-300)) - 1.0

    @property
    def mark(self) -> str:
        """For tables: ``≈ 1.01``, ``× 1.53``, or with a question mark where it is open."""
        sign = {"equal": "≈ ", "more": "**×** ", "less": "**×** ", "open": "? "}[self.outcome]
        return sign + _digits(self.mean)

    def __str__(self) -> str:
        if self.rounds < 2:
            return f"{_digits(self.mean)} (a single run)"
        return f"{_digits(self.mean)} [{_digits(self.low)}, {_digits(self.high)}]"


def _digits(ratio: float) -> str:
    """1.06, 0.95, 34, 0.021."""
    return f"{ratio:.2f}" if 0.095 <= ratio < 9.995 else number(ratio)


def compare(
    numerator: Sequence[float], denominator: Sequence[float], margin: float = 0.05
) -> Ratio:
    """The ratio of two contestants, round by round.

    Raises:
        ValueError: Other numbers of rounds, none, or values that are not positive.
    """
    from scipy.stats import t as student

    if len(numerator) != len(denominator) or len(numerator) == 0:
        raise ValueError(f"rounds: {len(numerator)} cannot be paired with {len(denominator)}")
    if min(*numerator, *denominator) <= 0.0:
        raise ValueError("rounds: expected positive values")
    logs = np.log(np.asarray(numerator, float)) - np.log(np.asarray(denominator, float))
    count, mean, half = len(logs), float(logs.mean()), math.inf
    if count > 1:
        half = float(student.ppf(0.95, count - 1)) * float(logs.std(ddof=1)) / math.sqrt(count)
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), count, margin)


def verdict(
    ratio: Ratio | None, expected: Outcome, why_not: str = "not in these sizes", lacks: str = ""
) -> str:
    """Whether a claim holds, with the reason.

    Args:
        ratio: What was measured; None: nothing.
        expected: What it is if the claim holds.
        why_not: Why nothing was measured.
        lacks: What the claim speaks of and this machine does not have: what was measured in its
            place is told, and judges nothing.
    """
    if ratio is None:
        return f"not measured: {why_not}"
    within = f" within {ratio.margin:.0%}" if ratio.outcome == "equal" else ""
    found = f"it is {ratio.outcome}{within}"
    if ratio.outcome == "open":
        found = "a single run" if ratio.rounds < 2 else "the interval reaches both ways"
    if lacks:
        return f"not measured: {lacks}; here {found}"
    if ratio.outcome == "open":
        return f"open: {found}"
    return f"{'**holds**' if ratio.outcome == expected else '**does not hold**'}: {found}"
