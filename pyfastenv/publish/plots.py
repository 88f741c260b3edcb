"""Learning curves as pictures: return against environment steps, of one run or of several."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyfastenv.publish.outputs import check_output
from pyfastenv.runs.atomic import replacing
from pyfastenv.runs.folder import CURVE, read_config, read_facts
from pyfastenv.runs.logger import Row, read_metrics
from pyfastenv.runs.settings import differing, label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours (2008), which colour-blind readers tell apart; without yellow and black
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
FORMATS = (".png", ".pdf", ".svg")
_CUDA = 1  # torch's number of the device type
_LABEL_GAP = 0.055  # of the axes' height


def plot_run(folder: Path, output: Path | None = None) -> Path:
    """Draws a run's training and evaluation returns.

    Args:
        folder: The run folder.
        output: The picture; by default learning_curve.png in the run folder.

    Raises:
        FileNotFoundError: This is no run folder.
        ImportError: matplotlib is missing.
    """
    algorithm, config = read_config(folder)
    figure, axes = make_axes(f"{config['env_id']}, {algorithm}, seed {config['seed']}")
    if "dataset" in config:
        axes.set_xlabel("gradient steps, from datasets")
    rows = read_metrics(folder)
    training = _draw_training(axes, rows, COLOURS[0])
    evaluations = _draw_evaluations(axes, rows, COLOURS[1])
    episodes = config["eval_episodes"]
    _label_ends(
        axes,
        (training, "training episodes", COLOURS[0]),
        (evaluations, f"evaluation\n(mean ± s.d., {episodes} episodes)", COLOURS[1]),
    )
    return save_figure(figure, output or folder / CURVE)


def plot_runs(folders: Sequence[Path], output: Path, labels: Sequence[str] | None = None) -> Path:
    """Draws several runs into one picture, each in its colour, evaluations as points.

    Args:
        folders: The run folders.
        output: The picture; its ending says in which of :data:`FORMATS`.
        labels: One per run; by default algorithm and seed, and what tells the run from the others.

    Raises:
        ValueError: No runs, another number of labels, or a name that says no known format.
        FileNotFoundError: A run folder, or the picture's, does not exist.
    """
    if not folders:
        raise ValueError("runs: expected at least one run folder, got none")
    if labels is not None and len(labels) != len(folders):
        raise ValueError(f"labels: expected {len(folders)}, got {len(labels)}")
    check_output(output, FORMATS)
    configs = [_settings(folder) for folder in folders]
    envs = list(dict.fromkeys(config["env_id"] for _, config in configs))
    labels = labels or _labels(folders, configs)
    figure, axes = make_axes(", ".join(envs))
    ends = []
    for i, (folder, label) in enumerate(zip(folders, labels, strict=True)):
        colour, rows = COLOURS[i % len(COLOURS)], read_metrics(folder)
        training = _draw_training(axes, rows, colour)
        ends.append((_draw_evaluations(axes, rows, colour) or training, label, colour))
    _label_ends(axes, *ends)
    return save_figure(figure, output)


def _settings(folder: Path) -> tuple[str, dict[str, Any]]:
    """A run's algorithm; its options and losses of the user's own."""
    facts = read_facts(folder)
    return facts["algorithm"], {**facts["config"], **facts.get("own_losses", {})}


def _labels(folders: Sequence[Path], configs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """One per run, none twice; of several algorithms, by the options that all of them have."""
    settings = [config for _, config in configs]
    names = list(differing(settings))
    if len({algorithm for algorithm, _ in configs}) > 1:
        names = [name for name in names if all(name in each for each in settings)]
    labels = [
        f"{algorithm}, seed {config['seed']}" + (f", {label_of(names, config)}" if names else "")
        for algorithm, config in configs
    ]
    return [
        label if labels.count(label) == 1 else f"{label}, {folder}"
        for label, folder in zip(labels, folders, strict=True)
    ]


def plot_means(groups: Mapping[str, Sequence[Path]], output: Path, title: str) -> Path:
    """Draws the mean evaluation of each group of runs, and the range of their seeds.

    Args:
        groups: Run folders by label, best first; seeds side by side count one by one.
        output: The picture.
        title: Above it.
    """
    figure, axes = make_axes(title)
    ends = []
    for i, (label, folders) in enumerate(groups.items()):
        colour = COLOURS[i % len(COLOURS)]
        by_step: dict[float, list[float]] = {}
        for folder in folders:
            for row in read_metrics(folder):
                seeds = [row[name] for name in row if name.startswith("eval/return_") and
                         name.removeprefix("eval/return_").isdecimal()]  # fmt: skip
                if "eval/return" in row:
                    by_step.setdefault(row["step"], []).extend(seeds or [row["eval/return"]])
        steps = sorted(by_step)
        means = [sum(by_step[step]) / len(by_step[step]) for step in steps]
        axes.plot(steps, means, color=colour, marker="o", markersize=3, linewidth=1.2)
        lows, highs = ([f(by_step[step]) for step in steps] for f in (min, max))
        axes.fill_between(steps, lows, highs, color=colour, alpha=0.15, linewidth=0)
        ends.append(((steps[-1], means[-1]) if steps else None, label, colour))
    _label_ends(axes, *ends)
    return save_figure(figure, output)


def plot_memory(trace: Path, output: Path) -> Path | None:
    """Draws the memory that a trace has recorded over time, allocated and (on CUDA) reserved.

    Args:
        trace: A gzipped trace with memory.
        output: The picture.

    Returns:
        The picture, or None if the trace has no memory in it.
    """
    with gzip.open(trace, "rt") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("name") == "[memory]"]
    if not events:
        return None
    on_gpu = any(event["args"]["Device Type"] == _CUDA for event in events)
    device = _CUDA if on_gpu else 0
    mine = sorted(
        (e for e in events if e["args"]["Device Type"] == device), key=lambda event: event["ts"]
    )
    figure, axes = make_axes("memory while profiled, " + ("CUDA" if on_gpu else "CPU"))
    seconds = [(event["ts"] - mine[0]["ts"]) / 1e6 for event in mine]
    names = ("Total Allocated", "Total Reserved") if on_gpu else ("Total Allocated",)
    ends = []
    for name, colour in zip(names, COLOURS, strict=False):
        values = [event["args"][name] / 2**20 for event in mine]
        axes.step(seconds, values, where="post", color=colour, linewidth=1.0)
        ends.append(((seconds[-1], values[-1]), name.split()[1].lower(), colour))
    axes.set_xlabel("time [s]")
    axes.set_ylabel("memory [MiB]")
    _label_ends(axes, *ends)
    return save_figure(figure, output)


def make_axes(title: str) -> tuple[Figure, Axes]:
    """A figure for learning curves: return against environment steps.

    Raises:
        ImportError: matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter
    except ImportError as error:
        raise ImportError("learning curves need matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("return (sum of an episode's rewards)")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    return figure, axes


def _points(rows: Sequence[Row], name: str) -> list[tuple[float, float]]:
    return [(row["step"], row[name]) for row in rows if math.isfinite(row.get(name, math.nan))]


def _draw_training(axes: Axes, rows: Sequence[Row], colour: str) -> tuple[float, float] | None:
    """A thin line; returns its last point."""
    points = _points(rows, "train/return")
    if not points:
        return None
    axes.plot(*zip(*points, strict=True), color=colour, alpha=0.45, linewidth=0.9)
    return points[-1]


def _draw_evaluations(axes: Axes, rows: Sequence[Row], colour: str) -> tuple[float, float] | None:
    """Points with one standard deviation up and down; returns the last."""
    points = _points(rows, "eval/return")
    if not points:
        return None
    spread = {row["step"]: row.get("eval/return_std", 0.0) for row in rows}
    steps, returns = zip(*points, strict=True)
    errors = [spread[step] for step in steps]
    axes.errorbar(
        steps, returns, yerr=errors, color=colour, marker="o", markersize=4, linewidth=1.2,
        elinewidth=1, capsize=2,
    )  # fmt: skip
    return points[-1]


def _label_ends(axes: Axes, *ends: tuple[tuple[float, float] | None, str, str]) -> None:
    """:func:`label_ends` of those that have been drawn."""
    label_ends(axes, [(end[1], text, colour) for end, text, colour in ends if end is not None])


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Writes names to the right of the axes, none over another.

    Args:
        axes: Where curves have been drawn; their limits stay.
        ends: By curve its last value, its name and its colour.
    """
    right = axes.get_xlim()[1]
    to_fraction = axes.transData + axes.transAxes.inverted()
    ordered = sorted(ends)
    heights = [_LABEL_GAP * (text.count("\n") + 1) for _, text, _ in ordered]
    middles, floor = [], -math.inf
    for (value, _, _), height in zip(ordered, heights, strict=True):
        middles.append(max(to_fraction.transform((right, value))[1], floor + height / 2))
        floor = middles[-1] + height / 2
    ceiling = max(1.0, sum(heights))
    for i in reversed(range(len(ordered))):  # down again, those that have been pushed too high
        middles[i] = min(middles[i], ceiling - heights[i] / 2)
        ceiling = middles[i] - heights[i] / 2
    for middle, (_, text, colour) in zip(middles, ordered, strict=True):
        axes.annotate(
            text, (1, middle), xytext=(6, 0), xycoords="axes fraction",
            textcoords="offset points", color=colour, va="center", fontsize=9,
        )  # fmt: skip


def save_figure(figure: Figure, output: Path, **options: Any) -> Path:
    """Writes a picture whole or not at all, and makes its folder; the options are ``savefig``'s.

    The format is what the name ends in.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with replacing(output) as file:
        figure.savefig(file, format=output.suffix[1:].lower(), **options)
    return output
