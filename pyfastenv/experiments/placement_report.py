"""Tables, ratios and pictures from the measurements of `placement`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfastenv.experiments import pictures
from pyfastenv.experiments.claims import Ratio, compare
from pyfastenv.experiments.placement import (
    BESIDE,
    COPY,
    COPY_EVERY,
    CPU,
    DDPG,
    ONE_CPU,
    OURS,
    POOL,
    PPO,
    SOLVED,
    TEXTBOOK,
)
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Row, Study
from pyfastenv.experiments.tables import median
from pyfastenv.publish.plots import COLOURS, label_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# time [s], CPU [%], GPU [%], an update [ms]
_DOCUMENT = {"cuda": ("128", "27", "45", "5"), CPU: ("47.4–53", "100", "–", "3–4"),
             "sample-cpu": ("43.4–45.1", "22–25", "22", "–")}  # fmt: skip


def _about(algorithm: str, size: str, **about: Any) -> Row:
    """A contestant of the grid; by default the textbook's on the CPU."""
    base = {"who": TEXTBOOK, "placement": CPU, "every": 1}
    return {"algorithm": algorithm, "size": size} | base | about


def report(study: Study) -> Report:
    """The values that the template is filled with."""
    sizes = study.sizes.sizes
    first, last = sizes[0], sizes[-1]

    def gain(algorithm: str, size: str, than: str = CPU, **about: Any) -> Ratio | None:
        """How many times as fast as the textbook on the CPU, or elsewhere."""
        theirs, mine = _about(algorithm, size, placement=than), _about(algorithm, size, **about)
        return study.ratio("grid", "cost_us", theirs, mine)

    def grouping(algorithm: str, placement: str = CPU) -> Ratio | None:
        """Gains of as many steps or episodes in a row, with a copy for all of them or without."""
        return gain(
            algorithm, last, placement, placement=placement, every=COPY_EVERY[algorithm][-1]
        )

    def own(algorithm: str) -> Ratio:
        """The copies' part of that gain: with copies over without, round by round."""

        def costs(placement: str, every: int) -> Any:
            about = _about(algorithm, last, placement=placement, every=every)
            return np.array(study.rounds("grid", "cost_us", **about))

        many = COPY_EVERY[algorithm][-1]
        before, after = costs(COPY, 1) * costs(CPU, many), costs(COPY, many) * costs(CPU, 1)
        return compare(list(before), list(after))

    def split(algorithm: str, size: str, **about: Any) -> Row:
        """Where a step's time goes [µs], medians of rounds; and the CPUs used."""
        wanted = _about(algorithm, size, **about)
        cost, sample, copy, cpus = (
            np.array(study.rounds("grid", column, **wanted))
            for column in ("cost_us", "sample_share", "copy_share", "cpus")
        )
        parts = {"cost": cost, "sample": cost * sample, "learn": cost * (1 - sample - copy)}
        return {name: median(list(values)) for name, values in (parts | {"cpus": cpus}).items()}

    def one_cpu(algorithm: str, size: str) -> Ratio | None:
        """The textbook's processor time over ours, both with one thread."""
        theirs, mine = _about(algorithm, size), _about(algorithm, size, who=OURS, every=0)
        return study.ratio(ONE_CPU, "cpu_us", theirs, mine)

    solved, curves = study.part("solved"), study.part("curves")
    frame, grid = study.part("table"), study.part("grid").query("who == @TEXTBOOK")
    theirs = frame[(frame.who == TEXTBOOK) & (frame.placement == CPU)]
    copies, ours = frame[frame.placement == COPY], frame[frame.who == OURS]
    of_128 = solved[solved["size"] == "128"]
    on_cpu = grid.query("algorithm == @PPO and placement == @CPU and every == 1")
    values = {
        "cpu_for_64": gain(PPO, "64", "sample-cpu"),
        "both_from_128": gain(PPO, "128", placement="sample-cpu"),
        "fewer_copies_ddpg": grouping(DDPG, COPY),
        "fewer_copies_pool": grouping(POOL, COPY),
        "grouping_ddpg": grouping(DDPG),
        "grouping_pool": grouping(POOL),
        "own_ddpg": own(DDPG),
        "own_pool": own(POOL),
        "split": split,
        "theirs": split(PPO, last),
        "mine": split(PPO, last, who=OURS, every=0),
        "one_cpu": one_cpu,
        "one_cpu_date": study.part(ONE_CPU).date.max(),
        "sample_first": gain(PPO, last, every=COPY_EVERY[PPO][-1]),
        "beside": gain(PPO, last, placement=BESIDE),
        "ours_faster": gain(PPO, last, who=OURS, every=0),
        "larger": _episodes(solved, [(first, last)]),
        "deeper": _episodes(solved, [(s, f"{s}x{s}") for s in sizes if "x" not in s]),
        "first": first,
        "last": last,
        "seconds_128": median(list(theirs.seconds)),
        "slowest_128": theirs.seconds.max() / theirs.seconds.min(),
        "ours_128": median(list(ours.cost_us)) * theirs.env_steps.median() / 1e6,
        "copy_share": copies.copy_share.median(),
        "copy_us": copies.copy_us.median(),
        "update_ms": theirs.update_ms.median(),
        "update_of": on_cpu.groupby("size").update_ms.median(),
        "sample_share": grid.sample_share.median(),
        "solved_128": of_128.solved_s,
        "solved_all": f"{of_128.solved_s.notna().sum()} of {len(of_128)}",
        "loss": (curves.fixed_return - curves.honest_return)[curves.start == "fixed"].mean(),
        "document": _DOCUMENT,
        "gain": gain,
        "costs": lambda *which: study.rounds("grid", "cost_us", **_about(*which)),
    }
    cartpole = partial(_draw_cartpole, solved, curves)
    return Report(values, {"grid": partial(_draw_grid, study), "cartpole": cartpole})


def _episodes(solved: Any, pairs: Sequence[tuple[str, str]]) -> Ratio | None:
    """Episodes to the goal with the first network over those with the second, seed by seed."""
    by_size = solved.pivot(index="seed", columns="size", values="episodes")
    known = [by_size[list(pair)].dropna() for pair in pairs if set(pair) <= set(by_size)]
    first, second = ([x for pair in known for x in pair.iloc[:, column]] for column in (0, 1))
    return compare(first, second, 0.1) if first else None


def _draw_grid(study: Study) -> Figure:
    figure, axes = pictures.panels(3, size=(11, 3.6), columns=3, sharey=True)
    contestants: dict[str, tuple[str, dict[str, Any]]] = {
        "textbook": (COLOURS[1], {}),
        "side by side": (COLOURS[4], {"placement": BESIDE}),
        "ours": (COLOURS[0], {"who": OURS, "every": 0}),
    }
    sizes = study.sizes.sizes
    ends = []
    for each, algorithm in zip(axes, COPY_EVERY, strict=True):
        series = {}
        for name, (_, about) in contestants.items():
            costs = [
                study.rounds("grid", "cost_us", **_about(algorithm, size, **about))
                for size in sizes
            ]
            if costs[0]:
                series[name] = {float(x): values for x, values in enumerate(costs)}
        paint = {name: colour for name, (colour, _) in contestants.items()}
        ends.append(
            pictures.lines(
                each, series, colour=paint, log="y", xlabel="hidden layers", name_ends=False
            )
        )
        each.set_xticks(range(len(sizes)), sizes, fontsize=8)
        each.set_title(algorithm, loc="left", fontsize=10)
    for each, names in zip(axes, ends, strict=True):
        label_ends(each, names)
    axes[0].set_ylabel("time per environment step [µs]")
    return figure


def _draw_cartpole(solved: Any, curves: Any) -> Figure:
    figure, (left, right) = pictures.panels(2, size=(11, 3.8), columns=2)
    ends = []
    for start, paint in (("fixed", COLOURS[1]), ("honest", COLOURS[0])):
        for returns in curves[curves.start == start].returns:
            means = np.convolve(returns, np.ones(20) / 20, "valid")
            left.plot(range(20, 20 + len(means)), means, color=paint, linewidth=1.1)
        ends.append((float(means[-1]), f"textbook,\n{start} start", paint))
    left.axhline(SOLVED, color=pictures.GREY, linestyle=":")
    left.text(0.02, SOLVED, "solved", color=pictures.GREY, va="bottom", fontsize=8,
              transform=left.get_yaxis_transform())  # fmt: skip
    left.set_ylim(0, 210)
    label_ends(left, ends)
    left.set_xlabel("training episodes")
    left.set_ylabel("return, mean of 20")
    known = solved.dropna(subset=["solved_s"]).groupby("size", sort=False).solved_s
    label = "seconds until ours has solved CartPole-v0, by network"
    pictures.points(right, {str(size): list(each) for size, each in known}, label=label)
    return figure
