"""Trained policies as files, and the actions that they take.

bench/python/learn.py writes one per environment; benchmarks step through the states of trained
policies with them, which are not those of random actions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import peers
from numpy.typing import NDArray

import pyfastenv
from pyfastenv.nn.policy_spec import PolicySpec

FOLDER = Path(__file__).parents[2] / "docs/results/policies"


def save(policy: PolicySpec, env_id: str, folder: Path = FOLDER) -> None:
    """Writes a Gaussian policy whose standard deviations are its own, as PPO trains it."""
    if policy.distribution != "gaussian" or policy.log_std is None or policy.activation != "tanh":
        raise ValueError(f"policy of {env_id}: expected a Gaussian of tanh layers with log_std")
    arrays = {"log_std": policy.log_std}
    for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        arrays |= {f"weight_{i}": weight, f"bias_{i}": bias}
    for name in ("obs_mean", "obs_scale"):
        if (value := getattr(policy, name)) is not None:
            arrays[name] = value
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{env_id}.npz", obs_clip=policy.obs_clip, **arrays)


def load(env_id: str, folder: Path = FOLDER) -> PolicySpec:
    """What :func:`save` wrote.

    Raises:
        FileNotFoundError: Nobody trained one.
    """
    with np.load(folder / f"{env_id}.npz") as file:
        arrays = dict(file)
    num_layers = sum(name.startswith("weight_") for name in arrays)
    return PolicySpec(
        weights=[arrays[f"weight_{i}"] for i in range(num_layers)],
        biases=[arrays[f"bias_{i}"] for i in range(num_layers)],
        log_std=arrays["log_std"],
        obs_mean=arrays.get("obs_mean"),
        obs_scale=arrays.get("obs_scale"),
        obs_clip=float(arrays["obs_clip"]),
    )


def actions(env_id: str, num_steps: int, num_envs: int) -> peers.Actions:
    """What the trained policy does from a reset with the seed of the contestants.

    Drawn as in training, so the states are those that PPO sees at its end.

    Returns:
        ``(num_steps, num_envs, action_size)`` float32.
    """
    policy = load(env_id)
    rng = np.random.default_rng(peers.SEED)
    envs = pyfastenv.make_vec(env_id, num_envs, num_threads=1)
    space = envs.single_action_space
    tape = np.empty((num_steps, num_envs, *space.shape), np.float32)
    obs, _ = envs.reset(seed=peers.SEED)
    for action in tape:
        noise = rng.standard_normal(action.shape, dtype=np.float32)
        action[:] = np.clip(
            _mean(policy, obs) + np.exp(policy.log_std[0]) * noise, space.low, space.high
        )
        obs = envs.step(action)[0]
    envs.close()
    return tape


def _mean(policy: PolicySpec, obs: NDArray[np.float64]) -> NDArray[np.float32]:
    hidden = obs.astype(np.float32)
    if policy.obs_mean is not None and policy.obs_scale is not None:
        hidden = (hidden - policy.obs_mean[0]) * policy.obs_scale[0]
    if policy.obs_clip:
        hidden = np.clip(hidden, -policy.obs_clip, policy.obs_clip)
    *inner, last = zip(policy.weights, policy.biases, strict=True)
    for weight, bias in inner:
        hidden = np.tanh(hidden @ weight[0] + bias[0])
    weight, bias = last
    return hidden @ weight[0] + bias[0]
