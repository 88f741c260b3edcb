"""Sample Factory: its batched environment on ours, in one process and with workers of its own."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from parity import make_gymnasium, wrong_mode
from run_example import run_example

import pyfastenv

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what PyTorch has deprecated
    pytest.importorskip("sample_factory.train")

import torch
from sample_factory.algo.utils.env_info import check_env_info, extract_env_info
from sample_factory.algo.utils.make_env import BatchedVecEnv, make_env_func_batched
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.train import run_rl
from sample_factory.utils.attr_dict import AttrDict

from pyfastenv.integrations.sample_factory import register_sample_factory, to_sample_factory

NUM_ENVS = 3

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def make_batched(env_id: str, pool: int = 0, **kwargs: object) -> tuple[BatchedVecEnv, AttrDict]:
    """As its workers make them."""
    name = register_sample_factory(env_id, NUM_ENVS, **kwargs)
    parser, _ = parse_sf_args([f"--env={name}"])
    cfg = parse_full_cfg(parser, [f"--env={name}"])
    env = make_env_func_batched(cfg, AttrDict(worker_index=0, vector_index=0, env_id=pool))
    env.seed(pool)
    return env, cfg


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("Hopper-v5", 23), ("HalfCheetah-v5", 40), ("CartPole-v1", 9), ("Pendulum-v1", 30)],
)
def test_same_as_gymnasium(env_id: str, limit: int) -> None:
    ours, _ = make_batched(env_id, pool=2, max_episode_steps=limit)
    theirs = make_gymnasium(env_id, NUM_ENVS, "SameStep", limit)
    obs, _ = ours.reset()
    assert torch.equal(obs["obs"], torch.FloatTensor(theirs.reset(seed=2 * NUM_ENVS)[0]))
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(100):
        if isinstance(ours.action_space, gymnasium.spaces.Discrete):
            actions = rng.integers(0, 2, NUM_ENVS, np.int32)
        else:
            size = (NUM_ENVS, *ours.action_space.shape)
            actions = rng.uniform(-1, 1, size).astype(np.float32)
        obs, rewards, terminations, truncations, _ = ours.step(actions)
        their_obs, their_rewards, their_terminations, their_truncations, _ = theirs.step(actions)
        assert torch.equal(obs["obs"], torch.FloatTensor(their_obs))
        assert torch.equal(rewards, torch.FloatTensor(their_rewards))
        np.testing.assert_array_equal(terminations, their_terminations)
        np.testing.assert_array_equal(truncations, their_truncations & ~their_terminations)
        ended += int((terminations | truncations).sum())
    assert ended >= 2 * NUM_ENVS
    ours.close()


def test_env_info() -> None:
    env, cfg = make_batched("HalfCheetah-v5")
    info = extract_env_info(env, cfg)
    assert info.num_agents == NUM_ENVS
    check_env_info(env, pickle.loads(pickle.dumps(info)), cfg)
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_wrong_autoreset_mode_is_refused(mode: str) -> None:
    with wrong_mode("Sample Factory", "SameStep", mode):
        to_sample_factory(pyfastenv.make_vec("CartPole-v1", autoreset_mode=mode))
    with wrong_mode("Sample Factory", "SameStep", mode):
        make_batched("CartPole-v1", autoreset_mode=mode)


def test_two_workers_have_a_pool_each(tmp_path: Path) -> None:
    """Asynchronously, in processes of Sample Factory's."""
    options = """
        --device=cpu --batched_sampling=True --num_workers=2 --num_envs_per_worker=1
        --worker_num_splits=1 --rollout=16 --batch_size=128 --num_batches_per_epoch=1
        --train_for_env_steps=1024 --use_rnn=False --recurrence=1 --encoder_mlp_layers 16
        --use_env_info_cache=False --experiment=test
    """
    env = f"--env={register_sample_factory('CartPole-v1', 8)}"
    arguments = [env, *options.split(), f"--train_dir={tmp_path}"]
    parser, _ = parse_sf_args(arguments)
    assert run_rl(parse_full_cfg(parser, arguments)) == 0
    assert list(tmp_path.glob("test/checkpoint_p0/checkpoint_*.pth"))


def test_example(tmp_path: Path) -> None:
    run_example("integration_sample_factory.py", "8192", cwd=tmp_path)
    assert list(tmp_path.glob("train_dir/halfcheetah/checkpoint_p0/checkpoint_*.pth"))
