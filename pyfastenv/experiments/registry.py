"""The experiments by name: one line each. Imports none of them until it is asked to.

An experiment's module has ``run(study)``, which measures through :class:`pyfastenv.experiments.
study.Study`, draws, and returns the path of the report that it wrote.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from pyfastenv.experiments.study import Study

EXPERIMENTS = {
    "sampling": "pyfastenv.experiments.sampling",
    "placement": "pyfastenv.experiments.placement",
    "flow": "pyfastenv.experiments.flow",
    "profiling": "pyfastenv.experiments.profiling",
}


def run_experiment(name: str, *, quick: bool, output: Path) -> list[Path]:
    """Runs one experiment, or ``"all"``; what is measured already is not measured again.

    Args:
        name: Of the experiment.
        quick: Short versions.
        output: Each experiment writes into a folder of its name in it.

    Returns:
        The reports.

    Raises:
        ValueError: Unknown name, no folder, or one that has other results.
        ImportError: matplotlib is missing.
    """
    if name != "all" and name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}; there are all, {', '.join(EXPERIMENTS)}")
    if output.exists() and not output.is_dir():
        raise ValueError(f"output: {output} is not a folder")
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("experiments draw: pip install 'pyfastenv[train]'") from error
    matplotlib.use("Agg")
    reports = []
    for each in EXPERIMENTS if name == "all" else (name,):
        print(each, flush=True)
        study = Study(each, output / each, quick=quick)
        reports.append(import_module(EXPERIMENTS[each]).run(study))
    return reports
