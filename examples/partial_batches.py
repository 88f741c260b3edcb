"""Whoever is ready steps on, in halves: ``python examples/partial_batches.py [num_batches]``."""

import sys

import numpy as np

import pyfastenv

num_batches = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
envs = pyfastenv.make_vec("Humanoid-v5", num_envs=32)
rng = np.random.default_rng(0)
envs.async_reset(seed=0)
for _ in range(num_batches):
    obs, rewards, terminations, truncations, infos = envs.recv(min_envs=16)
    actions = rng.uniform(-0.4, 0.4, (len(obs), 17)).astype(np.float32)
    envs.send(actions, infos["env_id"])
envs.recv()
print(f"{envs.stats()['steps']:,} steps, {envs.stats()['episodes']:,} episodes")
envs.close()
