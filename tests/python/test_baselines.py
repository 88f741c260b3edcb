"""The baselines: they do what the documents' programs do, and learn; workers come and go."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from pyfastenv.experiments.baselines import loaders
from pyfastenv.experiments.baselines.list_mbpo import ListMBPO, PlainEnv
from pyfastenv.experiments.baselines.plain_learners import Habits, PlainEnsemble, PlainSAC
from pyfastenv.experiments.baselines.pools import ArrayPool, ListPool
from pyfastenv.experiments.baselines.queue_workers import HORIZON, QueueWorkers
from pyfastenv.experiments.baselines.textbook import PLACEMENTS, TextbookDDPG, TextbookPPO
from pyfastenv.experiments.samplers import our_envs


@pytest.fixture(autouse=True)
def seeded() -> None:
    for seed in (np.random.seed, random.seed):
        seed(0)


# ---- processes and queues ------------------------------------------------------------------------


def gone(pid: int) -> bool:
    """Whether a process has ended (or is a zombie that nobody has waited for)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until_gone(pids: list[int]) -> bool:
    end = time.monotonic() + 600.0
    while time.monotonic() < end:
        if all(map(gone, pids)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("block", ["rows", "objects", "ours"])
def test_workers_give_what_step_gives(block):
    envs = our_envs(4)
    directions = envs.get_task()[:, 0]
    rng = np.random.default_rng(1)
    with QueueWorkers(block, 2, 2) as workers:
        np.testing.assert_array_equal(
            workers.reset(0, directions).astype(np.float32), envs.reset(seed=0)[0]
        )
        for step in range(HORIZON + 2):
            actions = rng.uniform(-1.0, 1.0, (4, 6)).astype(np.float32)
            for i in range(2):
                workers.send(i, actions[2 * i : 2 * i + 2])
            results = workers.receive(None)
            obs, rewards, terminations, truncations, infos = envs.step(actions)
            rows = {name: np.concatenate([results[i][name] for i in (0, 1)]) for name in results[0]}
            np.testing.assert_array_equal(rows["next_obs"].astype(np.float32), obs)
            np.testing.assert_array_equal(rows["rewards"], rewards.astype(np.float32))
            np.testing.assert_array_equal(rows["terminations"], terminations)
            np.testing.assert_array_equal(rows["truncations"], truncations)
            if step == HORIZON - 1:
                assert truncations.all()
                final = np.stack(list(infos["final_obs"]))
                np.testing.assert_array_equal(rows["final_obs"].astype(np.float32), final)
    envs.close()


def test_dead_and_failing_workers_are_reported():
    failure = pytest.raises(RuntimeError, match=r"worker 0 failed:\n(.*\n)*ValueError")
    with QueueWorkers("ours", 1, 1) as workers, failure:
        workers.reset(0, np.ones(3))
    with QueueWorkers("ours", 1, 1) as workers:
        os.kill(workers.pids[0], signal.SIGKILL)
        with pytest.raises(RuntimeError, match="worker 0 died with exit code"):
            workers.reset(0, np.ones(1))


def test_workers_die_with_the_program():
    code = (
        "import time, numpy\n"
        "from pyfastenv.experiments.baselines.queue_workers import QueueWorkers\n"
        "workers = QueueWorkers('ours', 2, 1)\n"
        "workers.reset(0, numpy.ones(2))\n"
        "print(*workers.pids, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.kill()
    assert wait_until_gone(pids)


# ---- MBPO with lists ----

FAST = Habits(
    anomaly_mode=False, list_pools=False, chunk_size=0, gradients_on=False, items_per_update=False,
    prints=False, auxiliary_rollout=False,
)  # fmt: skip
both_pools = pytest.mark.parametrize("make_pool", [ListPool, ArrayPool])


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


# ---- the textbook ----


def test_the_textbooks_ppo_learns():
    run = TextbookPPO((32,), fixed_start=False, seed=0).train(70)
    assert np.mean(run.returns[-10:]) > 2.5 * np.mean(run.returns[:10])
    assert run.env_steps == sum(run.returns)
    assert run.updates == len(run.returns) == len(run.seconds) == 70
    assert run.copy_s < 0.01 * run.seconds[-1]


def test_a_fixed_start_is_the_same_each_time_and_an_honest_one_is_not():
    fixed, honest = (TextbookPPO((8,), fixed_start=start) for start in (True, False))
    np.testing.assert_array_equal(fixed.reset(), fixed.reset())
    assert (honest.reset() != honest.reset()).any()


@pytest.mark.parametrize("copy_every", [1, 50])
def test_the_textbooks_ddpg_updates_once_per_step(copy_every):
    trainer = TextbookDDPG((16,), minimum=150, copy_every=copy_every)
    critic = next(trainer.critic.parameters()).clone()
    run = trainer.train(1)
    assert run.env_steps == 200
    assert run.updates == 50
    assert not torch.equal(critic, next(trainer.critic.parameters()))


@pytest.mark.parametrize("placement", [p for p, each in PLACEMENTS.items() if not each.needs_cuda])
def test_placements_on_the_cpu_learn_the_same(placement):
    states = []
    for each in ("cpu", placement):
        trainer = TextbookPPO((8,), placement=each, length=50)
        assert trainer.train(3).env_steps == 150
        states.append(trainer.actor.state_dict())
    torch.testing.assert_close(*states)


@pytest.mark.parametrize("name", loaders.LOADERS)
def test_loaders_give_batches_that_differ(name):
    with loaders.LOADERS[name]() as batches:
        first, second = next(batches), next(batches)
    assert [tuple(x.shape) for x in first] == [(1_024, 17), (1_024, 6), (1_024,)]
    assert not torch.equal(first[0], second[0])
