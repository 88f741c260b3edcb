"""One contest: several contestants, one environment id, one number of environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyfastenv.experiments import measure
from pyfastenv.tools.contestants import Actions, Contestant, random_actions

MAX_ACTION_BYTES = 256 * 2**20  # what prerecorded actions may take
# (env_id, num_steps, num_envs) -> actions, from a reset with contestants.SEED
Recorder = Callable[[str, int, int], Actions]


def calibrate(
    contestant: Contestant,
    env_id: str,
    num_envs: int,
    seconds: float,
    record: Recorder = random_actions,
) -> int:
    """Steps that take the contestant about ``seconds``; its run also warms it up."""
    num_steps = max(1, 64 // num_envs)
    while True:
        rate = contestant.run(record(env_id, num_steps, num_envs))
        if num_steps * num_envs / rate > min(0.05, seconds / 4):
            return max(1, round(rate * seconds / num_envs))
        num_steps *= 4


def contest(
    env_id: str,
    num_envs: int,
    rivals: Sequence[type[Contestant]],
    *,
    num_threads: int,
    seconds: float,
    repeats: int,
    record: Recorder = random_actions,
) -> dict[str, Any]:
    """Measures the rivals in turn, the first of which is the one compared with the others.

    Args:
        env_id: The environment.
        num_envs: How many of it.
        rivals: The contestants; all live in this process, and are closed in the end.
        num_threads: Threads for those that have any.
        seconds: What one run of the first rival shall take.
        repeats: Rounds.
        record: What makes the actions.

    Returns:
        A JSON row: raw ``rates`` [environment calls/s], their ``summary``, and the ``ratios`` of
        the first rival to each other one.
    """
    contestants = [rival(env_id, num_envs, num_threads) for rival in rivals]
    try:
        num_steps = calibrate(contestants[0], env_id, num_envs, seconds, record)
        one_step = record(env_id, 1, num_envs)
        num_steps = min(num_steps, max(1, MAX_ACTION_BYTES // one_step.nbytes))
        actions = record(env_id, num_steps, num_envs)
        candidates = {}
        for contestant in contestants:
            part = actions[: max(1, round(num_steps * contestant.share_of_steps))]
            contestant.run(part[: max(1, len(part) // 10)])  # warms up
            candidates[contestant.name] = lambda run=contestant.run, part=part: run(part)
        rates = measure.interleave(candidates, repeats)
    finally:
        for contestant in contestants:
            contestant.close()
    about = {"env_id": env_id, "num_envs": num_envs, "num_threads": num_threads}
    return about | {"num_steps": num_steps} | measure.compared(rates)
