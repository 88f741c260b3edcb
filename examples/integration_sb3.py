"""Stable-Baselines3's PPO: ``python examples/integration_sb3.py [total_steps]``."""

import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from pyfastenv.integrations.sb3 import make_sb3

total_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
torch.set_num_threads(1)
venv = VecNormalize(make_sb3("HalfCheetah-v5", num_envs=16, seed=0))  # was: make_vec_env(...)
model = PPO("MlpPolicy", venv, n_steps=128, batch_size=256, seed=0, device="cpu")
model.learn(total_steps)
venv.training = venv.norm_reward = False
mean, spread = evaluate_policy(model, venv, n_eval_episodes=16)
print(f"return {mean:,.0f} ± {spread:,.0f} after {model.num_timesteps:,} steps")
venv.close()
