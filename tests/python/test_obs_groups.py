"""A critic that sees more than the policy: PPO, and policies of others, with observation groups.

That others' critics see their group: tests/python/test_algorithm_contract.py.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from algorithms import make, small
from dict_tasks import Apart, Asymmetric
from small_learners import critic_network, policy_network

import pyfastenv
from pyfastenv.algorithms.ppo import PPO
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.publish.export import export
from pyfastenv.runs.registry import algorithm_module


def _config(task: type[Any] = Apart, **fields: Any) -> Any:
    return small("ppo", env_id=f"dict_tasks:{task.__name__}", **fields)


@pytest.mark.parametrize("task", [Asymmetric, Apart])
def test_each_network_sees_its_entry(task: type[Any]) -> None:
    ppo = make(_config(task, num_threads=1))
    views = ppo.envs.obs_views
    assert views is not None
    rows = torch.from_numpy(ppo.envs.latest_obs())
    sizes = {name: values.shape[1] for name, values in views.of(rows).items()}
    assert (ppo.policy.sizes[0], ppo.value.sizes[0]) == (sizes["policy"], sizes["critic"])
    policy = ppo.policy_spec().as_greedy().to_core(ppo.envs.single_action_space)

    def seen(rows: torch.Tensor) -> tuple[Any, Any]:
        actions, *_ = ppo.envs._core.act(policy, None, rows.double().numpy())
        return actions, ppo.values(ppo.normalizer(rows.float())).detach().numpy()

    actions, values = seen(rows)
    for column in range(rows.shape[1]):
        changed = rows.clone()
        changed[:, column] += 0.5
        other_actions, other_values = seen(changed)
        within = {name: views.views[name].place for name in ("policy", "critic")}
        within = {name: p.start <= column < p.stop for name, p in within.items()}
        assert (actions != other_actions).any() == within["policy"]
        assert (values != other_values).any() == within["critic"]


def test_the_critics_gradients_are_plain_torchs() -> None:
    ppo = make(_config(accelerate="none", value_coef=0.7))
    batch = ppo._next_batch()
    packed = ppo._pack(ppo._samples(batch))
    assert ppo.envs.obs_views is not None
    mean, scale = ppo.normalizer.moments.mean.float(), ppo.normalizer.moments.scale()
    rows = ((batch.obs.flatten(0, 1) - mean) * scale).clamp(-10.0, 10.0)
    seen = ppo.envs.obs_views.of(rows)["critic"]
    parameters = [p.detach()[0].clone().requires_grad_() for p in ppo.value.parameters()]
    weights, biases = parameters[:3], parameters[3:]
    x = seen
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = x @ weight + bias
        x = x.tanh() if i < 2 else x
    returns = packed[:, -2]
    (0.7 * 0.5 * (x[:, 0] - returns).square().mean()).backward()
    ppo.backward(packed)
    for mine, expected in zip(ppo.value.parameters(), parameters, strict=True):
        torch.testing.assert_close(mine.grad[0], expected.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "own"),
    [("ppo", False), ("ppo", True), ("sac", False), ("sac", True), ("td3", False)],
)
def test_a_saved_policy_needs_its_entry_alone(name: str, own: bool, tmp_path: Path) -> None:
    factories = {"policy_factory": policy_network, "critic_factory": critic_network} if own else {}
    config = small(name, env_id="dict_tasks:Apart", run_dir=tmp_path / "run", **factories)
    result = algorithm_module(name).train(config)
    saved = pyfastenv.load_policy(result.run_dir)
    envs = pyfastenv.make_vec(Apart, 3, autoreset_mode="SameStep")
    assert envs.obs_views is not None
    obs, _ = envs.reset(seed=4)
    action = saved.act({"policy": obs["policy"]})
    np.testing.assert_array_equal(action, saved.act(obs["policy"]))
    np.testing.assert_array_equal(action, saved.act(obs))
    with pytest.raises(ValueError, match="expected a dict of policy, got a dict of critic"):
        saved.act({"critic": obs["critic"]})
    with pytest.raises(ValueError, match=r"obs: policy: expected \(3, 4\), got \(3, 3\)"):
        saved.act({"policy": obs["policy"][:, 1:]})
    if not own:  # the pool's workers and torch agree
        batch = pyfastenv.rollout(envs, saved.policy, 5)
        expected = saved.act(envs.obs_views.of(batch.obs)["policy"].flatten(0, 1).numpy())
        found = batch.actions.flatten(0, 1).clamp(-1.0, 1.0).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5)
    exported = export(result.run_dir, format="torch.export", num_observations=30)
    module = torch.export.load(exported.path).module()
    found = module(torch.from_numpy(obs["policy"]).float()).detach().numpy()
    np.testing.assert_allclose(found, action, atol=1e-5)


def test_mistakes_are_told() -> None:
    alone = {"observation_dict": {"critic": "observation"}}
    with pytest.raises(ValueError, match="'policy' and 'critic', or neither, got 'critic' among"):
        PPO(_config(env_kwargs=alone))
    envs = pyfastenv.make_vec(Apart, 2, autoreset_mode="SameStep")
    envs.reset(seed=0)
    fields: dict[str, Any] = {
        "weights": [np.ones((1, 4, 2), np.float32)],
        "biases": [np.zeros((1, 2), np.float32)],
        "distribution": "deterministic",
    }
    with pytest.raises(ValueError, match="observations of size 17, got one for 4"):
        pyfastenv.rollout(envs, pyfastenv.PolicySpec(**fields), 1)
    with pytest.raises(ValueError, match="4 inputs within an observation of 17, got those from 14"):
        pyfastenv.rollout(envs, pyfastenv.PolicySpec(**fields, row_begin=14, row_size=17), 1)
    spec = pyfastenv.PolicySpec(**fields, row_begin=4, row_size=17)
    assert pyfastenv.rollout(envs, spec, 1).num_steps == 1
    with pytest.raises(ValueError, match=r"expected rows of 17, got \(3, 16\)"):
        TorchPolicy.of(spec, envs.single_action_space).of_rows(torch.zeros(3, 16))
