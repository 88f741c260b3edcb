"""JAX: the same trajectories as the pool's own, inside jit, scan and vmap."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parity import make_gymnasium, random_policy
from run_example import run_example

import pyfastenv
from pyfastenv.integrations.jax import JaxVectorEnv, Step, make_jax, to_jax

NUM_ENVS = 5
STEPS = 60
# ends by falling, by time, with integers for actions
CASES = [("Hopper-v5", 25), ("HalfCheetah-v5", 40), ("CartPole-v1", 30)]


def make_ours(env_id: str, limit: int, **kwargs: Any) -> JaxVectorEnv:
    return make_jax(env_id, NUM_ENVS, max_episode_steps=limit, **kwargs)


def make_theirs(env_id: str, limit: int) -> Any:
    return make_gymnasium(env_id, NUM_ENVS, "SameStep", limit)


def random_actions(space: gymnasium.Space[Any], steps: int = STEPS) -> np.ndarray:
    space.seed(0)
    return np.stack([space.sample() for _ in range(steps)])


def assert_bits(ours: Any, expected: Any) -> None:
    ours, expected = np.asarray(ours), np.asarray(expected)
    assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
    assert ours.tobytes() == expected.tobytes()


@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize(("env_id", "limit"), CASES)
def test_a_scan_equals_gymnasium(env_id: str, limit: int, x64: bool) -> None:
    """One compiled program of many steps; episodes end and begin in it."""
    theirs = make_theirs(env_id, limit)
    actions = random_actions(theirs.action_space)
    with jax.enable_x64(x64):
        envs = make_ours(env_id, limit, obs_dtype=theirs.single_observation_space.dtype)

        @jax.jit
        def run(seed: jax.Array, actions: jax.Array) -> tuple[jax.Array, Step]:
            state, obs = envs.reset(seed)
            return obs, jax.lax.scan(envs.step, state, actions)[1]

        first, steps = jax.tree.map(np.asarray, run(jnp.asarray(3), actions))
    dtype = np.float64 if x64 else np.float32
    obs, _ = theirs.reset(seed=3)
    own = obs.dtype if x64 else np.float32
    assert_bits(first, obs.astype(own))
    ended = 0
    for t in range(STEPS):
        obs, rewards, terminations, truncations, infos = theirs.step(actions[t])
        assert_bits(steps.obs[t], obs.astype(own))
        assert_bits(steps.rewards[t], rewards.astype(dtype))
        assert_bits(steps.terminations[t], terminations)
        assert_bits(steps.truncations[t], truncations)
        for i in range(NUM_ENVS):
            over = terminations[i] or truncations[i]
            last = infos["final_obs"][i] if over else obs[i]
            assert_bits(steps.next_obs[t, i], last.astype(own))
            ended += over
    assert ended >= NUM_ENVS
    theirs.close()
    envs.close()


@pytest.mark.parametrize(("env_id", "limit"), CASES)
def test_a_rollout_equals_the_pools(env_id: str, limit: int) -> None:
    torch = pytest.importorskip("torch")
    envs = make_ours(env_id, limit)
    policy = random_policy(envs.envs, 16)

    @jax.jit
    def run(policy: pyfastenv.PolicySpec) -> Any:
        state, _ = envs.reset(7)
        state, first = envs.rollout(state, policy, STEPS // 2)
        return first, envs.rollout(state, policy, STEPS // 2)[1]

    first, second = run(policy)
    plain = pyfastenv.make_vec(
        env_id, NUM_ENVS, autoreset_mode="SameStep", max_episode_steps=limit, obs_dtype="float32"
    )
    plain.reset(seed=7)
    batch = pyfastenv.rollout(plain, policy, STEPS)
    for name in ("obs", "log_probs", "rewards", "terminations", "truncations"):
        both = np.concatenate([getattr(first, name), getattr(second, name)])
        assert_bits(both, getattr(batch, name).numpy())
    actions = np.concatenate([first.actions, second.actions])
    assert np.array_equal(actions, batch.actions.numpy())
    next_obs = torch.cat([batch.obs[1:], batch.last_obs[None]])
    next_obs[batch.episodes.steps, batch.episodes.env_ids] = batch.episodes.final_obs
    assert_bits(np.concatenate([first.next_obs, second.next_obs]), next_obs.numpy())
    assert len(batch.episodes) >= NUM_ENVS
    envs.close()
    plain.close()


def test_an_older_state_gives_the_same_again() -> None:
    """A call is a function of its arguments, whatever the pool did in between."""
    envs = make_ours("Hopper-v5", 20)
    actions = random_actions(envs.envs.action_space, 8)
    step = jax.jit(envs.step)
    state, _ = envs.reset(0)
    for t in range(3):
        state, _ = step(state, actions[t])
    once = step(state, actions[3])
    for t in range(4, 8):
        step(envs.reset(t)[0], actions[t])
    again = step(state, actions[3])
    jax.tree.map(assert_bits, once, again)
    envs.close()


def test_seeds_for_each_environment() -> None:
    envs = make_ours("Hopper-v5", 20)
    seeds = [5, 1, 9, 9, 2]
    _, obs = jax.jit(envs.reset)(jnp.array(seeds))
    assert_bits(obs, envs.envs.reset(seed=seeds)[0])
    assert_bits(obs[2], obs[3])
    envs.close()


def test_vmap_over_states() -> None:
    envs = make_ours("CartPole-v1", 20)
    actions = random_actions(envs.envs.action_space, 3)
    states = jnp.stack([envs.reset(seed)[0] for seed in range(3)])
    _, together = jax.jit(jax.vmap(envs.step))(states, actions)
    for k in range(3):
        _, alone = envs.step(states[k], actions[k])
        jax.tree.map(lambda a, b, k=k: assert_bits(a[k], b), together, alone)
    envs.close()


def test_many_environments_in_one_program() -> None:
    """Arrays that JAX would rather hand to another thread."""
    envs = make_jax("HalfCheetah-v5", 2_000)
    step = jax.jit(lambda s: jax.lax.scan(envs.step, s, jnp.zeros((4, 2_000, 6)))[1].obs)
    obs = step(envs.reset(0)[0])
    assert obs.shape == (4, 2_000, 17) and np.isfinite(obs).all()
    envs.close()


def test_errors_say_what_the_pool_says() -> None:
    envs = make_ours("Hopper-v5", 20)
    state, _ = envs.reset(0)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"actions.*NaN|NaN.*actions"):
        jax.block_until_ready(envs.step(state, jnp.full((NUM_ENVS, 3), jnp.nan)))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"snapshot|state"):
        jax.block_until_ready(envs.step(state[:, :-8], jnp.zeros((NUM_ENVS, 3))))
    with pytest.raises(ValueError, match="num_steps: expected"):
        envs.rollout(state, None, 0)  # type: ignore[arg-type]
    _, step = envs.step(state, jnp.zeros((NUM_ENVS, 3)))  # and goes on
    assert np.isfinite(step.obs).all()
    envs.close()


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    envs = pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode)
    with pytest.raises(ValueError, match=f"^JAX needs .*'SameStep', got autoreset_mode='{mode}'$"):
        to_jax(envs)


def test_an_own_task() -> None:
    pytest.importorskip("numba")
    from dict_tasks import Arm

    envs = make_jax(Arm, NUM_ENVS, observation_dict=False)
    state, obs = envs.reset(0)
    assert obs.shape == (NUM_ENVS, envs.envs.obs_size)
    _, step = jax.jit(envs.step)(state, jnp.full((NUM_ENVS, 2), 0.3))
    assert (np.asarray(step.rewards) < 0.0).all()
    with pytest.raises(ValueError, match="JAX needs flat"):
        make_jax(Arm, NUM_ENVS)
    envs.close()


def test_example() -> None:
    assert "mean return" in run_example("integration_jax.py", "3")
