"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(lines: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Lines of cells as text, columns beneath each other: some to the left, others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    pads = [str.ljust if i in left else str.rjust for i in range(len(widths))]
    rows = [list(zip(pads, line, widths, strict=True)) for line in lines]
    return ["  ".join(pad(cell, width) for pad, cell, width in row).rstrip() for row in rows]
