"""A benchmark of sections: each is measured and kept in NAME.json at once; NAME.md shows them all.

A section that is measured alone takes its own place in the file; one that fails leaves the others
alone. Knows no environment.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyfastenv.experiments.measure import machine, today
from pyfastenv.experiments.render import render
from pyfastenv.experiments.tables import number
from pyfastenv.runs.atomic import write_text

Row = dict[str, Any]
Sections = Mapping[str, Callable[[], Iterable[Row] | Row]]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that every benchmark begins with."""

    only: tuple[str, ...] = ()
    """Some of its sections; by default all."""
    quick: bool = False
    """Short and rough: it shows that everything runs."""
    output: Path = Path("bench/results")
    """The folder."""
    report_only: bool = False
    """Write the report again from what is in the folder."""


def run(
    name: str,
    sections: Sections,
    options: Options,
    *,
    template: Path | None = None,
    about: Mapping[str, Any] | None = None,
    flat: bool = False,
) -> Row:
    """Measures the sections that are asked for.

    Args:
        name: Of the files.
        sections: What makes the rows of each, which are kept one by one, or all that it is.
        options: Of the command line.
        template: What shows the results, by their names; as a whole they are ``results``.
        about: Facts beside machine, date and time.
        flat: Facts are the whole file's, and a section is its rows alone.

    Returns:
        The results, as the file has them.

    Raises:
        ValueError: There is no such section, or others would stay that another machine has
            measured.
        SystemExit: A section has failed.
    """
    if unknown := set(options.only) - set(sections):
        raise ValueError(f"only: expected some of {', '.join(sections)}, got {', '.join(unknown)}")
    path = options.output / f"{name}.json"
    results: Row = json.loads(path.read_text()) if path.exists() else {}
    if flat and not options.report_only:
        _check_that_facts_stay_true(path, results, {*sections} - {*(options.only or sections)})
    failed = []
    for section in () if options.report_only else options.only or sections:
        print(f"{section}:", flush=True)
        began, rows = time.perf_counter(), list[Row]()
        facts: Row = {"machine": machine(), "date": today(), "load_average": os.getloadavg()[0]}
        facts |= {"quick": options.quick, **(about or {})}
        try:
            made = sections[section]()
            for row in [made] if isinstance(made, dict) else made:
                rows.append(row)
                print(f"  {told(row)}", flush=True)
                seconds = round(time.perf_counter() - began)
                if flat:
                    results |= facts | {section: rows}
                else:
                    mine = made if isinstance(made, dict) else {"rows": rows}
                    results[section] = facts | {"duration_s": seconds} | mine
                    order = dict.fromkeys((*sections, *results))  # what others wrote comes last
                    results = {name: results[name] for name in order if name in results}
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, json.dumps(results, indent=1) + "\n")
        except Exception:
            traceback.print_exc()
            failed.append(section)
    if template is not None and results:
        write_text(path.with_suffix(".md"), render(template, results | {"results": results}))
    if failed:
        raise SystemExit(f"{name}: {', '.join(failed)} failed")
    return results


def _check_that_facts_stay_true(path: Path, results: Row, others: set[str]) -> None:
    """Checks that a flat file, whose other sections stay, is of this machine."""
    then, now = (about.get("cpu") for about in (results.get("machine", {}), machine()))
    if then != now and (kept := sorted(others & set(results))):
        raise ValueError(
            f"{path}: {', '.join(kept)} were measured on {then}, and this is {now}: measure all "
            "sections, or choose another --output"
        )


def told(value: Any) -> str:
    """A row in a line: names and numbers, of several measurements the median."""
    if isinstance(value, dict):
        if "median" in value:
            return number(value["median"])
        known = {name: told(each) for name, each in value.items() if not isinstance(each, list)}
        return ", ".join(f"{name} {text}" for name, text in known.items() if text)
    return number(value) if isinstance(value, float) else str(value)
