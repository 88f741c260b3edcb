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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyfastenv.algorithms import ppo
from pyfastenv.algorithms.mbpo import MBPO
from pyfastenv.algorithms.mbpo import Config as MBPOConfig
from pyfastenv.experiments import flow_units as units
from pyfastenv.experiments.baselines.list_mbpo import ListMBPO, PlainEnv
from pyfastenv.experiments.baselines.plain_learners import Habits
from pyfastenv.experiments.clock import Clock, milliseconds
from pyfastenv.experiments.study import CHOICE, Contestant, Measurement, Row, Sizes, rounds
from pyfastenv.experiments.tables import median
from pyfastenv.publish.export import export
from pyfastenv.runs.evaluation import env_kwargs, evaluate, make_eval_envs
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
OURS = FLOAT32, AMP = "pyfastenv, float32", "pyfastenv, --amp"
WHOLE_MS = {AMP: 60, FLOAT32: 140, NO_ANOMALY: 400, SLOWEST: 840}  # whole runs, about, per step
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
    whole: bool = field(default=True, metadata=CHOICE)
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
    """Measurement of a fit."""
    learning: bool = field(default=True, metadata=CHOICE)
    """Whether trainings with and without the flow are made …"""
    learning_steps: int = 3_000
    """… of so many steps; as many as the document's three epochs …"""
    rollout_lengths: tuple[int, ...] = (1, 5, 15)
    """… with rollouts of the model of these lengths …"""
    seeds: tuple[int, ...] = (1, 2, 3)
    """… and these seeds."""

    def torch_threads(self) -> int:
        return 1 if self.quick else available_cpus()


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


def plan(config: Config) -> list[Measurement]:
    """Parts and units first, then whole runs, then learning."""
    programs = (*chain(), FLOAT32, AMP)
    contestants: list[Contestant] = [
        ({"program": name}, partial(_parts, name, config), 5 if name in OURS else 14)
        for name in programs
    ]
    made = rounds(config.rounds, "parts", contestants)
    for name, (unit, seconds) in units.UNITS.items():
        run, needs_cuda = partial(units.measure, unit, config.quick), name in units.CUDA_UNITS
        made.append(Measurement("units", {"what": name}, run, seconds, needs_cuda))
    made.append(Measurement("exported", {}, partial(_exported, config), 60, apart=True))
    for anomaly in (True, False):
        run = partial(_profiled, anomaly, config)
        made.append(Measurement("profile", {"anomaly mode": anomaly}, run, 15))
    for name, ms in WHOLE_MS.items() if config.whole else ():
        steps = config.slow_steps if name == SLOWEST else config.steps
        run = partial(_whole, name, steps, config)
        made.append(Measurement("whole", {"program": name}, run, steps * ms / 1e3))
    if config.whole:
        seconds = config.steps * WHOLE_MS[SLOWEST] / 1e3
        made.append(Measurement("long", {}, partial(_long, config), seconds, apart=True))
    seeds = config.seeds if config.learning else ()
    for seed, length in itertools.product(seeds, config.rollout_lengths):
        for dynamics in ("ensemble", "flow") if length == 1 else ("ensemble",):
            about = {"dynamics": dynamics, "length": length, "seed": seed}
            run = partial(_learn, dynamics, length, seed, config)
            seconds = config.learning_steps * 0.06
            made.append(Measurement("learning", about, run, seconds, apart=True))
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
def _ours(config: Config, max_epochs: int, **options: Any) -> Iterator[MBPO]:
    """Our program after its exploration, with the document's numbers."""
    threads = torch.get_num_threads()
    fields: dict[str, Any] = {
        "dynamics": "flow",
        "flow_batch_size": Habits().flow_batch_size,
        "learning_starts": config.real,
        "updates_per_step": float(UPDATES),
        "batch_size": 256,
        "model_batch_size": 256,
        "model_epoch_rows": 10**9,  # all
        "gamma_schedule": None,
        "rollout_schedule": (20, 150, 1, 1),  # the pool need not have room for longer ones
        "rollout_batch": config.part_states if config.quick else ROLLOUT_STATES,
        "model_agent_updates": config.part_agent_updates if config.quick else AGENT_UPDATES,
        "total_steps": 10**6,
        "num_threads": threads,
        "torch_threads": threads,
    }
    torch.manual_seed(0)
    mbpo = MBPO(MBPOConfig.preset(config.env_id, **(fields | options)))
    mbpo.model.options = replace(mbpo.model.options, max_epochs=max_epochs)
    try:
        mbpo.iterate()  # explores
        yield mbpo
    finally:
        mbpo.envs.close()


def _go_on(mbpo: MBPO, steps: int) -> list[float]:
    """So many steps; returns the epochs of the fits."""
    end, metrics = mbpo.global_step + steps, []
    while mbpo.global_step < end:
        metrics.append(mbpo.iterate())
    return [each["model/epochs"] for each in metrics if "model/epochs" in each]


def _parts(name: str, config: Config) -> Row:
    """Measures the parts of a program's step [ms]."""
    states, updates = config.part_states, config.part_agent_updates
    calls: tuple[Callable[[], object], ...]  # in PARTS' order
    if name in OURS:
        program = _ours(config, config.part_epochs, amp=name == AMP, model_agent_updates=updates)
        with program as mbpo:
            mbpo._roll_out(1_000, 1, mbpo.model_pool)  # warms up
            mbpo.learn(UPDATES)
            mbpo._improve_model({})
            calls = (
                lambda: mbpo._remember(mbpo.collector.follow(mbpo.policies(), 1)),
                lambda: mbpo.learn(config.part_updates),
                lambda: None,
                lambda: mbpo._fit_model({}),
                lambda: mbpo._roll_out(states, 1, mbpo.model_pool),
                lambda: mbpo._update_flow({}),
                lambda: mbpo._improve_model({}),
            )
            return _timed(calls, config)
    habits = chain()[name]
    with _slow(habits, config) as slow:
        slow.roll_out(1_000, 1, slow.model_pool)  # warms up
        slow.learn(2)
        slow.improve_model(1)
        real = slow.env_pool.all()
        calls = (
            slow.step,
            lambda: slow.learn(config.part_updates),
            slow.roll_out_aside if habits.auxiliary_rollout else lambda: None,
            lambda: slow.model.fit(real, max_epochs=config.part_epochs),
            lambda: slow.roll_out(states, 1, slow.model_pool),
            slow.update_flow,
            lambda: slow.improve_model(updates),
        )
        return _timed(calls, config)


def _timed(calls: Sequence[Callable[[], object]], config: Config) -> Row:
    """The parts, each after what it needs: the model's before those that use its pool."""
    parts, ms = dict(zip(PARTS, calls, strict=True)), dict.fromkeys(PARTS, 0.0)
    with Clock() as clock:
        for part in (*PARTS[3:5], *PARTS[:2], *PARTS[5:], PARTS[2]):
            for _ in range(config.part_steps if part == PARTS[0] else 1):
                ms[part] += milliseconds(parts[part])[0]
    row = per_step(ms, config)
    return row | {"steal": clock.steal, "others": clock.others, "ms": sum(row.values())}


def per_step(parts_ms: Mapping[str, float], config: Config) -> Row:
    """The cost of each part per environment step at the document's sizes and frequencies [ms]."""
    weights = (
        1 / config.part_steps,
        UPDATES / config.part_updates,
        1.0,
        EPOCHS / config.part_epochs / MODEL_EVERY,
        ROLLOUT_STATES / config.part_states / MODEL_EVERY,
        1 / FLOW_EVERY,
        AGENT_UPDATES / config.part_agent_updates / AGENT_EVERY,
    )
    return {part: parts_ms[part] * weight for part, weight in zip(PARTS, weights, strict=True)}


def _whole(name: str, steps: int, config: Config) -> Row:
    """A whole run."""
    epochs: Sequence[float]
    if name in OURS:
        program = _ours(config, config.max_epochs, amp=name == AMP, log_every=min(50, steps))
        with program as mbpo, Clock() as clock:
            epochs = _go_on(mbpo, steps)
    else:
        with _slow(chain()[name], config) as slow, Clock() as clock:
            slow.run(steps, UPDATES)
        epochs = slow.epochs
    return clock.row() | {"steps": steps, "epochs": epochs}


def _long(config: Config) -> Row:
    """A whole run in the document's style on one thread: processor time of each part of
    ``slow_steps`` [s]."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds = []
    try:
        with _slow(Habits(), config) as slow:
            for _ in range(config.steps // config.slow_steps):
                began = time.process_time()
                slow.run(config.slow_steps, UPDATES)
                seconds.append(time.process_time() - began)
    finally:
        torch.set_num_threads(threads)
    return {"processor_s": seconds, "epochs": slow.epochs}


def _profiled(anomaly: bool, config: Config) -> Row:
    """Profiles SAC updates in the document's style by torch.profiler; says what it leaves out."""
    count = 2 if config.quick else 20
    with _slow(replace(Habits(), anomaly_mode=anomaly), config) as program:
        program.roll_out(1_000, 1, program.model_pool)
        program.learn(2)
        plain = milliseconds(lambda: program.learn(count))[0]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            program.learn(count)
    events = sorted(profile.key_averages(), key=lambda e: -e.self_cpu_time_total)
    of_nan = [e.count for e in events if "nan" in e.key or e.key == "aten::ne"]
    return {
        "ms": plain / count,
        "operators_ms": sum(e.self_cpu_time_total for e in events) / 1e3 / count,
        "top": [(e.key, e.self_cpu_time_total / 1e3 / count, e.count / count) for e in events[:6]],
        "isnan_per_update": sum(of_nan) / count,
    }


def _exported(config: Config) -> Row:
    """Sizes and times of a policy exported as trained, half pruned, and in 8 bits: bytes, return,
    and processor time of an action by batch size [µs]."""
    made: Row = {}
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        sizes: Row = {"total_steps": 4_096, "hidden_sizes": (8,)} if config.quick else {}
        options = {"total_steps": 200_000, "hidden_sizes": (256, 256), "eval_every": 0, **sizes}
        ppo.train(ppo.Config.preset("Hopper-v5", run_dir=run, quiet=True, **options))
        kinds: dict[str, Row] = {
            "as trained": {},
            "half pruned": {"prune_fraction": 0.5},
            "8 bits": {"int8": True},
        }
        for name, smaller in kinds.items():
            path = Path(scratch) / f"{name}.pt2"
            episodes = 1 if config.quick else 10
            try:
                told = export(run, path, format="torch.export", episodes=episodes, **smaller)
            except ImportError:  # torchao
                continue
            module = torch.export.load(path).module()
            made[name] = {"bytes": told.num_bytes, "return": told.return_after}
            made["as trained"]["return"] = told.return_before
            for batch in (1, 10_000):
                made[name][f"us_{batch}"] = _cpu_us(partial(module, torch.randn(batch, 11)), batch)
    return made


@torch.no_grad()
def _cpu_us(call: Callable[[], object], batch: int) -> float:
    """Processor time of a call [µs], the median of some."""
    times = []
    for _ in range(1_000 if batch == 1 else 20):
        began = time.process_time()
        call()
        times.append(1e6 * (time.process_time() - began))
    return median(times)


def _learn(dynamics: str, length: int, seed: int, config: Config) -> Row:
    """Returns, and how wrong the model is about fresh real transitions of its policy."""
    options: dict[str, Any] = {"dynamics": dynamics, "rollout_schedule": (0, 0, length, length)}
    options |= {"seed": seed, "amp": True, "log_every": min(50, config.learning_steps)}
    with _ours(config, config.max_epochs, **options) as mbpo, Clock() as clock:
        _go_on(mbpo, config.learning_steps)
        envs = make_eval_envs(config.env_id, env_kwargs(mbpo.envs), 10)
        returns = evaluate(envs, mbpo.eval_policy(), 10, seed).returns
        envs.close()
        policy, layout = mbpo.policies(), mbpo.layout
        rows = torch.cat([mbpo.collector.follow(policy, 1).clone() for _ in range(500)], 1)
        noise = torch.zeros(1, rows.shape[1], 1 + layout.obs_size)
        predicted = mbpo.model.predict(layout.obs_actions(rows), noise).next_obs
        change = layout.next_obs(rows) - layout.obs(rows)
        error = (predicted - layout.next_obs(rows)).square().mean()
        relative = float((error / change.square().mean()).sqrt())
    return clock.row() | {
        "processor_s": clock.seconds * clock.cpus,  # trainings may share the machine
        "return": float(returns.mean()),
        "model_error": relative,
    }
