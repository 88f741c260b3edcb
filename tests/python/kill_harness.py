"""Kills trainings at random moments and goes on: ``kill_harness.py FOLDER N ALGORITHM …``.

One process imports everything once; each attempt is a fork of it, killed by ``kill -9`` after a
random time and followed by what a user would do: resume the folder, or train again if the kill came
before the folder had a configuration. Whatever was killed how often, the run must end with the
weights, optimisers, normalisers, pools, environments, generators and rows of metrics that it has
when nobody disturbs it. Prints what
happened as JSON, a line each.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from algorithms import small
from trainings import difference, untimed

from pyfastenv.algorithms.mbpo import spec
from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions
from pyfastenv.runs import checkpoint
from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.registry import algorithm_module
from pyfastenv.runs.saved import resumed_config

_LIMIT = 600.0  # [s] an attempt that takes longer hangs


_OPTIONS: dict[str, dict[str, Any]] = {
    "ppo": {
        "pool_size": 2, "total_steps": 4 * 32 * 60, "eval_every": 4 * 32 * 10,
        "checkpoint_every": 4 * 32 * 4,
    },
    "sac": {
        "total_steps": 400, "buffer_size": 250, "log_every": 10, "eval_every": 100,
        "checkpoint_every": 40, "num_seeds": 2, "num_steps": 1, "batch_size": 20,
    },
    "flashsac": {
        "total_steps": 260, "num_envs": 1, "eval_every": 60, "checkpoint_every": 20,
        "num_seeds": 2, "num_bins": 11, "updates_per_step": 1.0, "batch_size": 20,
    },
    "mbpo": {
        "dynamics": "flow", "total_steps": 260, "log_every": 5, "eval_every": 50,
        "checkpoint_every": 20, "rollout_batch": 200,
    },
}  # fmt: skip


def small_config(algorithm: str) -> RunConfig:
    """Trainings of about a second that use everything there is to save."""
    env_id = "Hopper-v5" if algorithm == "ppo" else "InvertedPendulum-v5"
    options = {"env_id": env_id, "num_threads": 2, "loggers": ("csv",), **_OPTIONS[algorithm]}
    config: RunConfig = small(algorithm, **options)
    return config


def train(config: RunConfig) -> None:
    """Trains as ``pyfastenv train`` does."""
    # on so few rows the official fits take 500 epochs
    short = partial(DynamicsOptions, batch_size=32, patience=1, max_epochs=10)
    spec.DynamicsOptions = short  # type: ignore[assignment,misc]
    algorithm_module(config.algorithm).train(config)


def fork(action: Callable[[], None]) -> int:
    """Runs ``action`` in a child; returns its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid > 0:
        return pid
    status = 1
    try:
        action()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def ended_within(pid: int, seconds: float) -> bool:
    """Whether a child ends by itself in so many seconds; raises if it fails."""
    deadline = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"a training ended with {os.waitstatus_to_exitcode(status)}"
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.001)


def go_on(config: RunConfig, folder: Path) -> None:
    """Goes on with whatever is in the folder, as a user does."""
    if (folder / "config.json").is_file():
        train(resumed_config(folder))
    else:
        train(replace(config, run_dir=folder))


def outcome(folder: Path) -> dict[str, Any]:
    """All that must be the same."""
    state = checkpoint.load(checkpoint.resolve(folder))
    rows = [untimed(row) for row in read_metrics(folder)]
    table = (folder / "metrics.csv").read_text().splitlines()
    result = json.loads((folder / "result.json").read_text())
    return {
        "step": state["step"],
        "parts": state["ranks"],
        "evaluation": state["evaluation"],
        "rows": rows,
        "table": [table[0].split(",")[0], *(line.split(",")[0] for line in table[1:])],
        "result": result["evaluation"],
        "checkpoints": sorted(path.name for path in (folder / "checkpoints").iterdir()),
        "files": sorted(path.name for path in folder.iterdir()),
    }


def main(algorithm: str, folder: Path, num_kills: int, seed: int = 0) -> dict[str, Any]:
    """Runs it; returns what happened.

    Raises:
        AssertionError: A training failed, hung, or ended otherwise than the undisturbed one.
    """
    config = small_config(algorithm)
    rng = random.Random(seed)
    whole, cut = folder / "whole", folder / "cut"
    began = time.monotonic()
    assert ended_within(fork(partial(go_on, config, whole)), _LIMIT)
    seconds = time.monotonic() - began
    expected = outcome(whole)
    counts = {"kills": 0, "runs": 0, "before_a_checkpoint": 0, "while_writing": 0}
    while counts["kills"] < num_kills:
        while True:
            pid = fork(partial(go_on, config, cut))
            patience = rng.uniform(0.0, seconds) if counts["kills"] < num_kills else _LIMIT
            if ended_within(pid, patience):
                break
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            assert patience < _LIMIT, "a training hangs"
            counts["kills"] += 1
            counts["before_a_checkpoint"] += not any(cut.glob("checkpoints/*.pt"))
            counts["while_writing"] += any(cut.rglob(".*.tmp"))
        counts["runs"] += 1
        where = difference(expected, outcome(cut))
        assert not where, f"run {counts['runs']}: {where}"
        shutil.rmtree(cut)
    total = round(time.monotonic() - began, 1)
    return {"algorithm": algorithm, **counts, "seconds_alone": round(seconds, 2), "seconds": total}


if __name__ == "__main__":
    for name in sys.argv[3:]:
        print(json.dumps(main(name, Path(sys.argv[1]) / name, int(sys.argv[2]))), flush=True)
