"""Sweeps: the same training with several values of its options, several seeds each; one table, one
plot.

An algorithm that can train seeds side by side (``num_seeds``) trains all seeds of a case in one
run; another one trains them one after another. A sweep that was stopped goes on where it was: a run
that has a result, or has diverged, is not made again.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pyfastenv.publish.plots import plot_means
from pyfastenv.runs import checkpoint
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.errors import DivergedError
from pyfastenv.runs.folder import RESULT, env_name, read_config
from pyfastenv.runs.options import marked
from pyfastenv.runs.registry import algorithm_module
from pyfastenv.tasks.language.spelling import did_you_mean
from pyfastenv.vector.arguments import integer

TABLE = "sweep.md"
RESULTS = "sweep.json"
PLOT = "sweep.png"
DIVERGED = "diverged.txt"  # in the folder of a run that did
# options that each run gets from the sweep
_OF_THE_SWEEP = ("env_id", "num_seeds", "run_dir", "resume", "auto_resume")


@dataclass(frozen=True)
class Case:
    """One choice of values.

    Attributes:
        options: The options that the sweep varies, as this case has them.
        runs: The run folders.
        returns: Each seed's last evaluation, but of those that diverged.
        diverged: Of the runs that did: what happened.
    """

    options: dict[str, Any]
    runs: tuple[Path, ...]
    returns: tuple[float, ...]
    diverged: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``"learning_rate=0.001, gamma=0.99"``."""
        return _label(self.options)

    @property
    def mean_return(self) -> float:
        """Over the seeds; minus infinity if all diverged."""
        return statistics.mean(self.returns) if self.returns else -math.inf


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep, the best case first.

    Attributes:
        folder: Where everything is.
        cases: By mean return, those in which a seed diverged last.
        table: In Markdown.
        plot: The picture.
    """

    folder: Path
    cases: tuple[Case, ...]
    table: str
    plot: Path


def sweep(
    algorithm: str,
    grid: Mapping[str, Iterable[Any]],
    *,
    env_id: str | None = None,
    seeds: int = 3,
    folder: Path | str | None = None,
    **options: Any,
) -> Sweep:
    """Trains every combination of values with every seed.

    A training that diverges is reported and left as it is: :data:`DIVERGED` in its folder says why.

    Args:
        algorithm: A name of :data:`pyfastenv.runs.registry.ALGORITHMS`.
        grid: Options and the values that each is to have.
        env_id: The environment; by default the algorithm's.
        seeds: How many, from ``seed`` (an option, by default 1) on.
        folder: Where everything goes; by default sweeps/<algorithm>-<env>-<date>.
        **options: Options that all runs have.

    Raises:
        TypeError, ValueError: Options that cannot be; nothing has been trained.
        DivergedError: Every training did.
    """
    integer("seeds", seeds, minimum=1)
    config_class: type[RunConfig] = algorithm_module(algorithm).Config
    env_id = env_id or config_class.env_id
    known = {field.name for field in fields(config_class)}
    for name in (*grid, *options):
        if name in _OF_THE_SWEEP:
            why = ": a sweep is of one" if name == "env_id" else ": each run gets its own"
        elif name not in known:
            why = did_you_mean(name, known.difference(_OF_THE_SWEEP))
        else:
            continue
        raise ValueError(f"{name}: {algorithm} has no such option to sweep{why}")
    if "seed" in grid:
        raise ValueError("seed: expected one, the first of `seeds`, not values to sweep")
    for name in grid:
        if name in options:
            raise ValueError(f"{name}: given twice, with values to sweep and with one for all runs")
    grid = {name: _values(name, values) for name, values in grid.items()}
    if folder is not None:
        folder = Path(folder)
    else:
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
            run = config.run_dir
            assert run is not None
            if (run / RESULT).is_file() or (run / DIVERGED).is_file():
                _check_done(run, config)
                continue
            print(f"[{i + 1} of {len(cases)}] {_label(case)} → {run}", flush=True)
            try:
                train(config)
            except DivergedError as error:
                write_text(run / DIVERGED, f"{error}\n")
                print(f"pyfastenv: {error}", file=sys.stderr, flush=True)
        done.append(_case(case, [config.run_dir for config in each if config.run_dir is not None]))
    if not any(case.returns for case in done):
        raise DivergedError(f"every training diverged, the first at {done[0].diverged[0]}")
    return _summed_up(folder, f"{algorithm} on {env_id}", done)


def _values(name: str, values: Any) -> list[Any]:
    """An option's values: one or several, each once."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a list of the values to sweep, got {values!r}")
    found = list(values)
    words = [_word(value) for value in found]
    if not found:
        raise ValueError(f"{name}: expected at least one value, got none")
    for i, word in enumerate(words):
        if word in words[:i]:  # runs are named by it
            is_tuple = isinstance(values, tuple) or isinstance(found[i], tuple)
            tuples = "; a tuple has commas: 64,64" if is_tuple else ""
            raise ValueError(f"{name}: {word} is given twice{tuples}")
    return found


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


_OF_THE_MACHINE = {"num_threads", "torch_threads", "engine", "accelerate"}


def _check_done(run: Path, config: RunConfig) -> None:
    """Checks that a run that is there already is the one that is wanted."""
    algorithm, saved = read_config(run)
    try:
        ignored = marked(type(config), "no_setting") | _OF_THE_MACHINE
        if config.from_run is not None and saved.get("from_run") is not None:
            config = replace(config, from_run=checkpoint.resolve(config.from_run).resolve())
        config.check_resumes(algorithm, saved, ignored)
    except ValueError as error:
        raise ValueError(f"{run}: {error}; choose another folder for this sweep") from error


def _case(options: dict[str, Any], runs: Sequence[Path]) -> Case:
    """The case of a setting, from its runs' results."""
    finished = [run for run in runs if (run / RESULT).is_file()]
    returns = tuple(value for run in finished for value in _returns(run))
    lost = tuple((run / DIVERGED).read_text().strip() for run in runs if run not in finished)
    return Case(options, tuple(runs), returns, lost)


def _returns(run: Path) -> list[float]:
    """The last evaluation of each seed in a run.

    Raises:
        ValueError: Its result is damaged.
    """
    path = run / RESULT
    try:
        evaluation = json.loads(path.read_text())["evaluation"]
        each: list[float] = []
        while (name := f"eval/return_{len(each)}") in evaluation:
            each.append(float(evaluation[name]))
        return each or [float(evaluation["eval/return"])]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: damaged ({error!r}); without it the sweep evaluates the run again"
        ) from error


def _summed_up(folder: Path, title: str, cases: Sequence[Case]) -> Sweep:
    ranked = sorted(cases, key=lambda case: (len(case.diverged), -case.mean_return))
    names = list(ranked[0].options)
    header = [*names, "return", "± s.d. of seeds", "least", "greatest", "seeds"]
    lines = [" | ".join(header), " | ".join("---" for _ in header)]
    for case in ranked:
        row = [*map(_word, case.options.values()), *_numbers(case.returns)]
        seeds = str(len(case.returns)) + (", the rest diverged" if case.diverged else "")
        lines.append(" | ".join([*row, seeds]))
    table = "".join(f"| {line} |\n" for line in lines)
    write_text(folder / TABLE, f"# {title}\n\n{table}")
    results = [
        {
            "options": case.options,
            "runs": list(map(str, case.runs)),
            "returns": case.returns,
            "diverged": case.diverged,
        }
        for case in ranked
    ]
    write_text(folder / RESULTS, json.dumps(results, indent=2, default=str) + "\n")
    plot = plot_means({case.label: case.runs for case in ranked}, folder / PLOT, title)
    return Sweep(folder, tuple(ranked), table, plot)


def _numbers(returns: Sequence[float]) -> list[str]:
    """Mean, deviation, least and greatest."""
    if not returns:
        return ["–"] * 4
    spread = float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0
    numbers = (statistics.mean(returns), spread, min(returns), max(returns))
    return [f"{number:,.1f}" for number in numbers]


def _label(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_word(value)}" for name, value in options.items()) or "defaults"


def _word(value: Any) -> str:
    """A value in a folder's name."""
    if isinstance(value, list | tuple):
        return "x".join(map(_word, value))
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(float(value))
    named = hasattr(value, "__qualname__")  # a function, whose repr has an address
    return f"{value.__module__}:{value.__qualname__}" if named else str(value).replace("/", "-")
