"""One pool under fuzzing, its model and its references, and what every call's check needs."""

import random
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from model import EnvModel, Errors, PoolModel
from reference import Failure, Gymnasium, Ours, Reference, Result, assert_row, result_row
from settings import Settings

import pyfastenv

# copy=False: what a call returns is overwritten by the fourth call after it
VIEWS_LIVE_FOR = 3


@dataclass
class Plan:
    """One call, ready to be made.

    Attributes:
        text: For the reader.
        call: Makes it.
        errors: One of these must come out; empty: the call is legal.
        tolerated: These may come out instead of a result.
        returns_arrays: What it returns may be views of a ring.
        check: Compares the result and brings model and references up to date. A legal call that
            raised EnvError gives its ``results`` and the environments that failed.
    """

    text: str
    call: Callable[[], Any]
    errors: Errors
    check: Callable[[Any, Collection[int]], None] = lambda result, failed: None
    tolerated: Errors = field(default_factory=set)
    returns_arrays: bool = False


@dataclass
class Saved:
    """A snapshot of all environments."""

    states: np.ndarray
    models: list[tuple[bool, bool, int, bytes | None]]
    fields: tuple[str, ...]


class Session:
    """Everything a session's calls are drawn from."""

    def __init__(self, settings: Settings):
        self.settings = settings
        n = settings.num_envs
        self.pool = pyfastenv.make_vec(settings.env_id, n, **settings.pool_kwargs())
        make: type[Reference] = Gymnasium if settings.against_gymnasium else Ours
        kwargs = settings.reference_kwargs()
        self.references = [make(settings.env_id, kwargs) for _ in range(n)]
        if not settings.against_gymnasium:
            for reference, state in zip(self.references, self.pool.get_state(), strict=True):
                reference.envs.set_state(state[None])  # the same random stream
        seeds = self.pool.np_random_seed
        self.model = PoolModel([EnvModel(seed) for seed in seeds], settings.mode, settings.limit)
        # gymnasium draws its own first seeds: no reset without one before each has been given one
        self.unseeded = set(range(n)) if settings.against_gymnasium else set()
        self.saved: list[Saved] = []
        self.extreme = False  # whether a model field has been given an absurd value
        self.rows = 0  # compared
        self._held: deque[tuple[Any, ...]] = deque(maxlen=VIEWS_LIVE_FOR)
        self._make_actions()

    def _make_actions(self) -> None:
        """Rows to take actions from: within the bounds, a little beyond, and some far out."""
        rng = np.random.default_rng(self.settings.seed)
        space = self.pool.single_action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            self.actions: np.ndarray = rng.integers(0, space.n, 512)
            return
        low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
        self.actions = rng.uniform(1.1 * low, 1.1 * high, (512, *space.shape)).astype(np.float32)
        if not self.settings.against_gymnasium:  # physics that diverges is told otherwise there
            self.actions[500:506] *= np.float32(1e4)
            self.actions[506:] *= np.float32(1e20)

    @property
    def discrete(self) -> bool:
        return self.actions.ndim == 1

    # ---- one call ----

    def run(self, plan: Plan, rng: random.Random) -> bool:
        """Makes the call and checks it. Returns whether it was legal."""
        look = bool(plan.errors) and rng.random() < 0.2 and self._can_look()
        before = self._look() if look else None
        try:
            result = plan.call()
        except pyfastenv.EnvError as error:
            self._expect_legal(plan, error)
            result, failed = error.results, error.env_ids
        except Exception as error:
            if plan.returns_arrays:
                self._hold(())
            if type(error) in plan.tolerated:
                return False
            if not any(isinstance(error, kind) for kind in plan.errors):
                due = _names(plan.errors) or "a result"
                raise AssertionError(
                    f"{plan.text}: expected {due}, got {type(error).__name__}: {error}"
                ) from error
            if len(str(error)) > 2000:
                raise AssertionError(f"{plan.text}: the message repeats its data") from error
            if look:
                assert self._look() == before, f"{plan.text} was refused, yet something moved"
            return False
        else:
            self._expect_legal(plan, None)
            failed = ()
        if plan.returns_arrays:
            self._hold(result[:-1])
        plan.check(result, failed)
        return True

    @staticmethod
    def _expect_legal(plan: Plan, error: Exception | None) -> None:
        if plan.errors:
            raise AssertionError(
                f"{plan.text}: expected {_names(plan.errors)}, got {error or 'a result'}"
            )

    def _can_look(self) -> bool:
        return not self.model.closed and not self.model.busy

    def _look(self) -> tuple[Any, ...]:
        return (
            self.pool.get_state().tobytes(),
            self.pool.np_random_seed,
            self.pool.stats(),
            self.pool.state_bytes,
        )

    # ---- results that stay as they were returned ----

    def _hold(self, arrays: tuple[np.ndarray, ...]) -> None:
        """Checks what earlier calls returned, then keeps this call's result for the next ones."""
        for earlier, contents in self._held:
            for array, content in zip(earlier, contents, strict=True):
                assert array.tobytes() == content, "an earlier call's result has been overwritten"
        self._held.append((arrays, [array.tobytes() for array in arrays]))

    def forget_views(self) -> None:
        """For a call that used the ring by itself."""
        self._hold(())

    # ---- references ----

    def step_reference(self, i: int, action: np.ndarray) -> Result | Failure:
        """Steps environment i's reference; the model takes note."""
        outcome = self.references[i].step(action)
        self.model.step(i, outcome)
        return outcome

    def reset_reference(
        self, i: int, seed: int | None, bounds: dict[str, float]
    ) -> Result | Failure:
        outcome = self.references[i].reset(seed, bounds)
        self.model.reset(i, outcome, seed)
        if seed is not None:
            self.unseeded.discard(i)
        return outcome

    def compare(
        self,
        result: tuple[Any, ...],
        row: int,
        expected: Result | Failure,
        failed: bool,
        where: str,
        infos: bool,
    ) -> None:
        """Row of a result against what the reference said."""
        self.rows += 1
        if failed or isinstance(expected, Failure):
            assert failed and isinstance(expected, Failure), f"{where}: {failed=}, {expected}"
            return
        assert_row(result_row(result, row, infos=infos), expected, where, infos=infos)

    def close(self) -> None:
        self.pool.close()
        for reference in self.references:
            reference.close()


def _names(errors: Errors) -> str:
    return " or ".join(sorted(error.__name__ for error in errors))
