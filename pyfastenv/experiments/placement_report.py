"""What comes of the measurements of `placement`: tables, ratios and pictures."""

from __future__ import annotations

from collections.abc import Sequence
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
    DOCUMENT,
    OURS,
    POOL,
    PPO,
    SOLVED,
    TEXTBOOK,
    Config,
)
from pyfastenv.experiments.report import Report
from pyfastenv.experiments.study import Results
from pyfastenv.experiments.tables import median
from pyfastenv.training.plots import COLOURS, label_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Reader:
    """Costs per environment step by contestant, and their ratios.

    Args:
        results: What was measured.
        config: Its sizes.
    """

    def __init__(self, results: Results, config: Config):
        self.results, self.config = results, config

    def costs(self, algorithm: str, size: str, **about: Any) -> list[float]:
        """Of the grid, round by round; by default the textbook's on the CPU."""
        about = {"who": TEXTBOOK, "placement": CPU, "every": 1} | about
        return self.results.rounds("grid", "cost_us", algorithm=algorithm, size=size, **about)

    def gain(self, algorithm: str, size: str, **about: Any) -> Ratio:
        """How many times as fast as the textbook on the CPU."""
        return compare(self.costs(algorithm, size), self.costs(algorithm, size, **about))

    def seldom(self, algorithm: str, size: str) -> Ratio:
        """How many times as fast with the fewest copies as with one each time."""
        last = COPY_EVERY[algorithm][-1]
        return compare(
            self.costs(algorithm, size, placement=COPY),
            self.costs(algorithm, size, placement=COPY, every=last),
        )


def report(results: Results, config: Config) -> Report:
    """Tables, ratios and pictures."""
    reader, last = Reader(results, config), config.sizes[-1]
    solved, curves = results.part("solved"), results.part("curves")
    frame, grid = results.part("table"), results.part("grid")
    textbook = grid.query("who == @TEXTBOOK and placement == @CPU and every == 1")
    theirs = frame[(frame.who == TEXTBOOK) & (frame.placement == CPU)]
    copies, ours = frame[frame.placement == COPY], frame[frame.who == OURS]
    of_128 = solved[solved["size"] == "128"]
    ratios: dict[str, Ratio | None] = {
        "fewer_copies_ddpg": reader.seldom(DDPG, last),
        "fewer_copies_pool": reader.seldom(POOL, last),
        "sample_first": reader.gain(PPO, last, every=COPY_EVERY[PPO][-1]),
        "beside": reader.gain(PPO, last, placement=BESIDE),
        "ours_faster": reader.gain(PPO, last, who=OURS, every=0),
        "larger": _episodes(solved, [(config.sizes[0], last)]),
        "deeper": _episodes(solved, [(s, f"{s}x{s}") for s in config.sizes if "x" not in s]),
    }
    for name, size, better, worse in (
        ("cpu_for_64", "64", CPU, "sample-cpu"),
        ("both_from_128", "128", "sample-cpu", CPU),
    ):
        slow, fast = (reader.costs(PPO, size, placement=p)[:1] for p in (worse, better))
        ratios[name] = compare(slow, fast) if slow and fast else None  # a single round on the GPU
    values = {
        "last": last,
        "seconds_128": median(list(theirs.seconds)),
        "slowest_128": theirs.seconds.max() / theirs.seconds.min(),
        "ours_128": median(list(ours.cost_us)) * theirs.env_steps.median() / 1e6,
        "copy_share": copies.copy_share.median(),
        "copy_us": copies.copy_us.median(),
        "update_ms": theirs.update_ms.median(),
        "update_of": textbook[textbook.algorithm == PPO].groupby("size").update_ms.median(),
        "sample_share": grid.query("who == @TEXTBOOK").sample_share.median(),
        "solved_128": of_128.solved_s,
        "solved_all": f"{of_128.solved_s.notna().sum()} of {len(of_128)}",
        "document": DOCUMENT,
        "gain": reader.gain,
        "costs": reader.costs,
        "copy_every": COPY_EVERY,
        "CPU": CPU,
        "COPY": COPY,
        "BESIDE": BESIDE,
        "OURS": OURS,
        "DDPG": DDPG,
        "loss": (curves.fixed_return - curves.honest_return)[curves.start == "fixed"].mean(),
    }
    return Report(values, ratios, _pictures(results, config))


def _episodes(solved: Any, pairs: Sequence[tuple[str, str]]) -> Ratio | None:
    """Episodes to the goal with the first network over those with the second, seed by seed."""
    by_size = solved.pivot(index="seed", columns="size", values="episodes")
    known = [by_size[list(pair)].dropna() for pair in pairs if set(pair) <= set(by_size)]
    first, second = ([x for pair in known for x in pair.iloc[:, column]] for column in (0, 1))
    return compare(first, second, 0.1) if first else None


def _pictures(results: Results, config: Config) -> dict[str, Figure]:
    return {"grid": _draw_grid(results, config), "cartpole": _draw_cartpole(results)}


def _draw_grid(results: Results, config: Config) -> Figure:
    grid = results.part("grid")
    figure, axes = pictures.panels(3, size=(11, 3.6), columns=3, sharey=True)
    names = {(TEXTBOOK, CPU): "textbook", (TEXTBOOK, BESIDE): "side by side", (OURS, CPU): "ours"}
    paint = dict(zip(names.values(), (COLOURS[1], COLOURS[4], COLOURS[0]), strict=True))
    for each, algorithm in zip(axes, COPY_EVERY, strict=True):
        frame = grid[(grid.algorithm == algorithm) & (grid.every <= 1)]
        series = {
            names[key]: {
                float(config.sizes.index(size)): list(part.cost_us)
                for size, part in group.groupby("size", sort=False)
            }
            for key, group in frame.groupby(["who", "placement"], sort=False)
            if key in names
        }
        pictures.lines(each, series, colour=paint, log="y", xlabel="hidden layers")
        each.set_xticks(range(len(config.sizes)), config.sizes, fontsize=8)
        each.set_title(algorithm, loc="left", fontsize=10)
    axes[0].set_ylabel("time per environment step [µs]")
    return figure


def _draw_cartpole(results: Results) -> Figure:
    figure, (left, right) = pictures.panels(2, size=(11, 3.8), columns=2)
    curves, ends = results.part("curves"), []
    for start, paint in (("fixed", COLOURS[1]), ("honest", COLOURS[0])):
        for row in curves[curves.start == start].itertuples():
            means = np.convolve(row.returns, np.ones(20) / 20, "valid")
            left.plot(range(20, 20 + len(means)), means, color=paint, linewidth=1.1)
        ends.append((float(means[-1]), f"textbook,\n{start} start", paint))
    left.axhline(SOLVED, color=pictures.GREY, linestyle=":")
    left.text(0.02, SOLVED, "solved", color=pictures.GREY, va="bottom", fontsize=8,
              transform=left.get_yaxis_transform())  # fmt: skip
    left.set_ylim(0, 210)
    label_ends(left, ends)
    left.set_xlabel("training episodes")
    left.set_ylabel("return, mean of 20")
    solved = results.part("solved").dropna(subset=["solved_s"])
    pictures.points(
        right,
        {str(size): list(group.solved_s) for size, group in solved.groupby("size", sort=False)},
        label="seconds until ours has solved CartPole-v0, by network",
    )
    return figure
