"""Why did model-based training with a flow take 14.4 s per step? The experiment of document 000.

Whole runs of the program as the document describes it (baselines/list_mbpo.py) and of
:mod:`pyfastenv.algorithms.mbpo`; then, as explanation, one habit dropped after the other, what
single remedies change, what a profiler sees, and whether the flow is worth it.
"""

from __future__ import annotations

import itertools
import random
import tempfile
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
from pyfastenv.experiments.baselines.list_mbpo import ListMBPO, PlainEnv
from pyfastenv.experiments.baselines.plain_learners import Habits
from pyfastenv.experiments.clock import Clock, milliseconds
from pyfastenv.experiments.study import Measurement, Row, Sizes, rounds
from pyfastenv.training.evaluation import env_kwargs, evaluate, make_eval_envs
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
    learning_steps: int = 4_000
    """Steps of the trainings with and without the flow."""
    rollout_lengths: tuple[int, ...] = (1, 5, 15)
    """Of the model in these trainings."""
    seeds: tuple[int, ...] = (1, 2, 3)
    """Of these trainings."""

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


# ---- what is measured ----------------------------------------------------------------------------


def plan(config: Config) -> list[Measurement]:
    """Parts and units first, then whole runs, then learning."""
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
        mbpo.learn(UPDATES)
        mbpo._improve_model({})
        states = config.part_states
        parts = {
            "fits of the model": lambda: mbpo._fit_model({}),
            "rollouts of the model": lambda: mbpo._roll_out(states, 1, mbpo.model_pool),
            "environment step": lambda: _repeat(
                lambda: mbpo._remember(mbpo.collector.follow(mbpo.policies(), 1)),
                config.part_steps,
            ),
            "20 SAC updates": lambda: mbpo.learn(config.part_updates),
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
        program.run(steps, UPDATES)
    return clock.row() | {"steps": steps, "epochs": program.epochs}


def _our_whole(name: str, steps: int, config: Config) -> Row:
    epochs: list[float] = []
    with ours(config, amp=name == AMP, log_every=min(50, steps)) as mbpo, Clock() as clock:
        end = mbpo.global_step + steps
        while mbpo.global_step < end:
            metrics = mbpo.iterate()
            if "model/epochs" in metrics:
                epochs.append(metrics["model/epochs"])
    return clock.row() | {"steps": steps, "epochs": epochs}


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
        policy = mbpo.policies()
        rows = torch.cat([mbpo.collector.follow(policy, 1).clone() for _ in range(500)], 1)
        noise = torch.zeros(1, rows.shape[1], 1 + layout.obs_size)
        predicted = mbpo.model.predict(layout.obs_actions(rows), noise).next_obs
        change = layout.next_obs(rows) - layout.obs(rows)
        error = (predicted - layout.next_obs(rows)).square().mean()
        relative = float((error / change.square().mean()).sqrt())
    return clock.row() | {"return": float(returns.mean()), "model_error": relative}
