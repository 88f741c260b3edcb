"""Benchmarks of SAC, FlashSAC and MBPO: ``python bench/python/mbpo.py [--only SECTION …]``.

SAC's gradient steps beside Stable-Baselines3's; FlashSAC's; fits of MBPO's model. Writes mbpo.json
and mbpo.md. Whole runs of MBPO, and what the parts of a step cost: ``pyfastenv experiment flow``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import tyro
from gradient_steps import AT_ONCE, sb3_sac
from model_fits import minibatches, model_fits

from pyfastenv import _core
from pyfastenv.algorithms.flashsac import spec as flashsac
from pyfastenv.algorithms.sac.spec import SACLearner, SACOptions
from pyfastenv.experiments import measure, sections
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import ReplayPool, RowLayout
from pyfastenv.training.actor_critic import ActorCritic

Row = dict[str, Any]
ENV_ID = "Hopper-v5"
LAYOUT = RowLayout(11, 3)  # Hopper's
HALF_CHEETAH = RowLayout(17, 6)
THREADS = 2


def warm_and_interleave(
    contestants: dict[str, Callable[[], float]], repeats: int
) -> dict[str, list[float]]:
    """:func:`measure.interleave` after a call of each, which fills caches and chooses kernels."""
    for contestant in contestants.values():
        contestant()
    return measure.interleave(contestants, repeats)


# ---- SAC ---------------------------------------------------------------------------------------


def sac_rate(
    num_seeds: int, count: int, *, bfloat16: bool, device: str = "cpu"
) -> Callable[[], float]:
    """:func:`learner_rate` of SAC, 256 x 256, batch 256."""
    options = SACOptions(bfloat16=bfloat16, num_threads=THREADS)
    return learner_rate(SACLearner(LAYOUT, range(num_seeds), options, device), count, 256)


def learner_rate(learner: ActorCritic, count: int, batch_size: int) -> Callable[[], float]:
    """Makes a learner's pool; a call gives its rate, of all seeds together.

    Args:
        learner: Whose gradient steps.
        count: Gradient steps per call, about, of all seeds together.
        batch_size: Transitions of each.
    """
    num_seeds, device = learner.num_seeds, learner.device
    seeds = range(num_seeds)
    metrics = torch.zeros(len(learner.metrics), num_seeds, device=device)
    width = learner.layout.width
    pool = ReplayPool(num_seeds, 20_000, width, device)
    pool.add(torch.randn(num_seeds, 20_000, width, device=device))
    streams = SeedStreams(seeds, device)
    draws = max(20, count // num_seeds) // 20

    def run() -> float:
        start = time.perf_counter()
        for _ in range(draws):
            rows = pool.draw(streams.uniform(20, batch_size))
            noise = streams.normal(20, *learner.noise_shape(batch_size)).movedim(1, 0)
            learner.run(rows, noise, metrics)
        metrics.sum().item()  # wait for the device
        return num_seeds * draws * 20 / (time.perf_counter() - start)

    return run


def sac_updates(quick: bool) -> list[Row]:
    """Gradient steps per second, 256 x 256, batch 256, Hopper's sizes."""
    count = 40 if quick else 400

    contestants = {
        "pyfastenv, float32": sac_rate(1, count, bfloat16=False),
        "pyfastenv, bfloat16": sac_rate(1, count, bfloat16=True),
        "Stable-Baselines3": _stable_baselines(count),
        "pyfastenv, float32, 6 seeds in all": sac_rate(6, count, bfloat16=False),
        "pyfastenv, bfloat16, 6 seeds in all": sac_rate(6, count, bfloat16=True),
    }
    rates = warm_and_interleave(contestants, 3 if quick else 7)
    peer = rates["Stable-Baselines3"]
    return [
        {
            "name": name,
            "rate": measure.summary(values),
            "ratio": measure.ratio(values, peer),
        }
        for name, values in rates.items()
    ]


def _stable_baselines(count: int) -> Callable[[], float]:
    run = sb3_sac((256, 256), 256, ENV_ID)
    return lambda: count / measure.seconds(lambda: [run() for _ in range(count // AT_ONCE)])


def flashsac_updates(quick: bool) -> list[Row]:
    """Gradient steps per second of FlashSAC, as the authors have it and of an eighth of it."""
    sizes: dict[str, tuple[int, dict[str, int]]] = {
        "256 and 128 wide, batch 512": (512, {}),
        "128 and 64 wide, batch 256": (256, {"critic_width": 128, "policy_width": 64}),
    }
    contestants = {}
    kinds: dict[str, dict[str, Any]] = {
        "float32": {},
        "bfloat16 in PyTorch": {"amp": True, "accelerate": "none"},
        "bfloat16": {"amp": True},
    }
    for name, (batch_size, fields) in sizes.items():
        for kind, options in kinds.items():
            config = flashsac.Config(torch_threads=THREADS, **fields, **options)
            learner = flashsac.FlashSACLearner(HALF_CHEETAH, [0], config.options())
            contestants[f"{name}, {kind}"] = learner_rate(learner, 20, batch_size)
    rates = warm_and_interleave(contestants, 1 if quick else 5)
    return [{"name": name, "rate": measure.summary(values)} for name, values in rates.items()]


SECTIONS: dict[str, Callable[[bool], Iterable[Row]]] = {
    "sac": sac_updates,
    "flashsac": flashsac_updates,
    "fits": model_fits,
    "minibatches": minibatches,
}


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    torch.set_num_threads(THREADS)
    sections.run(
        "mbpo",
        {name: partial(section, options.quick) for name, section in SECTIONS.items()},
        options,
        template=Path(__file__).parent / "templates" / "mbpo.md",
        about={"bfloat16": _core.bfloat16_unit() or "neither"},
    )


if __name__ == "__main__":
    main()
