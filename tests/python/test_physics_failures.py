"""physics.rollout: bad input, errors of the engine, Ctrl-C, threads, forks; a fuzz of arguments."""

import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco import rollout as theirs
from physics_models import (
    CART_POLE,
    EVERYTHING,
    SENSORS,
    STATE,
    assert_bits,
    controls,
    from_text,
    make_data,
    robot,
    states,
)
from threads import run_threads

from pyfastenv import physics
from pyfastenv.vector import specs

pytestmark = pytest.mark.usefixtures("in_tmp_path")


# ---- bad input -----------------------------------------------------------------------------------

MODEL = from_text(CART_POLE)
DATA = mujoco.MjData(MODEL)
X = np.zeros((2, 5))
U = np.zeros((2, 4, 2))
READ_ONLY = np.zeros((2, 4, 5))
READ_ONLY.flags.writeable = False

# positional arguments, keyword arguments, the error and what it says
BAD_INPUT: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    (("model", DATA, X), {}, TypeError, "model: expected MjModel or a sequence of them, got str"),
    ((None, DATA, X), {}, TypeError, "model: expected MjModel .* got NoneType"),
    (([MODEL, 3], DATA, X), {}, TypeError, r"model\[1\]: expected MjModel, got int"),
    (([], DATA, X), {}, ValueError, "model: expected at least one MjModel, got none"),
    (([MODEL] * 3, DATA, X), {}, ValueError, "nbatch inferred as 2 but model is length 3"),
    ((MODEL, None, X), {}, TypeError, "data: expected MjData .* got NoneType"),
    ((MODEL, "data", X), {}, TypeError, "data: expected MjData .* got str"),
    ((MODEL, [], X), {}, ValueError, "^The list of data instances is empty$"),
    ((MODEL, [DATA, MODEL], X), {}, TypeError, r"data\[1\]: expected MjData, got MjModel"),
    ((MODEL, [DATA, DATA], X), {}, ValueError, r"data\[1\] is given twice"),
    ((MODEL, DATA, X.tolist()), {}, ValueError, "^initial_state must be a numpy array or float$"),
    ((MODEL, DATA, None), {}, ValueError, "initial_state: expected an array, got None"),
    ((MODEL, DATA, X[:, :4]), {}, ValueError, "trailing .* of initial_state must be 5, got 4"),
    ((MODEL, DATA, U), {}, ValueError, "initial_state can have at most 2 dimensions"),
    ((MODEL, DATA, X, 1), {}, ValueError, "control must be a numpy array or float"),
    ((MODEL, DATA, X, 0.5), {}, ValueError, "trailing dimension of control must be 2, got 1"),
    ((MODEL, DATA, X, U[None]), {}, ValueError, "control can have at most 3 dimensions"),
    ((MODEL, DATA, X, np.array([["a"]])), {}, ValueError, "could not convert string to float"),
    ((MODEL, DATA, X, np.zeros((3, 4, 2))), {}, ValueError, "0 inferred as 2 but control has 3"),
    ((MODEL, DATA, X, U), {"nstep": 3}, ValueError, "dimension 1 inferred as 3 but control has 4"),
    ((MODEL, DATA, X, U), {"nstep": 0}, ValueError, "dimension 1 inferred as 0 but control has 4"),
    ((MODEL, DATA, X), {"nstep": -1}, ValueError, "nstep must be non-negative"),
    ((MODEL, DATA, X), {"nstep": 1.5}, ValueError, "nstep must be an integer"),
    ((MODEL, DATA, X), {"nstep": True}, ValueError, "nstep must be an integer"),
    ((MODEL, DATA, X, U), {"chunk_size": 0}, ValueError, "chunk_size must be a positive integer"),
    ((MODEL, DATA, X, U), {"chunk_size": "1"}, ValueError, "chunk_size must be an integer"),
    ((MODEL, DATA, X, U), {"control_spec": 1}, ValueError, "can only contain bits in mjSTATE_USER"),
    ((MODEL, DATA, X, U), {"control_spec": -1}, ValueError, "control_spec can only contain bits"),
    ((MODEL, DATA, X, U), {"control_spec": 64.0}, TypeError, "control_spec: .* got 64.0"),
    ((MODEL, DATA, X, U), {"initial_warmstart": np.zeros(3)}, ValueError,
     "trailing dimension of initial_warmstart .*3"),
    ((MODEL, DATA, X, U), {"state": READ_ONLY}, ValueError, "state: expected a writeable array"),
    ((MODEL, DATA, X, U), {"state": np.zeros((1, 4, 5))}, ValueError, r"state: .*\(2, 4, 5\), got"),
    ((MODEL, DATA, X, U), {"state": np.zeros((2, 3, 5))}, ValueError,
     "dimension 1 inferred as 4 but state has 3"),
    ((MODEL, DATA, X, U), {"sensordata": np.zeros((2, 4, 1))}, ValueError,
     "trailing dimension of sensordata must be 0, got 1"),
    ((MODEL, DATA, X, U), {"nstep": 4, "skip_checks": True}, TypeError, "model: expected a list"),
    (([MODEL] * 2, [DATA], X, U), {"skip_checks": True}, TypeError, "nstep: .* got None"),
    (([MODEL], [DATA], X, U), {"nstep": 4, "skip_checks": True}, ValueError, "expected 2 models"),
    (([MODEL] * 2, [DATA], X, U), {"nstep": 5, "skip_checks": True}, ValueError,
     r"control: expected shape \(2, 5, 2\), got \(2, 4, 2\)"),
    (([MODEL] * 2, [DATA], X, U),
     {"nstep": 4, "skip_checks": True, "state": np.zeros((2, 4, 5), np.float32)}, ValueError,
     "state: expected a writeable C-contiguous float64 array .* got float32"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "kwargs", "error", "message"), BAD_INPUT)
def test_bad_input(
    args: tuple[Any, ...], kwargs: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        physics.rollout(*args, **kwargs)


def test_data_of_another_model() -> None:
    with pytest.raises(ValueError, match=r"data\[0\] was made for a model of other sizes"):
        physics.rollout(robot("Humanoid"), DATA, states(robot("Humanoid"), 2))


def test_incompatible_models() -> None:
    other = from_text(EVERYTHING)
    with pytest.raises(ValueError, match=r"models are not compatible|was made for a model"):
        physics.rollout([MODEL, other], mujoco.MjData(other), X)
    with pytest.raises(ValueError, match="models are not compatible"):
        physics.rollout([MODEL, from_text(SENSORS)], mujoco.MjData(from_text(SENSORS)), X)


def test_data_with_threads_of_its_own() -> None:
    data = make_data(MODEL, 2)
    mujoco.mju_threadpool(data[1], 2)
    with pytest.raises(ValueError, match=r"data\[1\] has a thread pool of its own"):
        physics.rollout(MODEL, data, X)


def test_rollout_object_refuses_other_numbers_of_data() -> None:
    message = "Length of data: 2 not equal to nthread: 3"
    with physics.Rollout(nthread=3) as pool, pytest.raises(ValueError, match=message):
        pool.rollout(MODEL, make_data(MODEL, 2), X)
    with pytest.raises(ValueError, match="nthread must be non-negative"):
        physics.Rollout(nthread=-1)


def test_no_rollouts() -> None:
    state, sensordata = physics.rollout(MODEL, DATA, X[:0], nstep=3)
    assert state is not None and state.shape == (0, 3, 5)
    assert sensordata is not None and sensordata.shape == (0, 3, 0)


@contextmanager
def callback(install: Callable[[Any], None], function: Callable[..., None]) -> Iterator[None]:
    """MuJoCo calls this function meanwhile."""
    install(function)
    try:
        yield
    finally:
        install(None)


# ---- errors of the engine ------------------------------------------------------------------------


def broken_rollouts() -> tuple[Any, Any, Any]:
    """Models, states, controls of 16 rollouts; the contacts of 3 and 9 are errors of the engine."""
    text = Path(specs.assets_dir(), "half_cheetah.xml").read_text()
    # a floor that is turned, about its normal, so that MuJoCo reads how far
    text, count = re.subn(r"<geom (?=[^>]*type=\"plane\")", '<geom quat="0.6 0 0 0.8" ', text)
    assert count == 1
    models = [from_text(text) for _ in range(16)]
    for i in (3, 9):
        models[i].geom_quat[models[i].geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = 0
    return models, states(models[0], 16, speed=0.1), controls(models[0], 16, 5)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_engine_error_names_its_rollout(threads: int) -> None:
    models, x, u = broken_rollouts()
    data = make_data(models[0], threads)
    with pytest.raises(physics.RolloutError) as caught:
        physics.rollout(models, data, x, u)
    error = caught.value
    assert isinstance(error, mujoco.FatalError)
    assert error.rollouts == (3, 9)
    assert all("contact frame undefined" in message for message in error.messages)
    assert "rollout 3: " in str(error) and "rollout 9: " in str(error)
    assert pickle.loads(pickle.dumps(error)).messages == error.messages
    state = error.results[0]
    assert np.isnan(state[[3, 9]]).all()
    good = [i for i in range(16) if i not in (3, 9)]
    expected = theirs.rollout(models[0], make_data(models[0]), x, u)[0]
    assert_bits(state[good], expected[good])
    # the data can be used on
    assert_bits(physics.rollout(models[0], data, x, u)[0], expected)


def test_a_callback() -> None:
    """A model's callbacks run as they do in mujoco.rollout, though lanes know none."""
    x, u = states(MODEL, 20), controls(MODEL, 20, 60)
    plain = physics.rollout(MODEL, DATA, x, u)[0]

    def push(model: Any, data: Any) -> None:
        data.qfrc_passive[1] += 0.1 * data.qpos[0]

    with callback(mujoco.set_mjcb_passive, push):
        assert physics.lanes_refusal(MODEL) == "the callback mjcb_passive is set"
        expected = theirs.rollout(MODEL, make_data(MODEL), x, u)[0]
        pushed = physics.rollout(MODEL, make_data(MODEL), x, u)[0]
        assert_bits(pushed, expected)
        assert_bits(physics.rollout(MODEL, make_data(MODEL, 2), x, u)[0], expected)
    assert not np.array_equal(pushed, plain)
    assert_bits(physics.rollout(MODEL, DATA, x, u)[0], plain)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_callback_that_raises(threads: int) -> None:
    def fail(model: Any, data: Any) -> None:
        if data.qpos[0] > 5:
            raise ZeroDivisionError("of the callback")

    x = states(MODEL, 40)
    x[1::2, 1] = 6
    with (
        callback(mujoco.set_mjcb_control, fail),
        pytest.raises(physics.RolloutError, match="rollout 1: ") as caught,
    ):
        physics.rollout(MODEL, make_data(MODEL, threads), x, nstep=300)
    assert caught.value.rollouts == tuple(range(1, 40, 2))
    said = set(caught.value.messages)
    assert "ZeroDivisionError: of the callback" in said
    # of threads that are not Python's the exception itself is lost
    assert said - {"Python exception raised"} == {"ZeroDivisionError: of the callback"}


# ---- Ctrl-C, threads, forks ----------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_in_a_callback(threads: int) -> None:
    """It is not taken for a failure of the rollout that the callback was called in."""
    calls = 0
    main = threading.get_ident()

    def interrupt(model: Any, data: Any) -> None:
        nonlocal calls
        if threading.get_ident() == main:
            calls += 1
            if calls == 10:
                signal.raise_signal(signal.SIGINT)

    x = states(MODEL, 400)
    with callback(mujoco.set_mjcb_control, interrupt), pytest.raises(KeyboardInterrupt):
        physics.rollout(MODEL, make_data(MODEL, threads), x, nstep=1_000)
    assert calls < 200_000  # of 400,000


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_callback_that_wants_to_end_all(kind: type[BaseException]) -> None:
    def leave(model: Any, data: Any) -> None:
        raise kind("enough")

    with callback(mujoco.set_mjcb_control, leave), pytest.raises(kind, match="enough"):
        physics.rollout(MODEL, make_data(MODEL), states(MODEL, 3), nstep=5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", [CART_POLE, SENSORS], ids=["lanes", "mj_step"])
@pytest.mark.parametrize("shape", [(16, 300_000), (40_000, 100)], ids=["long", "many"])
def test_ctrl_c(shape: tuple[int, int], text: str, threads: int) -> None:
    model = from_text(text)
    count, nstep = shape
    x, data = states(model, 1), make_data(model, threads)
    state = np.empty((count, nstep, x.shape[1]))
    pressed = 0.0

    def press() -> None:
        nonlocal pressed
        pressed = time.process_time()
        signal.raise_signal(signal.SIGINT)

    with physics.Rollout(nthread=threads) as pool:
        for attempt in range(6):  # until the rollout has not ended before the timer
            returned = False
            timer = threading.Timer(0.05 / 2**attempt, press)
            timer.start()
            try:
                pool.rollout(model, data, x, state=state)
                returned = True
                timer.join()
            except KeyboardInterrupt:
                took = time.process_time() - pressed
            timer.join()
            if not returned and took < 1.0:
                break
        assert not returned and took < 1.0  # of processor time; 0.02 s as a rule
        # and on with the same threads
        u = controls(model, 20, 60)
        expected = theirs.rollout(model, make_data(model), x, u)[0]
        assert_bits(pool.rollout(model, data, x, u)[0], expected)


def test_called_from_a_signal_handler() -> None:
    """Inside a call of the same object: an error instead of a hang."""
    said: list[str] = []

    def handler(number: int, frame: Any) -> None:
        try:
            pool.rollout(MODEL, DATA, X)
        except Exception as error:
            said.append(str(error))

    def knock() -> None:  # until it is heard inside a call, not between two
        while not said:
            time.sleep(0.05)
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=knock)
    try:
        with physics.Rollout() as pool:
            thread.start()
            while not said:
                pool.rollout(MODEL, DATA, X, nstep=20_000)
    finally:
        said.append("over")
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert "called from a signal handler" in said[0] and "rollout pool" in said[0]


def test_the_gil_is_released() -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    physics.rollout(from_text(SENSORS), mujoco.MjData(from_text(SENSORS)), X[:1], nstep=500_000)
    done.set()
    thread.join()
    assert ticks > 20


@pytest.mark.parametrize("shared", [False, True], ids=["own pools", "one pool"])
def test_many_python_threads(shared: bool) -> None:
    model = robot("Hopper")
    x, u = states(model, 20), controls(model, 20, 60)
    expected = theirs.rollout(model, make_data(model), x, u)[0]
    call: Callable[..., Any] = physics.Rollout(nthread=2).rollout if shared else physics.rollout

    def run() -> None:
        for _ in range(5):
            assert_bits(call(model, make_data(model, 2), x, u)[0], expected)

    run_threads(*[run] * 4)


FORK = """
import os, sys
import numpy as np, mujoco
from pyfastenv import physics
model = mujoco.MjModel.from_xml_string(sys.argv[1])
data = [mujoco.MjData(model) for _ in range(2)]
x = np.zeros((20, 1 + model.nq + model.nv))
before = physics.rollout(model, data, x, nstep=100, persistent_pool=True)[0]
pool = physics.Rollout(nthread=2)
if os.fork() == 0:
    after = physics.rollout(model, data, x, nstep=100, persistent_pool=True)[0]
    assert np.array_equal(before, after)
    try:
        pool.rollout(model, data, x)
    except Exception as error:
        assert "this rollout pool was created before fork()" in str(error), error
        sys.exit(7)
    sys.exit(1)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_fork() -> None:
    """The child gets threads of its own, or an error, and ends."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, CART_POLE],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "7", done.stderr


# ---- fuzz ----------------------------------------------------------------------------------------


def random_array(rng: np.random.Generator, sizes: list[int], dim: int) -> Any:
    """An array, mostly of the right shape; else with axes of 1, too few, wrong sizes or dtypes."""
    shape = [int(rng.choice([size, 1, size + 1], p=[0.7, 0.27, 0.03])) for size in sizes]
    shape.append(dim if rng.random() < 0.96 else dim + 1)
    array = rng.uniform(-1, 1, shape)
    if rng.random() < 0.2 and array.shape[0] == 1:
        array = array[0]
    if rng.random() < 0.05:
        array = array.astype(rng.choice(["float32", "int64", "bool", "object"]))
    if rng.random() < 0.1:
        array = np.asfortranarray(array)
    if rng.random() < 0.02:
        return array.tolist()
    return float(rng.uniform()) if rng.random() < 0.02 else array


@pytest.mark.parametrize("seed", range(4))
def test_fuzz(seed: int) -> None:
    """We take all that mujoco.rollout takes, with its results, and refuse all that it refuses."""
    rng = np.random.default_rng(seed)
    models = [from_text(text) for text in (CART_POLE, SENSORS)]
    accepted = refused = 0
    for _ in range(150):
        model = models[rng.integers(2)]
        count, nstep = int(rng.integers(1, 20)), int(rng.choice([1, 2, 7, 80]))
        spec = int(
            rng.choice(
                [STATE.mjSTATE_CTRL, 0, STATE.mjSTATE_QFRC_APPLIED, 1], p=[0.8, 0.1, 0.08, 0.02]
            )
        )
        sizes = {
            "initial_state": ([count], 5),
            "control": ([count, nstep], mujoco.mj_stateSize(model, spec) if spec != 1 else 2),
            "initial_warmstart": ([count], 2),
            "state": ([count, nstep], 5),
            "sensordata": ([count, nstep], model.nsensordata),
        }
        kwargs: dict[str, Any] = {"control_spec": spec}
        for name, (axes, dim) in sizes.items():
            if name == "initial_state" or rng.random() < (0.7 if name == "control" else 0.25):
                kwargs[name] = random_array(rng, axes, dim)
        if rng.random() < 0.4:
            kwargs["nstep"] = int(rng.choice([nstep, 0, nstep + 1, -1], p=[0.85, 0.05, 0.05, 0.05]))
        if rng.random() < 0.2:
            kwargs["chunk_size"] = int(rng.choice([1, 3, 50, 0], p=[0.3, 0.3, 0.3, 0.1]))
        threads = int(rng.integers(1, 4))
        kind = rng.random()
        given = model if kind < 0.6 else [model] * int(rng.choice([count, 1, count + 1]))
        results = []
        for function in (theirs.rollout, physics.rollout):
            own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
            try:
                results.append(function(given, make_data(model, threads), **own))
            except (ValueError, TypeError) as error:
                results.append(error)
        expected, ours = results
        if isinstance(expected, Exception):
            assert type(ours) is type(expected), (expected, ours, kwargs)
            refused += 1
        else:
            assert not isinstance(ours, Exception), (ours, kwargs)
            for a, b in zip(ours, expected, strict=True):
                assert_bits(a, b)
            accepted += 1
    assert accepted > 50 and refused > 10


def test_persistent_pool() -> None:
    """It is made anew for another number of threads."""
    for threads in (2, 1, 3, 3, 2):
        state = physics.rollout(MODEL, make_data(MODEL, threads), X, U, persistent_pool=True)[0]
        assert_bits(state, theirs.rollout(MODEL, make_data(MODEL), X, U)[0])
    physics.shutdown_persistent_pool()
