"""The plots, from the rates in bench.json's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from settings import STEPPING_IDS, Row

from pyfastenv.experiments import pictures
from pyfastenv.publish.plots import COLOURS

OURS, LIMIT, ENVPOOL = "pyfastenv", "physics limit", "EnvPool"


def write_all(results: dict[str, Any], output: Path) -> None:
    """Every plot whose section has been measured."""
    if "stepping" in results:
        _times_limit(results["stepping"]["rows"], output / "times_limit.png")
    if "tasks" in results:
        _peers(results["tasks"]["rows"], output / "peers.png")
        _envpool(results["tasks"]["rows"], output / "envpool.png")
    if "scaling" in results:
        _scaling(results["scaling"]["rows"], output / "scaling.png")


def _ratios(row: Row, name: str) -> list[float]:
    """Ours over another's, round by round."""
    rates = row["rates"]
    return [ours / theirs for ours, theirs in zip(rates[OURS], rates[name], strict=True)]


def _times_limit(rows: list[Row], path: Path) -> None:
    figure, (axes,) = pictures.panels(size=(8, 4.8))
    by_id = {
        env_id: {
            float(row["num_envs"]): _ratios(row, LIMIT)
            for row in sorted(rows, key=lambda row: int(row["num_envs"]))
            if row["env_id"] == env_id
        }
        for env_id in STEPPING_IDS
    }
    series = {env_id: points for env_id, points in by_id.items() if points}
    pictures.lines(
        axes, series, log="x", bottom=0.0, xlabel="environments", ylabel="times the physics limit"
    )
    sizes = sorted({row["num_envs"] for row in rows})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.axhline(1.0, color=pictures.GREY, lw=1, ls="--")
    axes.text(
        0.01, 1.0, "bare mj_step loop in C++", color=pictures.GREY, va="bottom", fontsize=9,
        transform=axes.get_yaxis_transform(),
    )  # fmt: skip
    axes.set_title("pyfastenv's step() against the physics alone (medians and quartiles)")
    pictures.save(figure, path)


def _peers(rows: list[Row], path: Path) -> None:
    """Steps per second of the programs that step the same environments, of one robot."""
    names = (OURS, ENVPOOL, "gymnasium sync", "gymnasium async")
    shown = [row for row in rows if row["num_envs"] == 64 and set(names) <= set(row["rates"])]
    if not shown:
        return
    row = shown[0]
    rates = [row["summary"][name]["median"] for name in names]
    figure, (axes,) = pictures.panels(size=(5.4, 2.4))
    bars = axes.barh(names, rates, color=[COLOURS[0], *[pictures.GREY] * 3], height=0.7)
    axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=4)
    axes.set_xlim(0, 1.18 * rates[0])
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=11)
    axes.set_title(
        f"Steps per second: 64 × {row['env_id']}, {row['num_threads']} threads", fontsize=11
    )
    pictures.save(figure, path)


def _envpool(rows: list[Row], path: Path) -> None:
    shown = [row for row in rows if ENVPOOL in row.get("ratios", {})]
    if not shown:
        return
    ids = list(dict.fromkeys(row["env_id"] for row in shown))
    sizes = sorted({row["num_envs"] for row in shown})
    size = (4 * len(sizes), 0.3 * len(ids) + 1.4)
    figure, panels = pictures.panels(len(sizes), size=size, columns=len(sizes), sharey=True)
    factors: list[dict[str, list[float]]] = [
        {row["env_id"]: _ratios(row, ENVPOOL) for row in shown if row["num_envs"] == num_envs}
        for num_envs in sizes
    ]
    pictures.points_side_by_side(
        panels, factors, label="pyfastenv's rate / EnvPool's, round by round"
    )
    for axes, num_envs in zip(panels, sizes, strict=True):
        axes.axvline(1.0, color=pictures.GREY, lw=1, ls="--")
        axes.set_title(f"{num_envs:,} environments")
    pictures.save(figure, path)


def _scaling(rows: list[Row], path: Path) -> None:
    ids = list(dict.fromkeys(row["env_id"] for row in rows))
    figure, panels = pictures.panels(len(ids), size=(4.6 * len(ids), 3.8), columns=len(ids))
    for axes, env_id in zip(panels, ids, strict=True):
        mine = [row for row in rows if row["env_id"] == env_id]
        one = mine[0]["summary"][OURS]["median"] / mine[0]["num_threads"] / 1e3
        series = {
            name: {row["num_threads"]: [x / 1e3 for x in row["rates"][name]] for row in mine}
            for name in (OURS, LIMIT)
        }
        series["ideal"] = {row["num_threads"]: [one * row["num_threads"]] for row in mine}
        pictures.lines(
            axes, series, colour={"ideal": pictures.GREY}, styles={"ideal": "--"}, bottom=0.0,
            xlabel="threads (64 environments each)", ylabel="thousand env steps per second",
        )  # fmt: skip
        axes.set_xticks([row["num_threads"] for row in mine])
        axes.set_title(env_id)
    pictures.save(figure, path)
