"""A2C in gymnasium's vector wrappers: ``python examples/integration_gymnasium.py [iterations]``."""

import sys

import gymnasium
import torch
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics
from torch import distributions, nn

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
envs = gymnasium.make_vec("pyfastenv:pyfastenv/InvertedPendulum-v5", num_envs=64)
statistics = RecordEpisodeStatistics(envs)
envs = NormalizeReward(NormalizeObservation(statistics))
actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1), nn.Flatten(0))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
obs, ended = torch.from_numpy(envs.reset(seed=0)[0]), torch.zeros(64, dtype=torch.bool)
for iteration in range(iterations):
    steps = []
    for _ in range(8):
        policy, value = distributions.Normal(actor(obs), 0.5), critic(obs)
        actions = policy.sample()
        results = [torch.from_numpy(array) for array in envs.step(actions.numpy())[:4]]
        obs, rewards, terminated, truncated = results
        steps.append((policy.log_prob(actions)[:, 0], value, rewards, terminated, ended))
        ended = terminated | truncated
    loss, returns = 0, critic(obs).detach()
    for log_prob, value, rewards, terminated, is_reset in reversed(steps):
        # NEXT_STEP: the step after an ending one is a reset; its row belongs to no episode
        returns = torch.where(is_reset, value.detach(), rewards + 0.99 * ~terminated * returns)
        advantages = (returns - value) * ~is_reset
        loss += (0.5 * advantages.square() - log_prob * advantages.detach()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 20 == 19:
        print(f"iteration {iteration}: return {sum(statistics.return_queue) / 100:.0f}")
