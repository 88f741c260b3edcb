"""Python scripts in a process of their own and modules from a text, for tests."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def run_script(script: str, *args: object, **kwargs: Any) -> str:
    """Runs Python; it must end by itself, with status 0 and nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def module_of(path: Path, text: str) -> ModuleType:
    """Writes a file and imports it under its own name."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LONG = """
import os, signal, sys, threading, time
import numpy as np, pyfastenv
# whoever starts the tests in the background may have Ctrl-C ignored, which children inherit
signal.signal(signal.SIGINT, signal.default_int_handler)
def humanoids(num_envs, frame_skip):
    envs = pyfastenv.make_vec("Humanoid-v5", num_envs, num_threads=int(sys.argv[1]),
                              frame_skip=frame_skip, reset_noise_scale=0.01,
                              terminate_when_unhealthy=False)
    envs.reset(seed=0)
    return envs
with humanoids(64, 10) as few:
    for _ in range(2):  # the first tries the engines
        begin = time.process_time()
        few.step(np.zeros((64, 17), np.float32))
    physics_step = (time.process_time() - begin) / 640
# a call takes so many seconds of processor time on any machine, with any engine or sanitizer
envs = humanoids(1000, 1 + int(float(sys.argv[2]) / physics_step / 1000))
actions = np.zeros((1000, 17), np.float32)
sent = []
def press(after=0.15):  # Ctrl-C, in a moment
    def now():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(after, now).start()
"""
PROMPT = 0.5  # seconds of processor time, which do not depend on who else computes


def interrupt(script: str, num_threads: int, *, seconds: float = 2.0) -> tuple[float, list[str]]:
    """Runs a script that interrupts itself by ``press()``; a step takes so much processor time.

    Returns the processor time [s] that the script needed until it was interrupted, which it prints,
    and further lines. If that is much, it may have been held up: it has two more tries.
    """
    for _ in range(3):
        out = run_script(LONG + script, num_threads, seconds).splitlines()
        delay = float(out[0])
        if delay < PROMPT:
            break
    return delay, out[1:]


FORK = """
import gc, os, sys, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np, pyfastenv
envs = pyfastenv.make_vec("HalfCheetah-v5", 4, num_threads=int(sys.argv[1]))
envs.reset(seed=0)
actions = np.zeros((4, 6), np.float32)
def wait(pid):
    limit = time.monotonic() + 600
    while time.monotonic() < limit:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    return "hangs"
"""
