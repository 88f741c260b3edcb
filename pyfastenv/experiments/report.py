"""Reports: templates filled from what was measured.

templates/NAME.md is the report, one page; NAME_appendix.md has all tables and what the document
says, row by row. Prose, tables and claims stand in them; they know the constants of NAME.py.
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
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.progress import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Report(NamedTuple):
    """The values, ratios and pictures that a report is made of."""

    values: Mapping[str, Any]  # the template's
    figures: Mapping[str, Callable[[], Figure]]  # draw the pictures that the template asks for


def write(study: Study, report: Report) -> Path:
    """Renders report.md and appendix.md and saves the pictures; returns the report's path."""

    def picture(name: str, caption: str) -> str:
        pictures.save(report.figures[name](), study.folder / f"{name}.png")
        return f"![{caption}]({name}.png)\n\n*{caption}*"

    def judged(ratio: Ratio | None, expected: Outcome, *why_not: str, **lacks: str) -> str:
        return f"{ratio or '–'} | {verdict(ratio, expected, *why_not, **lacks)}"

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
        "measured": _measured(study),
        "provenance": _provenance(study),
    }
    for page, end in (("appendix", "_appendix"), ("report", "")):
        template = Path(__file__).parent / "templates" / f"{study.name}{end}.md"
        path = study.folder / f"{page}.md"
        write_text(path, render(template, general | dict(report.values)))
    return path


def _measured(study: Study) -> str:
    """Command, time, machine and date, for the line under the title."""
    rows = list(study.state["measurements"].values())
    dates = sorted({row["date"] for row in rows})
    quick = study.sizes.quick
    about = study.state["machine"]
    others: dict[str, list[str]] = {}
    for part, machine in _elsewhere(study).items():
        others.setdefault(machine["cpu"], []).append(part)
    elsewhere = "".join(f"; {', '.join(parts)}: {cpu}" for cpu, parts in others.items())
    rough = " **A quick run: it shows that everything works, its figures are rough.**"
    return (
        f"`pyfastenv experiment {study.name}{' --quick' if quick else ''}`, "
        f"{duration(sum(row['measured_s'] for row in rows))} on {about['cpus_available']} CPUs "
        f"({about['cpu']}{elsewhere}), GPU: {about['gpu'] or 'none'}, "
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}. All tables, and everything the "
        f"document says: [appendix](appendix.md).{rough if quick else ''}"
    )


def _elsewhere(study: Study) -> dict[str, Row]:
    """The parts that another machine measured than the rest, and which."""
    cpu = study.state["machine"]["cpu"]
    return {part: about for part, about in study.apart.items() if about["cpu"] != cpu}


def _provenance(study: Study) -> str:
    """Sizes, machines, versions and commits."""
    rows = study.state["measurements"].values()
    commits = ", ".join(dict.fromkeys(str(row["commit"]) for row in rows))
    options = ", ".join(f"{k} {_words(v)}" for k, v in study.state["sizes"].items() if v)
    machines = [_machine(study.state["machine"])]
    machines += [f"{part}: {_machine(about)}" for part, about in _elsewhere(study).items()]
    return f"{'; '.join(machines)}. Sizes: {options}. Commits: {commits}; + had changes not landed."


def _machine(about: Row) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items() if v)
    return (
        f"{about['cpu']}, {about['cpus_available']} CPUs, {about['memory_gib']} GiB, "
        f"GPU: {about['gpu'] or 'none'}; {about['os']}, Python {about['python']}, {versions}"
    )


def _words(value: Any) -> str:
    return " ".join(map(_words, value)) if isinstance(value, list) else str(value)
