"""A pool's rules in plain Python: which calls are legal, how far every environment is.

Knows no physics: what an environment observes comes from its reference (reference.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from reference import Failure, Result, diverged, ended_with

import pyfastenv

Errors = set[type[BaseException]]


@dataclass
class EnvModel:
    """One environment: flags, steps since its reset, the seed it was given last."""

    seed: int
    needs_reset: bool = True
    autoreset: bool = False  # NextStep: the next step is a reset
    elapsed: int = 0
    last_obs: bytes | None = None
    pending: Result | Failure | None = None  # what recv must say; None: not under way

    def snapshot(self) -> tuple[bool, bool, int, bytes | None]:
        """The part of this that a state of get_state carries."""
        return self.needs_reset, self.autoreset, self.elapsed, self.last_obs

    def restore(self, snapshot: tuple[bool, bool, int, bytes | None]) -> None:
        self.needs_reset, self.autoreset, self.elapsed, self.last_obs = snapshot


@dataclass
class PoolModel:
    """All environments of a pool."""

    envs: list[EnvModel]
    mode: str
    limit: int  # 0: none
    closed: bool = False
    fields: list[str] = field(default_factory=list)  # set by set_model_field, in order
    stats: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("steps", "episodes", "diverged", "errors"), 0)
    )

    @property
    def ids(self) -> range:
        return range(len(self.envs))

    @property
    def busy(self) -> set[int]:
        return {i for i in self.ids if self.envs[i].pending is not None}

    # ---- which errors are due; an empty set: the call is legal ----

    def errors(self, ids: Iterable[int] = (), *, free: bool = True, reset: bool = False) -> Errors:
        """Errors of a call that needs ``ids`` free, and (``reset``) in the middle of an episode."""
        ids = set(ids)
        errors: Errors = set()
        if self.closed:
            errors.add(pyfastenv.ClosedError)
        if free and self.busy & ids:
            errors.add(pyfastenv.BusyError)
        if reset and any(self.envs[i].needs_reset for i in ids):
            errors.add(pyfastenv.ResetNeededError)
        return errors

    # ---- what a call changes ----

    def reset(self, i: int, outcome: Result | Failure, seed: int | None) -> None:
        if isinstance(outcome, Failure):
            self.stats["errors"] += 1
            return
        env = self.envs[i]
        env.needs_reset = env.autoreset = False
        env.elapsed = 0
        env.last_obs = outcome.obs.tobytes()
        if seed is not None:
            env.seed = seed

    def step(self, i: int, outcome: Result | Failure) -> None:
        """Takes note of what the reference said, having checked the flags."""
        env = self.envs[i]
        if isinstance(outcome, Failure):
            self.stats["errors"] += 1
            return
        env.last_obs = outcome.obs.tobytes()
        if env.autoreset:
            assert outcome.reward == 0.0 and not outcome.terminated and not outcome.truncated
            env.autoreset, env.elapsed = False, 0
            return
        env.elapsed += 1
        due = 0 < self.limit <= env.elapsed
        assert outcome.truncated == due, (
            f"environment {i}: truncated is {outcome.truncated} after {env.elapsed} steps, "
            f"the limit is {self.limit}"
        )
        self.stats["steps"] += 1
        self.stats["diverged"] += diverged(outcome)
        ended = outcome.terminated or outcome.truncated
        self.stats["episodes"] += ended
        assert ended_with(outcome) == (ended and self.mode == "SameStep"), f"environment {i}: final"
        if not ended:
            return
        if self.mode == "NextStep":
            env.autoreset = True
        elif self.mode == "SameStep":
            env.elapsed = 0
        else:
            env.needs_reset = True
