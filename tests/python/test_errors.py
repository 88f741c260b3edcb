"""A wrong call raises at once, says what was expected, and moves no environment."""

from __future__ import annotations

import inspect
import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import assert_same, random_actions

import pyfastenv
from pyfastenv.errors import BusyError, ClosedError, NothingPendingError, ResetNeededError

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
    def refused(self, error: type[Exception], *words: str) -> Iterator[None]:
        """The block raises `error`, whose message has all `words`; nothing has moved."""
        before = self.envs.get_state()
        with pytest.raises(error) as caught:
            yield
        assert_says(caught.value, *words)
        np.testing.assert_array_equal(self.envs.get_state(), before)
        self.go_on()

    def close(self) -> None:
        self.envs.close()
        self.twin.close()


def assert_says(error: BaseException, *words: str) -> None:
    for word in words:
        assert word in str(error), f"{word!r} is not in {str(error)!r}"
    assert "incompatible function arguments" not in str(error), "pybind11's message, not ours"
    assert "incompatible constructor arguments" not in str(error), "pybind11's message, not ours"


def make_pair(env_id: str, num_threads: int) -> Iterator[Pair]:
    pair = Pair(env_id, num_threads)
    yield pair
    pair.close()


@pytest.fixture(params=THREADS, ids=lambda n: f"{n}-threads")
def cheetah(request: pytest.FixtureRequest) -> Iterator[Pair]:
    yield from make_pair("HalfCheetah-v5", request.param)


@pytest.fixture(params=THREADS, ids=lambda n: f"{n}-threads")
def cart_pole(request: pytest.FixtureRequest) -> Iterator[Pair]:
    yield from make_pair("CartPole-v1", request.param)


@pytest.fixture(params=THREADS, ids=lambda n: f"{n}-threads")
def meta(request: pytest.FixtureRequest) -> Iterator[Pair]:
    yield from make_pair("HalfCheetahDir-v5", request.param)


def drive(envs: pyfastenv.FastVectorEnv, how: str, actions: Any) -> None:
    envs.step(actions) if how == "step" else envs.send(actions)


STEP_AND_SEND = pytest.mark.parametrize("how", ["step", "send"])


# ---- actions -------------------------------------------------------------------------------------


@STEP_AND_SEND
@pytest.mark.parametrize("shape", [(4,), (4, 5), (4, 7), (3, 6), (5, 6), (6,), (4, 6, 1), (0, 6)])
def test_actions_of_wrong_shape(cheetah: Pair, how: str, shape: tuple[int, ...]) -> None:
    with cheetah.refused(ValueError, "actions", "expected (4, 6) float32", f"got {shape}"):
        drive(cheetah.envs, how, np.zeros(shape, np.float32))


@STEP_AND_SEND
@pytest.mark.parametrize("shape", [(3,), (5,), (4, 1)])
def test_discrete_actions_of_wrong_shape(cart_pole: Pair, how: str, shape: tuple[int, ...]) -> None:
    with cart_pole.refused(ValueError, "actions", "expected (4,) int64", f"got {shape}"):
        drive(cart_pole.envs, how, np.zeros(shape, np.int64))


@STEP_AND_SEND
@pytest.mark.parametrize("dtype", ["complex128", "S1", "U1", "O", "M8[s]"])
def test_actions_of_wrong_dtype(cheetah: Pair, how: str, dtype: str) -> None:
    actions = np.zeros((4, 6), dtype)
    with cheetah.refused(
        TypeError, "actions", "expected (4, 6) float32", f"got (4, 6) {actions.dtype}"
    ):
        drive(cheetah.envs, how, actions)


@STEP_AND_SEND
@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "complex64", "U1", "O"])
def test_discrete_actions_of_wrong_dtype(cart_pole: Pair, how: str, dtype: str) -> None:
    with cart_pole.refused(TypeError):
        drive(cart_pole.envs, how, np.zeros(4, dtype))


@pytest.mark.parametrize("actions", [None, "up", {}, [[0.0] * 6] * 3 + [[0.0]], object(), 0, 0.5])
def test_actions_that_are_no_array(cheetah: Pair, actions: Any) -> None:
    with cheetah.refused(TypeError, "actions", "expected"):
        cheetah.envs.step(actions)


@STEP_AND_SEND
@pytest.mark.parametrize("actions", [0, np.int64(1), np.array(1)])
def test_a_number_is_no_batch_of_discrete_actions(cart_pole: Pair, how: str, actions: Any) -> None:
    # gymnasium's iterate() raises TypeError, too
    with cart_pole.refused(TypeError, "actions", "expected (4,) int64", "got () int64"):
        drive(cart_pole.envs, how, actions)


@STEP_AND_SEND
def test_the_message_has_the_dtype_that_was_given(cheetah: Pair, how: str) -> None:
    with cheetah.refused(ValueError, "got (4, 5) int8"):
        drive(cheetah.envs, how, np.zeros((4, 5), np.int8))


@STEP_AND_SEND
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_that_are_not_finite(cheetah: Pair, how: str, bad: float, dtype: Any) -> None:
    actions = cheetah.actions().astype(dtype)
    actions[1, 5] = actions[3, 0] = bad
    with cheetah.refused(ValueError, "actions", "finite", "environments 1, 3"):
        drive(cheetah.envs, how, actions)


def test_send_names_the_environment_of_a_bad_row(cheetah: Pair) -> None:
    actions = cheetah.actions()[:2]
    actions[1, 2] = np.nan
    with cheetah.refused(ValueError, "environments 3"):
        cheetah.envs.send(actions, [0, 3])


@STEP_AND_SEND
@pytest.mark.parametrize("bad", [-1, 2, 2**40])
def test_discrete_actions_out_of_range(cart_pole: Pair, how: str, bad: int) -> None:
    with cart_pole.refused(ValueError, "actions", "expected 0 to 1", "environments 2"):
        drive(cart_pole.envs, how, np.array([0, 1, bad, 0]))


def test_send_of_fewer_actions_than_ids(cheetah: Pair) -> None:
    with cheetah.refused(ValueError, "expected (3, 6) float32", "got (2, 6) float32"):
        cheetah.envs.send(np.zeros((2, 6), np.float32), [0, 1, 2])


# ---- environment ids -----------------------------------------------------------------------------

BAD_IDS = [
    ([4], IndexError, ("expected ids from 0 to 3", "got 4")),
    ([0, -1], IndexError, ("expected ids from 0 to 3", "got -1")),
    ([0, 2**40], IndexError, ("expected ids from 0 to 3", f"got {2**40}")),
    ([2, 1, 2], ValueError, ("environment 2", "twice")),
    (np.array([], np.int64), ValueError, ("at least one",)),
    ([0.0, 1.0], TypeError, ("vector of integers", "float64")),
    ([True, False], TypeError, ("vector of integers", "bool")),
    (["0"], TypeError, ("vector of integers",)),
    ([[0, 1]], ValueError, ("vector", "(1, 2)")),
    (0, ValueError, ("vector", "()")),
]


def calls_with_ids(pair: Pair, ids: Any) -> list[Callable[[], Any]]:
    envs = pair.envs
    count = np.size(ids)
    state = np.repeat(envs.get_state([0]), count, axis=0)
    return [
        lambda: envs.send(pair.actions()[:1].repeat(count, axis=0), ids),
        lambda: envs.get_state(ids),
        lambda: envs.set_state(state, ids),
        lambda: envs.reset_task(np.ones((count, 1)), ids),
        lambda: envs.set_model_field("body_mass", np.ones(8), ids),
    ]


@pytest.mark.parametrize(("ids", "error", "words"), BAD_IDS, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("call", range(5), ids=["send", "get", "set", "task", "field"])
def test_bad_ids(meta: Pair, call: int, ids: Any, error: type[Exception], words: Any) -> None:
    with meta.refused(error, "env_ids", *words):
        calls_with_ids(meta, ids)[call]()


# ---- busy environments and order of calls --------------------------------------------------------


@pytest.mark.parametrize("num_threads", THREADS)
def test_recv_with_nothing_sent(num_threads: int) -> None:
    envs = make(num_threads=num_threads)
    with pytest.raises(NothingPendingError, match=r"nothing has been sent.*send\(\)"):
        envs.recv()
    with pytest.raises(gymnasium.error.NoAsyncCallError):
        envs.recv(timeout=0.0)
    envs.close()


def test_recv_after_everything_was_received(cheetah: Pair) -> None:
    actions = cheetah.actions()
    cheetah.envs.send(actions)
    cheetah.envs.recv()
    cheetah.twin.step(actions)
    with cheetah.refused(NothingPendingError, "nothing has been sent"):
        cheetah.envs.recv()


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
    with pytest.raises(ResetNeededError, match="reset environments 2 first"):
        envs.send(np.zeros((1, 6), np.float32), [2])
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.send(np.zeros((4, 6), np.float32))
    np.testing.assert_array_equal(envs.get_state(), before)
    envs.reset(options={"reset_mask": np.array([True, False, True, True])})
    with pytest.raises(ResetNeededError, match="reset environments 1 first"):
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


@pytest.mark.parametrize("mode", ["same_step", "next", None, 1])
def test_autoreset_modes_that_are_none(mode: Any) -> None:
    with pytest.raises(ValueError, match="autoreset_mode: expected") as caught:
        make(autoreset_mode=mode)
    assert_says(caught.value, "'NextStep', 'SameStep', 'Disabled'", f"got {mode!r}")


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


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("HalfCheetah-v5", {"forward_reward_weight": "much"}),
        ("HalfCheetah-v5", {"forward_reward_weight": None}),
        ("HalfCheetah-v5", {"reset_noise_scale": [0.1, 0.2]}),
        ("HalfCheetah-v5", {"frame_skip": "5"}),
        ("HalfCheetah-v5", {"xml_file": 3}),
        ("Ant-v5", {"healthy_z_range": 0.2}),
        ("Ant-v5", {"healthy_z_range": (0.2,)}),
        ("Ant-v5", {"include_cfrc_ext_in_observation": "yes"}),
        ("CartPole-v1", {"sutton_barto_reward": "yes"}),
        ("HalfCheetah-v5", {"num_envs": 2.5}),
        ("HalfCheetah-v5", {"num_envs": "4"}),
        ("HalfCheetah-v5", {"num_threads": 1.5}),
        ("HalfCheetah-v5", {"max_episode_steps": 10.5}),
        ("HalfCheetah-v5", {"copy": "no"}),
        ("HalfCheetah-v5", {"infos": "no"}),
    ],
)
def test_keyword_of_wrong_type(env_id: str, kwargs: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as caught:
        make(env_id, **kwargs)
    assert_says(caught.value, next(iter(kwargs)), "expected")


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


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"autoreset_mode": "nextstep"}, ("AutoresetMode", "nextstep")),
        ({"autoreset_mode": 3}, ("AutoresetMode", "3")),
        ({"obs_dtype": "float16"}, ("obs_dtype", "one of float32, float64", "float16")),
        ({"obs_dtype": int}, ("obs_dtype", "one of float32, float64", "int64")),
        ({"render_mode": "human"}, ("render_mode", "rgb_array", "human")),
        ({"num_envs": 0}, ("num_envs", "at least 1", "got 0")),
        ({"num_envs": -3}, ("num_envs", "at least 1", "got -3")),
        ({"num_envs": 2**40}, ("num_envs", str(2**40))),
        ({"num_threads": -1}, ("num_threads", "at least 0", "got -1")),
        ({"num_threads": 2**40}, ("num_threads", str(2**40))),
        ({"max_episode_steps": -2}, ("max_episode_steps", "at least -1", "got -2")),
        ({"max_episode_steps": 2**40}, ("max_episode_steps", str(2**40))),
        ({"frame_skip": 0}, ("frame_skip", "positive")),
        ({"frame_skip": 2.5}, ("frame_skip", "positive")),
        ({"frame_skip": float("nan")}, ("frame_skip", "positive")),
        ({"frame_skip": 2.0**40}, ("frame_skip",)),
    ],
)
def test_value_out_of_range(kwargs: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=words[0]) as caught:
        make(**kwargs)
    assert_says(caught.value, *words)


def test_obs_dtype_that_is_none() -> None:
    with pytest.raises((TypeError, ValueError), match="floaty"):
        make(obs_dtype="floaty")


def test_unknown_body() -> None:
    with pytest.raises(ValueError, match="no body named 'trunk'"):
        make("Ant-v5", main_body="trunk")
    with pytest.raises(ValueError, match="main_body: expected an id from 0 to 13"):
        make("Ant-v5", main_body=99)


@pytest.mark.parametrize("xml_file", ["no_such.xml", "./no_such.xml", "/no/such.xml", ""])
def test_missing_model_file(xml_file: str) -> None:
    with pytest.raises(FileNotFoundError, match="xml_file"):
        make(xml_file=xml_file)


@pytest.mark.parametrize(
    "text", ["", "no xml", "<mujoco><worldbody></mujoco>", "<mujoco><x/></mujoco>"]
)
def test_broken_model_file(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "broken.xml"
    path.write_text(text)
    with pytest.raises(ValueError, match="cannot load") as caught:
        make(xml_file=path)
    assert_says(caught.value, str(path))


def test_broken_binary_model_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "broken.mjb"
    path.write_bytes(b"not a model")
    with pytest.raises(ValueError, match=r"broken\.mjb"):
        make(xml_file=path)


@pytest.mark.parametrize("env_id", ["Ant-v5", "Humanoid-v5", "Pusher-v5"])
def test_model_too_small_for_the_task(env_id: str) -> None:
    with pytest.raises(ValueError, match=r"nq >= \d+ .*got nq = 2|no body named"):
        make(env_id, xml_file="inverted_pendulum.xml")


# ---- reset ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["reset", "async_reset"])
@pytest.mark.parametrize(
    ("seed", "error", "words"),
    [
        (-1, gymnasium.error.Error, ("seed", ">= 0", "-1")),
        ([0, 1, -2, 3], gymnasium.error.Error, ("seed", ">= 0", "-2")),
        (1.5, TypeError, ("seed", "1.5")),
        ([0, 1, 2, 3.5], TypeError, ("seed", "3.5")),
        ("seed", TypeError, ("seed: expected",)),
        ([0, 1, 2], ValueError, ("seed", "expected 4", "got 3")),
        ([], ValueError, ("seed", "expected 4", "got 0")),
    ],
)
def test_bad_seeds(
    cheetah: Pair, how: str, seed: Any, error: type[Exception], words: tuple[str, ...]
) -> None:
    with cheetah.refused(error, *words):
        getattr(cheetah.envs, how)(seed=seed)
    assert cheetah.envs.np_random_seed == (3, 4, 5, 6)


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        ([True, False, True, False], TypeError, ("bool array", "got list")),
        (np.ones(4, np.int64), TypeError, ("bool array", "got int64")),
        (np.ones(3, bool), ValueError, ("(4,)", "got (3,)")),
        (np.ones((4, 1), bool), ValueError, ("(4,)", "got (4, 1)")),
        (np.zeros(4, bool), ValueError, ("at least one True",)),
    ],
)
def test_bad_reset_mask(
    cheetah: Pair, mask: Any, error: type[Exception], words: tuple[str, ...]
) -> None:
    with cheetah.refused(error, "reset_mask", *words):
        cheetah.envs.reset(seed=9, options={"reset_mask": mask})
    assert cheetah.envs.np_random_seed == (3, 4, 5, 6)


def test_async_reset_takes_no_mask(cheetah: Pair) -> None:
    with cheetah.refused(ValueError, "reset_mask"):
        cheetah.envs.async_reset(options={"reset_mask": np.ones(4, bool)})


@pytest.mark.parametrize("how", ["reset", "async_reset"])
@pytest.mark.parametrize("options", [np.ones(4, bool), [("low", 0.0)], "low", 3])
def test_options_that_are_no_dict(cart_pole: Pair, how: str, options: Any) -> None:
    with cart_pole.refused(TypeError, "options: expected a dict or None", type(options).__name__):
        getattr(cart_pole.envs, how)(options=options)


def test_bad_reset_bounds(cart_pole: Pair) -> None:
    with cart_pole.refused(ValueError, "low (1.0) is above high (-1.0)"):
        cart_pole.envs.reset(seed=9, options={"low": 1.0, "high": -1.0})
    with cart_pole.refused(ValueError, "options['low']", "'down'"):
        cart_pole.envs.reset(seed=9, options={"low": "down"})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["low", "high"])
def test_reset_bounds_are_finite(cart_pole: Pair, name: str, bad: float) -> None:
    with cart_pole.refused(ValueError, f"options['{name}']", "finite", str(bad)):
        cart_pole.envs.reset(seed=9, options={name: bad})
    with cart_pole.refused(ValueError, f"options['{name}']", "finite", str(bad)):
        cart_pole.envs.async_reset(seed=9, options={name: bad})


def test_reset_bounds_span_a_finite_interval(cart_pole: Pair) -> None:
    with cart_pole.refused(ValueError, "narrower"):  # NumPy: OverflowError
        cart_pole.envs.reset(seed=9, options={"low": -1e308, "high": 1e308})
    pendulum = make("Pendulum-v1")
    for bad, words in ((-1.0, ">= 0, got -1.0"), (1e308, "narrower"), (np.nan, "finite")):
        with pytest.raises(ValueError, match=words):
            pendulum.reset(options={"y_init": bad})


# ---- snapshots -----------------------------------------------------------------------------------


def test_set_state_of_wrong_shape_or_dtype(cheetah: Pair) -> None:
    state = cheetah.envs.get_state()
    wrong = [state[:3], state[:, :-1], state[0]]
    wrong += [state.astype(dtype) for dtype in (np.int8, np.int32, np.float64, bool)]
    for bad in wrong:
        with pytest.raises((ValueError, TypeError)) as caught:
            cheetah.envs.set_state(bad)
        assert_says(caught.value, "state", "expected", str(state.shape), "uint8", "got")
    with cheetah.refused(ValueError, "state", f"expected (2, {state.shape[1]}) uint8"):
        cheetah.envs.set_state(state, [0, 1])
    for other in (state.tolist(), "state", None):
        with pytest.raises(TypeError, match="state: expected") as caught:
            cheetah.envs.set_state(other)
        assert len(str(caught.value)) < 500, "the message repeats the data"
    cheetah.go_on()


def test_set_state_of_garbage(cheetah: Pair) -> None:
    state = cheetah.envs.get_state()
    garbage = np.random.default_rng(0).integers(0, 256, state.shape, np.uint8)
    for bad in (garbage, state[:, ::-1]):
        with cheetah.refused(ValueError, "state", "row 0"):
            cheetah.envs.set_state(bad)
    zeros, one_bit = cheetah.envs.get_state(), cheetah.envs.get_state()
    cheetah.go_on()
    zeros[3], one_bit[3, 0] = 0, one_bit[3, 0] ^ 1  # a good start does not move the first three
    for bad in (zeros, one_bit):
        with cheetah.refused(ValueError, "state", "row 3"):
            cheetah.envs.set_state(bad)


# ---- model fields and tasks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "error", "words"),
    [
        ("body_mas", 1.0, ValueError, ("'body_mas'", "body_mass")),
        ("opt.gravitation", [0, 0, 0], ValueError, ("'opt.gravitation'", "opt.gravity")),
        ("nonsense", 1.0, ValueError, ("'nonsense' is not a real-valued array field of mjModel",)),
        ("mass", 1.0, ValueError, ("'mass' is not",)),
        ("geom_type", np.ones(9), ValueError, ("'geom_type' is not",)),
        ("opt.timestep", np.ones(1), ValueError, ("'opt.timestep' is not",)),
        ("", np.ones(1), ValueError, ("'' is not",)),
        ("qpos", np.zeros(9), ValueError, ("'qpos'", "qpos_spring")),
        ("body_parentid", np.zeros(8), ValueError, ("'body_parentid'",)),
        ("tendon_stiffness", 1.0, ValueError, ("tendon_stiffness",)),
        ("body_mass", np.ones(7), ValueError, ("body_mass", "(4, 8)", "(8,)", "got (7,)")),
        ("body_mass", np.ones((3, 8)), ValueError, ("body_mass", "(4, 8)", "got (3, 8)")),
        ("body_mass", 1.0, ValueError, ("body_mass", "(4, 8)", "got ()")),
        ("body_mass", "heavy", TypeError, ("values", "real numbers")),
        ("body_mass", np.ones(8, complex), TypeError, ("values", "real numbers")),
        ("body_mass", np.full((4, 8), np.nan), ValueError, ("finite",)),
        ("body_mass", np.full(8, np.inf), ValueError, ("finite",)),
    ],
)
def test_bad_model_field(
    cheetah: Pair, name: str, values: Any, error: type[Exception], words: tuple[str, ...]
) -> None:
    with cheetah.refused(error, *words):
        cheetah.envs.set_model_field(name, values)
    assert cheetah.envs.state_bytes == cheetah.twin.state_bytes


def test_bad_model_field_names_the_environments(cheetah: Pair) -> None:
    values = np.ones((2, 8))
    with cheetah.refused(ValueError, "(2, 8)", "got (4, 8)"):
        cheetah.envs.set_model_field("body_mass", np.ones((4, 8)), [0, 3])
    values[1, 4] = np.nan
    with cheetah.refused(ValueError, "environments 3"):
        cheetah.envs.set_model_field("body_mass", values, [0, 3])
    # one value for all: no environment is to blame
    with pytest.raises(ValueError, match="finite") as caught:
        cheetah.envs.set_model_field("body_mass", values[1])
    assert "environments 4" not in str(caught.value)


def test_get_model_field_of_an_unknown_name(cheetah: Pair) -> None:
    with cheetah.refused(ValueError, "'body_mas'", "body_mass"):
        cheetah.envs.get_model_field("body_mas")


def test_reading_a_model_field_does_not_change_the_snapshots(cheetah: Pair) -> None:
    before = cheetah.envs.get_state()
    cheetah.envs.get_model_field("body_mass")
    np.testing.assert_array_equal(cheetah.envs.get_state(), before)


def test_model_fields_of_an_environment_without_mujoco(cart_pole: Pair) -> None:
    with cart_pole.refused(ValueError, "body_mass"):
        cart_pole.envs.set_model_field("body_mass", 1.0)
    with cart_pole.refused(ValueError, "body_mass"):
        cart_pole.envs.get_model_field("body_mass")


def test_tasks_of_an_environment_without_tasks(cheetah: Pair) -> None:
    with cheetah.refused(ValueError, "this environment has no tasks"):
        cheetah.envs.reset_task(np.ones((4, 1)))
    with pytest.raises(ValueError, match="HalfCheetah-v5 has no tasks"):
        cheetah.envs.sample_tasks(4)


@pytest.mark.parametrize(
    ("tasks", "error", "words"),
    [
        (np.ones(4), ValueError, ("tasks", "(4, 1)", "got (4,)")),
        (np.ones((3, 1)), ValueError, ("tasks", "(4, 1)", "got (3, 1)")),
        (np.ones((4, 2)), ValueError, ("tasks", "(4, 1)", "got (4, 2)")),
        ([{"direction": 1}] * 3, ValueError, ("tasks", "(4, 1)", "got (3, 1)")),
        ([{"velocity": 1}] * 4, (KeyError, ValueError), ("direction",)),
        (np.array([["left"]] * 4), TypeError, ("tasks", "real numbers")),
        ([[1.0], [1.0], [np.nan], [np.inf]], ValueError, ("tasks", "finite", "environments 2, 3")),
    ],
)
def test_bad_tasks(meta: Pair, tasks: Any, error: Any, words: tuple[str, ...]) -> None:
    with meta.refused(error, *words):
        meta.envs.reset_task(tasks)


def test_bad_tasks_name_the_environments(meta: Pair) -> None:
    with meta.refused(ValueError, "environments 3"):
        meta.envs.reset_task([[1.0], [np.nan]], [0, 3])
    with meta.refused(ValueError, "(2, 1)", "got (2,)"):
        meta.envs.reset_task([1.0, 1.0], [0, 3])


def test_bad_arguments_of_sample_tasks(meta: Pair) -> None:
    with meta.refused(ValueError, "n: expected at least 1, got 0"):
        meta.envs.sample_tasks(0)
    with meta.refused(TypeError, "n: expected an integer, got 1.5"):
        meta.envs.sample_tasks(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("env_id", [4, -1])
def test_render_of_an_unknown_environment(env_id: int) -> None:
    envs = make(render_mode="rgb_array")
    envs.reset(seed=0)
    with pytest.raises(IndexError, match=f"got {env_id}"):
        envs.render([env_id])
    envs.close()
