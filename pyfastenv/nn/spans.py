"""Named ranges in a profile, which cost next to nothing unless one is being recorded.

Here, below everything that has ranges; :mod:`pyfastenv.training.profiling` switches them on.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import profiler

SPANS = (
    "env",  # environments step, with the policy in the pool
    "transfer",  # between buffers and devices; the policy's copy for the pool
    "forward",
    "backward",
    "optimiser",
    "update",  # of a gradient step what is none of these, or all of it in one compiled call
    "fit",  # of a model of the dynamics …
    "rollout",  # … in which the policy then is followed
    "flow",  # tells the model's transitions from real ones …
    "agent",  # … and improves the model by that
)

_off: AbstractContextManager[Any] = nullcontext()
_recording = False


def span(name: str) -> AbstractContextManager[Any]:
    """A named range in the profile, one of :data:`SPANS`: ``with span("env"): ...``."""
    return profiler.record_function(name) if _recording else _off


def record_spans(on: bool) -> None:
    """Whether :func:`span` is recorded from now on."""
    global _recording
    _recording = on
