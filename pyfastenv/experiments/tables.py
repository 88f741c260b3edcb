"""Markdown tables and how numbers look in them. Needs no torch: benchmarks use it too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyfastenv.experiments.measure import summary


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; floats get three digits, None a dash."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: object) -> str:
    """How a table shows it."""
    if value is None:
        return "–"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """Three digits, thousands apart: 0.0123, 1.23, 123, 12,345."""
    if value != value:
        return "–"
    size = abs(value)
    if size == 0.0:
        return "0"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def spread(values: Sequence[float], scale: float = 1.0) -> str:
    """``median [q1, q3]``; a single value alone."""
    if len(values) == 1:
        return number(scale * values[0])
    parts = summary([scale * value for value in values])
    return f"{number(parts['median'])} [{number(parts['q1'])}, {number(parts['q3'])}]"


def median(values: Sequence[float]) -> float:
    """The median."""
    return summary(values)["median"]
