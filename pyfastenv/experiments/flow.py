"""The experiment ``flow``: why model-based training with a flow took 14.4 s per step.

An ablation: the program as the document describes it (:mod:`pyfastenv.experiments.list_mbpo`) with
all its habits, one habit dropped after the other, then :mod:`pyfastenv.algorithms.mbpo`. What a
step costs is added up from its parts, each measured by itself: most of them fall due only every 250
or 1,000 steps.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch

from pyfastenv.algorithms.mbpo import MBPO, Config
from pyfastenv.experiments import measure
from pyfastenv.experiments.list_mbpo import Batch, Habits, ListMBPO, PlainEnv
from pyfastenv.experiments.study import Row, Study, spread, table
from pyfastenv.learners.sac_learner import METRICS, SACLearner, SACOptions
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.plots import COLOURS
from pyfastenv.vector.cpus import available_cpus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENV_ID = "Hopper-v5"
DOCUMENT_MS = 14_400.0  # 12 hours for 3,000 steps on a V100
DOCUMENT_STEPS = 3_000
UPDATES = 20  # of SAC per environment step
EPOCHS = 30  # of a fit: a warm start on 5,000 to 6,000 transitions takes 25 to 35
MODEL_EVERY = 250  # environment steps between fits and rollouts of the model …
ROLLOUT_STATES = 100_000  # … from so many states
FLOW_EVERY = 1_000  # environment steps between updates of the flow
AGENT_EVERY, AGENT_UPDATES = 250, 200  # the agent that improves the model
FLOW_BATCHES = (100, 256, 500)
MODEL_EVERIES = (250, 500, 1_000)
QUICK_THREADS = 1  # of torch; in the full version as many as there are CPUs

MATTERS = 1.1  # a remedy matters if it is faster by at least this factor
PARTS = (
    "environment step",
    "20 SAC updates",
    "rollout at every step",
    "fits of the model",
    "rollouts of the model",
    "updates of the flow",
    "agent that improves the model",
)
_PART_COLOURS = ("#999999", *COLOURS)

SLOWEST = "the document's style"
# each adds to those before it
REMEDIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("anomaly mode off", {"anomaly_mode": False}),
    ("no prints", {"prints": False}),
    ("no .item() in updates", {"items_per_update": False}),
    ("arrays instead of lists", {"list_pools": False}),
    ("prediction without gradients, in one piece", {"gradients_on": False, "chunk_size": 0}),
    ("no rollout at every step", {"auxiliary_rollout": False}),
    ("AMP (bfloat16 autocast)", {"amp": True}),
)
FLOAT32, AMP = "pyfastenv, float32", "pyfastenv, --amp"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of each part is run; costs are scaled up to the document's sizes."""

    rounds: int
    steps: int  # of the environment
    updates: int  # of SAC
    epochs: int  # of a fit
    rollout_states: int
    agent_updates: int
    real: int = 5_000  # transitions that the pool of real ones has


QUICK = Sizes(rounds=3, steps=5, updates=8, epochs=1, rollout_states=5_000, agent_updates=2)
FULL = Sizes(rounds=5, steps=50, updates=100, epochs=3, rollout_states=100_000, agent_updates=20)


def chain() -> dict[str, Habits]:
    """The slow programs in order, from the document's to the one without its habits."""
    habits = Habits()
    programs = {SLOWEST: habits}
    for name, changes in REMEDIES:
        habits = replace(habits, **changes)
        programs[name] = habits
    return programs


def run(study: Study) -> Path:
    """Measures, draws and writes the report; returns its path."""
    sizes = QUICK if study.quick else FULL
    threads = torch.get_num_threads()
    torch.set_num_threads(QUICK_THREADS if study.quick else available_cpus())
    try:
        rounds = _ablation(study, sizes)
        batches = _flow_batches(study, sizes)
        cuda = _on_cuda(study, sizes)
        totals = {
            name: [sum(row[p] for p in PARTS) for row in rows] for name, rows in rounds.items()
        }
        parts = {name: _medians(rows) for name, rows in rounds.items()}
        study.picture("ablation", _draw(totals, parts), _CAPTION)
        text = _text(sizes, torch.get_num_threads())
        return study.report(
            "Model-based training with a flow: where 14.4 s per step went",
            [
                ("One remedy at a time", _chain_table(totals) + "\n\n" + text),
                ("Where the time goes", _parts_table(parts)),
                ("Call frequency and the flow's batch size", _side_tables(parts, batches)),
                ("What needs a GPU", _cuda_table(cuda)),
            ],
            verdict(totals, parts, batches, gpu=study.has_cuda, quick=study.quick),
        )
    finally:
        torch.set_num_threads(threads)


# ---- measuring -----------------------------------------------------------------------------------


def _ablation(study: Study, sizes: Sizes) -> dict[str, list[Row]]:
    """Each program's rounds: milliseconds per environment step, part by part."""
    with _Programs(sizes) as programs:
        runs: dict[str, Callable[[], Row]] = {
            name: partial(programs.slow_parts, habits) for name, habits in chain().items()
        }
        runs[FLOAT32] = partial(programs.our_parts, amp=False)
        runs[AMP] = partial(programs.our_parts, amp=True)
        names = list(runs)
        rounds: dict[str, list[Row]] = {name: [] for name in names}
        for r in range(sizes.rounds):
            for name in names[r:] + names[:r]:  # a drifting machine favours no one
                rounds[name].append(study.measure(f"round {r + 1}: {name}", runs[name]))
    return rounds


def _flow_batches(study: Study, sizes: Sizes) -> dict[str, dict[int, Row]]:
    """What an update of the flow takes at each batch size, in milliseconds."""
    result: dict[str, dict[int, Row]] = {SLOWEST: {}, AMP: {}}
    with _Programs(sizes) as programs:
        for size in FLOW_BATCHES:
            for name, call in (
                (SLOWEST, programs.slow_flow_updates),
                (AMP, programs.our_flow_updates),
            ):
                key = f"flow batch {size}: {name}"
                result[name][size] = study.measure(key, partial(call, size))
    return result


class _Programs:
    """Builds the programs, warm and with data, and takes the time of their parts."""

    def __init__(self, sizes: Sizes):
        self._sizes = sizes
        self._log: IO[str] = tempfile.TemporaryFile("w")  # noqa: SIM115
        self._env: PlainEnv | None = None
        self._real: Batch | None = None

    def __enter__(self) -> _Programs:
        return self

    def __exit__(self, *exception: object) -> None:
        self._log.close()
        if self._env is not None:
            self._env.close()

    def _say(self, text: str) -> None:
        print(text, file=self._log, flush=True)

    def _slow(self, habits: Habits) -> ListMBPO:
        for seed in (torch.manual_seed, np.random.seed, random.seed):
            seed(0)
        if self._env is None:
            self._env = PlainEnv(ENV_ID, 0)
        program = ListMBPO(self._env, habits, flow=True, say=self._say)
        if self._real is None:
            program.explore(self._sizes.real)
            self._real = program.env_pool.all()
        else:
            program.env_pool.push(*self._real)
        return program

    def slow_parts(self, habits: Habits) -> Row:
        """Milliseconds per environment step of a program with these habits."""
        sizes = self._sizes
        program = self._slow(habits)
        real, states = program.env_pool.all(), sizes.rollout_states
        with program.checked():
            program.roll_out(1_000, 1, program.model_pool)  # warms up
            program.learn(2)
            program.improve_model(1)
            fit = _ms(lambda: program.model.fit(real, max_epochs=sizes.epochs))
            row = {
                "rollouts of the model": _ms(
                    lambda: program.roll_out(states, 1, program.model_pool)
                ),
                "environment step": _ms(lambda: _repeat(program.step, sizes.steps)),
                "20 SAC updates": _ms(lambda: program.learn(sizes.updates)),
                "rollout at every step": 0.0,
                "updates of the flow": _ms(program.update_flow),
                "agent that improves the model": _ms(
                    lambda: program.improve_model(sizes.agent_updates)
                ),
                "fits of the model": fit,
            }
            if habits.auxiliary_rollout:
                row["rollout at every step"] = _ms(program.roll_out_aside)
        return per_step(row, sizes, updates=sizes.updates)

    def slow_flow_updates(self, batch_size: int) -> Row:
        """Of the document's style: milliseconds of an update of ten gradient steps."""
        program = self._slow(Habits(flow_batch_size=batch_size))
        with program.checked():
            program.update_flow()
            return {"ms": [_ms(program.update_flow) for _ in range(self._sizes.rounds)]}

    def our_parts(self, *, amp: bool, device: str = "cpu") -> Row:
        """Milliseconds per environment step of pyfastenv's program."""
        sizes = self._sizes
        updates = max(sizes.updates, UPDATES)
        with self._ours(device=device, amp=amp, model_agent_updates=sizes.agent_updates) as mbpo:
            options = mbpo.model.options
            mbpo.model.options = replace(options, max_epochs=sizes.epochs)
            for _ in range(1 if device == "cpu" else 5):  # warms up; a CUDA graph needs a few
                mbpo._roll_out(1_000, 1, mbpo.model_pool)
                mbpo._learn(UPDATES)
                mbpo._improve_model({})
            parts = {
                "fits of the model": lambda: mbpo._fit_model({}),
                "rollouts of the model": lambda: mbpo._roll_out(
                    sizes.rollout_states, 1, mbpo.model_pool
                ),
                "environment step": lambda: _repeat(partial(_our_step, mbpo), sizes.steps),
                "20 SAC updates": lambda: _repeat(
                    partial(mbpo._learn, UPDATES), updates // UPDATES
                ),
                "updates of the flow": lambda: mbpo._update_flow({}),
                "agent that improves the model": lambda: mbpo._improve_model({}),
            }
            row = {name: _ms(part) for name, part in parts.items()}
        row["rollout at every step"] = 0.0
        return per_step(row, sizes, updates=updates // UPDATES * UPDATES)

    def our_flow_updates(self, batch_size: int) -> Row:
        """Of pyfastenv: milliseconds of an update of ten gradient steps."""
        with self._ours(amp=True, flow_batch_size=batch_size) as mbpo:
            mbpo._update_flow({})
            return {"ms": [_ms(lambda: mbpo._update_flow({})) for _ in range(self._sizes.rounds)]}

    @contextmanager
    def _ours(self, **options: Any) -> Iterator[MBPO]:
        threads = torch.get_num_threads()
        fields = {
            "flow_batch_size": Habits().flow_batch_size,
            "learning_starts": self._sizes.real,
            "rollout_schedule": (20, 150, 1, 1),  # the pool need not have room for longer ones
            "num_threads": threads,
            "torch_threads": threads,
        }
        torch.manual_seed(0)
        mbpo = MBPO(Config.preset(ENV_ID, dynamics="flow", **(fields | options)))
        try:
            mbpo.iterate()  # explores
            yield mbpo
        finally:
            mbpo.envs.close()


def per_step(parts_ms: Mapping[str, float], sizes: Sizes, *, updates: int) -> Row:
    """What each part costs per environment step at the document's sizes and frequencies, in ms.

    Args:
        parts_ms: What the parts took.
        sizes: How much of them was run.
        updates: SAC's gradient steps that were run.
    """
    weights = {
        "environment step": 1 / sizes.steps,
        "20 SAC updates": UPDATES / updates,
        "rollout at every step": 1.0,
        "fits of the model": EPOCHS / sizes.epochs / MODEL_EVERY,
        "rollouts of the model": ROLLOUT_STATES / sizes.rollout_states / MODEL_EVERY,
        "updates of the flow": 1 / FLOW_EVERY,
        "agent that improves the model": AGENT_UPDATES / sizes.agent_updates / AGENT_EVERY,
    }
    return {part: parts_ms[part] * weights[part] for part in PARTS}


def _our_step(mbpo: MBPO) -> None:
    rows = mbpo.collector.follow(mbpo.learner.policy_spec(), 1)
    mbpo.env_pool.add(rows.to(mbpo.device))


def _repeat(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def _ms(call: Callable[[], object]) -> float:
    _synchronise()
    start = time.perf_counter()
    call()
    _synchronise()
    return 1e3 * (time.perf_counter() - start)


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


# ---- what only a GPU can show --------------------------------------------------------------------


def _on_cuda(study: Study, sizes: Sizes) -> dict[str, Row]:
    """Rows beside the chain, each ``{"ms": …}`` per environment step, or why not."""
    calls: dict[str, Callable[[], Row]] = {
        "five pageable copies per update": partial(_copies, "pageable", sizes),
        "five pinned, non-blocking copies per update": partial(_copies, "pinned", sizes),
        "batches drawn on the GPU": partial(_copies, "none", sizes),
        "20 SAC updates without CUDA graph": partial(_cuda_updates, sizes, graph=False),
        "20 SAC updates as CUDA graph": partial(_cuda_updates, sizes, graph=True),
        "everything, pyfastenv, float32": partial(_all_on_cuda, sizes, amp=False),
        "everything, pyfastenv, --amp": partial(_all_on_cuda, sizes, amp=True),
    }
    return {
        name: study.measure(f"CUDA: {name}", call, needs_cuda=True) for name, call in calls.items()
    }


def _copies(kind: str, sizes: Sizes) -> Row:
    layout = RowLayout(11, 3)  # Hopper's
    widths = (layout.obs_size, layout.action_size, 1, layout.obs_size, 1)
    host = [torch.randn(256, width) for width in widths]
    if kind == "pinned":
        host = [field.pin_memory() for field in host]
    pool = torch.randn(100_000, layout.width, device="cuda")

    def step() -> None:
        for _ in range(UPDATES):
            if kind == "none":
                pool[torch.randint(len(pool), (256,), device="cuda")]
            else:
                for field in host:
                    field.to("cuda", non_blocking=kind == "pinned")

    step()
    return {"ms": [_ms(step) for _ in range(5 * sizes.rounds)]}


def _cuda_updates(sizes: Sizes, *, graph: bool) -> Row:
    learner = SACLearner(RowLayout(11, 3), [0], SACOptions(), "cuda")
    rows = torch.randn(UPDATES, 1, 256, learner.layout.width, device="cuda")
    noise = torch.randn(UPDATES, 1, *learner.noise_shape(256), device="cuda")
    metrics = torch.zeros(len(METRICS), 1, device="cuda")

    def step() -> None:
        if graph:
            learner.run(rows, noise, metrics)
            return
        for i in range(UPDATES):
            learner.update(rows[i], noise[i])

    _repeat(step, 5)  # warms up and captures
    return {"ms": [_ms(step) for _ in range(5 * sizes.rounds)]}


def _all_on_cuda(sizes: Sizes, *, amp: bool) -> Row:
    with _Programs(sizes) as programs:
        rows = [programs.our_parts(amp=amp, device="cuda") for _ in range(sizes.rounds)]
    return {"ms": [sum(row[part] for part in PARTS) for row in rows]}


# ---- the report ----------------------------------------------------------------------------------


def _medians(rows: Sequence[Row]) -> dict[str, float]:
    return {part: measure.summary([row[part] for row in rows])["median"] for part in PARTS}


def judge(factor: measure.Summary) -> str:
    """In a word, what quartiles of a factor say of a remedy."""
    if factor["q1"] > 1.0 and factor["median"] >= MATTERS:
        return "matters"
    if factor["q3"] < 1.0 and factor["median"] <= 1 / MATTERS:
        return "slower"
    return "does not matter"


def factors(totals: Mapping[str, Sequence[float]]) -> dict[str, measure.Summary]:
    """How many times faster each program is than the one before it, round by round."""
    names = list(totals)
    return {
        name: measure.ratio(totals[before], totals[name])
        for before, name in itertools.pairwise(names)
    }


def _chain_table(totals: Mapping[str, Sequence[float]]) -> str:
    steps = factors(totals)
    slowest = totals[SLOWEST]
    rows: list[Sequence[object]] = [
        ["the document, on a V100", f"{DOCUMENT_MS:,.0f}", "", "", "", "12 h", ""]
    ]
    before = slowest
    for name, values in totals.items():
        now = measure.summary(values)
        cells = ["", "", "1", ""]
        if name != SLOWEST:
            thirds = zip(before, values, slowest, strict=True)
            saved = measure.summary([(a - b) / c for a, b, c in thirds])["median"]
            since = f"{measure.ratio(slowest, values)['median']:,.1f}"
            cells = [spread(steps[name], ".2f"), f"{saved:.1%}", since, judge(steps[name])]
        duration = _duration(now["median"] * DOCUMENT_STEPS / 1e3)
        rows.append([_label(name), spread(now, ",.1f"), *cells[:3], duration, cells[3]])
        before = values
    columns = ["", "ms per step", "times faster than the row above", "saved, of the first row"]
    columns += ["times faster than the first row", f"{DOCUMENT_STEPS:,} steps", ""]
    return table(columns, rows)


def _label(name: str) -> str:
    return name if name in (SLOWEST, FLOAT32, AMP) else f"+ {name}"


def _parts_table(parts: Mapping[str, Mapping[str, float]]) -> str:
    rows = [[name, *(_number(row[part]) for part in PARTS)] for name, row in parts.items()]
    return "Milliseconds per environment step, medians.\n\n" + table(["", *PARTS], rows)


def _side_tables(
    parts: Mapping[str, Mapping[str, float]], batches: Mapping[str, Mapping[int, Row]]
) -> str:
    often = [
        [name, *(f"{_at_frequency(parts[name], every):,.1f}" for every in MODEL_EVERIES)]
        for name in (SLOWEST, REMEDIES[0][0], REMEDIES[-1][0], FLOAT32, AMP)
    ]
    sizes = [
        [name, *(spread(measure.summary(row["ms"]), ",.1f") for row in by_size.values())]
        for name, by_size in batches.items()
    ]
    return "\n\n".join(
        [
            "Fitting the model and rolling it out less often, ms per environment step, computed "
            "from the parts above (less often is another algorithm, not a faster one):",
            table(["", *(f"every {every:,}" for every in MODEL_EVERIES)], often),
            f"An update of the flow (10 gradient steps, due every {FLOW_EVERY:,} environment "
            "steps), its fresh rollout included, in ms; divide by 1,000 for its share of a step:",
            table(["", *(f"batch {size}" for size in FLOW_BATCHES)], sizes),
        ]
    )


def _at_frequency(parts: Mapping[str, float], every: int) -> float:
    """Milliseconds per step if fits and rollouts came every so many steps."""
    rare = parts["fits of the model"] + parts["rollouts of the model"]
    return sum(parts.values()) - rare + rare * MODEL_EVERY / every


def _cuda_table(rows: Mapping[str, Row]) -> str:
    cells = [
        [name, row["skipped"] if "skipped" in row else spread(measure.summary(row["ms"]), ",.2f")]
        for name, row in rows.items()
    ]
    return "Milliseconds per environment step.\n\n" + table(["", "ms"], cells)


def _text(sizes: Sizes, threads: int) -> str:
    return (
        f"Medians [quartiles] of {sizes.rounds} rounds in which the programs take turns; factors "
        f"are compared within a round. {ENV_ID}, {threads} torch thread(s), SAC's batch 256, "
        f"the flow's {Habits().flow_batch_size}. Prints go to a file, each flushed. A step is "
        f"added up from its parts: {UPDATES} updates (from {sizes.updates}), an epoch of the "
        f"model's fit (from {sizes.epochs}) times {EPOCHS} and a rollout of {ROLLOUT_STATES:,} "
        f"states (from {sizes.rollout_states:,}), both every {MODEL_EVERY} steps, an update of the "
        f"flow every {FLOW_EVERY:,}, {AGENT_UPDATES} updates of its agent (from "
        f"{sizes.agent_updates}) every {AGENT_EVERY}. {EPOCHS} epochs are a fit that goes on from "
        "the last one; the very first takes some hundreds, in every program, and so do others "
        "while there is little data: a whole run takes longer (`make bench-mbpo`). The saving of a "
        "remedy depends on the ones before it: a share of what is left.\n\n"
        "The chain runs on the processor. Copies between host and GPU do not exist there, so "
        "per-step and pinned copies have rows of their own below. Not measured: `torch.compile` "
        "(pyfastenv writes its gradients out and compiles the step ahead of time instead), DDP, "
        "pruning and quantisation."
    )


def verdict(
    totals: Mapping[str, Sequence[float]],
    parts: Mapping[str, Mapping[str, float]],
    batches: Mapping[str, Mapping[int, Row]],
    *,
    gpu: bool,
    quick: bool,
) -> str:
    """What the numbers say of the document's claims, and what to do."""
    medians = {name: measure.summary(values)["median"] for name, values in totals.items()}
    best = min((FLOAT32, AMP), key=medians.__getitem__)
    steps = factors(totals)
    whole = measure.ratio(totals[SLOWEST], totals[best])
    ours = measure.ratio(totals[REMEDIES[-1][0]], totals[best])
    by_word: dict[str, list[str]] = {"matters": [], "does not matter": [], "slower": []}
    for name in sorted(dict(REMEDIES), key=lambda name: -steps[name]["median"]):
        by_word[judge(steps[name])].append(f"{name} (×{steps[name]['median']:.2f})")
    slow = parts[SLOWEST]
    shares = {part: slow[part] / sum(slow.values()) for part in PARTS}
    first = max(PARTS, key=shares.__getitem__)
    flow = {size: measure.summary(row["ms"])["median"] for size, row in batches[SLOWEST].items()}
    flow_share = max(flow.values()) / FLOW_EVERY / medians[SLOWEST]
    rare = 1 - _at_frequency(slow, MODEL_EVERIES[-1]) / sum(slow.values())
    last = REMEDIES[-1][0]
    anomaly = steps[REMEDIES[0][0]]
    lines = [
        f"- **The same algorithm takes {medians[best]:,.1f} ms per step instead of "
        f"{medians[SLOWEST]:,.0f} ms: {spread(whole, ',.1f')} times faster** on this machine "
        f"({best}). At that rate the document's {DOCUMENT_STEPS:,} steps take "
        f"{_duration(medians[best] * DOCUMENT_STEPS / 1e3)}; its author waited 12 hours on a V100 "
        f"({DOCUMENT_MS:,.0f} ms per step, another machine: the factors are comparable, the "
        "milliseconds are not).",
        f"- **Where the time goes** in the document's style: {first} take {shares[first]:.0%} of a "
        f"step, the rollout at every step {shares['rollout at every step']:.0%}, fits of the model "
        f"{shares['fits of the model']:.0%}, the agent that improves the model "
        f"{shares['agent that improves the model']:.0%}.",
        f"- **Remedies that matter**, each after the ones before it: "
        f"{_listed(by_word['matters'])}.",
        f"- **Remedies that do not matter** (below ×{MATTERS}, or within the noise): "
        f"{_listed(by_word['does not matter'])}.",
    ]
    if by_word["slower"]:
        lines.append(f"- **Remedies that make it slower**: {_listed(by_word['slower'])}.")
    if flow_share < 0.02:
        lines.append(
            f"- **The flow is not the problem**: its updates are at most {flow_share:.2%} of a "
            "step. The document's author saw rightly that a batch of 100, 256 or 500 changes "
            "little; larger batches are no remedy."
        )
    else:
        lines.append(
            f"- The flow's updates are up to {flow_share:.0%} of a step: its batch size counts, "
            "other than the document says."
        )
    lines += [
        f"- **Calling the model less often** (every {MODEL_EVERIES[-1]:,} steps, not "
        f"{MODEL_EVERY}) saves {rare:.0%} in the document's style, and changes the algorithm.",
        f"- All remedies together leave {medians[last]:,.0f} ms. Another factor of "
        f"{spread(ours, '.1f')} is in how the arithmetic is done: pools as tensors, gradients "
        "written out, each row predicted by one elite only, and with `--amp`, on a processor with "
        "a matrix unit, compiled training steps.",
        f"- The document does not name anomaly mode, left on in the public program: "
        f"×{anomaly['median']:.2f} here, one line to remove. It alone does not explain 14.4 s."
        if medians[SLOWEST] < DOCUMENT_MS / 2
        else f"- The document does not name anomaly mode: ×{anomaly['median']:.2f}.",
        "- **What to do**: `pyfastenv train mbpo --dynamics flow --amp`. In a program of one's "
        f"own: profile first; then {_listed(by_word['matters'])}.",
    ]
    if not gpu:
        lines.append(
            "- Not shown here: copies to a GPU (per step, pinned) and CUDA graphs; this machine "
            "has no GPU. On a processor `.item()` has nothing to wait for; on a GPU it "
            "waits for everything before it."
        )
    if quick:
        lines.append(
            "- This is the quick version: blocks of a fraction of a second, on a machine that may "
            "be busy. It tells factors of 1.2 and more; smaller ones are for `--full`."
        )
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names) if names else "none"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3_600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _number(ms: float) -> str:
    return "–" if ms == 0.0 else f"{ms:,.3g}" if ms < 100 else f"{ms:,.0f}"


# ---- the picture ---------------------------------------------------------------------------------

_CAPTION = (
    "Left: milliseconds per environment step, logarithmic; each row adds one remedy to the row "
    "above it and is so many times (×) faster, bold if that matters; error bars are quartiles over "
    "rounds. Right: what a step consists of (medians)."
)


def _draw(
    totals: Mapping[str, Sequence[float]], parts: Mapping[str, Mapping[str, float]]
) -> Figure:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(13, 6), sharey=True, width_ratios=(1.15, 1), layout="constrained"
    )
    _draw_totals(left, totals)
    _draw_shares(right, parts)
    names = [_label(name) for name in totals]
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    return figure


def _draw_totals(axes: Axes, totals: Mapping[str, Sequence[float]]) -> None:
    steps = factors(totals)
    summaries = [measure.summary(values) for values in totals.values()]
    for i, (name, each) in enumerate(zip(totals, summaries, strict=True)):
        middle = each["median"]
        colour = COLOURS[0] if name in (FLOAT32, AMP) else COLOURS[1]
        axes.errorbar(
            middle, i, xerr=[[middle - each["q1"]], [each["q3"] - middle]], fmt="o",
            color=colour, capsize=3, markersize=7,
        )  # fmt: skip
        factor = f"   ×{steps[name]['median']:.2f}" if name in steps else ""
        axes.annotate(
            f"{middle:,.0f} ms{factor}" if middle >= 100 else f"{middle:,.1f} ms{factor}",
            (each["q3"], i), xytext=(9, 0), textcoords="offset points", va="center", color=colour,
            fontweight="bold" if name in steps and judge(steps[name]) == "matters" else "normal",
        )  # fmt: skip
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.5, max(high * 6, DOCUMENT_MS * 1.3))
    axes.axvline(DOCUMENT_MS, color="#666666", linestyle="--", linewidth=1)
    axes.annotate(
        "the document:\n14.4 s (V100)", (DOCUMENT_MS, len(totals) - 1), xytext=(-6, 0),
        textcoords="offset points", ha="right", va="center", color="#444444", fontsize=9,
    )  # fmt: skip
    axes.set_xlabel("ms per environment step")
    axes.set_title("One remedy at a time", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)


def _draw_shares(axes: Axes, parts: Mapping[str, Mapping[str, float]]) -> None:
    for i, row in enumerate(parts.values()):
        start, whole = 0.0, sum(row.values())
        for part, colour in zip(PARTS, _PART_COLOURS, strict=True):
            share = 100 * row[part] / whole
            axes.barh(
                i, share, left=start, color=colour, height=0.7, edgecolor="white",
                linewidth=0.8, label=part if i == 0 else None,
            )  # fmt: skip
            if share >= 8:
                axes.text(
                    start + share / 2, i, f"{_number(row[part])} ms" if share > 13 else
                    _number(row[part]), ha="center", va="center", fontsize=8,
                    color="white" if colour in COLOURS[:3] else "black",
                )  # fmt: skip
            start += share
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of a step")
    axes.set_title("What it consists of", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(ncols=3, loc="upper left", bbox_to_anchor=(-0.03, -0.12), frameon=False, fontsize=8)
