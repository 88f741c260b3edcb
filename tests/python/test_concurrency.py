"""Threads at one pool, and at the start, the forks and the end of a process: no crash, no hang."""

import pathlib
import shutil
import subprocess
import sys

import pytest
from scripts import run_script

# Runs `child(trial)` in forked children and prints how each ended: cheaper than interpreters.
CHILDREN = """
import os, signal, sys, threading, time
import numpy as np, pyfastenv

def run_children(child, count):
    statuses = []
    for trial in range(count):
        pid = os.fork()
        if pid == 0:
            child(trial)
            sys.exit(0)
        until = time.monotonic() + 600
        while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                ended = pid, "hangs"
                break
            time.sleep(0.002)
        statuses.append(ended[1])
    print(sorted(set(statuses), key=str))
"""


def test_random_calls_of_many_threads() -> None:
    script = pathlib.Path(__file__).with_name("api_threads.py")
    done = subprocess.run(
        [sys.executable, script, "--seconds", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_two_environments_made_by_two_threads_at_once() -> None:
    script = """
def slow(frame, event, arg):  # the other thread's turn comes in the middle of this call
    if event == "call" and frame.f_code.co_name == "main_thread":
        time.sleep(0.1)
threading.setprofile(slow)

def child(trial):
    threads = [
        threading.Thread(target=pyfastenv.make_vec, args=("CartPole-v1", 1)) for _ in range(2)
    ]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

run_children(child, 5)
"""
    assert run_script(CHILDREN + script) == "[0]\n"


def test_ctrl_c_after_a_fork_from_another_thread() -> None:
    """Who forks becomes the child's main thread, which signals interrupt."""
    script = """
signal.signal(signal.SIGINT, signal.default_int_handler)
pyfastenv.make_vec("CartPole-v1", 1).close()

def child(trial):
    envs = pyfastenv.make_vec("Humanoid-v5", 1000, num_threads=2, frame_skip=500,
                              reset_noise_scale=0.01, terminate_when_unhealthy=False)
    envs.reset(seed=0)
    actions, few = np.zeros((1000, 17), np.float32), np.arange(16)
    begin = time.process_time()
    envs.send(actions[few], few)
    envs.recv(len(few))
    patience = 1.0 + 10.0 * (time.process_time() - begin)  # all take sixty times as long
    sent = []
    def interrupt():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(0.1, interrupt).start()
    try:
        envs.step(actions)
    except KeyboardInterrupt:
        os._exit(0 if time.process_time() - sent[0] < patience else 1)
    os._exit(2)

thread = threading.Thread(target=run_children, args=(child, 1))
thread.start()
thread.join()
"""
    assert run_script(CHILDREN + script) == "[0]\n"


@pytest.mark.parametrize("num_threads", [1, 2])
def test_daemon_threads_step_while_the_interpreter_ends(num_threads: int) -> None:
    script = f"""
def child(trial):
    def work(envs):
        envs.reset(seed=0)
        while True:
            envs.step(np.zeros(8, np.int64))
    for _ in range(4):
        envs = pyfastenv.make_vec("CartPole-v1", 8, num_threads={num_threads})
        threading.Thread(target=work, args=(envs,), daemon=True).start()
    time.sleep(0.02)

run_children(child, 8)
"""
    assert run_script(CHILDREN + script) == "[0]\n"


# Loaded last, it is taken down when NumPy's libraries have been, and leaves time for whoever still
# uses them.
SLOW_END = """
#include <unistd.h>
__attribute__((destructor)) static void end(void) { usleep(200000); }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("call", ["step(actions)", "recv()"])
def test_daemon_threads_end_before_the_libraries_that_they_use(
    tmp_path: pathlib.Path, call: str
) -> None:
    library = tmp_path / "slow_end.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=SLOW_END, text=True, check=True)
    script = f"""
import ctypes, threading, time
import numpy as np, pyfastenv
ctypes.CDLL({str(library)!r})
envs = pyfastenv.make_vec(
    "Humanoid-v5", 1000, num_threads=2, frame_skip=40, reset_noise_scale=0.01,
    terminate_when_unhealthy=False,
)
envs.reset(seed=0)
actions = np.zeros((1000, 17), np.float32)
if {call!r} == "recv()":
    envs.send(actions)
threading.Thread(target=lambda: envs.{call}, daemon=True).start()
time.sleep(0.05)
"""
    run_script(script)


READERS = {
    "get_state": ("envs.get_state()", "results[0].shape[1] in sizes"),
    "row": ("envs._core.row(0)", "True"),
    "get_model_field": ("envs.get_model_field('body_mass')", "(results[0] == mass).all()"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_read_beside_the_first_set_model_field(reader: str) -> None:
    """The rows grow between the read's allocation and its turn: both wait for a long step."""
    call, check = READERS[reader]
    script = f"""
def make(num_threads=1):
    return pyfastenv.make_vec("HalfCheetah-v5", 64, num_threads=num_threads, frame_skip=20)

def child(trial):
    envs, plain, grown = make(2), make(), make()
    mass = envs.get_model_field("body_mass")[0]
    grown.set_model_field("body_mass", mass)
    sizes = {{each.state_bytes: each for each in (plain, grown)}}
    envs.reset(seed=0)
    results = []
    calls = [
        lambda: envs.step(np.zeros((64, 6), np.float32)),
        lambda: results.append({call}),
        lambda: envs.set_model_field("body_mass", mass),
        lambda: results.append({call}),
    ]
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(results) == 2 and {check}
    if {reader!r} == "get_state":
        for state in results:  # one layout or the other, whole
            sizes[state.shape[1]].set_state(state)

run_children(child, 6)
"""
    assert run_script(CHILDREN + script) == "[0]\n"
