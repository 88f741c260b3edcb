"""PPO in one file, to own every line: ``python examples/ppo.py --env-id Hopper-v5 --seed 1``.

Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347) with the usual details (Huang
et al. 2022, "The 37 implementation details of proximal policy optimization"), on tensors from
`TorchVectorEnv`. `pyfastenv train ppo` has more and is faster: it samples inside the pool.
"""

import time
from dataclasses import dataclass

import numpy as np
import torch
import tyro
from torch import nn
from torch.distributions import Normal

import pyfastenv


@dataclass
class Args:
    """The options."""

    env_id: str = "HalfCheetah-v5"
    seed: int = 1
    total_steps: int = 300_000
    num_envs: int = 16
    num_steps: int = 128
    """Steps of each environment between two updates."""
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    update_epochs: int = 10
    minibatch_size: int = 256
    clip_coef: float = 0.2
    value_coef: float = 0.5
    max_grad_norm: float = 0.5
    device: str = "cpu"


class Moments:
    """Running mean and variance of rows (Chan et al. 1979)."""

    def __init__(self, shape: tuple[int, ...], device: str):
        self.mean, self.var = torch.zeros(shape, device=device), torch.ones(shape, device=device)
        self.count = 1e-4

    def update(self, x: torch.Tensor) -> None:
        """Adds a batch (n, *shape)."""
        n, mean, var = len(x), x.mean(0), x.var(0, unbiased=False)
        total, delta = self.count + n, mean - self.mean
        self.mean = self.mean + delta * n / total
        self.var = (
            self.var * self.count + var * n + delta.square() * self.count * n / total
        ) / total
        self.count = total


def linear(size_in: int, size_out: int, gain: float) -> nn.Linear:
    """A layer with orthogonal weights."""
    layer = nn.Linear(size_in, size_out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    """A Gaussian policy and a value function."""

    def __init__(self, obs_size: int, action_size: int):
        super().__init__()

        def network(size_out: int, gain: float) -> nn.Sequential:
            return nn.Sequential(
                linear(obs_size, 64, 2**0.5), nn.Tanh(), linear(64, 64, 2**0.5), nn.Tanh(),
                linear(64, size_out, gain),
            )  # fmt: skip

        self.actor, self.critic = network(action_size, 0.01), network(1, 1.0)
        self.log_std = nn.Parameter(torch.full((action_size,), -1.0))

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """(…, obs_size) -> (…)."""
        return self.critic(obs).squeeze(-1)

    def policy(self, obs: torch.Tensor) -> Normal:
        """The distribution of actions (…, action_size)."""
        return Normal(self.actor(obs), self.log_std.exp())


def train(args: Args) -> list[float]:
    """Trains; returns the mean return of each iteration in which episodes ended."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # small networks are slower with more
    T, N, device = args.num_steps, args.num_envs, args.device
    envs = pyfastenv.TorchVectorEnv(
        pyfastenv.make_vec(args.env_id, N, autoreset_mode="SameStep", obs_dtype="float32"), device
    )
    obs_size = envs.single_observation_space.shape[0]
    space = envs.single_action_space
    low, high = (torch.as_tensor(x, device=device) for x in (space.low, space.high))
    action_size = space.shape[0]
    agent = Agent(obs_size, action_size).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    obs_moments = Moments((obs_size,), device)
    return_moments = Moments((), device)

    def normalise(x: torch.Tensor) -> torch.Tensor:
        return ((x - obs_moments.mean) / (obs_moments.var + 1e-8).sqrt()).clamp(-10, 10)

    obs = torch.zeros(T, N, obs_size, device=device)
    actions = torch.zeros(T, N, action_size, device=device)
    log_probs, rewards, dones, values, last_values = torch.zeros(5, T, N, device=device)
    discounted = torch.zeros(N, device=device)  # the return's running estimate, for its deviation
    episode_return = torch.zeros(N, device=device)
    curve: list[float] = []

    raw_obs, _ = envs.reset(seed=args.seed)
    num_iterations = args.total_steps // (T * N)
    began = time.monotonic()
    for iteration in range(1, num_iterations + 1):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (
            1 - (iteration - 1) / num_iterations
        )
        ended: list[float] = []

        # ---- sample ------------------------------------------------------------------------------
        with torch.no_grad():
            for t in range(T):
                obs_moments.update(raw_obs)
                obs[t] = normalise(raw_obs)
                policy = agent.policy(obs[t])
                actions[t] = policy.sample()
                log_probs[t] = policy.log_prob(actions[t]).sum(-1)
                values[t] = agent.value(obs[t])
                raw_obs, reward, terminated, truncated, infos = envs.step(
                    actions[t].clamp(low, high)
                )
                done = terminated | truncated
                episode_return += reward
                discounted = discounted * args.gamma + reward
                return_moments.update(discounted)
                rewards[t] = (reward / (return_moments.var + 1e-8).sqrt()).clamp(-10, 10)
                dones[t] = done
                # the value of what follows: of an episode that was cut off, of its last observation
                following = raw_obs.clone()
                for i in done.nonzero().squeeze(-1).tolist():
                    following[i] = torch.as_tensor(infos["final_obs"][i], device=device)
                    ended.append(float(episode_return[i]))
                last_values[t] = agent.value(normalise(following)) * ~terminated
                episode_return *= ~done
                discounted *= ~done

            # ---- advantages: GAE (Schulman et al. 2016, arXiv 1506.02438) ------------------------
            advantages = torch.zeros(T, N, device=device)
            running = torch.zeros(N, device=device)
            for t in reversed(range(T)):
                delta = rewards[t] + args.gamma * last_values[t] - values[t]
                running = delta + args.gamma * args.gae_lambda * (1 - dones[t]) * running
                advantages[t] = running
            returns = advantages + values

        # ---- learn -------------------------------------------------------------------------------
        flat = [x.flatten(0, 1) for x in (obs, actions, log_probs, advantages, returns)]
        for _ in range(args.update_epochs):
            for batch in torch.randperm(T * N, device=device).split(args.minibatch_size):
                b_obs, b_actions, b_log_probs, b_advantages, b_returns = (x[batch] for x in flat)
                ratio = (agent.policy(b_obs).log_prob(b_actions).sum(-1) - b_log_probs).exp()
                advantage = (b_advantages - b_advantages.mean()) / (b_advantages.std() + 1e-8)
                clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                policy_loss = -torch.minimum(advantage * ratio, advantage * clipped).mean()
                value_loss = 0.5 * (agent.value(b_obs) - b_returns).square().mean()
                loss = policy_loss + args.value_coef * value_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()

        if ended:
            curve.append(float(np.mean(ended)))
            steps = iteration * T * N
            rate = steps / (time.monotonic() - began)
            print(f"{steps:>9,} steps  return {curve[-1]:8.1f}  {rate:,.0f} steps/s", flush=True)
    envs.close()
    return curve


if __name__ == "__main__":
    train(tyro.cli(Args))
