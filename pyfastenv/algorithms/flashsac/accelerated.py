"""FlashSAC's gradient steps (``spec``) on processors that multiply bfloat16 numbers.

Compiled are each pass of a network through a batch, forward and backward (csrc/learn/
unit_networks.h), and what is made of the critics' distributions (csrc/learn/bin_kernels.h); the
gradients between them are written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.algorithms.sac.accelerated import for_twins
from pyfastenv.nn.functional import squashed_gaussian, squashed_gaussian_gradient
from pyfastenv.nn.networks import FlatParameters, NetworkStack
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.unit_networks import BoundedLogStd, UnitNetwork
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import IN_BFLOAT16, Accelerator, why_not_bfloat16
from pyfastenv.training.actor_critic import Batch


class Learner(Protocol):
    """The parts of :class:`pyfastenv.algorithms.flashsac.spec.FlashSACLearner` that it uses."""

    layout: RowLayout
    options: Any
    device: torch.device
    actor: NetworkStack
    critic: NetworkStack
    target: NetworkStack
    log_temperature: Tensor
    log_std_range: tuple[float, float]
    target_entropy: float
    bins: Tensor
    discount: Tensor
    num_updates: int
    latest: Tensor
    flat_policy: FlatParameters
    flat_critic: FlatParameters
    flat_target: FlatParameters
    policy_optimizer: FlatAdam
    critic_optimizer: FlatAdam


class CompiledNetworks(Accelerator):
    """Passes on AMX or AVX512-BF16: products of bfloat16 numbers, sums in float32."""

    name: ClassVar[str] = f"compiled networks {IN_BFLOAT16}"
    functions: ClassVar[tuple[str, ...]] = (
        "policy_loss",
        "critic_loss",
        "temperature_loss",
        "target_update",
    )
    methods: ClassVar[tuple[str, ...]] = (
        "update",
        "_improve_policy",
        "learning",
        "mixed_precision",
    )
    reads: ClassVar[type] = Learner
    _learner: Learner
    targets: ClassVar[Mapping[str, tuple[str, ...]]] = {"flat_target": ("target",)}

    @classmethod
    def why_not(cls, learner: Learner) -> str | None:
        """It needs amp and a CPU with AMX or AVX512-BF16."""
        if reason := why_not_bfloat16(learner.options.bfloat16, learner.device):
            return reason
        stacks = (learner.actor, learner.critic, learner.target)
        if not all(_is_known(network) for stack in stacks for network in stack.networks):
            return "only for networks as flashsac.py makes them"
        return None

    @classmethod
    def vectors(cls, learner: Learner) -> Mapping[str, tuple[str, ...]]:
        """The policy's with the temperature, and the critics'."""
        return {"flat_policy": ("actor", "log_temperature"), "flat_critic": ("critic",)}

    def __init__(self, learner: Learner):
        self._learner = learner
        self._stacks: tuple[CompiledStack, ...] = ()
        self._batch_size = 0

    @torch.no_grad()
    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another."""
        learner = self._learner
        if rows.shape[2] != self._batch_size:
            self._batch_size = rows.shape[2]
            flats = (learner.flat_policy, learner.flat_critic, learner.flat_target)
            self._stacks = tuple(
                CompiledStack(network, flat, 2 * self._batch_size, learner.options.num_threads)
                for network, flat in zip(
                    (learner.actor, learner.critic, learner.target), flats, strict=True
                )
            )
        for mine, drawn in zip(rows, noise, strict=True):
            batch = Batch.of(mine, learner.layout)
            now, later = drawn.chunk(2, 1)
            if learner.num_updates % learner.options.policy_every == 0:
                self._improve_policy(batch, now)
            learner.num_updates += 1
            losses = self._improve_critics(batch, later)
        metrics.copy_(torch.cat((losses[None], learner.latest)))

    def _improve_policy(self, batch: Batch, noise: Tensor) -> None:
        """Down the slopes of policy_loss and temperature_loss."""
        learner = self._learner
        actor, critic, _ = self._stacks
        num_seeds, size, seen = batch.critic_obs.shape
        temperature = learner.log_temperature.exp()  # (K,)
        outputs = actor.forward(torch.cat((batch.obs, batch.next_obs), 1), by_batch=True)
        sample = squashed_gaussian(outputs[:, :size], noise, learner.log_std_range)
        logits = critic.forward(for_twins(torch.cat((batch.critic_obs, sample.actions), -1)))
        least, by_logits = _core.least_of_bins(
            logits.unflatten(0, (num_seeds, 2)).numpy(), learner.bins.numpy(), -1.0 / size
        )
        value = torch.from_numpy(least).mean(1)
        by_pairs = critic.input_gradient(torch.from_numpy(by_logits).flatten(0, 1))
        by_actions = by_pairs[..., seen:].unflatten(0, (num_seeds, 2)).sum(1)
        weight = (temperature * (1.0 / size))[:, None].expand(-1, size)
        by_outputs = torch.zeros_like(outputs)
        by_outputs[:, :size] = squashed_gaussian_gradient(sample, by_actions, weight)
        actor.write_gradients(by_outputs)
        entropy = -sample.log_probs.mean(1)  # (K,)
        assert learner.log_temperature.grad is not None
        learner.log_temperature.grad.copy_(entropy - learner.target_entropy)
        learner.policy_optimizer.step()
        actor.project()
        loss = -temperature * entropy - value
        learner.latest.copy_(torch.stack((loss, entropy, temperature, value)))

    def _improve_critics(self, batch: Batch, noise: Tensor) -> Tensor:
        """Down the slope of critic_loss, whose values ``(K,)`` it returns; the targets follow."""
        learner = self._learner
        actor, critic, target = self._stacks
        outputs = actor.forward(batch.next_obs)
        following = squashed_gaussian(outputs, noise, learner.log_std_range)
        begin = torch.cat((batch.critic_obs, batch.actions), -1)
        end = torch.cat((batch.next_critic_obs, following.actions), -1)
        pairs = for_twins(torch.cat((begin, end), 1))
        found, wanted = (
            stack.forward(pairs, by_batch=True).unflatten(0, (-1, 2)) for stack in (critic, target)
        )
        bonus = learner.log_temperature.exp()[:, None] * following.log_probs
        losses, by_found = _core.bin_cross_entropy(
            found=found.numpy(),
            target=wanted.numpy(),
            rewards=batch.rewards.contiguous().numpy(),
            discounts=(learner.discount * batch.continues).numpy(),
            bonus=bonus.numpy(),
            bins=learner.bins.numpy(),
        )
        critic.write_gradients(torch.from_numpy(by_found).flatten(0, 1))
        learner.critic_optimizer.step()
        critic.project()
        learner.flat_target.parameter.lerp_(learner.flat_critic.parameter, learner.options.tau)
        return torch.from_numpy(losses)


class CompiledStack:
    """The networks of a :class:`~pyfastenv.nn.networks.NetworkStack`, forward and backward.

    Args:
        stack: Each a :class:`UnitNetwork`, or one and a :class:`BoundedLogStd` after it. Their
            running moments become views of one vector.
        flat: Parameters, which begin with all of theirs, and gradients.
        max_rows: The largest batch.
        num_threads: At most as many as there are networks are used.
    """

    def __init__(self, stack: NetworkStack, flat: FlatParameters, max_rows: int, num_threads: int):
        pairs = [_network_and_head(network) for network in stack.networks]
        networks = [network for network, _ in pairs]
        sizes = networks[0].sizes
        self.core = _core.UnitNetworks(
            **sizes, num_networks=len(networks), max_rows=max_rows, num_threads=num_threads
        )
        size = len(networks) * self.core.num_parameters
        assert size == sum(part.numel() for part in stack.parameters())
        self.parameters = flat.parameter.detach()[:size]
        self.gradients = flat.grad[:size]
        self.moments = _flat_moments(networks)
        self._num_inputs, self._num_outputs = sizes["num_inputs"], sizes["num_outputs"]
        self._head = pairs[0][1]
        self._pass = 0
        self._outputs = torch.empty(0)

    def forward(self, x: Tensor, *, by_batch: bool = False) -> Tensor:
        """``(N, B, in)`` to ``(N, B, out)`` float32.

        Args:
            x: Inputs.
            by_batch: Normalise by the batch's own moments, which the running ones follow.
        """
        outputs = torch.empty(*x.shape[:2], self._num_outputs)
        self._pass = self.core.forward(
            x.contiguous().numpy(),
            self.parameters.numpy(),
            self.moments.numpy(),
            by_batch,
            outputs.numpy(),
        )
        self._outputs = outputs
        return outputs if self._head is None else self._head(outputs)

    def write_gradients(self, by_outputs: Tensor) -> None:
        """Writes the latest pass's gradients by the parameters, with its batch's moments, where the
        flat vector has them."""
        self._backward(by_outputs, self.gradients, None)

    def input_gradient(self, by_outputs: Tensor) -> Tensor:
        """The gradient by the latest pass's inputs, ``(N, B, in)``."""
        by_inputs = torch.empty(*by_outputs.shape[:2], self._num_inputs)
        self._backward(by_outputs, None, by_inputs)
        return by_inputs

    def _backward(
        self, by_outputs: Tensor, gradients: Tensor | None, by_inputs: Tensor | None
    ) -> None:
        if self._head is not None:
            by_outputs = self._head.gradient(self._outputs, by_outputs)
        self.core.backward(
            self._pass,
            by_outputs.contiguous().numpy(),
            self.parameters.numpy(),
            None if gradients is None else gradients.numpy(),
            None if by_inputs is None else by_inputs.numpy(),
        )

    def project(self) -> None:
        """Brings all norms back to what they are to be."""
        self.core.project(self.parameters.numpy())


def _is_known(module: nn.Module) -> bool:
    """Whether it is a :class:`UnitNetwork` down to its parts' numbers, a head behind it or not."""
    parts = tuple(_parts(module))
    network = next((part for part in module.modules() if type(part) is UnitNetwork), None)
    if network is None:
        return False
    plain = _parts_of(**network.sizes)
    kinds = [kind for kind, *_ in parts]
    return parts == plain or (
        kinds[0] is nn.Sequential and kinds[-1] is BoundedLogStd and parts[1:-1] == plain
    )


@cache
def _parts_of(**sizes: int) -> tuple[tuple[Any, ...], ...]:
    with torch.random.fork_rng(devices=[]):
        return tuple(_parts(UnitNetwork(**sizes)))


def _parts(module: nn.Module) -> Iterator[tuple[Any, ...]]:
    names = ("momentum", "eps", "in_features", "out_features", "num_features", "normalized_shape")
    for part in module.modules():
        numbers = vars(part)
        yield (type(part), *(numbers.get(name) for name in names))


def _network_and_head(module: Any) -> tuple[UnitNetwork, BoundedLogStd | None]:
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
