"""skrl: its wrapper's contract and its agents on our environments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import skrl
import torch
from parity import wrong_mode
from run_example import run_example
from skrl.envs.wrappers.torch import Wrapper, wrap_env
from skrl.utils.runner.torch import Runner

import pyfastenv
from pyfastenv.integrations.skrl import make_skrl, to_skrl

NUM_ENVS = 3
NETWORK = [{"name": "net", "input": "OBSERVATIONS", "layers": [16], "activations": "elu"}]


def make_ours(env_id: str, num_envs: int = NUM_ENVS, **kwargs: Any) -> Wrapper:
    return to_skrl(pyfastenv.make_vec(env_id, num_envs, autoreset_mode="SameStep", **kwargs))


def make_theirs(env_id: str, num_envs: int = NUM_ENVS, **kwargs: Any) -> Wrapper:
    envs = gymnasium.make_vec(
        env_id,
        num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": "SameStep"},
        **kwargs,
    )
    env = wrap_env(envs, "gymnasium", verbose=False)
    env._device = torch.device("cpu")  # it takes the GPU wherever there is one
    return env


def assert_equal(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert ours.dtype == theirs.dtype
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("num_envs", [1, NUM_ENVS])
@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("Hopper-v5", 23), ("HalfCheetah-v5", 40), ("CartPole-v1", 25), ("Pendulum-v1", 30)],
)
def test_same_as_gymnasium_wrapper(env_id: str, limit: int, num_envs: int) -> None:
    skrl.config.torch.key = 5
    ours = make_ours(env_id, num_envs, max_episode_steps=limit)
    theirs = make_theirs(env_id, num_envs, max_episode_steps=limit)
    assert ours.num_envs == theirs.num_envs == num_envs
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.state_space is theirs.state_space is None
    assert ours.state() is theirs.state() is None
    assert_equal(ours.reset()[0], theirs.reset()[0])
    generator = torch.Generator().manual_seed(0)
    ended = 0
    for _ in range(150):
        if isinstance(ours.action_space, gymnasium.spaces.Discrete):
            actions = torch.randint(2, (num_envs, 1), generator=generator)
        else:
            actions = torch.rand((num_envs, *ours.action_space.shape), generator=generator) - 0.5
        *our_results, our_infos = ours.step(actions)
        *their_results, their_infos = theirs.step(actions)
        for our_result, their_result in zip(our_results, their_results, strict=True):
            assert_equal(our_result, their_result)
        assert set(our_infos) == set(their_infos)
        assert_equal(ours.reset()[0], theirs.reset()[0])
        ended += int((our_results[2] | our_results[3]).sum())
    assert ended >= 3 * num_envs
    ours.close()
    theirs.close()


CONFIGURATIONS = {
    "PPO": {
        "models": {
            "policy": {"class": "GaussianMixin", "network": NETWORK, "output": "ACTIONS"},
            "value": {"class": "DeterministicMixin", "network": NETWORK, "output": "ONE"},
        },
        "agent": {"rollouts": 16, "time_limit_bootstrap": True},
        "memory": {"memory_size": -1},
    },
    "DDPG": {
        "models": {
            name: {
                "class": "DeterministicMixin",
                "network": [{**NETWORK[0], "input": inputs}],
                "output": output,
            }
            for name, inputs, output in (
                ("policy", "OBSERVATIONS", "ACTIONS"),
                ("target_policy", "OBSERVATIONS", "ACTIONS"),
                ("critic", "concatenate([OBSERVATIONS, ACTIONS])", "ONE"),
                ("target_critic", "concatenate([OBSERVATIONS, ACTIONS])", "ONE"),
            )
        },
        "agent": {"learning_starts": 10},
        "memory": {"memory_size": 1000},
    },
}


@pytest.mark.parametrize("algorithm", sorted(CONFIGURATIONS))
def test_same_training(algorithm: str, tmp_path: Path) -> None:
    """The same weights, bit for bit, as on gymnasium's environments."""
    parts = CONFIGURATIONS[algorithm]
    cfg = {
        "seed": 4,
        "models": {"separate": True, **parts["models"]},
        "memory": {"class": "RandomMemory", **parts["memory"]},
        "agent": {
            "class": algorithm,
            **parts["agent"],
            "experiment": {"directory": str(tmp_path), "write_interval": 0},
        },
        "trainer": {
            "class": "SequentialTrainer",
            "timesteps": 80,
            "headless": True,  # else its wrapper asks for pictures
            "disable_progressbar": True,
            "close_environment_at_exit": False,
        },
    }
    weights = []
    skrl.config.torch.key = 4  # its wrapper looks before the runner sets it, ours at the reset
    for make in (make_ours, make_theirs):
        env = make("Pendulum-v1", max_episode_steps=15)
        runner = Runner(env, cfg)
        runner.run("train")
        policy = runner.agent.policy
        weights.append({name: w.clone() for name, w in policy.state_dict().items()})
        env.close()
    for name in weights[1]:
        assert_equal(weights[0][name], weights[1][name])


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("skrl", "SameStep", mode):
        to_skrl(pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode))


def test_make_skrl_chooses_the_mode() -> None:
    env = make_skrl("CartPole-v1", NUM_ENVS)
    assert env.autoreset_mode is gymnasium.vector.AutoresetMode.SAME_STEP
    assert env.device == torch.device("cpu")
    env.close()
    with pytest.raises(pyfastenv.ClosedError):
        env.step(torch.zeros((NUM_ENVS, 1)))


def test_rendering() -> None:
    pytest.importorskip("pygame")
    env = make_ours("CartPole-v1", render_mode="rgb_array")
    env.reset()
    picture = env.render()
    assert isinstance(picture, np.ndarray) and picture.dtype == np.uint8
    assert make_ours("CartPole-v1").render() is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_is_the_cpu() -> None:
    """The same trajectories, through pinned memory."""
    on_cpu = make_ours("Hopper-v5")
    envs = pyfastenv.make_vec("Hopper-v5", NUM_ENVS, autoreset_mode="SameStep")
    on_gpu = to_skrl(envs, "cuda")
    assert on_gpu.device.type == "cuda"
    assert_equal(on_gpu.reset()[0].cpu(), on_cpu.reset()[0])
    for _ in range(60):
        actions = torch.rand((NUM_ENVS, 3)) - 0.5
        theirs = on_cpu.step(actions)[:4]
        for ours, their in zip(on_gpu.step(actions.cuda())[:4], theirs, strict=True):
            assert ours.is_cuda
            assert_equal(ours.cpu(), their)


def test_example(tmp_path: Path) -> None:
    assert "mean return" in run_example("integration_skrl.py", "200", cwd=tmp_path)


def test_an_own_task() -> None:
    pytest.importorskip("numba")
    from dict_tasks import Arm

    ours = make_skrl(Arm, NUM_ENVS, observation_dict=False)
    theirs = pyfastenv.make_vec(Arm, NUM_ENVS, observation_dict=False, autoreset_mode="SameStep")
    obs, _ = ours.reset()
    assert obs.shape == (NUM_ENVS, theirs.obs_size)
    for _ in range(30):
        obs, rewards, *_ = ours.step(torch.full((NUM_ENVS, 2), 0.3))
    assert obs.isfinite().all()
    assert (rewards < 0.0).all()
    with pytest.raises(ValueError, match="skrl needs flat"):
        make_skrl(Arm, NUM_ENVS)
