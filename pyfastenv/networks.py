"""Multi-layer perceptrons with a leading axis of networks, and the policies made of them.

Every parameter is ``(K, …)``: K networks of the same shape are one batched layer. A network can be
used like any torch module; the trainers' inner loops call :func:`mlp_forward` and
:func:`mlp_backward` themselves, which costs a third of what autograd's bookkeeping does on small
networks. Knows no environment and no optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyfastenv.rollouts import ACTIVATIONS, PolicySpec

_tanh_backward = torch.ops.aten.tanh_backward
_silu_backward = torch.ops.aten.silu_backward
_threshold_backward = torch.ops.aten.threshold_backward
_elu_backward = torch.ops.aten.elu_backward


class Saved(NamedTuple):
    """What :func:`mlp_backward` needs of a forward pass."""

    inputs: list[Tensor]  # of each layer, (K, B, in)
    preactivations: list[Tensor]  # of each hidden layer where the activation needs them (SiLU)


def mlp_forward(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], activation: str
) -> tuple[Tensor, Saved]:
    """Evaluates K networks.

    Args:
        x: ``(K, B, in)``; an expanded view will do.
        weights: Of each layer, ``(K, in, out)``.
        biases: Of each layer, ``(K, out)``.
        activation: After every layer but the last.

    Returns:
        ``(K, B, out)``, and what :func:`mlp_backward` needs.
    """
    saved = Saved([], [])
    last = len(weights) - 1
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        saved.inputs.append(x)
        x = _affine(x, weight, bias)
        if i < last:
            if activation == "silu":
                saved.preactivations.append(x)
            x = _activate(x, activation)
    return x, saved


def mlp_backward(
    grad: Tensor,
    saved: Saved,
    weights: Sequence[Tensor],
    activation: str,
    weight_grads: Sequence[Tensor],
    bias_grads: Sequence[Tensor],
    *,
    input_grad: bool = False,
) -> Tensor | None:
    """Writes (does not add) the gradients of the parameters.

    Args:
        grad: Of the loss by the outputs, ``(K, B, out)``.
        saved: From :func:`mlp_forward`.
        weights: As given there.
        activation: As given there.
        weight_grads: Where to write, ``(K, in, out)`` each.
        bias_grads: Where to write, ``(K, out)`` each.
        input_grad: Whether the gradient by the inputs is wanted.

    Returns:
        That gradient, ``(K, B, in)``, or None.
    """
    for i in reversed(range(len(weights))):
        x = saved.inputs[i]
        if x.shape[0] == 1:
            torch.mm(x[0].t(), grad[0], out=weight_grads[i][0])
        else:
            torch.bmm(x.transpose(1, 2), grad, out=weight_grads[i])
        torch.sum(grad, 1, out=bias_grads[i])
        if i == 0 and not input_grad:
            return None
        grad = _matmul(grad, weights[i].transpose(1, 2))
        if i > 0:
            grad = _activation_backward(grad, activation, saved, i)
    return grad


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    # a batch of one: mm is faster than bmm
    return torch.mm(a[0], b[0])[None] if b.shape[0] == 1 else torch.bmm(a, b)


def _affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if weight.shape[0] == 1:
        return torch.addmm(bias[0], x[0], weight[0])[None]
    return torch.baddbmm(bias[:, None], x, weight)


def _activate(x: Tensor, activation: str) -> Tensor:
    match activation:
        case "tanh":
            return x.tanh_()
        case "relu":
            return x.relu_()
        case "elu":
            return nn.functional.elu_(x)
        case "silu":
            return nn.functional.silu(x)
    return x


def _activation_backward(grad: Tensor, activation: str, saved: Saved, layer: int) -> Tensor:
    output = saved.inputs[layer]
    result = grad
    match activation:
        case "tanh":
            result = _tanh_backward(grad, output)
        case "relu":
            result = _threshold_backward(grad, output, 0)
        case "elu":
            result = _elu_backward(grad, 1.0, 1.0, 1.0, True, output)
        case "silu":
            result = _silu_backward(grad, saved.preactivations[layer - 1])
    return result


class _MLPFunction(torch.autograd.Function):
    """The pair above for autograd."""

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
        saved = Saved(list(tensors[2 * half : 3 * half]), list(tensors[3 * half :]))
        weight_grads = [torch.empty_like(weight) for weight in weights]
        bias_grads = [torch.empty_like(bias) for bias in biases]
        grad_x = mlp_backward(
            grad.contiguous(),
            saved,
            weights,
            ctx.activation,
            weight_grads,
            bias_grads,
            input_grad=ctx.needs_input_grad[0],
        )
        return grad_x, None, *weight_grads, *bias_grads


class MLP(nn.Module):
    """K multi-layer perceptrons.

    Args:
        sizes: Input, hidden layers, output.
        activation: ``"tanh"``, ``"relu"``, ``"elu"``, ``"silu"`` or ``"identity"``.
        num_networks: K.
        gain: Of the hidden layers' initial weights (orthogonal); None: PyTorch's default.
        last_gain: Of the last layer's.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: str = "tanh",
        num_networks: int = 1,
        gain: float | None = math.sqrt(2.0),
        last_gain: float = 1.0,
    ):
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"sizes: expected at least two positive integers, got {sizes}")
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"activation: expected one of {', '.join(ACTIVATIONS)}, got {activation!r}"
            )
        self.sizes = tuple(sizes)
        self.activation = activation
        pairs = list(pairwise(sizes))
        self.weights = nn.ParameterList(
            nn.Parameter(torch.empty(num_networks, a, b)) for a, b in pairs
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(num_networks, b)) for _, b in pairs)
        for i, weight in enumerate(self.weights):
            last = i == len(pairs) - 1
            for network in weight:
                if gain is not None:
                    nn.init.orthogonal_(network, last_gain if last else gain)
                    continue
                bound = 1.0 / math.sqrt(pairs[i][0])
                nn.init.uniform_(network, -bound, bound)
            if gain is None:
                nn.init.uniform_(self.biases[i], -bound, bound)

        # plain lists: a ParameterList looks every item up by name, which costs as much as a layer
        self.weight_list = list(self.weights)
        self.bias_list = list(self.biases)

    @property
    def num_networks(self) -> int:
        """K."""
        return len(self.bias_list[0])

    def forward(self, x: Tensor) -> Tensor:
        """``(K, B, in)`` or ``(B, in)`` (the same for all) to ``(K, B, out)``."""
        if x.dim() == 2:
            x = x.expand(self.num_networks, *x.shape)
        out: Tensor = _MLPFunction.apply(x, self.activation, *self.weight_list, *self.bias_list)
        return out

    def evaluate(self, x: Tensor) -> tuple[Tensor, Saved]:
        """:func:`mlp_forward` with these networks: ``(K, B, in)`` to ``(K, B, out)``."""
        return mlp_forward(x, self.weight_list, self.bias_list, self.activation)

    def write_gradients(
        self, saved: Saved, grad: Tensor, *, input_grad: bool = False
    ) -> Tensor | None:
        """:func:`mlp_backward` into the parameters' ``grad``, which must be there.

        Args:
            saved: From :meth:`evaluate`.
            grad: Of the loss by the outputs, ``(K, B, out)``.
            input_grad: Whether the gradient by the inputs, ``(K, B, in)``, is wanted.
        """
        return mlp_backward(
            grad,
            saved,
            self.weight_list,
            self.activation,
            [_grad(weight) for weight in self.weight_list],
            [_grad(bias) for bias in self.bias_list],
            input_grad=input_grad,
        )

    def spec(self, **fields: Any) -> PolicySpec:
        """These networks as a policy; ``fields`` as for :class:`PolicySpec`."""
        return PolicySpec(
            weights=[_numpy(weight) for weight in self.weight_list],
            biases=[_numpy(bias) for bias in self.bias_list],
            activation=self.activation,
            **fields,
        )


def _numpy(tensor: Tensor) -> Any:
    # a copy: what trains on must not change the policy under our feet
    return tensor.detach().to("cpu", torch.float32, copy=True).numpy()


def _grad(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


class FlatParameters:
    """All parameters of some modules as one vector, and all gradients as another.

    The modules' parameters become views of :attr:`parameter`, their ``grad`` views of its ``grad``:
    an optimiser, a norm or an all-reduce is one operation. Load state dicts as ever (they are
    copied in place); do not move the modules to another device afterwards.
    """

    def __init__(self, modules: Iterable[nn.Module | nn.Parameter]):
        parameters = [
            parameter
            for module in modules
            for parameter in ([module] if isinstance(module, nn.Parameter) else module.parameters())
        ]
        flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.parameter = nn.Parameter(flat)
        self.parameter.grad = torch.zeros_like(flat)
        offset = 0
        for parameter in parameters:
            end = offset + parameter.numel()
            parameter.data = flat[offset:end].view_as(parameter)
            parameter.grad = self.parameter.grad[offset:end].view_as(parameter)
            offset = end

    def clip_grad_norm(self, max_norm: float) -> Tensor:
        """Scales the gradient to at most this Euclidean norm; returns the norm before, 0-d."""
        grad = self.grad
        norm: Tensor = torch.linalg.vector_norm(grad)
        grad.mul_((max_norm / (norm + 1e-6)).clamp_(max=1.0))
        return norm

    @property
    def grad(self) -> Tensor:
        """The gradients, ``(num_parameters,)``."""
        return _grad(self.parameter)


def from_sequential(module: nn.Sequential, **fields: Any) -> PolicySpec:
    """A plain ``nn.Sequential`` of linear layers and one kind of activation as a policy.

    Args:
        module: Linear, activation, …, Linear.
        **fields: ``distribution``, ``log_std`` ``(action_size,)`` or ``(1, action_size)``, …: see
            :class:`PolicySpec`.

    Raises:
        TypeError: Other layers, or different activations.
    """
    names = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.ELU: "elu", nn.SiLU: "silu"}
    linears = [layer for layer in module if isinstance(layer, nn.Linear)]
    others = [layer for layer in module if not isinstance(layer, nn.Linear)]
    kinds = {type(layer) for layer in others}
    alternate = len(linears) == len(others) + 1 and all(
        isinstance(layer, nn.Linear) == (i % 2 == 0) for i, layer in enumerate(module)
    )
    if not alternate or len(kinds) > 1 or not kinds <= set(names):
        raise TypeError(
            "policy: expected nn.Sequential(Linear, activation, …, Linear) with one kind of "
            f"{', '.join(kind.__name__ for kind in names)}, got {module}"
        )
    if any(isinstance(layer, nn.ELU) and layer.alpha != 1.0 for layer in others):
        raise TypeError(f"policy: expected ELU with alpha=1, got {module}")
    if fields.get("log_std") is not None:
        fields["log_std"] = _numpy(torch.as_tensor(fields["log_std"])).reshape(1, -1)
    return PolicySpec(
        weights=[_numpy(layer.weight).T.copy()[None] for layer in linears],
        biases=[
            _numpy(layer.bias if layer.bias is not None else torch.zeros(layer.out_features))[None]
            for layer in linears
        ],
        activation=names[kinds.pop()] if kinds else "identity",
        **fields,
    )
