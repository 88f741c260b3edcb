"""FlashSAC's networks compiled for a processor that multiplies bfloat16 numbers.

The losses stay those of :mod:`pyfastenv.algorithms.flashsac`; what is compiled is each pass of a
network through a batch, forward and backward (csrc/learn/unit_networks.h).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.learners.accelerators import Kind
from pyfastenv.nn.networks import FlatParameters, NetworkStack
from pyfastenv.nn.unit_networks import UnitNetwork


class CompiledNetworks:
    """Passes on AMX or AVX512-BF16: products of bfloat16 numbers, sums in float32."""

    name = f"compiled networks in bfloat16 ({_core.SacUpdate.unit() or 'not here'})"
    kind: ClassVar[Kind] = "native"
    functions = ("policy_loss", "critic_loss")  # it runs these, and knows what they want

    @classmethod
    def why_not(cls, learner: Any) -> str | None:
        """It needs amp and a CPU with AMX or AVX512-BF16."""
        if not learner.options.bfloat16:
            return "only with amp"
        if learner.device.type != "cpu" or not _core.UnitNetworks.available():
            return "neither AMX nor AVX512-BF16"
        return None

    def __init__(self, learner: Any):
        self._learner = learner
        self._stacks: tuple[CompiledStack, ...] = ()
        self._batch_size = 0

    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        learner = self._learner
        if rows.shape[2] != self._batch_size:
            self._batch_size = rows.shape[2]
            flats = (learner.flat_policy, learner.flat_critic, learner.flat_target)
            self._stacks = tuple(
                CompiledStack(network, flat, 2 * self._batch_size, learner.options.num_threads)
                for network, flat in zip(learner.networks.values(), flats, strict=True)
            )
        last = len(rows) - 1
        for i in range(len(rows)):
            learner.update(rows[i], noise[i], metrics if i == last else None, self._stacks)


class CompiledStack:
    """The networks of a :class:`~pyfastenv.nn.networks.NetworkStack`, to be called as they are.

    Args:
        stack: Each a :class:`UnitNetwork`, or one and a module without parameters after it. Their
            running moments become views of one vector.
        flat: Parameters, which begin with all of theirs, and gradients.
        max_rows: The largest batch.
        num_threads: At most as many as there are networks are used.

    Attributes:
        training: Whether batches are normalised by their own moments.
    """

    def __init__(self, stack: NetworkStack, flat: FlatParameters, max_rows: int, num_threads: int):
        pairs = [_network_and_head(network) for network in stack.networks]
        networks = [network for network, _ in pairs]
        self._sizes = networks[0].sizes
        self.core = _core.UnitNetworks(
            **self._sizes, num_networks=len(networks), max_rows=max_rows, num_threads=num_threads
        )
        self.training = False
        self._parts = list(stack.parameters())
        size = len(networks) * self.core.num_parameters
        assert size == sum(part.numel() for part in self._parts)
        self.parameters = flat.parameter.detach()[:size]
        self.gradients = flat.grad[:size]
        self.moments = _flat_moments(networks)
        self._head = pairs[0][1]

    @property
    def num_outputs(self) -> int:
        """Of a network."""
        return self._sizes["num_outputs"]

    def train(self) -> None:
        """Batches are normalised by their own moments, which the running ones follow."""
        self.training = True

    def eval(self) -> None:
        """They are normalised by the running moments."""
        self.training = False

    def project(self) -> None:
        """Brings all norms back to what they are to be."""
        self.core.project(self.parameters.numpy())

    def __call__(self, x: Tensor) -> Tensor:
        """``(N, B, in)`` to ``(N, B, out)`` float32; a pass goes back before the next one comes.

        By the running moments only the gradient by ``x`` is to be had: parameters are constants.
        Otherwise theirs are written where the flat vector has them.
        """
        parts = self._parts if self.training else ()
        outputs: Tensor = _Pass.apply(x, self, *parts)
        return outputs if self._head is None else self._head(outputs)


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, stack: CompiledStack, *_: Tensor) -> Tensor:
        outputs = torch.empty(*x.shape[:2], stack.num_outputs)
        ctx.stack, ctx.shape, ctx.of_parameters = stack, x.shape, stack.training
        ctx.number = stack.core.forward(
            x.detach().float().contiguous().numpy(),
            stack.parameters.numpy(),
            stack.moments.numpy(),
            stack.training,
            outputs.numpy(),
        )
        return outputs

    @staticmethod
    def backward(ctx: Any, by_outputs: Tensor) -> tuple[Tensor | None, ...]:
        stack = ctx.stack
        by_inputs = torch.empty(ctx.shape) if ctx.needs_input_grad[0] else None
        stack.core.backward(
            ctx.number,
            by_outputs.float().contiguous().numpy(),
            stack.parameters.numpy(),
            stack.gradients.numpy() if ctx.of_parameters else None,
            None if by_inputs is None else by_inputs.numpy(),
        )
        return (by_inputs, None, *(None for _ in ctx.needs_input_grad[2:]))


def _network_and_head(module: Any) -> tuple[UnitNetwork, nn.Module | None]:
    if isinstance(module, UnitNetwork):
        return module, None
    network, head = module
    return network, head


def _flat_moments(networks: list[UnitNetwork]) -> Tensor:
    """All running moments as one vector, of which the networks' become views."""
    norms = [
        module
        for network in networks
        for module in network.modules()
        if isinstance(module, nn.BatchNorm1d)
    ]
    names = ("running_mean", "running_var")
    flat = torch.cat([norm.get_buffer(name) for norm in norms for name in names])
    views = iter(flat.split([norm.num_features for norm in norms for _ in names]))
    for norm in norms:
        for name in names:
            setattr(norm, name, next(views))
    return flat
