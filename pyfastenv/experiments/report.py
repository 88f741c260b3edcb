"""Reports: a template (templates/NAME.md) filled from what was measured.

Prose, tables, claims and what the document says, row by row, stand in the template, which knows the
constants of NAME.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyfastenv.experiments import pictures
from pyfastenv.experiments.claims import Outcome, Ratio, verdict
from pyfastenv.experiments.render import render
from pyfastenv.experiments.study import Row, Study
from pyfastenv.training.atomic import write_text
from pyfastenv.training.progress import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Report(NamedTuple):
    """The values, ratios and pictures that a report is made of."""

    values: Mapping[str, Any]  # the template's
    figures: Mapping[str, Callable[[], Figure]]  # draw the pictures that the template asks for


def write(study: Study, report: Report) -> Path:
    """Renders report.md and saves the pictures; returns the report's path."""

    def picture(name: str, caption: str) -> str:
        pictures.save(report.figures[name](), study.folder / f"{name}.png")
        return f"![{caption}]({name}.png)\n\n*{caption}*"

    def judged(ratio: Ratio | None, expected: Outcome, *why_not: str) -> str:
        return f"{ratio or '–'} | {verdict(ratio, expected, *why_not)}"

    constants = vars(import_module(f"pyfastenv.experiments.{study.name}"))
    general = {name: value for name, value in constants.items() if name.isupper()} | {
        "sizes": study.sizes,
        "gpu": study.has_gpu,
        "on_gpu": "in the table" if study.has_gpu else "needs a GPU",
        "cpus": study.cpus,
        "part": study.part,
        "apart": _elsewhere(study),
        "picture": picture,
        "judged": judged,
        "verdict": verdict,
        "provenance": _provenance(study),
    }
    template = Path(__file__).parent / "templates" / f"{study.name}.md"
    path = study.folder / "report.md"
    write_text(path, render(template, general | dict(report.values)))
    return path


def _elsewhere(study: Study) -> dict[str, Row]:
    """The parts that another machine measured than the rest, and which."""
    cpu = study.state["machine"]["cpu"]
    return {part: about for part, about in study.apart.items() if about["cpu"] != cpu}


def _provenance(study: Study) -> str:
    """Command, sizes, machines, versions, commits and dates, and the time it took."""
    rows = list(study.state["measurements"].values())
    commits = ", ".join(dict.fromkeys(str(row["commit"]) for row in rows))
    dates = sorted({row["date"] for row in rows})
    options = ", ".join(f"{k} {_words(v)}" for k, v in study.state["sizes"].items() if v)
    machines = [_machine(study.state["machine"])]
    machines += [f"{part}: {_machine(about)}" for part, about in _elsewhere(study).items()]
    quick = study.sizes.quick
    rough = " **A quick run: it shows that everything works, its figures are rough.**"
    return (
        f"`pyfastenv experiment {study.name}{' --quick' if quick else ''}`, "
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}, commit {commits}; "
        f"{'; '.join(machines)}; {duration(sum(row['measured_s'] for row in rows))} of measuring; "
        f"{options}.{rough if quick else ''}"
    )


def _machine(about: Row) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items() if v)
    return (
        f"{about['cpu']}, {about['cpus_available']} CPUs, {about['memory_gib']} GiB, "
        f"GPU: {about['gpu'] or 'none'}; {about['os']}, Python {about['python']}, {versions}"
    )


def _words(value: Any) -> str:
    return " ".join(map(_words, value)) if isinstance(value, list) else str(value)
