"""Whether PyTorch's threads get in each other's way: other programs have their cores."""

from __future__ import annotations

import time

import torch

_OPERATIONS = 2_000  # a hundredth of a second and a bit where each thread has a core
_PATIENCE_S = 0.2


def busy_note() -> str:
    """A line for the log if operations on PyTorch's threads take far longer than they should.

    At the end of each operation the threads wait for the last of them, in a loop. Where another
    program has its core, that lasts until the system takes the core away from one of the two.
    """
    threads = torch.get_num_threads()
    if threads == 1 or _operations_until(time.perf_counter() + _PATIENCE_S) == _OPERATIONS:
        return ""
    return (
        f"Other programs keep the cores busy, so PyTorch's {threads} threads wait for each other: "
        "with --torch-threads 1 this may go many times faster"
    )


def _operations_until(end: float) -> int:
    """How many operations that all threads share are done by then, ``_OPERATIONS`` at most."""
    numbers = torch.zeros(2**17)
    for done in range(_OPERATIONS):
        if time.perf_counter() >= end:
            return done
        numbers.add_(1.0)
    return _OPERATIONS
