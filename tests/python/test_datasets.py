"""Datasets as transitions: what is read, and what is refused."""

import copy
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from algorithms import make, small
from recorded import dataset_of

import pyfastenv
from pyfastenv.algorithms import td3_bc
from pyfastenv.runs.errors import CheckpointError
from pyfastenv.sampling import datasets
from pyfastenv.sampling.datasets import read_datasets
from pyfastenv.training.actor_critic import ActorCritic


def changed(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Opens Pendulum's dataset with another episode, or other spaces."""
    dataset = copy.copy(dataset_of("Pendulum-v1"))
    episodes = [copy.copy(each) for each in dataset.iterate_episodes()]
    for name, value in fields.items():
        vars(dataset if name.endswith("_space") else episodes[3])[name] = value
    dataset.iterate_episodes = lambda: iter(episodes)
    monkeypatch.setattr(datasets, "open_dataset", lambda name: dataset)


def with_nan(array: np.ndarray, step: int) -> np.ndarray:
    array = array.copy()
    array[step] = np.nan
    return array


@pytest.mark.usefixtures("recorded")
def test_every_step_is_read_in_order() -> None:
    envs = pyfastenv.make_vec("InvertedPendulum-v5", 1)
    read = read_datasets(["InvertedPendulum-v5"] * 2, envs)
    episodes = [*dataset_of("InvertedPendulum-v5").iterate_episodes()] * 2
    new, first = read.transitions, len(episodes[0].rewards)
    assert len(new.rewards) == sum(len(each.rewards) for each in episodes)
    assert read.lengths.tolist() == [len(each.rewards) for each in episodes]
    assert read.returns.tolist() == [each.rewards.sum() for each in episodes]
    assert new.ended.nonzero()[:2, 0].tolist() == [first - 1, first + len(episodes[1].rewards) - 1]
    assert torch.equal(new.ended, new.terminated)  # a pole that falls
    np.testing.assert_array_equal(new.obs[first], episodes[1].observations[0].astype(np.float32))
    np.testing.assert_array_equal(new.next_obs[first - 1], np.float32(episodes[0].observations[-1]))


def test_entries_of_a_dict_become_the_row_that_the_pool_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    envs = pyfastenv.make_vec("dict_tasks:Arm", 1)
    obs, _ = envs.reset(seed=1)
    rows = [{name: value[0].copy() for name, value in obs.items()}]
    flat = [envs.flat_reset(seed=1)[0][0].copy()]
    for _ in range(3):
        flat.append(envs.flat_step(np.ones((1, 2), np.float32))[0][0].copy())
        rows.append({name: value.copy() for name, value in envs.obs_views.of(flat[-1]).items()})
    episode = SimpleNamespace(
        observations={name: np.stack([row[name] for row in rows]) for name in rows[0]},
        actions=np.ones((3, 2)),
        rewards=np.zeros(3),
        terminations=np.zeros(3, bool),
    )
    dataset = SimpleNamespace(
        observation_space=envs.single_observation_space,
        action_space=envs.single_action_space,
        iterate_episodes=lambda: iter([episode]),
    )
    monkeypatch.setattr(datasets, "open_dataset", lambda name: dataset)
    read = read_datasets(["x"], envs)
    np.testing.assert_array_equal(read.transitions.obs, np.float32(flat[:-1]))
    np.testing.assert_array_equal(read.transitions.next_obs, np.float32(flat[1:]))


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"rewards": with_nan(np.zeros(200), 7)}, "rewards are not finite at step 7 of x, episode 3"),
    ({"observations": with_nan(np.zeros((201, 3)), 9)}, "observations are not finite at step 9"),
    ({"rewards": np.zeros(5)}, "one observation more than actions and rewards, got 201, 200 and 5"),
    (
        {"observation_space": gymnasium.spaces.Box(-1, 1, (4,))},
        r"expected observations Box.*\(4,\)",
    ),
    ({"action_space": gymnasium.spaces.Box(-1, 1, (1,))}, "expected actions Box.*got Box.* in x"),
]


@pytest.mark.parametrize(("fields", "words"), MISTAKES, ids=str)
def test_what_cannot_be_learned_from_is_named(
    fields: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed(monkeypatch, **fields)
    with pytest.raises(ValueError, match=f"^dataset: .*{words}"):
        td3_bc.train(small("td3_bc", dataset=("x",), run_dir=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_no_dataset_and_no_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"dataset: expected Minari's ids or folders .* got none"):
        small("td3_bc", dataset=()).check()
    changed(monkeypatch)
    datasets.open_dataset("x").iterate_episodes = lambda: iter(())
    with pytest.raises(ValueError, match="dataset: expected episodes, got none in x"):
        small("td3_bc", dataset=("x",)).check()


def test_a_run_goes_on_with_its_own_data_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch)
    state = make(small("td3_bc")).state_dict()
    assert "env_pool" not in state
    changed(monkeypatch, rewards=np.zeros(200))
    with pytest.raises(CheckpointError, match="are not those that the run has learned from"):
        td3_bc.TD3BC(small("td3_bc"), restore=state)
    # whoever plays the policy needs none
    monkeypatch.setattr(datasets, "open_dataset", None)
    td3_bc.spec.load_policy(small("td3_bc"), state)


@pytest.mark.usefixtures("recorded")
def test_ctrl_c_waits_for_few_gradient_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken: list[int] = []
    run = ActorCritic.run

    def interrupted(self: ActorCritic, rows: Any, *others: Any) -> None:
        if not taken:
            signal.raise_signal(signal.SIGINT)
        taken.append(len(rows))
        run(self, rows, *others)

    monkeypatch.setattr(ActorCritic, "run", interrupted)
    config = small("td3_bc", total_steps=2_000, run_dir=tmp_path, log_every=td3_bc.Config.log_every)
    with pytest.raises(SystemExit):
        td3_bc.train(config)
    assert sum(taken) <= 64


@pytest.mark.usefixtures("recorded")
def test_options_of_collecting_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^num_envs: expected 1, got 2: td3_bc steps no env"):
        small("td3_bc", num_envs=2).check()
