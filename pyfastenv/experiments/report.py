"""Reports: prose and tables are a Jinja template with holes (templates/NAME.md), figures come from
the results.

templates/NAME.toml has the claims, each with the name of its ratio, and what the document says, row
by row, with where ours is. A hole that nothing fills is an error, not an empty string.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from pyfastenv.experiments import pictures
from pyfastenv.experiments.claims import Claim, Ratio
from pyfastenv.experiments.study import Results, Sizes
from pyfastenv.experiments.tables import median, number, spread, table
from pyfastenv.training.atomic import write_text
from pyfastenv.training.progress import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"


@dataclass
class Report:
    """What a template is filled with.

    Attributes:
        values: By name; strings, numbers, tables and what the template branches by.
        ratios: By name, each claim's among them; None: not measured.
        pictures: By name.
    """

    values: dict[str, Any] = field(default_factory=dict)
    ratios: dict[str, Ratio | None] = field(default_factory=dict)
    pictures: dict[str, Figure] = field(default_factory=dict)


def write(name: str, folder: Path, results: Results, sizes: Sizes, report: Report) -> Path:
    """Renders report.md and saves the pictures; returns the report's path."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": number,
        "count": _count,
        "duration": duration,
        "percent": _percent,
        "times": _times,
        "spread": _spread,
        "median": _median,
    }

    def picture(picture: str, caption: str) -> str:
        pictures.save(report.pictures[picture], folder / f"{picture}.png")
        return f"![{caption}]({picture}.png)\n\n*{caption}*"

    data = tomllib.loads((TEMPLATES / f"{name}.toml").read_text())
    values: dict[str, Any] = report.ratios | report.values
    values |= {
        "sizes": sizes,
        "quick": sizes.quick,
        "gpu": results.has_gpu,
        "on_gpu": "in the table" if results.has_gpu else "needs a GPU",
        "cpus": results.cpus,
        "part": results.part,
        "picture": picture,
        "provenance": provenance(name, results, sizes),
    }

    def rendered(row: dict[str, str], *names: str) -> list[str]:
        return [environment.from_string(row.get(each, "–")).render(values) for each in names]

    claims = {}
    for row in data["claim"]:
        text, compared = rendered(row, "text", "compared")
        claims[row["ratio"]] = _claim(row, text, compared, report)
    values["claims"] = claims_table(claims.values())
    values["verdict"] = {name: claim.verdict for name, claim in claims.items()}
    values["coverage"] = table(
        ("the document", "here", "figure, or why not"),
        [rendered(row, "says", "where", "found") for row in data["row"]],
    )
    path = folder / "report.md"
    write_text(path, environment.get_template(f"{name}.md").render(values))
    return path


def _claim(row: dict[str, Any], text: str, compared: str, report: Report) -> Claim:
    ratio = report.ratios[row["ratio"]]
    if ratio is not None and "margin" in row:
        ratio = replace(ratio, margin=row["margin"])
    return Claim(text, compared, row["expected"], ratio, row.get("why_not", "not in these sizes"))


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
        f"{duration(sum(row['measured_s'] for row in rows))} of measuring; {options}."
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


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _median(values: Any) -> str:
    return _spread(values, quartiles=False)


def _spread(values: Any, scale: float = 1.0, quartiles: bool = True) -> str:
    """Median and quartiles of what is known of them."""
    known = [scale * value for value in values if value == value and value is not None]
    if not known:
        return "–"
    return spread(known) if quartiles else number(median(known))


def _times(ratio: Ratio | None) -> str:
    return "not measured" if ratio is None else f"{ratio} times"
