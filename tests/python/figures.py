"""Where README's and docs' figures come from: sentences with holes, and what the JSON files say.

``python tests/python/figures.py`` (``make figures``) writes them anew after a measurement.
test_figures.py compares, and fails on a figure that is neither here nor among the CONSTANTS.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_HOLE = r"((?:≥ )?[−-]?\d(?:[\d,.]*\d)?)"


@dataclass(frozen=True)
class Claim:
    """A sentence or a table's row, ``{}`` for each figure; white space matches any white space."""

    text: str
    values: tuple[str, ...]

    def pattern(self) -> re.Pattern[str]:
        literals = [re.sub(r"(?:\\\s)+", r"\\s+", re.escape(t)) for t in self.text.split("{}")]
        return re.compile(_HOLE.join(literals))

    def find(self, document: str) -> re.Match[str]:
        """The one place where the document says this."""
        found = list(self.pattern().finditer(document))
        assert len(found) == 1, f"{len(found)} places, expected 1, have {self.text!r}"
        return found[0]


def claim(text: str, *values: str) -> Claim:
    assert text.count("{}") == len(values), text
    return Claim(text, values)


def rewritten(document: str, claims: list[Claim]) -> str:
    """The document with the figures that the claims have."""
    for one in claims:
        match = one.find(document)
        for i in range(len(one.values), 0, -1):
            document = document[: match.start(i)] + one.values[i - 1] + document[match.end(i) :]
    return document


# ---- the measurements ----------------------------------------------------------------------------


@cache
def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text())


def bench(section: str, env_id: str, num_envs: int) -> Any:
    rows = read("bench/results/bench.json")[section]["rows"]
    return next(r for r in rows if r["env_id"] == env_id and r["num_envs"] == num_envs)


def rate(section: str, env_id: str, num_envs: int, name: str = "pyfastenv") -> str:
    return f"{bench(section, env_id, num_envs)['summary'][name]['median']:,.0f}"


def times_limit(env_id: str, num_envs: int, section: str = "stepping") -> str:
    ratio = bench(section, env_id, num_envs)["ratios"]["physics limit"]["median"]
    return f"{ratio:.1f}"


def percent_by_mujoco(env_id: str, num_envs: int) -> str:
    """What ``engine="mujoco"`` reaches of the physics limit, in the rounds of the same run."""
    rates = bench("stepping", env_id, num_envs)["rates"]
    pairs = zip(rates["pyfastenv, mj_step"], rates["physics limit"], strict=True)
    return f"{100 * statistics.median(ours / limit for ours, limit in pairs):.0f}"


def rollout_over_step(env_id: str, num_envs: int) -> str:
    return f"{bench('rollouts', env_id, num_envs)['ratios']['step']['median']:.2f}"


def times_envpool(num_envs: int) -> str:
    rows = read("bench/results/bench.json")["tasks"]["rows"]
    factors = [
        row["ratios"]["EnvPool"]["median"]
        for row in rows
        if row["num_envs"] == num_envs and "EnvPool" in row.get("ratios", {})
    ]
    assert len(factors) == 11
    return f"{math.exp(statistics.fmean(map(math.log, factors))):.1f}"


def ppo_seconds(engine: str, part: str = "seconds") -> list[str]:
    runs = read("bench/results/bench.json")["ppo"]["rows"][0]["runs"][engine]
    return [f"{seconds:.1f}" for seconds in sorted(run[part] for run in runs)]


def train(section: str) -> Any:
    return read("bench/results/train.json")[section]["rows"]


def goal(name: str) -> list[str]:
    """Seconds to the goal by seed; a run that did not get there says that it took at least so."""
    rows = [row for row in train("goal") if row["name"] == name]
    digits = 1 if name == "pyfastenv" else 0
    return [f"{'' if r['reached'] else '≥ '}{r['seconds']:.{digits}f}" for r in rows]


def rollout_shares(least_envs: int, env_id: str = "") -> list[str]:
    shares = [
        row["share"]["median"]
        for row in train("rollouts")
        if "share" in row and row["num_envs"] >= least_envs and env_id in row["env_id"]
    ]
    return [f"{min(shares):.2f}", f"{max(shares):.2f}"]


def updates(name: str) -> str:
    rows = read("bench/results/mbpo.json")["sac"]["rows"]
    return f"{next(row for row in rows if row['name'] == name)['rate']['median']:,.0f}"


def gain(library: str, rival: str = "workers") -> str:
    return f"{read('bench/results/consumers.json')[library]['gain'][rival]['median']:.1f}"


def ppo(env_id: str) -> list[Any]:
    """Those that count, as on the page (results_page.py)."""
    runs = [
        run
        for run in read("docs/results/ppo.json")["runs"]
        if (run["name"], run["env_id"]) == ("PPO", env_id)
    ]
    done = [run for run in runs if run["done"]]
    return [run for run in done if "earlier" not in run] or done


def greedy(env_id: str) -> str:
    return f"{statistics.fmean(run['greedy_return'] for run in ppo(env_id)):,.0f}"


def ppo_long(env_id: str) -> list[Any]:
    """Those that came to their end."""
    return [
        run
        for run in read("docs/results/ppo_long.json")["runs"]
        if (run["name"], run["env_id"]) == ("PPO to 10M", env_id) and run["done"]
    ]


def sac_fast(env_id: str) -> list[str]:
    """Return, minutes and number of seeds."""
    runs = [
        run
        for run in read("docs/results/sac_fast.json")["runs"]
        if (run["name"], run["env_id"]) == ("SAC, 16 environments", env_id) and run["done"]
    ]
    returns, seconds = ([run[name] for run in runs] for name in ("greedy_return", "seconds"))
    minutes = statistics.fmean(seconds) / 60
    return [f"{statistics.fmean(returns):,.0f}", f"{minutes:.1f}", str(len(runs))]


def sb3_runs(name: str) -> list[Any]:
    runs = [run for run in read("docs/results/sb3.json")["runs"] if run["name"] == name]
    return sorted(runs, key=lambda run: int(run["seed"]))


def sb3_gain(name: str) -> str:
    pairs = zip(sb3_runs("pyfastenv"), sb3_runs(name), strict=True)
    return f"{statistics.median(a['steps_per_s'] / b['steps_per_s'] for a, b in pairs):.2f}"


def sb3_return(name: str) -> str:
    return f"{statistics.fmean(run['curve'][-1][2] for run in sb3_runs(name)):.0f}"


# whole runs of the flow's experiment
WHOLE_RUNS = ("the document's style", "anomaly mode off", "pyfastenv, float32", "pyfastenv, --amp")


def measured(experiment: str, part: str = "") -> list[Any]:
    rows = read(f"docs/results/{experiment}/results.json")["measurements"].values()
    return [row for row in rows if part in ("", row["part"])]


def reported(experiment: str, pattern: str) -> tuple[str, ...]:
    """What an experiment's report says."""
    match = re.search(pattern, (ROOT / f"docs/results/{experiment}/report.md").read_text(), re.S)
    assert match, f"{experiment}'s report: {pattern}"
    return match.groups()


def overlap() -> tuple[str, ...]:
    """What it gains where it gains most, and the policy's megabytes."""
    return reported("sampling", r"another, gain ([\d.]+) .* with a policy of ([\d.]+) MB")


def experiment_minutes(name: str) -> float:
    return sum(float(row["measured_s"]) for row in measured(name)) / 60.0


def whole_ms(program: str) -> float:
    """Of a step."""
    run = next(row for row in measured("flow", "whole") if row["program"] == program)
    return 1e3 * float(run["seconds"]) / float(run["steps"])


# ---- the documents -------------------------------------------------------------------------------


def readme() -> Iterator[Claim]:
    peers = ("gymnasium async", "gymnasium sync", "EnvPool", "pyfastenv")
    for env_id in ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5"):
        rates = [rate("tasks", env_id, 64, peer) for peer in peers[:3]]
        rates.append(rate("stepping", env_id, 64))
        times = times_limit(env_id, 64)
        yield claim(f"| {env_id} | {{}} | {{}} | {{}} | **{{}}** | {{}} |", *rates, times)
    for env_id in ("Hopper-v5", "InvertedPendulum-v5"):
        rates = [rate("tasks", env_id, 64, "EnvPool"), rate("stepping", env_id, 64)]
        times = times_limit(env_id, 64)
        yield claim(f"| {env_id} | | | {{}} | **{{}}** | {{}} |", *rates, times)
    rates = [rate("cartpole", "CartPole-v1", 64, peer) for peer in peers[2:]]
    yield claim("| CartPole-v1 | | | {} | **{}** | |", *rates)
    ratio = read("bench/results/bench.json")["ppo"]["rows"][0]["ratio"]["median"]
    yield claim(
        'took {} and {} s; with `engine="mujoco"` in the same run {} and {} s, to the same weights '
        "({} of the time",
        *ppo_seconds("lanes"),
        *ppo_seconds("mujoco"),
        f"{ratio:.2f}",
    )
    yield claim(
        "pyfastenv was {}, {} and {} times as fast as EnvPool with 8, 64 and 1,024 environments",
        *map(times_envpool, (8, 64, 1024)),
    )
    yield claim("With 8 HalfCheetahs it is {} times", times_limit("HalfCheetah-v5", 8))
    yield claim(
        'With `engine="mujoco"` 8 HalfCheetahs run at {} % of that loop, 64 at {} %',
        *(percent_by_mujoco("HalfCheetah-v5", n) for n in (8, 64)),
    )
    memory = bench("memory", "HalfCheetah-v5", 32_000)["peak_rss_mb"]
    yield claim("32,000 HalfCheetahs take about {} MB", f"{round(memory, -1):.0f}")

    yield from documents()
    names = ("gymnasium", "sb3", "tianshou", "torchrl", "skrl", "rllib")
    yield claim(
        "gymnasium {}, Stable-Baselines3 {}, Tianshou {}, TorchRL {}, skrl {}, RLlib {}; as "
        "CleanRL's serial ones {}; and through rl_games and Sample Factory {} and {} times EnvPool",
        *map(gain, names),
        gain("cleanrl", "serial"),
        gain("rl_games", "EnvPool"),
        gain("sample_factory", "EnvPool"),
    )
    robots = ("HalfCheetah", "Hopper", "Walker2d", "Ant", "Humanoid", "Swimmer")
    yield claim(
        ", ".join(f"{robot} {{}}" for robot in robots), *(greedy(f"{r}-v5") for r in robots)
    )
    longer = [ppo_long(f"{robot}-v5") for robot in ("HalfCheetah", "Hopper", "Walker2d")]
    minutes = [run["seconds"] / 60 for runs in longer for run in runs]
    assert {len(runs) for runs in longer} == {3}
    yield claim(
        "which took {} to {} minutes: HalfCheetah {}, Hopper {}, Walker2d {} (three disjoint",
        f"{min(minutes):.0f}",
        f"{max(minutes):.0f}",
        *(f"{statistics.fmean(r['greedy_return'] for r in runs):,.0f}" for runs in longer),
    )
    yield claim(
        "with sixteen of them it was at {} after {} minutes on one core (number of seeds: {};",
        *sac_fast("HalfCheetah-v5"),
    )
    seconds_of_ppo = [run["seconds"] for run in ppo("HalfCheetah-v5")]
    yield claim(
        "A million HalfCheetah steps took {} to {} s",
        f"{min(seconds_of_ppo):.0f}",
        f"{max(seconds_of_ppo):.0f}",
    )


def documents() -> Iterator[Claim]:
    yield claim(
        "A program in its style takes {} ms, without anomaly mode {}; ours {} in float32 and {} in",
        *(f"{whole_ms(name):,.0f}" for name in WHOLE_RUNS),
    )
    yield claim(
        "by at most ±{}%. Overlap pays: {} times a barrier with a policy of {} MB",
        *reported("sampling", r"program by at most ±([\d.]+)%"),
        *overlap(),
    )
    yield claim(
        "policy are {}% of its time, one environment and one policy call per step {}%",
        *reported("placement", r"µs, ([\d.]+)% of the time\) .* step: (\d+)% of its time"),
    )
    yield claim(
        "hides it from {} gradient steps per batch on",
        *reported("profiling", r"hides from (\d+) gradient steps"),
    )


def performance() -> Iterator[Claim]:
    sizes = (8, 64, 1024, 32_000)
    for env_id in ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "Hopper-v5"):
        shares = [percent_by_mujoco(env_id, n) for n in sizes]
        yield claim(f"| {env_id} | {{}}% | {{}}% | {{}}% | {{}}% |", *shares)
    cartpole = bench("cartpole", "CartPole-v1", 8)["summary"]["pyfastenv"]["median"]
    yield claim("call of 8 CartPoles takes {} µs", f"{8e6 / cartpole:.1f}")
    yield claim("CartPole x 8: {} M steps/s", f"{cartpole / 1e6:.1f}")
    pendulum = percent_by_mujoco("InvertedPendulum-v5", 64)
    yield claim("InvertedPendulum runs at {}% of the limit with 64 environments", pendulum)
    cheetah = next(
        row
        for row in train("rollouts")
        if (row["env_id"], row["num_envs"]) == ("HalfCheetah-v5", 8)
    )
    yield claim(
        "a rollout of 8 HalfCheetahs runs at {} of the limit", f"{cheetah['share']['median']:.2f}"
    )
    standup = bench("tasks", "HumanoidStandup-v5", 1024)["ratios"]["EnvPool"]["median"]
    yield claim("HumanoidStandup x 1,024: {} times EnvPool", f"{standup:.2f}")
    yield claim(
        "{} and {} s of two runs are sampling, which is {} and {} s by `mj_step`; "
        "the rest, {} and {} s",
        *ppo_seconds("lanes", "sample_s"),
        *ppo_seconds("mujoco", "sample_s"),
        *ppo_seconds("lanes", "update_s"),
    )
    halves = [bench("async", "CartPole-v1", n)["ratios"]["pyfastenv"]["median"] for n in (64, 1024)]
    yield claim(
        "64 environments in halves run at {}% of `step`'s rate, 1,024 at {}%",
        *(f"{100 * share:.0f}" for share in halves),
    )
    parts = train("throughput")[0]
    yield claim(
        "{}% of our time is sampling and {}% the update",
        *(f"{100 * parts[name]:.0f}" for name in ("sampling_share", "update_share")),
    )


def beside_sb3() -> Iterator[Claim]:
    throughput = train("throughput")[0]["summary"]
    yield claim(
        "Stable-Baselines3's settings [steps/s] | **{}** | {} |",
        *(f"{throughput[name]['median']:,.0f}" for name in ("pyfastenv", "Stable-Baselines3")),
    )
    yield claim(
        "of the line above | **{}, {}** | {}, {} |", *goal("pyfastenv"), *goal("Stable-Baselines3")
    )
    of_128 = [one for one in measured("placement", "solved") if one["size"] == "128"]
    solved = [one["solved_s"] for one in of_128]
    yield claim(
        "hidden layer of 128, solved, median of {} seeds [s] | **{}** |",
        str(len(solved)),
        f"{statistics.median(solved):.2f}",
    )
    yield claim(
        "[gradient steps/s], float32 | **{}** | {} |",
        updates("pyfastenv, float32"),
        updates("Stable-Baselines3"),
    )
    yield claim(
        "six seeds at once, in all | **{}**; **{}** |",
        updates("pyfastenv, bfloat16"),
        updates("pyfastenv, bfloat16, 6 seeds in all"),
    )
    yield claim(
        "(a program in the document's style: {}; without anomaly mode: {}) | **{}**; **{}** |",
        *(f"{3 * whole_ms(name) / 60:.1f}" for name in WHOLE_RUNS),
    )
    yield claim("8 to 1,024 environments | **{} to {}** |", *rollout_shares(8))


def integrations() -> Iterator[Claim]:
    both = {
        "gymnasium": "gymnasium's vectors",
        "sb3": "Stable-Baselines3",
        "sb3_ppo": "Stable-Baselines3, PPO with its learning",
        "tianshou": "Tianshou",
        "torchrl": "TorchRL",
        "skrl": "skrl",
        "rllib": "RLlib, one runner's sampling",
    }
    serial = {"cleanrl": "CleanRL's PPO wrappers", "dm_env": "dm_env, one environment"}
    envpool = {"rl_games": "rl_games", "sample_factory": "Sample Factory (its EnvPool is v4)"}
    cell = "{} (**{}** [{}, {}])"
    for names, rivals, cells in (
        (both, ("workers", "serial"), f"{cell} | {cell}"),
        (serial, ("serial",), f"– | {cell}"),
        (envpool, ("EnvPool",), f"EnvPool: {cell} | –"),
    ):
        for name, title in names.items():
            row = read("bench/results/consumers.json")[name]
            values = [row["version"]]
            for rival in rivals:
                gains = row["gain"][rival]
                values.append(f"{row['steps_per_s'][rival]['median']:,.0f}")
                values += [f"{gains[part]:.1f}" for part in ("median", "q1", "q3")]
            values.append(f"{row['steps_per_s']['pyfastenv']['median']:,.0f}")
            yield claim(f"| {title} ({{}}) | {cells} | {{}} |", *values)
    yield claim("in {} times its steps/s; beside", sb3_gain("DummyVecEnv"))
    yield claim(
        "returns {} and {} on average), in {} times its steps/s",
        sb3_return("pyfastenv"),
        sb3_return("SubprocVecEnv"),
        sb3_gain("SubprocVecEnv"),
    )


def rollout_page() -> Iterator[Claim]:
    yield claim("{} to {} with 2 to 1,024 environments", *rollout_shares(2, "HalfCheetah"))
    rates = [row["rate"]["median"] / 1e6 for row in train("rollouts") if "share" not in row]
    yield claim("{} to {} M steps/s", f"{min(rates):.1f}", f"{max(rates):.1f}")


def physics_page() -> Iterator[Claim]:
    result = read("bench/results/physics.json")
    for row in result["cases"]:
        yield claim(
            f"| {row['robot']} | {row['rollouts']:,} | {{}} | {{}} | {{}} |",
            f"{row['steps_per_s']['pyfastenv']['median']:,.0f}",
            f"{row['gain']['mujoco.rollout']['median']:.1f}",
            f"{row['gain']['mujoco.batch']['median']:.1f}",
        )
    planning = {row["robot"]: row for row in result["planning"]}
    yield claim(
        "takes {} ms (HalfCheetah) to {} ms (Humanoid), once; the comparison takes {} to {} µs",
        *(f"{planning[name]['plan_ms']['median']:.0f}" for name in ("HalfCheetah", "Humanoid")),
        *(f"{planning[name]['compare_us']['median']:.0f}" for name in ("HalfCheetah", "Humanoid")),
    )


def lanes_page() -> Iterator[Claim]:
    for robot, row in read("bench/results/lanes.json")["robots"].items():
        widths = ("8 lanes", "4 lanes", "2 lanes", "1 lane")
        yield claim(
            f"| {robot} | {{}} | {{}} | {{}} × | {{}} × | {{}} × | {{}} × |",
            f"{row['mean_rows']:.1f}",
            f"{row['mj_step']['ns_per_substep']:,.0f}",
            *(f"{row[width]['times_mj_step']:.1f}" for width in widths),
        )


def robots_page() -> Iterator[Claim]:
    """What our robots learn: docs/results/robots.json."""
    robots = read("docs/results/robots.json")
    run = robots["RoughQuadruped-v0"]
    walk = run["walk"]
    yield claim(
        "After {} steps it misses its commands by {} m/s forward, {} m/s sideways and {} rad/s "
        "turning (standing still would by {}, {} and {}), and {} of {} episodes end in a fall",
        f"{run['steps']:,}",
        *(f"{error:.2f}" for error in (*walk["error"], *walk["standing"])),
        str(walk["falls"]),
        str(walk["episodes"]),
    )
    run = robots["SmallHumanoid-v0"]
    walk = run["walk"]
    yield claim(
        "After {} steps it walks at {} m/s, and {} of {} episodes end in a fall",
        f"{run['steps']:,}",
        f"{walk['forward_speed']:.2f}",
        str(walk["falls"]),
        str(walk["episodes"]),
    )


def parity_rows(name: str) -> list[Any]:
    return list(read(f"bench/results/{name}_parity.json").values())


def total(rows: list[Any], what: str) -> str:
    return f"{sum(row[what] for row in rows):,}"


def every(rows: list[Any], what: str) -> str:
    """What all rows have alike."""
    (value,) = {row[what] for row in rows}
    return f"{value:,}"


def suites_page() -> Iterator[Claim]:
    for name, text, alike in (
        (
            "dm_control",
            "in {} tasks and {} steps of each, {} of {} numbers differ. Starts come from the same "
            "distributions: {} of each task",
            ["starts"],
        ),
        ("robotics", "of {} ids and {} steps of each, {} of {} numbers differ", []),
    ):
        rows = parity_rows(name)
        sums = [total(rows, what) for what in ("differences", "numbers")]
        same = [every(rows, what) for what in ("steps", *alike)]
        yield claim(text, f"{len(rows)}", same[0], *sums, *same[1:])


def suites_speed() -> Iterator[Claim]:
    """Beside EnvPool and dm_control: bench/results/suites_*.json."""
    ten, rest = (read(f"bench/results/suites_{which}.json") for which in ("ten", "rest"))

    def span(result: Any, rival: str, digits: int = 1) -> tuple[str, str]:
        ratios = [row["ratios"][rival] for row in result["rows"]]
        return f"{min(ratios):.{digits}f}", f"{max(ratios):.{digits}f}"

    yield claim(
        "are stepped {} times as fast as by EnvPool in the geometric mean ({} to {} times), and {} "
        "to {} times as fast as dm_control steps one; the other {} ids that EnvPool has too, "
        "gymnasium-robotics' among them, {} times ({} to {})",
        f"{ten['times_envpool']:.2f}",
        *span(ten, "EnvPool"),
        *span(ten, "dm_control", 0),
        f"{len(rest['rows'])}",
        f"{rest['times_envpool']:.2f}",
        *span(rest, "EnvPool"),
    )


def own_tasks_page() -> Iterator[Claim]:
    speed = read("bench/results/own_tasks.json")
    spans = []
    for engine in ("mujoco", "lanes"):
        ratios = [row["ratio"] for row in speed["speeds"] if row["engine"] == engine]
        spans += [f"{min(ratios):.2f}", f"{max(ratios):.2f}"]
    starts = [row["medians"] for row in speed["starts"]]
    for kind in ("cold", "cached"):
        seconds = [medians[kind] for medians in starts]
        spans += [f"{min(seconds):.2f}", f"{max(seconds):.2f}"]
    yield claim(
        "at {} to {} of it by `mj_step` and {} to {} in lanes, for four robots, 8 to 1,024 "
        "environments, `step` and `rollout`. It is there {} to {} s after `make_vec` if it must be "
        "compiled, {} to {} s from the cache",
        *spans,
    )
    rows = [part for parts in parity_rows("own_tasks") for part in parts.values()]
    yield claim(
        "in {} steps and {} episodes, in all autoreset modes, {} differences",
        *(total(rows, what) for what in ("steps", "episodes", "differences")),
    )


def many_nodes() -> Iterator[Claim]:
    """What kills do to trainings over nodes: docs/results/nodes.json."""
    cases = read("docs/results/nodes.json")
    for name, title in (
        ("torchrun", "PPO by torchrun, Hopper-v5"),
        ("ray_train", "PPO by Ray Train, Hopper-v5"),
        ("ray_sac", "SAC by Ray actors, Pendulum-v1"),
    ):
        case = cases[name]
        assert case.get("bit_equal", True), f"{name}: another end"
        kills = case["killed"]["kills"]
        holes = " and ".join(["{}"] * len(kills))
        yield claim(
            f"| {title} | {holes} | {holes} | {holes} | {{}} | {{}} |",
            *(f"{kill['step']:,}" for kill in kills),
            *(f"{kill['again_step']:,}" for kill in kills),
            *(f"{kill['again_s']:.1f}" for kill in kills),
            *(
                f"{case[run]['last_return']:.0f}".replace("-", "−")
                for run in ("killed", "undisturbed")
            ),
        )


def async_page() -> Iterator[Claim]:
    yield claim("on a thread of its own run {} times as fast as by `step`", overlap()[0])


def around(runs: Sequence[dict[str, Any]], steps: Sequence[int]) -> list[str]:
    """Means of the evaluations within 5,000 steps, as far as curves go; their random ones are not
    counted."""
    points = [
        (at - 5_000, value)
        for run in runs
        for at, value in zip(run["curve"]["steps"], run["curve"]["returns"], strict=True)
    ]
    last = max(points)[0]
    near = [
        [value for at, value in points if abs(at - step) <= 5_000] for step in steps if step <= last
    ]
    return [f"{statistics.fmean(values):,.0f}" for values in near]


def learned(study: str, name: str, env_id: str) -> list[dict[str, Any]]:
    """The seeds of a case that came to their end, or all if none did."""
    runs = [
        run
        for run in read(f"docs/results/{study}.json")["runs"]
        if (run["name"], run["env_id"]) == (name, env_id)
    ]
    assert runs, (name, env_id)
    return [run for run in runs if run["done"]] or runs


def mbpo_page() -> Iterator[Claim]:
    runs = {run["name"]: run for run in read("docs/results/falls.json")["runs"]}
    run = runs["MBPO, discount 0.99"]
    yield claim(
        "until it falls: after {} steps it fell after {} on average (a return of {})",
        f"{run['steps']:,}",
        f"{run['length']:.0f}",
        f"{run['return']:,.0f}",
    )
    for first, last, expected, comes, reward, _ in run["before_a_fall"]:
        if last < 1_000:
            cells = (f"{expected:.0f}", f"{comes:.0f}", f"{reward:.1f}")
            yield claim(f"| {first} to {last} | {{}} | {{}} | {{}} |", *cells)
    early = learned("mbpo", "MBPO, discount 0.995", "Hopper-v5")[0]["curve"]
    yield claim(
        "that began with it was at {} after {} steps",
        f"{early['returns'][-1]:,.0f}",
        f"{early['steps'][-1]:,}",
    )
    for title, name in (
        ("a discount of 0.99, two seeds", "MBPO"),
        ("| minibatches of 64", "MBPO, minibatches of 64"),
        ("from 53,300 to 61,300", "MBPO, minibatches of 64, discount rises late"),
        ("as Hopper's", "MBPO, minibatches of 64, discount rises"),
    ):
        seeds = learned("mbpo", name, "Walker2d-v4")
        means = around(seeds, (40_000, 60_000, 80_000, 100_000))
        missing = " – |" * (4 - len(means))
        yield claim(title + " |" + " {} |" * len(means) + missing, *means)
    falls = runs["MBPO, Walker2d-v4, minibatches of 64"]
    yield claim(
        "walk ever faster until it fell, after {} steps on average (a return of {})",
        f"{falls['length']:.0f}",
        f"{falls['return']:,.0f}",
    )
    ends = [f"{run['greedy_return']:,.0f}" for run in learned("mbpo", "MBPO", "Walker2d-v4")]
    yield claim("ended at {} and {}", *ends)
    seeds = [runs[f"MBPO, Walker2d-v4, seed {seed}"] for seed in (41, 42)]
    # of the steps before a fall the last nine are in the first row
    fallen = [run["before_a_fall"][0][-1] // 9 for run in seeds]
    yield claim("{} and {} of 20 episodes fell", *map(str, fallen))
    yield claim(
        "expected {} and {} where {} and {} came",
        *(f"{run['before_a_fall'][3][2]:.0f}" for run in seeds),
        *(f"{run['before_a_fall'][3][3]:.0f}" for run in seeds),
    )


def over_seeds(values: Sequence[float]) -> tuple[str, list[str]]:
    """A cell, ``{}`` or ``{} ± {}``, and its figures: the mean and, of several, the deviation."""
    figures = [f"{statistics.fmean(values):,.0f}"]
    if len(values) > 1:
        figures.append(f"{statistics.pstdev(values):,.0f}")
    return " ± ".join("{}" for _ in figures), figures


def ends_with(title: str, runs: Sequence[dict[str, Any]]) -> Claim:
    """A row: means of 20 episodes, the best on the way, processor minutes, what multiplied."""
    cell, ends = over_seeds([run["greedy_return"] for run in runs])
    evaluations = zip(*(run["curve"]["returns"] for run in runs), strict=True)
    minutes = statistics.fmean(run["cpu_seconds"] / 60 for run in runs)
    units = dict.fromkeys(re.search(r"\((.+)\)", run["acceleration"])[1] for run in runs)
    return claim(
        f"{title} | {cell} | {{}} | {{}} | {', '.join(units)} |",
        *ends,
        f"{max(map(statistics.fmean, evaluations)):,.0f}",
        f"{minutes:.1f}",
    )


def sac_page() -> Iterator[Claim]:
    for title, name, env_id in (
        ("a rate of 1e-3, a temperature of 0.2", "SAC", "HalfCheetah-v5"),
        ("the same with one environment", "SAC, one environment", "HalfCheetah-v5"),
        ("a learned temperature, a rate of 3e-4", "SAC, learning rate 3e-4", "HalfCheetah-v5"),
        ("| eight environments, half of the gradient steps", "SAC, half the gradient steps",
         "HalfCheetah-v5"),
        ("falls to a twentieth", "SAC, half the gradient steps, falling rate", "HalfCheetah-v5"),
        ("minibatches of 64, a learned temperature, a rate that falls", "SAC", "Walker2d-v5"),
        ("a discount of 0.995, a learned temperature, a rate that falls", "SAC", "Hopper-v5"),
        ("the same, minibatches of 256", "SAC, minibatches of 256", "Hopper-v5"),
        ("Hopper by HalfCheetah's settings", "SAC, Tianshou's settings", "Hopper-v5"),
        ("| HalfCheetah's settings", "SAC, Tianshou's settings", "Walker2d-v5"),
    ):  # fmt: skip
        yield ends_with(title, learned("sac", name, env_id))
    all_steps = "a gradient step for each step, a temperature of 0.2"
    half = "half of the gradient steps, a learned temperature, a rate that falls"
    tianshous, falling = "SAC, Tianshou's settings", "SAC, half the gradient steps, falling rate"
    for title, name, env_id in (
        (f"| Ant | **the preset**: {half}", "SAC", "Ant-v5"),
        ("| Ant | the same, no contact forces", "SAC, no contact forces", "Ant-v5"),
        (f"| Ant | {all_steps}", tianshous, "Ant-v5"),
        (f"| Ant | {all_steps}, no contact forces", f"{tianshous}, no contact forces", "Ant-v5"),
        (f"| Humanoid | **the preset**: {all_steps}", "SAC", "Humanoid-v5"),
        ("| Humanoid | the same, no contact forces", "SAC, no contact forces", "Humanoid-v5"),
        (f"| Humanoid | {half}", falling, "Humanoid-v5"),
    ):
        yield ends_with(title, learned("sac", name, env_id))
    ends = [f"{run['greedy_return']:,.0f}" for run in learned("sac", "SAC", "Hopper-v5")]
    yield claim("The preset's seeds ended at {}, {} and {}", *ends)
    late = [
        run["curve"]["returns"][-10:]
        for run in learned("sac", "SAC, no contact forces", "Humanoid-v5")
    ]
    yield claim(
        "were {} and {}, {} and {}, {} and {}",
        *(f"{bound(returns):,.0f}" for returns in late for bound in (min, max)),
    )
    parts = read("docs/results/reward_parts.json")["runs"]
    for text, key, sign in (
        ("contacts cost {}, {} and {}", "reward_contact", -1),
        ("walking gave {}, {} and {}", "reward_forward", 1),
    ):
        yield claim(text, *(f"{sign * run[key]:,.0f}" for run in parts))
    yield claim("episodes of {}, {} and {} steps", *(f"{run['length']:,.0f}" for run in parts))


def return_after(run: dict[str, Any], steps: int) -> float:
    at = run["curve"]["steps"].index(steps)
    return float(run["curve"]["returns"][at])


def training_page() -> Iterator[Claim]:
    results = read("bench/results/busy.json")
    for title, name in (("| float32", "float32"), ("compiled in bfloat16", "amp")):
        rates = (
            f"{statistics.median(results[beside][f'{name}, {threads}']):,.0f}"
            for beside in ("alone", "busy")
            for threads in (1, 2)
        )
        yield claim(f"{title} | {{}} | {{}} | {{}} | {{}} |", *rates)


def flashsac_page() -> Iterator[Claim]:
    for name, title, robots in (
        ("small FlashSAC", "critics 128 wide, policy 64 | 64", 3),
        ("small FlashSAC, minibatches of 256", "critics 128 wide, policy 64 | 256", 3),
        ("FlashSAC, minibatches of 64", "the authors' | 64", 1),
    ):
        for env_id in ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5")[:robots]:
            runs = learned("flashsac", name, env_id)
            cell, early = over_seeds([return_after(run, 130_000) for run in runs])
            row = f"| {env_id.removesuffix('-v5')} | {title} | {cell} |"
            if not runs[0]["done"]:
                yield claim(row + " – | |", *early)
                continue
            cell, ends = over_seeds([run["greedy_return"] for run in runs])
            minutes = statistics.fmean(run["cpu_seconds"] / 60 for run in runs)
            yield claim(row + f" {cell} | {{}} |", *early, *ends, f"{minutes:.1f}")
    for name in ("HalfCheetah", "Hopper", "Walker2d"):
        runs = learned("flashsac", "small FlashSAC, minibatches of 256", f"{name}-v5")
        cell, early = over_seeds([return_after(run, 100_000) for run in runs])
        yield claim(f"{cell} on {name}", *early)


def experiments() -> Iterator[Claim]:
    names = ("sampling", "placement", "flow", "profiling")
    minutes = {name: experiment_minutes(name) for name in names}
    for name, each in minutes.items():
        yield claim(f"results/{name}/report.md) ({{}} minutes)", f"{each:.0f}")
    yield claim("together {} hours", f"{sum(minutes.values()) / 60:.1f}")


def claims() -> dict[str, list[Claim]]:
    """Of README and every page of docs; a page without claims may have no figures but CONSTANTS."""
    pages = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md")))
    return {page: [] for page in pages if not page.startswith("docs/results/")} | {
        "README.md": list(readme()),
        "docs/performance.md": [*performance(), *beside_sb3()],
        "docs/integrations.md": list(integrations()),
        "docs/rollout.md": list(rollout_page()),
        "docs/physics.md": list(physics_page()),
        "docs/lanes.md": list(lanes_page()),
        "docs/async.md": list(async_page()),
        "docs/experiments.md": list(experiments()),
        "docs/mbpo.md": list(mbpo_page()),
        "docs/sac.md": list(sac_page()),
        "docs/training.md": list(training_page()),
        "docs/flashsac.md": list(flashsac_page()),
        "docs/suites.md": [*robots_page(), *suites_page(), *suites_speed()],
        "docs/own_tasks.md": list(own_tasks_page()),
        "docs/howto/many_nodes.md": list(many_nodes()),
    }


def main() -> None:
    """Writes the figures into the documents."""
    for path, ours in claims().items():
        document = (ROOT / path).read_text()
        new = rewritten(document, ours)
        if new != document:
            (ROOT / path).write_text(new)
            print(f"{path}: new figures")


if __name__ == "__main__":
    main()
