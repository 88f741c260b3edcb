"""Staging: what lies between the environments' NumPy arrays and PyTorch's devices.

Owns the host slots (pinned for CUDA), the side stream, the events and the order in which slots are
used again. Knows no algorithm, no network, and of rollouts only that they fill tensors.

One rule keeps it right: a slot is not written before the copy out of it has finished. PyTorch
guards pinned memory that was freed, not memory that is written again. See docs/staging.md.
"""

from __future__ import annotations

import itertools
import math
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Generic, Protocol, Self, TypeVar

import gymnasium
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pyfastenv.errors import ClosedError, EnvError
from pyfastenv.vector.pixels import PixelViews
from pyfastenv.vector.vector_env import FastVectorEnv, Infos

Layout = Mapping[str, tuple[Sequence[int], torch.dtype]]
TorchStepReturn = tuple[Any, Tensor, Tensor, Tensor, Infos]  # observations may be a dict

# ---- copies between host and device: all that knows streams and events -----------------------


class Event(Protocol):
    """Something in the future of a stream."""

    def synchronize(self) -> None:
        """Returns once it has happened; at once if nothing was ever recorded."""


class Copies(Protocol):
    """How bytes travel between the host and one device."""

    device: torch.device

    def allocate(self, num_bytes: int) -> Tensor:
        """Zeroed host memory that :meth:`upload` can copy from, ``(num_bytes,)`` uint8."""

    def make_event(self) -> Event:
        """An event for one slot, with nothing recorded."""

    def upload(self, host: Tensor, event: Event) -> Tensor:
        """Starts copying ``host`` to the device and records ``event`` behind the copy.

        Returns:
            The device's tensor. Whatever the caller's current stream does from now on happens
            after the copy.
        """

    def download(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Host tensors with the values of ``tensors``, complete on return."""


class _NoEvent:
    def synchronize(self) -> None:
        pass


class CpuCopies:
    """No copies: the device is the host."""

    device = torch.device("cpu")

    def allocate(self, num_bytes: int) -> Tensor:
        return torch.zeros(num_bytes, dtype=torch.uint8)

    def make_event(self) -> Event:
        return _NoEvent()

    def upload(self, host: Tensor, event: Event) -> Tensor:
        return host

    def download(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return list(tensors)


class CudaCopies:
    """Pinned memory; uploads on a stream of their own, downloads on the caller's current one."""

    def __init__(self, device: torch.device):
        index = torch.cuda.current_device() if device.index is None else device.index
        self.device = torch.device("cuda", index)
        self.stream = torch.cuda.Stream(self.device)

    def allocate(self, num_bytes: int) -> Tensor:
        return torch.zeros(num_bytes, dtype=torch.uint8, pin_memory=True)

    def make_event(self) -> Event:
        return torch.cuda.Event()

    def upload(self, host: Tensor, event: Event) -> Tensor:
        assert isinstance(event, torch.cuda.Event)
        consumer = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self.stream):
            block = host.to(self.device, non_blocking=True)
            event.record(self.stream)
        consumer.wait_event(event)
        # the block comes from the side stream's memory: freed, it must not be given to the next
        # upload while the consumer's stream still has work that reads it
        block.record_stream(consumer)
        return block

    def download(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        hosts = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) for t in tensors]
        for host, tensor in zip(hosts, tensors, strict=True):
            host.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.device))
        event.synchronize()
        return hosts


def make_copies(device: str | torch.device) -> Copies:
    """How to copy to and from ``device``.

    Raises:
        ValueError: Neither the CPU nor a CUDA device.
        RuntimeError: CUDA is not available.
    """
    device = torch.device(device)
    if device.type == "cpu":
        return CpuCopies()
    if device.type != "cuda":
        raise ValueError(f"device: expected cpu or cuda, got {device}")
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"device: got {device}, but PyTorch {torch.__version__} finds no CUDA device here"
        )
    return CudaCopies(device)


# ---- the ring --------------------------------------------------------------------------------

_ALIGNMENT = 256  # bytes: what CUDA gives its own allocations


@dataclass(frozen=True)
class _Field:
    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def end(self) -> int:
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def of(self, block: Tensor) -> Tensor:
        return block[self.offset : self.end].view(self.dtype).view(self.shape)


def _arrange(layout: Layout) -> tuple[dict[str, _Field], int]:
    """Places tensors one behind the other in a block; returns the block's size [bytes] too."""
    fields: dict[str, _Field] = {}
    size = 0
    for name, (shape, dtype) in layout.items():
        fields[name] = _Field(size, tuple(shape), dtype)
        size = -(-fields[name].end // _ALIGNMENT) * _ALIGNMENT
    return fields, size


class Slot:
    """Host storage of one batch: named tensors in one block of memory.

    Attributes:
        tensors: The host tensors by name.
    """

    def __init__(self, block: Tensor, fields: Mapping[str, _Field], event: Event):
        self.block = block
        self.event = event
        self.tensors = {name: place.of(block) for name, place in fields.items()}
        self._arrays = {name: tensor.numpy() for name, tensor in self.tensors.items()}

    def numpy(self, name: str) -> NDArray[Any]:
        """The NumPy view of a host tensor.

        Raises:
            KeyError: No tensor of that name.
        """
        if name not in self._arrays:
            raise KeyError(f"slot: expected one of {', '.join(self._arrays)}, got {name!r}")
        return self._arrays[name]


class PinnedRing:
    """Hands out slots of host memory in turn; each is copied while the next is filled.

    A slot is one block, so that :meth:`upload` is one copy however many tensors it holds. All of
    it belongs to one thread; only writing into an acquired slot may happen in another.

    Args:
        layout: ``{name: (shape, dtype)}`` of a slot's tensors.
        num_slots: How many; 2 or more.
        device: Where batches go: the CPU or a CUDA device. For CUDA the memory is pinned.
        copies: How they get there; None chooses by ``device``.

    Raises:
        ValueError: Fewer than 2 slots, an empty layout, or neither CPU nor CUDA.
        RuntimeError: CUDA is not available.
    """

    def __init__(
        self,
        layout: Layout,
        num_slots: int = 2,
        device: str | torch.device = "cpu",
        *,
        copies: Copies | None = None,
    ):
        _check_num_slots("num_slots", num_slots)
        if not layout:
            raise ValueError("layout: expected at least one tensor")
        self._copies = make_copies(device) if copies is None else copies
        self._fields, size = _arrange(layout)
        self.slots = tuple(
            Slot(self._copies.allocate(size), self._fields, self._copies.make_event())
            for _ in range(num_slots)
        )
        self._turn = itertools.cycle(self.slots)

    @property
    def device(self) -> torch.device:
        """Where batches go."""
        return self._copies.device

    def acquire(self) -> Slot:
        """Returns the next slot, once the copy out of it has finished.

        It is the caller's to write until it has been acquired ``num_slots`` times more.
        """
        slot = next(self._turn)
        slot.event.synchronize()
        return slot

    def upload(self, slot: Slot) -> dict[str, Tensor]:
        """Starts copying a slot to the device; does not wait for the copy.

        Returns:
            The device's tensors by name. On the CPU they are the slot's own (no copy) and last
            until the slot is written again; on CUDA they are new and last for ever. They are ready
            for the caller's current stream; another stream must wait for that one.
        """
        block = self._copies.upload(slot.block, slot.event)
        if block is slot.block:
            return dict(slot.tensors)
        return {name: place.of(block) for name, place in self._fields.items()}


def _check_num_slots(name: str, num_slots: int) -> None:
    if num_slots < 2:
        raise ValueError(f"{name}: expected at least 2, got {num_slots}")


# ---- environments with tensors ---------------------------------------------------------------

_RESULTS = ("obs", "rewards", "terminations", "truncations")


class TorchVectorEnv:
    """Wraps a :class:`FastVectorEnv`, with tensors in and tensors out.

    On the CPU nothing is copied. Results are views of the arrays that the environments return: with
    environments made with ``copy=True`` they last for ever, with ``copy=False`` until the fourth
    call after. Make the environments with ``obs_dtype="float32"`` (or give ``obs_dtype=None``), or
    each call converts the observations.

    On CUDA, results go through pinned memory in one copy per call, on a stream of its own, and are
    new tensors, ready for the current stream of the calling thread. Actions come back through
    pinned memory; the call waits for them. Calls belong to one thread at a time.

    Values are the same on both, and the same as without this class.

    Args:
        envs: The environments; :meth:`close` closes them.
        device: The CPU or a CUDA device.
        obs_dtype: Observations' dtype; None means the environments' own. Pictures stay uint8: it
            is their state's.
        flat: Observations are flat, ``(num_envs, obs_size)``, where the environments' space is a
            Dict or pictures, too (with pictures, in bytes). Else they are views of such a tensor,
            which is what is copied.
        ring_slots: Sets of pinned arrays that take turns (CUDA); 2 or more.
        copies: How to copy; None chooses by ``device``.

    Attributes:
        envs, unwrapped: The environments.
        num_envs: How many.
        single_observation_space, single_action_space: One environment's, as ``envs`` has them
            (NumPy's dtype).
        observation_space, action_space: All environments', likewise.

    Raises:
        ValueError: Fewer than 2 slots, neither CPU nor CUDA, or not a floating dtype.
        RuntimeError: CUDA is not available.
    """

    def __init__(
        self,
        envs: FastVectorEnv,
        device: str | torch.device = "cpu",
        *,
        obs_dtype: torch.dtype | None = torch.float32,
        flat: bool = False,
        ring_slots: int = 4,
        copies: Copies | None = None,
    ):
        _check_num_slots("ring_slots", ring_slots)
        self._copies = make_copies(device) if copies is None else copies
        self.envs = self.unwrapped = envs
        self.num_envs = envs.num_envs
        self.single_observation_space = envs.single_observation_space
        self.single_action_space = envs.single_action_space
        self.observation_space, self.action_space = envs.observation_space, envs.action_space
        own_dtype = _torch_dtype(envs.obs_dtype)
        views = envs.obs_views
        self._shows_pixels = isinstance(views, PixelViews)
        if isinstance(views, PixelViews):
            own_dtype = _torch_dtype(views.numbers_dtype)
            views = views.with_dtype(own_dtype)
        self._views = None if flat else views
        self.obs_dtype = own_dtype if obs_dtype is None else obs_dtype
        if not self.obs_dtype.is_floating_point:
            raise ValueError(f"obs_dtype: expected a floating dtype, got {obs_dtype}")
        discrete = isinstance(envs.single_action_space, gymnasium.spaces.Discrete)
        self._action_dtypes = (torch.int64,) if discrete else (torch.float32, torch.float64)
        self._action_shape = envs.single_action_space.shape or ()
        self._results: _Views | _Staged = _Views()
        if not isinstance(self._copies, CpuCopies):
            self._results = _Staged(
                envs, PinnedRing(_layout(envs), ring_slots, copies=self._copies)
            )
        self.closed = False

    @property
    def device(self) -> torch.device:
        """Where results are and actions must be."""
        return self._copies.device

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Infos]:
        """Starts new episodes; arguments and errors as :meth:`FastVectorEnv.reset`.

        Returns:
            Observations ``(num_envs, obs_size)`` obs_dtype (of a Dict space, here as everywhere: a
            dict of views of it, ``(num_envs, *shape)``), and infos as they are (NumPy).
        """
        obs, infos = self._call(self.envs.flat_reset, seed=seed, options=options)
        return obs, infos

    def step(self, actions: Tensor) -> TorchStepReturn:
        """Steps every environment once.

        Args:
            actions: ``(num_envs, action_size)`` float32 or float64, or ``(num_envs,)`` int64;
                contiguous, on ``device``. Read before the call returns.

        Returns:
            Observations ``(num_envs, obs_size)`` obs_dtype, rewards ``(num_envs,)`` float64,
            terminations and truncations ``(num_envs,)`` bool, and infos as they are (NumPy).

        Raises:
            TypeError: Not a tensor, or wrong dtype. No environment has moved.
            ValueError: Wrong device or shape, not contiguous, NaN or infinite. Likewise.
            ClosedError: After :meth:`close`.
            EnvError: Environments raised; its ``results`` are tensors too. And what else
                :meth:`FastVectorEnv.step` raises.
        """
        self._check_open()
        self._check_actions(actions, self.num_envs)
        (host,) = self._copies.download([actions.detach()])
        obs, rewards, terminations, truncations, infos = self._call(
            self.envs.flat_step, host.numpy()
        )
        return obs, rewards, terminations, truncations, infos

    def async_reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
        env_ids: Tensor | ArrayLike | None = None,
    ) -> None:
        """Queues a reset; arguments and errors as :meth:`FastVectorEnv.async_reset`."""
        self._check_open()
        if isinstance(env_ids, Tensor):
            env_ids = env_ids.cpu().numpy()
        self.envs.async_reset(seed=seed, options=options, env_ids=env_ids)

    def send(self, actions: Tensor, env_ids: Tensor | ArrayLike | None = None) -> None:
        """Queues one step of each of ``env_ids`` and returns at once (from CUDA: once they came).

        Args:
            actions: ``(len(env_ids), action_size)`` or ``(len(env_ids),)``, otherwise as for
                :meth:`step`; copied.
            env_ids: ``(n,)`` ints, such as ``infos["env_id"]`` of :meth:`recv`; None means all.

        Raises:
            As :meth:`step` and :meth:`FastVectorEnv.send`. Nothing has been sent.
        """
        self._check_open()
        if env_ids is None:
            self._check_actions(actions, self.num_envs)
            (host,) = self._copies.download([actions.detach()])
            return self.envs.send(host.numpy())
        ids = env_ids if isinstance(env_ids, Tensor) else torch.from_numpy(np.array(env_ids))
        self._check_actions(actions, ids.numel())
        host, host_ids = self._copies.download([actions.detach(), ids])
        return self.envs.send(host.numpy(), host_ids.numpy())

    def recv(
        self,
        min_envs: int | None = None,
        timeout: float | None = None,
        *,
        max_envs: int | None = None,
    ) -> TorchStepReturn:
        """Takes results as they arrive; arguments and errors as :meth:`FastVectorEnv.recv`.

        Returns:
            As :meth:`step`, one row per result in order of arrival; ``infos["env_id"]`` ``(n,)``
            int64, a tensor on ``device``, names the environments.
        """
        obs, rewards, terminations, truncations, infos = self._call(
            self.envs.flat_recv, min_envs, timeout, max_envs=max_envs
        )
        return obs, rewards, terminations, truncations, infos

    def close(self) -> None:
        """Closes the environments. Tensors that were returned stay what they are."""
        self.closed = True
        self.envs.close()

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._check_open()
        self._results.begin()
        try:
            results = function(*args, **kwargs)
        except EnvError as error:
            error.results = self._tensors(error.results)
            raise
        finally:
            self._results.end()
        return self._tensors(results)

    def _tensors(self, results: Sequence[Any]) -> tuple[Any, ...]:
        *arrays, infos = results
        received = "env_id" in infos
        if received:
            arrays.append(infos["env_id"])
        tensors = self._results.publish(arrays)
        if tensors[0].dtype != self.obs_dtype and not self._shows_pixels:
            tensors[0] = tensors[0].to(self.obs_dtype)
        if received:
            infos["env_id"] = tensors.pop().long()
        if self._views is None:
            return *tensors, infos
        obs, *others = self._views.of_results((*tensors, infos))
        if self._shows_pixels and isinstance(obs, dict):
            obs["state"] = obs["state"].to(self.obs_dtype)
        return obs, *others

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("TorchVectorEnv: expected open environments, got closed ones")

    def _check_actions(self, actions: Tensor, count: int) -> None:
        if not isinstance(actions, Tensor):
            raise TypeError(f"actions: expected a tensor, got {type(actions).__name__}")
        if actions.device != self.device:
            raise ValueError(f"actions: expected a tensor on {self.device}, got {actions.device}")
        if actions.dtype not in self._action_dtypes:
            expected = " or ".join(map(str, self._action_dtypes))
            raise TypeError(f"actions: expected {expected}, got {actions.dtype}")
        shape = (count, *self._action_shape)
        if actions.shape != shape:
            raise ValueError(f"actions: expected shape {shape}, got {tuple(actions.shape)}")
        if not actions.is_contiguous():
            raise ValueError(
                f"actions: expected a contiguous tensor, got strides {actions.stride()}"
            )


class _Views:
    """Results on the CPU: the environments' arrays as they are."""

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def publish(self, arrays: Sequence[NDArray[Any]]) -> list[Tensor]:
        return [torch.from_numpy(array) for array in arrays]


class _Staged:
    """Results on a device: through a ring of host slots."""

    def __init__(self, envs: FastVectorEnv, ring: PinnedRing):
        self._ring = ring
        self._slot = ring.slots[0]
        # where the core has it, it writes into the slot, and publish() has nothing to copy
        core = getattr(envs, "_core", None)
        self._use_buffers: Callable[[list[tuple[NDArray[Any], ...]]], None] = getattr(
            core, "use_buffers", lambda buffers: None
        )

    def begin(self) -> None:
        """Before a call: the slot that its results go into."""
        self._slot = self._ring.acquire()
        self._use_buffers([tuple(self._slot.numpy(name) for name in _RESULTS)])

    def end(self) -> None:
        """After a call: ``envs``, used directly, does not write into our slot."""
        self._use_buffers([])

    def publish(self, arrays: Sequence[NDArray[Any]]) -> list[Tensor]:
        """After a call: obs, or all four, or those and env_id, as tensors."""
        named = list(zip((*_RESULTS, "env_id"), arrays, strict=False))
        for name, array in named:
            _fill(self._slot.numpy(name), array)
        tensors = self._ring.upload(self._slot)
        return [tensors[name][: len(array)] for name, array in named]


def _fill(host: NDArray[Any], array: NDArray[Any]) -> None:
    """Copies ``array`` into the first rows of ``host``, unless the core has written it there."""
    if array.ctypes.data != host.ctypes.data:
        np.copyto(host[: len(array)], array)


def _layout(envs: FastVectorEnv) -> Layout:
    return {
        "obs": ((envs.num_envs, envs.obs_size), _torch_dtype(envs.obs_dtype)),
        "rewards": ((envs.num_envs,), torch.float64),
        "terminations": ((envs.num_envs,), torch.bool),
        "truncations": ((envs.num_envs,), torch.bool),
        "env_id": ((envs.num_envs,), torch.int64),
    }


def _torch_dtype(dtype: Any) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype


# ---- batches, collected while the learner works ----------------------------------------------


R = TypeVar("R")


@dataclass(frozen=True)
class _Task(Generic[R]):
    slot: Slot
    future: Future[R] = field(default_factory=Future)


class Collector(Generic[R]):
    """Fills one slot of a ring after the other; with ``overlap`` while the learner works.

    Without ``overlap`` (the default), :meth:`next` collects in the calling thread: batches are
    those of calling ``collect`` directly, and every batch comes from the present policy.

    With ``overlap``, :meth:`next` returns a batch and leaves the next one being collected in a
    thread, by the policy as it is at that moment. So the first batch comes from the present policy,
    and **every later one from the policy of one update ago**: the learner that makes version k + 1
    of the policy from batch k gets a batch that version k - 1 collected (PPO's ratio corrects for
    it if log-probabilities are those of collection; on-policy methods without it are biased). The
    environments are the thread's from the first :meth:`next` to :meth:`close`, except in
    ``prepare``.

    Args:
        collect: Fills the given host tensors; returns what does not fit into them (finished
            episodes, say). With ``overlap`` it should release the GIL, as rollouts do, and need not
            be thread-safe: it runs once at a time.
        ring: The batches' storage and their device.
        overlap: Collect while the learner works.
    """

    def __init__(
        self,
        collect: Callable[[dict[str, Tensor]], R],
        ring: PinnedRing,
        *,
        overlap: bool = False,
    ):
        self.overlap = overlap
        self.closed = False
        self._collect = collect
        self._ring = ring
        self._pending: _Task[R] | None = None
        self._tasks: SimpleQueue[_Task[R] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=_run_tasks, args=(self._tasks, collect), name="collector", daemon=True
        )
        # also at the interpreter's exit, which native code in a thread may not survive
        self._finalizer = weakref.finalize(self, _end_thread, self._tasks, self._thread)
        if overlap:
            self._thread.start()

    def next(self, prepare: Callable[[], object] | None = None) -> tuple[dict[str, Tensor], R]:
        """Returns the next batch.

        Args:
            prepare: Runs in the calling thread before each collection, while none is under way: the
                place to export the policy. The first call with ``overlap`` starts two collections.

        Returns:
            The batch's tensors on the ring's device (see :meth:`PinnedRing.upload`; on the CPU they
            last until the next call), and what ``collect`` returned.

        Raises:
            ClosedError: After :meth:`close`.
            Exception: What ``collect`` or ``prepare`` raised; the next call collects anew.
            KeyboardInterrupt: Ctrl-C. While a batch is waited for, nothing is lost: the next call
                returns it.
        """
        if self.closed:
            raise ClosedError("Collector: expected an open collector, got a closed one")
        if not self.overlap:
            slot = self._prepared(prepare).slot
            result = self._collect(dict(slot.tensors))
            return self._ring.upload(slot), result
        slot, result = self._wait(prepare)
        self._pending = self._prepared(prepare)
        self._tasks.put(self._pending)
        return self._ring.upload(slot), result

    def close(self, timeout: float = 10.0) -> None:
        """Ends the thread; waits for a collection under way and drops it, errors included.

        Args:
            timeout: Wait no longer than this [s]; a collection that takes longer runs on with its
                slot, in a daemon thread, and a RuntimeWarning says so.
        """
        self.closed = True
        self._finalizer.detach()
        self._pending = None
        _end_thread(self._tasks, self._thread, timeout)
        if self._thread.is_alive():
            message = f"Collector.close: the collection still runs after {timeout} s"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _prepared(self, prepare: Callable[[], object] | None) -> _Task[R]:
        slot = self._ring.acquire()
        if prepare is not None:
            prepare()
        return _Task(slot)

    def _wait(self, prepare: Callable[[], object] | None) -> tuple[Slot, R]:
        if self._pending is None:
            self._pending = self._prepared(prepare)
        # Ctrl-C may have come before the thread got it; one that it has done already, it skips
        self._tasks.put(self._pending)
        wait([self._pending.future])
        task, self._pending = self._pending, None
        return task.slot, task.future.result()


def _end_thread(
    tasks: SimpleQueue[_Task[R] | None], thread: threading.Thread, timeout: float = 10.0
) -> None:
    tasks.put(None)
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(timeout)


def _run_tasks(
    tasks: SimpleQueue[_Task[R] | None], collect: Callable[[dict[str, Tensor]], R]
) -> None:
    for task in iter(tasks.get, None):
        _run_task(task, collect)


def _run_task(task: _Task[R], collect: Callable[[dict[str, Tensor]], R]) -> None:
    if task.future.done():
        return
    try:
        result = collect(dict(task.slot.tensors))
    except BaseException as error:
        task.future.set_exception(error)
    else:
        task.future.set_result(result)
