"""Figures in README and docs: spans of Markdown that are filled from the JSON of measurements.

A span is ``<!--=ratio("stepping", "Ant-v5", 64, "physics limit"):.1f-->6.1<!--/-->``; readers see
the figure alone. The comment has what an f-string has between its braces, over the names of this
file; one on lines of its own fills a whole table. ``make figures`` writes all spans anew, and
tests/python/test_figures.py fails where a span is not what the measurements say.
"""

from __future__ import annotations

import importlib
import json
import re
import statistics
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SPAN = re.compile(r"<!--=(?P<hole>.*?)-->(?P<text>.*?)<!--/-->", re.DOTALL)


def pages() -> list[Path]:
    """README and docs; the pages of results are written whole by what measures."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(path for path in found if "results" not in path.parts)]


def rendered(page: str) -> str:
    """The page with every span filled.

    Raises:
        ValueError: A span cannot be computed, is not closed, has two hyphens, which end a comment
            for some readers, or begins a line of a paragraph, which would end there.
    """

    def fill(match: re.Match[str]) -> str:
        block = match["text"].startswith("\n")
        if not block and page[: match.start()].endswith("\n"):
            raise ValueError(f"{match[0]}: a span begins a line; move a word before it")
        if "--" in match["hole"]:
            raise ValueError(f"{match[0]}: two hyphens in a comment")
        try:
            value: str = eval(f'f"""{{{match["hole"]}}}"""', globals())
        except Exception as error:
            raise ValueError(f"{match[0]}: {error!r}") from error
        value = f"\n{value.strip()}\n" if block else value
        return f"<!--={match['hole']}-->{value}<!--/-->"

    if not len(SPAN.findall(page)) == page.count("<!--=") == page.count("<!--/-->"):
        raise ValueError("a span is not closed by <!--/-->")
    return SPAN.sub(fill, page)


# ---- reading and writing -------------------------------------------------------------------------


class Data(dict[str, Any]):
    """An object of JSON, whose members are attributes too."""

    __getattr__ = dict.__getitem__


class Folder:
    """A folder's JSON files, as attributes."""

    def __init__(self, path: str):
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return read(f"{self._path}/{name}.json")


@cache
def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text(), object_hook=Data)


bench, results = Folder("bench/results"), Folder("docs/results")


def one(rows: Iterable[Any], **where: Any) -> Any:
    """The row whose members are these."""
    (found,) = (row for row in rows if where.items() <= {k: row[k] for k in where}.items())
    return found


def listed(values: Iterable[float], spec: str = ",.0f") -> str:
    """1, 2 and 3."""
    *most, last = (f"{value:{spec}}" for value in values)
    return " and ".join([", ".join(most), last] if most else [last])


def span(values: Iterable[float], spec: str = ".2f") -> str:
    """0.5 to 1.5: the least and the greatest."""
    known = sorted(values)
    return f"{known[0]:{spec}} to {known[-1]:{spec}}"


# ---- speeds --------------------------------------------------------------------------------------


def contest(section: str, env_id: str, num_envs: int) -> Any:
    return one(bench.bench[section].rows, env_id=env_id, num_envs=num_envs)


def rate(section: str, env_id: str, num_envs: int) -> float:
    return float(contest(section, env_id, num_envs).summary.pyfastenv.median)


def ratio(section: str, env_id: str, num_envs: int, rival: str) -> float:
    """Ours to another's."""
    return float(contest(section, env_id, num_envs).ratios[rival].median)


def pictures(robot: str) -> str:
    """Pictures per second, of 84 and of 480 pixels, and MuJoCo's renderer's."""
    found = (one(bench.rendering.speeds.rows, robot=robot, size=size) for size in (84, 480))
    return " | ".join(
        f"{row.frames_per_s[who].median:,.{digits}f}"
        for row in found
        for who, digits in (("avx512", 0), ("mujoco", 1))
    )


def seen(robot: str, who: str) -> str:
    """Steps per second with pictures as observations."""
    row = one(bench.pixels.steps.rows, robot=f"{robot}-v5")
    return f"{row.steps_per_s[who].median:,.0f}"


def by_mujoco(env_id: str, *sizes: int) -> str:
    """The share of the physics limit that ``engine="mujoco"`` reaches in the same rounds."""
    rates = [contest("stepping", env_id, num_envs).rates for num_envs in sizes]
    pairs = [zip(r["pyfastenv, mj_step"], r["physics limit"], strict=True) for r in rates]
    return " | ".join(f"{statistics.median(a / b for a, b in each):.0%}" for each in pairs)


def beside_peers(env_id: str) -> str:
    """README's row of 64 environments: rates of one run, ours by EnvPool's and by the bare loop."""
    row, alone = contest("tasks", env_id, 64), contest("stepping", env_id, 64)
    names = ("gymnasium async", "gymnasium sync", "EnvPool")
    cells = [f"{row.summary[name].median:,.0f}" if name in row.summary else "–" for name in names]
    factors = (row.ratios.EnvPool, alone.ratios["physics limit"])
    cells += [f"**{row.summary.pyfastenv.median:,.0f}**", *(f"{x.median:.1f}" for x in factors)]
    return " | ".join(cells)


def times_envpool(num_envs: int) -> float:
    """The geometric mean over the 11 MuJoCo v5 tasks."""
    rows = [row for row in bench.bench.tasks.rows if row.num_envs == num_envs]
    factors = [row.ratios.EnvPool.median for row in rows]
    assert len(factors) == 11
    return statistics.geometric_mean(factors)


def ppo_seconds(engine: str, part: str = "seconds") -> str:
    return listed(sorted(run[part] for run in bench.bench.ppo.rows[0].runs[engine]), ".1f")


def goal(name: str, spec: str) -> str:
    """Seconds to the goal by seed; a run that did not get there says that it took at least so."""
    runs = [run for run in bench.train.goal.rows if run.name == name]
    return ", ".join(f"{'' if run.reached else '≥ '}{run.seconds:{spec}}" for run in runs)


def rollouts(env_id: str = "", least: int = 8) -> str:
    """Shares of the physics limit."""
    rows = [r for r in bench.train.rollouts.rows if env_id in r.env_id and r.num_envs >= least]
    return span(r.share.median for r in rows if "share" in r)


def sb3(name: str) -> list[Any]:
    return sorted((run for run in results.sb3.runs if run.name == name), key=lambda run: run.seed)


def sb3_gain(name: str) -> float:
    pairs = zip(sb3("pyfastenv"), sb3(name), strict=True)
    return statistics.median(ours.steps_per_s / theirs.steps_per_s for ours, theirs in pairs)


def physics(robot: str, rollouts: int) -> str:
    mine = one(bench.physics.cases, robot=robot, rollouts=rollouts)
    gains = (mine.gain[f"mujoco.{name}"].median for name in ("rollout", "batch"))
    rate = f"{mine.steps_per_s.pyfastenv.median:,.0f}"
    return " | ".join([rate, *(f"{gain:.1f}" for gain in gains)])


def lanes(robot: str) -> str:
    """A robot of gymnasium's, or one of other people's."""
    mine = {**bench.lanes.robots, **bench.lane_robots.robots}[robot]
    times = (mine[name].times_mj_step for name in ("8 lanes", "4 lanes", "2 lanes", "1 lane"))
    before = f"{mine.mean_rows:.1f} | {mine.mj_step.ns_per_substep:,.0f}"
    return " | ".join([before, *(f"{each:.1f} ×" for each in times)])


def parity(name: str, what: str) -> list[int]:
    """A number of each row that was compared; own tasks have several modes."""
    rows = read(f"bench/results/{name}_parity.json").values()
    return [part[what] for row in rows for part in (row.values() if name == "own_tasks" else [row])]


def alike(values: list[int]) -> int:
    (value,) = set(values)
    return value


def busy(name: str) -> str:
    """Gradient steps per second, alone and beside another program, on one thread and on two."""
    rates = (bench.busy[beside][f"{name}, {n}"] for beside in ("alone", "busy") for n in (1, 2))
    return " | ".join(f"{statistics.median(each):,.0f}" for each in rates)


def killed(name: str) -> str:
    """The cells that say how kills changed a training over nodes."""
    case = results.nodes[name]
    assert case.get("bit_equal", True), f"{name}: another end"
    parts = (("step", ",.0f"), ("again_step", ",.0f"), ("again_s", ".1f"))
    cells = [listed((kill[part] for kill in case.killed.kills), spec) for part, spec in parts]
    ends = (f"{case[run].last_return:.0f}" for run in ("killed", "undisturbed"))
    return " | ".join([*cells, *(end.replace("-", "−") for end in ends)])


# ---- trainings -----------------------------------------------------------------------------------


def group(study: str, name: str, env_id: str) -> Any:
    """The seeds of a case that count (results_page.py)."""
    from results_page import Group

    runs = read(f"docs/results/{study}.json").runs
    return Group([run for run in runs if (run.name, run.env_id) == (name, env_id)])


def trained(study: str, name: str, env_id: str, *columns: str | int) -> str:
    """Cells: ``end``, ``best``, processor ``minutes``, ``unit`` that multiplied, or mean and
    deviation after so many steps."""
    from pyfastenv.experiments.tables import mean_and_deviation as spread

    mine, cells = group(study, name, env_id), []
    for column in columns:
        if isinstance(column, int):
            cells.append(spread(mine.at(column, "returns")))
        elif column == "best":
            cells.append(f"{mine.best()[1]:,.0f}")
        elif column == "unit":
            units = (re.search(r"\((.+)\)", run["acceleration"]) for run in mine.clocked)
            cells.append(", ".join(dict.fromkeys(unit[1] for unit in units if unit)))
        elif not mine.complete:
            cells.append({"end": "–", "minutes": ""}[column])
        else:
            cells.append(
                spread(mine.end()) if column == "end" else f"{mine.share('cpu_seconds'):.1f}"
            )
    return " | ".join(cells)


def learned(env_id: str) -> str:
    """README's row of a robot: each training's return in the end, and its minutes."""
    studies = {"ppo": "PPO", "ppo_long": "PPO to 10M", "sac": "SAC"}
    cells = (trained(study, name, env_id, "end", "minutes") for study, name in studies.items())
    return " | ".join(cells)


def seconds(study: str, name: str, *robots: str) -> list[float]:
    """Wall clock of every seed."""
    return [run.seconds for robot in robots for run in group(study, name, f"{robot}-v5").runs]


def around(name: str) -> str:
    """Walker2d's mean evaluation within 5,000 steps of four; random ones are not counted."""
    curves = [run.curve for run in group("mbpo", name, "Walker2d-v4").runs]
    points = [(at - 5_000, y) for c in curves for at, y in zip(c.steps, c.returns, strict=True)]
    near = {
        step: [value for at, value in points if abs(at - step) <= 5_000]
        for step in (40_000, 60_000, 80_000, 100_000)
        if step <= max(points)[0]
    }
    cells = [f"{statistics.fmean(values):,.0f}" for values in near.values()]
    return " | ".join([*cells, *["–"] * (4 - len(cells))])


def by_minutes(name: str) -> str:
    """Walker2d after 60, 70, 80 and 90 processor minutes of an EPYC with AVX512-BF16: steps, by the
    clock of the first seed that ran there, and each seed's mean evaluation within 2,500 of them."""
    runs = group("mbpo", name, "Walker2d-v4").runs
    clock = next((run.curve for run in runs if run.machine.cpu == "AMD EPYC"), None)
    curves = [list(zip(run.curve.steps, run.curve.returns, strict=True)) for run in runs]
    cells = []
    for minute in (60, 70, 80, 90):
        if clock is None:  # the preset, there timed by 750 steps from 25,000 on alone
            at = 25_000 + round((minute - 31) * 60 / 25.6 * 250, -3)
        else:
            times = [*zip(clock.steps, clock.cpu_seconds, strict=True)]
            at = max(step for step, seconds in times if seconds <= 60 * minute)
            if 60 * minute > times[-1][1] + 60:
                cells.append("–")
                continue
        near = [[y for x, y in c if abs(x - at) <= 2_500] for c in curves if c[-1][0] >= at]
        cells.append(f"{at:,.0f}: {listed(map(statistics.fmean, near))}")
    return " | ".join(cells)


def before_a_fall(first: int) -> str:
    """The expected and the actual return, and the reward, from so many steps before an end on."""
    rows = one(results.falls.runs, name="MBPO, discount 0.99").before_a_fall
    expected, came, reward = next(row[2:5] for row in rows if row[0] == first)
    return f"{expected:.0f} | {came:.0f} | {reward:.1f}"


def walker2d_falls() -> list[Any]:
    """The same rows whole, of two seeds."""
    names = (f"MBPO, Walker2d-v4, seed {seed}" for seed in (41, 42))
    return [one(results.falls.runs, name=name).before_a_fall for name in names]


def late_bounds(study: str, name: str, env_id: str) -> str:
    """The least and the greatest of each seed's last ten evaluations."""
    late = [run.curve.returns[-10:] for run in group(study, name, env_id).runs]
    return ", ".join(listed((min(each), max(each))) for each in late)


# ---- the four documents, and tables of other programs --------------------------------------------


def followed(*seeds: Any) -> str:
    """A table of commands that were held, and of how far each seed's robots were off, and falls."""
    lines = ["| forward, sideways [m/s], turning [rad/s] | off by | falls |", "|---|---|---|"]
    for name, first in seeds[0].items():
        off = [" / ".join(f"{e:.2f}" for e in seed[name].error) for seed in seeds]
        falls = ", ".join(f"{seed[name].falls}" for seed in seeds)
        command = " / ".join(f"{part:g}" for part in first.command)
        lines.append(f"| {name}: {command} | {', '.join(off)} | {falls} |")
    return "\n".join(lines)


def walked(trainings: dict[str, Any]) -> str:
    """A table of what trainings of walkers took and what their policies do under pushes."""
    lines = [
        "| robot | million steps | minutes | off by at most | falls of 64, pushed | not pushed |"
    ]
    lines.append("|---" * 6 + "|")
    for name, seeds in trainings.items():
        pushed = [each for seed in seeds for each in seed.pushed]
        velocity = max(max(each.error[:2]) for each in pushed)
        turning = max(each.error[2] for each in pushed)
        minutes = ", ".join(f"{seed.processor_seconds / 60:.1f}" for seed in seeds)
        falls = ", ".join(f"{each.falls}" for each in pushed)
        lines.append(
            f"| {name} | {seeds[0].steps / 1e6:.1f} | {minutes} "
            f"| {velocity:.2f} m/s, {turning:.2f} rad/s | {falls} "
            f"| {', '.join(f'{seed.calm.falls}' for seed in seeds)} |"
        )
    return "\n".join(lines)


def fallen(*seeds: Any) -> str:
    """A table of falls by kind of ground and level, of each seed."""
    levels = list(next(iter(seeds[0].values())))
    lines = [f"| ground | {' | '.join(f'level {level}' for level in levels)} |"]
    lines.append("|---" * (1 + len(levels)) + "|")
    for kind in seeds[0]:
        falls = [", ".join(f"{seed[kind][level].falls}" for seed in seeds) for level in levels]
        lines.append(f"| {kind.replace('_', ' ')} | {' | '.join(falls)} |")
    return "\n".join(lines)


def curve(seeds: Iterable[Any], minutes: Iterable[float]) -> str:
    """A table of how far each seed's robots were off, with noise, after so many minutes."""
    lines = ["| minutes | off by | steps of an episode |", "|---|---|---|"]
    for at in minutes:
        rows = [min(seed.curve, key=lambda row: abs(row[0] - at)) for seed in seeds]
        off = (f"{row[1]:.2f} m/s, {row[2]:.2f} rad/s" for row in rows)
        lines.append(
            f"| {at:g} | {'; '.join(off)} | {', '.join(f'{row[3]:.0f}' for row in rows)} |"
        )
    return "\n".join(lines)


def measured(document: str, **where: Any) -> list[Any]:
    rows = read(f"docs/results/{document}/results.json").measurements.values()
    return [row for row in rows if where.items() <= row.items()]


def hours(*documents: str) -> float:
    return sum(row.measured_s for name in documents for row in measured(name)) / 3600


_OUR_FLOW = {"float32": "pyfastenv, float32", "amp": "pyfastenv, --amp"}


def whole_ms(program: str) -> float:
    """A step of a whole run of the flow's experiment; of ours ``float32`` and ``amp``."""
    run = one(measured("flow", part="whole"), program=_OUR_FLOW.get(program, program))
    return float(1e3 * run.seconds / run.steps)


def parts_ms(program: str) -> float:
    """A step of the flow's experiment, added up from its parts."""
    return float(values("flow").ms[_OUR_FLOW.get(program, program)])


@cache
def values(document: str) -> Any:
    """The values that the document's report is made of."""
    from pyfastenv.experiments.study import Study

    modules = (f"pyfastenv.experiments.{document}{end}" for end in ("", "_report"))
    experiment, report = map(importlib.import_module, modules)
    sizes = experiment.Config(report_only=True, output=ROOT / "docs" / "results" / document)
    return Data(report.report(Study(document, sizes)).values)


def shown(path: str) -> str:
    """The table of a page that a benchmark has written."""
    return "\n".join(line for line in (ROOT / path).read_text().splitlines() if line[:1] == "|")


def table(program: str, name: str) -> str:
    """A table of another program in this folder."""
    return str(importlib.import_module(program).tables()[name])


def main() -> None:
    """Writes the figures into the pages."""
    for path in pages():
        page = path.read_text()
        if (new := rendered(page)) != page:
            path.write_text(new)
            print(f"{path.relative_to(ROOT)}: new figures")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
