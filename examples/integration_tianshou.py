"""Tianshou's PPO: ``python examples/integration_tianshou.py [num_steps]``."""

import sys

from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import VectorEnvNormObs
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from torch.distributions import Independent, Normal

from pyfastenv.integrations.tianshou import make_tianshou

num_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
envs = make_tianshou("Hopper-v5", 16)  # was: SubprocVectorEnv([lambda: gym.make(…)] * 16)
envs.seed(0)
net = Net(state_shape=11, hidden_sizes=(64, 64))
policy = ProbabilisticActorPolicy(
    actor=ContinuousActorProbabilistic(preprocess_net=net, action_shape=3, unbounded=True),
    dist_fn=lambda mean_and_std: Independent(Normal(*mean_and_std), 1),
    action_space=envs.action_space[0],
)
critic = ContinuousCritic(preprocess_net=Net(state_shape=11, hidden_sizes=(64, 64)))
ppo = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=3e-4), ent_coef=0.0)
collector = Collector(ppo, VectorEnvNormObs(envs), VectorReplayBuffer(2048, 16))
parameters = OnPolicyTrainerParams(
    training_collector=collector,
    max_epochs=num_steps // 2048,
    epoch_num_steps=2048,
    update_step_num_repetitions=10,
    show_progress=False,
)
ppo.run_training(parameters)
print("return", collector.collect(n_episode=16, reset_before_collect=True).returns_stat)
envs.close()
