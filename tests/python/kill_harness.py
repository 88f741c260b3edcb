"""Kills trainings at random moments and goes on: ``kill_harness.py FOLDER N ALGORITHM …``.

One process imports everything once; each attempt is a fork of it, killed by ``kill -9`` after a
random time and followed by what a user would do: resume the folder, or train again if the kill came
before the folder had a configuration. Whatever was killed how often, the run must end with the
weights, optimisers, normalisers, pools, environments, generators and rows of metrics that it has
when nobody disturbs it. Prints what
happened as JSON, a line each.
"""

from __future__ import annotations

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

import torch
from trainings import untimed

from pyfastenv.algorithms import flashsac, mbpo, ppo, sac
from pyfastenv.learners.dynamics import DynamicsOptions
from pyfastenv.training import checkpoint
from pyfastenv.training.config import RunConfig
from pyfastenv.training.logger import read_metrics
from pyfastenv.training.registry import algorithm_module
from pyfastenv.training.saved import resumed_config

_LIMIT = 120.0  # [s] an attempt that takes longer hangs


def small_config(algorithm: str) -> RunConfig:
    """Trainings of about a second that use everything there is to save."""
    common: dict[str, Any] = {
        "num_threads": 2,
        "eval_episodes": 2,
        "loggers": ("csv",),
        "quiet": True,
        "hidden_sizes": (16, 16),
    }
    if algorithm == "ppo":
        return ppo.Config(
            env_id="Hopper-v5",
            num_envs=4,
            num_steps=32,
            minibatch_size=32,
            update_epochs=2,
            pool_size=2,
            total_steps=4 * 32 * 60,
            eval_every=4 * 32 * 10,
            checkpoint_every=4 * 32 * 4,
            **common,
        )
    common |= {"env_id": "InvertedPendulum-v5", "learning_starts": 60, "batch_size": 20}
    if algorithm == "sac":
        return sac.Config(
            total_steps=400,
            buffer_size=250,
            log_every=10,
            eval_every=100,
            checkpoint_every=40,
            num_envs=2,
            num_seeds=2,
            torch_threads=1,
            **common,
        )
    if algorithm == "flashsac":
        del common["hidden_sizes"]
        return flashsac.Config(
            total_steps=260,
            buffer_size=150,
            log_every=10,
            eval_every=60,
            checkpoint_every=20,
            num_seeds=2,
            policy_width=8,
            critic_width=8,
            num_bins=11,
            torch_threads=1,
            **common,
        )
    return mbpo.Config(
        dynamics="flow",
        total_steps=260,
        log_every=5,
        eval_every=50,
        checkpoint_every=20,
        real_ratio=0.2,
        updates_per_step=1.0,
        model_every=25,
        rollout_batch=200,
        rollout_schedule=(0, 0, 2, 2),
        model_hidden_sizes=(16, 16),
        ensemble_size=3,
        num_elites=2,
        flow_every=40,
        flow_updates=2,
        flow_batch_size=32,
        flow_rollout_states=50,
        model_agent_every=25,
        model_agent_updates=2,
        torch_threads=1,
        **common,
    )


def train(config: RunConfig) -> None:
    """Trains as ``pyfastenv train`` does."""
    # on so few rows the official fits take 500 epochs
    short = partial(DynamicsOptions, batch_size=32, patience=1, max_epochs=10)
    mbpo.DynamicsOptions = short  # type: ignore[assignment,misc]
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
    """What a user does with whatever is there."""
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


def difference(a: Any, b: Any, where: str = "") -> str:
    """Where two outcomes differ by a bit; empty if nowhere."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{where}: {sorted(a)} and {sorted(b)}"
        pairs = [(f"{where}[{key!r}]", a[key], b[key]) for key in a]
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            return f"{where}: lengths {len(a)} and {len(b)}"
        pairs = [(f"{where}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
    elif isinstance(a, torch.Tensor):
        same = a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
        return "" if same else f"{where}: tensors"
    else:
        return "" if a == b else f"{where}: {a} and {b}"
    return next(filter(None, (difference(x, y, name) for name, x, y in pairs)), "")


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
