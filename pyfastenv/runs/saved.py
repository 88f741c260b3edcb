"""Trained policies, back from a run folder or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs import checkpoint
from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.errors import CheckpointError, NoSuchPolicyError
from pyfastenv.runs.evaluation import Evaluation, evaluate, make_eval_envs
from pyfastenv.runs.field_types import check_field_types
from pyfastenv.runs.folder import (
    CHECKPOINTS,
    CONFIG,
    first_checkpoint,
    has_lost_checkpoints,
    load_checkpoint,
    read_config,
    run_of,
)
from pyfastenv.runs.registry import algorithm_module
from pyfastenv.sampling.obs_groups import POLICY
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.obs_views import ObsViews
from pyfastenv.vector.vector_env import FastVectorEnv


@dataclass(frozen=True)
class SavedPolicy:
    """Holds a checkpoint's policy and the options that it was trained with.

    Attributes:
        path: The checkpoint file.
        step: Environment steps it was trained for.
        config: The run's options, but for the device.
        env_kwargs: The environments' arguments.
        env_values: What they were given one by one (``FastVectorEnv.own_values``).
        policy: What :func:`pyfastenv.rollout` takes; deterministic, on the CPU.
    """

    path: Path
    step: int
    config: RunConfig
    env_kwargs: dict[str, Any]
    env_values: dict[str, Any]
    policy: Any

    def make_envs(
        self, num_envs: int, render_mode: str | None = None, **kwargs: Any
    ) -> FastVectorEnv:
        """Makes environments like those that its training evaluated it in, at most 64.

        Args:
            num_envs: How many.
            render_mode: ``"rgb_array"`` to draw them.
            **kwargs: Arguments that win over the training's.
        """
        kwargs = {**self.env_kwargs, **self.config.eval_env_kwargs, **kwargs}
        envs = make_eval_envs(self.config.env_id, kwargs, num_envs, render_mode)
        envs.take_values(self.env_values)
        return envs

    def act(self, obs: Any, deterministic: bool = True, *, policy_id: int = 0) -> NDArray[Any]:
        """Returns the policy's actions for observations, which it normalises itself.

        Args:
            obs: ``(obs_size,)``, or ``(B, obs_size)`` for B of them, what the policy sees; not
                normalised; of pixels: pictures as environments show them. Of a Dict space: a dict,
                which needs ``"policy"`` alone where that is all that the policy sees; or the same
                flat.
            deterministic: The most likely action; False: drawn as in the training, by torch's
                default generator.
            policy_id: Which of the policies, if the run trained several seeds side by side.

        Returns:
            ``(action_size,)`` or ``(B, action_size)`` of the action space's dtype; of discrete
            actions an int64 scalar or ``(B,)``.

        Raises:
            ValueError: Observations of another shape.
            NoSuchPolicyError: No such policy.
        """
        policy = self.as_torch(policy_id)
        if self.config.learns_from_pixels:
            obs = self._flat_pictures(obs)
        return policy.act(
            self._flat(obs, policy) if isinstance(obs, Mapping) else obs, deterministic
        )

    def reset(self, env_ids: ArrayLike | None = None, *, policy_id: int = 0) -> None:
        """Begins new episodes: a policy with a memory (recurrent_ppo) forgets; others have none.

        To be called before each episode's first :meth:`act`.

        Args:
            env_ids: ``(n,)`` rows of the observations whose environments begin anew; None: all, and
                there may be another number of them from now on.
            policy_id: As of :meth:`act`.
        """
        self.as_torch(policy_id).reset(env_ids)

    def _flat_pictures(self, obs: Any) -> NDArray[Any]:
        given, (space, _) = np.asarray(obs), self.spaces
        if given.ndim not in (3, 4) or given.shape[-3:] != space.shape:
            expected = ", ".join(map(str, space.shape or ()))
            raise ValueError(f"obs: expected ({expected}) or (B, {expected}), got {given.shape}")
        return given.reshape(*given.shape[:-3], -1)

    def _flat(self, obs: Mapping[str, Any], policy: TorchPolicy) -> NDArray[np.float32]:
        """The policy's part of a Dict space's observations."""
        shown = self._env_facts.obs_views
        views = shown.views if isinstance(shown, ObsViews) else {}
        needed = {POLICY} if policy.obs_size < policy.row_size else views.keys()
        if not views or not needed <= obs.keys() <= views.keys():
            known = f"a dict of {', '.join(sorted(needed))}" if views else "an array"
            raise ValueError(f"obs: expected {known}, got a dict of {', '.join(obs)}")
        name = next(iter(needed))
        first = np.asarray(obs[name])
        lead = first.shape[: first.ndim - len(views[name].shape)]
        rows = np.zeros((*lead, policy.row_size), np.float32)
        for name, values in obs.items():
            if np.shape(values) != (expected := (*lead, *views[name].shape)):
                raise ValueError(f"obs: {name}: expected {expected}, got {np.shape(values)}")
            rows[..., views[name].place] = np.reshape(values, (*lead, -1))
        flat: NDArray[np.float32] = policy.of_rows(rows)
        return flat

    def as_torch(self, policy_id: int = 0) -> TorchPolicy:
        """Returns one of the policies as a torch module.

        Raises:
            NoSuchPolicyError: No such policy.
            TypeError: The algorithm's policies are of a kind of their own.
        """
        policies, policy_id = self._torch_policies, integer("policy_id", policy_id)
        if not 0 <= policy_id < len(policies):
            raise NoSuchPolicyError(
                f"policy_id: expected 0 to {len(policies) - 1}, got {policy_id}"
            )
        return policies[policy_id]

    @cached_property
    def _torch_policies(self) -> list[TorchPolicy]:
        if isinstance(self.policy, list):
            return [policy.as_greedy(False) for policy in self.policy]
        if not isinstance(self.policy, PolicySpec):
            raise TypeError(
                f"policy: those of {self.config.algorithm} are {type(self.policy).__name__}; "
                "expected a PolicySpec or a list of TorchPolicy"
            )
        _, action_space = self.spaces
        policy = replace(self.policy, greedy=False)  # act() says whether
        return [TorchPolicy.of(policy, action_space, k) for k in range(policy.num_policies)]

    @property
    def spaces(self) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        """The spaces of one environment: observations and actions."""
        facts = self._env_facts
        return facts.single_observation_space, facts.single_action_space

    @cached_property
    def _env_facts(self) -> FastVectorEnv:
        """An environment, closed: to be asked what it is like."""
        with closing(self.make_envs(1)) as envs:
            return envs


def resumed_config(run: Path | str, **options: Any) -> RunConfig:
    """Returns the options with which a run goes on.

    Args:
        run: The run folder, or one of its checkpoint files.
        options: Those that change; None: as it was.

    Raises:
        FileNotFoundError: This is no run folder.
        ValueError: Its algorithm is unknown, or has no such option; its config.json is damaged.
    """
    run = Path(run)
    folder = run if run.is_dir() else run_of(run)
    if folder is None:
        raise FileNotFoundError(f"{run}: neither a run folder nor a checkpoint in one")
    name, values = read_config(folder)
    config: RunConfig = algorithm_module(name).Config.from_dict(values)
    try:
        check_field_types(config)
    except TypeError as error:
        raise ValueError(f"{folder / CONFIG}: {error}") from error
    changes = {option: value for option, value in options.items() if value is not None}
    for option in changes:
        if not hasattr(config, option):
            raise ValueError(f"{option}: {name} has no such option")
    return replace(config, resume=run, run_dir=None, auto_resume=False, **changes)


def load_policy(run: Path | str, which: Literal["newest", "best"] = "newest") -> SavedPolicy:
    """Loads the policy of a run folder, or of a checkpoint file.

    Args:
        run: The run folder, or one of its checkpoints.
        which: Of a run folder: the newest checkpoint, or that with the greatest mean return of an
            evaluation (of seeds side by side, of all of them).

    Raises:
        CheckpointError: There is none, or it cannot be read.
        ValueError: Its algorithm or an option is unknown.
    """
    path = checkpoint_of(Path(run), which)
    saved = load_checkpoint(path)
    module = algorithm_module(saved["algorithm"])
    config = replace(module.Config.from_dict(saved["config"]), device="cpu")
    state = {"global_step": saved["step"], **saved["ranks"][0]["algorithm"]}
    policy = module.load_policy(config, state)
    values = saved.get("env_values", {})  # not in checkpoints of earlier versions
    return SavedPolicy(path, saved["step"], config, saved["env_kwargs"], values, policy)


def checkpoint_of(run: Path, which: Literal["newest", "best"] = "newest") -> Path:
    """Finds the checkpoint file of a run; arguments and errors are those of :func:`load_policy`."""
    if which not in ("newest", "best"):
        raise ValueError(f"which: expected 'newest' or 'best', got {which!r}")
    if which == "best":
        best = run / CHECKPOINTS / checkpoint.BEST
        if not best.is_file():
            raise CheckpointError(
                f"{run}: no {best.relative_to(run)}: it comes with the run's first evaluation"
            )
        return best
    try:
        return checkpoint.resolve(run)
    except CheckpointError as error:
        if not (run / CONFIG).is_file():
            raise
        if has_lost_checkpoints(run):
            why = "those that the run had are gone"
        else:
            _, config = read_config(run)
            why = (
                f"the first comes at step {first_checkpoint(run, config):,} (checkpoint_every = "
                f"{config['checkpoint_every']:,}), or on Ctrl-C"
            )
        raise CheckpointError(f"{error}: {why}") from None


def evaluate_run(run: Path | str, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Evaluates the policy of a run folder or checkpoint file in new environments.

    Of several seeds side by side each has environments of its own: those of ``seed``, ``seed + 1``
    and so on.
    """
    integer("episodes", episodes, minimum=1)
    integer("seed", seed, minimum=0, below=2**63)
    saved = load_policy(run)
    envs = saved.make_envs(episodes)
    try:
        seeds = range(seed, seed + len(saved.config.seeds()))
        return evaluate(envs, saved.policy, episodes, seeds)
    finally:
        envs.close()
