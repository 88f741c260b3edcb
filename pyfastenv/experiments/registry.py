"""The experiments by name: one line each, and what all do with one.

An experiment's module has ``Config`` (a :class:`pyfastenv.experiments.study.Sizes`), ``QUICK`` (its
preset) and ``plan(config)`` (what is measured); NAME_report.py has ``report(study)``, which returns
what its template is filled with, and pictures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pyfastenv.experiments import report as reports
from pyfastenv.experiments.study import Measurement, Sizes, Study, time_left

# what pip's [experiments] brings is imported where it is used, so that --help needs none of it
_PACKAGES = ("jinja2", "pandas", "psutil", "scipy")
EXPERIMENTS = ("sampling", "placement", "flow", "profiling")


@dataclass(frozen=True, kw_only=True)
class All(Sizes):
    """All of them, one after another; the folder gets one for each."""


def parse(arguments: Sequence[str]) -> tuple[str, Sizes]:
    """The command line's experiment and sizes; ``--quick`` is a preset that options change."""
    import tyro

    quick = "--quick" in arguments
    sizes: dict[str, Sizes] = {"all": All(quick=quick)}
    about = {"all": All.__doc__ or ""}
    for name in EXPERIMENTS:
        module = _module(name)
        sizes[name] = module.QUICK if quick else module.Config()
        about[name] = module.__doc__
    kind = tyro.extras.subcommand_type_from_defaults(sizes, about, prefix_names=False)
    chosen: Sizes = tyro.cli(
        kind,
        prog="pyfastenv experiment",
        description="Repeat the documents' experiments: report.md, pictures and results.json.",
        args=list(arguments),
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )
    return next(name for name, each in sizes.items() if type(each) is type(chosen)), chosen


def import_packages() -> None:
    """Raises ImportError now rather than after hours of measuring, if a package is missing."""
    for name in _PACKAGES:
        import_module(name)


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
    study = Study(name, sizes)
    plan = _module(name).plan(study.sizes)
    if not sizes.report_only and not study.measure(plan):
        return []
    if missing := study.missing(plan):
        raise ValueError(
            f"{study.folder}: {len(missing)} measurements are missing, such as {missing[0].key}"
        )
    return [reports.write(study, _module(f"{name}_report").report(study))]


def _run_all(sizes: Sizes) -> list[Path]:
    end = time.monotonic() + 60.0 * (sizes.minutes or 0.0)
    missing: list[Measurement] = []
    each: dict[str, Sizes] = {}
    for name in EXPERIMENTS:
        module = _module(name)
        mine: Sizes = module.QUICK if sizes.quick else module.Config()
        output = None if sizes.output is None else sizes.output / name
        each[name] = mine = replace(mine, output=output, report_only=sizes.report_only)
        if not sizes.report_only:
            missing += Study(name, mine).missing(module.plan(mine))
    if missing:
        left = "less than three minutes" if sizes.quick else time_left(missing, sizes)
        print(f"all: {len(missing)} measurements, {left} on two quiet cores", flush=True)
    paths: list[Path] = []
    for name, mine in each.items():
        minutes = None if sizes.minutes is None else (end - time.monotonic()) / 60.0
        paths += run(name, replace(mine, minutes=minutes))
    return paths


def _module(name: str) -> Any:
    return import_module(f"pyfastenv.experiments.{name}")
