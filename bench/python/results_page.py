"""The pages of docs/results from its JSON files: ``python bench/python/results_page.py``.

A page and a picture for each study (return against steps, or a processor's minutes), and README.md
with wall_clock.png: return against wall-clock minutes of everything that was trained on each robot.
Knows no training; a number that is not in a file is not told.
"""

from __future__ import annotations

import argparse
import statistics
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import curves
from studies import FIVE, MUJOCO, STUDIES, Case, Study, Training

from pyfastenv.experiments import pictures
from pyfastenv.experiments.render import render
from pyfastenv.runs.atomic import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[2]
TEMPLATES = Path(__file__).parent / "templates"
PUBLISHED = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))
MINUTES = (0.1, 0.5, 2, 10, 30, 120)
Point = tuple[float, float]


class Group:
    """The seeds of one case: those that reached nine tenths of it, or, where none did, all.

    Runs of an earlier version (``earlier`` says what was otherwise) count until there are others.

    Args:
        runs: Of the same name and robot, at least one.

    Attributes:
        runs: Those that count.
        clocked: Those of the processor that most of them ran on: minutes are theirs.
        complete: Whether they reached their end.
        begun: How many more there are.
        amp: Whether all gradient steps were in bfloat16.
    """

    def __init__(self, runs: Sequence[dict[str, Any]]):
        now = [run for run in runs if "earlier" not in run] or list(runs)
        far = [run for run in now if run["done"] or run["steps"] >= 0.9 * _planned(run)]
        self.complete = bool(far) and all(run["done"] for run in far)
        self.runs = far or now
        processors = Counter(_processor(run) for run in self.runs)
        self.processor = processors.most_common(1)[0][0]
        self.clocked = [run for run in self.runs if _processor(run) == self.processor]
        self.begun = len(now) - len(self.runs)
        self.name = str(runs[0]["name"])
        self.env_id = str(runs[0]["env_id"])
        self.algorithm = str(runs[0]["algorithm"])
        self.earlier = str(self.runs[0].get("earlier", ""))
        self.amp = all(run["config"]["amp"] and not _without_unit(run) for run in self.runs)
        steps = [set(run["curve"]["steps"]) for run in self.runs]
        self.steps = sorted(set.intersection(*steps))

    @property
    def timed(self) -> bool:
        """Whether the curves say when."""
        return bool(self.steps) and all("seconds" in run["curve"] for run in self.runs)

    def at(
        self, step: float, column: str, runs: Sequence[dict[str, Any]] | None = None
    ) -> list[float]:
        """Each seed's value in a column at one of :attr:`steps`."""
        runs = self.runs if runs is None else runs
        return [run["curve"][column][run["curve"]["steps"].index(step)] for run in runs]

    def curve(self) -> list[Point]:
        """Steps and mean returns."""
        return [(step, statistics.fmean(self.at(step, "returns"))) for step in self.steps]

    def minutes(self, clock: str = "seconds") -> list[Point]:
        """Minutes of a seed's share by a clock, ``"seconds"`` or ``"cpu_seconds"``, and mean
        returns, of the seeds :attr:`clocked`."""
        points = []
        for step in self.steps:
            seconds = [
                value / run["side_by_side"]
                for value, run in zip(self.at(step, clock, self.clocked), self.clocked, strict=True)
            ]
            mean = statistics.fmean(self.at(step, "returns", self.clocked))
            points.append((statistics.fmean(seconds) / 60, mean))
        return points

    def after(self, minutes: float, clock: str = "seconds") -> float | None:
        """The mean of the latest evaluation by then; None: there was none yet."""
        return next((mean for at, mean in reversed(self.minutes(clock)) if at <= minutes), None)

    def within(self, minutes: float) -> list[float]:
        """Each seed's return within so many minutes of a processor: of the latest evaluation by
        then, or of the closing one if the training had ended; of those :attr:`clocked`."""
        found = []
        for run in self.clocked:
            limit, curve = 60 * minutes * run["side_by_side"], run["curve"]
            if run["done"] and run["cpu_seconds"] <= limit:
                found.append(run["greedy_return"])
            else:
                points = zip(curve["cpu_seconds"], curve["returns"], strict=True)
                found += [value for at, value in points if at <= limit][-1:]
        return found

    def share(self, name: str) -> float | None:
        """Minutes of a seed's share of ``seconds`` or ``cpu_seconds``, of the whole run, of the
        seeds :attr:`clocked`."""
        if not all(name in run for run in self.clocked):
            return None
        return statistics.fmean(run[name] / run["side_by_side"] for run in self.clocked) / 60

    def clock(self) -> str:
        """The processor of the minutes, and of how many seeds they are if not of all."""
        few, all_of_them = len(self.clocked), len(self.runs)
        return self.processor + (f", {few} of {all_of_them}" if few < all_of_them else "")

    def is_control_of(self, other: Group) -> bool:
        """Whether this is the other's training in float32, by its name."""
        return (self.name, self.env_id) == (f"{other.name}, float32", other.env_id)

    def best(self) -> Point:
        """The step at which the mean over seeds is greatest, and that mean."""
        return max(self.curve(), key=lambda point: point[1])

    def end(self) -> list[float]:
        """Each seed's return at the end: of the closing evaluation, or of the curve's last."""
        if self.complete and all(run.get("greedy_return") is not None for run in self.runs):
            return [run["greedy_return"] for run in self.runs]
        return self.at(self.steps[-1], "returns")

    def exploring(self) -> list[float | None]:
        """Each seed's mean return of its last training episodes, as far as known."""
        return [run.get("train_return") for run in self.runs]

    def seeds(self) -> str:
        """Their number, and of those that have only begun."""
        more = f" (+ {self.begun} begun)" if self.begun else ""
        return f"{len(self.runs)}{more}"

    def reached(self) -> str:
        """Steps, and of how many if there are more to come."""
        step = min(run["steps"] for run in self.runs)
        if self.complete:
            return f"{step:,}"
        return f"{step:,} of {_planned(self.runs[0]):,}"


def _without_unit(run: dict[str, Any]) -> bool:
    """Whether it was to be in bfloat16 on a processor that does not multiply such numbers."""
    return bool(run["config"]["amp"]) and "float32" in (run.get("acceleration") or "")


def _processor(run: dict[str, Any]) -> str:
    """``"EPYC"`` or ``"Xeon"``, and that it had no unit for what the run asked for."""
    words = str(run["machine"]["cpu"]).replace("(R)", "").removesuffix(" Processor").split()
    return words[-1] + (" in float32" if _without_unit(run) else "")


def _planned(run: dict[str, Any]) -> int:
    """Steps of the whole training."""
    steps: int = run["config"]["total_steps"]
    return steps


def groups_of(runs: Sequence[dict[str, Any]]) -> list[Group]:
    """Groups runs by robot, in the order of :data:`MUJOCO`, and by name."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        found.setdefault((run["env_id"], run["name"]), []).append(run)
    order = {env_id: i for i, env_id in enumerate(MUJOCO)}
    names = sorted(found, key=lambda pair: (order.get(pair[0], len(order)), pair[0]))
    return [group for name in names if (group := Group(found[name])).steps or group.complete]


def shown(value: float | None, digits: int | None = None) -> str:
    """12,345 or 12.3."""
    if value is None:
        return "–"
    return f"{value:,.{(1 if abs(value) < 100 else 0) if digits is None else digits}f}"


# ---- what others have ----------------------------------------------------------------------------


def published_curve(algorithm: str, env_id: str, up_to: float) -> dict[str, Any] | None:
    """Others' curve as far as ``up_to`` steps."""
    for curve in PUBLISHED["curve"]:
        if (curve["algorithm"], curve["env_id"]) == (algorithm, env_id):
            points = [point for point in curve["points"] if 1e3 * point[0] <= up_to]
            if points:
                return {**curve, "points": points}
    return None


def published(group: Group) -> list[str]:
    """Other people's figures for the same algorithm on this robot, each with its steps."""
    found = []
    last = max((*group.steps, *(run["steps"] for run in group.runs)))
    curve = published_curve(group.algorithm, group.env_id, last)
    if curve is not None:
        steps, value = curve["points"][-1]
        found.append(f"{value:,} at {1e3 * steps:,.0f} ({curve['name']})")
    for other in PUBLISHED["table"]:
        if other["algorithm"] == group.algorithm and group.env_id in other["returns"]:
            found.append(f"{other['returns'][group.env_id]} ({other['name']})")
    return found


def sources(algorithm: str) -> dict[str, str]:
    """Where others' figures for an algorithm are from, by their names."""
    others = [*PUBLISHED["table"], *PUBLISHED["curve"]]
    # the first of a name has its source in full
    return {
        other["name"]: other["source"]
        for other in reversed(others)
        if other["algorithm"] == algorithm
    }


# ---- a study's page ------------------------------------------------------------------------------


def study_page(
    study: Study, runs: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]] = ()
) -> str:
    """``docs/results/<study>.md``.

    Args:
        study: Which.
        runs: Its own.
        others: Those of all other studies, with which one of minutes compares itself.
    """
    groups = groups_of(runs)
    about = {"study": study, "groups": groups, "sources": sources(study.algorithm)}
    amp = [group for group in groups if group.amp]
    about["controlled"] = [g for g in amp if any(each.is_control_of(g) for each in groups)]
    about["uncontrolled"] = [g for g in amp if g not in about["controlled"]]
    if not study.minutes:
        return _page("study", about, runs)
    hours = sum(run["cpu_seconds"] for run in runs) / 3600
    most = sum(case.seeds * case.minutes for case in study.cases) / 60
    about |= {"table": _minutes_table(study, groups, others), "hours": hours, "most_hours": most}
    first = [Training(study, case, study.first_seed, 1) for case in study.cases if case.minutes]
    about["commands"] = [training.command() for training in first]
    return _page("minutes", about, runs)


def _minutes_table(
    study: Study, groups: Sequence[Group], others: Sequence[dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Of each environment, after each of the study's minutes: its case, what has run of it, the
    return that is wanted, and the best of the other studies on its processor."""
    found = {(group.name, group.env_id): group for group in groups}
    elsewhere = [group for group in groups_of(others) if group.timed]
    table: dict[str, list[dict[str, Any]]] = {}
    for env_id, targets in study.targets.items():
        for limit, target in zip(study.minutes, targets, strict=True):
            case = next(c for c in study.cases if (c.env_id, c.minutes) == (env_id, limit))
            mine = found.get((case.name, env_id))
            processors = {each.processor for each in ([mine] if mine else groups)}
            best = [
                (value, group)
                for group in elsewhere
                if group.env_id == env_id
                and group.processor in processors
                and (value := group.after(limit, "cpu_seconds")) is not None
            ]
            table.setdefault(env_id, []).append(
                {
                    "limit": limit,
                    "target": target,
                    "case": case,
                    "group": mine,
                    "best": max(best, key=lambda pair: pair[0], default=None),
                }
            )
    return table


def _page(template: str, about: dict[str, Any], runs: Sequence[dict[str, Any]]) -> str:
    machines = dict.fromkeys(
        f"{run['machine']['cpu']}, {run['machine']['cpus_available']} CPUs" for run in runs
    )
    general = {
        "published": lambda group: "; ".join(published(group)) or "–",
        "shown": shown,
        "listed": _listed,
        "machines": f"*{'; '.join(machines)}*",
    }
    return render(TEMPLATES / f"{template}.md", general | about)


def draw_study(study: Study, runs: Sequence[dict[str, Any]], path: Path) -> None:
    """Return against steps: each seed thin, their mean thick, others' points black; of a study of
    minutes against a processor's, with bands."""
    groups = [group for group in groups_of(runs) if group.curve()]
    env_ids = list(dict.fromkeys(group.env_id for group in groups))
    if not env_ids:
        return

    paint = pictures.colours(list(dict.fromkeys(group.name for group in groups)))

    def draw_by_minutes(axes: Axes, env_id: str) -> None:
        for group in _of_minutes(study, groups):
            if group.env_id == env_id:
                _draw_group(axes, group, paint[group.name], "cpu_seconds")
        for limit, target in zip(study.minutes, study.targets[env_id], strict=True):
            axes.plot(limit, target, "kx", markersize=5, label="target")
        _log_minutes(axes)

    if study.minutes:
        about = "minutes of one core of the processor"
        _draw_robots(env_ids, draw_by_minutes, path, columns=3, width=4.4, xlabel=about)
        return

    def draw(axes: Axes, env_id: str) -> None:
        mine = [group for group in groups if group.env_id == env_id]
        for group in mine:
            colour = paint[group.name]
            for run in group.runs:
                curve = run["curve"]
                steps = [step / 1e3 for step in curve["steps"]]
                axes.plot(steps, curve["returns"], color=colour, linewidth=0.6, alpha=0.45)
            steps, means = zip(*group.curve(), strict=True)
            thousands = [step / 1e3 for step in steps]
            axes.plot(thousands, means, color=colour, linewidth=1.8, label=group.name)
        last = max(group.steps[-1] for group in mine)
        other = published_curve(study.algorithm, env_id, 1.05 * last)
        if other is not None:
            steps, values = zip(*other["points"], strict=True)
            axes.plot(steps, values, "kx", markersize=5, label=other["name"])

    about = "gradient steps" if study.algorithm == "td3_bc" else "environment steps"
    _draw_robots(env_ids, draw, path, columns=4, width=3.6, xlabel=f"{about} [thousands]")


# ---- all of them against time --------------------------------------------------------------------


def summary_page(studies: dict[str, list[dict[str, Any]]]) -> str:
    """README.md: what a reader needs to choose."""
    groups = groups_of([run for runs in studies.values() for run in runs])
    timed = [group for group in groups if group.timed]
    robots: dict[str, list[Group]] = {}
    for group in timed:
        robots.setdefault(group.env_id, []).append(group)
    about = {
        "timed": timed,
        "limits": MINUTES,
        "robots": robots,
        "ahead": {e: _ahead(robots[e]) for e in FIVE if len(robots.get(e, ())) > 1},
        "longest": lambda mine: max(group.minutes()[-1][0] for group in mine),
        "missing": _missing(groups),
        "studies": STUDIES.values(),
    }
    return _page("summary", about, [run for group in timed for run in group.runs])


def _ahead(mine: Sequence[Group]) -> list[str]:
    """The group that was ahead after each of :data:`MINUTES`."""
    cells = []
    for limit in MINUTES:
        values = [(value, g) for g in mine if (value := g.after(limit)) is not None]
        if not values:
            cells.append("–")
            continue
        value, group = max(values, key=lambda pair: pair[0])
        seeds = "; one seed" if len(group.clocked) == 1 else ""
        cells.append(f"{shown(value)} ({group.name}{seeds})")
    return cells


def _missing(groups: Sequence[Group]) -> dict[str, list[Group | Case]]:
    """The planned groups that are missing or incomplete, by what they lack."""
    found = {(group.name, group.env_id): group for group in groups}
    missing: dict[str, list[Group | Case]] = {}
    for case in (case for study in STUDIES.values() for case in study.cases):
        group = found.get((case.name, case.env_id))
        if group is None:
            what = "Not measured"
        elif not group.timed:
            what = "Measured without the time of each evaluation, so not here"
        elif not group.complete:
            what = "Not finished"
        elif len(group.runs) < case.seeds:
            what = "With fewer seeds than planned"
        else:
            continue
        missing.setdefault(what, []).append(case)
    return missing


def _listed(cases: Sequence[Group | Case]) -> str:
    """``SAC (Hopper-v5, Ant-v5), MBPO (Hopper-v5)``."""
    robots: dict[str, list[str]] = {}
    for case in cases:
        robots.setdefault(case.name, []).append(case.env_id)
    return ", ".join(f"{name} ({', '.join(mine)})" for name, mine in robots.items())


def draw_minutes(studies: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """One panel for each of the five robots that most studies train: mean and range of the seeds of
    each study's best, of those of minutes of each; others' figures as dotted lines."""
    robots: dict[str, list[Group]] = {}
    for name, runs in studies.items():
        timed = [group for group in groups_of(runs) if group.timed and group.complete]
        study = STUDIES[name]
        shown = _of_minutes(study, timed) if study.minutes else _chosen(timed)
        for group in shown:
            robots.setdefault(group.env_id, []).append(group)
    env_ids = [env_id for env_id in FIVE if env_id in robots] or list(robots)
    if not env_ids:
        return
    figure, panels = pictures.panels(len(env_ids), size=(8.5, 2.9 * len(env_ids)))
    for axes, env_id in zip(panels, env_ids, strict=True):
        paint = pictures.colours([group.name for group in robots[env_id]])
        for group in robots[env_id]:
            _draw_group(axes, group, paint[group.name])
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=8)
        axes.set_title(env_id)
        axes.set_ylabel("return, greedy")
        _log_minutes(axes)
    panels[-1].set_xlabel("minutes")
    pictures.save(figure, path)


def _log_minutes(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")


def _of_minutes(study: Study, groups: Sequence[Group]) -> list[Group]:
    """Those that the study's table has, without controls in float32."""
    cases = {(case.name, case.env_id) for case in study.cases if case.minutes}
    return [group for group in groups if (group.name, group.env_id) in cases]


def _chosen(groups: Sequence[Group]) -> list[Group]:
    """Chooses each robot's group with the most seeds, then with the greatest return."""
    ranked = sorted(groups, key=lambda group: (len(group.runs), statistics.fmean(group.end())))
    return list({group.env_id: group for group in ranked}.values())


def _draw_robots(
    env_ids: Sequence[str],
    draw: Callable[[Axes, str], None],
    path: Path,
    *,
    columns: int,
    width: float,
    xlabel: str,
) -> None:
    """A panel for each robot: returns, as ``draw`` draws them."""
    columns = min(len(env_ids), columns)
    height = 3.0 * -(-len(env_ids) // columns)
    figure, panels = pictures.panels(
        len(env_ids), size=(width * columns, height + 0.4), columns=columns
    )
    for axes, env_id in zip(panels, env_ids, strict=True):
        draw(axes, env_id)
        axes.set_title(env_id)
        axes.set_xlabel(xlabel)
    for axes in panels[::columns]:
        axes.set_ylabel("return, greedy")
    shown = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle)
    figure.legend(
        list(shown.values()), list(shown), frameon=False, ncols=columns, loc="outside upper center"
    )
    pictures.save(figure, path)


def _draw_group(axes: Axes, group: Group, colour: str, clock: str = "seconds") -> None:
    minutes, means = zip(*group.minutes(clock), strict=True)
    axes.plot(minutes, means, color=colour, linewidth=1.8, label=group.name)
    if len(group.clocked) > 1:
        each = [group.at(step, "returns", group.clocked) for step in group.steps]
        axes.fill_between(
            minutes, list(map(min, each)), list(map(max, each)), color=colour, alpha=0.15, lw=0
        )
    other = published_curve(group.algorithm, group.env_id, 1.05 * group.steps[-1])
    if other is not None:
        steps, value = other["points"][-1]
        about = f"{other['name']}, {steps:g},000 steps"
        axes.axhline(value, color=colour, lw=1, ls=":", label=about)


# ---- everything ----------------------------------------------------------------------------------


def pages(folder: Path) -> dict[str, str]:
    """All pages by their names."""
    studies = {name: curves.read(folder, name) for name in STUDIES}
    found = {f"{name}.md": _page_of(name, studies) for name in STUDIES}
    return {**found, "README.md": summary_page(studies)}


def _page_of(name: str, studies: dict[str, list[dict[str, Any]]]) -> str:
    others = [run for other, runs in studies.items() if other != name for run in runs]
    return study_page(STUDIES[name], studies[name], others)


def write(folder: Path, name: str) -> None:
    """A study's page and picture."""
    studies = {each: curves.read(folder, each) for each in STUDIES}
    write_text(folder / f"{name}.md", _page_of(name, studies))
    draw_study(STUDIES[name], studies[name], folder / f"{name}.png")


def write_all(folder: Path) -> None:
    """Pages and pictures."""
    for name, text in pages(folder).items():
        write_text(folder / name, text)
    studies = {name: curves.read(folder, name) for name in STUDIES}
    for name, runs in studies.items():
        draw_study(STUDIES[name], runs, folder / f"{name}.png")
    draw_minutes(studies, folder / "wall_clock.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results")
    write_all(parser.parse_args().output)


if __name__ == "__main__":
    main()
