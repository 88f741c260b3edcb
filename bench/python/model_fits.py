"""Fits of MBPO's model one after another on a growing pool, as a training makes them: what the
optimiser's moments and the bounds' penalty are worth. A section of mbpo.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pyfastenv.algorithms.sac import SAC, Config
from pyfastenv.experiments import measure
from pyfastenv.learners.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import RowLayout

Row = dict[str, Any]
ENV_ID = "Hopper-v5"
FIRST, EVERY = 5_000, 250  # MBPO's random steps, and its steps between fits
THREADS = 2

_size = DynamicsOptions().ensemble_size
CONTESTANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "Adam starts anew": {"restart_optimizer": True},
    # as it was once: seven times what the official program has a member pay
    "Adam starts anew, each member pays the bounds' whole penalty": {
        "restart_optimizer": True,
        "bound_coef": _size * DynamicsOptions().bound_coef,
    },
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
    """Every contestant's fits, in turn; the errors are on the steps that come next."""
    count = 2 if quick else 12
    layout, rows = real_rows(FIRST + EVERY * count)
    torch.manual_seed(0)
    models = {}
    for name, fields in CONTESTANTS.items():
        options = DynamicsOptions(
            bfloat16=True, num_threads=THREADS, max_epochs=2 if quick else 1_000, **fields
        )
        models[name] = (EnsembleDynamics(layout, [1], options), SeedStreams([1]))
    seconds: dict[str, list[float]] = {name: [] for name in models}
    epochs: dict[str, list[int]] = {name: [] for name in models}
    errors: dict[str, list[float]] = {name: [] for name in models}
    for i, name in measure.interleaved(list(models), count):
        model, streams = models[name]
        known = FIRST + EVERY * i
        start = time.perf_counter()
        report = model.fit(rows[:, :known], streams)
        seconds[name].append(time.perf_counter() - start)
        epochs[name] += report.num_epochs
        errors[name].append(unseen_error(model, rows[:, known : known + EVERY]))
    reference = list(CONTESTANTS)[-1]
    for name in models:
        # the first fit begins with new networks for all
        yield {
            "name": name,
            "first_seconds": seconds[name][0],
            "first_epochs": epochs[name][0],
            "seconds": measure.summary(seconds[name][1:]),
            "epochs": measure.summary(epochs[name][1:]),
            "unseen_error": measure.summary(errors[name][1:]),
            "time_ratio": measure.ratio(seconds[name][1:], seconds[reference][1:]),
            "error_ratio": measure.ratio(errors[name][1:], errors[reference][1:]),
        }
