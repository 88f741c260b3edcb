"""The experiments by name: one line each, and what all do with one.

An experiment's module has ``Config`` (a :class:`pyfastenv.experiments.study.Sizes`), ``QUICK`` (its
preset) and ``plan(config)`` (what is measured); NAME_report.py has ``report(results, config)``.
"""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import torch

from pyfastenv.experiments import report as reports
from pyfastenv.experiments.study import Measurement, Sizes, Study, time_left

EXPERIMENTS = ("sampling", "placement", "flow", "profiling")


@dataclass(frozen=True, kw_only=True)
class All(Sizes):
    """All of them, one after another; the folder gets one for each."""


def parse(arguments: Sequence[str]) -> tuple[str, Sizes]:
    """The command line's experiment and sizes; ``--quick`` is a preset that options change."""
    import tyro

    quick = "--quick" in arguments
    names: dict[type, str] = {All: "all"}
    kinds: list[Any] = [
        Annotated[
            All, tyro.conf.subcommand("all", default=All(quick=quick), description=All.__doc__)
        ]
    ]
    for name in EXPERIMENTS:
        module = import_module(f"pyfastenv.experiments.{name}")
        default = module.QUICK if quick else module.Config()
        names[module.Config] = name
        about = tyro.conf.subcommand(name, default=default, description=module.__doc__)
        kinds.append(Annotated[module.Config, about])
    kind: Any = functools.reduce(operator.or_, kinds)
    sizes = tyro.cli(
        kind,
        prog="pyfastenv experiment",
        description="Repeat the documents' experiments: report.md, pictures and results.json.",
        args=list(arguments),
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )
    return names[type(sizes)], sizes


def run(name: str, sizes: Sizes) -> list[Path]:
    """Measures what is missing and writes the reports of what is complete.

    Args:
        name: Of the experiment, or ``"all"``.
        sizes: Of the experiment; of ``all`` the general options.

    Returns:
        The reports.

    Raises:
        ValueError: The folder has other results, or with ``report_only`` not all of them.
        ImportError: A package is missing.
    """
    if name == "all":
        return _run_all(sizes)
    module = import_module(f"pyfastenv.experiments.{name}")
    study: Study = Study(name, sizes)
    plan = module.plan(study.sizes)
    if not study.sizes.report_only:
        threads = torch.get_num_threads()
        torch.set_num_threads(study.sizes.torch_threads())
        try:
            if not study.measure(plan):
                return []
        finally:
            torch.set_num_threads(threads)
    missing = study.missing(plan)
    if missing:
        raise ValueError(
            f"{study.folder}: {len(missing)} measurements are missing, such as {missing[0].key}"
        )
    made = import_module(f"{module.__name__}_report").report(study.results, study.sizes)
    return [reports.write(name, study.folder, study.results, study.sizes, made)]


def _run_all(sizes: Sizes) -> list[Path]:
    end = time.monotonic() + 60.0 * (sizes.minutes or 0.0)
    each_sizes: dict[str, Sizes] = {}
    missing: list[Measurement] = []
    for name in EXPERIMENTS:
        module = import_module(f"pyfastenv.experiments.{name}")
        output = None if sizes.output is None else sizes.output / name
        mine: Sizes = module.QUICK if sizes.quick else module.Config()
        each_sizes[name] = replace(mine, output=output, report_only=sizes.report_only)
        if not sizes.report_only:
            missing += Study(name, each_sizes[name]).missing(module.plan(mine))
    if missing:
        left = "less than three minutes" if sizes.quick else time_left(missing, sizes)
        print(f"all: {len(missing)} measurements, {left} on two quiet cores", flush=True)
    paths: list[Path] = []
    for name, mine in each_sizes.items():
        minutes = None if sizes.minutes is None else (end - time.monotonic()) / 60.0
        paths += run(name, replace(mine, minutes=minutes))
    return paths
