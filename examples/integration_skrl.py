"""skrl's PPO: ``python examples/integration_skrl.py [timesteps]``, each of 32 environments."""

import sys

import torch
from skrl.utils.runner.torch import Runner

from pyfastenv.integrations.skrl import make_skrl

timesteps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
torch.set_num_threads(1)
env = make_skrl("HalfCheetah-v5", num_envs=32)  # was: wrap_env(gymnasium.make_vec(...))
network = [{"name": "net", "input": "OBSERVATIONS", "layers": [64, 64], "activations": "tanh"}]
agent = {
    "class": "PPO",
    "rollouts": 64,
    "learning_epochs": 10,
    "mini_batches": 8,
    "learning_rate": 3e-4,
    "observation_preprocessor": "RunningStandardScaler",
    "observation_preprocessor_kwargs": {"size": env.observation_space},
    "value_preprocessor": "RunningStandardScaler",
    "value_preprocessor_kwargs": {"size": 1},
}
policy = {"class": "GaussianMixin", "clip_actions": True, "network": network, "output": "ACTIONS"}
value = {"class": "DeterministicMixin", "network": network, "output": "ONE"}
trainer = {"class": "SequentialTrainer", "timesteps": timesteps, "disable_progressbar": True}
models = {"separate": True, "policy": policy, "value": value}
memory = {"class": "RandomMemory", "memory_size": -1}
cfg = {"seed": 0, "models": models, "memory": memory, "agent": agent, "trainer": trainer}
runner = Runner(env, cfg)
runner.run("train")
runner.agent.enable_training_mode(False)
rewards = 0.0
with torch.no_grad():
    for _ in range(env.max_episode_steps):
        outputs = runner.agent.act(env.reset()[0], None, timestep=0, timesteps=0)[1]
        rewards += env.step(outputs["mean_actions"])[1].mean().item()
print(f"mean return {rewards:,.0f}; curves are in {runner.agent.experiment_dir}")
