"""CleanRL's sac_continuous_action: ``python examples/integration_cleanrl_sac.py [total_steps]``."""

import sys

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pyfastenv.integrations.cleanrl import make_cleanrl
from pyfastenv.nn.functional import squashed_gaussian
from pyfastenv.nn.networks import MLP
from pyfastenv.sampling.buffers import ReplayPool, RowLayout
from pyfastenv.training.actor_critic import Batch

total_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
envs = make_cleanrl("Hopper-v5", num_envs=8)  # was: SyncVectorEnv([make_env(…), …])
actor = MLP([11, 256, 256, 6], activation="relu", gain=None)
qf = MLP([14, 256, 256, 1], activation="relu", num_networks=2, gain=None)  # both critics
qf_target = AveragedModel(qf, multi_avg_fn=get_ema_multi_avg_fn(0.995))
optimizer = torch.optim.Adam([*qf.parameters(), *actor.parameters()], lr=5e-4)
layout = RowLayout(obs_size=11, action_size=3)
rb, (obs, _) = ReplayPool(1, total_steps, layout.width), envs.reset(seed=1)
for global_step in range(0, total_steps, 8):
    pi = squashed_gaussian(actor(torch.Tensor(obs))[0], torch.randn(8, 3), (-5.0, 2.0))
    next_obs, rewards, terminations, truncations, infos = envs.step(pi.actions.detach().numpy())
    real_next_obs = next_obs.copy()
    if "final_info" in infos:
        real_next_obs[infos["_final_obs"]] = list(infos["final_obs"][infos["_final_obs"]])
        print(global_step, "episodic_return", infos["final_info"]["episode"]["r"].max())
    new = (obs, pi.actions.detach(), real_next_obs, rewards, terminations)
    rb.add(layout.pack(*map(torch.as_tensor, new))[None])
    data, obs = Batch.of(rb.draw(torch.rand(1, 256, dtype=torch.float64))[0], layout), next_obs
    pi = squashed_gaussian(actor(data.next_obs)[0], torch.randn(256, 3), (-5.0, 2.0))
    next_q = qf_target(torch.cat([data.next_obs, pi.actions], 1)).amin(0)[:, 0]
    target = data.rewards + 0.99 * data.continues * (next_q - 0.2 * pi.log_probs).detach()
    optimizer.zero_grad()
    (qf(torch.cat([data.obs, data.actions], 1))[:, :, 0] - target).square().sum(0).mean().backward()
    pi = squashed_gaussian(actor(data.obs)[0], torch.randn(256, 3), (-5.0, 2.0))
    q = qf(torch.cat([data.obs, pi.actions], 1)).amin(0)[:, 0]
    (0.2 * pi.log_probs - q).mean().backward(inputs=[*actor.parameters()])
    optimizer.step()
    qf_target.update_parameters(qf)
