"""What comes of the measurements of `placement`: tables, claims and pictures."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines.textbook import PLACEMENTS
from pyfastenv.experiments.claims import Claim, Ratio, compare
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
from pyfastenv.training.plots import COLOURS


def _costs(results: Results, part: str, **about: Any) -> list[float]:
    about = {"who": TEXTBOOK, "placement": CPU, "every": 1} | about
    return results.rounds(part, "cost_us", **about)


def _gain(results: Results, algorithm: str, size: str, **about: Any) -> Ratio:
    """How many times as fast as on the CPU with a copy each time."""
    about = {"algorithm": algorithm, "size": size} | about
    return compare(
        _costs(results, "grid", algorithm=algorithm, size=size), _costs(results, "grid", **about)
    )


def report(results: Results, config: Config) -> Report:
    """Tables, claims and pictures."""
    made = Report()
    solved, curves = results.part("solved"), results.part("curves")
    frame, last = results.part("table"), config.sizes[-1]
    by_size = {size: list(group.episodes.dropna()) for size, group in solved.groupby("size")}
    first = config.sizes[0]
    faster = _gain(results, PPO, last, who=OURS, every=0)
    copies = frame[frame.placement == COPY]
    theirs = frame[(frame.who == TEXTBOOK) & (frame.placement == CPU)]
    ours = frame[frame.who == OURS]
    share = results.part("grid").query("who == @TEXTBOOK").sample_share
    of_128 = solved[solved["size"] == "128"]
    paired = solved.pivot(index="seed", columns="size", values="episodes").dropna()
    converge = compare(list(paired[first]), list(paired[last]), 0.1) if len(paired) > 0 else None
    made.values = {
        "gpu": results.has_gpu,
        "seconds_128": median(list(theirs.seconds)),
        "ours_128": median(list(ours.cost_us)) * theirs.env_steps.median() / 1e6,
        "copy_share": copies.copy_share.median(),
        "copy_us": copies.copy_us.median(),
        "update_ms": theirs.update_ms.median(),
        "sample_share": share.median(),
        "solved_128": cell(of_128.solved_s.median()),
        "solved_all": f"{of_128.solved_s.notna().sum()} of {len(of_128)}",
        "ours_faster": faster,
        "table": _table(results),
        "advice": _advice(results, config),
        "on_gpu": _on_gpu(results),
        "by_size": table(
            ("hidden layers", "episodes to 195", "seconds", "greedy, other starts", "seeds"),
            [
                (
                    size,
                    spread(by_size[size]) if by_size[size] else "not solved",
                    spread(list(group.solved_s.dropna())) if by_size[size] else "–",
                    f"{group.honest_return.mean():.1f}",
                    f"{len(by_size[size])} of {len(group)}",
                )
                for size, group in solved.groupby("size", sort=False)
            ],
        ),
        "starts": table(
            (
                "trained from",
                "episodes to 195",
                "seconds",
                "greedy from its start",
                "greedy from 100 other starts",
                "trainings",
            ),
            [
                (
                    start,
                    cell(group.episodes.median()),
                    cell(group.solved_s.median()),
                    f"{group.fixed_return.mean():.1f}",
                    f"{group.honest_return.mean():.1f}",
                    f"{group.solved_s.notna().sum()} of {len(group)} solved",
                )
                for start, group in curves.groupby("start", sort=False)
            ],
        ),
        "loss": (curves.fixed_return - curves.honest_return)[curves.start == "fixed"].mean(),
    }
    made.claims = list(_claims(results, config, converge))
    _draw(made, results, config)
    return made


def _claims(results: Results, config: Config, converge: Ratio | None) -> list[Claim]:
    first, last = config.sizes[0], config.sizes[-1]
    seldom = {algorithm: every[-1] for algorithm, every in COPY_EVERY.items()}
    needs = "needs a GPU"
    claims = [
        Claim("document: networks of 64 are fastest on the CPU", "–", "more", None, needs),
        Claim(
            "document: from 128 on, the CPU samples and the GPU learns", "–", "more", None, needs
        ),
    ]
    for algorithm, expected in ((DDPG, "more"), (POOL, "equal")):
        pair = [
            _costs(results, "grid", algorithm=algorithm, size=last, placement=COPY, every=every)
            for every in (1, seldom[algorithm])
        ]
        claims.append(
            Claim(
                f"document: fewer copies {'help' if expected == 'more' else 'are no help to'} "
                f"{algorithm} ({last}; here from CPU to CPU)",
                f"every {seldom[algorithm]} / every 1, speed",
                "more" if expected == "more" else "equal",
                compare(pair[0], pair[1]),
            )
        )
    return [
        *claims,
        Claim(
            "document: larger networks converge faster",
            f"episodes to 195 with ours, {first} / {last}",
            "more",
            converge,
            "not all sizes solved it",
        ),
        Claim(
            "document: actor and critic side by side pay (here two threads)",
            f"speed beside one after the other, PPO {last}",
            "more",
            _gain(results, PPO, last, placement=BESIDE),
        ),
        Claim(
            "ours: environments in a batch, the policy beside them, beat any placement",
            f"speed per environment step, PPO {last}",
            "more",
            _gain(results, PPO, last, who=OURS, every=0),
        ),
    ]


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


def _advice(results: Results, config: Config) -> str:
    parts = []
    for algorithm, frequencies in COPY_EVERY.items():
        rows = []
        for size in config.sizes:
            gain = partial(_gain, results, algorithm, size)
            beside = "–" if algorithm == DDPG else gain(placement=BESIDE).mark
            rows.append(
                (
                    size,
                    spread(_costs(results, "grid", algorithm=algorithm, size=size)),
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


def _draw(made: Report, results: Results, config: Config) -> None:
    grid = results.part("grid")
    figure, axes = pictures.panels(3, size=(11, 3.6), columns=3, sharey=True)
    names = {(TEXTBOOK, CPU): "textbook", (TEXTBOOK, BESIDE): "side by side", (OURS, CPU): "ours"}
    by_name = pictures.colours(list(names.values()))
    for each, algorithm in zip(axes, COPY_EVERY, strict=True):
        series: dict[str, dict[float, list[float]]] = {}
        frame = grid[(grid.algorithm == algorithm) & (grid.every <= 1)]
        for (who, placement), group in frame.groupby(["who", "placement"], sort=False):
            if (who, placement) in names:
                series[names[who, placement]] = {
                    float(config.sizes.index(size)): list(part.cost_us)
                    for size, part in group.groupby("size", sort=False)
                }
        pictures.lines(each, series, colour=by_name, log="y", xlabel="hidden layers")
        each.set_xticks(range(len(config.sizes)), config.sizes, fontsize=8)
        each.set_title(algorithm, loc="left", fontsize=10)
    axes[0].set_ylabel("time per environment step [µs]")
    made.pictures["grid"] = (figure, "Sampling and learning, per environment step.")
    figure, (left, right) = pictures.panels(2, size=(11, 3.8), columns=2)
    curves, ends = results.part("curves"), []
    for start, paint in (("fixed", COLOURS[1]), ("honest", COLOURS[0])):
        for row in curves[curves.start == start].itertuples():
            means = np.convolve(row.returns, np.ones(20) / 20, "valid")
            left.plot(range(20, 20 + len(means)), means, color=paint, linewidth=1.1)
        ends.append((float(means[-1]), f"textbook,\n{start} start", paint))
    left.axhline(SOLVED, color=pictures.GREY, linestyle=":")
    pictures.name_ends(left, ends, gap=0.14)
    left.set_xlabel("training episodes")
    left.set_ylabel("return, mean of 20")
    solved = results.part("solved").dropna(subset=["solved_s"])
    pictures.points(
        right,
        {str(size): list(group.solved_s) for size, group in solved.groupby("size", sort=False)},
        label="seconds until ours has solved CartPole-v0, by network",
    )
    made.pictures["cartpole"] = (
        figure,
        "Left: the textbook's learning curves, every seed a line. Right: medians and quartiles of "
        "seeds.",
    )
