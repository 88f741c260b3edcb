"""Environments, a policy and a device on the host, for tests of staging."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import pyfastenv

NUM_ENVS = 5


class HostDevice:
    """A device whose memory is the host's: real copies, at once."""

    device = torch.device("cpu")

    def allocate(self, num_bytes: int) -> torch.Tensor:
        return torch.zeros(num_bytes, dtype=torch.uint8)

    def make_event(self) -> Any:
        return LateEvent()

    def upload(self, host: torch.Tensor, event: Any) -> torch.Tensor:
        return host.clone()

    def download(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [tensor.clone() for tensor in tensors]


class LateEvent:
    happened: threading.Event | None = None

    def synchronize(self) -> None:
        if self.happened is not None:
            self.happened.wait()


def make_envs(
    env_id: str = "HalfCheetah-v5", core: Any = None, **kwargs: Any
) -> pyfastenv.FastVectorEnv:
    envs = pyfastenv.make_vec(env_id, NUM_ENVS, **{"obs_dtype": "float32", **kwargs})
    if core is not None:
        envs._core = core(envs._core)
        envs._core_step = envs._core.step
    return envs


def small_policy() -> Any:
    rng = np.random.default_rng(0)
    return pyfastenv.PolicySpec(
        weights=[rng.normal(size=(1, 17, 6)).astype(np.float32)],
        biases=[np.zeros((1, 6), np.float32)],
        log_std=np.zeros((1, 6), np.float32),
    )
