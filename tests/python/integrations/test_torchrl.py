"""TorchRL: its environment checks, its GymWrapper, its collector and PPO on our environments."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import wrong_mode
from run_example import run_example

import pyfastenv

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what it has deprecated
    pytest.importorskip("torchrl.collectors")

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import EnvBase, GymWrapper, check_env_specs
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from pyfastenv.integrations.torchrl import FastTorchRLEnv, make_torchrl, to_torchrl

NUM_ENVS = 3
ENV_IDS = ["HalfCheetah-v5", "Hopper-v5", "CartPole-v1", "Pendulum-v1"]
SPECS = ("observation_spec", "action_spec", "reward_spec", "done_spec")

pytestmark = [
    # its own warnings on what the next versions will do
    pytest.mark.filterwarnings("ignore::FutureWarning:torchrl"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torchrl"),
]


def make_ours(env_id: str, **kwargs: Any) -> EnvBase:
    envs = pyfastenv.make_vec(env_id, NUM_ENVS, autoreset_mode="Disabled", **kwargs)
    return to_torchrl(envs)


def make_theirs(env_id: str, mode: str = "Disabled", **kwargs: Any) -> EnvBase:
    return GymWrapper(
        gymnasium.make_vec(
            env_id,
            NUM_ENVS,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": mode},
            **kwargs,
        )
    )


def roll(env: EnvBase, num_steps: int) -> TensorDictBase:
    """Seeded random actions from the second episode on (GymWrapper's ``set_seed`` resets)."""
    torch.manual_seed(0)
    env.set_seed(5)
    if isinstance(env, FastTorchRLEnv):
        env.reset()
    return env.rollout(num_steps, break_when_any_done=False)


def assert_equal(ours: TensorDictBase, theirs: TensorDictBase) -> None:
    assert set(ours.keys(True, True)) == set(theirs.keys(True, True))
    for key in theirs.keys(True, True):
        assert ours[key].dtype == theirs[key].dtype, key
        assert torch.equal(ours[key], theirs[key]), key


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_env_specs(env_id: str) -> None:
    env = make_torchrl(env_id, NUM_ENVS)
    check_env_specs(env)
    env.close()


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_specs_are_gym_wrappers(env_id: str) -> None:
    ours, theirs = make_ours(env_id), make_theirs(env_id)
    for name in SPECS:
        ours_spec, theirs_spec = getattr(ours, name), getattr(theirs, name)
        if name in ("observation_spec", "done_spec"):  # Composite: GymWrapper's has no device
            ours_spec, theirs_spec = dict(ours_spec.items()), dict(theirs_spec.items())
        assert ours_spec == theirs_spec
    assert ours.batch_size == theirs.batch_size


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("Hopper-v5", 23), ("HalfCheetah-v5", 40), ("CartPole-v1", 25), ("Pendulum-v1", 30)],
)
def test_same_as_gym_wrapper(env_id: str, limit: int) -> None:
    ours = roll(make_ours(env_id, max_episode_steps=limit), 120)
    theirs = roll(make_theirs(env_id, max_episode_steps=limit), 120)
    assert_equal(ours, theirs)
    assert ours["next", "truncated"].any()
    assert ours["next", "terminated"].any() or env_id in ("HalfCheetah-v5", "Pendulum-v1")


@pytest.mark.parametrize("mode", ["Disabled", "SameStep"])
def test_gym_wrapper_takes_our_environments(mode: str) -> None:
    envs = pyfastenv.make_vec("Hopper-v5", NUM_ENVS, autoreset_mode=mode)
    ours = GymWrapper(envs)
    check_env_specs(ours)
    assert_equal(roll(ours, 80), roll(make_theirs("Hopper-v5", mode), 80))


def test_categorical_actions() -> None:
    env = make_torchrl("CartPole-v1", NUM_ENVS, categorical_action_encoding=True)
    check_env_specs(env)
    assert env.action_spec.shape == (NUM_ENVS,)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("TorchRL", "Disabled", mode):
        to_torchrl(pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode))


def test_views_are_refused() -> None:
    envs = pyfastenv.make_vec("CartPole-v1", autoreset_mode="Disabled", copy=False)
    with pytest.raises(ValueError, match=r"^TorchRL on the CPU needs .*copy=True, got False$"):
        to_torchrl(envs)


def test_seeds_are_used_once() -> None:
    env = make_torchrl("Pendulum-v1", NUM_ENVS)
    env.set_seed(3)
    first = env.reset()["observation"]
    assert not torch.equal(env.reset()["observation"], first)
    env.set_seed(3)
    assert torch.equal(env.reset()["observation"], first)
    envs = pyfastenv.make_vec("Pendulum-v1", NUM_ENVS)
    assert torch.equal(first, torch.as_tensor(envs.reset(seed=3)[0]))


def test_partial_reset() -> None:
    env = make_torchrl("HalfCheetah-v5", NUM_ENVS)
    results = env.reset()
    first = results["observation"].clone()
    mask = torch.tensor([[True], [False], [True]])
    second = env.reset(results.set("_reset", mask))["observation"]
    assert torch.equal((second != first).any(1, keepdim=True), mask)


def test_close() -> None:
    env = make_torchrl("CartPole-v1", NUM_ENVS)
    env.close()
    with pytest.raises(pyfastenv.ClosedError):
        env.reset()


def train(env: EnvBase) -> dict[str, torch.Tensor]:
    """Two updates of PPO; returns the weights."""
    torch.manual_seed(1)
    env.set_seed(1)
    if isinstance(env, FastTorchRLEnv):
        env.reset()
    module = TensorDictModule(torch.nn.Linear(4, 2), ["observation"], ["logits"])
    actor = ProbabilisticActor(
        module,
        ["logits"],
        distribution_class=torch.distributions.OneHotCategorical,
        return_log_prob=True,
    )
    loss = ClipPPOLoss(actor, ValueOperator(torch.nn.Linear(4, 1)))
    gae = GAE(gamma=0.99, lmbda=0.95, value_network=loss.critic_network)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-2)
    for batch in Collector(env, actor, frames_per_batch=90, total_frames=180):
        batch = batch.exclude("collector")  # its trajectory ids
        gae(batch)
        losses = loss(batch.reshape(-1))
        optimizer.zero_grad()
        (losses["loss_objective"] + losses["loss_critic"]).backward()
        optimizer.step()
    return {name: weight.detach().clone() for name, weight in loss.named_parameters()}


def test_same_training() -> None:
    """The same weights, bit for bit, as on gymnasium's environments."""
    ours = train(make_ours("CartPole-v1", max_episode_steps=15))
    theirs = train(make_theirs("CartPole-v1", max_episode_steps=15))
    assert set(ours) == set(theirs)
    for name in theirs:
        assert torch.equal(ours[name], theirs[name])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("env_id", ["Hopper-v5", "CartPole-v1"])
@pytest.mark.parametrize("copy", [True, False])
def test_cuda_is_the_cpu(env_id: str, copy: bool) -> None:
    """The same trajectories, through pinned memory."""
    envs = pyfastenv.make_vec(env_id, NUM_ENVS, autoreset_mode="Disabled", copy=copy)
    on_gpu = to_torchrl(envs, "cuda")
    check_env_specs(on_gpu)
    on_cpu = make_ours(env_id)
    torch.manual_seed(0)
    actions = [on_cpu.action_spec.rand() for _ in range(60)]
    results = []
    for env in (on_cpu, on_gpu):
        queue = iter(actions)
        env.set_seed(2)
        policy = TensorDictModule(
            lambda obs, q=queue, e=env: next(q).to(e.device), ["observation"], ["action"]
        )
        results.append(env.rollout(60, policy, break_when_any_done=False))
    assert results[1].device == torch.device("cuda", 0)
    assert_equal(results[1].cpu(), results[0].cpu())


def test_example() -> None:
    assert "return" in run_example("integration_torchrl.py", str(9 * 2048))


def test_dict_observations_of_an_own_task() -> None:
    pytest.importorskip("numba")
    from dict_tasks import Arm

    env = make_torchrl(Arm, NUM_ENVS, obs_dtype="float64")
    check_env_specs(env)
    assert set(env.observation_spec.keys()) == set(pyfastenv.debug(Arm).observation_space.spaces)
    env.set_seed(3)
    result = env.rollout(20, break_when_any_done=False)
    envs = pyfastenv.make_vec(Arm, NUM_ENVS, autoreset_mode="Disabled")
    obs, _ = envs.reset(seed=3)
    for step in range(20):
        for name, values in obs.items():
            np.testing.assert_array_equal(result[name][:, step].numpy(), values)
        obs, rewards, *ends, _ = envs.step(result["action"][:, step].numpy())
        got = result["next", "reward"][:, step, 0].numpy()
        np.testing.assert_array_equal(got, rewards.astype(np.float32))
        if (ends[0] | ends[1]).any():
            break
