"""Random sequences of legal and illegal calls against a simple model and a one-thread reference.

The model knows who is busy, who needs a reset and what every environment's next row must be: the
reference is a pool of one environment each, driven only by whole steps and resets.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from parity import MODES
from trajectories import bits, row_of

import pyfastenv

NUM_ENVS = 5
LIMIT = 6
SETTINGS = settings(
    max_examples=25,
    stateful_step_count=50,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

subsets = st.lists(st.integers(0, NUM_ENVS - 1), min_size=1, max_size=NUM_ENVS, unique=True)
seeds = (
    st.none()
    | st.integers(0, 3)
    | st.lists(st.none() | st.integers(0, 2**70), min_size=NUM_ENVS, max_size=NUM_ENVS)
)
action_seeds = st.integers(0, 2**16)


class Pool(RuleBasedStateMachine):
    """One pool, and one environment of one thread for each of its environments."""

    env_id: str
    mode: str
    num_threads: int

    @initialize()
    def make(self) -> None:
        kwargs: dict[str, Any] = {"autoreset_mode": self.mode, "max_episode_steps": LIMIT}
        self.envs = pyfastenv.make_vec(
            self.env_id, NUM_ENVS, num_threads=self.num_threads, **kwargs
        )
        self.reference = [
            pyfastenv.make_vec(self.env_id, 1, num_threads=1, **kwargs) for _ in range(NUM_ENVS)
        ]
        for env, state in zip(self.reference, self.envs.get_state(), strict=True):
            env.set_state(state[None])  # the same random stream
        self.needs_reset = [True] * NUM_ENVS
        self.last_obs: list[Any] = [None] * NUM_ENVS
        self.expected: dict[int, Any] = {}  # rows of those under way
        self.saved: tuple[Any, list[Any]] | None = None
        self.closed = False

    def teardown(self) -> None:
        if hasattr(self, "envs"):
            self.envs.close()

    # ---- the model ----

    @property
    def busy(self) -> set[int]:
        return set(self.expected)

    def can_step(self, ids: list[int]) -> bool:
        return not any(i in self.busy or self.needs_reset[i] for i in ids)

    def actions(self, seed: int, count: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        if self.env_id == "CartPole-v1":
            return rng.integers(0, 2, count)
        return rng.uniform(-3, 3, (count, 1)).astype(np.float32)

    def step_one(self, i: int, action: np.ndarray) -> Any:
        """The expected results of a step of environment i."""
        result = self.reference[i].step(action[None])
        ended = bool(result[2][0] or result[3][0])
        self.needs_reset[i] = self.mode == "Disabled" and ended
        self.last_obs[i] = bits(result[0], 0)
        return row_of(result, 0)

    def reset_one(self, i: int, seed: Any) -> tuple[Any, Any]:
        """The expected results of a reset of environment i: observation and info."""
        if isinstance(seed, int):
            seed = seed + i
        elif isinstance(seed, list):
            seed = seed[i]
        obs, info = self.reference[i].reset(seed=seed)
        self.needs_reset[i] = False
        self.last_obs[i] = bits(obs, 0)
        return row_of((obs, info), 0)

    def refused(self, error: type[Exception] | tuple[type[Exception], ...], call: Any) -> None:
        with pytest.raises(error):
            call()

    # ---- legal calls, refused when the model says so ----

    @rule(seed=seeds)
    def reset(self, seed: Any) -> None:
        if self.busy:
            return self.refused(pyfastenv.BusyError, lambda: self.envs.reset(seed=seed))
        result = self.envs.reset(seed=seed)
        for i in range(NUM_ENVS):
            assert row_of(result, i) == self.reset_one(i, seed)

    @rule(ids=subsets, seed=seeds)
    def masked_reset(self, ids: list[int], seed: Any) -> None:
        mask = np.isin(np.arange(NUM_ENVS), ids)

        def call() -> Any:
            return self.envs.reset(seed=seed, options={"reset_mask": mask})

        if self.busy:  # also others: their latest rows are not known yet
            return self.refused(pyfastenv.BusyError, call)
        result = call()
        for i in range(NUM_ENVS):
            if mask[i]:
                assert row_of(result, i) == self.reset_one(i, seed)
            elif i not in self.busy and self.last_obs[i] is not None:
                assert bits(result[0], i) == self.last_obs[i]
                assert bits(result[1], i) == {}

    @rule(seed=action_seeds)
    def step(self, seed: int) -> None:
        actions = self.actions(seed, NUM_ENVS)
        if self.busy:
            return self.refused(pyfastenv.BusyError, lambda: self.envs.step(actions))
        if any(self.needs_reset):
            return self.refused(pyfastenv.ResetNeededError, lambda: self.envs.step(actions))
        result = self.envs.step(actions)
        for i in range(NUM_ENVS):
            assert row_of(result, i) == self.step_one(i, actions[i])

    @rule(ids=subsets, seed=action_seeds)
    def send(self, ids: list[int], seed: int) -> None:
        actions = self.actions(seed, len(ids))
        if not self.can_step(ids):
            errors = (pyfastenv.BusyError, pyfastenv.ResetNeededError)
            return self.refused(errors, lambda: self.envs.send(actions, ids))
        self.envs.send(actions, ids)
        for i, action in zip(ids, actions, strict=True):
            self.expected[i] = self.step_one(i, action)

    @rule(seed=seeds)
    def async_reset(self, seed: Any) -> None:
        if self.busy:
            return self.refused(pyfastenv.BusyError, lambda: self.envs.async_reset(seed=seed))
        self.envs.async_reset(seed=seed)
        zero, false = bits(np.zeros(1), 0), bits(np.zeros(1, bool), 0)
        for i in range(NUM_ENVS):
            obs, info = self.reset_one(i, seed)
            self.expected[i] = (obs, zero, false, false, info)

    @rule(
        least=st.none() | st.integers(1, NUM_ENVS),
        most=st.none() | st.integers(1, NUM_ENVS),
        timeout=st.sampled_from([None, 0.0, 1e-4, 1.0]),
    )
    def recv(self, least: int | None, most: int | None, timeout: float | None) -> None:
        if least is not None and most is not None and least > most:
            return self.refused(ValueError, lambda: self.envs.recv(least, max_envs=most))
        if not self.busy:
            return self.refused(pyfastenv.NothingPendingError, self.envs.recv)
        result = self.envs.recv(least, timeout, max_envs=most)
        ids = result[4]["env_id"].tolist()
        assert len(ids) == len(set(ids)) and set(ids) <= self.busy
        wanted = min(least or len(self.busy), most or NUM_ENVS, len(self.busy))
        assert 1 <= len(ids) <= (most or NUM_ENVS)
        assert timeout is not None or len(ids) >= wanted
        for row, i in enumerate(ids):
            assert row_of(result, row) == self.expected.pop(i)

    @rule()
    def save(self) -> None:
        if self.busy:
            return self.refused(pyfastenv.BusyError, self.envs.get_state)
        theirs = [env.get_state()[0] for env in self.reference]
        self.saved = (
            self.envs.get_state(),
            list(zip(theirs, self.needs_reset, self.last_obs, strict=True)),
        )
        assert np.array_equal(self.saved[0], np.stack(theirs))

    @precondition(lambda self: self.saved is not None)
    @rule(into=subsets, shift=st.integers(0, NUM_ENVS - 1))
    def restore(self, into: list[int], shift: int) -> None:
        assert self.saved is not None
        states, model = self.saved
        sources = [(i + shift) % NUM_ENVS for i in into]
        if self.busy & set(into):
            return self.refused(
                pyfastenv.BusyError, lambda: self.envs.set_state(states[sources], into)
            )
        self.envs.set_state(states[sources], into)
        for i, source in zip(into, sources, strict=True):
            state, self.needs_reset[i], self.last_obs[i] = model[source]
            self.reference[i].set_state(state[None])

    # ---- illegal calls: refused, and nothing changes (the invariants and later rows tell) ----

    @rule(
        kind=st.sampled_from(
            ["shape", "id", "negative id", "twice", "no ids", "value", "dtype", "mask", "seed",
             "length", "min_envs", "timeout", "state", "field", "task", "option"]
        )
    )  # fmt: skip
    def bad_call(self, kind: str) -> None:
        envs, actions = self.envs, self.actions(0, NUM_ENVS)
        no_one = np.zeros(NUM_ENVS, bool)
        bad = np.full_like(actions, 9 if actions.dtype.kind == "i" else np.nan)
        calls: dict[str, tuple[type[Exception], Any]] = {
            "shape": (ValueError, lambda: envs.step(actions[1:])),
            "id": (IndexError, lambda: envs.send(actions[:1], [NUM_ENVS])),
            "negative id": (IndexError, lambda: envs.send(actions[:1], [-1])),
            "twice": (ValueError, lambda: envs.send(actions[:2], [1, 1])),
            "no ids": (ValueError, lambda: envs.send(actions[:0], [])),
            "value": (ValueError, lambda: envs.step(bad)),
            "dtype": (TypeError, lambda: envs.send(actions.astype(complex))),
            "mask": (ValueError, lambda: envs.reset(seed=3, options={"reset_mask": no_one})),
            "seed": (Exception, lambda: envs.reset(seed=-1)),
            "length": (ValueError, lambda: envs.reset(seed=[1, 2])),
            "min_envs": (ValueError, lambda: envs.recv(0)),
            "timeout": (ValueError, lambda: envs.recv(timeout=-1.0)),
            "state": (ValueError, lambda: envs.set_state(np.zeros((5, 3), np.uint8))),
            "field": (ValueError, lambda: envs.set_model_field("nothing", np.zeros(3))),
            "task": (ValueError, lambda: envs.reset_task(np.zeros((5, 1)))),
            "option": (ValueError, lambda: envs.async_reset(options={"reset_mask": no_one})),
        }
        error, call = calls[kind]
        # NumPy makes an empty list float64; a new field's name is looked up once all are free
        also = {"no ids": TypeError, "field": pyfastenv.BusyError}
        self.refused((error, also.get(kind, error)), call)

    # ---- what always holds ----

    @invariant()
    def free_environments_have_the_references_state(self) -> None:
        if not hasattr(self, "envs"):
            return
        free = [i for i in range(NUM_ENVS) if i not in self.busy]
        if free:
            expected = np.concatenate([self.reference[i].get_state() for i in free])
            assert np.array_equal(self.envs.get_state(free), expected)
        if self.busy:
            with pytest.raises(pyfastenv.BusyError):
                self.envs.get_state(sorted(self.busy))


class ClosedPool(Pool):
    """The same, closed at some moment: everything is refused from then on."""

    @rule()
    def close(self) -> None:
        self.envs.close()
        assert self.envs.closed
        actions = self.actions(0, NUM_ENVS)
        calls = [
            self.envs.reset,
            self.envs.async_reset,
            self.envs.recv,
            self.envs.get_state,
            lambda: self.envs.step(actions),
            lambda: self.envs.send(actions),
        ]
        for call in calls:
            self.refused(pyfastenv.ClosedError, call)
        self.make()  # and from the beginning


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ["CartPole-v1", "InvertedPendulum-v5"])
def test_any_sequence_of_calls(env_id: str, mode: str, num_threads: int) -> None:
    machine = type(
        "Machine", (ClosedPool,), {"env_id": env_id, "mode": mode, "num_threads": num_threads}
    )
    run_state_machine_as_test(machine, settings=SETTINGS)
