"""How good a policy is: full episodes in environments of their own, each counted once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.sampling.acting import ActingPolicy, acting_steps
from pyfastenv.sampling.device_sampling import DeviceSampler
from pyfastenv.sampling.rollouts import Episodes, episode_means, infos_of_rows, rollout
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector.vector_env import FastVectorEnv

_MAX_ENVS = 64
_MOST_STEPS = 1_000  # at a time: most episodes may be far shorter than their limit


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one evaluation.

    Attributes:
        returns: ``(num_policies * num_episodes,)`` float64, sums of rewards, policy by policy.
        lengths: Likewise, int64 [steps].
        num_policies: How many policies were evaluated.
        infos: Likewise, float64 by name: those of the last steps that are numbers.
    """

    returns: torch.Tensor
    lengths: torch.Tensor
    num_policies: int = 1
    infos: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def metrics(self) -> dict[str, float]:
        """Mean, standard deviation (of the sample; 0 for one episode), range, mean length.

        Of several policies together, and the means of each: ``"eval/return_0"`` and so on. And the
        means of those infos that sum an episode up, ``"eval/reward_tracking"``.
        """
        std = self.returns.std() if len(self.returns) > 1 else torch.zeros(())
        each = {}
        if self.num_policies > 1:
            means = self.returns.view(self.num_policies, -1).mean(1)
            each = {f"eval/return_{k}": float(mean) for k, mean in enumerate(means)}
        own = {f"eval/{name}": mean for name, mean in episode_means(self.infos).items()}
        return {
            **own,
            **each,
            "eval/return": float(self.returns.mean()),
            "eval/return_std": float(std),
            "eval/return_min": float(self.returns.min()),
            "eval/return_max": float(self.returns.max()),
            "eval/length": float(self.lengths.double().mean()),
        }


def evaluate(
    envs: FastVectorEnv, policy: Any, num_episodes: int, seed: int | Sequence[int]
) -> Evaluation:
    """Runs a policy for whole episodes.

    Of n environments each gives its first ``ceil(num_episodes / n)`` episodes; what is too many
    is cut from the last round by environment. Taking the first that end instead would favour short
    episodes.

    Args:
        envs: Autoreset mode SameStep, with a limit on an episode's steps. They are reset.
        policy: What :func:`pyfastenv.rollout` takes, a list of
            :class:`pyfastenv.nn.torch_policy.TorchPolicy`, or an
            :class:`pyfastenv.sampling.acting.ActingPolicy`. Of several all are evaluated, one after
            another.
        num_episodes: How many episodes count, of each policy.
        seed: Gives each environment its own (:func:`pyfastenv.runs.seeds.env_seeds`): the same
            episodes each time, and other ones than any training's. Several: one for each policy.

    Raises:
        ValueError: No episodes, another autoreset mode, no limit on an episode's steps, or not as
            many seeds as policies.
    """
    if num_episodes < 1:
        raise ValueError(f"num_episodes: expected at least 1, got {num_episodes}")
    if envs.autoreset_mode != AutoresetMode.SAME_STEP:
        raise ValueError(f"envs: expected autoreset_mode SameStep, got {envs.autoreset_mode.value}")
    if envs.max_episode_steps is None:
        raise ValueError("envs: without max_episode_steps an episode need not end")
    num_policies = 1
    if isinstance(policy, PolicySpec | list):
        num_policies = policy.num_policies if isinstance(policy, PolicySpec) else len(policy)
    seeds = seed if isinstance(seed, Sequence) else [seed]
    if len(seeds) == 1:
        seeds = [*seeds] * num_policies
    if len(seeds) != num_policies:
        raise ValueError(f"seed: expected one, or {num_policies} of them, got {len(seeds)}")
    parts = [_episodes_of(envs, policy, k, num_episodes, each) for k, each in enumerate(seeds)]
    returns, lengths, infos = zip(*[episode for part in parts for episode in part], strict=True)
    return Evaluation(
        torch.tensor(returns, dtype=torch.float64),
        torch.tensor(lengths),
        num_policies,
        infos_of_rows(infos),
    )


def _episodes_of(
    envs: FastVectorEnv, policy: Any, number: int, num_episodes: int, seed: int
) -> list[tuple[float, int, dict[str, float]]]:
    """Returns, lengths and last infos of one of the policies' episodes."""
    rounds = math.ceil(num_episodes / envs.num_envs)
    episodes: list[list[tuple[float, int, dict[str, float]]]] = [[] for _ in range(envs.num_envs)]
    assert envs.max_episode_steps is not None
    most = _MOST_STEPS if envs.pixels is None else 1  # whose observations are kept meanwhile
    num_steps = min(envs.max_episode_steps, most)
    envs.reset(seed=env_seeds(seed, envs.num_envs, Stream.EVALUATION_ENVS))
    play = player(envs, policy, number, num_steps)
    while any(len(mine) < rounds for mine in episodes):
        ended = play()
        columns = (ended.env_ids, ended.returns, ended.lengths)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for at, (env_id, total, length) in enumerate(rows):
            last = {name: float(values[at]) for name, values in ended.infos.items()}
            episodes[env_id].append((total, length, last))
    return [episodes[i][n] for n in range(rounds) for i in range(envs.num_envs)][:num_episodes]


def player(envs: FastVectorEnv, policy: Any, number: int, num_steps: int) -> Callable[[], Episodes]:
    """Lets one of the policies take ``num_steps`` steps of environments that have been reset.

    Returns:
        A function that gives the episodes that ended.
    """
    if isinstance(policy, ActingPolicy):
        step = acting_steps(envs, policy)
        return lambda: step().episodes
    if not isinstance(policy, list):
        policy_ids = [number] * envs.num_envs
        return lambda: rollout(envs, policy, num_steps, policy_id=policy_ids).episodes
    mine: TorchPolicy = policy[number]
    device = next(mine.parameters()).device
    sampler = DeviceSampler(envs, num_steps, device)

    @torch.no_grad()
    def act(obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        drawn = mine.draw(mine.of_rows(obs).float())
        return drawn.actions, drawn.log_probs, drawn.env_actions

    mine.reset()
    return lambda: sampler.collect(act, mine.reset).episodes


def make_eval_envs(
    env_id: str, kwargs: dict[str, Any], num_envs: int, render_mode: str | None = None
) -> FastVectorEnv:
    """Environments to evaluate in: like the training's, but separate from them.

    Args:
        env_id: The environment.
        kwargs: :func:`env_kwargs` of the training environments.
        num_envs: At most 64 are made.
        render_mode: ``"rgb_array"`` to draw them.
    """
    return make_vec(
        env_id,
        min(num_envs, _MAX_ENVS),
        **{**kwargs, "autoreset_mode": AutoresetMode.SAME_STEP, "render_mode": render_mode},
    )


def env_kwargs(envs: FastVectorEnv) -> dict[str, Any]:
    """The arguments that environments were made with, in a form that a checkpoint can hold.

    Tasks (``reset_task``) and model fields (``set_model_field``), which may change, are
    :meth:`pyfastenv.vector.vector_env.FastVectorEnv.own_values`.
    """
    given = {} if envs.spec is None else dict(envs.spec.kwargs)
    for name in ("env_id", "task", "num_envs", "autoreset_mode", "render_mode", "copy", "engine"):
        given.pop(name, None)
    return {name: _storable(value) for name, value in given.items()}


def _storable(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    return value
