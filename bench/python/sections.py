"""The sections of the benchmark: one function each, which makes JSON rows.

Knows neither files nor tables (bench.py, templates/bench.md) nor how to measure (contest.py).
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import engines
import peers
from contest import contest
from settings import ALL_PEERS_IDS, MANY, TASK_IDS, Contestants, Row, Settings

from pyfastenv.experiments import measure
from pyfastenv.tools import contestants
from pyfastenv.vector.cpus import available_cpus

MEMORY_SHARE = 0.5  # of the available memory that EnvPool's environments may take


def has_envpool() -> bool:
    """Whether EnvPool is installed."""
    return importlib.util.find_spec("envpool") is not None


def tasks(settings: Settings) -> Iterator[Row]:
    """Ours against EnvPool on every task, and against everyone on three of them."""
    envpool: Contestants = [peers.EnvPool] if has_envpool() else []
    everyone: Contestants = [
        *envpool,
        peers.MujocoBatch,
        contestants.GymnasiumSync,
        contestants.GymnasiumAsync,
    ]
    for env_id in TASK_IDS:
        for num_envs in (8, 64, *([] if settings.quick else [1024])):
            rivals = everyone if env_id in ALL_PEERS_IDS and num_envs <= 64 else envpool
            if rivals:
                how = settings.of(num_envs, seconds=0.2)
                yield contest(env_id, num_envs, [contestants.Ours, *rivals], **how)
        if envpool and not settings.quick:
            yield _many_of_envpool(env_id, settings)


def cartpole(settings: Settings) -> Iterator[Row]:
    """CartPole: almost no physics, so this is the price of a call."""
    envpool: Contestants = [_EnvPoolCartPole] if has_envpool() else []
    for num_envs in (8, 64, 1024):
        rivals: Contestants = [*envpool, *([_SyncCartPole] if num_envs == 8 else [])]
        yield contest("CartPole-v1", num_envs, [contestants.Ours, *rivals], **settings.of(num_envs))


def half_batches(settings: Settings) -> Iterator[Row]:
    """send/recv of half batches against step."""
    for env_id in ("HalfCheetah-v5", "Humanoid-v5", "CartPole-v1"):
        for num_envs in (64, 1024):
            rivals: Contestants = [peers.OursAsync, contestants.Ours]
            yield contest(env_id, num_envs, rivals, **settings.of(num_envs))


def memory(settings: Settings) -> Iterator[Row]:
    """Time and memory of many environments, each in a fresh process."""
    sizes = [("HalfCheetah-v5", MANY), ("HalfCheetah-v5", 100_000), ("CartPole-v1", 100_000)]
    for env_id, n in sizes:
        yield _probe("pyfastenv", env_id, n, settings.num_threads)
    if has_envpool() and not settings.quick:
        yield _probe("EnvPool", "HalfCheetah-v5", 1024, settings.num_threads)


def scaling(settings: Settings) -> Iterator[Row]:
    """64 environments per thread, with 1, 2, 4, … threads."""
    counts = [1, 2]
    while counts[-1] * 2 <= available_cpus():
        counts.append(counts[-1] * 2)
    if counts[-1] < available_cpus():
        counts.append(available_cpus())
    for env_id in ("HalfCheetah-v5", "Humanoid-v5"):
        for n in counts:
            how = settings.of(64 * n) | {"num_threads": n}
            yield contest(env_id, 64 * n, [contestants.Ours, contestants.PhysicsLimit], **how)


SECTIONS: dict[str, Callable[[Settings], Iterator[Row]]] = {
    "stepping": engines.stepping,
    "trained": engines.trained,
    "tasks": tasks,
    "cartpole": cartpole,
    "async": half_batches,
    "memory": memory,
    "scaling": scaling,
    "rollouts": engines.rollouts,
    "ppo": engines.ppo,
}


class _SyncCartPole(contestants.GymnasiumSync):
    share_of_steps = 0.02  # ours makes 50 times its steps


class _EnvPoolCartPole(peers.EnvPool):
    share_of_steps = 0.05  # ours makes 20 times its steps


def _many_of_envpool(env_id: str, settings: Settings) -> Row:
    """32,000 environments if EnvPool's mjDatas fit, which a fresh process with 1,024 tells."""
    probe = _probe("EnvPool", env_id, 1024, settings.num_threads)
    needed = (probe["rss_mb"] - probe["rss_before_mb"]) / 1024 * MANY / 1000  # [GB]
    available = measure.available_memory_bytes() / 1e9
    if needed > MEMORY_SHARE * available:
        return {
            "env_id": env_id,
            "num_envs": MANY,
            "skipped": f"EnvPool does not fit: {MANY:,} would need about {needed:.0f} GB, "
            f"and {MEMORY_SHARE:.0%} of the available {available:.0f} GB may be used",
        }
    return contest(env_id, MANY, [contestants.Ours, peers.EnvPool], **settings.of(MANY))


def _probe(contestant: str, env_id: str, num_envs: int, num_threads: int) -> Row:
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(Path(__file__).with_name("memory_probe.py")),
        f"--contestant={contestant}",
        f"--env-id={env_id}",
        f"--num-envs={num_envs}",
        f"--num-threads={num_threads}",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{contestant} {env_id} x {num_envs} failed:\n{done.stderr}")
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row
