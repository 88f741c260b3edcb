"""Why did model-based training with a flow take 14.4 s per step? The experiment of document 000.

Whole runs of the program as the document describes it (baselines/list_mbpo.py) and of
:mod:`pyfastenv.algorithms.mbpo`; then, as explanation, one habit dropped after the other, what
single remedies change, what a profiler sees, and whether the flow is worth it.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from pyfastenv.algorithms.mbpo import MBPO
from pyfastenv.algorithms.mbpo import Config as MBPOConfig
from pyfastenv.experiments import flow_units as units
from pyfastenv.experiments import pictures
from pyfastenv.experiments.baselines.list_mbpo import Habits, ListMBPO, PlainEnv
from pyfastenv.experiments.claims import Claim, compare
from pyfastenv.experiments.clock import Clock, milliseconds
from pyfastenv.experiments.report import Report, median, number, spread, table
from pyfastenv.experiments.study import Measurement, Results, Row, Sizes, rounds
from pyfastenv.training.evaluation import env_kwargs, evaluate, make_eval_envs
from pyfastenv.training.plots import COLOURS
from pyfastenv.training.progress import duration
from pyfastenv.vector.cpus import available_cpus

DOCUMENT_MS = 14_400.0  # 12 hours for 3,000 steps on a V100
UPDATES = 20  # of SAC per environment step
EPOCHS = 30  # of a fit that goes on from the last one; the first takes far more
MODEL_EVERY, ROLLOUT_STATES = 250, 100_000
FLOW_EVERY = 1_000
AGENT_EVERY, AGENT_UPDATES = 250, 200
PARTS = (
    "environment step",
    "20 SAC updates",
    "rollout at every step",
    "fits of the model",
    "rollouts of the model",
    "updates of the flow",
    "agent that improves the model",
)
SLOWEST, NO_ANOMALY = "the document's style", "anomaly mode off"
FLOAT32, AMP = "pyfastenv, float32", "pyfastenv, --amp"
# each adds to those before it
REMEDIES: tuple[tuple[str, dict[str, Any]], ...] = (
    (NO_ANOMALY, {"anomaly_mode": False}),
    ("no prints", {"prints": False}),
    ("no .item() in updates", {"items_per_update": False}),
    ("arrays instead of lists", {"list_pools": False}),
    ("prediction without gradients", {"gradients_on": False}),
    ("prediction in one piece", {"chunk_size": 0}),
    ("no rollout at every step", {"auxiliary_rollout": False}),
    ("AMP (bfloat16 autocast)", {"amp": True}),
)


@dataclass(frozen=True, kw_only=True)
class Config(Sizes):
    """Document 000: model-based training with a flow."""

    env_id: str = "Hopper-v5"
    """The environment; the document does not name its own."""
    steps: int = 3_000
    """Environment steps of whole runs …"""
    slow_steps: int = 1_000
    """… of the document's style, with anomaly mode."""
    whole: bool = True
    """Whether whole runs are made, which take most of the time."""
    rounds: int = 5
    """Rounds of the comparison one remedy at a time …"""
    part_steps: int = 50
    """… environment steps in each …"""
    part_updates: int = 100
    """… SAC's gradient steps …"""
    part_epochs: int = 3
    """… epochs of a fit …"""
    part_states: int = 100_000
    """… and states of a rollout; costs are scaled up to the document's numbers."""
    part_agent_updates: int = 20
    """Gradient steps of the agent that improves the model, in a round."""
    real: int = 5_000
    """Real transitions to begin with."""
    max_epochs: int = 1_000
    """Of a fit."""
    learning_steps: int = 6_000
    """Steps of the trainings with and without the flow."""
    rollout_lengths: tuple[int, ...] = (1, 5, 15)
    """Of the model in these trainings."""
    seeds: tuple[int, ...] = (1, 2, 3)
    """Of these trainings."""


QUICK = Config(
    quick=True, env_id="InvertedPendulum-v5", steps=6, slow_steps=3, rounds=2, part_steps=3,
    part_updates=4, part_epochs=1, part_states=2_000, part_agent_updates=2, real=600, max_epochs=2,
    learning_steps=20, rollout_lengths=(1, 5), seeds=(1,),
)  # fmt: skip


def chain() -> dict[str, Habits]:
    """The slow programs in order, from the document's to the one without its habits."""
    habits = Habits()
    programs = {SLOWEST: habits}
    for name, changes in REMEDIES:
        habits = replace(habits, **changes)
        programs[name] = habits
    return programs


# ---- what is measured ----------------------------------------------------------------------------


def plan(config: Config) -> list[Measurement]:
    """Parts and units first, then whole runs, then learning."""
    torch.set_num_threads(1 if config.quick else available_cpus())
    contestants: list[tuple[Row, Callable[[], Row], float]] = [
        ({"program": name}, partial(_slow_parts, habits, config), 14)
        for name, habits in chain().items()
    ]
    contestants += [
        ({"program": name}, partial(_our_parts, name == AMP, config), 5) for name in (FLOAT32, AMP)
    ]
    made = rounds(config.rounds, "parts", contestants)
    for name, (unit, seconds) in units.UNITS.items():
        made.append(Measurement("units", {"what": name}, partial(unit, config.quick), seconds))
    for name, unit in units.CUDA_UNITS.items():
        made.append(Measurement("units", {"what": name}, partial(unit, config.quick), 20, True))
    for anomaly in (True, False):
        run = partial(_profiled, anomaly, config)
        made.append(Measurement("profile", {"anomaly mode": anomaly}, run, 15))
    if config.whole:
        for name, steps, ms in (
            (AMP, config.steps, 60),
            (FLOAT32, config.steps, 140),
            (NO_ANOMALY, config.steps, 400),
            (SLOWEST, config.slow_steps, 840),
        ):
            whole = _our_whole if name in (AMP, FLOAT32) else _slow_whole
            run = partial(whole, name, steps, config)
            made.append(Measurement("whole", {"program": name}, run, steps * ms / 1e3))
    for seed, length in itertools.product(config.seeds, config.rollout_lengths):
        for dynamics in ("ensemble", "flow") if length == 1 else ("ensemble",):
            about = {"dynamics": dynamics, "length": length, "seed": seed}
            run = partial(_learn, dynamics, length, seed, config)
            made.append(Measurement("learning", about, run, config.learning_steps * 0.06))
    return made


@contextmanager
def _slow(habits: Habits, config: Config) -> Iterator[ListMBPO]:
    """The document's program with its real transitions."""
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)
    env = PlainEnv(config.env_id, 0)
    with tempfile.TemporaryFile("w") as log:
        program = ListMBPO(
            env,
            habits,
            flow=True,
            max_epochs=config.max_epochs,
            rollout_batch=config.part_states if config.quick else ROLLOUT_STATES,
            agent_updates=config.part_agent_updates if config.quick else AGENT_UPDATES,
            say=lambda text: print(text, file=log, flush=True),
        )
        program.explore(config.real)
        with program.checked():
            yield program
    env.close()


@contextmanager
def ours(config: Config, **options: Any) -> Iterator[MBPO]:
    """Our program after its exploration, with the document's numbers."""
    threads = torch.get_num_threads()
    fields: dict[str, Any] = {
        "dynamics": "flow",
        "flow_batch_size": Habits().flow_batch_size,
        "learning_starts": config.real,
        "updates_per_step": float(UPDATES),
        "rollout_schedule": (20, 150, 1, 1),  # the pool need not have room for longer ones
        "rollout_batch": config.part_states if config.quick else ROLLOUT_STATES,
        "model_agent_updates": config.part_agent_updates if config.quick else AGENT_UPDATES,
        "total_steps": 10**6,
        "num_threads": threads,
        "torch_threads": threads,
    }
    torch.manual_seed(0)
    mbpo = MBPO(MBPOConfig.preset(config.env_id, **(fields | options)))
    mbpo.model.options = replace(mbpo.model.options, max_epochs=config.max_epochs)
    try:
        mbpo.iterate()  # explores
        yield mbpo
    finally:
        mbpo.envs.close()


def _slow_parts(habits: Habits, config: Config) -> Row:
    with _slow(habits, config) as program:
        program.roll_out(1_000, 1, program.model_pool)  # warms up
        program.learn(2)
        program.improve_model(1)
        real = program.env_pool.all()
        parts = {
            "fits of the model": lambda: program.model.fit(real, max_epochs=config.part_epochs),
            "rollouts of the model": lambda: program.roll_out(
                config.part_states, 1, program.model_pool
            ),
            "environment step": lambda: _repeat(program.step, config.part_steps),
            "20 SAC updates": lambda: program.learn(config.part_updates),
            "updates of the flow": program.update_flow,
            "agent that improves the model": lambda: program.improve_model(
                config.part_agent_updates
            ),
            "rollout at every step": program.roll_out_aside
            if habits.auxiliary_rollout
            else lambda: None,
        }
        return _timed(parts, config)


def _our_parts(amp: bool, config: Config) -> Row:
    with ours(config, amp=amp, model_agent_updates=config.part_agent_updates) as mbpo:
        mbpo.model.options = replace(mbpo.model.options, max_epochs=config.part_epochs)
        mbpo._roll_out(1_000, 1, mbpo.model_pool)  # warms up
        mbpo._learn(UPDATES)
        mbpo._improve_model({})
        states = config.part_states
        parts = {
            "fits of the model": lambda: mbpo._fit_model({}),
            "rollouts of the model": lambda: mbpo._roll_out(states, 1, mbpo.model_pool),
            "environment step": lambda: _repeat(
                lambda: mbpo._remember(mbpo.collector.follow(mbpo.learner.policy_spec(), 1)),
                config.part_steps,
            ),
            "20 SAC updates": lambda: mbpo._learn(config.part_updates),
            "updates of the flow": lambda: mbpo._update_flow({}),
            "agent that improves the model": lambda: mbpo._improve_model({}),
            "rollout at every step": lambda: None,
        }
        return _timed(parts, config)


def _timed(parts: Mapping[str, Callable[[], object]], config: Config) -> Row:
    with Clock() as clock:
        row = per_step({name: milliseconds(part)[0] for name, part in parts.items()}, config)
    return row | {"steal": clock.steal, "others": clock.others, "ms": sum(row.values())}


def per_step(parts_ms: Mapping[str, float], config: Config) -> Row:
    """What each part costs per environment step at the document's sizes and frequencies [ms]."""
    weights = {
        "environment step": 1 / config.part_steps,
        "20 SAC updates": UPDATES / config.part_updates,
        "rollout at every step": 1.0,
        "fits of the model": EPOCHS / config.part_epochs / MODEL_EVERY,
        "rollouts of the model": ROLLOUT_STATES / config.part_states / MODEL_EVERY,
        "updates of the flow": 1 / FLOW_EVERY,
        "agent that improves the model": AGENT_UPDATES / config.part_agent_updates / AGENT_EVERY,
    }
    return {part: parts_ms[part] * weights[part] for part in PARTS}


def _repeat(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def _slow_whole(name: str, steps: int, config: Config) -> Row:
    with _slow(chain()[name], config) as program, Clock() as clock:
        marks = _marks(lambda: program.run(1, UPDATES), lambda: program.steps, steps)
    return clock.row() | {"steps": steps, "epochs": program.epochs, "marks": marks}


def _our_whole(name: str, steps: int, config: Config) -> Row:
    epochs: list[float] = []
    phases: dict[str, float] = {}
    with ours(config, amp=name == AMP, log_every=min(50, steps)) as mbpo, Clock() as clock:
        first = mbpo.global_step

        def iterate() -> None:
            metrics = mbpo.iterate()
            if "model/epochs" in metrics:
                epochs.append(metrics["model/epochs"])
            for key in (key for key in metrics if key.startswith("time/")):
                phases[key[5:-2]] = phases.get(key[5:-2], 0.0) + metrics[key]

        marks = _marks(iterate, lambda: mbpo.global_step - first, steps)
    return clock.row() | {"steps": steps, "epochs": epochs, "marks": marks, "phases": phases}


def _marks(advance: Callable[[], object], step: Callable[[], int], steps: int) -> list[Any]:
    """Runs to so many steps; the time at every 250 [s]."""
    began, marks = time.perf_counter(), []
    while step() < steps:
        before = step()
        advance()
        if step() // MODEL_EVERY > before // MODEL_EVERY or step() >= steps:
            marks.append((step(), round(time.perf_counter() - began, 2)))
    return marks


def _profiled(anomaly: bool, config: Config) -> Row:
    """What torch.profiler says of SAC updates in the document's style, and what it does not."""
    with _slow(replace(Habits(), anomaly_mode=anomaly), config) as program:
        program.roll_out(1_000, 1, program.model_pool)
        program.learn(2)
        count = 2 if config.quick else 20
        plain = milliseconds(lambda: program.learn(count))[0]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            program.learn(count)
        events = sorted(profile.key_averages(), key=lambda e: -e.self_cpu_time_total)
    return {
        "ms": plain / count,
        "operators_ms": sum(e.self_cpu_time_total for e in events) / 1e3 / count,
        "top": [(e.key, e.self_cpu_time_total / 1e3 / count, e.count / count) for e in events[:6]],
        "detach_per_update": sum(e.count for e in events if e.key == "aten::detach") / count,
        "isnan_per_update": sum(e.count for e in events if "nan" in e.key or e.key == "aten::ne")
        / count,
    }


def _learn(dynamics: str, length: int, seed: int, config: Config) -> Row:
    """Returns, and how wrong the model is about fresh real transitions of its policy."""
    schedule = (0, 0, length, length)
    options: dict[str, Any] = {} if config.quick else {"model_agent_updates": 20}
    with (
        ours(
            config,
            dynamics=dynamics,
            rollout_schedule=schedule,
            seed=seed,
            amp=True,
            log_every=min(50, config.learning_steps),
            **options,
        ) as mbpo,
        Clock() as clock,
    ):
        end = mbpo.global_step + config.learning_steps
        while mbpo.global_step < end:
            mbpo.iterate()
        layout = mbpo.layout
        envs = make_eval_envs(config.env_id, env_kwargs(mbpo.envs), 10)
        returns = evaluate(envs, mbpo.eval_policy(), 10, seed).returns
        envs.close()
        policy = mbpo.learner.policy_spec()
        rows = torch.cat([mbpo.collector.follow(policy, 1).clone() for _ in range(500)], 1)
        noise = torch.zeros(1, rows.shape[1], 1 + layout.obs_size)
        predicted = mbpo.model.predict(layout.obs_actions(rows), noise).next_obs
        change = layout.next_obs(rows) - layout.obs(rows)
        error = (predicted - layout.next_obs(rows)).square().mean()
        relative = float((error / change.square().mean()).sqrt())
    return clock.row() | {"return": float(returns.mean()), "model_error": relative}


# ---- the report ----------------------------------------------------------------------------------


def report(results: Results[Any], config: Config) -> Report:
    """Tables, claims and pictures."""
    made, parts = Report(), results.part("parts")
    programs = list(dict.fromkeys(parts.program))
    ms = {name: results.rounds("parts", "ms", program=name) for name in programs}
    medians = parts.groupby("program", sort=False)[list(PARTS)].median()
    slow = medians.loc[SLOWEST]
    of_units = results.part("units").set_index("what").ms.to_dict()
    profile = results.part("profile").set_index("anomaly mode")
    worst = parts.loc[(parts.ms / parts.groupby("program").ms.transform("median")).idxmax()]
    agent_update = slow["agent that improves the model"] * AGENT_EVERY / AGENT_UPDATES
    made.values = {
        "document_ms": DOCUMENT_MS,
        "whole": _whole(results, config) if config.whole else None,
        "ms": {name: median(values) for name, values in ms.items()},
        "factors": {
            name: compare(ms[before], ms[name], 0.1)
            for before, name in itertools.pairwise(programs)
        },
        "chain": _chain_table(ms),
        "parts": table(
            ("ms per environment step", *PARTS),
            [(name, *map(float, row)) for name, row in medians.iterrows()],
        ),
        "document_times": DOCUMENT_MS / median(ms[SLOWEST]),
        "agent_every_step": agent_update * AGENT_UPDATES,
        "fit_every_step": slow["fits of the model"] * MODEL_EVERY,
        "frequencies": _frequencies(medians),
        "ms_of": lambda what, variant: number(median(of_units[what][variant])),
        "units_table": units.units_table(of_units),
        "profile": {bool(k): row for k, row in profile.iterrows()},
        "profile_table": table(
            ("", "operator", "ms per update", "calls per update"),
            [
                ("on" if anomaly else "off", f"`{name}`", float(took), f"{count:.0f}")
                for anomaly, row in profile.iterrows()
                for name, took, count in row.top
            ],
        ),
        "learning": _learning_table(results),
        "worst": f"{worst.ms:,.0f} ms in round {worst['round']} of {worst.program}, "
        f"{worst.ms / median(ms[worst.program]):.2f} times its median",
        "steal": parts.steal.max(),
        "others": parts.others.max(),
        "threads": 1 if config.quick else available_cpus(),
    }
    made.claims = list(_claims(results, ms))
    figure, (left, right) = pictures.panels(
        2, size=(13, 4.8), columns=2, sharey=True, width_ratios=(1.1, 1)
    )
    stacks = {name: dict(row) for name, row in medians.iterrows()}
    pictures.stacked(right, stacks, share=True, label="% of a step", totals=False)
    notes = {name: f" ms  ×{made.values['factors'][name].mean:.2f}" for name in programs[1:]}
    notes[SLOWEST] = " ms"
    paint = {name: COLOURS[0 if "pyfastenv" in name else 1] for name in programs}
    pictures.points(left, ms, colour=paint, notes=notes, log=True, label="ms per environment step")
    made.pictures["ablation"] = (
        figure,
        "Left: one remedy after the other, each on top of those above it (medians and quartiles of "
        "rounds; ×: over the row above). Right: what a step consists of.",
    )
    return made


def _whole(results: Results[Any], config: Config) -> Row:
    frame = results.part("whole").set_index("program")
    ms = 1e3 * frame.seconds / frame.steps
    rows = []
    for name in (SLOWEST, NO_ANOMALY, FLOAT32, AMP):
        row = frame.loc[name]
        rows.append(
            (
                name if "pyfastenv" in name else f"{name} (written anew)",
                f"{row.steps:,}",
                duration(row.seconds),
                float(ms[name]),
                f"{ms[SLOWEST] / ms[name]:.1f}",
                duration(config.steps * ms[name] / 1e3),
                ", ".join(f"{epochs:.0f}" for epochs in row.epochs[:5]),
                f"{row.others:.2f} / {row.steal:.2f}",
            )
        )
    columns = ("a single run each", "steps", "time", "ms per step", "times as fast",
               f"{config.steps:,} steps", "epochs of the first fits",
               "CPUs: others' / stolen")  # fmt: skip
    return {
        "table": table(columns, rows),
        "ms": {name: float(value) for name, value in ms.items()},
        "time": {name: duration(config.steps * value / 1e3) for name, value in ms.items()},
        "first_epochs": f"{min(e[0] for e in frame.epochs):.0f} to "
        f"{max(e[0] for e in frame.epochs):.0f}",
    }


def _chain_table(ms: Mapping[str, list[float]]) -> str:
    first, rows = ms[SLOWEST], []
    before = first
    for name, values in ms.items():
        again = name == SLOWEST
        rows.append(
            (
                name if again or "pyfastenv" in name else f"+ {name}",
                spread(values),
                f"{number(min(values))} to {number(max(values))}",
                "" if again else compare(before, values, 0.1).mark,
                "" if again else str(compare(before, values, 0.1)),
                compare(first, values, 0.1).mark,
            )
        )
        before = values
    columns = ("", "ms per step", "all rounds", "over the row above", "[90 %]",
               "over the first")  # fmt: skip
    return table(columns, rows)


def _frequencies(medians: Any) -> str:
    def at(name: str, every: int) -> float:
        row = medians.loc[name]
        rare = row["fits of the model"] + row["rollouts of the model"]
        return float(row.sum() - rare + rare * MODEL_EVERY / every)

    columns = ("fit and rollout of the model, ms per step", *(f"every {n}" for n in (1, 125, 250,
               500, 1_000)))  # fmt: skip
    names = (SLOWEST, NO_ANOMALY, REMEDIES[-1][0], FLOAT32, AMP)
    return table(columns, [(name, *(at(name, n) for n in (1, 125, 250, 500, 1_000))) for name in
                           names])  # fmt: skip


def _learning_table(results: Results[Any]) -> str:
    rows = []
    for (dynamics, length), group in results.part("learning").groupby(
        ["dynamics", "length"], sort=False
    ):
        rows.append(
            (
                dynamics,
                length,
                ", ".join(f"{value:,.0f}" for value in group["return"]),
                ", ".join(f"{value:.3f}" for value in group.model_error),
                spread(list(group.seconds / 60)),
            )
        )
    columns = ("model", "rollout length", "returns, by seed", "the model's error, by seed",
               "minutes")  # fmt: skip
    return table(columns, rows)


def _claims(results: Results[Any], ms: Mapping[str, list[float]]) -> Iterator[Claim]:
    names = dict(itertools.pairwise(ms))
    before = {after: name for name, after in names.items()}
    for name, text, expected in (
        (
            NO_ANOMALY,
            "ours: anomaly mode costs most (the document does not name it)",
            "more",
        ),
        ("no prints", "document: fewer prints help", "more"),
        ("arrays instead of lists", "document: arrays instead of lists help", "more"),
        ("AMP (bfloat16 autocast)", "document: mixed precision helps", "more"),
    ):
        ratio = compare(ms[before[name]], ms[name], 0.1)
        yield Claim(text, f"speed, {before[name]} → {name}", expected, ratio)  # type: ignore[arg-type]
    learning = results.part("learning")
    pairs = learning[learning.length == 1].pivot(index="seed", columns="dynamics")
    yield Claim(
        "document: the flow gives better simulated samples",
        "model's error without / with the flow, rollouts of length 1",
        "more",
        compare(list(pairs.model_error.ensemble), list(pairs.model_error.flow)),
    )
