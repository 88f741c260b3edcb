"""bench.md: one table per section, each with its target. Pure text from JSON rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyfastenv.experiments import measure
from pyfastenv.experiments.tables import table

Row = dict[str, Any]
OURS = "pyfastenv"
LIMIT = "physics limit"
BY_MUJOCO = "pyfastenv, mj_step"
# lanes' rate over the physics limit, by number of environments
LIGHT = {8: 4.0, 64: 6.0, 1024: 7.0, 32_000: 7.0}
LIMIT_TARGETS = {
    "HalfCheetah-v5": LIGHT,
    "Walker2d-v5": LIGHT,
    "Hopper-v5": LIGHT,
    "Ant-v5": {8: 3.0, 64: 4.5, 1024: 5.0, 32_000: 5.0},
    "Humanoid-v5": {8: 2.5, 64: 3.5, 1024: 4.0, 32_000: 4.0},
    "HumanoidStandup-v5": {64: 2.0},
    "InvertedPendulum-v5": {1024: 6.0},
    "InvertedDoublePendulum-v5": {1024: 6.0},
    "Reacher-v5": {1024: 6.0},
    "Swimmer-v5": {1024: 6.0},
}
ENVPOOL_TARGETS = {64: 5.0}
MIN_ROLLOUT = 0.8
MAX_PPO = 0.4
CARTPOLE_TARGETS = {8: 0.8e6, 1024: 10e6}
MAX_MEMORY_MB = 300.0
MAX_MAKE_S = 2.0
MIN_HALF_BATCHES = 0.9


def markdown(results: dict[str, Any]) -> str:
    """The whole report."""
    parts = ["# Benchmarks", INTRODUCTION]
    for name, section in results.items():
        parts += [f"## {TITLES[name]}", TABLES[name](section["rows"]), _footer(section)]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """\
Written by `bench/python/bench.py`; every raw rate is in bench.json. Rates are environment calls per
second (resets included), medians over rounds with the quartiles in brackets. Contestants run in
turn within each round, and shares and factors are medians of the rounds' ratios, so that a drift of
the machine cancels; they are therefore not exactly the quotients of the medians beside them. All
start from a reset with random actions; making and resetting are not timed. ✓ and ✗ tell whether the
target beside them is met."""

TITLES = {
    "stepping": "Stepping: times the physics limit",
    "trained": "The same in the states of trained policies",
    "tasks": "Tasks: against other vector environments",
    "cartpole": "CartPole-v1: the price of a call",
    "async": "Half batches: send/recv against step",
    "memory": "Many environments: time and memory",
    "scaling": "Scaling with threads",
    "rollouts": "Rollouts with a 64 x 64 policy against step",
    "ppo": "PPO on HalfCheetah-v5, with lanes and with mj_step",
}


def stepping(rows: Sequence[Row]) -> str:
    """Both engines, the limit, and how many times it lanes and mj_step reach."""
    return _stepping(rows, LIMIT_TARGETS)


def trained(rows: Sequence[Row]) -> str:
    """The same; nobody has said what it should be."""
    return _stepping(rows, {})


def _stepping(rows: Sequence[Row], targets: Mapping[str, Mapping[int, float]]) -> str:
    lines = []
    for row in rows:
        times = row["ratios"][LIMIT]
        by_mujoco = measure.ratio(row["rates"][BY_MUJOCO], row["rates"][LIMIT])
        target = targets.get(row["env_id"], {}).get(row["num_envs"])
        lines.append(
            [
                row["env_id"],
                f"{row['num_envs']:,}",
                row["engine"],
                _rate(row, OURS),
                _rate(row, LIMIT),
                f"{times['median']:.2f}× [{times['q1']:.2f}, {times['q3']:.2f}]",
                f"{by_mujoco['median']:.1%}",
                "" if target is None else f"≥ {target:g}× {mark(times['median'] >= target)}",
            ]
        )
    columns = ["environment", "envs", "engine", "pyfastenv", LIMIT, "times", "by mj_step", "target"]
    return table(columns, lines)


def rollouts(rows: Sequence[Row]) -> str:
    """Rates of both calls, and what either engine gives."""
    lines = []
    for row in rows:
        ratio = row["ratios"]["step"]
        lines.append(
            [
                row["env_id"],
                f"{row['num_envs']:,}",
                _rate(row, "rollout"),
                _rate(row, "step"),
                f"{ratio['median']:.2f} [{ratio['q1']:.2f}, {ratio['q3']:.2f}]",
                f"{row['ratios']['rollout, mj_step']['median']:.2f}×",
                f"≥ {MIN_ROLLOUT} {mark(ratio['median'] >= MIN_ROLLOUT)}",
            ]
        )
    columns = ["environment", "envs", "rollout", "step", "rollout / step"]
    return table([*columns, "rollout / with mj_step", "target"], lines)


def ppo(rows: Sequence[Row]) -> str:
    """Seconds by part."""
    lines = []
    for row in rows:
        for engine, runs in row["runs"].items():
            parts = ("seconds", "sample_s", "update_s")
            lines.append(
                [engine, *("; ".join(f"{run[part]:.1f}" for run in runs) for part in parts)]
            )
        ratio = row["ratio"]["median"]
    target = f"target ≤ {MAX_PPO} {mark(ratio <= MAX_PPO)}"
    found = f"Lanes take {ratio:.2f} of the time ({target}), to the same weights."
    return found + "\n\n" + table(["engine", "seconds of each run", "sampling", "update"], lines)


def tasks(rows: Sequence[Row]) -> str:
    """Factors to EnvPool and their geometric means; then everyone's rates."""
    factors = []
    everyone = []
    by_size: dict[int, list[float]] = {}
    for row in rows:
        head = [row["env_id"], f"{row['num_envs']:,}"]
        if "skipped" in row:
            factors.append([*head, "", "", row["skipped"]])
            continue
        if "EnvPool" in row["ratios"]:
            by_size.setdefault(row["num_envs"], []).append(row["ratios"]["EnvPool"]["median"])
            factors.append([*head, _rate(row, OURS), _rate(row, "EnvPool"), _times(row, "EnvPool")])
        for name in row["ratios"]:
            if len(row["ratios"]) > 1:
                everyone.append([*head, name, _rate(row, name), _times(row, name)])
    means = []
    for num_envs, values in sorted(by_size.items()):
        mean = measure.geometric_mean(values)
        target = ENVPOOL_TARGETS.get(num_envs)
        means.append(
            [
                f"{num_envs:,}",
                str(len(values)),
                f"{mean:.2f}×",
                "" if target is None else f"≥ {target}× {mark(mean >= target)}",
            ]
        )
    return "\n\n".join(
        [
            "Geometric mean of pyfastenv / EnvPool:",
            table(["envs", "tasks", "factor", "target"], means),
            table(["environment", "envs", "pyfastenv", "EnvPool", "factor"], factors),
            "Everyone (`mujoco.batch` has physics only, so its bodies fall once and stay where "
            "they are: other contacts, no resets). The factor is pyfastenv's rate over theirs:",
            table(["environment", "envs", "contestant", "its rate", "factor"], everyone),
        ]
    )


def cartpole(rows: Sequence[Row]) -> str:
    """Rates, and microseconds per call."""
    lines = []
    for row in rows:
        for name, rate in row["summary"].items():
            target = CARTPOLE_TARGETS.get(row["num_envs"]) if name == OURS else None
            lines.append(
                [
                    f"{row['num_envs']:,}",
                    name,
                    _rate(row, name),
                    f"{row['num_envs'] / rate['median'] * 1e6:,.1f}",
                    "" if name == OURS else _times(row, name),
                    ""
                    if target is None
                    else f"≥ {target / 1e6:g} M/s {mark(rate['median'] >= target)}",
                ]
            )
    return table(["envs", "contestant", "rate", "µs per step()", "factor", "target"], lines)


def half_batches(rows: Sequence[Row]) -> str:
    """send/recv over step."""
    lines = []
    for row in rows:
        share = row["ratios"][OURS]
        good = share["median"] >= MIN_HALF_BATCHES
        lines.append(
            [
                row["env_id"],
                f"{row['num_envs']:,}",
                _rate(row, OURS),
                _rate(row, "pyfastenv send/recv"),
                f"{share['median']:.1%} [{share['q1']:.1%}, {share['q3']:.1%}]",
                f"≥ {MIN_HALF_BATCHES:.0%} {mark(good)}",
            ]
        )
    return table(
        ["environment", "envs", "step", "send/recv of halves", "share of step", "target"], lines
    )


def memory(rows: Sequence[Row]) -> str:
    """Seconds and megabytes of fresh processes."""
    lines = []
    for row in rows:
        target = ""
        if (row["contestant"], row["env_id"], row["num_envs"]) == (OURS, "HalfCheetah-v5", 32_000):
            good = row["peak_rss_mb"] < MAX_MEMORY_MB and row["make_s"] < MAX_MAKE_S
            target = f"peak < {MAX_MEMORY_MB:.0f} MB, make < {MAX_MAKE_S:.0f} s {mark(good)}"
        lines.append(
            [
                row["contestant"],
                row["env_id"],
                f"{row['num_envs']:,}",
                *[f"{row[key]:.3f}" for key in ("make_s", "reset_s", "step_s")],
                *[f"{row[key]:,.0f}" for key in ("rss_before_mb", "rss_mb", "peak_rss_mb")],
                target,
            ]
        )
    return table(
        [
            "contestant",
            "environment",
            "envs",
            "make [s]",
            "reset [s]",
            "one step [s]",
            "RSS before [MB]",
            "after [MB]",
            "peak [MB]",
            "target",
        ],
        lines,
    )


def scaling(rows: Sequence[Row]) -> str:
    """Rates by threads, and the speed-up over one."""
    lines = []
    for row in rows:
        first = next(r for r in rows if r["env_id"] == row["env_id"])
        speedup = row["summary"][OURS]["median"] / first["summary"][OURS]["median"]
        lines.append(
            [
                row["env_id"],
                str(row["num_threads"]),
                f"{row['num_envs']:,}",
                _rate(row, OURS),
                f"{speedup:.2f}×",
                _rate(row, LIMIT),
                f"{row['ratios'][LIMIT]['median']:.1%}",
            ]
        )
    return table(["environment", "threads", "envs", "pyfastenv", "speed-up", LIMIT, "share"], lines)


TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "stepping": stepping,
    "trained": trained,
    "tasks": tasks,
    "cartpole": cartpole,
    "async": half_batches,
    "memory": memory,
    "scaling": scaling,
    "rollouts": rollouts,
    "ppo": ppo,
}


def _rate(row: Row, name: str) -> str:
    rate = row["summary"][name]
    return f"{rate['median']:,.0f} [{rate['q1']:,.0f}, {rate['q3']:,.0f}]"


def _times(row: Row, name: str) -> str:
    return f"{row['ratios'][name]['median']:.2f}×"


def mark(good: bool) -> str:
    """Whether a bar is met."""
    return "✓" if good else "✗"


def circumstances(result: Mapping[str, Any]) -> str:
    """When and where it was measured, with which versions."""
    machine = result["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v)
    return (
        f"{result['date']}, {machine['cpu']}, {machine['cpus_available']} CPUs, "
        f"{machine['memory_gib']} GiB, {machine['os']}; Python {machine['python']}, {versions}; "
        f"commit {machine['commit']}"
    )


def _footer(section: dict[str, Any]) -> str:
    settings = section["settings"]
    quick = " **A quick run: rough figures.**" if settings["quick"] else ""
    return (
        f"*{circumstances(section)}; {settings['num_threads']} threads unless said, "
        f"up to {settings['repeats']} rounds.*{quick}"
    )
