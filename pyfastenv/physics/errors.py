"""The exceptions that pyfastenv.physics raises beside ValueError and TypeError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np


class RolloutError(mujoco.FatalError):  # type: ignore[misc] # a class without annotations
    """MuJoCo, or a callback of the user's, raised in some rollouts.

    The other rollouts' results stand. It is a ``mujoco.FatalError``, which mujoco.rollout raises.

    Attributes:
        rollouts: Which failed.
        messages: What was said in each of them.
        results: What the call would have returned; the failed rollouts are NaN from the step on in
            which they failed.
    """

    def __init__(self, rollouts: Sequence[int], messages: Sequence[str], results: Any = None):
        self.rollouts = tuple(rollouts)
        self.messages = tuple(messages)
        self.results = results
        state = results[0] if results is not None else None
        alone = state is not None and len(state) == 1  # there is no other that it might have been
        shown = [
            message if alone else f"rollout {which}: {message}"
            for which, message in zip(self.rollouts, self.messages, strict=True)
        ]
        more = len(shown) - 4
        super().__init__("; ".join(shown[:4]) + (f"; and {more} more" if more > 0 else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rollouts, self.messages, self.results)


class SimulationError(RuntimeError):
    """MuJoCo raised in some simulations of a batch's call.

    They keep the state from before the call; the others have done all of it.

    Attributes:
        ids: (failed,) which.
        messages: What was said in each of them.
        results: What the call would have returned, if anything; of the failed it means nothing.
    """

    def __init__(self, failures: Sequence[tuple[int, str]], count: int, results: Any = None):
        self.ids = np.array([sim for sim, _ in failures])
        self.messages = tuple(message for _, message in failures)
        self.results = results
        self._count = count
        shown = ", ".join(str(sim) for sim in self.ids[:5]) + (", …" if len(self.ids) > 5 else "")
        super().__init__(
            f"MuJoCo raised in {len(failures)} of {count} simulations ({shown}); simulation"
            f" {self.ids[0]}: {self.messages[0]}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        failures = list(zip(self.ids.tolist(), self.messages, strict=True))
        return type(self), (failures, self._count, self.results)
