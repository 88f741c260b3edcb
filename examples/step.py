"""Random actions through gymnasium's interface: ``python examples/step.py [num_steps]``."""

import sys

import numpy as np

import pyfastenv

num_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
envs = pyfastenv.make_vec("HalfCheetah-v5", num_envs=64)
obs, infos = envs.reset(seed=0)
rng = np.random.default_rng(0)
for _ in range(num_steps):
    actions = rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32)
    obs, rewards, terminations, truncations, infos = envs.step(actions)
print(f"mean x velocity {infos['x_velocity'].mean():.2f} m/s, {envs.stats()['steps']:,} steps")
envs.close()
