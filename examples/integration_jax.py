"""JAX: reinforcement learning in one compiled program, ``python examples/integration_jax.py [n]``.

The classic REINFORCE with a linear policy on CartPole: n updates of whole episodes' steps.
"""

import sys

import jax
import jax.numpy as jnp

from pyfastenv.integrations.jax import make_jax

updates = int(sys.argv[1]) if len(sys.argv) > 1 else 60
envs = make_jax("CartPole-v1", num_envs=32)


def step(carry, key):
    weights, state, obs = carry
    actions = jax.random.categorical(key, obs @ weights)
    state, result = envs.step(state, actions)
    return (weights, state, result.obs), (obs, actions, result)


def loss(weights, obs, actions, advantages):
    log_probs = jax.nn.log_softmax(obs @ weights)
    chosen = jnp.take_along_axis(log_probs, actions[..., None], -1)[..., 0]
    return -(chosen * advantages).mean()


@jax.jit
def update(weights, state, obs, key):
    keys = jax.random.split(key, 200)
    (_, state, last), (seen, actions, result) = jax.lax.scan(step, (weights, state, obs), keys)
    over = result.terminations | result.truncations

    def discounted(total, reward_over):
        total = reward_over[0] + 0.97 * total * (1 - reward_over[1])
        return total, total

    _, totals = jax.lax.scan(
        discounted, jnp.zeros(envs.num_envs), (result.rewards, over), reverse=True
    )
    advantages = (totals - totals.mean()) / (totals.std() + 1e-6)
    weights -= 0.3 * jax.grad(loss)(weights, seen, actions, advantages)
    return weights, state, last, over.size / jnp.maximum(over.sum(), 1)


weights, (state, obs) = jnp.zeros((4, 2)), envs.reset(0)
for key in jax.random.split(jax.random.key(0), updates):
    weights, state, obs, mean_return = update(weights, state, obs, key)
print(f"mean return {mean_return:,.0f}")
