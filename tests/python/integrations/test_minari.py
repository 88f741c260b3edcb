"""Minari: datasets whose episodes gymnasium plays again, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest
from parity import random_policy

import pyfastenv
from pyfastenv import cli, planning
from pyfastenv.integrations.minari import collect, episodes
from pyfastenv.sampling.datasets import read_datasets


@pytest.fixture(autouse=True)
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def assert_plays_again(env: Any, played: list[Any], seed: int) -> None:
    """One environment's episodes, first to last; the seed is the first one's."""
    for n, episode in enumerate(played):
        obs, _ = env.reset(seed=None if n else seed)
        observations, rewards = [obs], []
        for action in episode.actions:
            assert env.action_space.contains(action)
            obs, reward, terminated, truncated, _ = env.step(action)
            observations.append(obs)
            rewards.append(reward)
        assert terminated or truncated
        np.testing.assert_array_equal(episode.observations, np.array(observations), strict=True)
        np.testing.assert_array_equal(episode.rewards, rewards)
        flags = np.zeros(len(rewards), np.bool_)
        for name, over in (("terminations", terminated), ("truncations", truncated)):
            flags[-1] = over
            np.testing.assert_array_equal(getattr(episode, name), flags)


@pytest.mark.parametrize(
    ("env_id", "limit"), [("Hopper-v5", 30), ("HalfCheetah-v5", 270), ("CartPole-v1", 25)]
)
def test_gymnasium_plays_them_again(env_id: str, limit: int) -> None:
    """Episodes shorter than a rollout, and longer; continuous actions leave the space at times."""
    envs = pyfastenv.make_vec(env_id, 2, autoreset_mode="SameStep", max_episode_steps=limit)
    buffers = list(episodes(envs, random_policy(envs), 5, seed=3))
    envs.close()
    assert [buffer.seed for buffer in buffers] == [3, 4, None, None, None]
    for i in range(2):
        theirs = gymnasium.make(env_id, max_episode_steps=limit)
        assert_plays_again(theirs, buffers[i::2], seed=3 + i)


def test_a_planner_is_recorded() -> None:
    """Its episodes are gymnasium's, too; it acts in float64's states and the space's actions."""
    made = {"autoreset_mode": "SameStep", "max_episode_steps": 12}
    envs = pyfastenv.make_vec("InvertedPendulum-v5", 2, **made)
    simulations = planning.EnvRollouts(pyfastenv.make_vec("InvertedPendulum-v5", 64, **made))
    planner = planning.Planner(simulations, horizon=8, num_knots=4)
    buffers = list(episodes(envs, planning.PlannerPolicy(planner, envs), 3, seed=5))
    theirs = gymnasium.make("InvertedPendulum-v5", max_episode_steps=12)
    assert_plays_again(theirs, buffers[::2], seed=5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    sizes = "--num-envs 4 --num-steps 16 --minibatch-size 64 --total-steps 128"
    command = f"train ppo --env-id Hopper-v5 {sizes} --quiet --run-dir"
    assert cli.main([*command.split(), str(folder)]) == 0
    return folder


def test_collect(run: Path, capsys: pytest.CaptureFixture[str], datasets: Path) -> None:
    """A dataset on disk, read back by Minari; its environment is gymnasium's."""
    assert (
        cli.main(["collect", str(run), "hopper/ppo-v0", "--episodes", "3", "--author", "us"]) == 0
    )
    assert f"{datasets}/hopper/ppo-v0" in capsys.readouterr().out
    dataset = minari.load_dataset("hopper/ppo-v0")
    assert dataset.total_episodes == 3
    metadata = dataset.storage.metadata
    assert metadata["algorithm_name"] == "ppo" and metadata["author"] == {"us"}
    env = dataset.recover_environment()
    assert env.spec is not None and env.spec.id == "Hopper-v5"
    assert dataset.observation_space == env.observation_space
    for i, episode in enumerate(dataset.iterate_episodes()):
        assert_plays_again(env, [episode], seed=i)
    assert cli.main(["collect", str(run), "hopper/ppo-v0"]) == 1
    assert "already exists" in capsys.readouterr().err
    assert_is_learned_from(dataset, datasets, capsys)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [("Hopper-v5", "--frame-stack 3"), ("dict_tasks:Asymmetric", ""), ("dict_tasks:GoalArm", "")],
)
def test_stacked_observations_and_dicts_are_collected_and_read(
    env_id: str, options: str, tmp_path: Path
) -> None:
    sizes = "--num-envs 4 --num-steps 16 --minibatch-size 64 --total-steps 128"
    train = f"train ppo --env-id {env_id} {options} {sizes} --quiet --run-dir {tmp_path}/run"
    assert cli.main(train.split()) == 0
    dataset = collect(tmp_path / "run", "seen/ppo-v0", 2)
    env = dataset.recover_environment()
    assert dataset.observation_space == env.observation_space
    envs = pyfastenv.make_vec(env_id, 1, **({"frame_stack": 3} if options else {}))
    read = read_datasets(["seen/ppo-v0"], envs).transitions
    (episode, _) = dataset.iterate_episodes()
    seen = [env.reset(seed=0)[0], *(env.step(action)[0] for action in episode.actions)]
    views = [envs.obs_views.of(rows) if envs.obs_views else {"": rows} for rows in read[:4:3]]
    for name in views[0]:
        expected = np.array([each[name] if name else each for each in seen])
        recorded: Any = episode.observations[name] if name else episode.observations
        np.testing.assert_array_equal(recorded, expected, strict=True)
        for first, rows in enumerate(views):
            count = len(seen) - 1
            wanted = np.float32(expected[first : first + count])
            np.testing.assert_array_equal(rows[name][:count], wanted)


def assert_is_learned_from(
    dataset: minari.MinariDataset, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its id and by its folder; another one's name is a sentence."""
    envs = pyfastenv.make_vec("Hopper-v5", 1)
    read = read_datasets(["hopper/ppo-v0", str(folder / "hopper/ppo-v0")], envs)
    steps = [each.transitions for each in (read, read_datasets(["hopper/ppo-v0"], envs))]
    assert len(steps[0].rewards) == 2 * len(steps[1].rewards) == 2 * dataset.total_steps
    rewards = [episode.rewards for episode in dataset.iterate_episodes()]
    np.testing.assert_array_equal(steps[1].rewards, np.concatenate(rewards))
    options = "train td3_bc --env-id Hopper-v5 --hidden-sizes 8 --total-steps 20 --quiet"
    command = f"{options} --run-dir {folder}/run --dataset"
    assert cli.main([*command.split(), "hopper/ppo-v0"]) == 0
    assert cli.main(["evaluate", str(folder / "run"), "--episodes", "1"]) == 0
    capsys.readouterr()
    assert cli.main([*options.split(), "--dataset", "hopper/none-v0"]) == 1
    assert "dataset: hopper/none-v0 cannot be opened" in capsys.readouterr().err


def test_mistakes(run: Path) -> None:
    with pytest.raises(ValueError, match="num_episodes: expected at least 1, got 0"):
        collect(run, "a-v0", 0)
    with pytest.raises(IndexError, match="policy_id: expected 0 to 0, got 1"):
        collect(run, "a-v0", policy_id=1)
    policy = random_policy(pyfastenv.make_vec("CartPole-v1"))
    for kwargs, message in (
        ({}, "Minari needs .*'SameStep'"),
        ({"autoreset_mode": "SameStep", "max_episode_steps": 0}, "without max_episode_steps"),
    ):
        envs = pyfastenv.make_vec("CartPole-v1", **kwargs)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=message):
            next(episodes(envs, policy, 1))
