"""CleanRL's ppo_continuous_action: ``python examples/integration_cleanrl_ppo.py [total_steps]``."""

import sys

import torch
from torch import distributions, nn

from pyfastenv.integrations.cleanrl import make_cleanrl_ppo
from pyfastenv.nn.functional import gae

total_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
envs = make_cleanrl_ppo("HalfCheetah-v5", num_envs=8)  # was: SyncVectorEnv([make_env(…), …])
actor = nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))
value = nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
log_std = nn.Parameter(torch.zeros(6))
optimizer = torch.optim.Adam([*actor.parameters(), *value.parameters(), log_std], lr=3e-4)
next_obs = torch.Tensor(envs.reset(seed=1)[0])
for global_step in range(2048, total_steps + 1, 2048):
    steps = []
    for _ in range(256):
        obs, action = next_obs, distributions.Normal(actor(next_obs), log_std.exp()).sample()
        next_obs, reward, terminations, truncations, infos = envs.step(action.numpy())
        next_obs, done = torch.Tensor(next_obs), torch.from_numpy(terminations | truncations)
        steps.append((obs, action, torch.Tensor(reward), done))
        if "final_info" in infos:
            print(global_step, "episodic_return", infos["final_info"]["episode"]["r"].mean())
    obs, actions, rewards, dones = (torch.stack(column) for column in zip(*steps, strict=True))
    values = value(torch.cat([obs, next_obs[None]])).detach().squeeze(2)
    advantages = gae(rewards, values[:-1], values[1:] * ~dones, dones, gamma=0.99, gae_lambda=0.95)
    old = distributions.Normal(actor(obs), log_std.exp()).log_prob(actions).sum(2).detach()
    for t, i in ((mb // 8, mb % 8) for _ in range(10) for mb in torch.randperm(2048).split(64)):
        new = distributions.Normal(actor(obs[t, i]), log_std.exp()).log_prob(actions[t, i]).sum(1)
        ratio = (new - old[t, i]).exp()
        adv = (advantages[t, i] - advantages.mean()) / advantages.std()
        loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
        loss += (value(obs[t, i]).squeeze(1) - (advantages + values[:-1])[t, i]).square().mean() / 4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
