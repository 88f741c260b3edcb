"""Sweeps: the same training with several values of its options, several seeds each; one table, one
plot.

An algorithm that can train seeds side by side (``num_seeds``) trains all seeds of a case in one
run; another one trains them one after another. A sweep that was stopped goes on where it was: a run
that has a result is not made again.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from pyfastenv.training.atomic import write_text
from pyfastenv.training.config import RunConfig
from pyfastenv.training.plots import plot_means
from pyfastenv.training.registry import algorithm_module
from pyfastenv.training.run_folder import RESULT, env_name, read_config
from pyfastenv.vector.arguments import integer

TABLE = "sweep.md"
RESULTS = "sweep.json"
PLOT = "sweep.png"
# options that each run gets from the sweep
_OF_THE_SWEEP = ("env_id", "num_seeds", "run_dir", "resume", "auto_resume")


@dataclass(frozen=True)
class Case:
    """One choice of values.

    Attributes:
        options: The options that the sweep varies, as this case has them.
        runs: The run folders.
        returns: Each seed's last evaluation.
    """

    options: dict[str, Any]
    runs: tuple[Path, ...]
    returns: tuple[float, ...]

    @property
    def label(self) -> str:
        """``"learning_rate=0.001, gamma=0.99"``."""
        return _label(self.options)


@dataclass(frozen=True)
class Sweep:
    """What a sweep came to, the best case first.

    Attributes:
        folder: Where everything is.
        cases: By mean return.
        table: In Markdown.
        plot: The picture.
    """

    folder: Path
    cases: tuple[Case, ...]
    table: str
    plot: Path


def sweep(
    algorithm: str,
    grid: Mapping[str, Sequence[Any]],
    *,
    env_id: str | None = None,
    seeds: int = 3,
    folder: Path | None = None,
    **options: Any,
) -> Sweep:
    """Trains every combination of values with every seed.

    Args:
        algorithm: A name of :data:`pyfastenv.training.registry.ALGORITHMS`.
        grid: Options and the values that each is to have.
        env_id: The environment; by default the algorithm's.
        seeds: How many, from ``seed`` (an option, by default 1) on.
        folder: Where everything goes; by default sweeps/<algorithm>-<env>-<date>.
        **options: Options that all runs have.

    Raises:
        ValueError: Options that cannot be; nothing has been trained.
    """
    integer("seeds", seeds, minimum=1)
    config_class: type[RunConfig] = algorithm_module(algorithm).Config
    env_id = env_id or config_class.env_id
    known = {field.name for field in fields(config_class)}
    for name in (*grid, *options):
        if name not in known or name in _OF_THE_SWEEP:
            raise ValueError(f"{name}: {algorithm} has no such option to sweep")
    if folder is None:
        folder = Path("sweeps") / f"{algorithm}-{env_name(env_id)}-{datetime.now():%Y%m%d-%H%M%S}"
    cases = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    configs = [
        _configs(config_class, folder, env_id, seeds, case, {**options, **case}) for case in cases
    ]
    for config in (one for each in configs for one in each):
        try:
            config.check()
        except TypeError as error:  # a value of another type is a value that cannot be
            raise ValueError(str(error)) from error
    train = algorithm_module(algorithm).train
    done = []
    for i, (case, each) in enumerate(zip(cases, configs, strict=True)):
        for config in each:
            assert config.run_dir is not None
            if (config.run_dir / RESULT).is_file():
                _check_done(config.run_dir, config)
            else:
                print(f"[{i + 1} of {len(cases)}] {_label(case)} → {config.run_dir}", flush=True)
                train(config)
        runs = tuple(config.run_dir for config in each if config.run_dir is not None)
        done.append(Case(case, runs, tuple(value for run in runs for value in _returns(run))))
    return _summed_up(folder, f"{algorithm} on {env_id}", done)


def _configs(
    config_class: type[RunConfig],
    folder: Path,
    env_id: str,
    seeds: int,
    case: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[RunConfig]:
    """The runs of a case: one with all seeds if they can stand side by side, else one for each."""
    name = ",".join(f"{key}={_word(value)}" for key, value in case.items()) or "all"
    first = config_class.preset(env_id, auto_resume=True, **options)
    if "num_seeds" in {field.name for field in fields(config_class)}:
        return [replace(first, run_dir=folder / name, num_seeds=seeds)]  # type: ignore[call-arg]
    return [
        replace(first, run_dir=folder / f"{name},seed={seed}", seed=seed)
        for seed in range(first.seed, first.seed + seeds)
    ]


def _check_done(run: Path, config: RunConfig) -> None:
    """Checks that a run that is there already is the one that is wanted."""
    algorithm, saved = read_config(run)
    try:
        config.check_resumes(algorithm, saved, config.may_differ - {"total_steps"})
    except ValueError as error:
        raise ValueError(f"{run}: {error}; choose another folder for this sweep") from error


def _returns(run: Path) -> list[float]:
    """The last evaluation of each seed in a run."""
    evaluation = json.loads((run / RESULT).read_text())["evaluation"]
    each: list[float] = []
    while (name := f"eval/return_{len(each)}") in evaluation:
        each.append(float(evaluation[name]))
    return each or [float(evaluation["eval/return"])]


def _summed_up(folder: Path, title: str, cases: Sequence[Case]) -> Sweep:
    ranked = sorted(cases, key=lambda case: statistics.mean(case.returns), reverse=True)
    names = list(ranked[0].options)
    header = [*names, "return", "± s.d. of seeds", "least", "greatest", "seeds"]
    lines = [" | ".join(header), " | ".join("---" for _ in header)]
    for case in ranked:
        spread = statistics.stdev(case.returns) if len(case.returns) > 1 else 0.0
        numbers = (statistics.mean(case.returns), spread, min(case.returns), max(case.returns))
        row = [*map(_word, case.options.values()), *(f"{x:,.1f}" for x in numbers)]
        lines.append(" | ".join([*row, str(len(case.returns))]))
    table = "".join(f"| {line} |\n" for line in lines)
    write_text(folder / TABLE, f"# {title}\n\n{table}")
    results = [
        {"options": case.options, "runs": list(map(str, case.runs)), "returns": case.returns}
        for case in ranked
    ]
    write_text(folder / RESULTS, json.dumps(results, indent=2, default=str) + "\n")
    plot = plot_means({case.label: case.runs for case in ranked}, folder / PLOT, title)
    return Sweep(folder, tuple(ranked), table, plot)


def _label(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_word(value)}" for name, value in options.items()) or "defaults"


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(_word, value))
    return f"{value:g}" if isinstance(value, float) else str(value).replace("/", "-")
