"""A CUDA device on paper: what runs on it raises where devices mix, on any machine.

:func:`paper_cuda` makes tensors with ``device="cuda"`` possible without a GPU. Such a tensor says
that it is on ``cuda:0`` and keeps its values on the CPU. Every operation on it is first judged by
PyTorch's own :class:`FakeTensorMode`, which knows the rules of mixing (zero-dimensional CPU tensors
may, others may not) and raises as CUDA would; then it is computed on the values. So the whole of an
update runs, with everything in it that depends on data: ``item()``, ``tolist()``, masks, loops that
end by a loss; and its results can be compared with the CPU's.

What has no meaning on paper is replaced: streams, events, pinned memory and CUDA graphs. Kernels
that differ between devices are not tested by this; ``pytest -m gpu`` does that on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from pyfastenv.nn import cuda_graph
from pyfastenv.sampling import staging

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)


class PaperTensor(Tensor):
    """A tensor on cuda:0, its values on the CPU."""

    values: Tensor

    @staticmethod
    def __new__(cls, values: Tensor) -> PaperTensor:
        # as FakeTensor is made: to C++ a tensor without storage
        meta = torch.empty_strided(values.shape, values.stride(), dtype=values.dtype, device="meta")
        self: PaperTensor = Tensor._make_subclass(
            cls, meta, False, dispatch_device=True, device_for_backend_keys=CUDA
        )
        self.values = values
        return self

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        return False

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        return self.detach()

    @data.setter
    def data(self, other: PaperTensor) -> None:
        assert isinstance(other, PaperTensor) and other.shape == self.shape
        self.values = other.values

    # what brings numbers to the host asks C++ for a device that it has not got
    def tolist(self) -> Any:
        return self.values.tolist()

    def item(self) -> Any:
        return self.values.item()

    def __bool__(self) -> bool:
        return bool(self.values)

    def __int__(self) -> int:
        return int(self.values)

    def __float__(self) -> float:
        return float(self.values)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, Tensor):
            value = torch.tensor(value, dtype=self.dtype)
        super().__setitem__(index, value)

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"{self.values!r} on {CUDA}"

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")

    def __deepcopy__(self, memo: dict[int, Any]) -> PaperTensor:
        new = PaperTensor(self.values.clone()).requires_grad_(self.requires_grad)
        if hasattr(self, "_is_param"):
            new._is_param = True
        if self.grad is not None:
            new.grad = PaperTensor(self.grad.values.clone())
        return new

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})


class PaperGenerator(torch.Generator):
    """A generator that says where it is."""

    def __new__(cls, device: str | torch.device = "cpu") -> PaperGenerator:
        self = super().__new__(cls)
        self.where = torch.device(device).type  # type: ignore[attr-defined]
        return self

    @property
    def device(self) -> torch.device:
        return torch.device(self.where)  # type: ignore[attr-defined]


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})


_judge = FakeTensorMode()


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if func is torch.ops.prim.device.default:
        return torch.device("meta")  # to C++, which has guards for that one
    leaves = tree_leaves((args, kwargs))
    mine = {id(x.values): x for x in leaves if isinstance(x, PaperTensor)}
    wanted = kwargs.get("device")
    # "meta" is what C++ was told of paper tensors' device: "where the other one is"
    to_cuda = wanted is not None and torch.device(wanted).type in ("cuda", "meta")
    if to_cuda:
        kwargs = {**kwargs, "device": CUDA}
    if not mine and not to_cuda:
        return func(*args, **kwargs)
    devices = _judged(func, args, kwargs)
    real_args, real_kwargs = tree_map(_values, (args, kwargs))
    if wanted is not None:
        real_kwargs["device"] = CPU
        real_kwargs.pop("pin_memory", None)
    results = func(*real_args, **real_kwargs)

    def wrap(result: Any, device: torch.device) -> Any:
        if not isinstance(result, Tensor) or device.type == "cpu":
            return result
        return mine[id(result)] if id(result) in mine else PaperTensor(result)

    if isinstance(results, tuple | list):
        devices = devices[: len(results)]  # of results without shapes on paper there are eight
        return type(results)(wrap(x, d) for x, d in zip(results, devices, strict=True))
    return wrap(results, devices[0])


def _judged(func: Any, args: Any, kwargs: dict[str, Any]) -> list[torch.device]:
    """The results' devices; raises where devices mix."""
    fake_args, fake_kwargs = tree_map(_fake, (args, kwargs))
    if func in _INDEXING:
        _check_indices(*args[:2])
        if func is torch.ops.aten.index.Tensor:  # by masks too, which have no shape on paper
            return [fake_args[0].device]
    try:
        with _judge:
            out = func(*fake_args, **fake_kwargs)
    except RuntimeError as error:
        # shapes that depend on data; decompositions that ask a build without CUDA for its guard
        no_answer = isinstance(error, DataDependentOutputException | DynamicOutputShapeException)
        if not no_answer and "not linked with support for cuda" not in str(error):
            raise
        flat = tree_leaves((fake_args, fake_kwargs))
        device, _ = FakeTensor._find_common_device(func, flat)  # raises likewise
        return [device or CPU] * 8
    results = out if isinstance(out, tuple | list) else [out]
    return [x.device if isinstance(x, Tensor) else CPU for x in results]


_aten = torch.ops.aten
_INDEXING = (_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default)


def _check_indices(indexed: Tensor, indices: Sequence[Tensor | None]) -> None:
    """Checks indices, at which FakeTensorMode does not look."""
    for index in indices:
        if index is not None and index.device not in (CPU, indexed.device):
            raise RuntimeError(
                "indices should be either on cpu or on the same device as the indexed tensor "
                f"({indexed.device})"
            )


def _fake(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return None if isinstance(x, torch.Generator) else x
    like = x.values if isinstance(x, PaperTensor) else x
    with torch.utils._python_dispatch._disable_current_modes():
        meta = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta")
        return FakeTensor(_judge, meta, CUDA if isinstance(x, PaperTensor) else CPU)


def _values(x: Any) -> Any:
    return x.values if isinstance(x, PaperTensor) else x


class _Generators(TorchFunctionMode):
    """Raises where a generator is not where it draws."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(generator := kwargs.get("generator"), torch.Generator):
            given = (*args, kwargs.get("out"))
            places = {x.device.type for x in given if isinstance(x, Tensor)}
            places = places or {torch.device(kwargs.get("device") or "cpu").type}
            if places != {generator.device.type}:
                raise RuntimeError(f"{func.__name__}: on {places}, generator on {generator.device}")
        return func(*args, **kwargs)


# ---- what surrounds the tensors ------------------------------------------------------------------


class PaperCopies:
    """Staging's copies: to the device and back at once."""

    device = CUDA

    def allocate(self, num_bytes: int) -> Tensor:
        return torch.zeros(num_bytes, dtype=torch.uint8)

    def make_event(self) -> Any:
        return staging._NoEvent()

    def upload(self, host: Tensor, event: Any) -> Tensor:
        return host.to(self.device)

    def download(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [tensor.cpu() for tensor in tensors]


class _Stream:
    def __init__(self, *_: Any):
        pass

    def wait_stream(self, _: Any) -> None:
        pass


def _nothing() -> None:
    pass


def _no_stream(_: Any) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _apply(self: torch.nn.Module, *args: Any, _original: Any = torch.nn.Module._apply) -> Any:
    """Module.to, keeping its parameters' identity as it does on CUDA."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return _original(self, *args)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def _make_copies(original: Callable[..., Any]) -> Callable[..., Any]:
    def make(device: str | torch.device) -> Any:
        return PaperCopies() if torch.device(device).type == "cuda" else original(device)

    return make


@contextlib.contextmanager
def paper_cuda() -> Iterator[None]:
    """While entered, ``device="cuda"`` is on paper."""
    patches = (
        mock.patch.object(torch, "Generator", PaperGenerator),
        mock.patch.object(torch.cuda, "_lazy_init", _nothing),
        mock.patch.object(torch.cuda, "Stream", _Stream),
        mock.patch.object(torch.cuda, "stream", _no_stream),
        mock.patch.object(torch.cuda, "current_stream", _Stream),
        mock.patch.object(torch.nn.Module, "_apply", _apply),
        mock.patch.object(cuda_graph, "_WARM_UP", 10**9),  # plain steps, no capture
        mock.patch.object(staging, "make_copies", _make_copies(staging.make_copies)),
    )
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        stack.enter_context(_Generators())
        stack.enter_context(_Mode())
        yield
