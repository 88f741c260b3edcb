"""mjlab's Go1 learns to walk: ``python examples/integration_mjlab.py [iterations [num_envs]]``."""

import sys
from dataclasses import asdict

import torch
from mjlab.envs import ManagerBasedRlEnv, manager_based_rl_env
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg

from pyfastenv.integrations.mjlab import Simulation

iterations, num_envs = (*map(int, sys.argv[1:]), *(300, 512)[len(sys.argv) - 1 :])
manager_based_rl_env.Simulation = Simulation  # all else is mjlab's

task = "Mjlab-Velocity-Flat-Unitree-Go1"
cfg = load_env_cfg(task)
cfg.scene.num_envs = num_envs
cfg.seed = 0
torch.set_num_threads(1)
env = RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg, device="cpu"))
agent = load_rl_cfg(task)
agent.logger = "tensorboard"
runner = MjlabOnPolicyRunner(env, asdict(agent), log_dir="mjlab-go1")
runner.learn(iterations)
