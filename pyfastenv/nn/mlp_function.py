"""K multi-layer perceptrons as one operation of autograd, with the written-out backward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyfastenv.nn.networks import Saved, mlp_backward, mlp_forward


class MLPFunction(torch.autograd.Function):
    """``apply(x, activation, *weights, *biases)``: :func:`mlp_forward` with its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, activation: str, *parameters: Tensor) -> Tensor:
        half = len(parameters) // 2
        out, saved = mlp_forward(x, parameters[:half], parameters[half:], activation)
        ctx.save_for_backward(*parameters, *saved.inputs, *saved.preactivations)
        ctx.activation, ctx.half = activation, half
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        half = ctx.half
        tensors = ctx.saved_tensors
        weights, biases = tensors[:half], tensors[half : 2 * half]
        saved = Saved(list(tensors[2 * half : 3 * half]), list(tensors[3 * half :]), [], [])
        weight_grads = [torch.empty_like(weight) for weight in weights]
        bias_grads = [torch.empty_like(bias) for bias in biases]
        grad_x = mlp_backward(
            grad.contiguous(),
            saved,
            weights,
            ctx.activation,
            weight_grads,
            bias_grads,
            input_columns=slice(None) if ctx.needs_input_grad[0] else None,
        )
        return grad_x, None, *weight_grads, *bias_grads
