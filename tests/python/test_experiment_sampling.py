"""The experiment `sampling`: the baseline's processes, its timeouts, and the verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from pyfastenv.experiments.queue_workers import HORIZON, QueueWorkers
from pyfastenv.experiments.samplers import Policy, QueueSampler, SendRecvSampler, clock, our_envs
from pyfastenv.experiments.sampling import (
    ASYNC,
    QUEUE_GYMNASIUM,
    ROLLOUT,
    SEND_RECV,
    STEP,
    Cell,
    Group,
    verdict,
)

SMALL, HUGE = Group(20, "small"), Group(4_000, "small")


def gone(pid: int) -> bool:
    """Whether a process has ended (or is a zombie that nobody has waited for)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until_gone(pids: list[int]) -> bool:
    end = time.monotonic() + 10.0
    while time.monotonic() < end:
        if all(map(gone, pids)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("block", ["gymnasium", "pyfastenv"])
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


def test_timeouts():
    with QueueWorkers("pyfastenv", 2, 1) as workers:
        workers.reset(0, np.ones(2))
        with pytest.raises(RuntimeError, match="nothing has been sent"):
            workers.receive(None)
        time.sleep(0.3)  # a worker that is stopped while it writes would hold the queue's lock
        os.kill(workers.pids[1], signal.SIGSTOP)  # a slow worker
        for i in range(2):
            workers.send(i, np.zeros((1, 6), np.float32))
        assert list(workers.receive(0.01)) == [0]
        os.kill(workers.pids[1], signal.SIGCONT)
        assert list(workers.receive(None)) == [1]  # nothing is lost


def test_workers_end():
    workers = QueueWorkers("pyfastenv", 2, 1)
    pids = workers.pids

    def interrupted():
        with workers:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert wait_until_gone(pids)


def test_dead_and_failing_workers_are_reported():
    failure = pytest.raises(RuntimeError, match=r"worker 0 failed:\n(.*\n)*ValueError")
    with QueueWorkers("pyfastenv", 1, 1) as workers, failure:
        workers.reset(0, np.ones(3))
    with QueueWorkers("pyfastenv", 1, 1) as workers:
        os.kill(workers.pids[0], signal.SIGKILL)
        with pytest.raises(RuntimeError, match="worker 0 died with exit code"):
            workers.reset(0, np.ones(1))


def test_workers_die_with_the_program():
    code = (
        "import time, numpy\n"
        "from pyfastenv.experiments.queue_workers import QueueWorkers\n"
        "workers = QueueWorkers('pyfastenv', 2, 1)\n"
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("brax", 2, 1), "block: expected one of gymnasium, pyfastenv, got 'brax'"),
        (("pyfastenv", 0, 1), "num_workers: expected at least 1, got 0"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        QueueWorkers(*arguments)


def test_clock():
    policy = Policy((8,))
    for make, num_envs in (
        (lambda: QueueSampler(policy, 1, "pyfastenv", None), 8),
        (lambda: SendRecvSampler(policy, 6, None, 3), 6),
    ):
        row = clock(make, num_envs=num_envs, chunk=2, seconds=0.0, min_chunks=3)
        assert len(row["rates"]) == 3
        assert row["calls"] == pytest.approx(num_envs / row["per_receive"])
    assert row["per_receive"] == 3


def cell(group, sampler, timeout, rate, *, per_receive=8.0, others=0.0, calls=1.0):
    return Cell(
        group,
        sampler,
        timeout,
        {
            "num_envs": group.num_envs,
            "rates": [0.98 * rate, rate, 1.02 * rate],
            "per_receive": per_receive * group.envs_per_worker,
            "calls": calls,
            "cpus": 2.0,
            "others": others,
            "memory_mib": 1.0,
            "gaps": [],
        },
    )


def queues(group, short, waiting, others=0.0):
    return [
        cell(group, QUEUE_GYMNASIUM, 0.0001, short, per_receive=4.0, others=others),
        cell(group, QUEUE_GYMNASIUM, 0.1, waiting, others=others),
    ]


@pytest.mark.parametrize(
    ("group", "short", "waiting", "outcome"),
    [
        (SMALL, 100, 200, "**holds**"),
        (SMALL, 200, 100, "**does not hold**"),
        (HUGE, 200, 100, "**holds**"),
        (HUGE, 100, 200, "**does not hold**"),
        (HUGE, 100, 101, "**cannot be told**"),
    ],
)
def test_verdict_on_the_document(group, short, waiting, outcome):
    text = verdict([*queues(group, short, waiting), cell(group, STEP, None, 900)])
    assert outcome in text
    assert "4.0 and 8.0 of 8 workers' results" in text


def test_verdict_says_nothing_of_a_disturbed_machine():
    text = verdict(queues(SMALL, 100, 200, others=5.0))
    assert "**cannot be told** here: other programs" in text
    assert "quiet machine" in text


def test_verdict_on_ours():
    cells = [*queues(SMALL, 100, 200), cell(SMALL, STEP, None, 900), cell(SMALL, ASYNC, None, 50)]
    text = verdict([*cells, cell(SMALL, ROLLOUT, None, 1_000)])
    assert "Ours is ahead in all 4 comparisons" in text
    assert "use `rollout` (1,000 steps/s); it is clearly faster than the plain `step`" in text
    text = verdict([*cells, cell(SMALL, SEND_RECV, 0.0001, 60, calls=12.0)])
    assert "our send/recv, 0.0001 s is behind queues, gymnasium, 0.0001 s (0.60 times" in text
    assert "it calls the policy 12.0 times per iteration, the other 1.0 times" in text
    assert "nothing that avoids the barrier was faster" in text


def test_verdict_where_nothing_could_be_measured():
    skipped = [Cell(SMALL, QUEUE_GYMNASIUM, None, {"skipped": "needs CUDA"})]
    assert f"{SMALL.name}: not measured." in verdict(skipped)
