"""``pyfastenv report``: one HTML file that compares runs and needs no network.

Prose and layout are templates/report.html; this file fills it. Pictures and films stand in the file
itself. A hole that nothing fills is an error.
"""

from __future__ import annotations

import base64
import io
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import pyfastenv
from pyfastenv.experiments.measure import today
from pyfastenv.publish.outputs import check_output
from pyfastenv.publish.plots import COLOURS, make_axes
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.folder import VIDEO
from pyfastenv.runs.progress import duration
from pyfastenv.runs.settings import differing
from pyfastenv.tools import runs as run_folders
from pyfastenv.tools.runs import Group, Run, number
from pyfastenv.tools.terms import term_names, term_text
from pyfastenv.training.profiling import phases_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_VIDEO_BYTES = 32 * 2**20  # of one film; browsers read larger data addresses badly
_MEDIA = {".mp4": "video/mp4", ".gif": "image/gif"}


@dataclass(frozen=True)
class Film:
    """A run's film: its address (``data:``), or why there is none in the file."""

    run: Run
    address: str
    is_video: bool
    problem: str = ""


@dataclass(frozen=True)
class Section:
    """The report's part on one environment.

    Attributes:
        env_id: The environment.
        metric: What the curves and tables show the returns of.
        groups: Each with its colour.
        pictures: Addresses and alternative texts.
        summary: A row per group.
        terms: For each named reward term and ending its name and every group's last value.
        settings: For each that differs its name and every group's value.
        phases: For each phase its name and every group's share of the time.
        films: In the groups' order.
        runs: A row per run.
    """

    env_id: str
    metric: str
    groups: list[tuple[Group, str]]
    pictures: list[tuple[str, str]]
    summary: list[dict[str, str]]
    terms: list[tuple[str, list[str]]]
    settings: list[tuple[str, list[str]]]
    phases: list[tuple[str, list[str]]]
    films: list[Film]
    runs: list[tuple[str, ...]]


def write_report(folders: Sequence[Path], output: Path, *, videos: bool = True) -> Path:
    """Compares runs in one HTML file; damaged ones, and those without a row, are reported and left
    out.

    Args:
        folders: Run folders, or folders with runs in them.
        output: A file ending in .html.
        videos: Put the runs' films into it.

    Returns:
        The file written.

    Raises:
        FileNotFoundError: A folder does not exist, or the output's.
        ImportError: Jinja or matplotlib is missing.
        ValueError: No runs that have logged anything, or a name that does not end in .html.
    """
    check_output(output, (".html",))
    runs = _read(folders)
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("reports need Jinja: pip install jinja2") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    by_env: dict[str, list[Run]] = {}
    for run in runs:
        by_env.setdefault(run.env_id, []).append(run)
    metric = run_folders.shown_metric(runs)
    sections = [_section(env_id, each, metric, videos) for env_id, each in by_env.items()]
    page = environment.get_template("report.html").render(
        sections=sections, count=len(runs), date=today(), version=pyfastenv.__version__
    )
    write_text(output, page)
    return output


def _read(folders: Sequence[Path]) -> list[Run]:
    if not folders:
        raise ValueError("runs: expected at least one run folder, got none")
    found: dict[Path, Run] = {}
    left_out: list[str] = []
    for folder in folders:
        runs, problems = run_folders.find_runs(folder)
        if not (runs or problems):
            raise ValueError(f"{folder}: neither a run folder nor a folder with runs in it")
        left_out += problems
        for run in runs:
            if run.rows:
                found[run.folder.resolve()] = run
            else:
                left_out.append(f"{run.folder}: the run has logged nothing yet")
    if not found:
        raise ValueError("; ".join(left_out))
    for problem in left_out:
        print(f"pyfastenv: {problem}; left out", file=sys.stderr)
    return list(found.values())


def _section(env_id: str, runs: list[Run], metric: str, videos: bool) -> Section:
    groups = run_folders.grouped(runs)
    coloured = [(group, COLOURS[i % len(COLOURS)]) for i, group in enumerate(groups)]
    one_each = [group.runs[0] for group in groups]
    settings = differing([run.settings for run in one_each])
    return Section(
        env_id=env_id,
        metric=run_folders.MEASURES[metric],
        groups=coloured,
        pictures=[
            (_picture(coloured, metric, "step"), f"{env_id}: return against environment steps"),
            (_picture(coloured, metric, "time/elapsed_s"), f"{env_id}: return against time"),
        ],
        summary=[_summary(group, metric) for group in groups],
        terms=_terms(groups, metric.partition("/")[0]),
        settings=[(name, [_words(v) for v in column]) for name, column in settings.items()],
        phases=_phases(groups),
        films=[film for group in groups for run in group.runs for film in _films(run)]
        if videos
        else [],
        runs=run_folders.table([run for group in groups for run in group.runs], metric),
    )


def _summary(group: Group, metric: str) -> dict[str, str]:
    returns = [run.last(metric) for run in group.runs]
    spread = f" ± {number(float(np.std(returns, ddof=1)), 1)}" if len(returns) > 1 else ""
    return {
        "seeds": ", ".join(str(run.seed) for run in group.runs),
        "steps": ", ".join(dict.fromkeys(run_folders.steps_text(run) for run in group.runs)),
        "return": number(statistics.fmean(returns), 1) + spread,
        "rate": number(statistics.fmean(run.steps_per_s for run in group.runs)),
        "time": duration(statistics.fmean(run.elapsed_s for run in group.runs)),
    }


def _terms(groups: Sequence[Group], kind: str) -> list[tuple[str, list[str]]]:
    """The last values of reward terms and endings, means over seeds."""
    known = dict.fromkeys(name for group in groups for run in group.runs for name in run.metrics)
    last = [
        {name: statistics.fmean(run.last(name) for run in group.runs) for name in known}
        for group in groups
    ]
    return [
        (name, [term_text(each, kind, name) for each in last]) for name in term_names(known, kind)
    ]


def _phases(groups: Sequence[Group]) -> list[tuple[str, list[str]]]:
    """The share of the time that each phase took, and what the loop and evaluations left."""
    shares = [_phase_shares(group) for group in groups]
    names = dict.fromkeys(name for of_group in shares for name in of_group)
    rows = [(name, [_percent(of_group.get(name)) for of_group in shares]) for name in names]
    rest = [_percent(1.0 - sum(of_group.values())) for of_group in shares]
    return [*rows, ("evaluations and the rest", rest)] if rows else []


def _phase_shares(group: Group) -> dict[str, float]:
    seconds = phases_of(row for run in group.runs for row in run.rows)
    total = sum(run.elapsed_s for run in group.runs)
    return {phase: s / total for phase, s in seconds.items()} if total > 0 else {}


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{max(share, 0.0):.0%}"


def _words(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "–" if value is None else str(value)


def _films(run: Run) -> list[Film]:
    for suffix, media in _MEDIA.items():
        path = (run.folder / VIDEO).with_suffix(suffix)
        if not path.is_file():
            continue
        size = path.stat().st_size
        if size > _MOST_VIDEO_BYTES:
            problem = f"{path}: {size / 2**20:.0f} MiB, too large to stand in the page"
            return [Film(run, "", False, problem)]
        return [Film(run, _address(media, path.read_bytes()), media.startswith("video"))]
    return []


def _address(media: str, contents: bytes) -> str:
    return f"data:{media};base64,{base64.b64encode(contents).decode()}"


def _picture(groups: Sequence[tuple[Group, str]], metric: str, against: str) -> str:
    """Every seed's curve thin, their mean bold, the range between the lowest and highest shaded."""
    figure, axes = make_axes("")
    axes.set_ylabel(f"return of {run_folders.MEASURES[metric]}")
    if against != "step":
        axes.set_xlabel("time of training [s]")
        axes.xaxis.set_major_formatter("{x:,g}")
    for group, colour in groups:
        curves = [run.curve(metric, against) for run in group.runs]
        curves = [curve for curve in curves if len(curve[0])]
        if not curves:
            continue
        for x, y in curves:
            axes.plot(x, y, color=colour, alpha=0.35, linewidth=0.8)
        common = run_folders.spread(curves)
        axes.fill_between(common.x, common.low, common.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            common.x,
            common.mean,
            color=colour,
            linewidth=2.0,
            marker="o" if len(common.x) == 1 else "",
        )
    return _address("image/svg+xml", _svg(figure))


def _svg(figure: Figure) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyfastenv"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
