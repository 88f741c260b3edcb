"""rsl_rl's PPO: ``python examples/integration_rsl_rl.py [iterations]`` of 64 environments."""

import sys

import torch
from rsl_rl.runners import OnPolicyRunner

from pyfastenv.integrations.rsl_rl import make_rsl_rl

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.set_num_threads(1)
torch.manual_seed(0)
env = make_rsl_rl("HalfCheetah-v5", num_envs=64, seed=0)
network = {"class_name": "MLPModel", "hidden_dims": [64, 64], "obs_normalization": True}
noise = {"class_name": "GaussianDistribution", "init_std": 1.0}
cfg = {
    "num_steps_per_env": 32,
    "save_interval": 1000,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    "actor": {**network, "distribution_cfg": noise},
    "critic": network,
    "algorithm": {"class_name": "PPO", "learning_rate": 3e-4, "rnd_cfg": None},
}
runner = OnPolicyRunner(env, cfg)
runner.learn(iterations)
policy, obs, rewards = runner.get_inference_policy(), env.get_observations(), 0.0
with torch.inference_mode():
    for _ in range(env.max_episode_length):
        obs, reward, _, _ = env.step(policy(obs))
        rewards += reward.mean().item()
print(f"mean return {rewards:,.0f}")
