"""Fits of MBPO's model one after another on a growing pool, as a training makes them: what the
optimiser's moments and the bounds' penalty are worth, and what smaller minibatches are and shorter
epochs. Sections of mbpo.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.algorithms.sac import SAC, Config
from pyfastenv.experiments import measure
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import RowLayout

Row = dict[str, Any]
ENV_ID = "Hopper-v5"
FIRST = 5_000  # MBPO's random steps
THREADS = 2

_size = DynamicsOptions().ensemble_size
_Contestants = dict[str, dict[str, Any]]  # the last is what the others are compared with
CONTESTANTS: _Contestants = {
    "Adam goes on": {},
    "Adam starts anew": {"restart_optimizer": True},
    # as it was once: seven times what the official program has a member pay
    "Adam starts anew, each member pays the bounds' whole penalty": {
        "restart_optimizer": True,
        "bound_coef": _size * DynamicsOptions().bound_coef,
    },
}
MINIBATCHES: _Contestants = {
    "64, at most 5,000 rows an epoch": {"batch_size": 64, "max_epoch_rows": 5_000},
    "64, all rows": {"batch_size": 64},
    "256, at most 5,000 rows an epoch": {"max_epoch_rows": 5_000},
    "256, all rows": {},
}


def real_rows(num_steps: int) -> tuple[RowLayout, Tensor]:
    """Transitions ``(1, num_steps, width)`` of a policy that learns, after random ones."""
    config = Config(
        env_id=ENV_ID,
        seed=1,
        total_steps=num_steps,
        learning_starts=FIRST,
        updates_per_step=5.0,
        amp=True,
        torch_threads=THREADS,
    )
    sac = SAC(config)
    while sac.global_step < num_steps:
        sac.iterate()
    sac.envs.close()
    return sac.layout, torch.stack(sac.env_pool.rows())[:, :num_steps].clone()


def unseen_error(model: EnsembleDynamics, rows: Tensor) -> float:
    """Mean squared error of what the elites expect of rows ``(1, n, width)`` not learned from."""
    layout, elites = model.layout, model.options.num_elites
    rows = rows[:, : rows.shape[1] // elites * elites]
    noise = torch.zeros(1, rows.shape[1], model.num_outputs)
    expected = model.predict(layout.obs_actions(rows).contiguous(), noise)
    errors = torch.cat(
        (
            (expected.rewards - layout.rewards(rows))[..., None],
            expected.next_obs - layout.next_obs(rows),
        ),
        -1,
    )
    return float(errors.square().mean())


def model_fits(quick: bool) -> Iterator[Row]:
    """Every 250 steps, as MBPO has it, on the first few thousand."""
    return _fits(CONTESTANTS, FIRST, 250, 2 if quick else 12, quick)


def minibatches(quick: bool) -> Iterator[Row]:
    """Every 500 steps, until a fit has almost three times as many rows as the short epochs."""
    return _fits(MINIBATCHES, 2 * FIRST, 500, 2 if quick else 16, quick)


def _fits(
    contestants: _Contestants, first: int, every: int, count: int, quick: bool
) -> Iterator[Row]:
    """Every contestant's fits, in turn, from the first steps on, then with so many more each time;
    the errors are on the steps that come next."""
    layout, rows = real_rows(first + every * count)
    torch.manual_seed(0)
    models = {}
    for name, fields in contestants.items():
        options = DynamicsOptions(
            bfloat16=True, num_threads=THREADS, max_epochs=2 if quick else 1_000, **fields
        )
        models[name] = (EnsembleDynamics(layout, [1], options), SeedStreams([1]))
    seconds: dict[str, list[float]] = {name: [] for name in models}
    epochs: dict[str, list[int]] = {name: [] for name in models}
    errors: dict[str, list[float]] = {name: [] for name in models}
    for i, name in measure.interleaved(list(models), count):
        model, streams = models[name]
        known = first + every * i
        start = time.perf_counter()
        report = model.fit(rows[:, :known], streams)
        seconds[name].append(time.perf_counter() - start)
        epochs[name] += report.num_epochs
        errors[name].append(unseen_error(model, rows[:, known : known + every]))
    reference = list(contestants)[-1]
    for name in models:
        # the first fit begins with new networks for all
        yield {
            "name": name,
            "first_seconds": seconds[name][0],
            "first_epochs": epochs[name][0],
            "seconds": measure.summary(seconds[name][1:]),
            "total_seconds": sum(seconds[name]),
            "epochs": measure.summary(epochs[name][1:]),
            "unseen_error": measure.summary(errors[name][1:]),
            "time_ratio": measure.ratio(seconds[name][1:], seconds[reference][1:]),
            "error_ratio": measure.ratio(errors[name][1:], errors[reference][1:]),
        }
