"""Recurrent PPO: states go from step to step and batch to batch, and end with their episodes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from algorithms import make, small
from torch import Tensor, nn

from pyfastenv.algorithms import recurrent_ppo
from pyfastenv.nn.functional import gae
from pyfastenv.nn.recurrent import RecurrentNetwork, RnnType
from pyfastenv.publish.export import export
from pyfastenv.publish.play.player import Player
from pyfastenv.runs.saved import load_policy
from pyfastenv.sampling.rollouts import RolloutBatch

every_type = pytest.mark.parametrize("rnn_type", ["lstm", "gru"])


@every_type
def test_sequences_are_those_of_torch_between_the_starts_of_episodes(rnn_type: RnnType) -> None:
    torch.manual_seed(1)
    network = RecurrentNetwork((3, 5, 4, 2), rnn_type)
    whole = {"lstm": nn.LSTM, "gru": nn.GRU}[rnn_type](3, 5)
    whole.load_state_dict({f"{k}_l0": v for k, v in network.cell.state_dict().items()})
    obs, state = torch.randn(9, 2, 3), torch.randn(2, network.state_size)
    starts = torch.zeros(9, 2, dtype=torch.bool)
    starts[[0, 4], 1] = True
    outputs, states = network(obs, starts, state)

    def expected(part: Tensor, begin: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and last state of one episode's observations ``(T, 3)``."""
        halves = tuple(half[None, None].contiguous() for half in begin.chunk(2))
        given = halves if rnn_type == "lstm" else begin[None, None]
        hidden, last = whole(part[:, None], given)
        last = torch.cat(last, -1) if rnn_type == "lstm" else last
        return network.head(hidden[:, 0])[0], last[0, 0]

    zero = torch.zeros(network.state_size)
    for env_id, episodes in ((0, [(0, 9, state[0])]), (1, [(0, 4, zero), (4, 9, zero)])):
        for begin, end, first in episodes:
            found, last = expected(obs[begin:end, env_id], first)
            torch.testing.assert_close(outputs[begin:end, env_id], found)
            torch.testing.assert_close(states[end - 1, env_id], last)


def collected(env_id: str, **options: Any) -> tuple[Any, RolloutBatch]:
    """A training after some batches, and its next batch, from which it has not learned yet."""
    algorithm = make(small("recurrent_ppo", env_id=env_id, total_steps=2_000, **options))
    for _ in range(3):
        algorithm.iterate()
    return algorithm, algorithm._next_batch()


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
@every_type
def test_learning_sees_the_probabilities_and_values_of_collecting(
    env_id: str, rnn_type: RnnType
) -> None:
    """Whichever sequences a minibatch has; episodes end inside of them."""
    algorithm, batch = collected(env_id, rnn_type=rnn_type, env_kwargs={"max_episode_steps": 7})
    assert len(batch.episodes) > 4  # more than one in an environment
    packed = algorithm._pack(algorithm._samples(batch))
    assert packed.shape[:2] == (4, 16)
    for rows in (packed, packed[[2, 0]]):
        columns, outputs, values = algorithm._evaluate(rows)
        log_std = None if algorithm.discrete else algorithm.log_std
        result = algorithm.functions.ppo_loss(
            outputs, log_std, values, columns, clip=0.2, value_clip=0.0, entropy_coef=0.0,
            value_coef=0.5,
        )  # fmt: skip
        _, _, _, kl, clip_fraction = result.metrics
        assert abs(kl) < 1e-6 and clip_fraction == 0.0
        torch.testing.assert_close(values, columns.old_values)


def test_advantages_are_those_of_each_episode_alone() -> None:
    """A truncated one's end has the value of what it would have seen next, in its own state."""
    algorithm, batch = collected("Pendulum-v1", env_kwargs={"max_episode_steps": 7})
    state, normalizer = algorithm.value_state, algorithm.normalizer
    samples = algorithm._samples(batch)
    found = algorithm._pack(samples)[..., -3]  # (N, T)
    network, at = algorithm.value, 0
    for env_id in range(4):
        ends = torch.nonzero(samples.ended[:, env_id]).flatten().tolist()
        assert ends
        at, begin = 0, state[env_id : env_id + 1]
        for end in (*(end + 1 for end in ends), 16):
            if end == at:
                continue
            ended = end - 1 in ends
            which = (samples.end_steps == end - 1) & (samples.end_env_ids == env_id)
            after = samples.final_obs[which] if ended else batch.last_obs[env_id : env_id + 1]
            seen = normalizer(torch.cat((batch.obs[at:end, env_id], after)))[:, None]
            with torch.no_grad():
                values, states = network(seen, torch.zeros(len(seen), 1, dtype=torch.bool), begin)
            values = values.flatten(1)  # (t + 1, 1)
            rewards = samples.rewards[at:end, env_id : env_id + 1]
            over = torch.zeros_like(rewards, dtype=torch.bool)
            expected = gae(
                rewards, values[:-1], values[1:], over,
                gamma=algorithm.config.gamma, gae_lambda=algorithm.config.gae_lambda,
            )  # fmt: skip
            torch.testing.assert_close(found[env_id, at:end], expected[:, 0], rtol=1e-4, atol=1e-5)
            at, begin = end, torch.zeros_like(begin)
            if not ended:  # the state that the next batch begins with: before last_obs
                torch.testing.assert_close(algorithm.value_state[env_id], states[-2, 0])


def test_a_saved_policy_remembers_until_it_is_reset(tmp_path: Path) -> None:
    run = tmp_path / "run"
    recurrent_ppo.train(small("recurrent_ppo", env_id="CartPole-v1", run_dir=run))
    policy = load_policy(run)
    network = policy.as_torch().network
    obs = np.float32(np.random.default_rng(1).normal(size=(5, 3, 4)))
    seen: list[np.ndarray[Any, Any]] = []
    network.register_forward_hook(lambda module, given, result: seen.append(result[0].numpy()))

    def outputs(*steps: int) -> np.ndarray[Any, Any]:
        for step in steps:
            policy.act(obs[step])
        return seen[-1][0]  # (3, 2) of the last step

    first = outputs(0)
    after_others = outputs(1, 2, 0)
    assert not np.allclose(first, after_others, atol=1e-6)
    policy.reset()
    np.testing.assert_array_equal(first, outputs(0))
    outputs(1)
    policy.reset([1])
    again = outputs(0)
    np.testing.assert_allclose(again[1], first[1], atol=1e-6)
    assert not np.allclose(again[[0, 2]], first[[0, 2]], atol=1e-6)
    for none in ([], np.zeros(3, bool)):
        policy.reset(none)
    greedy = policy.as_torch().as_greedy()
    before = policy.as_torch()._state
    greedy.reset([False, True, False])  # a copy's memory is its own
    assert policy.as_torch()._state is before and before[1].any()
    for wrong in ([3], [-1], [0.5], [True]):
        with pytest.raises(ValueError, match="env_ids: expected integers from 0 to 2, or 3 bool"):
            policy.reset(wrong)
    with pytest.raises(TypeError, match=r"policy_id: expected an integer, got 0\.5"):
        policy.act(obs[0], policy_id=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"obs: expected 3 of them, as many as since reset\(\)"):
        policy.act(obs[0, :2])
    policy.reset()
    assert policy.act(obs[0, 0]) in (0, 1)

    with pytest.raises(ValueError, match="a policy with a memory is not exported"):
        export(run)
    assert not (run / "policy.onnx").exists()


def test_a_player_tells_where_episodes_begin() -> None:
    envs = make(small("recurrent_ppo", env_id="CartPole-v1")).envs
    began: list[int] = []
    player = Player(
        envs,
        lambda obs: np.zeros(4, np.int64),
        reset=lambda env_ids: began.extend(np.asarray(env_ids).tolist()),
    )
    while len(began) < 4:  # a cart that is pushed to the left alone lets its pole fall
        player.step()
    assert sorted(began) == [0, 1, 2, 3] and player.steps > 5
    player.select(2)
    player.reset()
    assert began[4:] == [2]
