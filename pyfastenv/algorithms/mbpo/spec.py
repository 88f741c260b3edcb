"""Model-based policy optimisation (Janner et al. 2019, arXiv:1906.08253), optionally with a flow.

An ensemble learns the dynamics from all real transitions; short rollouts of it from real states
fill a model pool; SAC learns from that and a little real data. ``--dynamics flow`` adds a coupled
flow that tells the model's transitions from real ones and an agent that improves the model by it
(:mod:`pyfastenv.algorithms.mbpo.flow`). ``num_seeds`` trainings run side by side, each as it would
alone. Read it top to bottom: Config, the step, model, flow, policy; the iteration around them is in
:mod:`pyfastenv.training.off_policy`. References: docs/mbpo.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.algorithms.mbpo.flow import FlowAgent, FlowOptions
from pyfastenv.algorithms.mbpo.termination import termination_rule
from pyfastenv.algorithms.sac.spec import SACConfig, SACTraining
from pyfastenv.nn.spans import span
from pyfastenv.runs.options import FRACTION, POSITIVE, WIDTHS, at_least, check_fixed
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.buffers import ReplayPool
from pyfastenv.training.accelerators import Choice
from pyfastenv.training.entry_points import entry_points
from pyfastenv.training.presets import presets_of

_STANDARDISE_ROWS = 10_000


@dataclass(kw_only=True)
class Config(SACConfig):
    """Model-based policy optimisation."""

    algorithm: ClassVar[str] = "mbpo"
    presets = presets_of("mbpo")

    env_id: str = "Hopper-v5"
    """The environment; `pyfastenv envs` lists them."""
    compact_obs: bool = True
    """Leave contact forces and inertias out of Ant's and Humanoid's observations."""
    dynamics: Literal["ensemble", "flow"] = "ensemble"
    """The ensemble alone, or with a coupled flow."""
    total_steps: int = 130_000
    """Environment steps to train for, of each seed, the random ones included."""
    eval_every: int = 1_000
    """Environment steps between evaluations; 0: only at the end."""
    checkpoint_every: int = 5_000
    """Environment steps between checkpoints; 0: only at the end."""
    updates_per_step: float = 20.0
    """SAC's gradient steps per environment step."""
    real_ratio: float = field(default=0.05, metadata=FRACTION)
    """Share of real transitions in SAC's batches."""
    model_every: int = field(default=250, metadata=at_least(1))
    """Environment steps between fits of the model, and between rollouts of it."""
    rollout_batch: int = field(default=100_000, metadata=at_least(1))
    """Real states from which the model is rolled out each time."""
    epoch_steps: int = field(default=1_000, metadata=at_least(1))
    """Environment steps of an epoch, by which the two options below count."""
    rollout_schedule: tuple[int, int, int, int] = (20, 150, 1, 15)
    """Between these epochs a rollout's length grows from the third number to the fourth."""
    model_retain_epochs: int = field(default=1, metadata=at_least(1))
    """How many epochs' rollouts the model pool holds."""
    model_hidden_sizes: tuple[int, ...] = field(default=(200, 200, 200, 200), metadata=WIDTHS)
    """Hidden layers of the model's networks."""
    model_learning_rate: float = field(default=1e-3, metadata=POSITIVE)
    """Adam's, for the model."""
    model_batch_size: int = field(default=64, metadata=at_least(1))
    """Transitions per gradient step of each of the model's networks."""
    model_epoch_rows: int = field(default=5_000, metadata=at_least(1))
    """Rows at most in an epoch of a fit, of each network's sample of the real transitions."""
    ensemble_size: int = field(default=7, metadata=at_least(1))
    """Networks of the model …"""
    num_elites: int = field(default=5, metadata=at_least(1))
    """… of which the best on held-out data predict."""
    flow_every: int = field(default=1_000, metadata=at_least(1))
    """Environment steps between updates of the flow."""
    flow_updates: int = field(default=10, metadata=at_least(1))
    """Gradient steps of an update of the flow."""
    flow_batch_size: int = field(default=256, metadata=at_least(1))
    """Real and predicted transitions per gradient step of the flow."""
    flow_rollout_states: int = field(default=1_000, metadata=at_least(1))
    """Real states from which the model is rolled out for an update of the flow …"""
    flow_rollout_steps: int = field(default=2, metadata=at_least(1))
    """… for so many steps."""
    model_agent_every: int = field(default=250, metadata=at_least(1))
    """Environment steps between improvements of the model by the flow."""
    model_agent_updates: int = field(default=20, metadata=at_least(1))
    """Gradient steps of an improvement."""

    def check(self) -> None:
        super().check()
        first, last, shortest, longest = self.rollout_schedule
        if not (0 <= first <= last and 1 <= shortest <= longest):
            raise ValueError(
                "rollout_schedule: expected two epochs in order and two lengths in order from 1, "
                f"got {self.rollout_schedule}"
            )
        if self.num_elites > self.ensemble_size:
            raise ValueError(
                f"num_elites: expected at most ensemble_size = {self.ensemble_size}, got "
                f"{self.num_elites}"
            )
        why = "the model's rollouts, most of what is learned from, are replayed as they are"
        check_fixed(self, ("n_step", 1, why), ("her_goals", 0, why))
        if self.batch_size < self.num_elites:
            raise ValueError(
                f"batch_size: expected at least num_elites = {self.num_elites}, got "
                f"{self.batch_size}"
            )
        if self.learning_starts < self.fewest_starts():
            raise ValueError(
                f"learning_starts: the model needs at least batch_size = {self.batch_size} real "
                f"transitions to begin with, got {self.learning_starts}"
            )

    def fewest_starts(self) -> int:
        return self.batch_size

    def busy_steps(self) -> tuple[int, int] | None:
        """The iteration in which fit, rollout, flow and agent fall due for the second time together
        (the first fit takes far longer than others); in a short run the first time."""
        due = [self.model_every]
        if self.dynamics == "flow":
            due += [self.flow_every, self.model_agent_every]
        steps = math.lcm(*due)
        first = self.learning_starts + steps - steps % self.log_every  # where an iteration begins
        if first >= self.total_steps:
            first = self.learning_starts
        return first, first + 1

    def rollout_length(self, step: int) -> int:
        """The length of the model's rollouts at an environment step after the random ones."""
        first, last, shortest, longest = self.rollout_schedule
        epoch = step // self.epoch_steps
        progress = (epoch - first) / max(last - first, 1)
        return int(shortest + min(max(progress, 0.0), 1.0) * (longest - shortest))

    def model_pool_size(self, rollout_length: int) -> int:
        """Rows of the model pool."""
        rollouts = self.rollout_batch * max(1, self.epoch_steps // self.model_every)
        return rollouts * rollout_length * self.model_retain_epochs


class MBPO(SACTraining[Config]):
    """The algorithm; :func:`train` drives it.

    Args:
        config: The options.
        restore: A :meth:`state_dict`, to continue from it.

    Raises:
        ValueError: The environment's actions are not continuous, or its termination is no function
            of the observation.
    """

    PHASES = ("sample", "model", "rollout", "flow", "update")

    def __init__(self, config: Config, restore: dict[str, Any] | None = None):
        super().__init__(config)
        try:
            self.terminates = termination_rule(self.envs)
        except ValueError:
            self.envs.close()
            raise
        layout, device = self.layout, self.device
        self.model = EnsembleDynamics(
            layout,
            config.streams(Stream.MODEL),
            DynamicsOptions(
                ensemble_size=config.ensemble_size,
                num_elites=config.num_elites,
                hidden_sizes=config.model_hidden_sizes,
                learning_rate=config.model_learning_rate,
                batch_size=config.model_batch_size,
                max_epoch_rows=config.model_epoch_rows,
                bfloat16=config.amp,
                native=config.accelerate in ("auto", "native"),
                num_threads=config.torch_threads,
            ),
            device,
        )
        longest = config.model_pool_size(config.rollout_schedule[3])
        self.model_pool = ReplayPool(config.num_seeds, longest, layout.width, device)
        self.parts += ["model", "model_pool"]
        self.learned.append("model")
        if config.dynamics == "flow":
            self.flow_agent = FlowAgent(
                layout, config.streams(Stream.FLOW), FlowOptions(), self.model, self.learner
            )
            rows = config.flow_rollout_states * config.flow_rollout_steps
            self.flow_pool = ReplayPool(config.num_seeds, rows, layout.width, device)
            self.parts.append("flow_agent")
            self.learned.append("flow_agent")
        if restore is not None:
            self.load_state_dict(restore)

    @property
    def acceleration(self) -> Choice:
        """The accelerator of SAC's gradient steps; its note says why the model's have none."""
        choice, model = super().acceleration, self.model.choice
        notes = [choice.note, model.note if model.changes else ""]
        return choice._replace(note="\n".join(filter(None, notes)))

    # ---- the step ----------------------------------------------------------------------------

    def step(self, metrics: dict[str, float]) -> None:
        """A step of every environment, after all that is due before it."""
        config = self.config
        step = self.global_step - config.learning_starts
        if self._is_due(step, config.model_every):
            self._fit_model(metrics)
        if config.dynamics == "flow":
            if self._is_due(step, config.flow_every):
                self._update_flow(metrics)
            if self._is_due(step, config.model_agent_every):
                self._improve_model(metrics)
        if self._is_due(step, config.model_every):
            self._fill_model_pool(step, metrics)
        self.advance(1)

    def _is_due(self, step: int, every: int) -> bool:
        """Whether a multiple of ``every`` was reached with the last step of the environments."""
        return step < self.config.num_envs or step // every > (step - self.config.num_envs) // every

    # ---- the model ---------------------------------------------------------------------------

    def _fit_model(self, metrics: dict[str, float]) -> None:
        with self.timed("model"), span("fit"):
            rows = torch.stack(self.env_pool.rows())  # seeds step alike: as many rows each
            report = self.model.fit(rows, self.streams)
            errors = report.holdout_errors.gather(1, self.model.elites)
            metrics["loss/model"] = float(errors.mean())
            metrics["model/epochs"] = sum(report.num_epochs) / len(report.num_epochs)

    def _fill_model_pool(self, step: int, metrics: dict[str, float]) -> None:
        """Branched rollouts from real states, of the scheduled length."""
        config = self.config
        with self.timed("rollout"), span("rollout"):
            length = config.rollout_length(step)
            self.model_pool.resize(config.model_pool_size(length))
            self._roll_out(config.rollout_batch, length, self.model_pool)
            metrics["model/rollout_length"] = float(length)
            metrics["model/pool_size"] = float(self.model_pool.sizes.double().mean())

    @torch.no_grad()
    def _roll_out(self, num_states: int, num_steps: int, pool: ReplayPool) -> None:
        """Follows the policy in the model from real states; terminal states end a rollout.

        What is drawn has the size of all states, whatever is left of them, so that seeds side by
        side draw what each would alone.
        """
        layout = self.layout
        elites = self.config.num_elites
        obs = layout.obs(self.env_pool.draw(self.streams.uniform(num_states)))  # (K, n, obs_size)
        size = num_states + (-num_states) % elites
        alive = torch.ones(obs.shape[:2], dtype=torch.bool, device=self.device)
        for step in range(num_steps):
            obs, alive = _padded(obs, elites), _padded(alive[..., None], elites)[..., 0]
            left = obs.shape[1]
            actions = self.learner.act(obs, self.streams.normal(size, layout.action_size)[:, :left])
            noise = self.streams.normal(size, 1 + layout.obs_size)[:, :left].contiguous()
            rewards, next_obs = self.model.predict(torch.cat((obs, actions), -1), noise)
            terminated = self.terminates(next_obs)
            pool.add(layout.pack(obs, actions, next_obs, rewards, terminated), alive)
            if step + 1 == num_steps:
                return
            # the living to the front, in new random order: each meets another elite
            alive &= ~terminated
            keys = self.streams.uniform(size)[:, :left] + (~alive).double()
            most = max(int(alive.sum(1).max()), 1)
            order = keys.argsort(1)[:, :most]
            obs = next_obs.gather(1, order[..., None].expand(-1, -1, obs.shape[-1]))
            alive = alive.gather(1, order)

    # ---- the flow ----------------------------------------------------------------------------

    def _update_flow(self, metrics: dict[str, float]) -> None:
        """Teaches the flow to tell fresh rollouts of the model from real transitions."""
        config = self.config
        count, size = config.flow_updates, config.flow_batch_size
        with self.timed("flow"), span("flow"):
            self.flow_agent.standardise_by(
                self.env_pool.draw(self.streams.uniform(_STANDARDISE_ROWS))
            )
            self.flow_pool.clear()
            self._roll_out(config.flow_rollout_states, config.flow_rollout_steps, self.flow_pool)
            real = self.env_pool.draw(self.streams.uniform(count, size))
            predicted = self.flow_pool.draw(self.streams.uniform(count, size))
            for env_rows, model_rows in zip(real, predicted, strict=True):
                losses = self.flow_agent.update_flow(env_rows, model_rows)
            metrics["loss/flow"] = float(losses.mean())

    def _improve_model(self, metrics: dict[str, float]) -> None:
        """The agent whose policy is the model makes it look more real to the flow."""
        config = self.config
        with self.timed("flow"), span("agent"):
            uniform = self.streams.uniform(config.model_agent_updates, config.batch_size)
            rewards = self.flow_agent.improve_model(self.env_pool.draw(uniform), self.streams)
            metrics["flow/reward"] = float(rewards.mean())

    # ---- the policy --------------------------------------------------------------------------

    def draw_rows(self, count: int, size: int) -> Tensor:
        """Minibatches of mostly predicted transitions, ``(count, K, size, width)``."""
        num_real = int(self.config.real_ratio * size)
        parts = []
        for pool, part in ((self.env_pool, num_real), (self.model_pool, size - num_real)):
            if part > 0:
                parts.append(pool.draw(self.streams.uniform(count, part)))
        return torch.cat(parts, 2)


def _padded(rows: Tensor, multiple: int) -> Tensor:
    """``(K, n, …)`` filled up with zeros to a multiple of rows."""
    missing = (-rows.shape[1]) % multiple
    if missing == 0:
        return rows
    return torch.cat((rows, rows.new_zeros(len(rows), missing, *rows.shape[2:])), 1)


train, load_policy = entry_points(lambda: MBPO)
