"""How many CPUs there are, what an idle pool costs, and several Python threads at one pool."""

import os
import pathlib
import threading
from typing import Any

import numpy as np
import pytest
from parity import assert_same, step_both
from scripts import run_script
from threads import run_threads
from trajectories import action_table

import pyfastenv
from pyfastenv.vector.cpus import available_cpus

NUM_ENVS = 8


def make(num_threads: int = 1, env_id: str = "HalfCheetah-v5", **kwargs: Any) -> Any:
    return pyfastenv.make_vec(env_id, **{"num_envs": NUM_ENVS, **kwargs}, num_threads=num_threads)


# ---- CPUs ----------------------------------------------------------------------------------------

AFFINITY = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu.max": "1000000000 100000\n"}, None),
        ({"cpu.max": ""}, None),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "110000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "50000\n"}, None),
    ],
    ids=str,
)
def test_cgroup_quota(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    quota: int | None,
) -> None:
    for name, text in files.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert available_cpus(tmp_path) == min(quota or AFFINITY, AFFINITY)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    assert available_cpus(tmp_path) == (quota or 64)


def test_quota_of_an_enclosing_cgroup(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    folder = tmp_path / "sys/fs/cgroup/user.slice/job"
    folder.mkdir(parents=True)
    (folder / "cpu.max").write_text("max 100000\n")
    (folder.parent / "cpu.max").write_text("300000 100000\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/job\n")
    assert available_cpus(tmp_path) == 3


def test_missing_cgroup_folder(tmp_path: pathlib.Path) -> None:
    assert available_cpus(tmp_path / "none") == AFFINITY


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_affinity() -> None:
    script = """
import os, pyfastenv
from pyfastenv.vector.cpus import available_cpus
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(available_cpus(), pyfastenv.make_vec("HalfCheetah-v5", 8, num_threads=0).num_threads)
"""
    assert run_script(script).split() == ["1", "1"]


def test_number_of_threads() -> None:
    assert make(0).num_threads == min(available_cpus(), NUM_ENVS)
    assert make(3).num_threads == 3
    assert make(50).num_threads == NUM_ENVS
    assert pyfastenv.make_vec("HalfCheetah-v5", 1, num_threads=0).num_threads == 1


@pytest.mark.parametrize("before", ["", "envs.step(actions)", "envs.send(actions); envs.recv()"])
def test_an_idle_pool_uses_no_cpu(before: str) -> None:
    script = f"""
import time
import numpy as np, pyfastenv
envs = pyfastenv.make_vec("HalfCheetah-v5", 8, num_threads=4)
actions = np.zeros((8, 6), np.float32)
envs.reset(seed=0)
{before}
start = time.process_time()
time.sleep(0.5)
print(time.process_time() - start)
"""
    assert float(run_script(script)) < 0.1


# ---- Python threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [1, 4])
def test_two_threads_with_a_pool_each(num_threads: int) -> None:
    def work(seed: int) -> None:
        envs, twin = make(num_threads, max_episode_steps=20), make(max_episode_steps=20)
        assert_same(envs.reset(seed=seed), twin.reset(seed=seed))
        step_both(envs, twin, 100, seed=seed)

    run_threads(lambda: work(0), lambda: work(100))


@pytest.mark.parametrize("num_threads", [1, 4])
def test_two_threads_stepping_one_pool(num_threads: int) -> None:
    """With equal actions the order of the calls does not matter: each result is one whole step."""
    envs, twin = make(num_threads), make()
    envs.reset(seed=0)
    twin.reset(seed=0)
    actions = np.full((NUM_ENVS, 6), 0.3, np.float32)
    results: list[Any] = []

    def work() -> None:
        for _ in range(100):
            results.append(envs.step(actions))

    run_threads(work, work)
    expected = [twin.step(actions) for _ in range(200)]
    found = {result[0].tobytes(): result for result in results}
    assert len(found) == 200
    for each in expected:
        assert_same(found[each[0].tobytes()], each)


@pytest.mark.parametrize("num_threads", [1, 4])
def test_two_threads_stepping_one_pool_whose_episodes_end(num_threads: int) -> None:
    script = """
import sys, threading
import numpy as np, pyfastenv
sys.setswitchinterval(1e-5)
envs = pyfastenv.make_vec("HalfCheetah-v5", 64, num_threads=int(sys.argv[1]),
                          autoreset_mode="SameStep", max_episode_steps=1)
envs.reset(seed=0)
actions = np.zeros((64, 6), np.float32)
bad = []
def work():
    for _ in range(300):
        infos = envs.step(actions)[4]
        if not all(row is not None and row.any() for row in infos["final_obs"]):
            bad.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(bad))
"""
    assert run_script(script, num_threads) == "0\n"


@pytest.mark.parametrize("num_threads", [1, 4])
def test_one_thread_sends_and_another_receives(num_threads: int) -> None:
    envs, twin = make(num_threads, max_episode_steps=20), make(max_episode_steps=20)
    envs.reset(seed=0)
    twin.reset(seed=0)
    steps = 60
    actions = action_table(envs, steps)
    free = threading.Semaphore(0)  # something has been received
    sent = threading.Semaphore(0)  # something has been sent
    done = np.zeros(NUM_ENVS, int)  # steps received
    asked = np.zeros(NUM_ENVS, int)  # steps sent
    obs = np.zeros((steps, NUM_ENVS, 17))

    def send() -> None:
        while (asked < steps).any():
            ids = np.flatnonzero((asked == done) & (asked < steps))
            if len(ids) == 0:
                free.acquire(timeout=5)
                continue
            envs.send(actions[asked[ids], ids], ids)
            asked[ids] += 1
            sent.release()

    def receive() -> None:
        while (done < steps).any():
            sent.acquire(timeout=0.01)
            try:
                result = envs.recv(1)
            except pyfastenv.NothingPendingError:
                continue
            ids = result[4]["env_id"]
            obs[done[ids], ids] = result[0]
            done[ids] += 1
            free.release()

    run_threads(send, receive)
    for step in range(steps):
        np.testing.assert_array_equal(obs[step], twin.step(actions[step])[0])
    np.testing.assert_array_equal(envs.get_state(), twin.get_state())
