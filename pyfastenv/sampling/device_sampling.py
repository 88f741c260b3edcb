"""Sampling with the policy on the device: the environments step together, the policy in between.

The placement that :func:`pyfastenv.rollout` replaces; it pays where the policy is large enough to
need the GPU. Results come through :class:`pyfastenv.TorchVectorEnv`'s pinned ring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyfastenv.errors import EnvError
from pyfastenv.sampling.obs_groups import named_components
from pyfastenv.sampling.rollouts import Episodes, RolloutBatch, infos_of_rows
from pyfastenv.sampling.staging import TorchVectorEnv
from pyfastenv.vector.rows import NOT_OWN
from pyfastenv.vector.vector_env import FastVectorEnv

# obs (N, obs_size) -> actions as drawn, their log-probs (N,), actions for the environments
Act = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]


def check_observations(obs: Tensor, envs: FastVectorEnv) -> None:
    """Nothing can be learned from observations that are not finite.

    Args:
        obs: ``(T * num_envs, obs_size)``, step by step.
        envs: Whose they are.

    Raises:
        EnvError: One is not; it names the environment.
    """
    if not (finite := obs.isfinite()).all():
        at, component = (~finite).nonzero()[0].tolist()
        message = f"component {component} of its observation is NaN or infinite"
        raise EnvError([at % envs.num_envs], [named_components(envs, message)])


class DeviceSampler:
    """Fills rollout batches on a device.

    Returns and lengths of episodes count from where it met them.

    Args:
        envs: Autoreset mode SameStep; they go on from where they are.
        num_steps: T.
        device: Where the policy is, and the batches.
        dtype: Of observations and rewards; pixels stay uint8.
    """

    def __init__(
        self,
        envs: FastVectorEnv,
        num_steps: int,
        device: torch.device,
        *,
        dtype: torch.dtype = torch.float32,
    ):
        self._envs = TorchVectorEnv(envs, device, flat=True, obs_dtype=dtype)
        self.num_steps = num_steps
        self._device = device
        pixels = None if envs.pixels is None else torch.uint8
        batch = RolloutBatch.allocate(envs, num_steps, dtype=dtype, obs_dtype=pixels)
        self._storage = batch.tensors()
        self._storage = {name: tensor.to(device) for name, tensor in self._storage.items()}
        self._obs = torch.from_numpy(envs.latest_obs()).to(self._storage["last_obs"])
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, np.int64)

    def reset(self, seeds: Sequence[int]) -> None:
        """Starts new episodes, environment i's by ``seeds[i]``."""
        obs, _ = self._envs.reset(seed=seeds)
        self._obs = obs.clone()
        self._returns[:] = 0.0
        self._lengths[:] = 0

    def collect(
        self, act: Act, on_end: Callable[[NDArray[np.int64]], None] | None = None
    ) -> RolloutBatch:
        """Runs ``num_steps`` steps; the batch is overwritten by the next call.

        Args:
            act: Chooses actions; runs on the device.
            on_end: Hears after each step in which environments episodes ended, if in any.

        Raises:
            EnvError: No action follows from an observation that is not finite. And what ``step``
                raises.
        """
        storage = self._storage
        storage["autoresets"].zero_()
        ended: list[tuple[int, int, float, int, bool, Any, dict[str, float]]] = []
        for t in range(self.num_steps):
            storage["obs"][t] = self._obs
            actions, log_probs, env_actions = act(self._obs)
            storage["actions"][t] = actions
            storage["log_probs"][t] = log_probs
            try:
                obs, rewards, terminations, truncations, infos = self._envs.step(env_actions)
            except ValueError:
                check_observations(self._obs, self._envs.envs)
                raise
            storage["rewards"][t] = rewards
            storage["terminations"][t] = terminations
            storage["truncations"][t] = truncations
            # the ring's tensors are overwritten by later calls
            self._obs = obs.clone()
            self._note_ends(t, rewards, terminations, infos, ended)
            if on_end is not None and "_final_obs" in infos:
                on_end(np.flatnonzero(infos["_final_obs"]))
        storage["last_obs"].copy_(self._obs)
        return RolloutBatch.of(storage, self._episodes(ended))

    def _note_ends(
        self, t: int, rewards: Tensor, terminations: Tensor, infos: dict[str, Any], ended: list[Any]
    ) -> None:
        self._returns += rewards.cpu().numpy()
        self._lengths += 1
        if "final_obs" not in infos:
            return
        terminated = terminations.cpu().numpy()
        for i in np.flatnonzero(infos["_final_obs"]):
            final_obs = infos["final_obs"][i]
            diverged = "diverged" in infos and infos["diverged"][i]
            finals = infos.get("final_info", {})
            last = _nothing({**infos, **finals}) if diverged else _numbers(finals, i)
            ended.append((t, i, self._returns[i], self._lengths[i], terminated[i], final_obs, last))
            self._returns[i] = 0.0
            self._lengths[i] = 0

    def _episodes(self, ended: list[Any]) -> Episodes:
        columns = list(zip(*ended, strict=True)) or [()] * 7
        final_obs = np.array(columns[5]).reshape(len(ended), *self._obs.shape[1:])
        return Episodes(
            steps=torch.tensor(columns[0], dtype=torch.int64),
            env_ids=torch.tensor(np.array(columns[1], np.int64)),
            returns=torch.tensor(np.array(columns[2], np.float64)),
            lengths=torch.tensor(np.array(columns[3], np.int64)),
            terminated=torch.tensor(np.array(columns[4], np.bool_)),
            final_obs=torch.from_numpy(final_obs).to(self._obs.dtype),
            infos=infos_of_rows(columns[6]),
        )

    def state_dict(self) -> dict[str, Any]:
        """The state that the environments' own does not have."""
        return {
            "obs": self._obs,
            "returns": torch.from_numpy(self._returns.copy()),
            "lengths": torch.from_numpy(self._lengths.copy()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self._obs = state["obs"].to(self._device)
        self._returns[:] = state["returns"].numpy()
        self._lengths[:] = state["lengths"].numpy()


def _numbers(infos: Mapping[str, Any], env_id: Any) -> dict[str, float]:
    """An environment's infos that are one number each."""
    return {
        name: float(values[env_id])
        for name, values in infos.items()
        if not name.startswith("_") and values.ndim == 1 and infos[f"_{name}"][env_id]
    }


def _nothing(infos: Mapping[str, Any]) -> dict[str, float]:
    """NaN for each of a step's infos that is one number."""
    names = [name for name in infos if f"_{name}" in infos and name not in NOT_OWN]
    return {name: math.nan for name in names if infos[name].ndim == 1}
