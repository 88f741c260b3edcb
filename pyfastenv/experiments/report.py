"""Reports: prose is a Jinja template with holes (templates/NAME.md), figures come from the results.

templates/NAME.toml has what the document says, row by row, and where ours is. A hole that nothing
fills is an error, not an empty string.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from pyfastenv.experiments import pictures
from pyfastenv.experiments.claims import Claim
from pyfastenv.experiments.study import Results, Sizes
from pyfastenv.experiments.tables import number, table
from pyfastenv.training.atomic import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"


@dataclass
class Report:
    """What a template is filled with.

    Attributes:
        values: By name; strings, numbers, tables and what the template branches by.
        claims: In order.
        pictures: Figure and caption, by name.
    """

    values: dict[str, Any] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    pictures: dict[str, tuple[Figure, str]] = field(default_factory=dict)


def write(name: str, folder: Path, results: Results, sizes: Sizes, report: Report) -> Path:
    """Renders report.md and saves the pictures; returns the report's path."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "percent": _percent}
    for picture, (figure, _) in report.pictures.items():
        pictures.save(figure, folder / f"{picture}.png")
    values = report.values | {
        "sizes": sizes,
        "quick": sizes.quick,
        "provenance": provenance(name, results, sizes),
        "claims": claims_table(report.claims),
        "pictures": {
            picture: f"![{caption}]({picture}.png)\n\n*{caption}*"
            for picture, (_, caption) in report.pictures.items()
        },
    }
    rows = tomllib.loads((TEMPLATES / f"{name}.toml").read_text())["row"]
    values["coverage"] = table(
        ("the document", "here", "figure, or why not"),
        [
            [
                environment.from_string(row[name]).render(values)
                for name in ("says", "where", "found")
            ]
            for row in rows
        ],
    )
    path = folder / "report.md"
    write_text(path, environment.get_template(f"{name}.md").render(values))
    return path


def provenance(name: str, results: Results, sizes: Sizes) -> str:
    """Command, sizes, machine, versions, commits and dates, and the time it took."""
    state = results.state
    about, rows = state["machine"], list(state["measurements"].values())
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items() if v)
    commits = ", ".join(dict.fromkeys(str(row["commit"]) for row in rows))
    dates = sorted({row["date"] for row in rows})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    options = ", ".join(f"{k} {_words(v)}" for k, v in state["sizes"].items())
    short = " **A quick run: it shows that everything works, its figures are rough.**"
    return (
        f"`pyfastenv experiment {name}{' --quick' if sizes.quick else ''}`, {when}, commit "
        f"{commits}; {about['cpu']}, {about['cpus_available']} CPUs, {about['memory_gib']} GiB, "
        f"GPU: {about['gpu'] or 'none'}; {about['os']}, Python {about['python']}, {versions}; "
        f"{sum(row['measured_s'] for row in rows) / 60:.0f} minutes of measuring; {options}."
        f"{short if sizes.quick else ''}"
    )


def _words(value: Any) -> str:
    return " ".join(map(_words, value)) if isinstance(value, list) else str(value)


def claims_table(claims: Iterable[Claim]) -> str:
    """Claims and verdicts."""
    rows = [
        (claim.text, claim.compared, str(claim.ratio or "–"), claim.verdict) for claim in claims
    ]
    return table(("claim", "compared", "ratio [90 %]", "verdict"), rows)


def _percent(value: float, digits: int = 0) -> str:
    return f"{value:.{digits}%}"
