"""The plots, from the rows of bench.json. Okabe and Ito's colours, which the colour-blind tell
apart; lines and bars carry their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import NullLocator
from settings import STEPPING_IDS, Row

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
GREY = "#707070"
OURS = "pyfastenv"
LIMIT = "physics limit"


def write_all(results: dict[str, Any], output: Path) -> None:
    """Every plot whose section has been measured."""
    plt.rcParams.update(
        {"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 130, "font.size": 10}
    )
    if "stepping" in results:
        _times_limit(results["stepping"]["rows"], output / "times_limit.png")
    if "tasks" in results:
        _peers(results["tasks"]["rows"], output / "peers.png")
        _envpool(results["tasks"]["rows"], output / "envpool.png")
    if "scaling" in results:
        _scaling(results["scaling"]["rows"], output / "scaling.png")


def _times_limit(rows: list[Row], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
    sizes = sorted({row["num_envs"] for row in rows})
    ids = [env_id for env_id in STEPPING_IDS if any(row["env_id"] == env_id for row in rows)]
    ends = []
    for k, env_id in enumerate(ids):
        mine = sorted((r for r in rows if r["env_id"] == env_id), key=lambda r: r["num_envs"])
        shares = [row["ratios"][LIMIT] for row in mine]
        # side by side, so that error bars do not hide one another
        x = [sizes.index(row["num_envs"]) + 0.06 * (k - (len(ids) - 1) / 2) for row in mine]
        y = [s["median"] for s in shares]
        errors = [
            [s["median"] - s["q1"] for s in shares],
            [s["q3"] - s["median"] for s in shares],
        ]
        axes.errorbar(x, y, errors, color=COLOURS[k], marker="o", ms=4, lw=1.5, capsize=3)
        ends.append((y[-1], env_id, COLOURS[k]))
    axes.axhline(1.0, color=GREY, lw=1, ls="--")
    axes.text(-0.3, 1.0, "bare mj_step loop in C++", color=GREY, va="bottom", fontsize=9)
    axes.set_ylim(bottom=0.0)
    _label_ends(axes, len(sizes) - 0.8, ends)
    axes.set_xlim(-0.35, len(sizes) - 0.15)
    axes.set_xticks(range(len(sizes)), [f"{n:,}" for n in sizes])
    axes.set_xlabel("environments")
    axes.set_ylabel("times the physics limit")
    axes.set_title("pyfastenv's step() against the physics alone\n(medians and quartiles)")
    _save(figure, path)


def _label_ends(axes: Any, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Names at the lines' right ends, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 0.05 * (high - low)
    at = -float("inf")
    for y, text, colour in sorted(ends):
        at = max(y, at + gap)
        axes.text(x, at, text, color=colour, va="center", fontsize=9, clip_on=False)


def _peers(rows: list[Row], path: Path) -> None:
    shown = [r for r in rows if r["num_envs"] == 64 and len(r.get("ratios", {})) > 1]
    if not shown:
        return
    figure, panels = plt.subplots(
        1,
        len(shown),
        figsize=(4 * len(shown), 3.2),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, row in zip(panels[0], shown, strict=True):
        names = list(row["rates"])
        medians = [row["summary"][name]["median"] for name in names]
        errors = [
            [row["summary"][n]["median"] - row["summary"][n]["q1"] for n in names],
            [row["summary"][n]["q3"] - row["summary"][n]["median"] for n in names],
        ]
        colours = [COLOURS[0] if name == OURS else "#BBBBBB" for name in names]
        axes.barh(names, medians, xerr=errors, color=colours, ecolor=GREY, capsize=2)
        for y, (value, error) in enumerate(zip(medians, errors[1], strict=True)):
            axes.text(value + error, y, f" {value:,.0f}", va="center", fontsize=9)
        axes.set_xlim(0, 1.25 * max(m + e for m, e in zip(medians, errors[1], strict=True)))
        axes.invert_yaxis() if axes is panels[0][0] else None
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
        axes.set_title(row["env_id"])
        axes.set_xlabel("env steps per second")
    figure.suptitle(
        f"64 environments, {shown[0]['num_threads']} threads (gymnasium async: 64 processes)"
    )
    _save(figure, path)


def _envpool(rows: list[Row], path: Path) -> None:
    shown = [r for r in rows if "EnvPool" in r.get("ratios", {})]
    if not shown:
        return
    ids = list(dict.fromkeys(row["env_id"] for row in shown))
    sizes = sorted({row["num_envs"] for row in shown})
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(ids) + 1.6), layout="constrained")
    for k, num_envs in enumerate(sizes):
        mine = [row for row in shown if row["num_envs"] == num_envs]
        y = [ids.index(row["env_id"]) + 0.15 * (k - (len(sizes) - 1) / 2) for row in mine]
        factors = [row["ratios"]["EnvPool"] for row in mine]
        x = [f["median"] for f in factors]
        errors = [
            [f["median"] - f["q1"] for f in factors],
            [f["q3"] - f["median"] for f in factors],
        ]
        axes.errorbar(
            x,
            y,
            xerr=errors,
            fmt="osD^"[k % 4],
            ms=5,
            color=COLOURS[k],
            capsize=2,
            label=f"{num_envs:,} environments",
        )
    axes.axvline(1.0, color=GREY, lw=1, ls="--")
    axes.set_yticks(range(len(ids)), ids)
    axes.invert_yaxis()
    axes.set_xlim(left=min(0.9, axes.get_xlim()[0]))
    axes.set_xlabel("pyfastenv's rate / EnvPool's rate (median and quartiles of rounds)")
    axes.set_title("Times as fast as EnvPool")
    figure.legend(loc="outside lower center", ncols=len(sizes), frameon=False)
    _save(figure, path)


def _scaling(rows: list[Row], path: Path) -> None:
    ids = list(dict.fromkeys(row["env_id"] for row in rows))
    figure, panels = plt.subplots(
        1, len(ids), figsize=(4.6 * len(ids), 3.8), squeeze=False, layout="constrained"
    )
    for axes, env_id in zip(panels[0], ids, strict=True):
        mine = [row for row in rows if row["env_id"] == env_id]
        threads = [row["num_threads"] for row in mine]
        ends = {name: mine[-1]["summary"][name]["median"] for name in (OURS, LIMIT)}
        for name, colour in ((OURS, COLOURS[0]), (LIMIT, COLOURS[1])):
            below = ends[name] == min(ends.values())
            values = [row["summary"][name] for row in mine]
            y = [v["median"] for v in values]
            errors = [
                [v["median"] - v["q1"] for v in values],
                [v["q3"] - v["median"] for v in values],
            ]
            axes.errorbar(threads, y, errors, color=colour, marker="o", ms=4, capsize=3)
            axes.annotate(
                name,
                (threads[-1], y[-1]),
                xytext=(0, -18 if below else 10),
                textcoords="offset points",
                color=colour,
                ha="right",
                va="center",
            )
        ideal = [mine[0]["summary"][OURS]["median"] * n / threads[0] for n in threads]
        axes.plot(threads, ideal, color=GREY, ls="--", lw=1)
        axes.annotate(
            "ideal: threads × 1 thread's",
            (threads[-1], ideal[-1]),
            xytext=(-60, 0),
            textcoords="offset points",
            color=GREY,
            ha="right",
            va="center",
            fontsize=9,
        )
        axes.set_xscale("log", base=2)
        axes.set_xticks(threads, [str(n) for n in threads])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
        axes.margins(x=0.15)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
        axes.set_xlabel("threads (64 environments each)")
        axes.set_ylabel("env steps per second")
        axes.set_title(env_id)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path)
    plt.close(figure)
