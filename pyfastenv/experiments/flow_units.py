"""Single remedies of document 000, each by itself: milliseconds before and after.

A unit is a function of ``quick`` that yields calls by variant, once, and frees after that what they
need; the first variant is the one before the remedy.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import prune

from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.algorithms.sac.spec import METRICS, SACLearner, SACOptions
from pyfastenv.experiments.baselines.plain import descend
from pyfastenv.experiments.baselines.plain_learners import Habits, PlainEnsemble, PlainSAC
from pyfastenv.experiments.baselines.pools import ArrayPool, Batch, ListPool
from pyfastenv.experiments.clock import milliseconds
from pyfastenv.experiments.study import Row
from pyfastenv.nn.flows import CoupledFlow, donsker_varadhan_loss
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import ReplayPool, RowLayout

Call = Callable[[], object]
Calls = Iterator[dict[str, Call]]

LAYOUT = RowLayout(11, 3)  # Hopper's
FAST = Habits(anomaly_mode=False, gradients_on=False, items_per_update=False)


def measure(unit: Callable[[bool], Calls], quick: bool) -> Row:
    """Times of each variant's calls [ms]; ``, each`` in its name: of one of the six in a call."""
    ms = {}
    for calls in unit(quick):
        for name, call in calls.items():
            times = milliseconds(call, repeats=2 if quick else 7)
            ms[name] = [x / 6 for x in times] if name.endswith(", each") else times
    return {"ms": ms}


def _rows(quick: bool) -> int:
    """The number of rows of a rollout."""
    return 2_000 if quick else 100_000


def _batch(count: int) -> Batch:
    rng = np.random.default_rng(0)
    obs, next_obs = rng.normal(size=(2, count, 11)).astype(np.float32)
    actions = rng.uniform(-1, 1, (count, 3)).astype(np.float32)
    ones = np.ones(count, np.float32)
    return obs, actions, ones, next_obs, ones


def file_io(quick: bool) -> Calls:
    """A line of a log per environment step."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "kept").open("w") as kept:

        def reopened() -> None:
            with (Path(folder) / "log").open("a") as file:
                file.write("1\t2.0\n")

        yield {
            "opened for each line": reopened,
            "kept open, flushed": lambda: print("1\t2.0", file=kept, flush=True),
            "kept open": lambda: print("1\t2.0", file=kept),
        }


def pool_push(quick: bool) -> Calls:
    """A rollout's transitions into the model's pool."""
    count = _rows(quick)
    batch, rows = _batch(count), torch.randn(1, count, LAYOUT.width)
    ours = ReplayPool(1, count, LAYOUT.width, torch.device("cpu"))
    yield {
        "list of tuples": partial(ListPool(count).push, *batch),
        "arrays": partial(ArrayPool(count).push, *batch),
        "one tensor (ours)": lambda: ours.add(rows),
    }


def pool_sample(quick: bool) -> Calls:
    """A minibatch of 256 out of a full pool."""
    count = _rows(quick)
    ours = ReplayPool(1, count, LAYOUT.width, torch.device("cpu"))
    ours.add(torch.randn(1, count, LAYOUT.width))
    streams, pools = SeedStreams([0]), (ListPool(count), ArrayPool(count))
    for pool in pools:
        pool.push(*_batch(count))
    yield {
        "list of tuples": partial(pools[0].sample, 256),
        "arrays": partial(pools[1].sample, 256),
        "one tensor (ours)": lambda: ours.draw(streams.uniform(256)),
    }


def sac_batch(quick: bool) -> Calls:
    """An update of SAC by batch size, in the document's style without its habits, and ours."""
    agent, sizes = PlainSAC(11, 3, FAST), (256, 1_024, 4_096)
    plain: dict[str, Call] = {f"batch {n:,}": partial(agent.update, _batch(n)) for n in sizes}
    yield plain | {f"batch {n:,} (ours, bfloat16)": _sac_update(1, n) for n in sizes}


def _sac_update(num_seeds: int, size: int) -> Call:
    """A gradient step of ours."""
    options = SACOptions(bfloat16=True, num_threads=torch.get_num_threads())
    learner = SACLearner(LAYOUT, range(num_seeds), options)
    rows = torch.randn(1, num_seeds, size, LAYOUT.width)
    noise = torch.randn(1, num_seeds, *learner.noise_shape(size))
    metrics = torch.zeros(len(METRICS), num_seeds)
    return lambda: learner.run(rows, noise, metrics)


def flow_batch(quick: bool) -> Calls:
    """A gradient step of the flow, by batch size."""
    flow = CoupledFlow(15)
    optimizer = torch.optim.Adam(flow.parameters(), lr=3e-4)

    def step(samples: torch.Tensor) -> None:
        ratios = [flow.log_ratio(part).tanh() for part in samples.chunk(2)]
        descend(optimizer, donsker_varadhan_loss(*ratios).sum())

    yield {f"batch {n}": partial(step, torch.randn(2 * n, 15)) for n in (100, 256, 500)}


def prediction(quick: bool) -> Calls:
    """A rollout's prediction: with gradients or without, in chunks of 1,024 or in one piece."""
    obs, actions, *_ = _batch(_rows(quick))
    calls: dict[str, Call] = {}
    for on, gradients in ((True, "with gradients"), (False, "without gradients")):
        for size, chunks in ((1_024, "in chunks"), (0, "in one piece")):
            habits = Habits(anomaly_mode=False, gradients_on=on, chunk_size=size)
            model = PlainEnsemble(11, 3, habits)
            calls[f"{gradients}, {chunks}"] = partial(model.predict, obs, actions)
    ours = EnsembleDynamics(LAYOUT, [0], DynamicsOptions())
    pairs, noise = torch.randn(1, len(obs), 14), torch.randn(1, len(obs), 12)
    yield calls | {"one elite per row (ours)": lambda: ours.predict(pairs, noise)}


def preprocessing(quick: bool) -> Calls:
    """Standardising all real transitions anew for a fit, beside an epoch of it."""
    inputs = np.concatenate(_batch(6_000)[:2], 1)
    model, part = PlainEnsemble(11, 3, FAST), _batch(600 if quick else 6_000)
    yield {
        "standardised at each fit": lambda: (inputs - inputs.mean(0)) / inputs.std(0),
        "cached": lambda: None,
        "an epoch": lambda: model.fit(part, max_epochs=1),
    }


def pipelining(quick: bool) -> Calls:
    """An epoch of a fit and SAC's updates: one after the other, or in two threads."""
    model, agent = PlainEnsemble(11, 3, FAST), PlainSAC(11, 3, FAST)
    batch = _batch(256)
    fit = partial(model.fit, _batch(600 if quick else 6_000), max_epochs=1)

    def learn() -> None:
        for _ in range(5 if quick else 100):
            agent.update(batch)

    def side_by_side() -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(max(1, threads // 2))
        thread = threading.Thread(target=fit)
        thread.start()
        learn()
        thread.join()
        torch.set_num_threads(threads)

    def in_turn() -> None:
        fit()
        learn()

    yield {"one after the other": in_turn, "side by side": side_by_side}


def seeds(quick: bool) -> Calls:
    """An update of SAC of one training, and of six side by side."""
    yield {"one training": _sac_update(1, 256), "six side by side, each": _sac_update(6, 256)}


def smaller(quick: bool) -> Calls:
    """Predictions of a linear network's layers: pruned, quantised, narrower."""

    def network(width: int) -> torch.nn.Sequential:
        layers = [torch.nn.Linear(14, width), torch.nn.SiLU()]
        for _ in range(3):
            layers += [torch.nn.Linear(width, width), torch.nn.SiLU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(width, 24)).requires_grad_(False)

    plain, pruned, narrow, low = network(200), network(200), network(100), network(200).bfloat16()
    for layer in list(pruned)[::2]:
        prune.l1_unstructured(layer, "weight", 0.5)
        prune.remove(layer, "weight")
    x = torch.randn(2_000 if quick else 20_000, 14)
    yield {
        "as it is": lambda: plain(x),
        "half of the weights pruned": lambda: pruned(x),
        "bfloat16": lambda: low(x.bfloat16()),
        "half as wide": lambda: narrow(x),
    }


def copies(quick: bool) -> Calls:
    """The five arrays of an update to the GPU: pageable, pinned; and drawn there."""
    host = [torch.randn(256, width) for width in (11, 3, 1, 11, 1)]
    pinned = [field.pin_memory() for field in host]
    pool = torch.randn(100_000, LAYOUT.width, device="cuda")
    yield {
        "pageable": lambda: [field.to("cuda") for field in host],
        "pinned, non_blocking": lambda: [f.to("cuda", non_blocking=True) for f in pinned],
        "drawn on the GPU": lambda: pool[torch.randint(len(pool), (256,), device="cuda")],
    }


def graphs(quick: bool) -> Calls:
    """Twenty updates of SAC on the GPU, launched one by one and as a CUDA graph."""
    learner = SACLearner(LAYOUT, [0], SACOptions(), "cuda")
    rows = torch.randn(20, 1, 256, LAYOUT.width, device="cuda")
    noise = torch.randn(20, 1, *learner.noise_shape(256), device="cuda")
    metrics = torch.zeros(len(METRICS), 1, device="cuda")

    def one_by_one() -> None:
        for i in range(20):
            learner.choice.accelerator.update(rows[i], noise[i])

    yield {"one by one": one_by_one, "as a graph": lambda: learner.run(rows, noise, metrics)}


UNITS: dict[str, tuple[Callable[[bool], Calls], float]] = {  # and seconds they take
    "file I/O, a line": (file_io, 1),
    "push 100,000 transitions": (pool_push, 8),
    "sample 256 transitions": (pool_sample, 8),
    "an update of SAC": (sac_batch, 5),
    "a gradient step of the flow": (flow_batch, 2),
    "predict 100,000 transitions": (prediction, 40),
    "preprocessing for a fit": (preprocessing, 10),
    "fit and updates": (pipelining, 40),
    "trainings at once": (seeds, 3),
    "pruning and quantisation, 20,000 rows": (smaller, 5),
    "copies to the GPU": (copies, 20),
    "updates on the GPU": (graphs, 20),
}
CUDA_UNITS = ("copies to the GPU", "updates on the GPU")
