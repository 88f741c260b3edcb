"""Policies as torch modules act as the core's workers do, and say what does not fit."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import pyfastenv
from pyfastenv.nn.networks import MLP
from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy

CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "categorical": ("Acrobot-v1", 3, {"activation": "tanh"}),
    "categorical, epsilon-greedy": ("Acrobot-v1", 3, {"activation": "tanh", "epsilon": 0.4}),
    "gaussian": ("Hopper-v5", 3, {"activation": "relu", "log_std": (2, 3)}),
    "gaussian of the network": ("Hopper-v5", 6, {"activation": "elu"}),
    "tanh_gaussian": ("Pendulum-v1", 2, {"activation": "silu", "layer_norm": True}),
    "deterministic": ("Pendulum-v1", 1, {"activation": "tanh", "noise": 0.3}),
}


def case(name: str, *, normalised: bool = True) -> tuple[Any, PolicySpec]:
    """Environments and two policies for them."""
    env_id, num_outputs, fields = CASES[name]
    envs = pyfastenv.make_vec(env_id, 4, num_threads=1, autoreset_mode="SameStep")
    (obs_size,) = envs.single_observation_space.shape
    rng = np.random.default_rng(0)
    fields = dict(fields)
    if "log_std" in fields:
        fields["log_std"] = rng.normal(size=fields["log_std"]).astype(np.float32)
    if normalised:
        fields["obs_mean"] = rng.normal(size=(2, obs_size)).astype(np.float32)
        fields["obs_scale"] = rng.uniform(0.5, 2.0, (2, obs_size)).astype(np.float32)
        fields["obs_clip"] = 1.5
    torch.manual_seed(1)
    how = {each: fields.pop(each) for each in ("activation", "layer_norm") if each in fields}
    network = MLP((obs_size, 16, 8, num_outputs), num_networks=2, **how)
    for norm in network.norms:
        norm.data.normal_()
    return envs, network.spec(distribution=name.replace(",", " ").partition(" ")[0], **fields)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_most_likely_actions_are_the_cores(name: str, normalised: bool) -> None:
    envs, spec = case(name, normalised=normalised)
    envs.reset(seed=3)
    batch = pyfastenv.rollout(envs, spec.as_greedy(), 50, policy_id=[1, 0, 1, 1])
    space = envs.single_action_space
    policies = [TorchPolicy.of(spec, space, k) for k in range(2)]
    for env, number in enumerate([1, 0, 1, 1]):
        obs = batch.obs[:, env].numpy()
        actions = policies[number].act(obs)
        expected = batch.actions[:, env].numpy()
        if name.startswith("gaussian"):  # recorded as drawn, given to the environment clipped
            expected = expected.clip(space.low, space.high)
        assert actions.dtype == space.dtype and actions.shape == (50, *space.shape)
        np.testing.assert_allclose(actions, expected, rtol=0, atol=2e-6)
        single = policies[number].act(obs[7].astype(np.float64))
        assert single.shape == space.shape
        np.testing.assert_allclose(single, actions[7], rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_drawn_actions_are_as_likely_as_the_core_says(name: str) -> None:
    envs, spec = case(name)
    envs.reset(seed=3)
    batch = pyfastenv.rollout(envs, spec, 250)
    policy = TorchPolicy.of(spec, envs.single_action_space)
    obs = batch.obs.flatten(0, 1).float()
    # the same observation many times: the moments of what is drawn are those of the core's
    generator = torch.Generator().manual_seed(0)
    drawn = policy.draw(obs, generator)
    again = policy.draw(obs, torch.Generator().manual_seed(0))
    assert torch.equal(drawn.actions, again.actions)
    assert not torch.equal(drawn.actions, policy.draw(obs, generator).actions)
    theirs = batch.log_probs.flatten()
    # both average the policy's entropy over the same observations
    assert abs(float(drawn.log_probs.mean() - theirs.mean())) <= 4.0 * float(theirs.std()) / 30.0
    low, high = batch.actions.double().quantile(0.1), batch.actions.double().quantile(0.9)
    inside = ((drawn.actions >= low) & (drawn.actions <= high)).double().mean()
    assert 0.7 < float(inside) <= 1.0
    greedy = TorchPolicy.of(spec.as_greedy(), envs.single_action_space)
    np.testing.assert_allclose(
        greedy.draw(obs).env_actions.numpy(), greedy(obs).numpy(), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("shape", [(), (2,), (4, 2), (1, 4, 3)])
def test_observations_of_another_shape_are_named(shape: tuple[int, ...]) -> None:
    envs, spec = case("deterministic")
    policy = TorchPolicy.of(spec, envs.single_action_space)
    message = re.escape(f"obs: expected (3,) or (B, 3), got {shape}")
    with pytest.raises(ValueError, match=message):
        policy.act(np.zeros(shape))


def test_epsilon_greedy_actions_are_the_best_or_uniform() -> None:
    envs, spec = case("categorical, epsilon-greedy")
    envs.reset(seed=3)
    batch = pyfastenv.rollout(envs, spec, 1_000)
    policy = TorchPolicy.of(spec, envs.single_action_space)
    obs = batch.obs.flatten(0, 1).float()
    best, drawn = policy(obs), policy.draw(obs)
    for actions, log_probs in (
        (batch.actions.flatten(), batch.log_probs.flatten()),
        (drawn.actions, drawn.log_probs),
    ):
        # of 4,000, the best 0.6 + 0.4 / 3 of them, each of the others 0.4 / 3
        for beyond, share in enumerate((0.6 + 0.4 / 3, 0.4 / 3, 0.4 / 3)):
            mine = (actions - best) % 3 == beyond
            assert float(mine.double().mean()) == pytest.approx(share, abs=0.03)
            assert log_probs[mine].exp().numpy() == pytest.approx(share, abs=1e-6)
    assert torch.equal(policy.as_greedy().draw(obs).log_probs, torch.zeros(4_000))
    for fields in ({"epsilon": 1.1}, {"epsilon": 0.1, "distribution": "deterministic"}):
        with pytest.raises(ValueError, match="epsilon: expected None, or 0 to 1 of a categorical"):
            replace(spec, **fields)


def test_a_distribution_that_does_not_fit() -> None:
    envs, _ = case("deterministic")
    for name in ("categorical", "beta"):
        with pytest.raises(ValueError, match=f"distribution: expected one of .*, got '{name}'"):
            TorchPolicy(torch.nn.Linear(3, 1), 3, envs.single_action_space, distribution=name)
