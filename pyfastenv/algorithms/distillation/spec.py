"""Student-teacher distillation: a policy learns to act as another one does, which sees more.

The teacher is the policy of another run, whose task shows it what no sensor measures (its
observations ``"policy"`` are privileged). The student sees what a robot will; it acts, and learns
what the teacher would have done in the states that it reached (DAgger: Ross et al. 2011,
arXiv:1011.0686; rsl_rl's Distillation; Lee et al. 2020, arXiv:2010.11251). Its value network stays
as it began: PPO goes on from it by ``--from``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import gymnasium
import torch
from torch import Tensor

from pyfastenv.nn.functional import gaussian_log_prob
from pyfastenv.nn.networks import MLP, learning
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.spans import span
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs import saved
from pyfastenv.runs.errors import CheckpointError
from pyfastenv.runs.folder import load_checkpoint
from pyfastenv.runs.options import MAY_DIFFER, POSITIVE_OR_INFINITE, at_least, check_fixed
from pyfastenv.sampling.exploration import continuous_actions
from pyfastenv.sampling.rollouts import RolloutBatch
from pyfastenv.training import distributed
from pyfastenv.training.accelerators import autocast
from pyfastenv.training.actor_value import ActorValue, ActorValueConfig
from pyfastenv.training.changes import as_written
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.envs import make_training_envs
from pyfastenv.training.warm_start import is_reordered
from pyfastenv.vector.vector_env import FastVectorEnv

# ---- options -------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Config(ActorValueConfig):
    """A student's distillation from a teacher."""

    algorithm: ClassVar[str] = "distillation"
    presets = {}

    teacher: Path | None = field(default=None, metadata=MAY_DIFFER)
    """The run folder, or checkpoint file, whose policy is learned from."""
    loss: Literal["mse", "huber", "nll"] = "mse"
    """Squared errors of the student's means beside the teacher's actions, Huber's, or the negative
    log-likelihood of the latter, by which deviations are learned, too."""
    num_envs: int = 16
    """How many environments are stepped at once (in each process)."""
    total_steps: int = 1_000_000
    """Environment steps to train for."""
    update_epochs: int = field(default=2, metadata=at_least(1))
    """Passes over the collected steps."""
    minibatch_size: int = field(default=256, metadata=at_least(1))
    """Steps per gradient step (of all processes together)."""
    learning_rate: float = 1e-3
    """Adam's."""
    max_grad_norm: float = field(default=1.0, metadata=POSITIVE_OR_INFINITE)
    """The gradient is scaled down to this norm."""
    accelerate: Literal["auto", "none", "compile", "native"] = "none"
    """Gradients are plain PyTorch's; there is nothing faster."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.teacher is not None:
            self.teacher = Path(self.teacher).expanduser().resolve()

    def check(self) -> None:
        check_fixed(
            self,
            ("accelerate", "none", "nothing faster computes its gradients"),
            ("pool_size", 1, "the teacher is asked about the newest batch"),
            ("gamma", 0.99, "no return is learned from"),
            ("normalize_rewards", True, "no reward is learned from"),
        )
        super().check()
        self._check_minibatches(self.minibatch_size)
        with closing(make_training_envs(self, 1)) as envs:
            read_teacher(self.teacher, envs)


def read_teacher(run: Path | None, envs: FastVectorEnv) -> TorchPolicy:
    """A run's policy, as it acts on these environments' flat observations.

    Raises:
        ValueError: There is none; it remembers, or there are several; the environments show other
            observations, or take other actions, than those that it was trained in.
    """
    if isinstance(envs.single_action_space, gymnasium.spaces.Discrete):
        continuous_actions(envs, "distillation")  # raises
    if run is None:
        raise ValueError("teacher: expected a run folder or a checkpoint file, got none")
    try:
        found = saved.load_policy(run)
    except (CheckpointError, FileNotFoundError) as error:
        raise ValueError(f"teacher: {error}") from None
    policy, space = found.policy, envs.single_action_space
    many = policy.num_policies if isinstance(policy, PolicySpec) else len(policy)
    if many > 1:
        raise ValueError(f"teacher: expected one policy, {run} has those of {many} seeds")
    if isinstance(policy, PolicySpec):
        policy = TorchPolicy.of(policy, space)
    else:
        (policy,) = policy
        if type(policy).reset is not TorchPolicy.reset:
            raise ValueError(f"teacher: {run} has a policy that remembers, which is not supported")
    assert isinstance(policy, TorchPolicy)
    theirs = (policy.row_size, policy.action_space.shape)
    if theirs != (envs.obs_size, space.shape):
        raise ValueError(
            f"teacher: {run} was trained on observations of {theirs[0]} numbers and actions "
            f"{theirs[1]}, {envs.env_id} has {envs.obs_size} and {space.shape}: expected a run in "
            'this task, whose observation_dict may have another "policy"'
        )
    if is_reordered(envs, load_checkpoint(found.path)):
        raise ValueError(f"teacher: {run} saw observations of {envs.env_id} at other places")
    return policy


# ---- what is learned -----------------------------------------------------------------------------


def distillation_loss(means: Tensor, log_std: Tensor, actions: Tensor, loss: str) -> Tensor:
    """How far the student is from the teacher.

    Args:
        means: ``(B, A)`` of the student's Gaussians.
        log_std: ``(A,)``.
        actions: ``(B, A)``: the teacher's most likely ones, for the environment.
        loss: ``"mse"``, ``"huber"`` (both means over B and A) or ``"nll"`` (a mean over B).
    """
    if loss == "nll":
        return -gaussian_log_prob(actions, means, log_std).mean()
    if loss == "huber":
        return torch.nn.functional.huber_loss(means, actions)
    return (means - actions).square().mean()


class Functions(NamedTuple):
    """The parts of learning that a subclass may replace."""

    distillation_loss: Callable[..., Tensor] = distillation_loss


# ---- the training --------------------------------------------------------------------------------


@as_written
class Distillation(ActorValue[Config]):
    """The algorithm; :func:`train` drives it. ``restore`` is a :meth:`state_dict` to go on from."""

    functions: ClassVar[Functions] = Functions()

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        super().__init__(config)
        self.begin(restore, in_torch=config.device == "cuda" or not isinstance(self.policy, MLP))

    @cached_property
    def teacher(self) -> TorchPolicy:
        """The teacher, on the learner's device."""
        return read_teacher(self.config.teacher, self.envs).to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from, but for the teacher."""
        return {**super().state_dict(), "teacher": self._teacher_digest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`.

        Raises:
            CheckpointError: The teacher is another one now, or a part is missing.
        """
        if state.get("teacher", self._teacher_digest) != self._teacher_digest:
            raise CheckpointError(
                f"teacher: {self.config.teacher} has trained on, and is not what the run has "
                "learned from; name that checkpoint"
            )
        super().load_state_dict(state)

    @cached_property
    def _teacher_digest(self) -> str:
        tensors = self.teacher.state_dict().values()
        return hashlib.sha256(
            b"".join(each.cpu().numpy().tobytes() for each in tensors)
        ).hexdigest()

    def learn(self, batch: RolloutBatch) -> dict[str, float]:
        """Passes over the batch, with what the teacher would have done."""
        config = self.config
        obs = batch.obs.view(-1, self.obs_size)
        with span("forward"), torch.no_grad():
            actions = self.teacher(self.teacher.of_rows(obs))
            seen = self.normalizer(obs)[:, self.seen.policy]
        size = config.minibatch_size // self.world_size
        losses, norms = [], []
        for _ in range(config.update_epochs):
            order = torch.randperm(len(obs), generator=self.generator).to(self.device)
            for rows in order.split(size)[: len(obs) // size]:
                loss = self._loss(seen[rows], actions[rows])
                self.flat.backward(loss)
                with span("optimiser"):
                    distributed.average_gradients([self.flat.parameter])
                    norms.append(self.flat.clip_grad_norm(config.max_grad_norm))
                    self.optimizer.step()
                    self.refresh()
                losses.append(loss.detach())
        self.normalizer.update(batch.obs)
        means = distributed.mean(torch.stack((torch.stack(losses), torch.stack(norms))).mean(1))
        metrics = dict(zip(("loss/behavior", "train/grad_norm"), means.tolist(), strict=True))
        return metrics | {"policy/std": float(self.log_std.detach().exp().mean())}

    def _loss(self, seen: Tensor, actions: Tensor) -> Tensor:
        # what MLP.compute_in does for ours
        precision = autocast(self.own_networks and self.config.amp, self.device)
        with span("forward"), learning(self.policy), precision:
            means = self.policy(seen[None])[0].float()
        return self.functions.distillation_loss(means, self.log_std, actions, self.config.loss)


train, load_policy = entry_points(lambda: Distillation)
