"""Adam on one flat vector of parameters: in plain operations, or in one fused kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.adam import adam

from pyfastenv.nn.networks import FlatParameters
from pyfastenv.nn.spans import span


class FlatAdam:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980, algorithm 1).

    PyTorch's takes several times as long around the arithmetic as for it when networks are small.

    Args:
        flat: The parameters and where their gradients stand.
        lr: Step size; may be changed at any time.
        betas: Decays of the moments.
        eps: Added to the root of the second moment.
        fused: PyTorch's fused kernel: faster on large vectors, and a CUDA graph can hold it. Plain
            operations are what the compiled PPO update does, bit for bit.

    Attributes:
        flat: As given.
        mean: First moment, ``(num_parameters,)``.
        square: Second moment.
    """

    def __init__(
        self,
        flat: FlatParameters,
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        fused: bool = False,
    ):
        self.betas = betas
        self.eps = eps
        self.flat = flat
        self._fused = fused
        # on the device where the kernel reads it, on the host where Python does
        where = flat.parameter.device if fused else torch.device("cpu")
        self._num_steps = torch.zeros(
            (), dtype=torch.float32 if fused else torch.int64, device=where
        )
        # a CUDA graph reads its step size where it was when the graph was captured
        self._device_lr = torch.empty((), device=where) if fused and where.type == "cuda" else None
        self.lr = lr
        self.mean = torch.zeros_like(flat.grad)
        self.square = torch.zeros_like(flat.grad)

    @property
    def lr(self) -> float:
        """Step size."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = value
        if self._device_lr is not None:
            self._device_lr.fill_(value)

    @property
    def num_steps(self) -> int:
        """Steps made so far. Synchronises with the device if ``fused``."""
        return int(self._num_steps)

    @num_steps.setter
    def num_steps(self, value: int) -> None:
        self._num_steps.fill_(value)

    @torch.no_grad()
    def step(self) -> None:
        """Moves the parameters along the gradients that stand there."""
        with span("optimiser"):
            if self._fused:
                self._step_fused()
            else:
                self._step_plainly()

    def _step_plainly(self) -> None:
        grad: Tensor = self.flat.grad
        first, second = self.betas
        self.num_steps += 1
        count = self.num_steps
        self.mean.lerp_(grad, 1.0 - first)
        self.square.mul_(second).addcmul_(grad, grad, value=1.0 - second)
        root = self.square.sqrt().mul_(1.0 / math.sqrt(1.0 - second**count)).add_(self.eps)
        size = self.lr / (1.0 - first**count)
        self.flat.parameter.addcdiv_(self.mean, root, value=-size)

    def _step_fused(self) -> None:
        """``torch.optim.Adam(fused=True)`` without what that does around the kernel."""
        adam(
            [self.flat.parameter],
            [self.flat.grad],
            [self.mean],
            [self.square],
            [],
            [self._num_steps],
            fused=True,
            capturable=self._num_steps.is_cuda,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self._lr_of_step(),
            weight_decay=0.0,
            eps=self.eps,
            maximize=False,
        )

    def _lr_of_step(self) -> float | Tensor:
        if self._device_lr is None or not torch.cuda.is_available():  # pretended to be there
            return self._lr
        return self._device_lr if torch.cuda.is_current_stream_capturing() else self._lr

    def arrays(self) -> list[NDArray[np.float32]]:
        """Parameters, first and second moment, on the CPU: to be changed in place."""
        tensors = (self.flat.parameter.detach(), self.mean, self.square)
        return [tensor.numpy() for tensor in tensors]

    def reset(self) -> None:
        """Forgets the moments, as a new optimiser would."""
        for tensor in (self._num_steps, self.mean, self.square):
            tensor.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Moments and count; not the step size."""
        return {"step": self._num_steps, "mean": self.mean, "square": self.square}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self._num_steps.fill_(float(state["step"]))
        self.mean.copy_(state["mean"])
        self.square.copy_(state["square"])
