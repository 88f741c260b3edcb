"""The base of learners from replayed transitions: networks of K seeds, optimisers, who steps.

An algorithm's file says what is learned (:meth:`ActorCritic.update`); this makes the networks, lets
an accelerator take the steps where there is one, and saves. Knows rows of transitions and nothing
of where they come from. Actions are in [-1, 1].
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import gymnasium
import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.nn.networks import MLP, FlatParameters, NetworkStack, learning, stack_seeds
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy, policies_of
from pyfastenv.sampling.buffers import RowLayout
from pyfastenv.training.accelerators import (
    Choice,
    Chooser,
    autocast,
    changed_functions,
    in_bfloat16,
)

NetworkFactory = Callable[[int, int], nn.Module]


@dataclass(frozen=True, kw_only=True)
class ActorCriticOptions:
    """Settings of a learner."""

    hidden_sizes: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    layer_norm: bool = False
    policy_learning_rate: float = 3e-4
    critic_learning_rate: float = 3e-4
    gamma: float = 0.99
    tau: float = 0.005
    bfloat16: bool = False  # mixed precision: MLP.compute_in, or autocast for own networks
    accelerate: str = "auto"
    num_threads: int = 1  # of compiled steps; in bfloat16 at most one for each seed
    policy_factory: NetworkFactory | None = None
    critic_factory: NetworkFactory | None = None


class Batch(NamedTuple):
    """A minibatch of K seeds; views of its rows.

    Critics see what the policy sees but where the environment says otherwise
    (:mod:`pyfastenv.sampling.obs_groups`).
    """

    obs: Tensor  # (K, B, policy_size) what the policy sees
    actions: Tensor  # (K, B, action_size) in [-1, 1]
    rewards: Tensor  # (K, B)
    next_obs: Tensor  # (K, B, policy_size)
    # (K, B): 0 where the episode was terminated, 1 elsewhere, at time limits too; with n-step
    # returns 1 becomes gamma ** (m - 1) after m steps
    continues: Tensor
    critic_obs: Tensor  # (K, B, critic_size) what critics see
    next_critic_obs: Tensor  # (K, B, critic_size)

    @classmethod
    def of(cls, rows: Tensor, layout: RowLayout) -> Batch:
        """Splits rows ``(K, B, width)`` into the parts of a batch."""
        obs, next_obs = layout.obs(rows), layout.next_obs(rows)
        return cls(
            obs[..., layout.policy],
            layout.actions(rows),
            layout.rewards(rows),
            next_obs[..., layout.policy],
            layout.continues(rows),
            obs[..., layout.critic],
            next_obs[..., layout.critic],
        )


class Recipe(NamedTuple):
    """For networks of a learner."""

    factory: NetworkFactory | None  # None: an MLP
    num_inputs: int
    num_outputs: int
    per_seed: int = 1


def _stack(recipe: Recipe, seeds: Sequence[int]) -> NetworkStack:
    """A user's networks, seed by seed.

    Raises:
        ValueError: Two of them are the same one.
    """
    assert recipe.factory is not None
    networks: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        for seed in seeds:
            torch.default_generator.manual_seed(seed)
            for _ in range(recipe.per_seed):
                networks.append(recipe.factory(recipe.num_inputs, recipe.num_outputs))
    if len(set(networks)) < len(networks):
        raise ValueError(
            f"a network's factory made the same module twice where {len(networks)} are needed "
            "(each of two critics, each seed has its own): make a new one at each call"
        )
    return NetworkStack(networks)


class ActorCritic(ABC):
    """Policies and critics of K seeds, and how they step.

    Args:
        layout: Of the rows.
        seeds: K seeds of the initial networks.
        options: The settings.
        device: Where everything is.
        functions: What is learned: a NamedTuple of the algorithm's functions, whose defaults
            accelerators know.

    Attributes:
        actor: K policy networks.
        critic: Critics, seed by seed.
        networks: By name, what :meth:`state_dict` has.
        discount: Of the steps to come, a number where the networks are.
    """

    metrics: ClassVar[tuple[str, ...]]
    accelerators: ClassVar[tuple[type[Any], ...]] = ()
    _settled: Choice | None = None

    def __init__(
        self,
        layout: RowLayout,
        seeds: Sequence[int],
        options: Any,
        device: torch.device | str,
        functions: Any,
    ):
        self.layout = layout
        self.options = options
        changed_functions(functions)  # raises what is none
        self.functions = functions
        self.num_seeds = len(seeds)
        self.device = torch.device(device)
        self.discount = torch.full((), options.gamma, dtype=torch.float32, device=self.device)
        self.own_networks = not (options.policy_factory is options.critic_factory is None)
        self.networks: dict[str, nn.Module] = {}
        self.actor: Any
        self.critic: Any

    def _choose(self) -> None:
        """To be called once networks and optimisers stand."""
        if in_bfloat16(self.options.bfloat16, self.device):
            for module in self.networks.values():
                if isinstance(module, MLP):
                    module.compute_in(torch.bfloat16)
        self._chooser: Chooser[Any] = Chooser(
            self, self.accelerators, self.options.accelerate, own_networks=self.own_networks
        )

    @property
    def choice(self) -> Choice:
        """Which accelerator steps, or why none: what has been changed since is looked at again."""
        return self._chooser.choice

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Inside, :meth:`run` does not look for changes, which takes 40 µs or more each time."""
        self._settled = self.choice
        try:
            yield
        finally:
            self._settled = None

    def make_networks(self, seeds: Sequence[int], *recipes: Recipe) -> list[nn.Module]:
        """Networks of K seeds, each as it would be alone; what is not the user's is an MLP."""
        ours = [recipe for recipe in recipes if recipe.factory is None]

        def mlp(recipe: Recipe, count: int) -> MLP:
            sizes = (recipe.num_inputs, *self.options.hidden_sizes, recipe.num_outputs)
            options, number = self.options, count * recipe.per_seed
            how = {"activation": options.activation, "layer_norm": options.layer_norm}
            return MLP(sizes, num_networks=number, gain=None, **how)

        mlps = stack_seeds(lambda count: nn.ModuleList(mlp(each, count) for each in ours), seeds)
        left = iter(mlps)
        return [
            (next(left) if recipe.factory is None else _stack(recipe, seeds)).to(self.device)
            for recipe in recipes
        ]

    def add_target(self, network: nn.Module) -> tuple[nn.Module, FlatParameters]:
        """A copy that follows, and its parameters."""
        target = copy.deepcopy(network)
        flat = FlatParameters([target])
        return target.requires_grad_(False), flat

    def add_optimizers(self, policy: Sequence[Any], critic: Sequence[Any], **options: Any) -> None:
        """Makes Adam for the policy's modules and parameters, and for the critics'.

        Args:
            policy, critic: As of :class:`FlatParameters`.
            **options: As of :class:`FlatAdam`.
        """
        self.flat_policy, self.flat_critic = FlatParameters(policy), FlatParameters(critic)
        policy_lr, critic_lr = self.options.policy_learning_rate, self.options.critic_learning_rate
        self.policy_optimizer = FlatAdam(self.flat_policy, lr=policy_lr, **options)
        self.critic_optimizer = FlatAdam(self.flat_critic, lr=critic_lr, **options)

    # ---- stepping ----------------------------------------------------------------------------

    def run(self, rows: Tensor, noise: Tensor, metrics: Tensor) -> None:
        """Gradient steps one after another, by whatever was chosen.

        Args:
            rows: ``(U, K, B, width)`` transitions.
            noise: ``(U, K, *noise_shape(B))`` standard normal.
            metrics: ``(len(self.metrics), K)``: where the last step's are written.
        """
        # moments of weights whose gradients have ended fade into numbers that slow the arithmetic
        with _core.FlushDenormals():
            accelerator = (self._settled or self.choice).accelerator
            if accelerator is not None:
                accelerator.run(rows, noise, metrics)
                return
            last = len(rows) - 1
            with self.learning():
                for i in range(len(rows)):
                    self.update(rows[i], noise[i], metrics if i == last else None)

    def learning(self) -> AbstractContextManager[None]:
        """A context in which networks that are not ours are in training mode."""
        return learning(self.actor, self.critic)

    @abstractmethod
    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """One gradient step in plain PyTorch.

        Args:
            rows: ``(K, B, width)`` transitions.
            noise: ``(K, *noise_shape(B))`` standard normal.
            metrics: ``(len(self.metrics), K)``: where to write them; None: not wanted.
        """

    @abstractmethod
    def noise_shape(self, batch_size: int) -> tuple[int, ...]:
        """The shape of the standard normal numbers that :meth:`update` needs for each seed."""

    def mixed_precision(self) -> torch.autocast:
        """The context that :attr:`options` ``.bfloat16`` means for networks that are not ours."""
        return autocast(self.options.bfloat16 and self.own_networks, self.device)

    def is_finite(self) -> bool:
        """Whether all policies are. Synchronises with the device."""
        # after every step: a sum is one pass, and finite numbers of any use do not overflow it
        return bool(self.flat_policy.parameter.detach().sum().isfinite())

    flat_policy: FlatParameters
    flat_critic: FlatParameters
    policy_optimizer: FlatAdam
    critic_optimizer: FlatAdam

    @property
    def optimizers(self) -> dict[str, FlatAdam]:
        """The optimisers by name, as :meth:`state_dict` has them."""
        return {
            "policy_optimizer": self.policy_optimizer,
            "critic_optimizer": self.critic_optimizer,
        }

    # ---- acting ------------------------------------------------------------------------------

    def policies(
        self, action_space: gymnasium.Space[Any], **fields: Any
    ) -> PolicySpec | list[TorchPolicy]:
        """The K policies: for the pool's workers, or own networks for torch.

        Args:
            action_space: Of one environment.
            **fields: As of :class:`PolicySpec`.
        """
        layout = self.layout
        fields |= {"row_begin": layout.policy.start or 0, "row_size": layout.obs_size}
        return policies_of(self.actor, layout.policy_size, action_space, self.device, **fields)

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Networks and optimisers."""
        return {name: part.state_dict() for name, part in self._parts().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.refresh()

    def _parts(self) -> dict[str, Any]:
        return {**self.networks, **self.optimizers}

    def refresh(self) -> None:
        """To be called when parameters have been changed where PyTorch does not see it."""
        for module in self.networks.values():
            if isinstance(module, MLP):
                module.refresh()
