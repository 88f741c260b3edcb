"""TorchRL: the environments as an ``EnvBase`` of tensors. Needs torchrl >= 0.14.

Results come off :class:`pyfastenv.TorchVectorEnv`: views on the CPU, one pinned copy per call on
CUDA. TorchRL resets ended environments itself, by mask, so DISABLED is the mode. TorchRL's own
``GymWrapper`` takes a :class:`pyfastenv.FastVectorEnv` too, on the CPU, in DISABLED or SAME_STEP.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from gymnasium.vector import AutoresetMode
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Bounded, Categorical, Composite, OneHot, TensorSpec, Unbounded
from torchrl.envs import EnvBase

from pyfastenv.integrations import require
from pyfastenv.sampling.staging import TorchVectorEnv
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.vector_env import FastVectorEnv


def make_torchrl(
    env_id: str | type[Task],
    num_envs: int = 1,
    *,
    device: str | torch.device = "cpu",
    categorical_action_encoding: bool = False,
    **kwargs: Any,
) -> EnvBase:
    """Makes environments in place of ``ParallelEnv(num_envs, lambda: GymEnv(env_id))``.

    Args:
        env_id: As for :func:`pyfastenv.make_vec`: ``"HalfCheetah-v5"``, an own task …
        num_envs: How many.
        device: Where tensors are: the CPU or a CUDA device.
        categorical_action_encoding: See :func:`to_torchrl`.
        **kwargs: See :class:`pyfastenv.FastVectorEnv`; the autoreset mode is chosen here, and
            observations are float32 and gymnasium's info entries left out unless asked for.
    """
    kwargs = {"obs_dtype": "float32", "infos": False, **kwargs}
    envs = make_vec(env_id, num_envs, autoreset_mode=AutoresetMode.DISABLED, **kwargs)
    return to_torchrl(envs, device, categorical_action_encoding=categorical_action_encoding)


def to_torchrl(
    envs: FastVectorEnv,
    device: str | torch.device = "cpu",
    *,
    categorical_action_encoding: bool = False,
) -> EnvBase:
    """The environments as an ``EnvBase``, whose ``close`` closes them.

    Args:
        envs: The environments; observations keep their dtype.
        device: Where tensors are: the CPU or a CUDA device.
        categorical_action_encoding: Discrete actions are ints, not one-hot (TorchRL's default).

    Raises:
        ValueError: Their autoreset mode is not DISABLED, or they were made with ``copy=False`` for
            the CPU: TorchRL keeps a rollout's results, views would change under it.
    """
    require(envs, AutoresetMode.DISABLED, "TorchRL", takes_dicts=True)
    tenvs = TorchVectorEnv(envs, device, obs_dtype=None)
    if tenvs.device.type == "cpu" and not envs._arguments.get("copy", True):
        raise ValueError("TorchRL on the CPU needs environments made with copy=True, got False")
    return FastTorchRLEnv(tenvs, categorical_action_encoding)


class FastTorchRLEnv(EnvBase):
    """Use :func:`to_torchrl`.

    Keys and specs are those of a ``GymWrapper`` around gymnasium's vector environments, with batch
    size ``(num_envs,)``: a Dict space's entries stand beside each other. ``set_seed(seed)`` takes
    effect with the next reset of all environments, where environment i gets ``seed + i``.
    """

    def __init__(self, envs: TorchVectorEnv, categorical_action_encoding: bool):
        super().__init__(device=envs.device, batch_size=torch.Size([envs.num_envs]))
        self.envs = envs
        self._seed: int | None = None
        self._one_hot = False
        batch, on_device = self.batch_size, {"device": envs.device}
        space = envs.single_action_space
        if isinstance(space, gymnasium.spaces.Box):
            self.action_spec = _bounded(space, torch.float32, batch, envs.device)
        elif categorical_action_encoding:
            self.action_spec = Categorical(_count(space), batch, dtype=torch.int64, **on_device)
        else:
            n = _count(space)
            self._one_hot = True
            self.action_spec = OneHot(n, (*batch, n), dtype=torch.int64, **on_device)
        space = envs.single_observation_space
        spaces = (
            space.spaces if isinstance(space, gymnasium.spaces.Dict) else {"observation": space}
        )
        self.observation_spec = Composite(
            {n: _bounded(s, envs.obs_dtype, batch, envs.device) for n, s in spaces.items()},
            shape=batch,
            **on_device,
        )
        self.reward_spec = Unbounded((*batch, 1), dtype=torch.float32, **on_device)
        flag = Categorical(2, (*batch, 1), dtype=torch.bool, **on_device)
        self.done_spec = Composite(
            {key: flag.clone() for key in ("done", "terminated", "truncated")}, shape=batch
        )

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDictBase:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        if mask is None or mask.all():
            obs, _ = self.envs.reset(seed=self._seed)
            self._seed = None
        else:
            rows = mask.reshape(self.batch_size).cpu().numpy()
            obs, _ = self.envs.reset(options={"reset_mask": rows})
        return self._tensordict(_named(obs))

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        actions = tensordict.get("action")
        if self._one_hot:
            actions = actions.argmax(-1)
        obs, rewards, terminations, truncations, _ = self.envs.step(actions.contiguous())
        return self._tensordict(
            {
                **_named(obs),
                "reward": rewards.float()[:, None],
                "terminated": terminations[:, None],
                "truncated": truncations[:, None],
                "done": (terminations | truncations)[:, None],
            }
        )

    def _tensordict(self, tensors: dict[str, Tensor]) -> TensorDict:
        return TensorDict(tensors, batch_size=self.batch_size, device=self.device)

    def _set_seed(self, seed: int | None) -> None:
        self._seed = seed

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Closes the environments."""
        super().close(raise_if_closed=raise_if_closed)
        self.envs.close()


def _named(obs: Any) -> dict[str, Tensor]:
    return obs if isinstance(obs, dict) else {"observation": obs}


def _bounded(
    space: gymnasium.Space[Any], dtype: torch.dtype, batch: torch.Size, device: torch.device
) -> TensorSpec:
    assert isinstance(space, gymnasium.spaces.Box)
    shape = torch.Size((*batch, *space.shape))
    low, high = torch.as_tensor(space.low, dtype=dtype), torch.as_tensor(space.high, dtype=dtype)
    if low.isinf().all() and high.isinf().all():
        return Unbounded(shape, dtype=dtype, device=device)
    return Bounded(low.expand(shape), high.expand(shape), shape, dtype=dtype, device=device)


def _count(space: gymnasium.Space[Any]) -> int:
    assert isinstance(space, gymnasium.spaces.Discrete)
    return int(space.n)
