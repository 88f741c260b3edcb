"""Small networks that a task evaluates itself: a learned actuator, as ANYmal's.

    def setup(self):
        self.motor = load_mlp("actuator.npz", "softsign")  # beside the task's file: a full path

    def step(self, data, action):
        for _ in range(self.frame_skip):
            error = self.pose + self.action_scale * action - data.qpos[7:]
            enqueue(self.past, np.concatenate((error, data.qvel[6:])))  # 3 frames of 2 * 12
            seen = self.past.reshape((6, 12)).T  # a row per joint
            self.simulate(data, mlp(self.motor, np.ascontiguousarray(seen))[:, 0], 1)

The model's actuators are motors then. Controls that ``step`` makes itself leave physics to
``mj_step``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ACTIVATIONS = ("softsign", "tanh", "relu", "elu")


def load_mlp(source: Any, activation: str = "softsign") -> NDArray[np.float64]:
    """Reads the layers of a network, in ``setup``; the attribute is a parameter, as other arrays.

    Args:
        source: An ``.npz`` file, or one of torch (a state dict or TorchScript), or a dict of such
            arrays: in the order of the layers each one's weights ``(outputs, inputs)`` and then
            its bias ``(outputs,)``; other names and numbers are left out.
        activation: Of all layers but the last: ``"softsign"``, ``"tanh"``, ``"relu"`` or ``"elu"``.

    Returns:
        What :func:`mlp` takes.

    Raises:
        FileNotFoundError: No such file. ValueError: Another activation, or layers that do not fit.
    """
    if activation not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"load_mlp: activation: expected one of {known}, got {activation!r}")
    arrays = _arrays(source)
    weights = [(name, each) for name, each in arrays.items() if each.ndim == 2]
    biases = [each for each in arrays.values() if each.ndim == 1]
    shapes = ", ".join(f"{name} {each.shape}" for name, each in arrays.items()) or "nothing"
    fits = len(weights) == len(biases) > 0 and all(
        len(bias) == len(weight) for (_, weight), bias in zip(weights, biases, strict=True)
    )
    if not fits or any(len(one) != other.shape[1] for (_, one), (_, other) in pairwise(weights)):
        raise ValueError(
            f"load_mlp: expected weights (outputs, inputs) and bias (outputs,) of each layer, in "
            f"their order, got {shapes}"
        )
    sizes = [weights[0][1].shape[1], *(len(weight) for _, weight in weights)]
    head = [len(weights), ACTIVATIONS.index(activation), *sizes]
    layers = [
        part
        for (_, weight), bias in zip(weights, biases, strict=True)
        for part in (weight.T.ravel(), bias)
    ]
    return np.concatenate([head, *layers]).astype(np.float64)


def _arrays(source: Any) -> dict[str, NDArray[np.float64]]:
    """The arrays of one or two axes, by name."""
    if isinstance(source, Mapping):
        found: Mapping[str, Any] = source
    elif str(source).endswith(".npz"):
        found = np.load(source, allow_pickle=False)
    else:
        if not Path(source).is_file():
            raise FileNotFoundError(f"load_mlp: there is no file {source}")
        found = _of_torch(source)
    arrays = {
        name: np.asarray(each.detach().cpu() if hasattr(each, "detach") else each, np.float64)
        for name, each in found.items()
    }
    return {name: each for name, each in arrays.items() if each.ndim in (1, 2)}


def _of_torch(path: Any) -> Mapping[str, Any]:
    import torch

    try:
        found: Mapping[str, Any] = torch.jit.load(path, map_location="cpu").state_dict()
    except RuntimeError:  # no TorchScript
        found = torch.load(path, map_location="cpu", weights_only=True)
    return found


def mlp(network: Any, x: Any) -> Any:
    """Evaluates a network in ``step`` or ``control``.

    Args:
        network: Of :func:`load_mlp`.
        x: ``(rows, inputs)``, contiguous.

    Returns:
        ``(rows, outputs)``.
    """
    layers, activation = int(network[0]), int(network[1])
    at, y = 3 + layers, x.copy()
    for i in range(layers):
        inputs, outputs = int(network[2 + i]), int(network[3 + i])
        weights = network[at : at + inputs * outputs].reshape((inputs, outputs))
        at += inputs * outputs
        y = y @ weights + network[at : at + outputs]
        at += outputs
        if i < layers - 1:
            if activation == 0:
                y = y / (1.0 + np.abs(y))
            elif activation == 1:
                y = np.tanh(y)
            elif activation == 2:
                y = np.maximum(y, 0.0)
            else:
                y = np.where(y > 0.0, y, np.expm1(np.minimum(y, 0.0)))
    return y
