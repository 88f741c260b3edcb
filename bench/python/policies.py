"""Policies that benchmarks run: untrained ones, and trained ones as files.

bench/python/learn.py writes one per environment, of its first seed of PPO; benchmarks step through
the states of trained policies with them, which are not those of random actions.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import torch

import pyfastenv
from pyfastenv.experiments import measure
from pyfastenv.nn.networks import MLP
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.tools import contestants

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


def untrained(envs: pyfastenv.FastVectorEnv) -> PolicySpec:
    """A Gaussian policy with two hidden layers of 64 and random weights."""
    torch.manual_seed(0)
    num_inputs, num_actions = envs.obs_size, envs.single_action_space.shape[0]
    network = MLP((num_inputs, 64, 64, num_actions), last_gain=0.01)
    return network.spec(log_std=np.full((1, num_actions), -0.5, np.float32))


def steps_taking(envs: pyfastenv.FastVectorEnv, policy: PolicySpec, seconds: float) -> int:
    """As many steps as a rollout makes in so long, at least 8."""
    envs.reset(seed=0)
    num_steps = 8
    while True:
        took = measure.seconds(partial(pyfastenv.rollout, envs, policy, num_steps))
        if took > seconds / 4:
            return max(8, round(num_steps * seconds / took))
        num_steps *= 2


def rollout_rate(
    envs: pyfastenv.FastVectorEnv, policy: PolicySpec, out: pyfastenv.RolloutBatch
) -> float:
    """Steps per second of a rollout from a reset with a seed."""
    envs.reset(seed=0)
    run = partial(pyfastenv.rollout, envs, policy, out.num_steps, out=out)
    return out.num_envs * out.num_steps / measure.seconds(run)


def actions(env_id: str, num_steps: int, num_envs: int) -> contestants.Actions:
    """The actions of the trained policy from a reset with the seed of the contestants.

    Drawn as in training, so the states are those that PPO sees at its end.

    Returns:
        ``(num_steps, num_envs, action_size)`` float32.
    """
    envs = pyfastenv.make_vec(env_id, num_envs, num_threads=1)
    policy = TorchPolicy.of(load(env_id), envs.single_action_space)
    torch.manual_seed(contestants.SEED)
    tape = np.empty((num_steps, *envs.action_space.shape), np.float32)
    obs, _ = envs.reset(seed=contestants.SEED)
    for action in tape:
        action[:] = policy.act(obs, deterministic=False)
        obs = envs.step(action)[0]
    envs.close()
    return tape
