"""REINFORCE on CartPole, sampled in the pool: ``python examples/rollout.py [iterations]``."""

import sys

import torch

import pyfastenv
from pyfastenv.nn.functional import linear_scan
from pyfastenv.nn.networks import from_sequential

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 100
torch.manual_seed(0)
envs = pyfastenv.make_vec("CartPole-v1", num_envs=32, autoreset_mode="SameStep")
envs.reset(seed=0)
policy = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for i in range(iterations):
    spec = from_sequential(policy, distribution="categorical")
    batch = pyfastenv.rollout(envs, spec, num_steps=128)
    ended = batch.terminations | batch.truncations
    returns = linear_scan(batch.rewards, 0.98 * (~ended).float())
    log_probs = torch.distributions.Categorical(logits=policy(batch.obs)).log_prob(batch.actions)
    loss = -(log_probs * (returns - returns.mean()) / returns.std()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (i + 1) % 20 == 0 and len(batch.episodes) > 0:
        print(f"iteration {i + 1}: mean return {batch.episodes.returns.mean():.0f}")
envs.close()
