"""The exceptions that pyfastenv.physics raises beside ValueError and TypeError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco


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
