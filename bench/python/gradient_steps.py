"""Gradient steps of SAC and PPO, ours and others', in turn: ``make bench NAME=gradients``.

One thread, processor time, the same networks, minibatches and optimiser, minibatches drawn from
each one's own memory of random steps; no step in an environment. CleanRL is no library: its update
is written here as in its single-file programs. Writes gradients.json and gradients.md.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
import tyro
from gymnasium.spaces import Box
from torch import Tensor, nn
from torch.distributions import Independent, Normal
from torch.nn import functional as F

from pyfastenv import _core
from pyfastenv.algorithms import ppo, sac
from pyfastenv.experiments import measure, sections

Run = Callable[[], int]
Sizes = tuple[int, ...]
ENV_ID = "HalfCheetah-v5"
ROWS = 5_000  # of a replay memory
AT_ONCE = 20  # gradient steps of SAC in a call
EPOCHS = 10
STEPS = 2_048  # of a batch of PPO
LEARNING_RATE = 3e-4


def _spaces() -> tuple[Box, Box]:
    """Of observations, in float32 as CleanRL has them, and of actions."""
    return Box(-np.inf, np.inf, (17,)), Box(-1.0, 1.0, (6,))


def _mlp(inputs: int, sizes: Sizes, outputs: int, activation: type[nn.Module]) -> nn.Sequential:
    widths = (inputs, *sizes)
    hidden = [(nn.Linear(a, b), activation()) for a, b in itertools.pairwise(widths)]
    return nn.Sequential(*itertools.chain(*hidden), nn.Linear(widths[-1], outputs))


def _adam(*modules: nn.Module) -> torch.optim.Adam:
    parameters = [p for module in modules for p in module.parameters()]
    return torch.optim.Adam(parameters, lr=LEARNING_RATE)


# ---- SAC -----------------------------------------------------------------------------------------


def our_sac(sizes: Sizes, batch: int, amp: bool, **options: Any) -> tuple[str, Run]:
    """Ours, and by what its steps are computed."""
    config = sac.Config(
        env_id=ENV_ID, hidden_sizes=sizes, batch_size=batch, amp=amp, learning_starts=ROWS,
        buffer_size=ROWS, total_steps=2 * ROWS, num_threads=1, torch_threads=1, **options,
    )  # fmt: skip
    algorithm = sac.SAC(config)
    algorithm.iterate()
    algorithm.schedule()

    def run() -> int:
        algorithm.learn(AT_ONCE)
        return AT_ONCE

    return algorithm.acceleration.name, run


def sb3_sac(sizes: Sizes, batch: int, env_id: str = ENV_ID) -> Run:
    """Stable-Baselines3's."""
    from stable_baselines3 import SAC
    from stable_baselines3.common.logger import Logger

    model = SAC(
        "MlpPolicy", gymnasium.make(env_id), batch_size=batch, buffer_size=ROWS, device="cpu",
        policy_kwargs={"net_arch": list(sizes)},
    )  # fmt: skip
    model.set_logger(Logger(None, []))
    _fill(model.replay_buffer)

    def run() -> int:
        model.train(AT_ONCE, batch)
        return AT_ONCE

    return run


def _fill(buffer: Any) -> None:
    """Random steps in Stable-Baselines3's replay buffer, which is CleanRL's too."""
    random = np.random.default_rng(0)
    for _ in range(buffer.buffer_size):
        obs, next_obs = random.standard_normal((2, 1, *buffer.obs_shape))
        action = random.uniform(-1, 1, (1, buffer.action_dim))
        buffer.add(obs, next_obs, action, random.standard_normal(1), np.zeros(1), [{}])


class _CleanActor(nn.Module):
    def __init__(self, obs_size: int, sizes: Sizes, num_actions: int):
        super().__init__()
        self.body = _mlp(obs_size, sizes[:-1], sizes[-1], nn.ReLU)
        self.mean = nn.Linear(sizes[-1], num_actions)
        self.log_std = nn.Linear(sizes[-1], num_actions)

    def get_action(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        hidden = F.relu(self.body(obs))
        log_std = -5 + 0.5 * (2 + 5) * (torch.tanh(self.log_std(hidden)) + 1)
        normal = Normal(self.mean(hidden), log_std.exp())
        drawn = normal.rsample()
        action = torch.tanh(drawn)
        log_prob = normal.log_prob(drawn) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(1, keepdim=True)


def cleanrl_sac(sizes: Sizes, batch: int) -> Run:
    """The update of CleanRL's sac_continuous_action.py: two of the policy every other step."""
    from stable_baselines3.common.buffers import ReplayBuffer

    obs_space, action_space = _spaces()
    obs_size, num_actions = obs_space.shape[0], action_space.shape[0]
    buffer = ReplayBuffer(ROWS, obs_space, action_space, "cpu", handle_timeout_termination=False)
    _fill(buffer)
    actor = _CleanActor(obs_size, sizes, num_actions)
    critics = [_mlp(obs_size + num_actions, sizes, 1, nn.ReLU) for _ in range(2)]
    targets = copy.deepcopy(critics)
    q_optimizer, actor_optimizer = _adam(*critics), _adam(actor)
    log_alpha = torch.zeros(1, requires_grad=True)
    a_optimizer = torch.optim.Adam([log_alpha], lr=LEARNING_RATE)
    steps = itertools.count()

    def step() -> None:
        data = buffer.sample(batch)
        alpha = log_alpha.exp().item()
        with torch.no_grad():
            actions, log_prob = actor.get_action(data.next_observations)
            inputs = torch.cat([data.next_observations, actions], 1)
            smallest = torch.min(targets[0](inputs), targets[1](inputs)) - alpha * log_prob
            wanted = data.rewards.flatten() + (1 - data.dones.flatten()) * 0.99 * smallest.view(-1)
        inputs = torch.cat([data.observations, data.actions], 1)
        losses = [F.mse_loss(critic(inputs).view(-1), wanted) for critic in critics]
        q_optimizer.zero_grad()
        (losses[0] + losses[1]).backward()
        q_optimizer.step()
        if next(steps) % 2 == 0:
            for _ in range(2):
                actions, log_prob = actor.get_action(data.observations)
                inputs = torch.cat([data.observations, actions], 1)
                smallest = torch.min(critics[0](inputs), critics[1](inputs))
                actor_optimizer.zero_grad()
                (alpha * log_prob - smallest).mean().backward()
                actor_optimizer.step()
                with torch.no_grad():
                    _, log_prob = actor.get_action(data.observations)
                a_optimizer.zero_grad()
                (-log_alpha.exp() * (log_prob - num_actions)).mean().backward()
                a_optimizer.step()
                alpha = log_alpha.exp().item()
        for critic, target in zip(critics, targets, strict=True):
            for mine, other in zip(critic.parameters(), target.parameters(), strict=True):
                other.data.copy_(0.005 * mine.data + 0.995 * other.data)

    def run() -> int:
        for _ in range(AT_ONCE):
            step()
        return AT_ONCE

    return run


def tianshou_sac(sizes: Sizes, batch: int) -> Run:
    """Tianshou's."""
    from tianshou.algorithm import SAC
    from tianshou.algorithm.algorithm_base import policy_within_training_step
    from tianshou.algorithm.modelfree.sac import AutoAlpha, SACPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Batch, ReplayBuffer
    from tianshou.utils.net.common import Net
    from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic

    obs_space, action_space = _spaces()
    shapes = {"state_shape": obs_space.shape, "hidden_sizes": sizes}
    actor = ContinuousActorProbabilistic(
        preprocess_net=Net(**shapes), action_shape=action_space.shape, unbounded=True,
        conditioned_sigma=True,
    )  # fmt: skip
    critics = [
        ContinuousCritic(preprocess_net=Net(**shapes, action_shape=action_space.shape, concat=True))
        for _ in range(2)
    ]
    adam = AdamOptimizerFactory(lr=LEARNING_RATE)
    algorithm = SAC(
        policy=SACPolicy(actor=actor, action_space=action_space), policy_optim=adam,
        critic=critics[0], critic_optim=adam, critic2=critics[1], critic2_optim=adam,
        alpha=AutoAlpha(-float(action_space.shape[0]), 0.0, adam),
    )  # fmt: skip
    buffer, random = ReplayBuffer(ROWS), np.random.default_rng(0)
    for _ in range(ROWS):
        obs, obs_next = random.standard_normal((2, *obs_space.shape)).astype(np.float32)
        action = random.uniform(-1, 1, action_space.shape).astype(np.float32)
        buffer.add(
            Batch(
                obs=obs, act=action, rew=random.standard_normal(), terminated=False,
                truncated=False, obs_next=obs_next, info={},
            )
        )  # fmt: skip

    def run() -> int:
        with policy_within_training_step(algorithm.policy):
            for _ in range(AT_ONCE):
                algorithm.update(buffer, batch)
        return AT_ONCE

    return run


# ---- PPO -----------------------------------------------------------------------------------------


def our_ppo(sizes: Sizes, batch: int, amp: bool, **options: Any) -> tuple[str, Run]:
    """Ours, and by what its steps are computed."""
    config = ppo.Config(
        env_id=ENV_ID, hidden_sizes=sizes, minibatch_size=batch, amp=amp, num_envs=8,
        num_steps=STEPS // 8, update_epochs=EPOCHS, num_threads=1, torch_threads=1, **options,
    )  # fmt: skip
    algorithm = ppo.PPO(config)
    for _ in range(2):
        algorithm.iterate()
    width = algorithm.obs_size + algorithm.envs.single_action_space.shape[0] + 4
    packed = torch.randn(STEPS, width)

    def run() -> int:
        algorithm._update(packed)
        return EPOCHS * STEPS // batch

    return algorithm.acceleration.name, run


def sb3_ppo(sizes: Sizes, batch: int) -> Run:
    """Stable-Baselines3's."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import Logger

    model = PPO(
        "MlpPolicy", gymnasium.make(ENV_ID), n_steps=STEPS, batch_size=batch, n_epochs=EPOCHS,
        device="cpu", policy_kwargs={"net_arch": list(sizes)},
    )  # fmt: skip
    model.set_logger(Logger(None, []))
    model.learn(STEPS)

    def run() -> int:
        model.train()
        return EPOCHS * STEPS // batch

    return run


def cleanrl_ppo(sizes: Sizes, batch: int) -> Run:
    """The update of CleanRL's ppo_continuous_action.py."""
    obs_space, action_space = _spaces()
    obs_size, num_actions = obs_space.shape[0], action_space.shape[0]
    actor = _mlp(obs_size, sizes, num_actions, nn.Tanh)
    critic = _mlp(obs_size, sizes, 1, nn.Tanh)
    log_std = nn.Parameter(torch.zeros(1, num_actions))
    parameters = [*critic.parameters(), *actor.parameters(), log_std]
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, eps=1e-5)
    obs, actions = torch.randn(STEPS, obs_size), torch.randn(STEPS, num_actions)
    log_probs, advantages, returns, values = torch.randn(4, STEPS)
    clip_fractions: list[float] = []

    def step(rows: Any) -> None:
        normal = Normal(actor(obs[rows]), log_std.expand(len(rows), -1).exp())
        log_ratio = normal.log_prob(actions[rows]).sum(1) - log_probs[rows]
        ratio = log_ratio.exp()
        with torch.no_grad():
            ((ratio - 1) - log_ratio).mean()
            clip_fractions[:] = [((ratio - 1.0).abs() > 0.2).float().mean().item()]
        mine = advantages[rows]
        mine = (mine - mine.mean()) / (mine.std() + 1e-8)
        policy_loss = torch.max(-mine * ratio, -mine * torch.clamp(ratio, 0.8, 1.2)).mean()
        value = critic(obs[rows]).view(-1)
        clipped = values[rows] + torch.clamp(value - values[rows], -0.2, 0.2)
        errors = torch.max((value - returns[rows]) ** 2, (clipped - returns[rows]) ** 2)
        loss = policy_loss - 0.0 * normal.entropy().sum(1).mean() + 0.5 * 0.5 * errors.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()

    def run() -> int:
        order = np.arange(STEPS)
        for _ in range(EPOCHS):
            np.random.shuffle(order)
            for start in range(0, STEPS, batch):
                step(order[start : start + batch])
        return EPOCHS * STEPS // batch

    return run


def tianshou_ppo(sizes: Sizes, batch: int) -> Run:
    """Tianshou's."""
    from tianshou.algorithm import PPO
    from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Batch
    from tianshou.utils.net.common import Net
    from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic

    obs_space, action_space = _spaces()
    shapes = {"state_shape": obs_space.shape, "hidden_sizes": sizes, "activation": nn.Tanh}
    actor = ContinuousActorProbabilistic(
        preprocess_net=Net(**shapes), action_shape=action_space.shape, unbounded=True
    )
    policy = ProbabilisticActorPolicy(
        actor=actor,
        dist_fn=lambda parts: Independent(Normal(*parts), 1),
        action_space=action_space,
    )
    algorithm = PPO(
        policy=policy, critic=ContinuousCritic(preprocess_net=Net(**shapes)),
        optim=AdamOptimizerFactory(lr=LEARNING_RATE), max_grad_norm=0.5, ent_coef=0.0,
    )  # fmt: skip
    data = Batch(
        obs=np.random.default_rng(0).standard_normal((STEPS, *obs_space.shape), np.float32),
        act=torch.randn(STEPS, *action_space.shape), logp_old=torch.randn(STEPS),
        adv=torch.randn(STEPS), returns=torch.randn(STEPS), v_s=torch.randn(STEPS), info={},
    )  # fmt: skip
    policy.is_within_training_step = True

    def run() -> int:
        algorithm._update_with_batch(data, batch, EPOCHS)
        return EPOCHS * STEPS // batch

    return run


# ---- measuring -----------------------------------------------------------------------------------

Makers = dict[str, Callable[[Sizes, int], Run]]
OTHERS: dict[str, Makers] = {
    "sac": {"Stable-Baselines3": sb3_sac, "CleanRL": cleanrl_sac, "Tianshou": tianshou_sac},
    "ppo": {"Stable-Baselines3": sb3_ppo, "CleanRL": cleanrl_ppo, "Tianshou": tianshou_ppo},
}
OURS = {"sac": our_sac, "ppo": our_ppo}


def measured(name: str, sizes: Sizes, batch: int, layer_norm: bool, quick: bool) -> dict[str, Any]:
    """Gradient steps a second of processor time, and our ratio to each of the others', which
    normalise no layers."""
    kinds = {"float32": False} | ({"--amp": True} if _core.bfloat16_unit() else {})
    ours = {
        f"pyfastenv, {kind}": OURS[name](sizes, batch, amp, layer_norm=layer_norm)
        for kind, amp in kinds.items()
    }
    runs = {label: run for label, (_, run) in ours.items()}
    if not layer_norm:
        runs |= {label: make(sizes, batch) for label, make in OTHERS[name].items()}
    how = (0.2, 2) if quick else (0.5, 5)
    found = measure.compared(measure.race(runs, *how, clock=time.process_time))
    about = {"hidden_sizes": sizes, "batch_size": batch}
    return about | {"by": {label: by for label, (by, _) in ours.items()}} | found


SECTIONS = {
    "sac": ("sac", (256, 256), 256, False),
    "sac_small": ("sac", (256, 256), 64, False),
    "sac_norm": ("sac", (256, 256), 256, True),
    "ppo": ("ppo", (64, 64), 64, False),
    "ppo_wide": ("ppo", (256, 256), 512, False),
    "ppo_norm": ("ppo", (256, 256), 512, True),
}


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    torch.set_num_threads(1)
    sections.run(
        "gradients",
        {key: partial(measured, *about, options.quick) for key, about in SECTIONS.items()},
        options,
        template=Path(__file__).parent / "templates" / "gradients.md",
    )


if __name__ == "__main__":
    main()
