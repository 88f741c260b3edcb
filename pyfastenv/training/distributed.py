"""One training in several processes (torchrun). With one process, all of this does nothing.

Every process steps its own environments and learns with the averaged gradients; process 0 logs,
saves and prints. Each function here but ``init``, ``rank`` and their like must be called by all
processes in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import distributed as dist

from pyfastenv.runs.errors import ProcessLostError, TrainingError

T = TypeVar("T")


def init(device: str = "cpu") -> bool:
    """Joins the other processes, if torchrun's variables say that there are some.

    Args:
        device: ``"cpu"`` uses gloo; otherwise NCCL too, if there is CUDA, and this process's GPU
            becomes current.

    Returns:
        Whether it has joined: the caller is then to :func:`shut_down`.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        return False
    if device == "cpu" or not torch.cuda.is_available():
        dist.init_process_group("gloo")
    else:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("cpu:gloo,cuda:nccl")
    return True


def wait_for_all() -> None:
    """Until all processes are here: before they leave, for process 0 takes along what the others
    still need to leave in peace (gloo aborts one that does not find it)."""
    if world_size() > 1:
        dist.barrier()


def shut_down() -> None:
    """Leaves the other processes."""
    dist.destroy_process_group()


@contextmanager
def lost_processes_told() -> Iterator[None]:
    """Turns what gloo or NCCL say when another process is gone into a sentence.

    Raises:
        ProcessLostError: Another process is gone.
    """
    try:
        yield
    except TrainingError:  # may name a folder that is called like what gloo says
        raise
    except RuntimeError as error:
        lost = isinstance(error, dist.DistError) or "/gloo/" in str(error)  # gloo's are bare
        if world_size() == 1 or not lost:
            raise
        raise ProcessLostError(
            f"process {rank()} of {world_size()}: another process of this training is gone (its "
            "own output says why); what is started again by torchrun --max-restarts or Ray goes on "
            "from the last checkpoint with --run-dir and --auto-resume"
        ) from error


def rank() -> int:
    """This process's number; 0 logs, saves and prints."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def average_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Replaces gradients by their means over the processes, in one all-reduce.

    A parameter without a gradient counts as zero and gets one.

    Args:
        parameters: The same on all processes, on one device and of one dtype.
    """
    if world_size() == 1:
        return
    trained = [p for p in parameters if p.requires_grad]
    for parameter in trained:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    gradients = [p.grad for p in trained if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= world_size()
    parts = torch.split(flat, [gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def mean(tensor: torch.Tensor) -> torch.Tensor:
    """The mean over the processes, of the same shape; with one process, the tensor itself."""
    if world_size() == 1:
        return tensor
    total = tensor.clone()
    dist.all_reduce(total)
    return total / world_size()


def merge_moments(
    count: torch.Tensor, mean: torch.Tensor, m2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Moments of all processes' samples together, for normalisers.

    The parallel formula of Chan, Golub and LeVeque (1979), stable where sums of squares are not.

    Args:
        count: ``()`` how many samples this process has seen since the last merge.
        mean: ``(d,)`` their mean; any finite number where there are none.
        m2: ``(d,)`` their summed squared deviations from that mean.

    Returns:
        The same three over all processes; the mean is 0 without samples.
    """
    if world_size() == 1:
        return count, mean, m2
    sums = torch.cat([count.reshape(1).to(mean.dtype), (count * mean).flatten()])
    dist.all_reduce(sums)
    total, total_mean = sums[0], (sums[1:] / sums[0].clamp(min=1)).view_as(mean)
    total_m2 = m2 + count * (mean - total_mean).square()
    dist.all_reduce(total_m2)
    return total.to(count.dtype), total_mean, total_m2


def standardized(values: torch.Tensor) -> torch.Tensor:
    """Values of any shape by mean and standard deviation of all processes' values."""
    if world_size() == 1:
        std, mean = torch.std_mean(values)
        return (values - mean) / (std + 1e-8)
    count = torch.tensor(float(values.numel()), device=values.device)
    mean = values.mean()[None]
    m2 = (values - mean).square().sum()[None]
    count, mean, m2 = merge_moments(count, mean, m2)
    return (values - mean) / ((m2 / (count - 1.0)).sqrt() + 1e-8)


def broadcast(tensors: Iterable[torch.Tensor]) -> None:
    """Overwrites tensors (a module's state, say) with process 0's."""
    if world_size() > 1:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), src=0)


def broadcast_object(value: T) -> T:
    """Process 0's object, pickled, on all processes."""
    if world_size() == 1:
        return value
    box: list[Any] = [value]
    dist.broadcast_object_list(box, src=0)
    received: T = box[0]
    return received


def gather(value: T) -> list[T] | None:
    """All processes' objects, pickled, by rank, on process 0; None on the others."""
    if world_size() == 1:
        return [value]
    gathered: list[Any] | None = [None] * world_size() if rank() == 0 else None
    dist.gather_object(value, gathered)
    return gathered


def any_of(flag: bool) -> bool:
    """Whether the flag is set on any process."""
    if world_size() == 1:
        return flag
    number = torch.tensor(int(flag))
    dist.all_reduce(number, op=dist.ReduceOp.MAX)
    return bool(number)
