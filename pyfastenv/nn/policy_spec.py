"""A policy in numbers, as the core's workers evaluate it: what networks are exported to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Protocol, Self, get_args, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv import _core

DISTRIBUTIONS = ("categorical", "gaussian", "tanh_gaussian", "deterministic")
Activation = Literal["tanh", "relu", "elu", "silu", "identity"]
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """Describes a policy as the core evaluates it: numbers only, K policies side by side.

    Args:
        weights: Of each layer, ``(K, in, out)`` float32.
        biases: Of each layer, ``(K, out)`` float32.
        activation: After every layer but the last: one of :data:`ACTIVATIONS`.
        layer_norms: Of each hidden layer, ``(K, 2, out)`` float32: scales and shifts of the layer
            normalisation before its activation; empty: none.
        distribution: ``"categorical"``: the outputs are logits. ``"gaussian"``: the outputs are the
            mean, and the log-std too where ``log_std`` is None. ``"tanh_gaussian"``: the same,
            squashed by tanh and scaled to the action space. ``"deterministic"``: tanh of the
            outputs, scaled to the action space, plus ``noise``.
        log_std: ``(K, action_size)`` float32, independent of the observation; or None.
        log_std_range: Where a network's log-std is clamped.
        noise: Standard deviation of a deterministic policy's exploration, in halves of the action
            space's width; the action is clipped to the space.
        epsilon: The probability of a uniformly random action of a categorical policy in place of
            the most likely one (epsilon-greedy; the outputs may then be values of actions); None:
            actions are drawn by their probabilities.
        obs_mean: ``(K, inputs)`` float32; the network sees ``(obs - obs_mean) * obs_scale``.
        obs_scale: ``(K, inputs)`` float32.
        obs_clip: … clipped to ± this; 0 for no clipping.
        row_begin: Where in an environment's flat observation the network's inputs begin.
        row_size: Of such an observation; None: the inputs are all of it.
        clip_actions: A Gaussian's actions are clipped to the action space for the environment (what
            is recorded is the action as drawn).
        greedy: The most likely action instead of a sample.
    """

    weights: Sequence[NDArray[np.float32]]
    biases: Sequence[NDArray[np.float32]]
    activation: str = "tanh"
    layer_norms: Sequence[NDArray[np.float32]] = ()
    distribution: str = "gaussian"
    log_std: NDArray[np.float32] | None = None
    log_std_range: tuple[float, float] = (-20.0, 2.0)
    noise: float = 0.0
    epsilon: float | None = None
    obs_mean: NDArray[np.float32] | None = None
    obs_scale: NDArray[np.float32] | None = None
    obs_clip: float = 0.0
    row_begin: int = 0
    row_size: int | None = None
    clip_actions: bool = True
    greedy: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("activation", self.activation, ACTIVATIONS),
            ("distribution", self.distribution, DISTRIBUTIONS),
        ):
            if value not in known:
                raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
        if self.epsilon is not None and not (
            self.distribution == "categorical" and 0.0 <= self.epsilon <= 1.0
        ):
            raise ValueError(
                "epsilon: expected None, or 0 to 1 of a categorical policy, got "
                f"{self.epsilon} of a {self.distribution} one"
            )

    @classmethod
    def of_vectors(cls, vectors: ArrayLike, sizes: Sequence[int], **fields: Any) -> Self:
        """Makes K networks of K flat vectors, as evolution strategies draw them.

        Args:
            vectors: ``(K, P)``, layer by layer the weights (in, out) row by row, then the biases.
            sizes: Of the observation, the hidden layers, the outputs.
            **fields: The other fields.

        Raises:
            ValueError: Another P than the sizes make.
        """
        given = np.asarray(vectors, np.float32)
        ends = np.cumsum([size for a, b in pairwise(sizes) for size in (a * b, b)])
        if given.ndim != 2 or given.shape[1] != ends[-1]:
            raise ValueError(f"vectors: expected (K, {ends[-1]}), got {given.shape}")
        parts = np.split(given, ends[:-1], axis=1)
        shapes = list(pairwise(sizes))
        weights = [w.reshape(-1, *shape) for w, shape in zip(parts[::2], shapes, strict=True)]
        return cls(weights=weights, biases=parts[1::2], **fields)

    @property
    def num_policies(self) -> int:
        """K."""
        return len(self.weights[0])

    def as_greedy(self) -> Self:
        """Returns the same policy without randomness, for evaluation."""
        return replace(self, greedy=True)

    def to_core(self, action_space: gymnasium.Space[Any]) -> _core.Policy:
        """Copies the policy into the core, for environments with this single action space."""
        box = isinstance(action_space, gymnasium.spaces.Box)
        if box == (self.distribution == "categorical"):
            raise ValueError(
                "policy: a categorical one does not fit continuous actions"
                if box
                else "policy: expected a categorical one for discrete actions"
            )
        low = action_space.low.ravel().tolist() if box else []  # type: ignore[attr-defined]
        high = action_space.high.ravel().tolist() if box else []  # type: ignore[attr-defined]
        return _core.Policy(
            weights=list(self.weights),
            biases=list(self.biases),
            layer_norms=list(self.layer_norms),
            activation=self.activation,
            distribution=self.distribution,
            greedy=self.greedy,
            action_low=[] if self.distribution == "categorical" else low,
            action_high=[] if self.distribution == "categorical" else high,
            clip_actions=self.clip_actions,
            log_std=self.log_std,
            log_std_min=self.log_std_range[0],
            log_std_max=self.log_std_range[1],
            noise=self.noise,
            epsilon=-1.0 if self.epsilon is None else self.epsilon,
            obs_mean=self.obs_mean,
            obs_scale=self.obs_scale,
            obs_clip=self.obs_clip,
            row_begin=self.row_begin,
            row_size=self.row_size or 0,  # all that the networks see
        )


@runtime_checkable
class Exportable(Protocol):
    """A module that knows how to become a :class:`PolicySpec`."""

    def spec(self) -> PolicySpec: ...
