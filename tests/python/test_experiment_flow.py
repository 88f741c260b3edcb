"""The experiment ``flow``: its chain of remedies, what it makes of the numbers, a tiny run; and the
slow program that it measures (list_mbpo)."""

# ruff: noqa: E402

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from pyfastenv.experiments import flow
from pyfastenv.experiments.list_mbpo import (
    ArrayPool,
    Habits,
    ListMBPO,
    ListPool,
    PlainEnsemble,
    PlainEnv,
    PlainSAC,
)
from pyfastenv.experiments.study import NEEDS_CUDA, Study

pytestmark = pytest.mark.timeout(120)
Path = pathlib.Path
FAST = Habits(
    anomaly_mode=False,
    list_pools=False,
    chunk_size=0,
    gradients_on=False,
    items_per_update=False,
    prints=False,
    auxiliary_rollout=False,
)
TINY = flow.Sizes(
    rounds=1, steps=1, updates=1, epochs=1, rollout_states=50, agent_updates=1, real=300
)
both_pools = pytest.mark.parametrize("make_pool", [ListPool, ArrayPool])


@pytest.fixture(autouse=True)
def seeded(one_torch_thread: None) -> None:
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)


@pytest.fixture
def env() -> Iterator[PlainEnv]:
    made = PlainEnv("InvertedPendulum-v5", 0)
    yield made
    made.close()


def transitions(count: int, start: int = 0) -> tuple[Any, ...]:
    """Whose every number says which one they are."""
    each = np.arange(start, start + count, dtype=np.float32)
    return (each[:, None].repeat(3, 1), each[:, None], each, each[:, None].repeat(3, 1), each)


# ---- pools -------------------------------------------------------------------------------------


@both_pools
def test_pools_hold_the_latest_transitions_and_draw_whole_ones(make_pool: type) -> None:
    pool = make_pool(5)
    pool.push(*transitions(3))
    assert len(pool) == 3
    pool.push(*transitions(4, start=3))
    assert len(pool) == 5
    assert sorted(pool.all()[2].tolist()) == [2.0, 3.0, 4.0, 5.0, 6.0]
    obs, actions, rewards, next_obs, continues = pool.sample(100)
    assert obs.shape == next_obs.shape == (100, 3)
    assert actions.shape == (100, 1)
    assert rewards.shape == continues.shape == (100,)
    assert set(rewards) == {2.0, 3.0, 4.0, 5.0, 6.0}
    np.testing.assert_array_equal(obs[:, 0], rewards)
    np.testing.assert_array_equal(actions[:, 0], rewards)


def test_pools_hold_the_same() -> None:
    pools = [ListPool(7), ArrayPool(7)]
    for start, count in ((0, 3), (3, 6), (9, 1)):
        for pool in pools:
            pool.push(*transitions(count, start))
    for one, other in zip(pools[0].all(), pools[1].all(), strict=True):
        np.testing.assert_array_equal(one, other)


# ---- learners ----------------------------------------------------------------------------------


def test_the_plain_agent_learns_which_action_is_rewarded() -> None:
    agent = PlainSAC(1, 1, FAST)
    obs = np.zeros((256, 1), np.float32)
    for _ in range(100):
        actions = np.random.uniform(-1.0, 1.0, (256, 1)).astype(np.float32)
        rewards = -10.0 * np.square(actions[:, 0] - 0.5)
        agent.update((obs, actions, rewards, obs, np.zeros(256, np.float32)))
    assert 0.2 < agent.act(np.zeros((500, 1))).mean() < 0.9


def test_the_plain_ensemble_learns_dynamics_and_predicts_them() -> None:
    model = PlainEnsemble(2, 1, FAST)
    obs = np.random.normal(size=(1_000, 2)).astype(np.float32)
    actions = np.random.uniform(-1.0, 1.0, (1_000, 1)).astype(np.float32)
    next_obs = obs + 0.5 * actions
    batch = (obs, actions, obs[:, 0], next_obs, np.ones(1_000, np.float32))
    assert model.fit(batch, max_epochs=30) <= 30
    rewards, predicted = model.predict(obs, actions)
    assert np.abs(predicted - next_obs).mean() < 0.1
    assert np.abs(rewards - obs[:, 0]).mean() < 0.2


@pytest.mark.parametrize("amp", [False, True])
def test_the_flow_and_its_agent_learn(env: PlainEnv, amp: bool) -> None:
    program = ListMBPO(env, dataclasses.replace(FAST, amp=amp), flow=True)
    program.explore(300)
    program.model.fit(program.env_pool.all(), max_epochs=1)
    assert program.flow is not None
    trained = [*program.flow.parameters(), *program.model_agent.critics.parameters()]
    trained += program.model.parameters()
    before = [parameter.detach().clone() for parameter in trained]
    program.update_flow(iterations=2)
    program.improve_model(2)
    changed = [not torch.equal(a, b) for a, b in zip(before, trained, strict=True)]
    assert np.mean(changed) > 0.8  # a flow's untouched half, elites only
    assert all(parameter.isfinite().all() for parameter in trained)


# ---- habits ------------------------------------------------------------------------------------


def test_habits_decide_on_pools_prints_anomaly_mode_and_rollouts(
    env: PlainEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    modes: list[bool] = []
    rollouts: list[int] = []

    def program(habits: Habits) -> ListMBPO:
        made = ListMBPO(env, habits, flow=True, rollout_batch=20, say=said.append)
        made.explore(300)
        made.roll_out(300, 1, made.model_pool)
        made.steps = 1  # nothing but the step itself is due
        update, roll_out = made.sac.update, made.roll_out

        def spied_update(batch: Any) -> None:
            modes.append(torch.is_anomaly_enabled())
            update(batch)

        def spied_roll_out(num_states: int, *rest: Any) -> None:
            rollouts.append(num_states)
            roll_out(num_states, *rest)

        monkeypatch.setattr(made.sac, "update", spied_update)
        monkeypatch.setattr(made, "roll_out", spied_roll_out)
        return made

    slow = program(Habits())
    assert isinstance(slow.env_pool, ListPool)
    slow.run(1, updates_per_step=2)
    assert said == ["step 1", "update 0 of 2", "update 1 of 2"]
    assert modes == [True, True]
    assert rollouts == [1_000]
    assert not torch.is_anomaly_enabled()
    for found in (said, modes, rollouts):
        found.clear()
    fast = program(FAST)
    assert isinstance(fast.env_pool, ArrayPool)
    fast.run(1, updates_per_step=2)
    assert (said, modes, rollouts) == ([], [False, False], [])


def test_habits_decide_on_chunks_gradients_and_reading_numbers_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[int, bool]] = []
    for habits in (Habits(chunk_size=64), FAST):
        model = PlainEnsemble(2, 1, habits)
        forward = model.forward

        def spied(x: Any, forward: Any = forward) -> Any:
            calls.append((x.shape[1], torch.is_grad_enabled()))
            return forward(x)

        monkeypatch.setattr(model, "forward", spied)
        model.predict(np.zeros((100, 2)), np.zeros((100, 1)))
    assert calls == [(64, True), (36, True), (100, False)]

    reads: list[None] = []
    item = torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda self: reads.append(None) or item(self))
    obs = np.zeros((8, 1), np.float32)
    counts = []
    for habits in (dataclasses.replace(FAST, items_per_update=True), FAST):
        agent = PlainSAC(1, 1, habits)
        reads.clear()
        agent.update((obs, obs, obs[:, 0], obs, obs[:, 0]))
        counts.append(len(reads))
    assert counts[0] - counts[1] == 5


# ---- the experiment ----------------------------------------------------------------------------


def test_the_chain_drops_one_habit_after_the_other() -> None:
    programs = list(flow.chain().values())
    assert programs[0] == Habits()
    assert programs[-1] == dataclasses.replace(FAST, amp=True)
    changed: set[str] = set()
    for before, after in itertools.pairwise(programs):
        fields = {
            field.name
            for field in dataclasses.fields(Habits)
            if getattr(before, field.name) != getattr(after, field.name)
        }
        assert fields
        assert not fields & changed
        changed |= fields


def test_parts_are_scaled_to_the_documents_sizes() -> None:
    sizes = flow.Sizes(
        rounds=1, steps=2, updates=10, epochs=3, rollout_states=1_000, agent_updates=4
    )
    row = flow.per_step(dict.fromkeys(flow.PARTS, 1_000.0), sizes, updates=10)
    assert row == {
        "environment step": 500.0,
        "20 SAC updates": 2_000.0,
        "rollout at every step": 1_000.0,
        "fits of the model": pytest.approx(40.0),
        "rollouts of the model": pytest.approx(400.0),
        "updates of the flow": 1.0,
        "agent that improves the model": pytest.approx(200.0),
    }


@pytest.mark.parametrize(
    ("q1", "median", "q3", "word"),
    [
        (1.5, 2.0, 2.5, "matters"),
        (0.9, 2.0, 2.5, "does not matter"),
        (1.01, 1.05, 1.09, "does not matter"),
        (0.5, 0.6, 0.7, "slower"),
        (0.5, 0.6, 1.7, "does not matter"),
    ],
)
def test_a_remedy_matters_if_it_is_faster_beyond_the_noise(
    q1: float, median: float, q3: float, word: str
) -> None:
    assert flow.judge({"q1": q1, "median": median, "q3": q3}) == word


def test_the_verdict_follows_the_numbers() -> None:
    names = [*flow.chain(), flow.FLOAT32, flow.AMP]
    milliseconds = [1_000.0, 500.0, 490.0, 490.0, 700.0, 300.0, 290.0, 280.0, 70.0, 10.0]
    totals = {name: [ms, ms, ms] for name, ms in zip(names, milliseconds, strict=True)}
    parts = {name: dict.fromkeys(flow.PARTS, rows[0] / 7) for name, rows in totals.items()}
    batches: dict[str, dict[int, Any]] = {
        name: {size: {"ms": [100.0]} for size in flow.FLOW_BATCHES}
        for name in (flow.SLOWEST, flow.AMP)
    }
    text = flow.verdict(totals, parts, batches, gpu=False, quick=False)
    assert "10.0 ms per step instead of 1,000 ms: 100.0 [100.0, 100.0] times faster" in text
    matter, rest, slower = (
        next(line for line in text.splitlines() if f"**Remedies that {word}" in line)
        for word in ("matter**", "do not matter**", "make it slower**")
    )
    assert "prediction without gradients, in one piece (×2.33); anomaly mode off (×2.00)" in matter
    assert "no prints (×1.02)" in rest
    assert "arrays instead of lists (×0.70)" in slower
    assert "The flow is not the problem" in text
    batches[flow.SLOWEST][500] = {"ms": [500_000.0]}
    assert "its batch size counts" in flow.verdict(totals, parts, batches, gpu=True, quick=True)


def test_a_tiny_run_leaves_a_report_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "QUICK", TINY)
    monkeypatch.setattr(flow, "REMEDIES", (flow.REMEDIES[0], *flow.REMEDIES[-2:]))
    monkeypatch.setattr(flow, "FLOW_BATCHES", (100,))
    report = flow.run(Study("flow", tmp_path, quick=True))
    text = report.read_text()
    assert "## Verdict" in text
    assert all(f"+ {name} |" in text for name, _ in flow.REMEDIES)
    assert (tmp_path / "ablation.png").stat().st_size > 10_000
    measurements = json.loads((tmp_path / "results.json").read_text())["measurements"]
    slowest = measurements[f"round 1: {flow.SLOWEST}"]
    assert all(slowest[part] > 0.0 for part in flow.PARTS)
    ours = measurements[f"round 1: {flow.AMP}"]
    assert [part for part in flow.PARTS if ours[part] == 0.0] == ["rollout at every step"]
    if not torch.cuda.is_available():
        on_cuda = [row for key, row in measurements.items() if key.startswith("CUDA: ")]
        assert on_cuda == [{"skipped": NEEDS_CUDA}] * 7
        assert NEEDS_CUDA in text

    monkeypatch.setattr(flow, "_ms", lambda call: pytest.fail("measured again"))
    again = flow.run(Study("flow", tmp_path, quick=True))
    assert again.read_text() == text


def test_times_of_another_machine_are_refused(tmp_path: Path) -> None:
    study = Study("flow", tmp_path, quick=True)
    assert study.measure("one", lambda: {"ms": 1.0})["ms"] == 1.0
    Study("flow", tmp_path, quick=True)
    path = tmp_path / "results.json"
    state = json.loads(path.read_text())
    state["machine"]["cpu"] = "an abacus"
    path.write_text(json.dumps(state))
    with pytest.raises(ValueError, match=r"another machine \(.*abacus.*another --output"):
        Study("flow", tmp_path, quick=True)
