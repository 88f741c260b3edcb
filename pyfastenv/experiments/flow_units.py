"""What single remedies of document 000 change: before and after, each by itself, in milliseconds.

Each unit is a function of ``quick`` that returns ``{"ms": {variant: [times]}}``; the first variant
is the one before the remedy.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import prune

from pyfastenv.algorithms.sac import METRICS, SACLearner, SACOptions
from pyfastenv.experiments.baselines.plain_learners import Habits, PlainEnsemble, PlainSAC
from pyfastenv.experiments.baselines.pools import ArrayPool, Batch, ListPool
from pyfastenv.experiments.clock import milliseconds
from pyfastenv.experiments.study import Row
from pyfastenv.learners.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.nn.flows import CoupledFlow, donsker_varadhan_loss
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import ReplayPool, RowLayout

LAYOUT = RowLayout(11, 3)  # Hopper's
SMALL, LARGE = 2_000, 100_000  # rows in quick units and in others
FAST = Habits(anomaly_mode=False, gradients_on=False, items_per_update=False)


def _batch(count: int) -> Batch:
    rng = np.random.default_rng(0)
    obs, next_obs = rng.normal(size=(2, count, 11)).astype(np.float32)
    actions = rng.uniform(-1, 1, (count, 3)).astype(np.float32)
    ones = np.ones(count, np.float32)
    return obs, actions, ones, next_obs, ones


def _times(calls: Mapping[str, Callable[[], object]], quick: bool) -> Row:
    return {
        "ms": {name: milliseconds(call, repeats=2 if quick else 7) for name, call in calls.items()}
    }


def file_io(quick: bool) -> Row:
    """A line of a log per environment step."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"

        def reopened() -> None:
            with path.open("a") as file:
                file.write("1\t2.0\n")

        with (Path(folder) / "other").open("w") as kept:
            calls = {
                "opened for each line": reopened,
                "kept open, flushed": lambda: print("1\t2.0", file=kept, flush=True),
                "kept open": lambda: print("1\t2.0", file=kept),
            }
            return _times(calls, quick)


def _pools(count: int) -> dict[str, ListPool | ArrayPool]:
    return {"list of tuples": ListPool(count), "arrays": ArrayPool(count)}


def pool_push(quick: bool) -> Row:
    """A rollout's transitions into the model's pool."""
    count = SMALL if quick else LARGE
    batch, rows = _batch(count), torch.randn(1, count, LAYOUT.width)
    pools = _pools(count)
    ours = ReplayPool(1, count, LAYOUT.width, torch.device("cpu"))
    calls: dict[str, Callable[[], object]] = {
        name: partial(pool.push, *batch) for name, pool in pools.items()
    }
    return _times(calls | {"one tensor (ours)": lambda: ours.add(rows)}, quick)


def pool_sample(quick: bool) -> Row:
    """A minibatch of 256 out of a full pool."""
    count = SMALL if quick else LARGE
    batch = _batch(count)
    pools = _pools(count)
    ours = ReplayPool(1, count, LAYOUT.width, torch.device("cpu"))
    ours.add(torch.randn(1, count, LAYOUT.width))
    streams = SeedStreams([0])
    for pool in pools.values():
        pool.push(*batch)
    calls: dict[str, Callable[[], object]] = {
        name: partial(pool.sample, 256) for name, pool in pools.items()
    }
    return _times(calls | {"one tensor (ours)": lambda: ours.draw(streams.uniform(256))}, quick)


def sac_batch(quick: bool) -> Row:
    """An update of SAC by batch size, in the document's style without its habits, and ours."""
    calls: dict[str, Callable[[], object]] = {}
    agent = PlainSAC(11, 3, FAST)
    for size in (256, 1_024, 4_096):
        batch = _batch(size)
        calls[f"batch {size:,}"] = partial(agent.update, batch)
    for size in (256, 1_024, 4_096):
        calls[f"batch {size:,} (ours, bfloat16)"] = sac_update(1, size)
    return _times(calls, quick)


def sac_update(num_seeds: int, size: int, *, bfloat16: bool = True) -> Callable[[], None]:
    """A gradient step of ours."""
    options = SACOptions(bfloat16=bfloat16, num_threads=torch.get_num_threads())
    learner = SACLearner(LAYOUT, range(num_seeds), options)
    rows = torch.randn(1, num_seeds, size, LAYOUT.width)
    noise = torch.randn(1, num_seeds, *learner.noise_shape(size))
    metrics = torch.zeros(len(METRICS), num_seeds)
    return lambda: learner.run(rows, noise, metrics)


def flow_batch(quick: bool) -> Row:
    """A gradient step of the flow, by batch size."""
    flow = CoupledFlow(15)
    optimizer = torch.optim.Adam(flow.parameters(), lr=3e-4)

    def step(samples: torch.Tensor) -> None:
        ratios = [flow.log_ratio(part).tanh() for part in samples.chunk(2)]
        optimizer.zero_grad()
        donsker_varadhan_loss(*ratios).sum().backward()
        optimizer.step()

    data = {size: torch.randn(2 * size, 15) for size in (100, 256, 500)}
    return _times({f"batch {size}": partial(step, x) for size, x in data.items()}, quick)


def prediction(quick: bool) -> Row:
    """A rollout's prediction: with gradients or without, in chunks of 1,024 or in one piece."""
    obs, actions, *_ = _batch(SMALL if quick else LARGE)
    calls: dict[str, Callable[[], object]] = {}
    for gradients in (True, False):
        for chunk in (1_024, 0):
            habits = Habits(anomaly_mode=False, gradients_on=gradients, chunk_size=chunk)
            model = PlainEnsemble(11, 3, habits)
            name = f"{'with' if gradients else 'without'} gradients, "
            name += "in chunks" if chunk else "in one piece"
            calls[name] = partial(model.predict, obs, actions)
    ours = EnsembleDynamics(LAYOUT, [0], DynamicsOptions())
    pairs = torch.randn(1, len(obs), 14)
    noise = torch.randn(1, len(obs), 12)
    calls["one elite per row (ours)"] = lambda: ours.predict(pairs, noise)
    return _times(calls, quick)


def preprocessing(quick: bool) -> Row:
    """Standardising all real transitions anew for a fit, beside an epoch of it."""
    obs, actions, *_ = _batch(6_000)
    inputs = np.concatenate((obs, actions), 1)
    model = PlainEnsemble(11, 3, FAST)
    part = _batch(600 if quick else 6_000)
    return _times(
        {
            "standardised at each fit": lambda: (inputs - inputs.mean(0)) / inputs.std(0),
            "cached": lambda: None,
            "an epoch": lambda: model.fit(part, max_epochs=1),
        },
        quick,
    )


def pipelining(quick: bool) -> Row:
    """Some epochs of a fit and SAC's updates: one after the other, or in two threads."""
    model, agent = PlainEnsemble(11, 3, FAST), PlainSAC(11, 3, FAST)
    part, batch = _batch(600 if quick else 6_000), _batch(256)

    def fit() -> None:
        model.fit(part, max_epochs=1)

    def learn() -> None:
        for _ in range(5 if quick else 100):
            agent.update(batch)

    def in_turn() -> None:
        fit()
        learn()

    def side_by_side() -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(max(1, threads // 2))
        thread = threading.Thread(target=fit)
        thread.start()
        learn()
        thread.join()
        torch.set_num_threads(threads)

    return _times({"one after the other": in_turn, "side by side": side_by_side}, quick)


def seeds(quick: bool) -> Row:
    """An update of SAC of one training, and of six side by side (per training)."""
    six, one = sac_update(6, 256), sac_update(1, 256)
    row = _times({"one training": one, "six side by side": six}, quick)
    row["ms"]["six side by side, each"] = [ms / 6 for ms in row["ms"].pop("six side by side")]
    return row


def smaller(quick: bool) -> Row:
    """Predictions of a linear network's layers: pruned, quantised, narrower."""

    def network(width: int) -> torch.nn.Sequential:
        layers = [torch.nn.Linear(14, width), torch.nn.SiLU()]
        for _ in range(3):
            layers += [torch.nn.Linear(width, width), torch.nn.SiLU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(width, 24)).requires_grad_(False)

    plain, pruned, narrow = network(200), network(200), network(100)
    for layer in pruned:
        if isinstance(layer, torch.nn.Linear):
            prune.l1_unstructured(layer, "weight", 0.5)
            prune.remove(layer, "weight")
    low = network(200).bfloat16()
    x = torch.randn(SMALL if quick else 20_000, 14)
    return _times(
        {
            "as it is": lambda: plain(x),
            "half of the weights pruned": lambda: pruned(x),
            "bfloat16": lambda: low(x.bfloat16()),
            "half as wide": lambda: narrow(x),
        },
        quick,
    )


UNITS: dict[str, tuple[Callable[[bool], Row], float]] = {
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
}


# ---- what only a GPU can show --------------------------------------------------------------------


def copies(quick: bool) -> Row:
    """The five arrays of an update to the GPU: pageable, pinned; and drawn there."""
    host = [torch.randn(256, width) for width in (11, 3, 1, 11, 1)]
    pinned = [field.pin_memory() for field in host]
    pool = torch.randn(LARGE, LAYOUT.width, device="cuda")
    return _times(
        {
            "pageable": lambda: [field.to("cuda") for field in host],
            "pinned, non_blocking": lambda: [f.to("cuda", non_blocking=True) for f in pinned],
            "drawn on the GPU": lambda: pool[torch.randint(LARGE, (256,), device="cuda")],
        },
        quick,
    )


def graphs(quick: bool) -> Row:
    """Twenty updates of SAC on the GPU, launched one by one and as a CUDA graph."""
    learner = SACLearner(LAYOUT, [0], SACOptions(), "cuda")
    rows = torch.randn(20, 1, 256, LAYOUT.width, device="cuda")
    noise = torch.randn(20, 1, *learner.noise_shape(256), device="cuda")
    metrics = torch.zeros(len(METRICS), 1, device="cuda")

    def one_by_one() -> None:
        for i in range(20):
            learner.choice.accelerator.update(rows[i], noise[i])

    return _times(
        {"one by one": one_by_one, "as a graph": lambda: learner.run(rows, noise, metrics)}, quick
    )


CUDA_UNITS: dict[str, Callable[[bool], Row]] = {
    "copies to the GPU": copies,
    "updates on the GPU": graphs,
}
