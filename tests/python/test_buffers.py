"""Replay memory against plain Python, and transitions against step()."""

import copy
from collections import deque
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor
from torch.overrides import TorchFunctionMode

import pyfastenv
from pyfastenv.nn.networks import MLP
from pyfastenv.sampling.buffers import ReplayPool, RowLayout, Transitions
from pyfastenv.sampling.rollouts import RolloutBatch, rollout

# ---- transitions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_transitions_are_those_of_step(mode: str) -> None:
    def make() -> Any:
        envs = pyfastenv.make_vec(
            "InvertedPendulum-v5", 3, autoreset_mode=mode, num_threads=1, max_episode_steps=9
        )
        obs, _ = envs.reset(seed=1)
        return envs, obs

    torch.manual_seed(0)
    envs, _ = make()
    policy = MLP((4, 8, 1)).spec(distribution="deterministic", noise=1.0)
    batch = rollout(envs, policy, 60, out=RolloutBatch.allocate(envs, 60, dtype=torch.float64))
    transitions = Transitions.from_rollout(batch)
    actions_taken = batch.actions.numpy().copy()
    for tensor in (batch.obs, batch.actions, batch.rewards):
        tensor.zero_()  # the rollout's are written again; the transitions are copies
    envs.close()

    envs, obs = make()
    expected: list[tuple[Any, ...]] = []
    resetting = np.zeros(3, bool)
    for actions in actions_taken:
        after, rewards, terminated, truncated, infos = envs.step(actions)
        for i in range(3):
            is_final = mode == "SameStep" and (terminated | truncated)[i]
            next_obs = infos["final_obs"][i] if is_final else after[i]
            if not resetting[i]:
                ended = (terminated | truncated)[i]
                row = (obs[i], actions[i], rewards[i], next_obs, terminated[i], ended)
                expected.append(row)
        resetting = (terminated | truncated) & (mode == "NextStep")
        obs = after
    envs.close()
    terminated, ended = (sum(row[i] for row in expected) for i in (4, 5))
    assert 3 < terminated < ended  # episodes did end, in both ways
    for field, values in zip(transitions, zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(field.numpy(), np.stack(values))


# ---- rows ----------------------------------------------------------------------------------------


def test_rows_hold_what_was_packed() -> None:
    layout = RowLayout(obs_size=3, action_size=2)
    assert layout.width == 10
    obs, next_obs = torch.randn(2, 4, 5, 3, dtype=torch.float64)
    actions, rewards = torch.randn(4, 5, 2), torch.randn(4, 5, dtype=torch.float64)
    terminated = torch.rand(4, 5) < 0.5
    rows = layout.pack(obs, actions, next_obs, rewards, terminated)
    assert rows.shape == (4, 5, 10) and rows.dtype == torch.float32
    assert torch.equal(layout.obs(rows), obs.float())
    assert torch.equal(layout.obs_actions(rows), torch.cat((obs.float(), actions), -1))
    assert torch.equal(layout.next_obs(rows), next_obs.float())
    assert torch.equal(layout.rewards(rows), rewards.float())
    assert torch.equal(layout.continues(rows), (~terminated).float())


def test_parts_of_rows_are_views() -> None:
    layout = RowLayout(obs_size=1, action_size=1)
    rows = torch.zeros(2, layout.width)
    parts = (layout.obs, layout.next_obs, layout.rewards, layout.continues)
    for i, part in enumerate(parts, start=1):
        part(rows).fill_(i)
    layout.obs_actions(rows)[:, 1] = 5.0
    assert rows.tolist() == [[1.0, 5.0, 2.0, 3.0, 4.0]] * 2


# ---- the pool of several seeds -------------------------------------------------------------------

CAPACITY = 7
WIDTH = 2


class Numbered:
    """Rows whose numbers tell which ones they are."""

    def __init__(self) -> None:
        self._next = 0

    def rows(self, num_seeds: int, n: int) -> Tensor:
        first, self._next = self._next, self._next + num_seeds * n
        i = torch.arange(first, self._next, dtype=torch.float32).view(num_seeds, n, 1)
        return torch.cat((i, -i), -1)


def drawn(pool: ReplayPool) -> list[list[float]]:
    """Each seed's rows, in order of age where they are (an even grid meets each once)."""
    result = []
    for k, size in enumerate(pool.sizes.tolist()):
        if size == 0:
            result.append([])
            continue
        grid = (torch.arange(size, dtype=torch.float64) + 0.5) / size
        rows = pool.draw(grid.expand(pool.num_seeds, -1))[k]
        assert torch.equal(rows[:, 1], -rows[:, 0])
        result.append(rows[:, 0].tolist())
    return result


additions = st.tuples(st.just("add"), st.integers(0, 2 * CAPACITY), st.none() | st.integers(0))
resizes = st.tuples(st.just("resize"), st.integers(1, CAPACITY))
others = st.sampled_from([("clear",), ("restore",)])


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    num_seeds=st.integers(1, 3),
    steps=st.lists(st.one_of(additions, additions, resizes, others), max_size=15),
)
def test_the_pool_is_a_deque_per_seed(num_seeds: int, steps: list[tuple[Any, ...]]) -> None:
    pool = ReplayPool(num_seeds, CAPACITY, WIDTH)
    model: list[deque[float]] = [deque(maxlen=CAPACITY) for _ in range(num_seeds)]
    numbered_rows = Numbered()
    for name, *arguments in steps:
        if name == "add":
            n, mask_seed = arguments
            rows = numbered_rows.rows(num_seeds, n)
            keep = None
            if mask_seed is not None:
                generator = torch.Generator().manual_seed(mask_seed % 2**63)
                # from hardly any to nearly all, otherwise for each seed
                share = torch.rand(num_seeds, 1, generator=generator)
                keep = torch.rand(num_seeds, n, generator=generator) < share
            pool.add(rows, keep)
            for k, mine in enumerate(model):
                chosen = rows[k] if keep is None else rows[k, keep[k]]
                mine.extend(chosen[:, 0].tolist())
        elif name == "resize":
            (capacity,) = arguments
            pool.resize(capacity)
            model = [deque(mine, maxlen=capacity) for mine in model]
        elif name == "clear":
            pool.clear()
            for mine in model:
                mine.clear()
        else:
            state = copy.deepcopy(pool.state_dict())
            pool = ReplayPool(num_seeds, CAPACITY, WIDTH)
            pool.add(torch.full((num_seeds, 3, WIDTH), -1.0))
            pool.load_state_dict(state)
        assert pool.sizes.tolist() == [len(mine) for mine in model]
        assert [sorted(each) for each in drawn(pool)] == [sorted(mine) for mine in model]
        assert [sorted(rows[:, 0].tolist()) for rows in pool.rows()] == list(map(sorted, model))


class OnceEach(TorchFunctionMode):
    """No row but the spare one is written twice in a call: CUDA would not say which stays."""

    written: int = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.index_copy_:
            where = args[2]
            where = where[where % (CAPACITY + 1) != CAPACITY]
            assert len(where.unique()) == len(where)
            self.written += len(where)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("masked", [False, True])
def test_an_overflow_within_a_call_writes_each_row_once(masked: bool) -> None:
    pool = ReplayPool(2, CAPACITY, WIDTH)
    keep = torch.arange(20) % 3 != 0  # 13 of 20
    with OnceEach() as mode:
        pool.add(Numbered().rows(2, 20), keep.expand(2, -1) if masked else None)
    assert mode.written == 2 * CAPACITY


def test_draws_are_uniform_and_of_the_own_seed() -> None:
    pool = ReplayPool(3, 50, WIDTH)
    keep = torch.ones(3, 40, dtype=torch.bool)
    keep[1, 10:] = False
    pool.add(Numbered().rows(3, 40), keep)
    uniform = torch.rand(3, 5, 8_000, dtype=torch.float64, generator=torch.Generator())
    rows = pool.draw(uniform)
    assert rows.shape == (5, 3, 8_000, WIDTH)
    for k, size in enumerate((40, 10, 40)):
        counts = torch.bincount(rows[:, k, :, 0].flatten().long() - 40 * k, minlength=size)
        assert len(counts) == size
        expected = 40_000 / size  # standard deviation: at most its root
        assert (counts - expected).abs().max() < 5.0 * expected**0.5
    # which draw it is does not matter, only its number
    assert torch.equal(rows[3], pool.draw(uniform[:, 3]))


def test_the_first_and_the_last_row_can_be_drawn() -> None:
    for size in (1, 3, 1_000_003):
        pool = ReplayPool(1, size, 1)
        pool.add(torch.arange(size, dtype=torch.float32)[None, :, None])
        ends = torch.tensor([[0.0, 1.0 - 2.0**-53]], dtype=torch.float64)
        assert pool.draw(ends).flatten().tolist() == [0.0, size - 1.0]


def test_rows_that_are_not_kept_may_be_anything() -> None:
    pool = ReplayPool(2, 4, WIDTH)
    rows = torch.full((2, 6, WIDTH), torch.nan)
    keep = torch.zeros(2, 6, dtype=torch.bool)
    keep[0, 3] = True
    rows[0, 3] = 5.0
    pool.add(rows, keep)
    assert [each.tolist() for each in pool.rows()] == [[[5.0, 5.0]], []]
    pool.add(torch.ones(2, 1, WIDTH, dtype=torch.float64))
    assert pool.sizes.tolist() == [2, 1]
    assert all(each.isfinite().all() for each in pool.rows())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_a_pool_on_cuda_is_the_same() -> None:
    pools = [ReplayPool(2, 7, WIDTH, device) for device in ("cpu", "cuda")]
    generator = torch.Generator().manual_seed(0)
    for n in (5, 4, 20):
        rows = torch.randn(2, n, WIDTH, generator=generator)
        keep = torch.rand(2, n, generator=generator) < 0.5
        for pool in pools:
            pool.add(rows.to(pool.device), keep.to(pool.device))
    for pool in pools:
        pool.resize(6)
    assert torch.equal(pools[0].sizes, pools[1].sizes.cpu())
    for mine, theirs in zip(pools[0].rows(), pools[1].rows(), strict=True):
        assert torch.equal(mine, theirs.cpu())
    pools[0].load_state_dict(pools[1].state_dict())


def test_errors_of_pools() -> None:
    for sizes, name in (((0, 1, 1), "num_seeds"), ((1, 0, 1), "capacity"), ((1, 1, 0), "width")):
        with pytest.raises(ValueError, match=f"{name}: expected at least 1, got 0"):
            ReplayPool(*sizes)
    for capacity in (10**13, 10**18):  # of which the latter's bytes cannot be counted
        with pytest.raises(ValueError, match=r"buffer of 1 x [\d,]+ x 27 numbers .* cannot be"):
            ReplayPool(1, capacity, 27)
    pool = ReplayPool(2, CAPACITY, WIDTH)
    pool.add(Numbered().rows(2, 3))
    for shape in ((2, 3, 3), (1, 3, 2), (2, 3), (3, 2)):
        with pytest.raises(ValueError, match=r"rows: expected \(K, n, width\) = .*, got"):
            pool.add(torch.zeros(shape))
    for shape in ((2, 4), (3, 3), (3,)):
        with pytest.raises(ValueError, match=r"keep: expected \(2, 3\), got"):
            pool.add(torch.zeros(2, 3, WIDTH), torch.ones(shape, dtype=torch.bool))
    for capacity in (0, -1, CAPACITY + 1):
        with pytest.raises(ValueError, match=f"capacity: expected 1 to 7, got {capacity}"):
            pool.resize(capacity)
    state = pool.state_dict()
    with pytest.raises(ValueError, match=r"of 3 seeds with rows of 2 numbers, got 2 with \[2\]"):
        ReplayPool(3, CAPACITY, WIDTH).load_state_dict(state)
    with pytest.raises(ValueError, match=r"of 2 seeds with rows of 4 numbers, got 2 with \[2\]"):
        ReplayPool(2, CAPACITY, 4).load_state_dict(state)
    with pytest.raises(ValueError, match="expected at most 6 rows, got 7"):
        ReplayPool(2, 6, WIDTH).load_state_dict(state)
    assert pool.sizes.tolist() == [3, 3] and drawn(pool) == [[0, 1, 2], [3, 4, 5]]
