"""A wrong call raises at once, says what was expected, and moves no environment."""

import inspect
import pathlib
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from parity import assert_same, random_actions

import pyfastenv
from pyfastenv.errors import BusyError, ClosedError, NothingPendingError, ResetNeededError
from pyfastenv.vector.specs import resolve_xml_file

NUM_ENVS = 4
THREADS = [1, 4]


def make(env_id: str = "HalfCheetah-v5", **kwargs: Any) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(env_id, **{"num_envs": NUM_ENVS, "num_threads": 1, **kwargs})


class Pair:
    """An environment that is mistreated, and an undisturbed twin that it must go on equal to."""

    def __init__(self, env_id: str, num_threads: int):
        self.envs = make(env_id, num_threads=num_threads)
        self.twin = make(env_id)
        self.rng = np.random.default_rng(0)
        self.envs.reset(seed=3)
        self.twin.reset(seed=3)
        self.go_on()

    def actions(self) -> np.ndarray:
        return random_actions(self.envs.single_action_space, self.rng, NUM_ENVS)

    def go_on(self) -> None:
        for _ in range(3):
            actions = self.actions()
            assert_same(self.envs.step(actions), self.twin.step(actions))
        np.testing.assert_array_equal(self.envs.get_state(), self.twin.get_state())

    @contextmanager
    def refused(self, error: Any, *words: str) -> Iterator[None]:
        """The block raises `error`, whose message has all `words`; nothing has moved."""
        before = self.envs.get_state()
        with pytest.raises(error) as caught:
            yield
        assert_says(caught.value, *words)
        assert len(str(caught.value)) < 500, "the message repeats the data"
        np.testing.assert_array_equal(self.envs.get_state(), before)
        assert self.envs.np_random_seed == self.twin.np_random_seed
        assert self.envs.state_bytes == self.twin.state_bytes
        self.go_on()

    def close(self) -> None:
        self.envs.close()
        self.twin.close()


def assert_says(error: BaseException, *words: str) -> None:
    for word in words:
        assert word in str(error), f"{word!r} is not in {str(error)!r}"
    assert "incompatible function arguments" not in str(error), "pybind11's message, not ours"
    assert "incompatible constructor arguments" not in str(error), "pybind11's message, not ours"


CHEETAH, POLE, META = "HalfCheetah-v5", "CartPole-v1", "HalfCheetahDir-v5"


@pytest.fixture(params=THREADS, ids=lambda n: f"{n}-threads")
def cheetah(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with closing(Pair(CHEETAH, request.param)) as pair:
        yield pair


@pytest.fixture(params=THREADS, ids=lambda n: f"{n}-threads")
def meta(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with closing(Pair(META, request.param)) as pair:
        yield pair


# ---- calls that are refused ----------------------------------------------------------------------

Call = Callable[[pyfastenv.FastVectorEnv], Any]


class Case(NamedTuple):
    """A call that is refused of an environment that has been reset and stepped."""

    env_id: str
    call: Call
    error: Any
    words: tuple[str, ...]


def step_and_send(actions: Any) -> list[Call]:
    return [lambda envs: envs.step(actions), lambda envs: envs.send(actions)]


def both_resets(**kwargs: Any) -> list[Call]:
    return [lambda envs: envs.reset(**kwargs), lambda envs: envs.async_reset(**kwargs)]


BOX, DISCRETE = "expected (4, 6) float32", "expected (4,) int64"


def not_finite(bad: float, dtype: Any) -> np.ndarray:
    actions = np.full((4, 6), 0.3, dtype)
    actions[1, 5] = actions[3, 0] = bad
    return actions


def of_actions() -> Iterator[Case]:
    for shape in [(4,), (4, 5), (4, 7), (3, 6), (5, 6), (6,), (4, 6, 1), (0, 6)]:
        for call in step_and_send(np.zeros(shape, np.float32)):
            yield Case(CHEETAH, call, ValueError, ("actions", BOX, f"got {shape}"))
    for shape in [(3,), (5,), (4, 1)]:
        for call in step_and_send(np.zeros(shape, np.int64)):
            yield Case(POLE, call, ValueError, ("actions", DISCRETE, f"got {shape}"))
    for dtype in ("complex128", "S1", "U1", "O", "M8[s]"):
        actions = np.zeros((4, 6), dtype)
        for call in step_and_send(actions):
            yield Case(CHEETAH, call, TypeError, ("actions", BOX, f"got (4, 6) {actions.dtype}"))
    for dtype in ("float32", "float64", "bool", "complex64", "U1", "O"):
        for call in step_and_send(np.zeros(4, dtype)):
            yield Case(POLE, call, TypeError, ())
    for given in (None, "up", {}, [[0.0] * 6] * 3 + [[0.0]], object(), 0, 0.5):
        yield Case(CHEETAH, step_and_send(given)[0], TypeError, ("actions", "expected"))
    for given in (0, np.int64(1), np.array(1)):  # gymnasium's iterate() raises TypeError, too
        for call in step_and_send(given):
            yield Case(POLE, call, TypeError, ("actions", DISCRETE, "got () int64"))
    for call in step_and_send(np.zeros((4, 5), np.int8)):
        yield Case(CHEETAH, call, ValueError, ("got (4, 5) int8",))
    for bad in (np.nan, np.inf, -np.inf):
        for dtype in (np.float32, np.float64):
            for call in step_and_send(not_finite(bad, dtype)):
                yield Case(CHEETAH, call, ValueError, ("actions", "finite", "environments 1, 3"))
    rows = not_finite(np.nan, np.float32)[:2]
    yield Case(CHEETAH, lambda e: e.send(rows, [0, 3]), ValueError, ("environment 3",))
    for number in (-1, 2, 2**40):
        for call in step_and_send(np.array([0, 1, number, 0])):
            yield Case(POLE, call, ValueError, ("actions", "expected 0 to 1", "environment 2"))
    few = np.zeros((2, 6), np.float32)
    words = ("expected (3, 6) float32", "got (2, 6) float32")
    yield Case(CHEETAH, lambda e: e.send(few, [0, 1, 2]), ValueError, words)
    for error in (NothingPendingError, gymnasium.error.NoAsyncCallError):
        yield Case(CHEETAH, lambda e: e.recv(), error, ("nothing has been sent", "send()"))
        yield Case(CHEETAH, lambda e: e.recv(timeout=0.0), error, ("nothing has been sent",))


BAD_IDS = [
    ([4], IndexError, ("expected ids from 0 to 3", "got 4")),
    ([0, -1], IndexError, ("expected ids from 0 to 3", "got -1")),
    ([0, 2**40], IndexError, ("expected ids from 0 to 3", f"got {2**40}")),
    ([2, 1, 2], ValueError, ("environment 2", "twice")),
    (np.array([], np.int64), ValueError, ("at least one",)),
    ([], ValueError, ("at least one",)),
    ([0.0, 1.0], TypeError, ("vector of integers", "float64")),
    ([True, False], TypeError, ("vector of integers", "bool")),
    (["0"], TypeError, ("vector of integers",)),
    ([[0, 1]], ValueError, ("vector", "(1, 2)")),
    (0, ValueError, ("vector", "()")),
]


def of_ids() -> Iterator[Case]:
    def calls(ids: Any, count: int) -> list[Call]:
        return [
            lambda e: e.send(np.zeros((count, 6), np.float32), ids),
            lambda e: e.async_reset(env_ids=ids),
            lambda e: e.get_state(ids),
            lambda e: e.set_state(np.repeat(e.get_state([0]), count, axis=0), ids),
            lambda e: e.reset_task(np.ones((count, 1)), ids),
            lambda e: e.set_model_field("body_mass", np.ones(8), ids),
        ]

    for ids, error, words in BAD_IDS:
        for call in calls(ids, np.size(ids)):
            yield Case(META, call, error, ("env_ids", *words))


def of_resets() -> Iterator[Case]:
    for seed, error, words in [
        (-1, gymnasium.error.Error, ("seed", ">= 0", "-1")),
        ([0, 1, -2, 3], gymnasium.error.Error, ("seed", ">= 0", "-2")),
        (1.5, TypeError, ("seed", "1.5")),
        ([0, 1, 2, 3.5], TypeError, ("seed", "3.5")),
        ("seed", TypeError, ("seed: expected",)),
        (b"1234", TypeError, ("seed: expected",)),
        ([0, 1, 2], ValueError, ("seed", "expected 4", "got 3")),
        ([], ValueError, ("seed", "expected 4", "got 0")),
    ]:
        for call in both_resets(seed=seed):
            yield Case(CHEETAH, call, error, words)
    masks: list[tuple[Any, Any, tuple[str, ...]]] = [
        ([True, False, True, False], TypeError, ("bool array", "got list")),
        (np.ones(4, np.int64), TypeError, ("bool array", "got int64")),
        (np.ones(3, bool), ValueError, ("(4,)", "got (3,)")),
        (np.ones((4, 1), bool), ValueError, ("(4,)", "got (4, 1)")),
        (np.zeros(4, bool), ValueError, ("at least one True",)),
    ]
    for mask, error, words in masks:
        call = both_resets(seed=9, options={"reset_mask": mask})[0]
        yield Case(CHEETAH, call, error, ("reset_mask", *words))
    with_mask = both_resets(options={"reset_mask": np.ones(4, bool)})[1]
    yield Case(CHEETAH, with_mask, ValueError, ("reset_mask",))
    for options in (np.ones(4, bool), [("low", 0.0)], "low", 3):
        for call in both_resets(options=options):
            words = ("options: expected a dict or None", type(options).__name__)
            yield Case(POLE, call, TypeError, words)
    bounds: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"low": 1.0, "high": -1.0}, ("low (1.0) is above high (-1.0)",)),
        ({"low": "down"}, ("options['low']", "'down'")),
        ({"low": -1e308, "high": 1e308}, ("narrower",)),  # NumPy: OverflowError
        *(
            ({name: bad}, (f"options['{name}']", "finite", str(bad)))
            for name in ("low", "high")
            for bad in (np.nan, np.inf, -np.inf)
        ),
    ]
    for options, words in bounds:
        for call in both_resets(seed=9, options=options):
            yield Case(POLE, call, ValueError, words)


def setting_state(spoil: Callable[[np.ndarray], Any]) -> Call:
    return lambda envs: envs.set_state(spoil(envs.get_state()))


def of_states() -> Iterator[Case]:
    wrong: list[Callable[[np.ndarray], Any]] = [
        *(lambda s: s[:3], lambda s: s[:, :-1], lambda s: s[0], np.ndarray.tolist),
        *(lambda s, t=t: s.astype(t) for t in (np.int8, np.int32, np.float64, bool)),
        *(lambda _: "state", lambda _: None),
    ]
    for spoil in wrong:
        words = ("state: expected", "uint8", "got")
        yield Case(CHEETAH, setting_state(spoil), (ValueError, TypeError), words)
    words = ("state: expected (2, ", " uint8")
    yield Case(CHEETAH, lambda e: e.set_state(e.get_state(), [0, 1]), ValueError, words)

    def zeros(state: np.ndarray) -> np.ndarray:
        state[3] = 0  # a good start does not move the first three
        return state

    def one_bit(state: np.ndarray) -> np.ndarray:
        state[3, 0] ^= 1
        return state

    def noise(state: np.ndarray) -> np.ndarray:
        return np.random.default_rng(0).integers(0, 256, state.shape, np.uint8)

    garbage: list[tuple[Callable[[np.ndarray], Any], str]] = [
        *((noise, "row 0"), (lambda s: s[:, ::-1], "row 0"), (zeros, "row 3"), (one_bit, "row 3")),
    ]
    for spoil, row in garbage:
        yield Case(CHEETAH, setting_state(spoil), ValueError, ("state", row))


def of_fields_and_tasks() -> Iterator[Case]:
    nan_in_the_second = np.ones((2, 8))
    nan_in_the_second[1, 4] = np.nan
    fields: list[tuple[str, Any, Any, Any, tuple[str, ...]]] = [
        ("body_mas", 1.0, None, ValueError, ("'body_mas'", "body_mass")),
        ("opt.gravitation", [0, 0, 0], None, ValueError, ("'opt.gravitation'", "opt.gravity")),
        ("nonsense", 1.0, None, ValueError, ("'nonsense' is not a real-valued array field of",)),
        ("mass", 1.0, None, ValueError, ("'mass' is not",)),
        ("geom_type", np.ones(9), None, ValueError, ("'geom_type' is not",)),
        ("opt.timestep", np.ones(1), None, ValueError, ("'opt.timestep' is not",)),
        ("", np.ones(1), None, ValueError, ("'' is not",)),
        ("qpos", np.zeros(9), None, ValueError, ("'qpos'", "qpos_spring")),
        ("body_parentid", np.zeros(8), None, ValueError, ("'body_parentid'",)),
        ("tendon_stiffness", 1.0, None, ValueError, ("tendon_stiffness",)),
        ("body_mass", np.ones(7), None, ValueError, ("body_mass", "(4, 8)", "(8,)", "got (7,)")),
        ("body_mass", np.ones((3, 8)), None, ValueError, ("body_mass", "(4, 8)", "got (3, 8)")),
        ("body_mass", 1.0, None, ValueError, ("body_mass", "(4, 8)", "got ()")),
        ("body_mass", "heavy", None, TypeError, ("values", "real numbers")),
        ("body_mass", np.ones(8, complex), None, TypeError, ("values", "real numbers")),
        ("body_mass", np.full((4, 8), np.nan), None, ValueError, ("finite",)),
        ("body_mass", np.full(8, np.inf), None, ValueError, ("finite",)),
        ("body_mass", np.ones((4, 8)), [0, 3], ValueError, ("(2, 8)", "got (4, 8)")),
        ("body_mass", nan_in_the_second, [0, 3], ValueError, ("environment 3",)),
    ]
    for name, values, ids, error, words in fields:
        yield Case(CHEETAH, lambda e, a=(name, values, ids): e.set_model_field(*a), error, words)
    asking: list[tuple[str, Call, str]] = [
        (CHEETAH, lambda e: e.get_model_field("body_mas"), "body_mass"),
        (POLE, lambda e: e.set_model_field("body_mass", 1.0), "body_mass"),
        (POLE, lambda e: e.get_model_field("body_mass"), "body_mass"),
        (CHEETAH, lambda e: e.reset_task(np.ones((4, 1))), "this environment has no tasks"),
        (CHEETAH, lambda e: e.sample_tasks(4), "HalfCheetah-v5 has no tasks"),
        (META, lambda e: e.sample_tasks(0), "n: expected at least 1, got 0"),
    ]
    for env_id, call, said in asking:
        yield Case(env_id, call, ValueError, (said,))
    words = ("n: expected an integer, got 1.5",)
    yield Case(META, lambda e: e.sample_tasks(1.5), TypeError, words)  # type: ignore[arg-type]
    tasks: list[tuple[Any, Any, Any, tuple[str, ...]]] = [
        (np.ones(4), None, ValueError, ("tasks", "(4, 1)", "got (4,)")),
        (np.ones((3, 1)), None, ValueError, ("tasks", "(4, 1)", "got (3, 1)")),
        (np.ones((4, 2)), None, ValueError, ("tasks", "(4, 1)", "got (4, 2)")),
        ([{"direction": 1}] * 3, None, ValueError, ("tasks", "(4, 1)", "got (3, 1)")),
        ([{"velocity": 1}] * 4, None, (KeyError, ValueError), ("direction",)),
        (np.array([["left"]] * 4), None, TypeError, ("tasks", "real numbers")),
        ([[1.0], [1.0], [np.nan], [np.inf]], None, ValueError, ("finite", "environments 2, 3")),
        ([[1.0], [np.nan]], [0, 3], ValueError, ("environment 3",)),
        ([1.0, 1.0], [0, 3], ValueError, ("(2, 1)", "got (2,)")),
    ]
    for given, ids, error, words in tasks:
        yield Case(META, lambda e, a=(given, ids): e.reset_task(*a), error, words)


CASES = [*of_actions(), *of_ids(), *of_resets(), *of_states(), *of_fields_and_tasks()]


@pytest.fixture(scope="module")
def pairs() -> Iterator[dict[tuple[str, int], Pair]]:
    """Pairs that a refused call has left as they were, for the next one."""
    made: dict[tuple[str, int], Pair] = {}
    yield made
    for pair in made.values():
        pair.close()


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.env_id} {case.words[-1:]}")
def test_a_wrong_call_is_refused_and_moves_nothing(
    case: Case, num_threads: int, pairs: dict[tuple[str, int], Pair]
) -> None:
    key = case.env_id, num_threads
    pair = pairs.pop(key, None) or Pair(*key)
    with pair.refused(case.error, *case.words):
        case.call(pair.envs)
    pairs[key] = pair


def test_reset_bounds_of_a_pendulum() -> None:
    pendulum = make("Pendulum-v1")
    for bad, words in ((-1.0, ">= 0, got -1.0"), (1e308, "narrower"), (np.nan, "finite")):
        with pytest.raises(ValueError, match=words):
            pendulum.reset(options={"y_init": bad})


def test_one_bad_value_for_all_blames_no_environment() -> None:
    values = np.ones(8)
    values[4] = np.nan
    with pytest.raises(ValueError, match="finite") as caught:
        make().set_model_field("body_mass", values)
    assert "environment 4" not in str(caught.value)


# ---- busy environments and order of calls --------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"min_envs": 0}, ValueError, ("min_envs", "1 to 4", "got 0")),
        ({"min_envs": 5}, ValueError, ("min_envs", "1 to 4", "got 5")),
        ({"max_envs": 0}, ValueError, ("max_envs", "1 to 4", "got 0")),
        ({"max_envs": -1}, ValueError, ("max_envs", "1 to 4", "got -1")),
        ({"min_envs": 3, "max_envs": 2}, ValueError, ("min_envs is larger than max_envs",)),
        ({"timeout": -1.0}, ValueError, ("timeout: expected seconds >= 0",)),
        ({"timeout": np.nan}, ValueError, ("timeout: expected seconds >= 0",)),
        ({"min_envs": 1.5}, TypeError, ("min_envs", "1.5")),
        ({"timeout": "soon"}, TypeError, ("timeout", "soon")),
    ],
)
def test_bad_arguments_of_recv(
    cheetah: Pair, kwargs: dict[str, Any], error: type[Exception], words: tuple[str, ...]
) -> None:
    actions = cheetah.actions()
    cheetah.envs.send(actions)
    with pytest.raises(error) as caught:
        cheetah.envs.recv(**kwargs)
    assert_says(caught.value, *words)
    result = cheetah.envs.recv()  # nothing was lost
    np.testing.assert_array_equal(np.sort(result[4]["env_id"]), range(NUM_ENVS))
    cheetah.twin.step(actions)
    cheetah.go_on()


@pytest.mark.parametrize("num_threads", THREADS)
def test_step_before_reset(num_threads: int) -> None:
    envs = make(num_threads=num_threads)
    before = envs.get_state()
    with pytest.raises(ResetNeededError, match="reset environments 0, 1, 2, 3 first"):
        envs.step(np.zeros((4, 6), np.float32))
    with pytest.raises(ResetNeededError, match="reset environment 2 first"):
        envs.send(np.zeros((1, 6), np.float32), [2])
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.send(np.zeros((4, 6), np.float32))
    np.testing.assert_array_equal(envs.get_state(), before)
    envs.reset(options={"reset_mask": np.array([True, False, True, True])})
    with pytest.raises(ResetNeededError, match="reset environment 1 first"):
        envs.step(np.zeros((4, 6), np.float32))
    envs.reset()
    envs.step(np.zeros((4, 6), np.float32))
    envs.close()


@pytest.mark.parametrize("num_threads", THREADS)
def test_step_after_the_end_with_autoreset_disabled(num_threads: int) -> None:
    envs = make(num_threads=num_threads, autoreset_mode="Disabled", max_episode_steps=1)
    envs.reset(seed=0)
    envs.step(np.zeros((4, 6), np.float32))
    before = envs.get_state()
    with pytest.raises(ResetNeededError, match="0, 1, 2, 3"):
        envs.step(np.zeros((4, 6), np.float32))
    np.testing.assert_array_equal(envs.get_state(), before)
    envs.close()


BUSY_CALLS: dict[str, Callable[[pyfastenv.FastVectorEnv], Any]] = {
    "step": lambda envs: envs.step(np.zeros((4, 6), np.float32)),
    "reset": lambda envs: envs.reset(),
    "reset with a seed": lambda envs: envs.reset(seed=9),
    "masked reset": lambda envs: envs.reset(options={"reset_mask": np.arange(4) == 2}),
    # the result has the others' rows too
    "masked reset of others": lambda envs: envs.reset(options={"reset_mask": np.arange(4) == 0}),
    "async_reset": lambda envs: envs.async_reset(seed=9),
    "send all": lambda envs: envs.send(np.zeros((4, 6), np.float32)),
    "send": lambda envs: envs.send(np.zeros((2, 6), np.float32), [1, 2]),
    "get_state": lambda envs: envs.get_state([2]),
    "get_state of all": lambda envs: envs.get_state(),
    "set_state": lambda envs: envs.set_state(envs.get_state([0]), [2]),
    "set_state of all": lambda envs: envs.set_state(envs.get_state([0]).repeat(4, axis=0)),
    "reset_task": lambda envs: envs.reset_task([[-1.0]], [2]),
    "set_model_field": lambda envs: envs.set_model_field("body_mass", np.ones(8), [2]),
    "np_random": lambda envs: envs.np_random,
}


@pytest.mark.parametrize("call", BUSY_CALLS)
def test_busy_environments(meta: Pair, call: str) -> None:
    actions = meta.actions()
    meta.envs.send(actions[[2, 3]], [2, 3])
    with pytest.raises(BusyError) as caught:
        BUSY_CALLS[call](meta.envs)
    assert_says(caught.value, "2", "recv()")
    assert isinstance(caught.value, gymnasium.error.AlreadyPendingCallError)
    assert meta.envs.np_random_seed == meta.twin.np_random_seed
    meta.envs.send(actions[[0, 1]], [0, 1])
    ours, theirs = meta.envs.recv(), meta.twin.step(actions)
    np.testing.assert_array_equal(ours[0][np.argsort(ours[4]["env_id"])], theirs[0])
    meta.go_on()


def test_environments_that_are_not_busy_can_be_used(cheetah: Pair) -> None:
    actions = cheetah.actions()
    cheetah.envs.send(actions[[0, 1]], [0, 1])
    state = cheetah.envs.get_state([2, 3])
    np.testing.assert_array_equal(state, cheetah.twin.get_state([2, 3]))
    cheetah.envs.set_state(state, [2, 3])
    cheetah.envs.send(actions[[3, 2]], [3, 2])
    cheetah.envs.recv()
    cheetah.twin.step(actions)
    cheetah.go_on()


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize(("env_id", "dtype"), [("CartPole-v1", "i8"), ("HalfCheetah-v5", "f8")])
def test_send_of_any_dtype_while_resets_are_under_way(
    env_id: str, dtype: str, num_threads: int
) -> None:
    envs = make(env_id, num_threads=num_threads)
    envs.async_reset(seed=0)
    ids = envs.recv(1, max_envs=1)[4]["env_id"]
    envs.send(np.zeros((1, *envs.single_action_space.shape), dtype), ids)
    received = sum(len(envs.recv(1, max_envs=1)[1]) for _ in range(NUM_ENVS))
    assert received == NUM_ENVS
    envs.close()


# ---- after close ---------------------------------------------------------------------------------

CLOSED_CALLS: dict[str, Callable[[pyfastenv.FastVectorEnv], Any]] = {
    "reset": lambda envs: envs.reset(),
    "reset with a seed": lambda envs: envs.reset(seed=0),
    "step": lambda envs: envs.step(np.zeros((4, 6), np.float32)),
    "async_reset": lambda envs: envs.async_reset(),
    "send": lambda envs: envs.send(np.zeros((4, 6), np.float32)),
    "recv": lambda envs: envs.recv(),
    "get_state": lambda envs: envs.get_state(),
    "set_state": lambda envs: envs.set_state(np.zeros((4, envs.state_bytes), np.uint8)),
    "reset_task": lambda envs: envs.reset_task(np.ones((4, 1))),
    "get_task": lambda envs: envs.get_task(),
    "set_model_field": lambda envs: envs.set_model_field("body_mass", np.ones(8)),
    "get_model_field": lambda envs: envs.get_model_field("body_mass"),
    "render": lambda envs: envs.render(),
    "np_random": lambda envs: envs.np_random,
}


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("call", CLOSED_CALLS)
def test_use_after_close(call: str, num_threads: int) -> None:
    envs = make("HalfCheetahDir-v5", num_threads=num_threads, render_mode="rgb_array")
    envs.reset(seed=0)
    envs.close()
    with pytest.raises(ClosedError, match="closed") as caught:
        CLOSED_CALLS[call](envs)
    assert isinstance(caught.value, gymnasium.error.ClosedEnvironmentError)


@pytest.mark.parametrize("num_threads", THREADS)
def test_close_with_work_under_way_and_twice(num_threads: int) -> None:
    envs = make(num_threads=num_threads)
    envs.reset(seed=0)
    envs.send(np.zeros((4, 6), np.float32))
    envs.close()
    envs.close()
    assert envs.closed
    with pytest.raises(ClosedError):
        envs.recv()
    # what needs no environment can still be read
    assert envs.stats()["errors"] == 0
    assert envs.np_random_seed == (0, 1, 2, 3)
    assert envs.action_space.shape == (4, 6)


# ---- construction --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "nearest"),
    [
        ("HalfChetah-v5", "HalfCheetah-v5"),
        ("humanoid-v5", "Humanoid-v5"),
        ("pyfastenv/Hoper-v5", "Hopper-v5"),
        ("Walker", "Walker2d-v5"),
        ("metaworld/reech-v3", "metaworld/reach-v3"),
        ("CheetahRunn-v1", "CheetahRun-v1"),
        ("", "`pyfastenv envs` lists all"),
        ("Foo-v9", "`pyfastenv envs` lists all"),
    ],
)
def test_unknown_id_names_the_nearest(env_id: str, nearest: str) -> None:
    with pytest.raises(ValueError, match="unknown environment id") as caught:
        make(env_id)
    assert_says(caught.value, nearest, repr(env_id.removeprefix("pyfastenv/")))


@pytest.mark.parametrize("env_id", [None, 3, ["Ant-v5"]])
@pytest.mark.parametrize("how", [pyfastenv.make_vec, pyfastenv.FastVectorEnv, pyfastenv.FastEnv])
def test_an_id_that_is_no_string(how: Any, env_id: Any) -> None:
    with pytest.raises(TypeError, match="env_id: expected a string such as 'HalfCheetah-v5', got"):
        how(env_id)


def test_unknown_keyword() -> None:
    with pytest.raises(TypeError, match=r"HalfCheetah-v5 got an unexpected .* 'forward_weight'"):
        make(forward_weight=1.0)
    with pytest.raises(TypeError, match=r"it takes .*forward_reward_weight.*xml_file"):
        make(forward_weight=1.0)
    with pytest.raises(TypeError, match="'xml_file'"):
        make("CartPole-v1", xml_file="hopper.xml")
    with pytest.raises(TypeError, match="'num_thread'") as caught:
        make(num_thread=2)
    assert caught.value.__notes__ == ["Was num_threads meant by num_thread?"]


def bad_arguments() -> Iterator[tuple[str, dict[str, Any], Any, tuple[str, ...]]]:
    """(id, arguments, error, words) of environments that cannot be made."""
    for env_id, kwargs in [
        *((CHEETAH, {"forward_reward_weight": given}) for given in ("much", None)),
        (CHEETAH, {"reset_noise_scale": [0.1, 0.2]}),
        (CHEETAH, {"frame_skip": "5"}),
        (CHEETAH, {"xml_file": 3}),
        *(("Ant-v5", {"healthy_z_range": given}) for given in (0.2, (0.2,))),
        ("Ant-v5", {"include_cfrc_ext_in_observation": "yes"}),
        (POLE, {"sutton_barto_reward": "yes"}),
        *((CHEETAH, {"num_envs": given}) for given in (2.5, "4")),
        (CHEETAH, {"num_threads": 1.5}),
        (CHEETAH, {"max_episode_steps": 10.5}),
        (CHEETAH, {"copy": "no"}),
        (CHEETAH, {"infos": "no"}),
    ]:
        yield env_id, kwargs, TypeError, (next(iter(kwargs)), "expected")
    values: list[tuple[str, Any, tuple[str, ...]]] = [
        ("obs_dtype", "float16", ("one of float32, float64", "float16")),
        ("obs_dtype", int, ("one of float32, float64", "int64")),
        ("render_mode", "human", ("rgb_array", "human")),
        ("num_envs", 0, ("at least 1", "got 0")),
        ("num_envs", -3, ("at least 1", "got -3")),
        ("num_threads", -1, ("at least 0", "got -1")),
        ("max_episode_steps", -2, ("at least -1", "got -2")),
        *((name, 2**40, (str(2**40),)) for name in ("num_envs", "num_threads")),
        ("max_episode_steps", 2**40, (str(2**40),)),
        *(("frame_skip", given, ("positive",)) for given in (0, 2.5, float("nan"))),
        ("frame_skip", 2.0**40, ()),
        *(
            ("autoreset_mode", mode, ("'NextStep', 'SameStep', 'Disabled'", f"got {mode!r}"))
            for mode in ("same_step", "nextstep", None, 3)
        ),
    ]
    for name, value, words in values:
        yield CHEETAH, {name: value}, ValueError, (name, *words)
    yield CHEETAH, {"obs_dtype": "floaty"}, (TypeError, ValueError), ("floaty",)
    yield "Ant-v5", {"main_body": "trunk"}, ValueError, ("no body named 'trunk'",)
    yield "Ant-v5", {"main_body": 99}, ValueError, ("main_body: expected an id from 0 to 13",)
    for file in ("no_such.xml", "./no_such.xml", "/no/such.xml", ""):
        yield CHEETAH, {"xml_file": file}, FileNotFoundError, ("xml_file",)


@pytest.mark.parametrize(("env_id", "kwargs", "error", "words"), list(bad_arguments()))
def test_environments_that_cannot_be_made(
    env_id: str, kwargs: dict[str, Any], error: Any, words: tuple[str, ...]
) -> None:
    with pytest.raises(error) as caught:
        make(env_id, **kwargs)
    assert_says(caught.value, *words)


def number_arguments() -> Iterator[tuple[str, str, Any]]:
    """(id, argument, default) of every number and range that gymnasium's environments take."""
    for env_id in pyfastenv.env_ids():
        if env_id not in gymnasium.registry:
            continue
        entry_point = gymnasium.registry[env_id].entry_point
        assert isinstance(entry_point, str)
        cls = gymnasium.envs.registration.load_env_creator(entry_point)
        for name, parameter in inspect.signature(cls.__init__).parameters.items():
            default = parameter.default
            number = isinstance(default, int | float) and not isinstance(default, bool)
            if name not in ("render_mode", "main_body") and (number or name.endswith("_range")):
                yield env_id, name, default


@pytest.mark.parametrize(("env_id", "name", "default"), list(number_arguments()))
def test_numbers_are_checked_for_what_they_mean(env_id: str, name: str, default: Any) -> None:
    bad: list[Any] = [float("nan")]
    if isinstance(default, tuple):
        bad = [(float("nan"), 1.0), (0.0, float("nan")), (1.0, 0.5)]
    elif name == "reset_noise_scale":
        bad += [float("inf"), -float("inf"), -0.1, -1, 1e308]
    elif name != "goal_velocity":  # a goal that is never reached is a goal
        bad += [float("inf"), -float("inf")]
    for value in bad:
        with pytest.raises(ValueError, match=f"^{name}: expected .*, got") as caught:
            make(env_id, **{name: value})
        assert_says(caught.value, *(["low <= high"] if isinstance(value, tuple) else []))
    make(env_id, **{name: default})


BROKEN_MODELS = ["", "no xml", "<mujoco><worldbody></mujoco>", "<mujoco><x/></mujoco>"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("broken.mjb", "no model"), *(("broken.xml", text) for text in BROKEN_MODELS)],
)
def test_broken_model_file(tmp_path: pathlib.Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match="cannot load") as caught:
        make(xml_file=path)
    assert_says(caught.value, str(path))


@pytest.mark.parametrize("env_id", ["Ant-v5", "Humanoid-v5", "Pusher-v5"])
def test_model_too_small_for_the_task(env_id: str) -> None:
    with pytest.raises(ValueError, match=r"nq >= \d+ .*got nq = 2|no body named"):
        make(env_id, xml_file="inverted_pendulum.xml")


def test_a_pendulum_without_a_tip(tmp_path: pathlib.Path) -> None:
    text = pathlib.Path(resolve_xml_file("inverted_double_pendulum.xml")).read_text()
    own = tmp_path / "bare.xml"
    own.write_text(re.sub(r"<site[^>]*>", "", text))
    with pytest.raises(ValueError, match=r"bare.xml: expected a model with a site"):
        make("InvertedDoublePendulum-v5", xml_file=own)


@pytest.mark.parametrize("value", [2, -1, 0.5, float("nan")])
def test_flags_are_true_or_false(value: float) -> None:
    with pytest.raises(ValueError, match="terminate_when_unhealthy: expected True or False, got"):
        make("Walker2d-v4", terminate_when_unhealthy=value)
    for flag in (0, 1, 1.0, np.True_):
        make("Walker2d-v4", terminate_when_unhealthy=flag).close()


def test_a_type_of_observations_that_is_not_numpys() -> None:
    with pytest.raises(
        TypeError, match="obs_dtype: expected 'float64', 'float32' or None, got 'f33'"
    ):
        make(obs_dtype="f33")


@pytest.mark.parametrize("env_id", [4, -1])
def test_render_of_an_unknown_environment(env_id: int) -> None:
    envs = make(render_mode="rgb_array")
    envs.reset(seed=0)
    with pytest.raises(IndexError, match=f"got {env_id}"):
        envs.render([env_id])
    envs.close()
