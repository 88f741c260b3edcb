"""The pictures of reports and benchmarks: one style, a few kinds. Knows no experiment.

Values are per contestant the rounds' (medians and quartiles are drawn), colours Okabe and Ito's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfastenv.experiments.measure import summary
from pyfastenv.experiments.tables import number
from pyfastenv.publish.plots import COLOURS, label_ends, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#777777"
# beyond six colours Tol's (2021), which can be told from them
PALETTE = (*COLOURS, "#882255", "#999999", "#44AA99", "#DDCC77", "#332288")
_MORE = ("#661100", "#6699CC", "#117733", "#AA4499", "#000000")
_DARK = (*COLOURS[:3], "#882255", "#332288")  # on these text is white


def panels(
    count: int = 1, *, size: tuple[float, float] = (8.0, 4.0), columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with plain axes.

    Args:
        count: Axes.
        size: Of the figure [inches].
        columns: How many axes stand side by side.
        **options: ``Figure.subplots``'.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(-(-count // columns), columns, squeeze=False, **options)
    axes = list(grid.flat)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(alpha=0.25, linewidth=0.6)
    for each in axes[count:]:
        each.set_visible(False)
    return figure, axes[:count]


def save(figure: Figure, path: Path) -> Path:
    """Writes a picture whole or not at all."""
    return save_figure(figure, path, bbox_inches="tight")


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name, none twice.

    Raises:
        ValueError: There are not as many.
    """
    return dict(zip(names, (*PALETTE, *_MORE)[: len(names)], strict=True))


def points(
    axes: Axes,
    rows: Mapping[str, Sequence[float]],
    *,
    colour: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    log: bool = False,
    label: str = "",
) -> None:
    """A row per name: a point at the median, a line over the quartiles, the number and a note.

    A row without values stays empty.
    """
    for y, (name, values) in enumerate(rows.items()):
        if not values:
            continue
        low, middle, high = (summary(values)[part] for part in ("q1", "median", "q3"))
        paint = (colour or {}).get(name, COLOURS[0])
        axes.plot((low, high), (y, y), color=paint, linewidth=2.2)
        axes.plot(middle, y, "o", color=paint, markersize=6)
        axes.annotate(
            f"{number(middle)}{(notes or {}).get(name, '')}", (high, y), xytext=(8, 0), fontsize=8,
            textcoords="offset points", va="center", color=paint,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    if log:
        log_scale(axes, "x")
        low, high = axes.get_xlim()
        axes.set_xlim(low / 1.2, high * (high / low) ** 0.2)
    else:
        axes.set_xlim(0, axes.get_xlim()[1] * 1.18)
    axes.set_xlabel(label)


def points_side_by_side(
    panels: Sequence[Axes], groups: Sequence[Mapping[str, Sequence[float]]], **options: Any
) -> None:
    """:func:`points` of each group on a panel; the panels share their rows, which are all names."""
    names = list(dict.fromkeys(name for rows in groups for name in rows))
    for axes, rows in zip(panels, groups, strict=True):
        points(axes, {name: rows.get(name, ()) for name in names}, **options)


def stacked(
    axes: Axes,
    rows: Mapping[str, Mapping[str, float]],
    *,
    colour: Mapping[str, str] | None = None,
    share: bool = False,
    label: str = "",
    notes: Mapping[str, str] | None = None,
) -> None:
    """A horizontal bar per row, of the parts' values or of their shares; a legend below.

    Parts stand in the order of their colours; ``notes`` stand behind the rows' totals.
    """
    drawn = {part: None for row in rows.values() for part in row}
    paint = dict(colour or colours(list(drawn)))
    parts = [part for part in paint if part in drawn]
    reach = 100.0 if share else max(sum(row.values()) for row in rows.values())
    for y, (name, row) in enumerate(rows.items()):
        whole = sum(row.values())
        scale, left = (100.0 / whole if share else 1.0), 0.0
        for part in parts:
            width = scale * row.get(part, 0.0)
            axes.barh(y, width, left=left, color=paint[part], height=0.68, edgecolor="white")
            if width >= 0.07 * reach:
                text = f"{width:.0f} %" if share else number(width)
                _write_on(axes, left + width / 2, y, text, paint[part])
            left += width
        if not share:
            text = f"{number(whole)}  {(notes or {}).get(name, '')}"
            axes.text(left + 0.01 * reach, y, text, va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, reach * (1.4 if notes else 1.0 if share else 1.1))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(label)
    _legend(axes, {part: paint[part] for part in parts})


def lines(
    axes: Axes,
    series: Mapping[str, Mapping[float, Sequence[float]]],
    *,
    colour: Mapping[str, str] | None = None,
    styles: Mapping[str, str] | None = None,
    log: str = "",
    bottom: float | None = None,
    xlabel: str = "",
    ylabel: str = "",
    name_ends: bool = True,
) -> list[tuple[float, str, str]]:
    """A line per name through medians, with quartiles, named at its right end.

    Args:
        axes: Where.
        series: By name, the values at each x.
        colour: By name.
        styles: Matplotlib's line styles, by name.
        log: ``"x"``, ``"y"`` or ``"xy"``.
        bottom: Where the y axis begins, if not below the values.
        xlabel: Of the axis.
        ylabel: Of the axis.
        name_ends: False: other panels that share the axis come first, then :func:`label_ends`.

    Returns:
        Of each line where it ends, its name and colour, as :func:`label_ends` takes them.
    """
    paint = colours(list(series)) | dict(colour or {})
    ends = []
    for name, points_of in series.items():
        low, middle, high = (
            np.array([summary(values)[part] for values in points_of.values()])
            for part in ("q1", "median", "q3")
        )
        axes.errorbar(
            list(points_of), middle, yerr=(middle - low, high - middle), color=paint[name],
            marker="o", markersize=4, capsize=2, linestyle=(styles or {}).get(name, "-"),
            linewidth=1.5,
        )  # fmt: skip
        ends.append((float(middle[-1]), name, paint[name]))
    log_scale(axes, log)
    if bottom is not None:
        axes.set_ylim(bottom=bottom)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if name_ends:
        axes.set_ylim(axes.get_ylim())  # what is drawn later must not move the lines' ends
        label_ends(axes, ends)
    return ends


def log_scale(axes: Axes, names: str) -> None:
    """Makes axes ("x", "y" or "xy") logarithmic, with plain numbers at the ticks."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for name in names:
        getattr(axes, f"set_{name}scale")("log")
        low, high = getattr(axes, f"get_{name}lim")()
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
        axis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        axis.set_minor_formatter(NullFormatter())


def flames(
    axes: Axes, ranges: Sequence[tuple[str, float, float, int]], colour: Mapping[str, str]
) -> None:
    """A trace: ranges (name, start, duration [ms], depth) as bars, nested ones below."""
    end = max(start + length for _, start, length, _ in ranges)
    for name, start, length, depth in ranges:
        axes.barh(depth, length, left=start, color=colour[name], height=0.9, edgecolor="white")
        if length > 0.009 * end * len(name):
            _write_on(axes, start + length / 2, depth, name, colour[name])
    axes.invert_yaxis()
    axes.set_yticks([])
    axes.set_xlim(0, end)
    axes.set_xlabel("time [ms]")
    axes.grid(visible=False, axis="y")
    _legend(axes, {name: colour[name] for name in colour if name in {one[0] for one in ranges}})


def _write_on(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    """In the middle of a bar of a colour."""
    ink = "white" if colour in _DARK else "black"
    axes.text(x, y, text, ha="center", va="center", fontsize=8, color=ink)


def _legend(axes: Axes, paint: Mapping[str, str]) -> None:
    """Below the whole figure."""
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=name) for name, colour in paint.items()]
    figure: Any = axes.figure
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 7), frameon=False,
        fontsize=8,
    )  # fmt: skip
