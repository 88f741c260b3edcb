"""The exceptions that pyfastenv raises beside ValueError, TypeError and the like.

Where gymnasium has an error for the same thing, ours is one of its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium import error as gymnasium_error


class EnvError(RuntimeError):
    """Environments raised while stepping or resetting (an error of the physics engine, say).

    They keep their state from before the call and can be stepped or reset again; the other
    environments' results stand.

    Attributes:
        env_ids: The environments that failed.
        messages: What each of them said.
        results: What the call would have returned. From ``step`` and ``reset`` the failed
            environments' rows are zero; from ``recv`` they are left out.
    """

    def __init__(self, env_ids: Sequence[int], messages: Sequence[str], results: Any = None):
        self.env_ids = tuple(env_ids)
        self.messages = tuple(messages)
        self.results = results
        ids: dict[str, list[int]] = {}
        for env_id, message in zip(self.env_ids, self.messages, strict=True):
            ids.setdefault(message, []).append(env_id)
        shown = [f"{_environments(alike)}: {message}" for message, alike in list(ids.items())[:4]]
        more = sum(len(alike) for alike in list(ids.values())[4:])
        super().__init__("\n".join([*shown, *([f"and {more} more"] if more else [])]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.env_ids, self.messages, self.results)


def _environments(env_ids: list[int]) -> str:
    """``environment 3``, ``environments 0, 1`` … of those that say the same."""
    shown = ", ".join(map(str, env_ids[:4]))
    more = f" and {len(env_ids) - 4} more" if len(env_ids) > 4 else ""
    return f"environment{'s' if len(env_ids) > 1 else ''} {shown}{more}"


class ClosedError(gymnasium_error.ClosedEnvironmentError):
    """The vector environment is closed."""


class ForkedError(RuntimeError):
    """The vector environment was created before a fork; its threads do not exist in the child."""


class ResetNeededError(gymnasium_error.ResetNeeded):
    """An environment must be reset before it can step."""


class BusyError(gymnasium_error.AlreadyPendingCallError):
    """An environment has been sent a request whose result has not been received."""

    def __init__(self, message: str, name: str = "send"):
        super().__init__(message, name)


class NothingPendingError(gymnasium_error.NoAsyncCallError):
    """``recv`` was called with nothing sent."""

    def __init__(self, message: str, name: str = "recv"):
        super().__init__(message, name)


class TaskCodeError(ValueError):
    """An own task's code cannot be compiled, or not with NumPy's bits; the message has the line."""
