"""The experiment `profiling`: find the time, hide the data loading, watch the allocator (002).

Profiles our trainers with their own --profile; trains one small model on batches that are loaded
in the foreground and in the background, by gymnasium and by the pool; runs the document's code; on
CUDA records the allocator's memory with variable and with fixed lengths. run() draws and judges.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn, profiler
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import pyfastenv
from pyfastenv.algorithms import ddpg, ppo
from pyfastenv.experiments.measure import summary
from pyfastenv.experiments.study import NEEDS_CUDA, Row, Study, spread, table
from pyfastenv.nn.networks import MLP
from pyfastenv.sampling.rollouts import RolloutBatch
from pyfastenv.sampling.staging import Collector, PinnedRing
from pyfastenv.training.plots import COLOURS
from pyfastenv.training.profiling import SPANS, TABLE, TRACE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENV_ID = "HalfCheetah-v5"
# name: (algorithm, device)
TRAINERS = {
    "PPO, cpu": ("ppo", "cpu"),
    "DDPG, cpu": ("ddpg", "cpu"),
    "PPO, sample-cpu": ("ppo", "sample-cpu"),
    "PPO, cuda": ("ppo", "cuda"),
}
FOREGROUND, BACKGROUND = "gymnasium, foreground", "gymnasium, DataLoader worker"
OUR_FOREGROUND, OUR_BACKGROUND = "ours, foreground", "ours, Collector(overlap)"
LOADERS = (FOREGROUND, BACKGROUND, OUR_FOREGROUND, OUR_BACKGROUND)
NUM_ENVS, NUM_STEPS = 16, 64  # of a batch; gymnasium has one environment and as many transitions
_HIDDEN = 0.05  # data loading costs nothing, if the learner waits less than this share
Batch = tuple[Tensor, Tensor, Tensor]  # obs, actions, rewards


def run(study: Study) -> Path:
    """Measures what is not measured yet; returns report.md's path."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        traces = {
            name: study.measure(
                f"trace, {name}",
                partial(trace, study.folder, algorithm, device, quick=study.quick),
                needs_cuda=device != "cpu",
            )
            for name, (algorithm, device) in TRAINERS.items()
        }
        loading = _loading(study)
        overlap = _overlap(study)
        stale = study.measure("the document's code", stale_code)
        overhead = study.measure("overhead", partial(profiler_overhead, 6 if study.quick else 20))
        memory = {
            name: study.measure(f"allocator, {name}", measure, needs_cuda=True)
            for name, measure in _allocator(study.quick).items()
        }
    finally:
        torch.set_num_threads(threads)
    study.picture("ranges", draw_ranges(traces), _RANGES_CAPTION)
    study.picture("loading", draw_loading(loading), _LOADING_CAPTION)
    if "skipped" not in memory["fixed"]:
        study.picture("allocator", draw_allocator(memory), _ALLOCATOR_CAPTION)
    return study.report(
        "Find the time: profiler, data loading, allocator",
        [
            ("The document's figures and ours", _beside(loading, stale, memory)),
            ("Traces", _trace_text(traces)),
            ("Data loading", _loading_text(loading, overlap)),
            ("The document's code, and what profiling costs", _profiler_text(stale, overhead)),
            ("Allocator", _allocator_text(memory)),
        ],
        verdict(traces, loading, overlap, stale, overhead, memory),
    )


# ---- traces --------------------------------------------------------------------------------------


def trace(folder: Path, algorithm: str, device: str, *, quick: bool) -> Row:
    """A short training with --profile; its trace and table go into the experiment's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{algorithm}-{device}"
    with tempfile.TemporaryDirectory() as scratch:
        run_dir = Path(scratch) / "run"
        common: dict[str, Any] = {
            "device": device,
            "run_dir": run_dir,
            "profile": True,
            "quiet": True,
            "tensorboard": False,
            "eval_every": 0,
            "eval_episodes": 1,
        }
        if algorithm == "ppo":
            steps = 16 * 128
            config = ppo.Config(env_id=ENV_ID, total_steps=(6 if quick else 20) * steps, **common)
            ppo.train(config)
        else:
            ddpg.train(ddpg.Config(total_steps=1_000 + (8 if quick else 40) * 64, **common))
        shutil.copy(run_dir / TRACE, folder / f"{name}.{TRACE}")
        shutil.copy(run_dir / TABLE, folder / f"{name}.{TABLE}")
        return parse_table((run_dir / TABLE).read_text()) | {"trace": f"{name}.{TRACE}"}


def parse_table(text: str) -> Row:
    """Milliseconds per iteration and by range, of profile.txt."""
    head = re.search(r"iterations of ([\d.]+) ms", text)
    if head is None:
        raise ValueError(f"{TABLE}: expected a first line with the iterations' time")
    ranges = {}
    for name in (*SPANS, "the rest"):
        row = re.search(rf"^{name}\s+([\d.-]+)%\s+([\d.-]+)", text, re.MULTILINE)
        if row is not None:
            ranges[name] = float(row[2])
    return {"iteration_ms": float(head[1]), "ranges_ms": ranges}


# ---- data loading --------------------------------------------------------------------------------


class Transitions(IterableDataset[Batch]):
    """Batches of random play in one gymnasium environment, made when they are asked for."""

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        env = gymnasium.make(ENV_ID)
        obs, _ = env.reset(seed=0 if worker is None else worker.id)
        env.action_space.seed(0)
        while True:
            rows: list[tuple[Any, Any, float]] = []
            for _ in range(NUM_ENVS * NUM_STEPS):
                action = env.action_space.sample()
                next_obs, reward, terminated, truncated, _ = env.step(action)
                rows.append((obs, action, float(reward)))
                obs = env.reset()[0] if terminated or truncated else next_obs
            columns = (np.asarray(column, np.float32) for column in zip(*rows, strict=True))
            first, second, third = (torch.from_numpy(column) for column in columns)
            yield first, second, third


def _gymnasium_batches(num_workers: int) -> Iterator[Batch]:
    loader: DataLoader[Any] = DataLoader(
        Transitions(),
        batch_size=None,
        num_workers=num_workers,
        multiprocessing_context="spawn" if num_workers else None,
    )
    iterator = iter(loader)
    try:
        while True:
            yield next(iterator)
    finally:
        shutdown = getattr(iterator, "_shutdown_workers", None)
        if shutdown is not None:
            shutdown()


def _our_batches(overlap: bool) -> Iterator[Batch]:
    """The same from the pool, one thread, in the caller's thread or in the Collector's."""
    envs = pyfastenv.make_vec(
        ENV_ID, NUM_ENVS, num_threads=1, autoreset_mode="SameStep", infos=False
    )
    envs.reset(seed=0)
    policy = MLP((17, 6)).spec(log_std=np.zeros((1, 6), np.float32))
    layout = {
        name: (tuple(x.shape), x.dtype)
        for name, x in RolloutBatch.allocate(envs, NUM_STEPS).tensors().items()
    }

    def collect(tensors: dict[str, Tensor]) -> None:
        pyfastenv.rollout(envs, policy, NUM_STEPS, out=RolloutBatch.of(tensors))

    with Collector(collect, PinnedRing(layout, 2, "cpu"), overlap=overlap) as collector:
        while True:
            tensors, _ = collector.next()
            batch = RolloutBatch.of(tensors)
            obs, actions = batch.obs.flatten(0, 1).float(), batch.actions.flatten(0, 1)
            yield obs, actions, batch.rewards.flatten().float()


def load(name: str, num_batches: int, updates: int = 60) -> Row:
    """Trains a model of the rewards; measures how long its loop waits for data.

    Args:
        name: One of :data:`LOADERS`.
        num_batches: Batches of 1,024 transitions; one more comes first, untimed.
        updates: Gradient steps on each, 256 transitions at a time.

    Raises:
        ValueError: Unknown loader.
    """
    if name not in LOADERS:
        raise ValueError(f"loader: expected one of {', '.join(LOADERS)}, got {name}")
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(23, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    if name in (FOREGROUND, BACKGROUND):
        batches = _gymnasium_batches(int(name == BACKGROUND))
    else:
        batches = _our_batches(name == OUR_BACKGROUND)
    next(batches)
    waits, learns = [], []
    for _ in range(num_batches):
        began = time.perf_counter()
        obs, actions, rewards = next(batches)
        ready = time.perf_counter()
        inputs = torch.cat((obs, actions), 1)
        for _ in range(updates):
            rows = torch.randint(len(inputs), (256,))
            loss = nn.functional.mse_loss(model(inputs[rows])[:, 0], rewards[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        waits.append(ready - began)
        learns.append(time.perf_counter() - ready)
    batches.close()  # type: ignore[attr-defined]
    return _of_batches([1e3 * wait for wait in waits], [1e3 * learn for learn in learns])


def _loading(study: Study) -> dict[str, Row]:
    """All loaders in turn, forward and backward, so that a machine's drift meets them all."""
    rounds, count = (2, 6) if study.quick else (4, 30)
    rows: dict[str, list[Row]] = {name: [] for name in LOADERS}
    for i in range(rounds):
        for name in LOADERS if i % 2 == 0 else LOADERS[::-1]:
            rows[name].append(
                study.measure(f"loading, {name}, round {i}", partial(load, name, count))
            )
    return {name: _of_batches(*_joined(of_one)) for name, of_one in rows.items()}


def _joined(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    return (
        [ms for row in rows for ms in row["wait_ms"]],
        [ms for row in rows for ms in row["learn_ms"]],
    )


def _of_batches(wait_ms: list[float], learn_ms: list[float]) -> Row:
    total = sum(wait_ms) + sum(learn_ms)
    return {
        "wait_ms": wait_ms,
        "learn_ms": learn_ms,
        "share": sum(wait_ms) / total,
        "batches_per_s": 1e3 * len(wait_ms) / total,
    }


def ppo_overlap(overlap: bool, iterations: int) -> Row:
    """PPO's own collection, in the foreground and in the background."""
    config = ppo.Config(env_id=ENV_ID, total_steps=10**9, overlap=overlap)
    trainer = ppo.PPO(config)
    trainer.iterate()
    waits, totals = 0.0, []
    for _ in range(iterations):
        began = time.perf_counter()
        waits += trainer.iterate()["time/sample_s"]
        totals.append(time.perf_counter() - began)
    trainer.collector.close()
    trainer.envs.close()
    rate = config.num_envs * config.num_steps
    return {"share": waits / sum(totals), "rates": [rate / total for total in totals]}


def _overlap(study: Study) -> dict[str, Row]:
    count = 10 if study.quick else 60
    return {
        name: study.measure(f"PPO, {name}", partial(ppo_overlap, name == "overlap", count))
        for name in ("foreground", "overlap")
    }


# ---- the document's code, and what profiling costs -----------------------------------------------


def stale_code() -> Row:
    """Calls torch.autograd.profiler.profile as the document prints it."""
    from torch.autograd import profiler as old

    call: Callable[..., Any] = old.profile
    try:
        call(
            activities=[profiler.ProfilerActivity.CPU],
            on_trace_ready=profiler.tensorboard_trace_handler("./logs"),
        )
    except TypeError as error:
        return {"works": False, "error": str(error)}
    return {"works": True, "error": ""}


def profiler_overhead(repeats: int) -> Row:
    """Milliseconds of ten gradient steps by what the profiler records, each in turn."""
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(256, 32)
    options: dict[str, dict[str, Any] | None] = {
        "no profiler": None,
        "CPU activities": {},
        "and memory": {"profile_memory": True},
        "and memory, shapes, stacks": {
            "profile_memory": True,
            "record_shapes": True,
            "with_stack": True,
        },
    }

    def steps() -> float:
        began = time.perf_counter()
        for _ in range(50):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()
        return 1e3 * (time.perf_counter() - began) / 5

    steps()
    times: dict[str, list[float]] = {name: [] for name in options}
    for _ in range(repeats):
        for name, chosen in options.items():
            if chosen is None:
                times[name].append(steps())
                continue
            with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **chosen):
                times[name].append(steps())
    return {"ms": times}


# ---- allocator -----------------------------------------------------------------------------------


def _allocator(quick: bool) -> dict[str, Callable[[], Row]]:
    """``fixed`` and ``variable`` lengths, and our PPO; they need CUDA."""
    steps = 60 if quick else 300
    return {
        "fixed": partial(allocator, variable=False, num_steps=steps),
        "variable": partial(allocator, variable=True, num_steps=steps),
        "ours": partial(allocator_ours, num_steps=steps),
    }


def allocator(*, variable: bool, num_steps: int, max_length: int = 2_048) -> Row:
    """Reserved and allocated memory after each training step on sequences.

    The process may use a third more than what the fixed lengths need, as if the model had been
    sized to the GPU: blocks of one length that are of no use to another then have to be freed.
    """
    torch.manual_seed(0)
    lengths = torch.randint(max_length // 8, max_length + 1, (num_steps,)).tolist()
    model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)])
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(length: int) -> None:
        batch = torch.randn(16, length, 512, device="cuda")
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    torch.cuda.empty_cache()
    step(max_length)
    torch.cuda.synchronize()
    limit = 4 * torch.cuda.memory_reserved() // 3
    torch.cuda.empty_cache()
    torch.cuda.reset_accumulated_memory_stats()
    torch.cuda.set_per_process_memory_fraction(
        min(1.0, limit / torch.cuda.get_device_properties(0).total_memory)
    )
    record = _Memory()
    try:
        for length in lengths:
            step(length if variable else max_length)
            record.add()
    except torch.cuda.OutOfMemoryError:
        record.row["out_of_memory_at_step"] = len(record.row["reserved_mib"])
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return record.row


def allocator_ours(*, num_steps: int) -> Row:
    """The same for iterations of our PPO, whose batches always have one shape."""
    config = ppo.Config(env_id=ENV_ID, device="sample-cpu", total_steps=10**9)
    trainer = ppo.PPO(config)
    trainer.iterate()  # allocates
    record = _Memory()
    for _ in range(min(num_steps, 60)):
        trainer.iterate()
        record.add()
    trainer.collector.close()
    trainer.envs.close()
    return record.row


class _Memory:
    """What the caching allocator holds, step by step."""

    def __init__(self) -> None:
        self._before = torch.cuda.memory_stats()
        self.row: Row = {"reserved_mib": [], "allocated_mib": [], "retries": 0, "frees": 0}

    def add(self) -> None:
        """Writes a step down."""
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        self.row["reserved_mib"].append(torch.cuda.memory_reserved() / 2**20)
        self.row["allocated_mib"].append(torch.cuda.max_memory_allocated() / 2**20)
        torch.cuda.reset_peak_memory_stats()
        for name, key in (("retries", "num_alloc_retries"), ("frees", "num_device_free")):
            self.row[name] = stats.get(key, 0) - self._before.get(key, 0)


# ---- judging -------------------------------------------------------------------------------------


def changes(values: Sequence[float]) -> int:
    """How often a line moves after its first tenth, in which it may still rise."""
    settled = values[max(1, len(values) // 10) :]
    return int(np.count_nonzero(np.diff(settled)))


def verdict(
    traces: Mapping[str, Row],
    loading: Mapping[str, Row],
    overlap: Mapping[str, Row],
    stale: Row,
    overhead: Row,
    memory: Mapping[str, Row],
) -> str:
    """What the numbers say of the document's claims, and what to do."""
    parts = [
        "**Does the document's claim hold?** " + _on_loading(loading),
        _on_profiler(stale, overhead),
        _on_allocator(memory),
        "**Ours.** " + _on_ours(traces, loading, overlap),
        "**What to do.** " + _advice(traces, loading, overlap),
    ]
    return "\n\n".join(parts)


def _on_loading(loading: Mapping[str, Row]) -> str:
    before, after = loading[FOREGROUND]["share"], loading[BACKGROUND]["share"]
    ours = loading[OUR_BACKGROUND]["share"]
    if after < _HIDDEN:
        holds = "That data loading can be made to cost almost nothing holds"
    elif after < before:
        holds = "That data loading can be made to cost almost nothing holds in part"
    else:
        holds = "That data loading can be made to cost almost nothing does not hold"
    text = (
        f"{holds}: the loop waits {before:.0%} of its time for batches made in the foreground and "
        f"{after:.0%} with one DataLoader worker. "
    )
    if after >= _HIDDEN:
        text += (
            "The worker hides the loading only as far as it is faster than learning; it hands "
            "each batch from one process to another and wants a core of its own. "
        )
    word = "hidden" if ours < _HIDDEN else "not hidden"
    return text + f"With ours in the background the wait is {ours:.1%}: {word}."


def _on_profiler(stale: Row, overhead: Row) -> str:
    ms = {name: summary(values)["median"] for name, values in overhead["ms"].items()}
    names = list(ms)
    ratios = ", ".join(f"{name} {ms[name] / ms[names[0]]:.2f} ×" for name in names[1:])
    grows = ms[names[-1]] > ms[names[1]] > ms[names[0]]
    code = (
        "The document's code runs here."
        if stale["works"]
        else f"The document's code does not run (`{stale['error']}`): "
        "`torch.autograd.profiler.profile` is another, older class; use `torch.profiler.profile`."
    )
    holds = "holds" if grows else "does not show in these numbers"
    return f"{code} That the profiler costs more the more it records {holds}: {ratios}."


def _on_allocator(memory: Mapping[str, Row]) -> str:
    if "skipped" in memory["fixed"]:
        return (
            f"That variable lengths make the reserved memory jagged {NEEDS_CUDA}: it was neither "
            "confirmed nor refuted here."
        )
    moves = {name: changes(row["reserved_mib"]) for name, row in memory.items()}
    holds = moves["variable"] > moves["fixed"]
    return (
        f"That variable lengths make the reserved memory jagged {'holds' if holds else 'fails'}: "
        f"it changes {moves['variable']} times with variable lengths "
        f"({memory['variable']['frees']} blocks given back to the device, "
        f"{memory['variable']['retries']} retries), {moves['fixed']} times with fixed ones and "
        f"{moves['ours']} times in our PPO."
    )


def _on_ours(
    traces: Mapping[str, Row], loading: Mapping[str, Row], overlap: Mapping[str, Row]
) -> str:
    rates = {name: row["batches_per_s"] for name, row in loading.items()}
    waits = {name: summary(row["wait_ms"])["median"] for name, row in loading.items()}
    behind = [
        f"{mine} against {theirs}: {rates[mine]:.2f} against {rates[theirs]:.2f} batches/s, "
        f"because it waits {waits[mine]:.0f} against {waits[theirs]:.0f} ms per batch"
        for mine in (OUR_FOREGROUND, OUR_BACKGROUND)
        for theirs in (FOREGROUND, BACKGROUND)
        if rates[mine] <= rates[theirs]
    ]
    text = (
        f"The pool makes the same batch in {waits[OUR_FOREGROUND]:.0f} ms where gymnasium needs "
        f"{waits[FOREGROUND]:.0f} (one thread each). "
    )
    if behind:
        text += f"In batches per second it is **not** ahead in {len(behind)}: {'; '.join(behind)}."
    else:
        text += "In batches per second it is ahead of every baseline in every row."
    shares = {name: row["share"] for name, row in overlap.items()}
    speed = _speed_up(overlap)
    text += (
        f" In PPO itself, on the CPU, collecting takes {shares['foreground']:.0%} of the time and "
        f"with `--overlap` {shares['overlap']:.0%}, at {speed:.2f} times the speed."
    )
    env = [
        f"{name} {row['ranges_ms'].get('env', 0.0) / row['iteration_ms']:.0%}"
        for name, row in traces.items()
        if "skipped" not in row
    ]
    return text + f" In the traces the environments take: {', '.join(env)}."


def _speed_up(overlap: Mapping[str, Row]) -> float:
    rates = {name: summary(row["rates"])["median"] for name, row in overlap.items()}
    return rates["overlap"] / rates["foreground"]


def _advice(
    traces: Mapping[str, Row], loading: Mapping[str, Row], overlap: Mapping[str, Row]
) -> str:
    measured = {name: row for name, row in traces.items() if "skipped" not in row}
    text = "Profile first (`pyfastenv train ppo --profile`), few options at a time. "
    for name, row in measured.items():
        ranges = row["ranges_ms"]
        largest = max(ranges, key=ranges.__getitem__)
        text += f"In {name} look at {largest} ({ranges[largest] / row['iteration_ms']:.0%}). "
    if loading[FOREGROUND]["share"] > _HIDDEN:
        text += (
            "Move loading out of the loop, and make it cheaper first: that needs no other core. "
        )
    if _speed_up(overlap) > 1.05:
        text += "`--overlap` pays on this machine."
    else:
        text += (
            "`--overlap` does not pay on this machine, where collecting and learning want the same "
            "cores; try it where a GPU learns."
        )
    return text


# ---- tables --------------------------------------------------------------------------------------


def _beside(loading: Mapping[str, Row], stale: Row, memory: Mapping[str, Row]) -> str:
    fixed, variable = memory["fixed"], memory["variable"]
    skipped = "skipped" in fixed

    def reserved(row: Row) -> str:
        return NEEDS_CUDA if skipped else f"{changes(row['reserved_mib'])} changes"

    shares = {name: f"{row['share']:.1%}" for name, row in loading.items()}
    rows = [
        ["its profiler code", "runs", "runs" if stale["works"] else "TypeError"],
        ["data loading, foreground", "GPU idle meanwhile", f"{shares[FOREGROUND]} of the loop"],
        ["data loading, background", "almost no time", f"{shares[BACKGROUND]} of the loop"],
        ["the same, ours", "", f"{shares[OUR_BACKGROUND]} of the loop"],
        ["reserved memory, variable lengths", "jagged", reserved(variable)],
        ["reserved memory, fixed lengths", "flat", reserved(fixed)],
    ]
    return (
        table(["", "document", "here"], rows)
        + "\n\nThe document gives pictures and no numbers, so its column has words."
    )


def _trace_text(traces: Mapping[str, Row]) -> str:
    names = (*SPANS, "the rest")
    rows: list[list[object]] = []
    for name, row in traces.items():
        if "skipped" in row:
            rows.append([name, *([NEEDS_CUDA] * (len(names) + 2))])
            continue
        ranges, total = row["ranges_ms"], row["iteration_ms"]
        cells = [
            f"{ranges[n]:.2f} ({ranges[n] / total:.0%})" if n in ranges else "–" for n in names
        ]
        rows.append([name, f"{total:.1f}", *cells, f"[{row['trace']}]({row['trace']})"])
    columns = ["", "iteration [ms]", *(f"{name} [ms]" for name in names), "trace"]
    return (
        "Three iterations of a short training with the package's own `--profile`; time on the CPU "
        "by named range, in ms per iteration and share. `update` is forward, backward and "
        "optimiser in one compiled call (PPO on the CPU); DDPG has them apart.\n\n"
        f"{table(columns, rows)}\n\n"
        "To look at a trace: open https://ui.perfetto.dev (or `chrome://tracing`), choose *Open "
        "trace file* and the `.trace.json`; the ranges lie above the operators of their thread. "
        "TensorBoard's trace view is deprecated and not needed. Beside each trace is the "
        "`.profile.txt` with the operators."
    )


def _loading_text(loading: Mapping[str, Row], overlap: Mapping[str, Row]) -> str:
    rows = [
        [
            name,
            spread(summary(row["wait_ms"]), ",.1f"),
            spread(summary(row["learn_ms"]), ",.1f"),
            f"{row['share']:.1%}",
            f"{row['batches_per_s']:.2f}",
        ]
        for name, row in loading.items()
    ]
    columns = ["batches from", "wait [ms]", "learn [ms]", "share of waiting", "batches/s"]
    of_ppo = [
        [name, f"{row['share']:.1%}", spread(summary(row["rates"]))]
        for name, row in overlap.items()
    ]
    return (
        f"A small network learns the rewards of {ENV_ID} from batches of {NUM_ENVS * NUM_STEPS:,} "
        "transitions, 60 gradient steps on each. Loading is playing the environment: by gymnasium "
        "in the loop, by gymnasium in a DataLoader's worker process (`num_workers=1`, an "
        "IterableDataset whose workers differ by `get_worker_info`), by the pool in the loop, and "
        "by the pool in the Collector's thread, which needs no other process because the pool runs "
        "without the interpreter's lock. Median [quartiles] per batch.\n\n"
        f"{table(columns, rows)}\n\n"
        f"PPO on {ENV_ID} itself, collecting in the foreground and with `--overlap`; both with all "
        "CPUs. Median [quartiles].\n\n"
        f"{table(['PPO', 'share of waiting', 'steps/s'], of_ppo)}"
    )


def _profiler_text(stale: Row, overhead: Row) -> str:
    rows = [[name, spread(summary(values), ".2f")] for name, values in overhead["ms"].items()]
    tried = "runs" if stale["works"] else f"raises `TypeError: {stale['error']}`"
    return (
        "`torch.autograd.profiler.profile(activities=…, on_trace_ready=…)`, as printed, "
        f"{tried}. Ten gradient steps of a small network by what `torch.profiler.profile` records, "
        "each in turn, starting and stopping the profiler not counted:\n\n"
        f"{table(['recorded', 'ms, median [quartiles]'], rows)}"
    )


def _allocator_text(memory: Mapping[str, Row]) -> str:
    rows: list[list[object]] = []
    for name, row in memory.items():
        if "skipped" in row:
            rows.append([name, *([NEEDS_CUDA] * 4)])
            continue
        line = row["reserved_mib"]
        out = row.get("out_of_memory_at_step")
        low, high = (f"{bound(line):,.0f}" for bound in (min, max)) if line else ("–", "–")
        note = "" if out is None else f" (out of memory at step {out})"
        rows.append([name, f"{low} to {high}{note}", changes(line), row["frees"], row["retries"]])
    columns = ["lengths", "reserved [MiB]", "changes", "blocks freed", "retries"]
    return (
        "Training steps on sequences of up to 2,048, of one length and of random ones, in a "
        "process that may use a third more memory than the fixed lengths need; and iterations of "
        f"our PPO (`--device sample-cpu`).\n\n{table(columns, rows)}"
    )


# ---- pictures ------------------------------------------------------------------------------------

_RANGES_CAPTION = (
    "Where an iteration's time goes, by named range, as shares of the iteration (CPU time of three "
    "profiled iterations)."
)
_LOADING_CAPTION = (
    "Time per batch: waiting for data and learning. Bars are medians, error bars the quartiles of "
    "each part."
)
_ALLOCATOR_CAPTION = (
    "What PyTorch's caching allocator has reserved (lines) and the steps' peak of what was "
    "allocated (thin, dotted)."
)


def draw_ranges(traces: Mapping[str, Row]) -> Figure:
    """Stacked shares, one bar per trainer that was measured."""
    from matplotlib import pyplot

    measured = {name: row for name, row in traces.items() if "skipped" not in row}
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.8 * len(measured)))
    names = (*SPANS, "the rest")
    for i, row in enumerate(measured.values()):
        left = 0.0
        for k, name in enumerate(names):
            share = 100.0 * row["ranges_ms"].get(name, 0.0) / row["iteration_ms"]
            if share <= 0.0:
                continue
            colour = COLOURS[k] if k < len(COLOURS) else "0.75"
            axes.barh(i, share, left=left, color=colour, height=0.5)
            if share >= 7.0:
                axes.text(
                    left + share / 2, i, f"{name}\n{share:.0f} %", ha="center", va="center",
                    fontsize=8, color="black" if k in (3, 4, 5, 6) else "white",
                )  # fmt: skip
            elif share >= 1.0:
                axes.text(
                    left + share / 2, i + 0.28, f"{name} {share:.0f} %", ha="center",
                    va="bottom", fontsize=7, color="0.2",
                )  # fmt: skip
            left += share
    labels = [f"{name}\n{row['iteration_ms']:.1f} ms" for name, row in measured.items()]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(-0.5, len(labels) - 0.35)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of an iteration [%]")
    axes.set_title("Where an iteration's time goes")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def draw_loading(loading: Mapping[str, Row]) -> Figure:
    """Waiting and learning per batch, stacked."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 3.6))
    reach = 0.0
    names = list(loading)[::-1]
    for i, row in enumerate(loading[name] for name in names):
        wait, learn = summary(row["wait_ms"]), summary(row["learn_ms"])
        left = 0.0
        for part, colour in ((wait, COLOURS[1]), (learn, COLOURS[0])):
            width = part["median"]
            axes.barh(i, width, left=left, color=colour, height=0.55)
            bars = [[max(width - part["q1"], 0.0)], [max(part["q3"] - width, 0.0)]]
            axes.errorbar(
                left + width, i, xerr=bars, color="black", capsize=3, elinewidth=1, linestyle=""
            )
            left += width
        end = left + learn["q3"] - learn["median"]
        axes.annotate(
            f"waits {row['share']:.0%}", (end, i), xytext=(7, 0), textcoords="offset points",
            va="center", fontsize=9,
        )  # fmt: skip
        reach = max(reach, end)
    axes.set_yticks(range(len(loading)), names)
    axes.set_xlim(0, 1.15 * reach)
    axes.set_xlabel("time per batch [ms]")
    axes.set_title("Data loading in the foreground and in the background", loc="left", pad=24)
    for text, x, part_colour in (("waiting for data", 0.0, 1), ("learning", 0.27, 0)):
        axes.text(
            x, 1.03, text, transform=axes.transAxes, color=COLOURS[part_colour], fontweight="bold"
        )
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def draw_allocator(memory: Mapping[str, Row]) -> Figure:
    """Reserved and allocated memory over steps."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.5, 4.6))
    words = {"fixed": "fixed lengths", "variable": "variable lengths", "ours": "our PPO"}
    for (name, row), colour in zip(memory.items(), COLOURS, strict=False):
        reserved, allocated = row["reserved_mib"], row["allocated_mib"]
        steps = range(1, len(reserved) + 1)
        axes.plot(steps, reserved, color=colour, linewidth=1.6)
        axes.plot(steps, allocated, color=colour, linewidth=0.8, linestyle=":")
        if reserved:
            axes.annotate(
                words.get(name, name), (len(reserved), reserved[-1]), xytext=(6, 0),
                textcoords="offset points", color=colour, va="center", fontsize=9,
            )  # fmt: skip
    axes.set_ylim(0, None)
    axes.set_xlabel("training step (our PPO: iteration)")
    axes.set_ylabel("memory of the device [MiB]")
    axes.set_title("Reserved by the caching allocator; dotted: a step's peak of allocated")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3, linewidth=0.6)
    figure.tight_layout()
    return figure
