"""Replay memory against plain Python, and transitions against step()."""

# ruff: noqa: E402

from __future__ import annotations

import io
from collections import deque
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pyfastenv
from pyfastenv.buffers import ReplayBuffer, Transitions
from pyfastenv.networks import MLP
from pyfastenv.rollouts import Episodes, RolloutBatch, rollout


def numbered(first: int, n: int) -> Transitions:
    """Transitions whose every number tells which one it is."""
    i = torch.arange(first, first + n, dtype=torch.float32)
    return Transitions(
        obs=torch.stack((i, i + 0.25), 1),
        actions=i[:, None] + 0.5,
        rewards=-i,
        next_obs=torch.stack((i + 1, i + 1.25), 1),
        terminated=i % 3 == 0,
    )


def contents(buffer: ReplayBuffer) -> set[float]:
    generator = torch.Generator().manual_seed(0)
    return set((-buffer.sample(50 * buffer.capacity, generator).rewards).tolist())


# ---- transitions ---------------------------------------------------------------------------------


def test_transitions_of_a_rollout_end_where_episodes_do() -> None:
    batch = RolloutBatch(
        obs=torch.arange(6.0).view(3, 2, 1),
        actions=10 + torch.arange(6.0).view(3, 2, 1),
        log_probs=torch.zeros(3, 2),
        rewards=20 + torch.arange(6.0).view(3, 2),
        terminations=torch.tensor([[False, False], [False, False], [False, True]]),
        truncations=torch.tensor([[False, False], [True, False], [False, False]]),
        autoresets=torch.zeros(3, 2, dtype=torch.bool),
        last_obs=torch.tensor([[6.0], [7.0]]),
        episodes=Episodes(
            steps=torch.tensor([1, 2]),
            env_ids=torch.tensor([0, 1]),
            returns=torch.zeros(2, dtype=torch.float64),
            lengths=torch.tensor([2, 3]),
            terminated=torch.tensor([False, True]),
            final_obs=torch.tensor([[100.0], [200.0]]),
        ),
    )
    transitions = Transitions.from_rollout(batch)
    assert transitions.obs.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    assert transitions.actions.flatten().tolist() == [10, 11, 12, 13, 14, 15]
    assert transitions.rewards.tolist() == [20, 21, 22, 23, 24, 25]
    assert transitions.next_obs.flatten().tolist() == [2, 3, 100, 5, 6, 200]
    assert transitions.terminated.tolist() == [False] * 5 + [True]
    batch.obs.zero_()  # the rollout's tensors are written again; the transitions are copies
    batch.rewards.zero_()
    assert transitions.obs.sum() == 15
    assert transitions.rewards.sum() == 135


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_transitions_are_those_of_step(mode: str) -> None:
    def make() -> Any:
        envs = pyfastenv.make_vec("InvertedPendulum-v5", 3, autoreset_mode=mode, num_threads=1)
        obs, _ = envs.reset(seed=1)
        return envs, obs

    torch.manual_seed(0)
    envs, _ = make()
    policy = MLP((4, 8, 1)).spec(distribution="deterministic", noise=1.0)
    batch = rollout(envs, policy, 60, out=RolloutBatch.allocate(envs, 60, dtype=torch.float64))
    transitions = Transitions.from_rollout(batch)
    envs.close()

    envs, obs = make()
    expected: list[tuple[Any, ...]] = []
    resetting = np.zeros(3, bool)
    for actions in batch.actions.numpy():
        after, rewards, terminated, truncated, infos = envs.step(actions)
        for i in range(3):
            is_final = mode == "SameStep" and (terminated | truncated)[i]
            next_obs = infos["final_obs"][i] if is_final else after[i]
            if not resetting[i]:
                expected.append((obs[i], actions[i], rewards[i], next_obs, terminated[i]))
        resetting = (terminated | truncated) & (mode == "NextStep")
        obs = after
    envs.close()
    assert sum(row[4] for row in expected) > 3  # episodes did end
    for field, values in zip(transitions, zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(field.numpy(), np.stack(values))


# ---- the buffer ----------------------------------------------------------------------------------


def test_the_newest_stay() -> None:
    buffer = ReplayBuffer(7, 2, 1)
    model: deque[float] = deque(maxlen=7)
    first = 0
    for n in (1, 3, 2, 5, 7, 0, 4, 20, 6, 14, 1):
        buffer.add(numbered(first, n))
        model.extend(range(first, first + n))
        first += n
        assert len(buffer) == len(model)
        assert contents(buffer) == set(model)


def test_a_sample_is_whole_transitions_drawn_uniformly() -> None:
    buffer = ReplayBuffer(50, 2, 1)
    buffer.add(numbered(0, 30))
    sample = buffer.sample(60_000, torch.Generator().manual_seed(3))
    i = (-sample.rewards).long()
    stored = numbered(0, 30)
    for drawn, field in zip(sample, stored, strict=True):
        assert drawn.dtype == field.dtype
        assert torch.equal(drawn, field[i])
    counts = torch.bincount(i, minlength=30)
    # 2,000 each, standard deviation 44
    assert len(counts) == 30
    assert counts.min() > 1_800 and counts.max() < 2_200


def test_the_generator_decides() -> None:
    buffer = ReplayBuffer(50, 2, 1)
    buffer.add(numbered(0, 50))
    one = torch.Generator().manual_seed(5)
    two = torch.Generator().manual_seed(5)
    first = buffer.sample(20, one)
    assert torch.equal(first.obs, buffer.sample(20, two).obs)
    assert not torch.equal(first.obs, buffer.sample(20, one).obs)
    torch.manual_seed(1)
    from_default = buffer.sample(20).obs
    torch.manual_seed(1)
    assert torch.equal(from_default, buffer.sample(20).obs)


def test_float64_and_other_layouts_are_taken() -> None:
    buffer = ReplayBuffer(4, 2, 1)
    new = numbered(0, 8)
    buffer.add(Transitions(*(field[::2].double() for field in new)))
    assert contents(buffer) == {0, 2, 4, 6}


@pytest.mark.parametrize("added", [0, 5, 7, 12])
def test_a_restored_buffer_goes_on_alike(added: int) -> None:
    buffer = ReplayBuffer(7, 2, 1)
    buffer.add(numbered(0, added))
    file = io.BytesIO()
    torch.save(buffer.state_dict(), file)
    file.seek(0)
    restored = ReplayBuffer(7, 2, 1)
    restored.add(numbered(500, 3))
    restored.load_state_dict(torch.load(file, weights_only=True))
    for each in (buffer, restored):
        each.add(numbered(100, 4))
    a, b = (each.sample(100, torch.Generator().manual_seed(0)) for each in (buffer, restored))
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert len(buffer) == len(restored)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_on_cuda_the_same() -> None:
    buffers = [ReplayBuffer(7, 2, 1, device=device) for device in ("cpu", "cuda")]
    for buffer in buffers:
        buffer.add(numbered(0, 5))
        buffer.add(numbered(5, 5))
    a, b = (buffer.sample(100, torch.Generator().manual_seed(0)) for buffer in buffers)
    assert b.obs.is_cuda
    assert all(torch.equal(x, y.cpu()) for x, y in zip(a, b, strict=True))
    on_device = torch.Generator("cuda").manual_seed(0)
    assert buffers[1].sample(3, on_device).obs.is_cuda
    buffers[0].load_state_dict(buffers[1].state_dict())


# ---- mistakes ------------------------------------------------------------------------------------


def test_errors_say_what_was_expected() -> None:
    with pytest.raises(ValueError, match="capacity: expected at least 1, got 0"):
        ReplayBuffer(0, 2, 1)
    with pytest.raises(ValueError, match="action_size: expected at least 1, got 0"):
        ReplayBuffer(1, 2, 0)
    buffer = ReplayBuffer(7, 2, 1)
    with pytest.raises(ValueError, match="the buffer is empty"):
        buffer.sample(1)
    new = numbered(0, 3)
    with pytest.raises(ValueError, match=r"actions: expected \(3, 1\), got \(2, 1\)"):
        buffer.add(new._replace(actions=new.actions[:2]))
    with pytest.raises(ValueError, match=r"next_obs: expected \(3, 2\), got \(3, 1\)"):
        buffer.add(new._replace(next_obs=new.next_obs[:, :1]))
    assert len(buffer) == 0
    buffer.add(new)
    with pytest.raises(ValueError, match="n: expected at least 1, got 0"):
        buffer.sample(0)
    with pytest.raises(ValueError, match=r"capacity 7 and rows of 7 .* capacity 8 and rows of 7"):
        buffer.load_state_dict(ReplayBuffer(8, 2, 1).state_dict())
    with pytest.raises(ValueError, match=r"capacity 7 and rows of 7 .* capacity 7 and rows of 9"):
        buffer.load_state_dict(ReplayBuffer(7, 3, 1).state_dict())
    assert len(buffer) == 3
