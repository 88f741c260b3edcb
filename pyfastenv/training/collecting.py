"""Collecting for algorithms that replay: the environments of several seeds and what they did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import RowLayout, Transitions
from pyfastenv.sampling.device_sampling import DeviceSampler, check_observations
from pyfastenv.sampling.exploration import continuous_actions, explore
from pyfastenv.sampling.obs_groups import Seen
from pyfastenv.sampling.rollouts import Episodes, RolloutBatch, joined_infos, rollout
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.loop import episode_metrics
from pyfastenv.training.off_policy_config import OffPolicyConfig
from pyfastenv.vector.vector_env import FastVectorEnv

_EXPLORE = 50  # steps of all environments whose observations are held at once


class SeedCollector:
    """The environments of all seeds, seed after seed, and what they have gone through.

    Args:
        config: The options.

    Attributes:
        envs: ``num_seeds * num_envs`` environments.
        actions: Their actions, as learned from: an ActionBox, or what a subclass makes of them.
        layout: Of the rows that come out.
        obs: ``(K, n, obs_size)`` the observations of the latest rows, not rounded to float32.
        ended: ``(K, n)`` bool: whether an episode ended with them, for whatever reason.
    """

    def __init__(self, config: OffPolicyConfig):
        self._config = config
        self.envs = make_training_envs(config, config.num_seeds * config.num_envs)
        self.actions = self.find_actions(self.envs, config.algorithm)
        obs_size = self.envs.obs_size
        self.layout = RowLayout(obs_size, len(self.actions), *Seen.of(self.envs))
        self._policy_ids = [k for k in range(config.num_seeds) for _ in range(config.num_envs)]
        self._batch: RolloutBatch | None = None
        self.obs = torch.empty(config.num_seeds, 0, obs_size)
        self.ended = torch.empty(config.num_seeds, 0, dtype=torch.bool)
        self._ended: list[Episodes] = []
        # of networks that the pool's workers cannot run
        self._sampler: DeviceSampler | None = None
        self._acting = SeedStreams(config.streams(Stream.ACTING), config.learn_device)

    @staticmethod
    def find_actions(envs: FastVectorEnv, algorithm: str) -> Any:
        """Makes :attr:`actions`, or raises ValueError where the algorithm cannot take them."""
        return continuous_actions(envs, algorithm)

    def reset(self) -> Tensor:
        """The first observations, ``(N, obs_size)``."""
        obs, _ = self.envs.flat_reset(seed=self._config.env_seeds())
        return torch.from_numpy(obs)

    def explore(self, num_steps: int, streams: SeedStreams) -> Tensor:
        """Rows ``(K, n, width)`` of uniform actions from the first observations on.

        Args:
            num_steps: Of each seed, all its environments together.
            streams: CPU streams.
        """
        self.reset()
        size, dtype = (self._config.num_envs, len(self.actions)), self._config.exploration_dtype
        steps = math.ceil(num_steps / self._config.num_envs)

        def draw() -> Tensor:
            return streams.uniform(*size, dtype=dtype).flatten(0, 1).float()

        blocks = []  # observations may be pictures, which rows only have the numbers of
        for first in range(0, steps, _EXPLORE):
            block = explore(self.envs, self.actions, min(_EXPLORE, steps - first), draw)
            blocks.append((self._rows(block), self.obs, self.ended))
        rows, self.obs, self.ended = (torch.cat(parts, 1) for parts in zip(*blocks, strict=True))
        return rows

    def follow(self, policies: PolicySpec | Sequence[TorchPolicy], num_steps: int) -> Tensor:
        """Rows ``(K, num_steps * num_envs, width)`` of the policies.

        Args:
            policies: K of them; in torch they act step by step, all environments at a time.
            num_steps: Of each environment.
        """
        if isinstance(policies, PolicySpec):
            batch = rollout(
                self.envs, policies, num_steps, policy_id=self._policy_ids, out=self._batch
            )
            self._batch = batch
        else:
            batch = self._follow_in_torch(policies, num_steps)
        if len(batch.episodes) > 0:
            self._ended.append(batch.episodes)
        return self._rows(Transitions.from_rollout(batch))

    def _follow_in_torch(self, policies: Sequence[TorchPolicy], num_steps: int) -> RolloutBatch:
        sampler = self._sampler_of(num_steps)

        @torch.no_grad()
        def act(obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            parts = obs.view(len(policies), -1, self.envs.obs_size).float()
            drawn = [
                policy.draw(policy.of_rows(part), generator)
                for policy, part, generator in zip(
                    policies, parts, self._acting.generators, strict=True
                )
            ]
            actions, log_probs, env_actions = (torch.cat(each) for each in zip(*drawn, strict=True))
            return actions, log_probs, env_actions

        return sampler.collect(act).cpu()

    def _sampler_of(self, num_steps: int) -> DeviceSampler:
        if self._sampler is None or self._sampler.num_steps != num_steps:
            sampler = DeviceSampler(self.envs, num_steps, self._config.learn_device)
            if self._sampler is not None:
                sampler.load_state_dict(self._sampler.state_dict())
            self._sampler = sampler
        return self._sampler

    def episode_metrics(self) -> dict[str, float]:
        """Metrics of the episodes that ended since the last call, if any did.

        ``"train/return"`` and ``"train/length"`` are means over all seeds; with several,
        ``"train/return_k"`` is the k-th one's mean.
        """
        if not self._ended:
            return {}
        ended, self._ended = self._ended, []
        env_ids, returns, lengths = (
            torch.cat([getattr(each, name) for each in ended])
            for name in ("env_ids", "returns", "lengths")
        )
        metrics = episode_metrics(returns, lengths, joined_infos(ended))
        num_seeds = self._config.num_seeds
        if num_seeds > 1:
            seeds = env_ids // self._config.num_envs
            for k in seeds.unique().tolist():
                metrics[f"train/return_{k}"] = float(returns[seeds == k].mean())
        return metrics

    def _rows(self, new: Transitions) -> Tensor:
        """Transitions step by step, ``T * N`` of them, to the seeds' rows.

        Raises:
            EnvError: An observation is not finite: nothing could be learned from it.
        """
        for obs in (new.obs, new.next_obs):
            check_observations(obs, self.envs)
        actions = self.actions.to_unit(new.actions)
        self.obs = self._by_seed(new.obs)
        self.ended = self._by_seed(new.ended[:, None])[..., 0]
        return self._by_seed(
            self.layout.pack(new.obs, actions, new.next_obs, new.rewards, new.terminated)
        )

    def _by_seed(self, rows: Tensor) -> Tensor:
        """``(T * N, …)`` to ``(K, n, …)``."""
        shape = (-1, self._config.num_seeds, self._config.num_envs, rows.shape[1])
        return rows.view(shape).transpose(0, 1).flatten(1, 2)

    def state_dict(self) -> dict[str, Any]:
        """The environments' states, and of own networks what draws their actions."""
        return {
            "envs": torch.from_numpy(self.envs.get_state()),
            "acting": self._acting.state_dict(),
            "sampler": None if self._sampler is None else self._sampler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        self.envs.set_state(state["envs"].numpy())
        self._acting.load_state_dict(state["acting"])
        if state["sampler"] is not None:
            self._sampler_of(1).load_state_dict(state["sampler"])
