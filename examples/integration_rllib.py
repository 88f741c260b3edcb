"""RLlib's PPO with two env runners: ``python examples/integration_rllib.py [iterations]``."""

import math
import sys

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import MeanStdFilter

from pyfastenv.integrations.rllib import register_rllib

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 40
ray.init(num_cpus=2, include_dashboard=False)  # on a cluster: ray.init(address="auto")
config = (
    PPOConfig()
    .environment(register_rllib("HalfCheetah-v5", obs_dtype="float32"))
    .env_runners(
        num_env_runners=2,
        num_envs_per_env_runner=16,
        num_cpus_per_env_runner=1,  # the pool's threads
        gym_env_vectorize_mode="vector_entry_point",
        env_to_module_connector=lambda env, spaces, device: MeanStdFilter(),
    )
    .training(train_batch_size=4096, minibatch_size=256, num_epochs=10, lr=3e-4)
    .training(lambda_=0.95, vf_clip_param=math.inf)
    .debugging(log_level="ERROR")
)
algorithm = config.build_algo()
for _ in range(iterations):
    results = algorithm.train()["env_runners"]
    steps = results["num_env_steps_sampled_lifetime"]
    if math.isfinite(mean := results.get("episode_return_mean", math.nan)):
        print(f"return {mean:,.0f} after {steps:,.0f} steps")
print(f"{steps:,.0f} steps in {iterations} iterations")
algorithm.stop()
ray.shutdown()
