"""Staging: the ring never rewrites a slot too early; tensors are the arrays, bit for bit."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import torch
from staging_parts import NUM_ENVS, HostDevice, make_envs, small_policy

import pyfastenv
from pyfastenv.sampling import staging
from pyfastenv.sampling.staging import Collector, PinnedRing, TorchVectorEnv

LAYOUT = {"obs": ((4, 3), torch.float32), "flags": ((5,), torch.bool)}

needs_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="torch.cuda.is_available() is False"
)
cuda = [pytest.mark.gpu, needs_cuda]


# ---- devices on the host ---------------------------------------------------------------------


class LateDevice(HostDevice):
    """Uploads happen in a thread, each after a delay and while ``gate`` is open."""

    def __init__(self, delay: float = 0.0):
        self.delay = delay
        self.gate = threading.Event()
        self.gate.set()
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for copy in iter(self._queue.get, None):
            self.gate.wait()
            time.sleep(self.delay)
            copy()

    def upload(self, host: torch.Tensor, event: Any) -> torch.Tensor:
        block = torch.full_like(host, 255)
        event.happened = happened = threading.Event()

        def copy() -> None:
            block.copy_(host)
            happened.set()

        self._queue.put(copy)
        return block

    def finish(self) -> None:
        """Stands for a stream's synchronize."""
        self.gate.set()
        self._queue.put(None)
        self._thread.join()


def slow_cuda() -> Any:
    class SlowCuda(staging.CudaCopies):
        def upload(self, host: torch.Tensor, event: Any) -> torch.Tensor:
            with torch.cuda.stream(self.stream):
                torch.cuda._sleep(10_000_000)  # some milliseconds
            return super().upload(host, event)

        def finish(self) -> None:
            self.stream.synchronize()

    return SlowCuda(torch.device("cuda"))


slow_copies = pytest.mark.parametrize(
    "make_copies",
    [lambda: LateDevice(delay=0.005), pytest.param(slow_cuda, marks=cuda)],
    ids=["cpu", "cuda"],
)


# ---- the ring --------------------------------------------------------------------------------


@slow_copies
@pytest.mark.parametrize("num_slots", [2, 3])
def test_no_slot_is_rewritten_before_its_copy_has_finished(
    num_slots: int, make_copies: Callable[[], Any]
) -> None:
    copies = make_copies()
    ring = PinnedRing(LAYOUT, num_slots, copies=copies)
    uploaded = []
    for i in range(20):
        slot = ring.acquire()
        slot.numpy("obs").fill(i)
        slot.numpy("flags").fill(i % 2)
        uploaded.append(ring.upload(slot))
    copies.finish()
    assert [batch["obs"].unique().tolist() for batch in uploaded] == [[i] for i in range(20)]
    assert [batch["flags"].unique().tolist() for batch in uploaded] == [
        [bool(i % 2)] for i in range(20)
    ]


def test_acquire_waits_for_that_slots_copy_only() -> None:
    copies = LateDevice()
    copies.gate.clear()
    ring = PinnedRing(LAYOUT, 2, copies=copies)
    ring.upload(ring.acquire())
    second = ring.acquire()  # the first copy still waits at the gate
    assert second is ring.slots[1]

    acquired: list[staging.Slot] = []
    thread = threading.Thread(target=lambda: acquired.append(ring.acquire()), daemon=True)
    thread.start()
    thread.join(timeout=0.05)
    assert not acquired
    copies.gate.set()
    thread.join()
    assert acquired == [ring.slots[0]]
    copies.finish()


def test_slots_take_turns() -> None:
    ring = PinnedRing(LAYOUT, 3)
    assert [ring.acquire() for _ in range(7)] == [ring.slots[i] for i in (0, 1, 2, 0, 1, 2, 0)]


def test_a_slot_has_the_tensors_of_the_layout() -> None:
    layout = {
        "a": ((3,), torch.bool),
        "b": ((2, 3), torch.float64),
        "c": ((), torch.int64),
        "none": ((0, 4), torch.float32),
    }
    first, second = (PinnedRing(layout).acquire() for _ in range(2))
    for name, (shape, dtype) in layout.items():
        tensor = first.tensors[name]
        assert (tuple(tensor.shape), tensor.dtype) == (shape, dtype)
        assert tensor.is_contiguous() and not tensor.any()
        assert tensor.data_ptr() % 64 == 0
        first.numpy(name)[...] = 1
        assert tensor.all() and not second.tensors[name].any()


def test_on_the_cpu_upload_is_no_copy() -> None:
    ring = PinnedRing(LAYOUT)
    slot = ring.acquire()
    batch = ring.upload(slot)
    assert list(batch) == list(LAYOUT)
    assert all(batch[name] is slot.tensors[name] for name in LAYOUT)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PinnedRing(LAYOUT, 1), ValueError, "num_slots: expected at least 2, got 1"),
        (lambda: PinnedRing({}), ValueError, "layout: expected at least one tensor"),
        (lambda: PinnedRing(LAYOUT, device="mps"), ValueError, "expected cpu or cuda, got mps"),
        (lambda: PinnedRing(LAYOUT).acquire().numpy("o"), KeyError, "one of obs, flags, got 'o'"),
    ],
)
def test_ring_errors(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is available")
def test_cuda_where_there_is_none() -> None:
    with pytest.raises(RuntimeError, match=r"got cuda:1, but PyTorch .* finds no CUDA device"):
        PinnedRing(LAYOUT, device="cuda:1")


# ---- environments with tensors ---------------------------------------------------------------


class PlainCore:
    """The compiled core without ``use_buffers``, as that of tasks with functions of batches."""

    def __init__(self, core: Any):
        self._core = core

    def __getattr__(self, name: str) -> Any:
        if name == "use_buffers":
            raise AttributeError(name)
        return getattr(self._core, name)


cores = pytest.mark.parametrize("core", [None, PlainCore])
devices = pytest.mark.parametrize(
    "kwargs",
    [{}, {"copies": HostDevice()}, pytest.param({"device": "cuda"}, marks=cuda)],
    ids=["cpu", "staged", "cuda"],
)
modes = pytest.mark.parametrize("mode", ["NextStep", "SameStep"])


def random_actions(envs: Any, num_steps: int) -> Iterator[np.ndarray]:
    envs.action_space.seed(0)
    for _ in range(num_steps):
        yield envs.action_space.sample()


def to_numpy(results: Sequence[Any]) -> list[np.ndarray]:
    """The arrays of a result, the infos left out."""
    return [value.cpu().numpy() for value in results if isinstance(value, torch.Tensor)]


def assert_same(results: Sequence[Any], expected: Sequence[Any]) -> None:
    arrays = to_numpy(results)
    assert len(arrays) == len(expected) - 1
    for array, other in zip(arrays, expected, strict=False):
        assert array.dtype == other.dtype
        np.testing.assert_array_equal(array, other)
    assert results[-1].keys() == expected[-1].keys()


@devices
@cores
@modes
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1"])
def test_tensors_are_the_arrays(env_id: str, mode: str, core: Any, kwargs: dict[str, Any]) -> None:
    options = {"autoreset_mode": mode, "max_episode_steps": 7}
    tenvs = TorchVectorEnv(make_envs(env_id, core, **options), **kwargs)
    envs = make_envs(env_id, **options)
    assert_same(tenvs.reset(seed=3), envs.reset(seed=3))
    for actions in random_actions(envs, 20):
        tensor = torch.from_numpy(actions).to(tenvs.device)
        assert_same(tenvs.step(tensor), envs.step(actions))
    mask = {"reset_mask": np.arange(NUM_ENVS) % 2 == 0}
    assert_same(tenvs.reset(options=mask), envs.reset(options=mask))


@devices
@cores
def test_send_and_recv_are_step(core: Any, kwargs: dict[str, Any]) -> None:
    tenvs, envs = TorchVectorEnv(make_envs(core=core), **kwargs), make_envs()
    table = torch.from_numpy(np.stack(list(random_actions(envs, 12)))).to(tenvs.device)
    expected = [envs.reset(seed=0)[0]]
    expected += [envs.step(actions.cpu().numpy())[0] for actions in table]
    tenvs.async_reset(seed=0)
    steps = torch.zeros(NUM_ENVS, dtype=torch.int64, device=tenvs.device)
    while (steps <= len(table)).any():
        obs, *_, infos = tenvs.recv(min_envs=1, max_envs=2)
        env_ids = infos["env_id"]
        assert (env_ids.dtype, env_ids.device) == (torch.int64, tenvs.device)
        for row, i in zip(obs.cpu(), env_ids.tolist(), strict=True):
            np.testing.assert_array_equal(row.numpy(), expected[int(steps[i])][i])
        more = env_ids[steps[env_ids] < len(table)]
        if len(more) > 0:
            tenvs.send(table[steps[more], more], more)
        steps[env_ids] += 1


@devices
def test_env_ids_may_be_anything_that_the_environments_take(kwargs: dict[str, Any]) -> None:
    tenvs = TorchVectorEnv(make_envs(), **kwargs)
    actions = torch.zeros(NUM_ENVS, 6, device=tenvs.device)
    all_ids = set(range(NUM_ENVS))
    for env_ids in (None, range(NUM_ENVS), np.arange(NUM_ENVS), torch.arange(NUM_ENVS)):
        tenvs.async_reset(env_ids=env_ids)
        assert set(tenvs.recv()[4]["env_id"].tolist()) == all_ids
        tenvs.send(actions, env_ids)
        assert set(tenvs.recv()[4]["env_id"].tolist()) == all_ids


@cores
@slow_copies
def test_slow_copies_lose_nothing(make_copies: Callable[[], Any], core: Any) -> None:
    copies = make_copies()
    tenvs = TorchVectorEnv(make_envs(core=core), ring_slots=2, copies=copies)
    envs = make_envs()
    pairs = [(tenvs.reset(seed=0), envs.reset(seed=0))]
    for actions in random_actions(envs, 10):
        pairs.append((tenvs.step(torch.from_numpy(actions).to(tenvs.device)), envs.step(actions)))
    copies.finish()
    for results, expected in pairs:
        assert_same(results, expected)


def test_with_the_hook_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    tenvs = TorchVectorEnv(make_envs(), ring_slots=2, copies=HostDevice())
    monkeypatch.setattr(staging.np, "copyto", None)
    tenvs.reset(seed=0)
    tenvs.step(torch.zeros(NUM_ENVS, 6))


@cores
def test_the_environments_used_directly_do_not_write_into_the_ring(core: Any) -> None:
    tenvs = TorchVectorEnv(make_envs(core=core), ring_slots=2, copies=HostDevice())
    tenvs.reset(seed=0)
    obs = tenvs.envs.step(np.zeros((NUM_ENVS, 6), np.float32))[0]
    kept = obs.copy()
    for _ in range(2):
        tenvs.step(torch.ones(NUM_ENVS, 6))
    np.testing.assert_array_equal(obs, kept)


def test_on_the_cpu_results_and_actions_are_not_copied() -> None:
    envs = make_envs(copy=False)
    tenvs = TorchVectorEnv(envs)
    seen = []
    step = envs.flat_step
    envs.flat_step = lambda actions: seen.append(actions) or step(actions)  # type: ignore[method-assign]
    actions = torch.zeros(NUM_ENVS, 6, requires_grad=True)
    first = tenvs.reset(seed=0)[0]
    others = [tenvs.step(actions)[0].data_ptr() for _ in range(4)]
    assert others[3] == first.data_ptr() and first.data_ptr() not in others[:3]
    assert seen[0].ctypes.data == actions.data_ptr()


@devices
def test_results_stay_when_they_are_new(kwargs: dict[str, Any]) -> None:
    tenvs = TorchVectorEnv(make_envs(copy=True), **kwargs)
    obs = tenvs.reset(seed=0)[0]
    kept = obs.clone()
    for _ in range(6):
        tenvs.step(torch.ones(NUM_ENVS, 6, device=tenvs.device))
    assert torch.equal(obs, kept)


@devices
def test_obs_dtype(kwargs: dict[str, Any]) -> None:
    exact = TorchVectorEnv(make_envs(obs_dtype="float64"), obs_dtype=None, **kwargs)
    rounded = TorchVectorEnv(make_envs(obs_dtype="float64"), **kwargs)
    obs = exact.reset(seed=0)[0]
    assert (obs.dtype, rounded.reset(seed=0)[0].dtype) == (torch.float64, torch.float32)
    assert torch.equal(rounded.reset(seed=0)[0], obs.float())


@devices
def test_float64_actions_are_used_as_they_are(kwargs: dict[str, Any]) -> None:
    tenvs, envs = TorchVectorEnv(make_envs(), **kwargs), make_envs()
    tenvs.reset(seed=0), envs.reset(seed=0)
    actions = np.full((NUM_ENVS, 6), 0.1)
    assert_same(tenvs.step(torch.from_numpy(actions).to(tenvs.device)), envs.step(actions))


def test_spaces_and_such() -> None:
    envs = make_envs()
    tenvs = TorchVectorEnv(envs, "cpu:0")
    assert tenvs.unwrapped is tenvs.envs is envs
    assert tenvs.num_envs == NUM_ENVS
    assert tenvs.device == torch.device("cpu")
    for name in ("observation_space", "action_space"):
        assert getattr(tenvs, name) is getattr(envs, name)
        assert getattr(tenvs, f"single_{name}") is getattr(envs, f"single_{name}")


@devices
def test_failing_environments_results_are_tensors(
    monkeypatch: pytest.MonkeyPatch, kwargs: dict[str, Any]
) -> None:
    envs = make_envs()
    tenvs = TorchVectorEnv(envs, **kwargs)
    obs = tenvs.reset(seed=0)[0]
    results = envs.step(np.zeros((NUM_ENVS, 6), np.float32))

    def fail(actions: np.ndarray) -> None:
        raise pyfastenv.EnvError([1], ["no"], results)

    monkeypatch.setattr(envs, "flat_step", fail)
    with pytest.raises(pyfastenv.EnvError) as caught:
        tenvs.step(torch.zeros(NUM_ENVS, 6, device=obs.device))
    assert_same(caught.value.results, results)
    assert caught.value.results[0].device == obs.device


@devices
@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        (np.zeros((NUM_ENVS, 6)), TypeError, "actions: expected a tensor, got ndarray"),
        (torch.zeros(NUM_ENVS, 6, dtype=torch.int64), TypeError,
         "actions: expected torch.float32 or torch.float64, got torch.int64"),
        (torch.zeros(NUM_ENVS, 1), ValueError, r"actions: expected shape \(5, 6\), got \(5, 1\)"),
        (torch.zeros(6, NUM_ENVS).T, ValueError,
         r"actions: expected a contiguous tensor, got strides \(1, 5\)"),
        (torch.zeros(NUM_ENVS, 6, device="meta"), ValueError,
         "actions: expected a tensor on .*, got meta"),
        (torch.full((NUM_ENVS, 6), torch.nan), ValueError, "expected finite numbers"),
    ],
)  # fmt: skip
def test_bad_actions_move_nothing(
    actions: Any, error: type[Exception], message: str, kwargs: dict[str, Any]
) -> None:
    tenvs = TorchVectorEnv(make_envs(), **kwargs)
    tenvs.reset(seed=0)
    state = tenvs.envs.get_state()
    if isinstance(actions, torch.Tensor) and actions.device.type != "meta":
        actions = actions.to(tenvs.device)
    with pytest.raises(error, match=message):
        tenvs.step(actions)
    with pytest.raises(error, match=message):
        tenvs.send(actions, torch.arange(NUM_ENVS))
    np.testing.assert_array_equal(tenvs.envs.get_state(), state)


def test_discrete_actions_are_int64() -> None:
    tenvs = TorchVectorEnv(make_envs("CartPole-v1"))
    with pytest.raises(TypeError, match=r"actions: expected torch.int64, got torch.int32"):
        tenvs.step(torch.zeros(NUM_ENVS, dtype=torch.int32))


def test_torch_vector_env_arguments() -> None:
    envs = make_envs()
    with pytest.raises(ValueError, match="ring_slots: expected at least 2, got 1"):
        TorchVectorEnv(envs, ring_slots=1)
    with pytest.raises(ValueError, match=r"obs_dtype: expected a floating dtype, got torch.int64"):
        TorchVectorEnv(envs, obs_dtype=torch.int64)


@devices
def test_use_after_close(kwargs: dict[str, Any]) -> None:
    tenvs = TorchVectorEnv(make_envs(), **kwargs)
    obs = tenvs.reset(seed=0)[0]
    actions = torch.zeros(NUM_ENVS, 6, device=tenvs.device)
    tenvs.close()
    tenvs.close()
    assert obs.isfinite().all()
    calls = [tenvs.reset, tenvs.async_reset, tenvs.recv]
    for call in [*calls, lambda: tenvs.step(actions), lambda: tenvs.send(actions)]:
        with pytest.raises(pyfastenv.ClosedError, match="expected open environments"):
            call()


# ---- the collector ---------------------------------------------------------------------------


class Source:
    """Collects the version of a "policy": each batch holds its number and the version."""

    def __init__(self) -> None:
        self.version = self.exported = self.count = 0
        self.fail_at: int | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.threads: set[int] = set()

    def export(self) -> None:
        self.exported = self.version

    def __call__(self, tensors: dict[str, torch.Tensor]) -> int:
        self.started.set()
        self.gate.wait()
        self.threads.add(threading.get_ident())
        count, self.count = self.count, self.count + 1
        if count == self.fail_at:
            raise ZeroDivisionError(f"batch {count}")
        tensors["count"].fill_(count)
        tensors["version"].fill_(self.exported)
        return count


def source_ring(**kwargs: Any) -> PinnedRing:
    return PinnedRing(dict.fromkeys(("count", "version"), ((3,), torch.int64)), **kwargs)


def values(collected: tuple[dict[str, torch.Tensor], int]) -> tuple[int, int]:
    batch, result = collected
    for tensor in batch.values():
        assert (tensor == tensor[0]).all()
    assert batch["count"][0] == result
    return result, int(batch["version"][0])


def learn(collector: Collector, source: Source, num_updates: int) -> list[tuple[int, int]]:
    seen = []
    for _ in range(num_updates):
        seen.append(values(collector.next(source.export)))
        source.version += 1
    return seen


@devices
@pytest.mark.parametrize("late", [0, 1])  # updates; 1 with overlap
def test_batches_are_of_the_present_policy_or_one_update_late(
    late: int, kwargs: dict[str, Any]
) -> None:
    source = Source()
    with Collector(source, source_ring(**kwargs), overlap=late > 0) as collector:
        assert learn(collector, source, 5) == [(i, max(0, i - late)) for i in range(5)]
        assert late or source.count == 5
    assert len(source.threads) == 1
    assert (threading.get_ident() in source.threads) == (late == 0)


def test_with_overlap_the_next_batch_is_collected_while_the_learner_works() -> None:
    source = Source()
    with Collector(source, source_ring(), overlap=True) as collector:
        collected = collector.next()
        while source.count < 2:  # hangs if it is not
            time.sleep(0.001)
        assert values(collected) == (0, 0)


@devices
@pytest.mark.parametrize("overlap", [False, True])
def test_batches_are_those_of_rolling_out_directly(overlap: bool, kwargs: dict[str, Any]) -> None:
    envs, other = (make_envs(max_episode_steps=10, autoreset_mode="SameStep") for _ in range(2))
    envs.reset(seed=0), other.reset(seed=0)
    policy, num_steps = small_policy(), 16

    def collect(tensors: dict[str, torch.Tensor]) -> pyfastenv.Episodes:
        out = pyfastenv.RolloutBatch(**tensors)
        return pyfastenv.rollout(envs, policy, num_steps, out=out).episodes

    storage = pyfastenv.RolloutBatch.allocate(envs, num_steps).tensors()
    layout = {name: (tensor.shape, tensor.dtype) for name, tensor in storage.items()}
    with Collector(collect, PinnedRing(layout, **kwargs), overlap=overlap) as collector:
        for _ in range(4):
            expected = pyfastenv.rollout(other, policy, num_steps)
            batch, episodes = collector.next()
            for name, tensor in expected.tensors().items():
                assert torch.equal(batch[name].cpu(), tensor), name
            assert torch.equal(episodes.returns, expected.episodes.returns)
            assert len(episodes) > 0


@pytest.mark.parametrize("overlap", [False, True])
def test_what_collect_and_prepare_raise_comes_out_of_next(overlap: bool) -> None:
    source = Source()
    source.fail_at = 1
    with Collector(source, source_ring(), overlap=overlap) as collector:
        with pytest.raises(ZeroDivisionError):
            collector.next(lambda: 1 // 0)
        assert values(collector.next()) == (0, 0)
        with pytest.raises(ZeroDivisionError, match="batch 1"):
            collector.next()
        assert values(collector.next()) == (2, 0)


def test_ctrl_c_while_a_batch_is_waited_for_loses_nothing() -> None:
    source = Source()
    source.gate.clear()

    def interrupt() -> None:
        source.started.wait()
        time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with Collector(source, source_ring(), overlap=True) as collector:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            collector.next()
        thread.join()
        source.gate.set()
        assert [values(collector.next())[0] for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(("at", "expected"), [(1, [1, 2, 3]), (2, [2, 3, 4])])
@pytest.mark.parametrize("close", [False, True])
def test_ctrl_c_before_the_thread_got_its_task(at: int, expected: list[int], close: bool) -> None:
    class Interrupting:
        def __init__(self, tasks: SimpleQueue[Any]):
            self.tasks = tasks
            self.count = 0

        def put(self, task: Any) -> None:
            self.count += 1
            if self.count == at:
                raise KeyboardInterrupt
            self.tasks.put(task)

    with Collector(Source(), source_ring(), overlap=True) as collector:
        assert values(collector.next()) == (0, 0)
        collector._tasks = Interrupting(collector._tasks)
        with pytest.raises(KeyboardInterrupt):
            collector.next()
        if not close:
            assert [values(collector.next())[0] for _ in range(3)] == expected


def test_close_does_not_wait_for_ever() -> None:
    source = Source()
    collector = Collector(source, source_ring(), overlap=True)
    collector.next()
    while source.count < 2:
        time.sleep(0.001)
    source.gate.clear()
    source.started.clear()
    collector.next()
    source.started.wait()
    with pytest.warns(RuntimeWarning, match=r"still runs after 0.01 s"):
        collector.close(timeout=0.01)
    source.gate.set()


@pytest.mark.parametrize("overlap", [False, True])
def test_collector_after_close(overlap: bool) -> None:
    collector = Collector(Source(), source_ring(), overlap=overlap)
    collector.next()
    collector.close()
    collector.close()
    with pytest.raises(pyfastenv.ClosedError, match="expected an open collector"):
        collector.next()


def test_close_ends_the_thread() -> None:
    def collectors() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "collector"]

    before = collectors()
    closed = Collector(Source(), source_ring(), overlap=True)
    forgotten = Collector(Source(), source_ring(), overlap=True)
    started = [thread for thread in collectors() if thread not in before]
    assert len(started) == 2
    closed.next()
    closed.close()
    del forgotten
    for thread in started:
        thread.join()
        assert not thread.is_alive()


FORGETFUL = """
import torch
from pyfastenv.sampling.staging import Collector, PinnedRing
from staging_parts import make_envs, small_policy
import pyfastenv

envs = make_envs(autoreset_mode="SameStep")
envs.reset(seed=0)
policy = small_policy()
ring = PinnedRing({"unused": ((1,), torch.float32)})
sizes = iter((10, 5000))
collector = Collector(lambda _: pyfastenv.rollout(envs, policy, next(sizes)), ring, overlap=True)
collector.next()
raise SystemExit(3)
"""


def test_the_interpreter_may_end_while_a_batch_is_collected() -> None:
    here = str(Path(__file__).parent)
    ended = subprocess.run([sys.executable, "-c", FORGETFUL], cwd=here, check=False)
    assert ended.returncode == 3
