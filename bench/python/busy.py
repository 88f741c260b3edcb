"""SAC with one thread and with two, beside nothing and beside a busy program.

``python bench/python/busy.py``. Environment steps a second of a training (one environment, a
gradient step for each of its steps), in turn. Writes bench/results/busy.json; docs/training.md
reports it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
import tyro

from pyfastenv.algorithms import sac
from pyfastenv.experiments import measure, sections

ENV_ID = "Hopper-v5"


def make(amp: bool) -> sac.SAC:
    """A training that learns already."""
    torch.set_num_threads(1)
    config = sac.Config(env_id=ENV_ID, amp=amp, total_steps=10**9, learning_starts=1_000)
    algorithm = sac.SAC(config)
    while algorithm.global_step < 1_100:
        algorithm.iterate()
    return algorithm


def steps_per_s(algorithm: sac.SAC, threads: int, seconds: float) -> float:
    """With so many threads of PyTorch."""
    torch.set_num_threads(threads)
    began, first = time.perf_counter(), algorithm.global_step
    while (took := time.perf_counter() - began) < seconds:
        algorithm.iterate()
    return (algorithm.global_step - first) / took


def rates(repeats: int, seconds: float) -> dict[str, list[float]]:
    """Measures float32 and ``--amp`` with one thread and with two."""
    contestants: dict[str, Callable[[], float]] = {
        f"{name}, {threads}": partial(steps_per_s, algorithm, threads, seconds)
        for name, algorithm in (("float32", make(False)), ("amp", make(True)))
        for threads in (1, 2)
    }
    return measure.interleave(contestants, repeats)


def beside(repeats: int, seconds: float) -> dict[str, list[float]]:
    """The same beside a busy program."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            return rates(repeats, seconds)
        finally:
            other.kill()


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    how = (1, 0.5) if options.quick else (5, 2.0)
    measured = {"alone": partial(rates, *how), "busy": partial(beside, *how)}
    results = sections.run("busy", measured, options, about={"env_id": ENV_ID})
    for group in measured:
        found = {n: measure.summary(each) for n, each in results[group].items() if "," in n}
        print(f"{group}, threads, steps/s: {sections.told(found)}")


if __name__ == "__main__":
    main()
