"""What comes of the measurements of `placement`: tables, ratios and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines.textbook import PLACEMENTS
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
from pyfastenv.experiments.tables import cell, grouped, median, number, spread, table
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
        if results.has_gpu and size in config.sizes:  # a single round there
            slow, fast = (reader.costs(PPO, size, placement=p)[:1] for p in (worse, better))
            ratios[name] = compare(slow, fast)
    values = {
        "last": last,
        "seconds_128": median(list(theirs.seconds)),
        "slowest_128": theirs.seconds.max() / theirs.seconds.min(),
        "ours_128": median(list(ours.cost_us)) * theirs.env_steps.median() / 1e6,
        "copy_share": copies.copy_share.median(),
        "copy_us": copies.copy_us.median(),
        "update_ms": theirs.update_ms.median(),
        "cost": lambda algorithm, size: number(median(reader.costs(algorithm, size))),
        "update": lambda size: number(
            textbook[(textbook.algorithm == PPO) & (textbook["size"] == size)].update_ms.median()
        ),
        "sample_share": grid.query("who == @TEXTBOOK").sample_share.median(),
        "solved_128": cell(of_128.solved_s.median()),
        "solved_all": f"{of_128.solved_s.notna().sum()} of {len(of_128)}",
        "table": _table(results),
        "advice": _advice(reader),
        "on_gpu": _on_gpu(results),
        "by_size": grouped(
            solved,
            ["size"],
            {
                "hidden layers": lambda g, size: size,
                "episodes to 195": lambda g, _: _spread(g.episodes),
                "seconds": lambda g, _: _spread(g.solved_s),
                "greedy, other starts": lambda g, _: f"{g.honest_return.mean():.1f}",
                "seeds": lambda g, _: f"{g.solved_s.notna().sum()} of {len(g)}",
            },
        ),
        "starts": grouped(
            curves,
            ["start"],
            {
                "trained from": lambda g, start: start,
                "episodes to 195": lambda g, _: _spread(g.episodes),
                "seconds": lambda g, _: _spread(g.solved_s),
                "greedy from its start": lambda g, _: f"{g.fixed_return.mean():.1f}",
                "greedy from 100 other starts": lambda g, _: f"{g.honest_return.mean():.1f}",
                "trainings": lambda g, _: f"{g.solved_s.notna().sum()} of {len(g)} solved",
            },
        ),
        "loss": (curves.fixed_return - curves.honest_return)[curves.start == "fixed"].mean(),
    }
    return Report(values, ratios, _pictures(results, config))


def _spread(values: Any) -> str:
    known = list(values.dropna())
    return spread(known) if known else "not solved"


def _episodes(solved: Any, pairs: Sequence[tuple[str, str]]) -> Ratio | None:
    """Episodes to the goal with the first network over those with the second, seed by seed."""
    by_size = solved.pivot(index="seed", columns="size", values="episodes")
    known = [by_size[list(pair)].dropna() for pair in pairs if set(pair) <= set(by_size)]
    first, second = ([x for pair in known for x in pair.iloc[:, column]] for column in (0, 1))
    return compare(first, second, 0.1) if first else None


def _table(results: Results) -> str:
    rows = []
    for (who, placement), group in results.part("table").groupby(["who", "placement"], sort=False):
        theirs = DOCUMENT.get(placement, ("", "", "", "")) if who == TEXTBOOK else ("", "", "", "")
        cpus = results.cpus
        gpu = group.gpu_percent.median() if "gpu_percent" in group else None
        rows.append(
            (
                f"{who}, {placement}",
                *theirs,
                spread(list(group.seconds)),
                spread(list(group.cost_us)),
                f"{100 * group.cpus.median() / cpus:.0f}",
                cell(gpu),
                number(group.update_ms.median()),
                f"{group.copy_us.median():.0f} µs ({group.copy_share.median():.2%})"
                if group.copy_us.max() > 0.0
                else "none",
            )
        )
    columns = ["PPO, CartPole-v0, 128", "document: time [s]", "CPU [%]", "GPU [%]", "update [ms]",
               "here: time [s]", "per step [µs]", "CPU [%]", "GPU [%]", "update [ms]",
               "a copy (of the time)"]  # fmt: skip
    return table(columns, rows)


def _advice(reader: Reader) -> str:
    parts = []
    for algorithm, frequencies in COPY_EVERY.items():
        rows = []
        for size in reader.config.sizes:
            gain = partial(reader.gain, algorithm, size)
            beside = "–" if algorithm == DDPG else gain(placement=BESIDE).mark
            rows.append(
                (
                    size,
                    spread(reader.costs(algorithm, size)),
                    gain(placement=COPY).mark,
                    *(gain(every=every).mark for every in frequencies[1:]),
                    beside,
                    gain(who=OURS, every=0).mark,
                )
            )
        unit = "steps" if algorithm == DDPG else "episodes"
        columns = [f"{algorithm}: hidden layers", "cpu [µs per step]", "a copy acts",
                   *(f"every {every} {unit}" for every in frequencies[1:]), "actor beside critic",
                   "ours"]  # fmt: skip
        parts.append(table(columns, rows))
    return "\n\n".join(parts)


def _on_gpu(results: Results) -> str | None:
    """Every placement's cost per step, where there is a GPU; its CPU and GPU use."""
    grid = results.part("grid").query("who == @TEXTBOOK and every == 1")
    if not any(PLACEMENTS[name].needs_cuda for name in grid.placement):
        return None
    return grouped(
        grid,
        ["algorithm", "size", "placement"],
        {
            "algorithm": lambda g, algorithm, *_: algorithm,
            "hidden layers": lambda g, _, size, __: size,
            "placement": lambda g, *key: key[-1],
            "per step [µs]": lambda g, *_: spread(list(g.cost_us)),
            "update [ms]": lambda g, *_: float(g.update_ms.median()),
            "a copy [µs]": lambda g, *_: float(g.copy_us.median()),
            "CPUs": lambda g, *_: float(g.cpus.median()),
            "GPU [%]": lambda g, *_: float(g.gpu_percent.median()),
        },
    )


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
