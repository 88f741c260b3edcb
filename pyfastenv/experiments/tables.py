"""Markdown tables and how numbers look in them. Needs no torch: benchmarks use it too."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from pyfastenv.experiments.measure import Summary, summary


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; floats get three digits, None a dash."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """Three digits, thousands apart: 0.0123, 1.23, 123, 12,345."""
    if value != value:
        return "–"
    if value == 0.0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values: Any, scale: float = 1.0, quartiles: bool = True) -> str:
    """``median [q1, q3]`` of the known values (neither None nor NaN); a single value alone."""
    known = [scale * value for value in values if value is not None and value == value]
    if not known:
        return "–"
    parts = summary(known)
    middle = number(parts["median"])
    if not quartiles or len(known) == 1:
        return middle
    return f"{middle} [{number(parts['q1'])}, {number(parts['q3'])}]"


def quartiles(summary: Summary, spec: str = ",.0f") -> str:
    """``median [q1, q3]`` of a summary."""
    return f"{summary['median']:{spec}} [{summary['q1']:{spec}}, {summary['q3']:{spec}}]"


def mean_and_deviation(values: Sequence[float | None]) -> str:
    """Mean ± standard deviation of the sample (n − 1); of a single value no deviation."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean = statistics.fmean(known)
    digits = 1 if abs(mean) < 100 else 0
    deviation = f" ± {statistics.stdev(known):,.{digits}f}" if len(known) > 1 else ""
    return f"{mean:,.{digits}f}{deviation}"


def median(values: Sequence[float]) -> float:
    """The median."""
    return summary(values)["median"]
