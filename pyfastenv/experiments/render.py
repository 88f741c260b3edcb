"""Markdown from Jinja templates, for reports, benchmarks and pages of results.

Prose and tables stand in the template; how numbers look is a filter of :mod:`tables`. A hole that
nothing fills is an error, not an empty string.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyfastenv.experiments import measure
from pyfastenv.experiments.tables import mean_and_deviation, median, number, quartiles, spread
from pyfastenv.runs.progress import duration

LONG = 120  # characters of a line of prose that is folded


def render(template: Path, values: Mapping[str, Any]) -> str:
    """The template filled with values.

    Raises:
        ImportError: Jinja is not installed.
        jinja2.UndefinedError: The template names a value that is not there.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": number,
        "count": "{:,.0f}".format,
        "fixed": lambda value, digits: f"{value:,.{digits}f}",
        "duration": duration,
        "percent": lambda value, digits=0: f"{value:.{digits}%}",
        "times": lambda ratio: "not measured" if ratio is None else f"{ratio} times",
        "spread": spread,
        "median": partial(spread, quartiles=False),
        "quartiles": quartiles,
        "mean": mean_and_deviation,
        "circumstances": circumstances,
        "met": lambda value: "✓" if value else "✗",
    }
    functions = {
        "ratio": measure.ratio,
        "geometric_mean": measure.geometric_mean,
        "median": median,
    }
    text = environment.get_template(template.name).render(functions | dict(values))
    return "\n".join(_folded(text.rstrip().splitlines())) + "\n"


def _folded(lines: Iterable[str]) -> Iterator[str]:
    """Lines of Markdown, of which those of prose are no longer than people read.

    Spaces within links and code hold, and what would begin a list stays where it is.
    """
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        if len(line) < LONG or fenced or line.lstrip().startswith(("|", "#", "<", "![")):
            yield line
            continue
        held = re.sub(
            r"`[^`]*`|\]\([^)]*\)| (?=[-+*|#>=] )", lambda m: m[0].replace(" ", "\0"), line
        )
        mark = re.match(r"\s*(?:[-+*] |\d+\. )?", line)
        indent = " " * (mark.end() if mark else 0)
        folded = textwrap.wrap(
            held,
            LONG - 10,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (part.replace("\0", " ") for part in folded)


def circumstances(result: Mapping[str, Any]) -> str:
    """When and where it was measured, with which versions."""
    machine = result["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v)
    return (
        f"{result['date']}, {machine['cpu']}, {machine['cpus_available']} CPUs, "
        f"{machine['memory_gib']} GiB, {machine['os']}; Python {machine['python']}, {versions}; "
        f"commit {machine['commit']}"
    )
