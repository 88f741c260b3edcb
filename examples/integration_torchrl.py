"""TorchRL's PPO: ``python examples/integration_torchrl.py [total_steps]``."""

import sys

import torch
from tensordict.nn import AddStateIndependentNormalScale, TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import Compose, RewardSum, TransformedEnv, VecNormV2
from torchrl.modules import MLP, IndependentNormal, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from pyfastenv.integrations.torchrl import make_torchrl

total_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 98 * 2048
torch.set_num_threads(1)
torch.manual_seed(0)
env = make_torchrl("HalfCheetah-v5", num_envs=16)  # was: ParallelEnv(16, lambda: GymEnv(...))
norm = VecNormV2(in_keys=["observation"], decay=1.0, reduce_batch_dims=True)
env = TransformedEnv(env, Compose(norm, RewardSum()))
net = torch.nn.Sequential(MLP(17, 6, num_cells=[64, 64]), AddStateIndependentNormalScale(6))
net = TensorDictModule(net, ["observation"], ["loc", "scale"])
kwargs = {"distribution_class": IndependentNormal, "return_log_prob": True}
actor = ProbabilisticActor(net, ["loc", "scale"], **kwargs)
critic = ValueOperator(MLP(17, 1, num_cells=[64, 64]))
loss_module = ClipPPOLoss(actor, critic, entropy_bonus=False)
gae = GAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=True)
adam = torch.optim.Adam(loss_module.parameters(), lr=3e-4)
frames = {"frames_per_batch": 2048, "total_frames": total_steps}
for batch in Collector(env, actor, **frames, auto_register_policy_transforms=False):
    for _ in range(10):
        gae(batch)
        for rows in torch.randperm(batch.numel()).split(256):
            losses = loss_module(batch.reshape(-1)[rows])
            adam.zero_grad()
            (losses["loss_objective"] + losses["loss_critic"]).backward()
            adam.step()
    if (ended := batch["next", "done"]).any():
        print(f"mean return {batch['next', 'episode_reward'][ended].mean():,.0f}")
