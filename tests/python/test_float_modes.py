"""A thread's floating-point modes change no environment's, and are as they were after a call."""

import ctypes
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from parity import assert_same, random_policy

import pyfastenv
from pyfastenv import physics

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux",
    reason="this test knows where Linux's C library keeps the register of x86-64",
)

LIBM = ctypes.CDLL("libm.so.6") if sys.platform == "linux" else None
NUM_ENVS = 11


class Environment(ctypes.Structure):
    """fenv_t."""

    _fields_ = [("control", ctypes.c_uint16), ("x87", ctypes.c_uint8 * 26),
                ("mxcsr", ctypes.c_uint32)]  # fmt: skip


FLUSH = 0x8040  # MXCSR's bits: results to zero, and operands
UP, DOWN, TO_ZERO = 0x4000, 0x2000, 0x6000
EXCEPTIONS = 0x3F  # that have happened: not a mode
MODES = {"flush": FLUSH, "up": UP, "down": DOWN, "to zero, flush": TO_ZERO | FLUSH}


def mode() -> tuple[int, int]:
    """This thread's: MXCSR and the x87's control word."""
    assert LIBM is not None
    now = Environment()
    assert LIBM.fegetenv(ctypes.byref(now)) == 0
    return now.mxcsr & ~EXCEPTIONS, now.control


def set_mode(mxcsr: int) -> None:
    assert LIBM is not None
    now = Environment()
    LIBM.fegetenv(ctypes.byref(now))
    now.mxcsr = mxcsr
    now.control = now.control & ~0xC00 | (mxcsr >> 3 & 0xC00)  # rounding, as fesetround does
    LIBM.fesetenv(ctypes.byref(now))


DEFAULT = 0x1F80


@contextmanager
def computing(bits: int) -> Iterator[None]:
    """Within it, this thread has these bits of MXCSR; checks that they are there at the end."""
    set_mode(DEFAULT | bits)
    try:
        before = mode()
        yield
        after = mode()
    finally:
        set_mode(DEFAULT)
    assert after == before


def test_this_test_changes_modes() -> None:
    tiny = np.array([5e-324, 1.0]), np.array([1.0, 1e-30])
    with computing(FLUSH):
        flushed = float(tiny[0][0] * 1.0) == 0.0
    with computing(UP):
        raised = tiny[0] + tiny[1]
    assert flushed and raised[1] > 1.0
    with pytest.raises(AssertionError), computing(0):
        set_mode(DEFAULT | FLUSH)


# a hinge that comes to rest: denormal numbers in every step, and roundings
SLOW = """<mujoco><option timestep=".01"><flag gravity="disable"/></option><worldbody>
  <body><joint name="a" axis="0 1 0" damping="3"/><geom size=".1"/>
    <body pos=".3 0 0"><joint name="b" axis="0 1 0" damping="1e-3" stiffness="1e-300"/>
      <geom type="capsule" size=".05 .1"/></body></body>
  <body pos="0 0 .3"><freejoint/><geom type="capsule" size=".05 .2"/></body></worldbody>
  <actuator><motor joint="a" gear="1e-150"/></actuator></mujoco>"""


@pytest.mark.parametrize(("bits", "threads"), [*zip(MODES.values(), (1, 3, 1, 3), strict=True)])
def test_rollouts_of_physics(bits: int, threads: int) -> None:
    model = mujoco.MjModel.from_xml_string(SLOW)
    rng = np.random.default_rng(0)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    initial = np.zeros((40, size))
    initial[:, 1 : 1 + model.nq] = model.qpos0
    initial[:, 1 + model.nq :] = 1e-308 * rng.standard_normal((40, size - 1 - model.nq))
    control = 1e-160 * rng.standard_normal((40, 100, 1))

    def run() -> Any:
        data = [mujoco.MjData(model) for _ in range(threads)]
        with physics.Rollout(nthread=threads) as rollout:
            first = rollout.rollout([model] * 40, data, initial, control)
            return first, rollout.rollout([model] * 40, data, initial, control)

    expected = run()
    assert (np.abs(expected[0][0][:, :, -model.nv :]) < 1e-307).any()
    with computing(bits):  # the pool is made in it
        states = run()
    assert_same(states, expected)
    data = [mujoco.MjData(model) for _ in range(threads)]
    with physics.Rollout(nthread=threads) as rollout:  # and before it
        with computing(bits):
            states = rollout.rollout([model] * 40, data, initial, control)
        assert_same(states, expected[0])


def every_call(make: Callable[[], Any], computing: Callable[[], Any]) -> tuple[Any, ...]:
    """The results of all calls of a pool, each of them made within ``computing()``."""
    rng = np.random.default_rng(0)
    with computing():
        envs = make()
    space = envs.single_action_space
    actions = [rng.uniform(-1, 1, (NUM_ENVS, *space.shape)).astype(space.dtype) for _ in range(30)]
    policy = random_policy(envs, 8)

    def within(call: Any, *args: Any, **kwargs: Any) -> Any:
        with computing():
            return call(*args, **kwargs)

    seen = [within(envs.reset, seed=3)]
    seen += [within(envs.step, action) for action in actions[:20]]
    for action in actions[20:]:
        within(envs.send, action, np.arange(NUM_ENVS))
        result = within(envs.recv, min_envs=NUM_ENVS)
        order = np.argsort(result[4]["env_id"])
        seen.append(tuple(part[order] for part in result[:4]))
    batch = within(pyfastenv.rollout, envs, policy, 20)
    arrays = (batch.obs, batch.actions, batch.rewards, batch.log_probs)
    seen.append(tuple(array.numpy() for array in arrays))
    fields = envs.get_model_field("body_mass") * np.linspace(0.9, 1.1, NUM_ENVS)[:, None]
    within(envs.set_model_field, "body_mass", fields)
    seen += [within(envs.step, action) for action in actions[:5]]
    seen.append(within(envs.get_state))
    within(envs.close)
    return tuple(seen)


@pytest.mark.parametrize(("bits", "threads"), [(FLUSH, 1), (UP, 3), (TO_ZERO | FLUSH, 3)])
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "task"])
def test_every_call_of_a_pool(env_id: str, threads: int, bits: int, tmp_path: Path) -> None:
    if env_id == "task":
        pytest.importorskip("numba")
    chosen: Any = Slow if env_id == "task" else env_id

    def make() -> Any:
        return pyfastenv.make_vec(chosen, NUM_ENVS, num_threads=threads, max_episode_steps=12)

    expected = every_call(make, lambda: computing(0))
    assert_same(every_call(make, lambda: computing(bits)), expected)


class Slow(pyfastenv.Task):
    model = SLOW

    def reset(self, data: Any, rng: Any) -> None:
        data.qpos[:] = self.init_qpos
        data.qvel[:] = 1e-308 * rng.standard_normal(8)

    def step(self, data: Any, action: Any) -> tuple[Any, Any]:
        self.simulate(data)
        return np.exp(-np.abs(data.qvel[0])) * 1e-310, False

    def observation(self, data: Any, obs: Any) -> None:
        obs["qpos"] = data.qpos
        obs["qvel"] = data.qvel


def test_signal_handlers_have_their_threads_mode() -> None:
    """And what they set is in force when the call returns."""
    envs = pyfastenv.make_vec("Humanoid-v5", 64, num_threads=2)
    policy = random_policy(envs, 8)
    envs.reset(seed=0)
    seen: list[int] = []
    batches = []

    def handler(*_: Any) -> None:
        seen.append(mode())
        set_mode(DEFAULT | DOWN)

    before = signal.signal(signal.SIGUSR1, handler)
    timer = threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    main = threading.get_ident()
    try:
        set_mode(DEFAULT | UP)
        given = mode()
        timer.start()
        while not seen:  # the signal comes in one of them, on any machine
            batches.append(pyfastenv.rollout(envs, policy, 100))
        after = mode()
    finally:
        set_mode(DEFAULT)
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    set_mode(DEFAULT | DOWN)
    chosen = mode()
    set_mode(DEFAULT)
    assert seen == [given] and after == chosen
    envs.reset(seed=0)
    for ours in batches:
        theirs = pyfastenv.rollout(envs, policy, 100)
        assert_same(ours.obs.numpy(), theirs.obs.numpy())
        assert_same(ours.rewards.numpy(), theirs.rewards.numpy())
