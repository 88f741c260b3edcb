"""Multi-layer perceptrons with a leading axis of networks, and the policies made of them.

Every parameter is ``(K, …)``: K networks of the same shape are one batched layer. A network can be
used like any torch module; accelerated updates call :func:`mlp_forward` and :func:`mlp_backward`
themselves, which costs a third of what autograd's bookkeeping does on small networks. Knows no
environment and no optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from pyfastenv.nn.policy_spec import ACTIVATIONS, PolicySpec
from pyfastenv.nn.spans import span

M = TypeVar("M", bound=nn.Module)

_tanh_backward = torch.ops.aten.tanh_backward
_silu_backward = torch.ops.aten.silu_backward
_threshold_backward = torch.ops.aten.threshold_backward
_elu_backward = torch.ops.aten.elu_backward
_layer_norm_backward = torch.ops.aten.native_layer_norm_backward


class Saved(NamedTuple):
    """The tensors of a forward pass that :func:`mlp_backward` needs."""

    inputs: list[Tensor]  # of each layer, (K, B, in)
    preactivations: list[Tensor]  # of each hidden layer where the activation needs them (SiLU)
    normals: list[Tensor]  # of each normalised layer: (K, B, out), before scales and shifts …
    inverse_stds: list[Tensor]  # … and (K, B, 1)


def mlp_forward(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    activation: str,
    norms: Sequence[Tensor] = (),
) -> tuple[Tensor, Saved]:
    """Evaluates K networks.

    Args:
        x: ``(K, B, in)``; an expanded view will do.
        weights: Of each layer, ``(K, in, out)``; a layer computes in its weights' dtype.
        biases: Of each layer, ``(K, out)``.
        activation: After every layer but the last.
        norms: Of each hidden layer, ``(K, 2, out)``: scales and shifts of the layer
            normalisation before the activation (Ba et al. 2016, arXiv:1607.06450).

    Returns:
        ``(K, B, out)``, and what :func:`mlp_backward` needs.
    """
    saved = Saved([], [], [], [])
    last = len(weights) - 1
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if x.dtype != weight.dtype:
            x = x.to(weight.dtype)
        saved.inputs.append(x)
        x = _affine(x, weight, bias)
        if i < last:
            if norms:
                x = x.to(norms[i].dtype)
                normal, _, inverse_std = torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5)
                saved.normals.append(normal)
                saved.inverse_stds.append(inverse_std)
                scale, shift = norms[i].unbind(1)
                x = torch.addcmul(shift[:, None], normal, scale[:, None])
            if activation == "silu":
                saved.preactivations.append(x)
            x = _activate(x, activation)
    return x, saved


def mlp_backward(
    grad: Tensor,
    saved: Saved,
    weights: Sequence[Tensor],
    activation: str,
    weight_grads: Sequence[Tensor] | None,
    bias_grads: Sequence[Tensor] | None,
    norms: Sequence[Tensor] = (),
    norm_grads: Sequence[Tensor] | None = None,
    *,
    input_columns: slice | None = None,
) -> Tensor | None:
    """Writes (does not add) the gradients of the parameters.

    Args:
        grad: Of the loss by the outputs, ``(K, B, out)``.
        saved: From :func:`mlp_forward`.
        weights: As given there.
        activation: As given there.
        weight_grads: Where to write, ``(K, in, out)`` each; None: they are not wanted.
        bias_grads: Where to write, ``(K, out)`` each; None likewise.
        norms: As given there.
        norm_grads: Where to write, ``(K, 2, out)`` each; None likewise.
        input_columns: The inputs by which the gradient is wanted.

    Returns:
        That gradient, ``(K, B, columns)``, or None.
    """
    for i in reversed(range(len(weights))):
        weight = weights[i]
        if grad.dtype != weight.dtype:
            grad = grad.to(weight.dtype)
        if weight_grads is not None and bias_grads is not None:
            x = saved.inputs[i]
            if x.shape[0] == 1:
                torch.mm(x[0].t(), grad[0], out=weight_grads[i][0])
            else:
                torch.bmm(x.transpose(1, 2), grad, out=weight_grads[i])
            torch.sum(grad, 1, out=bias_grads[i])
        if i > 0:
            grad = _matmul(grad, weight.transpose(1, 2))
            grad = _activation_backward(grad, activation, saved, i)
            if norms:
                norm_grad = None if norm_grads is None else norm_grads[i - 1]
                grad = _norm_backward(grad, saved, norms[i - 1], norm_grad, i - 1)
        elif input_columns is not None:
            return _matmul(grad, weight[:, input_columns].transpose(1, 2))
    return None


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
            preactivation = saved.preactivations[layer - 1]
            result = _silu_backward(grad.to(preactivation.dtype), preactivation)
    return result


def _norm_backward(
    grad: Tensor, saved: Saved, norm: Tensor, norm_grad: Tensor | None, layer: int
) -> Tensor:
    normal, scale = saved.normals[layer], norm[:, :1]
    grad = grad.to(norm.dtype)
    if norm_grad is not None:
        torch.sum(grad * normal, 1, out=norm_grad[:, 0])
        torch.sum(grad, 1, out=norm_grad[:, 1])
    inverse_std = saved.inverse_stds[layer]
    mean, one = torch.zeros_like(inverse_std), torch.ones_like(inverse_std)  # of what is normal
    by_normal: Tensor = _layer_norm_backward(
        grad * scale, normal, normal.shape[-1:], mean, one, None, None, [True, False, False]
    )[0]
    return by_normal.mul_(inverse_std)


class MLP(nn.Module):
    """K multi-layer perceptrons.

    Args:
        sizes: Input, hidden layers, output.
        activation: ``"tanh"``, ``"relu"``, ``"elu"``, ``"silu"`` or ``"identity"``.
        num_networks: K.
        layer_norm: Whether hidden layers are normalised before their activation.
        gain: Of the hidden layers' initial weights (orthogonal); None: PyTorch's default.
        last_gain: Of the last layer's.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: str = "tanh",
        num_networks: int = 1,
        layer_norm: bool = False,
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

        self.norms = nn.ParameterList(
            nn.Parameter(torch.tensor([1.0, 0.0])[:, None].repeat(num_networks, 1, b))
            for _, b in pairs[:-1]
            if layer_norm
        )

        # plain lists: a ParameterList looks every item up by name, which costs as much as a layer
        self.weight_list = list(self.weights)
        self.bias_list = list(self.biases)
        self.norm_list = list(self.norms)
        self._copies: list[_LayerCopy] = []
        self._stale = False
        self._layers: tuple[list[Tensor], list[Tensor]] = (self.weight_list, self.bias_list)

    @property
    def num_networks(self) -> int:
        """K."""
        return len(self.bias_list[0])

    def forward(self, x: Tensor) -> Tensor:
        """``(K, B, in)`` or ``(B, in)`` (the same for all) to ``(K, B, out)``."""
        if x.dim() == 2:
            x = x.expand(self.num_networks, *x.shape)
        weights, biases = list(self.weight_list), list(self.bias_list)
        for copy in self._copies:  # cast here, where autograd sees it
            weights[copy.layer] = weights[copy.layer].to(copy.weight.dtype)
            biases[copy.layer] = biases[copy.layer].to(copy.weight.dtype)
        return mlp_forward(x, weights, biases, self.activation, self.norm_list)[0]

    def evaluate(self, x: Tensor) -> tuple[Tensor, Saved]:
        """:func:`mlp_forward` with these networks: ``(K, B, in)`` to ``(K, B, out)``."""
        with span("forward"):
            return mlp_forward(x, *self.layers, self.activation, self.norm_list)

    def write_gradients(
        self, saved: Saved, grad: Tensor, *, input_columns: slice | None = None
    ) -> Tensor | None:
        """:func:`mlp_backward` into the parameters' ``grad``, which must be there.

        Args:
            saved: From :meth:`evaluate`.
            grad: Of the loss by the outputs, ``(K, B, out)``.
            input_columns: The inputs by which the gradient, ``(K, B, columns)``, is wanted.
        """
        weight_grads = [_grad(weight) for weight in self.weight_list]
        bias_grads = [_grad(bias) for bias in self.bias_list]
        for copy in self._copies:
            weight_grads[copy.layer], bias_grads[copy.layer] = copy.weight_grad, copy.bias_grad
        with span("backward"):
            by_inputs = mlp_backward(
                grad,
                saved,
                self._layers[0],
                self.activation,
                weight_grads,
                bias_grads,
                self.norm_list,
                [_grad(norm) for norm in self.norm_list],
                input_columns=input_columns,
            )
        for copy in self._copies:
            _grad(self.weight_list[copy.layer]).copy_(copy.weight_grad)
            _grad(self.bias_list[copy.layer]).copy_(copy.bias_grad)
        return by_inputs

    def input_gradient(self, saved: Saved, grad: Tensor, columns: slice) -> Tensor:
        """The gradient by some of the inputs, ``(K, B, columns)``; those of parameters stay.

        Args:
            saved: From :meth:`evaluate`.
            grad: Of the loss by the outputs, ``(K, B, out)``.
            columns: Which inputs.
        """
        with span("backward"):
            by_inputs = mlp_backward(
                grad,
                saved,
                self._layers[0],
                self.activation,
                None,
                None,
                self.norm_list,
                input_columns=columns,
            )
        assert by_inputs is not None
        return by_inputs

    @property
    def layers(self) -> tuple[list[Tensor], list[Tensor]]:
        """Weights and biases as :meth:`evaluate` uses them."""
        if self._stale:
            self.refresh()
        return self._layers

    def compute_in(self, dtype: torch.dtype) -> None:
        """Lets the layers between hidden layers compute in another dtype (bfloat16, say).

        Nearly all arithmetic of a large network is there. The first and the last layer, where
        rounding would show, stay as they are, and so do the parameters and gradients. To be called
        once the parameters are where they stay (:class:`FlatParameters`). :meth:`evaluate` and
        :meth:`write_gradients` use copies: call :meth:`refresh` whenever parameters have changed.
        """
        inner = range(1, len(self.weight_list) - 1)
        self._copies = [
            _LayerCopy.of(i, self.weight_list[i], self.bias_list[i], dtype) for i in inner
        ]
        weights: list[Tensor] = list(self.weight_list)
        biases: list[Tensor] = list(self.bias_list)
        for copy in self._copies:
            weights[copy.layer], biases[copy.layer] = copy.weight, copy.bias
        self._layers = (weights, biases)

    def refresh_later(self) -> None:
        """:meth:`refresh`, once somebody asks for what :meth:`compute_in` made."""
        self._stale = True

    @torch.no_grad()
    def refresh(self) -> None:
        """Brings what :meth:`compute_in` made up to date."""
        self._stale = False
        for copy in self._copies:
            copy.weight.copy_(self.weight_list[copy.layer])
            copy.bias.copy_(self.bias_list[copy.layer])

    def spec(self, **fields: Any) -> PolicySpec:
        """These networks as a policy; ``fields`` as for :class:`PolicySpec`."""
        return PolicySpec(
            weights=[_numpy(weight) for weight in self.weight_list],
            biases=[_numpy(bias) for bias in self.bias_list],
            layer_norms=[_numpy(norm) for norm in self.norm_list],
            activation=self.activation,
            **fields,
        )


class NetworkStack(nn.Module):
    """Networks of anybody's making side by side, as :class:`MLP` is K of its own.

    They act and are evaluated in evaluation mode (dropout, batch normalisation); :func:`learning`
    is for gradient steps.

    Args:
        networks: Each maps ``(B, in)`` to ``(B, out)``.
    """

    def __init__(self, networks: Iterable[nn.Module]):
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """``(K, B, in)`` to ``(K, B, out)``, one after another."""
        return torch.stack([network(mine) for network, mine in zip(self.networks, x, strict=True)])


def checked_network(
    what: str, factory: Callable[[int, int], nn.Module], num_inputs: int, num_outputs: int
) -> nn.Module:
    """A user's network, tried on a batch of two before it is trusted.

    Args:
        what: The factory's name, for messages.
        factory: Makes a network of its numbers of inputs and outputs.
        num_inputs: Of an observation, or of one with an action.
        num_outputs: That are expected.

    Raises:
        ValueError: It cannot be made, is no module, fails, has other outputs or ones that are not
            finite, or has no parameters to learn of PyTorch's default dtype.
    """
    try:
        network = factory(num_inputs, num_outputs)
    except Exception as error:  # whatever it raises
        raise ValueError(f"{what}({num_inputs}, {num_outputs}) failed: {error}") from error
    if not isinstance(network, nn.Module):
        raise ValueError(f"{what}: expected it to make a torch module, got {network!r}")
    was_training = network.training
    # what a lazy module draws when it first sees inputs is a part of its making
    lazy = any(map(nn.parameter.is_lazy, network.parameters()))
    with torch.no_grad(), nullcontext() if lazy else torch.random.fork_rng(devices=[]):
        device = next(network.parameters(), torch.empty(0)).device
        try:
            outputs = network.eval()(torch.zeros(2, num_inputs, device=device))
        except Exception as error:  # whatever its forward() raises
            raise ValueError(
                f"{what}: its network fails on two observations ({num_inputs} numbers each): "
                f"{error}"
            ) from error
    given = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if given != (2, num_outputs):
        raise ValueError(
            f"{what}: for {num_inputs} inputs its network is to have {num_outputs} outputs: of a "
            f"batch of 2 expected (2, {num_outputs}), got {given}"
        )
    assert isinstance(outputs, Tensor)
    if not outputs.isfinite().all():
        raise ValueError(f"{what}: of zeros its network makes {outputs[0].tolist()}")
    learned = [(name, part) for name, part in network.named_parameters() if part.requires_grad]
    if not learned:
        raise ValueError(f"{what}: its network has no parameters to learn")
    for name, part in learned:
        if part.dtype is not (expected := torch.get_default_dtype()):
            raise ValueError(f"{what}: expected {expected} parameters, got {part.dtype} ({name})")
    return network.train(was_training)


@contextmanager
def learning(*networks: nn.Module) -> Iterator[None]:
    """Inside, they are in training mode (batches are normalised by their own moments, which the
    running ones follow, and dropout drops); afterwards in evaluation mode."""
    for network in networks:
        network.train()
    try:
        yield
    finally:
        for network in networks:
            network.eval()


class _LayerCopy(NamedTuple):
    """A layer in another dtype, and where its gradients are written."""

    layer: int
    weight: Tensor
    bias: Tensor
    weight_grad: Tensor
    bias_grad: Tensor

    @classmethod
    def of(cls, layer: int, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> _LayerCopy:
        weight, bias = weight.detach().to(dtype), bias.detach().to(dtype)
        return cls(layer, weight, bias, torch.empty_like(weight), torch.empty_like(bias))


def seeded_mlp(
    sizes: Sequence[int],
    seeds: Sequence[int],
    per_seed: int = 1,
    *,
    initialise: Callable[[MLP], None] | None = None,
    **fields: Any,
) -> MLP:
    """Networks of several seeds side by side, each as it would be alone.

    Args:
        sizes: As for :class:`MLP`.
        seeds: Whose ``per_seed`` networks come one after another.
        per_seed: How many networks each seed has.
        initialise: Gives one seed's networks other initial parameters.
        **fields: As for :class:`MLP`.
    """

    def make(num_networks: int) -> MLP:
        network = MLP(sizes, num_networks=num_networks, **fields)
        if initialise is not None:
            initialise(network)
        return network

    return stack_seeds(lambda count: make(count * per_seed), seeds)


def stack_seeds(make: Callable[[int], M], seeds: Sequence[int]) -> M:
    """Modules of several seeds as one, each with the parameters that it would have alone.

    Args:
        make: Makes the module for so many seeds; the leading axis of each parameter is a multiple
            of it, seed by seed.
        seeds: Of torch's default generator, which is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        together = make(len(seeds))
        for i, seed in enumerate(seeds):
            torch.default_generator.manual_seed(seed)
            for target, source in zip(together.parameters(), make(1).parameters(), strict=True):
                target.data[i * len(source) : (i + 1) * len(source)] = source.data
    return together


@contextmanager
def initialised_by(seed: int) -> Iterator[None]:
    """Networks made inside have a seed's initial parameters; torch's default generator is left as
    it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def _numpy(tensor: Tensor) -> Any:
    # a copy: what trains on must not change the policy under our feet
    return tensor.detach().to("cpu", torch.float32, copy=True).numpy()


def _grad(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


class FlatParameters:
    """The parameters of some modules that learn as one vector, and their gradients as another.

    The modules' parameters become views of :attr:`parameter`, their ``grad`` views of its ``grad``:
    an optimiser, a norm or an all-reduce is one operation. Load state dicts as ever (they are
    copied in place); do not move the modules to another device afterwards.

    Attributes:
        parts: The modules' own parameters.
    """

    def __init__(self, modules: Iterable[nn.Module | nn.Parameter]):
        parameters = [
            parameter
            for module in modules
            for parameter in ([module] if isinstance(module, nn.Parameter) else module.parameters())
            if parameter.requires_grad
        ]
        self.parts = parameters
        flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.parameter = nn.Parameter(flat)
        self.parameter.grad = torch.zeros_like(flat)
        offset = 0
        for parameter in parameters:
            end = offset + parameter.numel()
            parameter.data = flat[offset:end].view_as(parameter)
            parameter.grad = self.parameter.grad[offset:end].view_as(parameter)
            offset = end

    def cut(self, vector: Tensor) -> list[Tensor]:
        """A vector like :attr:`parameter` as views, one of each of :attr:`parts`' shape."""
        sizes = [part.numel() for part in self.parts]
        pairs = zip(vector.split(sizes), self.parts, strict=True)
        return [piece.view_as(part) for piece, part in pairs]

    def require_gradients(self) -> None:
        """Raises what an optimiser that moves all of them cannot do.

        Raises:
            ValueError: A parameter has been frozen since.
        """
        if not all(part.requires_grad for part in self.parts):
            raise ValueError(
                "parameters: expected none frozen of those that learn as one vector; a network's "
                "factory (--policy-factory, --critic-factory) may freeze what it makes"
            )

    def backward(self, loss: Tensor) -> None:
        """Puts the gradients of a loss where :attr:`grad` has them; those of no other parameter."""
        self.require_gradients()
        self.grad.zero_()
        with span("backward"):
            loss.backward(inputs=self.parts)

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
