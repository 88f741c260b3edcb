"""Find the time: profiler, data loading, allocator. The experiment of document 002.

Every trainer under its own --profile, with named ranges; one small model fed by foreground and
background loaders while learning costs more and more; what the profiler itself costs; the
document's code as it is printed; the allocator with variable lengths and each remedy (CUDA).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn, profiler

from pyfastenv.algorithms import ddpg, mbpo, ppo, sac
from pyfastenv.experiments.baselines import loaders
from pyfastenv.experiments.baselines.plain import descend, mlp
from pyfastenv.experiments.clock import Clock, milliseconds
from pyfastenv.experiments.study import Contestant, Measurement, Row, Sizes, rounds
from pyfastenv.experiments.tables import median
from pyfastenv.nn.networks import MLP, FlatParameters
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.spans import SPANS, span
from pyfastenv.training.profiling import (
    ITERATION,
    TABLE,
    TRACE,
    Range,
    phases,
    ranges_table,
    read_ranges,
)

SHOWN = 40  # ranges of a trace in its picture
HIDDEN = 0.05  # data loading costs nothing, if the learner waits less than this share
REST = "the rest"
ALLOCATOR = ("fixed", "variable", "padded", "buckets", "expandable segments")


@dataclass(frozen=True, kw_only=True)
class Config(Sizes):
    """Document 002: find the time."""

    trainers: tuple[str, ...] = ("ppo", "ddpg", "sac", "mbpo")
    """Which are profiled."""
    loaders: tuple[str, ...] = tuple(loaders.LOADERS)
    """Which data loaders are compared …"""
    updates: tuple[int, ...] = (4, 16, 64, 256)
    """… by gradient steps per batch: the learner's cost …"""
    batches: int = 30
    """… with so many batches …"""
    rounds: int = 3
    """… in so many rounds."""
    repeats: int = 20
    """Measurements of each of the profiler's options."""
    traces: Path | None = None
    """Keep the trainings' traces there."""

    def measured(self) -> Row:
        return super().measured() | {"traces": None}  # where they are kept is no size


QUICK = Config(
    quick=True, trainers=("ppo", "mbpo"), updates=(2, 40), batches=2, rounds=1, repeats=3,
    loaders=(loaders.FOREGROUND, loaders.WORKER, loaders.OURS, loaders.OURS_BEHIND),
)  # fmt: skip


def plan(config: Config) -> list[Measurement]:
    """Traces, loaders, costs of profiling, the document's code, the allocator."""
    made = [
        Measurement("traces", {"trainer": name}, partial(trace, name, config), seconds)
        for name, seconds in {"ppo": 5, "ddpg": 5, "sac": 30, "mbpo": 200}.items()
        if name in config.trainers
    ]
    loading: list[Contestant] = [
        (
            {"loader": name, "updates": updates},
            partial(_load, name, updates, config.batches),
            4 + config.batches * (0.04 + updates * 2e-3),
        )
        for updates in config.updates
        for name in config.loaders
    ]
    count = 5 if config.quick else 40
    overlap = [({"overlap": on}, partial(_overlap, on, count), 5.0) for on in (False, True)]
    made += rounds(config.rounds, "loading", loading) + rounds(config.rounds, "overlap", overlap)
    traced = "sac" if "sac" in config.trainers else config.trainers[0]
    picture = partial(beginning, traced, config)
    made.append(Measurement("beginning", {"trainer": traced}, picture, 30, apart=True))
    steps = [
        ({"what": what, "how": how}, partial(_mended, make, options, config), 4.0)
        for what, (make, hows) in MENDED.items()
        if what.lower() in config.trainers
        for how, options in hows.items()
    ]
    made += rounds(config.rounds, "mended", steps, apart=True)
    made.append(Measurement("adam", {}, partial(_adam, config.repeats), 5, apart=True))
    made.append(Measurement("overhead", {}, partial(_overhead, config.repeats), 10))
    made.append(Measurement("span", {}, _span_cost, 2))
    made.append(Measurement("stale", {}, stale_code, 1))
    made.append(Measurement("lengths on the CPU", {}, partial(_lengths_on_cpu, config.quick), 20))
    for kind in ALLOCATOR:
        run = partial(_allocator, kind, 60 if config.quick else 300)
        made.append(Measurement("allocator", {"lengths": kind}, run, 20, True))
    return made


def _record(name: str, config: Config) -> tuple[list[Range], dict[str, float]]:
    """A short training with --profile: its ranges, and the phases of all of it [s]."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        module, full, quick = _TRAINERS[name]
        options = {"run_dir": folder, "profile": True, "quiet": True, "loggers": ()}
        options |= {"eval_every": 0, "checkpoint_every": 0, "eval_episodes": 1}
        module.train(module.Config(**options, **(quick if config.quick else full)))
        ranges, phases_s = read_ranges(folder / TRACE), phases(folder)
        if config.traces is not None:
            config.traces.mkdir(parents=True, exist_ok=True)
            for file in (TRACE, TABLE):
                shutil.copy(folder / file, config.traces / f"{name}.{file}")
    return ranges, phases_s


def trace(name: str, config: Config) -> Row:
    """Shares of time in a recorded training's iterations."""
    ranges, phases_s = _record(name, config)
    iterations = [each for each in ranges if each.name == ITERATION]
    count = 1e3 * len(iterations)
    alone = {
        REST if kind == ITERATION else kind: sum(x.alone for x in ranges if x.name == kind) / count
        for kind in (*SPANS, ITERATION)
    }
    return {
        "iteration_ms": sum(each.duration for each in iterations) / count,
        "ranges_ms": {kind: value for kind, value in alone.items() if value > 0.0},
        "table": ranges_table(ranges),
        "phases_s": phases_s,
    }


def beginning(name: str, config: Config) -> Row:
    """The first ranges of a recorded iteration: name, start and duration [ms], depth."""
    ranges, _ = _record(name, config)
    first = next(i for i, each in enumerate(ranges) if each.name == ITERATION)
    shown = [each for each in ranges[first + 1 : first + 1 + SHOWN] if each.name != ITERATION]
    start = shown[0].start
    return {
        "ranges": [
            (each.name, (each.start - start) / 1e3, each.duration / 1e3, each.depth)
            for each in shown
        ]
    }


# module, options, and the quick preset's
_TRAINERS: dict[str, tuple[Any, Row, Row]] = {
    "ppo": (ppo, {"total_steps": 20 * 2_048}, {"total_steps": 7 * 2_048}),
    "ddpg": (ddpg, {"total_steps": 1_000 + 40 * 64}, {"total_steps": 1_000 + 10 * 64}),
    "sac": (
        sac,
        {"learning_starts": 1_000, "total_steps": 1_300},
        {"learning_starts": 300, "total_steps": 600},
    ),
    "mbpo": (
        mbpo,
        {"dynamics": "flow", "total_steps": 6_060},
        {
            "dynamics": "flow", "total_steps": 109, "env_id": "InvertedPendulum-v5",
            "learning_starts": 100, "batch_size": 32, "log_every": 4, "model_every": 4,
            "flow_every": 4, "flow_updates": 2, "flow_batch_size": 32, "flow_rollout_states": 50,
            "model_agent_every": 4, "model_agent_updates": 2, "rollout_batch": 500,
            "updates_per_step": 2.0, "model_hidden_sizes": (32, 32), "torch_threads": 1,
            "num_threads": 1,
        },
    ),
}  # fmt: skip


# what was mended because of a trace: the algorithm, and its options before and after
MENDED: dict[str, tuple[Callable[[Row], Any], dict[str, Row]]] = {
    "PPO": (lambda options: ppo.PPO(ppo.Config(**options)), {
        "plain PyTorch": {"accelerate": "none"},
        "a compiled update": {"accelerate": "native"},
    }),
    "DDPG": (lambda options: ddpg.DDPG(ddpg.Config(**options)), {
        "plain PyTorch": {"accelerate": "none"},
        "gradients written out": {"accelerate": "native"},
    }),
    "SAC": (lambda options: sac.SAC(sac.Config(learning_starts=300, log_every=50, **options)), {
        "plain PyTorch": {"accelerate": "none"},
        "gradients written out": {"accelerate": "native"},
        "plain PyTorch, --amp": {"accelerate": "none", "amp": True},
        "a compiled step, --amp": {"accelerate": "native", "amp": True},
    }),
}  # fmt: skip


def _mended(make: Callable[[Row], Any], options: Row, config: Config) -> Row:
    """Processor time of an environment step of a training, its learning included [µs]."""
    trainer = make(options | {"total_steps": 10**9, "num_threads": 1, "torch_threads": 1})
    for _ in range(1 if config.quick else 3):
        trainer.iterate()
    before, began = trainer.global_step, time.process_time()
    while time.process_time() - began < (0.05 if config.quick else 1.0):
        trainer.iterate()
    cpu_s = time.process_time() - began
    if isinstance(trainer, ppo.PPO):
        trainer.collector.close()
    trainer.envs.close()
    return {"cpu_us": 1e6 * cpu_s / (trainer.global_step - before)}


def _adam(repeats: int) -> Row:
    """Processor time of a step of Adam on two hidden layers of 64, PyTorch's and ours [µs]."""
    networks = [MLP((17, 64, 64, 6)) for _ in range(2)]
    theirs = torch.optim.Adam(networks[0].parameters(), lr=1e-3)
    mine = FlatAdam(FlatParameters([networks[1]]), lr=1e-3)
    for parameter in networks[0].parameters():
        parameter.grad = torch.ones_like(parameter)
    times: dict[str, list[float]] = {"torch_us": [], "flat_us": []}
    for _ in range(repeats):
        for name, optimizer in (("torch_us", theirs), ("flat_us", mine)):
            began = time.process_time()
            for _ in range(200):
                optimizer.step()
            times[name].append(1e6 * (time.process_time() - began) / 200)
    return dict(times)


def _descent(model: nn.Module, *, fused: bool = False) -> Callable[[Tensor, Tensor], None]:
    """A gradient step of a small model, to wanted outputs."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    return lambda inputs, wanted: descend(
        optimizer, nn.functional.mse_loss(model(inputs)[:, 0], wanted)
    )


def _load(name: str, updates: int, num_batches: int) -> Row:
    """How long a learner of the rewards waits for its batches; a first one is not counted."""
    torch.manual_seed(0)
    step = _descent(mlp(23, 256, 256, 1), fused=True)

    def learn(batch: loaders.Batch) -> None:
        obs, actions, rewards = batch
        inputs = torch.cat((obs, actions), 1)
        for _ in range(updates):
            rows = torch.randint(len(inputs), (256,))
            step(inputs[rows], rewards[rows])

    waits = learns = 0.0
    with loaders.LOADERS[name]() as batches:
        learn(next(batches))
        with Clock() as clock:
            for _ in range(num_batches):
                start = time.perf_counter()
                batch = next(batches)
                loaded = time.perf_counter()
                learn(batch)
                waits += 1e3 * (loaded - start)
                learns += 1e3 * (time.perf_counter() - loaded)
    return clock.row() | {
        "wait_ms": waits / num_batches,
        "learn_ms": learns / num_batches,
        "share": waits / (waits + learns),
        "rate": num_batches / clock.seconds,
    }


def _overlap(on: bool, iterations: int) -> Row:
    """PPO's own collection, in the foreground and in the background."""
    trainer = ppo.PPO(ppo.Config(total_steps=10**9, overlap=on))
    trainer.iterate()
    with Clock() as clock:
        waits = sum(trainer.iterate()["time/sample_s"] for _ in range(iterations))
    trainer.collector.close()
    trainer.envs.close()
    steps = iterations * trainer.config.num_envs * trainer.config.num_steps
    return clock.row() | {"rate": steps / clock.seconds, "share": waits / clock.seconds}


def _overhead(repeats: int) -> Row:
    """Ten gradient steps by what the profiler records, each in turn [ms]."""
    step, data = _descent(mlp(32, 64, 1)), torch.randn(256, 32)

    def steps() -> None:
        for _ in range(10):
            step(data, data[:, 0])

    options: dict[str, Row] = {
        "CPU": {},
        "CPU, shapes": {"record_shapes": True},
        "CPU, memory": {"profile_memory": True},
        "CPU, stacks": {"with_stack": True},
        "all of it": {"profile_memory": True, "record_shapes": True, "with_stack": True},
    }
    times: dict[str, list[float]] = {name: [] for name in ("no profiler", *options)}
    for _ in range(repeats):
        times["no profiler"] += milliseconds(steps)
        for name, chosen in options.items():
            with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **chosen):
                times[name] += milliseconds(steps)
    return {"ms": times}


def _span_cost(count: int = 10_000) -> Row:
    """A named range where nothing is recorded, ours and torch's [ns]."""

    def time_of(make: Callable[[str], Any]) -> float:
        def call() -> None:
            with make("env"):
                pass

        return 1e9 * min(timeit.repeat(call, number=count, repeat=5)) / count

    return {"ours_ns": time_of(span), "torch_ns": time_of(profiler.record_function)}


def stale_code() -> Row:
    """The document's code as it is printed, and with the line that mends it."""

    def tried(call: Callable[..., Any]) -> str:
        with tempfile.TemporaryDirectory() as logs:
            handler = profiler.tensorboard_trace_handler(logs)
            try:
                with call(activities=[profiler.ProfilerActivity.CPU], on_trace_ready=handler):
                    torch.ones(2).sum()
            except TypeError as error:
                return str(error)
            return "" if any(Path(logs).iterdir()) else "it leaves no trace"

    return {
        "printed": tried(torch.autograd.profiler.profile),
        "mended": tried(torch.profiler.profile),
    }


# ---- the allocator -------------------------------------------------------------------------------


def length_of(kind: str, drawn: int, longest: int) -> int:
    """The length at which the model gets a batch of ``drawn`` steps."""
    if kind in ("fixed", "padded"):
        return longest
    if kind == "buckets":  # powers of two: few shapes
        return min(longest, 1 << (drawn - 1).bit_length())
    return drawn


def _lengths_on_cpu(quick: bool) -> Row:
    """Time per element of training steps on sequences, by kind of lengths [ns]."""
    longest = 128 if quick else 512
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    generator = torch.Generator().manual_seed(0)

    def time_of(kind: str) -> float:
        drawn = torch.randint(longest // 8, longest + 1, (20,), generator=generator).tolist()
        sizes = [length_of(kind, length, longest) for length in drawn]

        def steps() -> None:
            for size in sizes:
                model(torch.randn(16, size, 64)).square().mean().backward()

        return 1e6 * median(milliseconds(steps, repeats=3)) / sum(sizes) / 16

    return {kind: time_of(kind) for kind in ("fixed", "variable")}


_SCRIPT = "import sys; from pyfastenv.experiments import allocator; allocator.main(*sys.argv[1:])"


def _allocator(kind: str, num_steps: int) -> Row:
    """:mod:`pyfastenv.experiments.allocator` in a process of its own, where its settings hold."""
    settings = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"} if "expand" in kind else {}
    command = [sys.executable, "-c", _SCRIPT, kind, str(num_steps)]
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=True
    )
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row
