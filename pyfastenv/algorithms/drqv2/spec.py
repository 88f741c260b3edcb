"""DrQ-v2 (Yarats et al. 2021, arXiv:2107.09645): deterministic policies from pixels, by pictures
that are shifted at random.

The specification, in plain PyTorch. Read it top to bottom: options, networks, what is learned, the
learner, the training. The critics' loss is TD3's (:mod:`pyfastenv.algorithms.td3.spec`) of what the
encoder makes of pictures. Unlike the authors' program, each critic has a trunk of its own.

Shapes: K seeds side by side, B transitions of a minibatch, A action components, F features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import gymnasium
import torch
from torch import Tensor, nn

from pyfastenv.algorithms.sac.spec import target_update
from pyfastenv.algorithms.td3.spec import Networks, TD3Options, critic_loss, critic_values
from pyfastenv.nn.functional import random_shift
from pyfastenv.nn.networks import NetworkStack
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy, policies_of
from pyfastenv.runs.options import FINITE_AT_LEAST_0, POSITIVE, WIDTHS, at_least
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.frames import FramePool
from pyfastenv.training.actor_critic import ActorCritic, Batch, Recipe
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.off_policy import OffPolicy
from pyfastenv.training.off_policy_config import OffPolicyConfig
from pyfastenv.training.pixel_collecting import PixelCollector
from pyfastenv.training.presets import presets_of

# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DrQv2Options(TD3Options):
    """Settings of a learner; ``target_noise`` is of the steps to come."""

    target_noise: float = 1.0
    target_noise_clip: float = 0.3
    shift: int = 4
    channels: int = 32
    strides: tuple[int, ...] = (2, 1, 1, 1)
    feature_size: int = 50


@dataclass(kw_only=True)
class Config(OffPolicyConfig):
    """DrQ-v2, which learns from pixels."""

    algorithm: ClassVar[str] = "drqv2"
    presets = presets_of("drqv2")
    learns_from_pixels = True
    options_type = DrQv2Options

    env_id: str = "CartpoleBalance-v1"
    """The environment; `pyfastenv envs` lists them. Of what it shows, --env.pixels says more."""
    learning_starts: int = 2_000
    """Environment steps with uniformly random actions before learning begins, all at once."""
    updates_per_step: float = field(default=0.5, metadata=POSITIVE)
    """Gradient steps per environment step."""
    buffer_size: int = field(default=100_000, metadata=at_least(1))
    """Pictures that each seed remembers, each once: a transition takes one, an episode one more."""
    n_step: int = field(default=3, metadata=at_least(1))
    """Steps whose rewards a target sums up before the critics' value of what follows; fewer where
    the episode ends."""
    tau: float = 0.01
    """How far the target critics follow with each gradient step."""
    learning_rate: float = field(default=1e-4, metadata=POSITIVE)
    """Adam's, for all networks."""
    noise: float = field(default=1.0, metadata=FINITE_AT_LEAST_0)
    """Standard deviation of the exploration, in halves of the action space's width, at first …"""
    final_noise: float = field(default=0.1, metadata=FINITE_AT_LEAST_0)
    """… and after noise_steps."""
    noise_steps: int = field(default=250_000, metadata=at_least(1))
    """Environment steps in which it falls, along a line."""
    target_noise_clip: float = field(default=0.3, metadata=at_least(0))
    """Bound of the same noise on actions that are learned from."""
    shift: int = field(default=4, metadata=at_least(0))
    """Pixels that pictures are shifted by at most, in each direction."""
    channels: int = field(default=32, metadata=at_least(1))
    """Channels of each layer of the encoder."""
    strides: tuple[int, ...] = field(default=(2, 1, 1, 1), metadata=WIDTHS)
    """Strides of the encoder's layers, which are convolutions by 3 × 3."""
    feature_size: int = field(default=50, metadata=at_least(1))
    """Features that policy and critics each compute from the encoder's outputs first."""
    hidden_sizes: tuple[int, ...] = field(default=(1024, 1024), metadata=WIDTHS)
    """Hidden layers behind that, of policy and critics each."""

    def noise_at(self, step: int) -> float:
        """The exploration's standard deviation at an environment step."""
        done = min(step / self.noise_steps, 1.0)
        return self.noise + done * (self.final_noise - self.noise)


# ---- networks ------------------------------------------------------------------------------------


def encoded_size(shape: tuple[int, int, int], channels: int, strides: Sequence[int]) -> int:
    """Outputs of an :class:`Encoder`.

    Raises:
        ValueError: The pictures are too small.
    """
    sides = list(shape[1:])
    for stride in strides:
        sides = [(side - 3) // stride + 1 for side in sides]
    if min(sides) < 1:
        raise ValueError(
            f"pixels: expected pictures of which convolutions by 3 × 3 with strides {strides} "
            f"leave something, got height {shape[1]} and width {shape[2]}"
        )
    return channels * sides[0] * sides[1]


class Encoder(nn.Module):
    """Convolutions by 3 × 3, each with a ReLU: pictures to numbers.

    Args:
        num_channels: Of the pictures, of a stack together.
        channels: Of each layer.
        strides: Of the layers.
    """

    def __init__(self, num_channels: int, channels: int, strides: Sequence[int]):
        super().__init__()
        pairs = pairwise((num_channels, *[channels] * len(strides)))
        layers = [
            part
            for pair, stride in zip(pairs, strides, strict=True)
            for part in (nn.Conv2d(*pair, 3, stride), nn.ReLU())
        ]
        self.layers = nn.Sequential(*layers).apply(initialise)

    def forward(self, pictures: Tensor) -> Tensor:
        """``(B, channels, height, width)`` from 0 to 255 to ``(B, F)``."""
        x = pictures.to(torch.float32, memory_format=torch.channels_last) / 255.0 - 0.5
        outputs: Tensor = self.layers(x).flatten(1)
        return outputs


class Head(nn.Module):
    """A policy or a critic behind the encoder: a trunk to few features, and a network of these.

    Args:
        num_encoded: The encoder's outputs.
        feature_size: The trunk's.
        network: Of the features and whatever inputs are behind the encoder's outputs.
    """

    def __init__(self, num_encoded: int, feature_size: int, network: nn.Module):
        super().__init__()
        linear = nn.Linear(num_encoded, feature_size)
        self.trunk = nn.Sequential(linear, nn.LayerNorm(feature_size), nn.Tanh())
        self.network = network
        self.num_encoded = num_encoded
        initialise(linear)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, num_encoded + …)`` to ``(B, outputs)``."""
        features = self.trunk(x[..., : self.num_encoded])
        outputs: Tensor = self.network(torch.cat((features, x[..., self.num_encoded :]), -1))
        return outputs


class PixelPolicy(nn.Module):
    """An encoder and a policy, of observations as environments show them."""

    def __init__(self, encoder: nn.Module, actor: nn.Module, shape: tuple[int, int, int]):
        super().__init__()
        self.encoder, self.actor, self.shape = encoder, actor, shape

    def forward(self, obs: Tensor) -> Tensor:
        """``(B, height * width * channels)`` to ``(B, A)``, actions before tanh."""
        pictures = obs.view(-1, *self.shape).movedim(-1, -3)
        actions: Tensor = self.actor(self.encoder(pictures))
        return actions


def initialise(module: nn.Module) -> None:
    """Draws a layer's initial weights: orthogonal, without biases."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        gain = nn.init.calculate_gain("relu") if isinstance(module, nn.Conv2d) else 1.0
        nn.init.orthogonal_(module.weight, gain)
        assert module.bias is not None
        nn.init.zeros_(module.bias)


def mlp(hidden_sizes: Sequence[int], num_inputs: int, num_outputs: int) -> nn.Module:
    """Hidden layers with ReLUs."""
    layers: list[nn.Module] = []
    for pair in pairwise((num_inputs, *hidden_sizes, num_outputs)):
        layers += [nn.Linear(*pair), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).apply(initialise)


# ---- what is learned -----------------------------------------------------------------------------


def policy_loss(networks: Networks, encoded: Tensor, noise: Tensor) -> Tensor:
    """Minus the critics' least value of actions with clipped noise (equation 3), ``(K,)``.

    Args:
        networks: Of the K seeds.
        encoded: ``(K, B, F)``, by which nothing is learned here.
        noise: ``(K, B, A)`` standard normal.
    """
    bound = networks.options.target_noise_clip
    spread = (networks.options.target_noise * noise).clamp(-bound, bound)
    actions = (networks.actor(encoded).tanh() + spread).clamp(-1.0, 1.0)
    return -critic_values(networks, networks.critic, encoded, actions).amin(1).mean(1)


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace: ``class Mine(DrQv2): functions = …``."""

    critic_loss: Callable[[Networks, Batch, Tensor, float | Tensor], Tensor] = critic_loss
    policy_loss: Callable[[Networks, Tensor, Tensor], Tensor] = policy_loss
    target_update: Callable[[Tensor, Tensor, float], None] = target_update
    augment: Callable[[Tensor, Tensor, int], Tensor] = random_shift


# ---- the learner ---------------------------------------------------------------------------------


class DrQv2Learner(ActorCritic):
    """An encoder, a policy and two critics for each of K seeds, and critics that follow.

    Args:
        collector: What has the pictures of the rows.
        seeds: K seeds of the initial networks.
        options: The settings.
        device: Where everything is.
        functions: What is learned.

    Raises:
        ValueError: The pictures are too small.
    """

    metrics = ("loss/critic", "loss/policy")

    def __init__(
        self,
        collector: PixelCollector,
        seeds: Sequence[int],
        options: DrQv2Options,
        device: torch.device | str = "cpu",
        functions: Functions = Functions(),  # noqa: B008
    ):
        super().__init__(collector.layout, seeds, options, device, functions)
        self.frames: FramePool = collector.frames
        self.pixels = collector.pixels
        height, width, channels = self.pixels.shape
        shape = (channels, height, width)
        num_encoded = encoded_size(shape, options.channels, options.strides)
        size, num_actions = options.feature_size, self.layout.action_size
        build = partial(mlp, options.hidden_sizes)

        def encoder(num_inputs: int, num_outputs: int) -> nn.Module:
            return Encoder(channels, options.channels, options.strides)

        def policy(num_inputs: int, num_outputs: int) -> nn.Module:
            network = (options.policy_factory or build)(size, num_outputs)
            return Head(num_encoded, size, network)

        def critic(num_inputs: int, num_outputs: int) -> nn.Module:
            network = (options.critic_factory or build)(size + num_actions, num_outputs)
            return Head(num_encoded, size, network)

        self.encoder: Any
        self.encoder, self.actor, self.critic = self.make_networks(
            seeds,
            Recipe(encoder, math.prod(shape), num_encoded),
            Recipe(policy, num_encoded, num_actions),
            Recipe(critic, num_encoded + num_actions, 1, per_seed=options.num_critics),
        )
        self.target_critic, self.flat_target_critic = self.add_target(self.critic)
        self.add_optimizers([self.actor], [self.encoder, self.critic])
        self.networks = {
            "encoder": self.encoder,
            "actor": self.actor,
            "critic": self.critic,
            "target_critic": self.target_critic,
        }
        self.center = torch.zeros(num_actions, device=self.device)  # actions are in [-1, 1]
        self.half = torch.ones_like(self.center)
        self._choose()
        self.own_networks = True  # in mixed precision by autocast

    def noise_shape(self, batch_size: int) -> tuple[int, ...]:
        """Noise of the next actions and of the policy's, and four numbers for the shifts."""
        return batch_size, 2 * self.layout.action_size + 4

    def encode(self, numbers: Tensor, noise: Tensor) -> Tensor:
        """Features ``(K, B, F)`` of pictures by their numbers ``(K, B, S)``, shifted at random.

        Args:
            numbers: Of :attr:`frames`.
            noise: ``(K, B, 2)`` standard normal.
        """
        pictures, shift = self.frames.take(numbers), self.options.shift
        offsets = (torch.special.ndtr(noise) * (2 * shift + 1)).long().clamp_(max=2 * shift)
        shifted = self.functions.augment(pictures.flatten(0, 1), offsets.flatten(0, 1), shift)
        encoded: Tensor = self.encoder(shifted.view_as(pictures))
        return encoded

    def update(self, rows: Tensor, noise: Tensor, metrics: Tensor | None = None) -> None:
        """A gradient step of encoder and critics, one of the policy, one of the targets (section
        3.1)."""
        f, size = self.functions, self.layout.action_size
        next_noise, noise, shifts, next_shifts = noise.split((size, size, 2, 2), -1)
        batch = Batch.of(rows, self.layout)
        networks = Networks(
            self.actor,
            self.critic,
            self.actor,
            self.target_critic,
            self.center,
            self.half,
            self.options,
        )
        with self.mixed_precision():
            encoded = self.encode(batch.obs, shifts)
            with torch.no_grad():
                next_encoded = self.encode(batch.next_obs, next_shifts)
            batch = batch._replace(
                obs=encoded,
                critic_obs=encoded,
                next_obs=next_encoded,
                next_critic_obs=next_encoded,
            )
            critic = f.critic_loss(networks, batch, next_noise, self.discount)
        self.flat_critic.backward(critic.sum())
        self.critic_optimizer.step()
        with self.mixed_precision():
            policy = f.policy_loss(networks, encoded.detach(), noise)
        self.flat_policy.backward(policy.sum())
        self.policy_optimizer.step()
        target = self.flat_target_critic.parameter.detach()
        critics = self.flat_critic.parameter.detach()[-len(target) :]  # behind the encoder
        f.target_update(target, critics, self.options.tau)
        if metrics is not None:
            metrics.copy_(torch.stack((critic, policy)).detach())

    def is_finite(self) -> bool:
        """Whether all policies and their encoders are."""
        return super().is_finite() and bool(self.flat_critic.parameter.detach().sum().isfinite())

    def policies(
        self, action_space: gymnasium.Space[Any], **fields: Any
    ) -> PolicySpec | list[TorchPolicy]:
        """The K policies, which act in torch."""
        shape = self.pixels.shape
        pairs = zip(self.encoder.networks, self.actor.networks, strict=True)
        stack = NetworkStack(PixelPolicy(*pair, shape) for pair in pairs)
        return policies_of(stack, math.prod(shape), action_space, self.device, **fields)


# ---- the training --------------------------------------------------------------------------------


class DrQv2(OffPolicy[Config]):
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not continuous, or it shows no pixels.
    """

    functions: ClassVar[Functions] = Functions()
    collector_type = PixelCollector
    collector: PixelCollector
    learner: DrQv2Learner

    def make_learner(self) -> DrQv2Learner:
        """Encoder, policy and critics."""
        config = self.config
        seeds, options = config.streams(Stream.POLICY), config.options()
        return DrQv2Learner(self.collector, seeds, options, self.device, self.functions)

    def policies(self) -> PolicySpec | list[TorchPolicy]:
        """The K policies, with the noise of this step."""
        return self.learner.policies(
            self.envs.single_action_space,
            distribution="deterministic",
            noise=self.config.noise_at(self.global_step),
            row_size=self.envs.obs_size,
        )

    def step(self, metrics: dict[str, float]) -> None:
        """A step of every environment, and the gradient steps that belong to it."""
        noise = self.config.noise_at(self.global_step)
        self.learner.options = replace(self.learner.options, target_noise=noise)
        self.advance(1)

    def newest(self) -> Tensor:
        """How many of the latest rows are replayed: those with all their pictures."""
        return self.collector.frames.intact


train, load_policy = entry_points(lambda: DrQv2)
