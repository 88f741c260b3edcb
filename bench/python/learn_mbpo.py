"""What SAC, FlashSAC and MBPO learn: ``python bench/python/learn_mbpo.py [--only NAME …]``.

Trains each case below with its preset and writes docs/results/mbpo.json, mbpo.md and mbpo.png,
which has others' published curves (published.toml) too. A case in the JSON is not run again; one
that was interrupted goes on from its latest checkpoint.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import statistics
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyfastenv.experiments import measure, pictures
from pyfastenv.experiments.tables import table
from pyfastenv.training.atomic import write_text
from pyfastenv.training.checkpoint import CheckpointDir
from pyfastenv.training.logger import read_metrics
from pyfastenv.training.plots import COLOURS
from pyfastenv.training.registry import algorithm_module

ROOT = Path(__file__).parents[2]
PUBLISHED = Path(__file__).with_name("published.toml")
COMMON = {"amp": True, "quiet": True, "loggers": ()}


@dataclass(frozen=True)
class Case:
    """A training."""

    algorithm: str
    env_id: str
    options: dict[str, Any]


def _mbpo(env_id: str, steps: int, **options: Any) -> Case:
    return Case("mbpo", env_id, {"total_steps": steps, **options})


CASES = {
    "SAC, Pendulum": Case("sac", "Pendulum-v1", {"total_steps": 10_000}),
    "MBPO, InvertedPendulum": _mbpo("InvertedPendulum-v5", 5_000),
    "MBPO + flow, InvertedPendulum": _mbpo("InvertedPendulum-v5", 5_000, dynamics="flow"),
    "MBPO, Hopper": _mbpo("Hopper-v5", 35_000),
    "MBPO + flow, Hopper": _mbpo("Hopper-v5", 35_000, dynamics="flow"),
    "SAC, Hopper": Case(
        "sac", "Hopper-v5", {"total_steps": 300_000, "eval_every": 10_000, "num_envs": 4}
    ),
    "MBPO (three seeds), Hopper": _mbpo("Hopper-v5", 130_000, num_seeds=3),
    "MBPO (two seeds), Walker2d": _mbpo("Walker2d-v5", 105_000, num_seeds=2),
    "SAC, HalfCheetah": Case("sac", "HalfCheetah-v5", {"total_steps": 300_000}),
    "FlashSAC, HalfCheetah": Case("flashsac", "HalfCheetah-v5", {"total_steps": 300_000}),
}


def learn(name: str, case: Case, folder: Path, threads: int) -> dict[str, Any]:
    """Trains, or goes on; returns what came of it."""
    module = algorithm_module(case.algorithm)
    options = {**COMMON, **case.options, "torch_threads": threads}
    resume = CheckpointDir(folder / "checkpoints").latest()
    where = {"resume": folder} if resume is not None else {"run_dir": folder}
    config = module.Config.preset(case.env_id, **options, **where)
    result = module.train(config)
    rows = read_metrics(folder)
    curve = [[row["step"], row["eval/return"]] for row in rows if "eval/return" in row]
    training = [[row["step"], row["train/return"]] for row in rows if "train/return" in row]
    return {
        "name": name,
        "algorithm": case.algorithm,
        "env_id": case.env_id,
        "seed": config.seed,
        "steps": result.global_step,
        "seconds": round(result.elapsed_s, 1),
        "curve": curve,
        "training": training[:: max(1, len(training) // 200)],
        "config": {k: v for k, v in config.to_dict().items() if k not in ("resume", "run_dir")},
        "machine": measure.machine(),
    }


def published_beside(runs: list[dict[str, Any]], env_id: str) -> list[dict[str, Any]]:
    """Published curves of the algorithms trained in an environment, as far as ours go."""
    reached: dict[str, float] = {}
    for run in runs:
        if run["env_id"] == env_id:
            last = run["curve"][-1][0] / 1e3
            reached[run["algorithm"]] = max(last, reached.get(run["algorithm"], 0.0))
    curves = []
    for curve in tomllib.loads(PUBLISHED.read_text("utf-8"))["curve"]:
        last = reached.get(curve["algorithm"], 0.0)
        points = [point for point in curve["points"] if point[0] <= last]
        if curve["env_id"] == env_id and points:
            curves.append({**curve, "points": points})
    return curves


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """One panel per environment: greedy evaluations against steps."""
    env_ids = list(dict.fromkeys(run["env_id"] for run in runs))
    count = len(env_ids)
    figure, panels = pictures.panels(count, size=(4.6 * count, 3.4), columns=count)
    for axes, env_id in zip(panels, env_ids, strict=True):
        for i, run in enumerate(r for r in runs if r["env_id"] == env_id):
            steps, returns = zip(*run["curve"], strict=True)
            label = run["name"].split(",")[0]
            axes.plot([step / 1e3 for step in steps], returns, color=COLOURS[i], label=label)
        for curve, mark in zip(published_beside(runs, env_id), "ox^", strict=False):
            steps, returns = zip(*curve["points"], strict=True)
            axes.plot(steps, returns, f"k{mark}", markersize=4, label=curve["name"])
        if len({run["algorithm"] for run in runs if run["env_id"] == env_id}) > 1:
            axes.set_xscale("log")  # MBPO needs a tenth of SAC's steps
            axes.xaxis.set_major_formatter("{x:g}")
        axes.set_title(env_id)
        axes.set_xlabel("environment steps [thousands]")
        axes.set_ylabel("return, 10 greedy episodes")
        axes.legend(frameon=False)
    pictures.save(figure, path)


def markdown(runs: list[dict[str, Any]]) -> str:
    """The table."""
    lines = [
        "# What SAC, FlashSAC and MBPO learn",
        "",
        "Written by `python bench/python/learn_mbpo.py` (`make results-mbpo`): presets, `--amp`,",
        "one seed unless said, greedy evaluations of ten episodes; steps include the random ones",
        "(5,000 of MBPO's on Hopper). Runs, settings and curves are in mbpo.json.",
        "",
    ]
    rows = []
    for run in runs:
        returns = [value for _, value in run["curve"]]
        last = [
            f"{value:,.0f}" for value in (max(returns), returns[-1], statistics.fmean(returns[-5:]))
        ]
        about = (run["name"].split(",")[0], run["env_id"], f"{run['steps']:,}")
        rows.append((*about, f"{run['seconds'] / 60:.1f}", *last))
    columns = "", "environment", "steps", "minutes", "best evaluation", "last"
    lines.append(table((*columns, "mean of the last five"), rows))
    return "\n".join([*lines, "", "![Learning curves](mbpo.png)", ""])


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/results", help="run folders")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / "mbpo.json"
    for name in args.only:
        results = json.loads(path.read_text()) if path.exists() else {"runs": []}
        if any(run["name"] == name for run in results["runs"]):
            continue
        folder = args.runs / re.sub(r"\W+", "-", name.lower())
        run = learn(name, CASES[name], folder, args.threads)
        print(f"{name}: {run['curve'][-1][1]:,.1f} in {run['seconds']:.0f} s", flush=True)
        with _alone(args.output):
            # read anew: several of these may run at a time, on different cases
            results = json.loads(path.read_text()) if path.exists() else {"runs": []}
            results["runs"].append(run)
            results["runs"].sort(key=lambda each: list(CASES).index(each["name"]))
            write_text(path, json.dumps(results, indent=1) + "\n")
            write_text(args.output / "mbpo.md", markdown(results["runs"]))
            draw(results["runs"], args.output / "mbpo.png")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other of these programs is at the same."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
