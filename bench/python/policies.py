"""Trained policies as files, and the actions that they take.

bench/python/learn.py writes one per environment, of its first seed of PPO; benchmarks step through
the states of trained policies with them, which are not those of random actions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import peers
import torch

import pyfastenv
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy

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
    """Loads the policy that :func:`save` wrote.

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
    """The actions of the trained policy from a reset with the seed of the contestants.

    Drawn as in training, so the states are those that PPO sees at its end.

    Returns:
        ``(num_steps, num_envs, action_size)`` float32.
    """
    envs = pyfastenv.make_vec(env_id, num_envs, num_threads=1)
    policy = TorchPolicy.of(load(env_id), envs.single_action_space)
    torch.manual_seed(peers.SEED)
    tape = np.empty((num_steps, *envs.action_space.shape), np.float32)
    obs, _ = envs.reset(seed=peers.SEED)
    for action in tape:
        action[:] = policy.act(obs, deterministic=False)
        obs = envs.step(action)[0]
    envs.close()
    return tape
