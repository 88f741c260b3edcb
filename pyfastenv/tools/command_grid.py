"""``pyfastenv evaluate RUN --commands grid``: how well commands are followed that are held."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastenv.runs.evaluation import Evaluation, evaluate
from pyfastenv.runs.saved import load_policy
from pyfastenv.tools.columns import aligned
from pyfastenv.vector.arguments import integer

_ERROR, _ENDING = "_error", "terminated_"


@dataclass(frozen=True)
class HeldCommand:
    """A command, the episodes in which it was held, and how many of them ended of what.

    Attributes:
        name: The command's.
        values: Its numbers.
        evaluation: The episodes.
        endings: How many of them each of the task's named endings has ended; of a task that names
            none, how many did not last (``"ended early"``).
    """

    name: str
    values: tuple[float, ...]
    evaluation: Evaluation
    endings: Mapping[str, int]


def evaluate_commands(run: Path | str, episodes: int = 10, seed: int = 0) -> list[HeldCommand]:
    """Evaluates a policy under each command of its task's grid (:func:`grid`), held all along.

    Of a task with several commands the others are drawn meanwhile.

    Args:
        run: A run folder or a checkpoint file.
        episodes: How many for each command, at most 64 at a time.
        seed: As of :func:`pyfastenv.runs.evaluation.evaluate`: each command has the same episodes.

    Raises:
        ValueError: The task has no commands. CheckpointError: There is no readable checkpoint.
    """
    integer("episodes", episodes, minimum=1)
    integer("seed", seed, minimum=0, below=2**63)
    saved = load_policy(run)
    seeds = range(seed, seed + len(saved.config.seeds()))
    found = []
    with closing(saved.make_envs(episodes)) as envs:
        own: Any = envs
        ranges = getattr(envs, "command_ranges", {})
        if not ranges:
            raise ValueError(f"commands: {saved.config.env_id} has none")
        for name, (low, high) in ranges.items():
            for values in grid(low, high):
                own.set_command(name, values)
                played = evaluate(envs, saved.policy, episodes, seeds)
                endings = endings_of(played, envs.max_episode_steps or 0)
                found.append(HeldCommand(name, tuple(values.tolist()), played, endings))
            if name in own.task.drawn_commands():
                own.set_command(name, None)
    return found


def endings_of(played: Evaluation, limit: int) -> dict[str, int]:
    """How many episodes each ending has ended."""
    named = {
        name.removeprefix(_ENDING): int((values > 0.0).sum())
        for name, values in played.infos.items()
        if name.startswith(_ENDING)
    }
    return named or {"ended early": int((played.lengths < limit).sum())}


def grid(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Commands ``(n, size)``: zero, and each number alone half and all the way to its bounds.

    Args:
        low: ``(size,)``, the least. Where zero is not within bounds, the next to it stands for it.
        high: ``(size,)``, the greatest.
    """
    middle = np.clip(np.zeros_like(low), low, high)
    rows = [middle]
    for i in range(len(low)):
        for bound, share in ((low, 1.0), (low, 0.5), (high, 0.5), (high, 1.0)):
            row = middle.copy()
            row[i] += share * (bound[i] - middle[i])
            if row[i] != middle[i]:
                rows.append(row)
    return np.array(rows)


def command_table(held: list[HeldCommand]) -> str:
    """A line for each command: the task's own errors of an episode, endings, mean return."""
    metrics = [each.evaluation.metrics() for each in held]
    errors = [n for n in metrics[0] if n.startswith("eval/") and n.endswith(_ERROR)]
    endings = held[0].endings
    head = ("command", *(n.removeprefix("eval/") for n in errors), *endings, "return")
    lines = [head]
    for each, row in zip(held, metrics, strict=True):
        command = f"{each.name} {' '.join(f'{value:g}' for value in each.values)}"
        cells = [f"{row.get(name, np.nan):.3g}" for name in errors]
        cells += [f"{each.endings[name]} of {len(each.evaluation.returns)}" for name in endings]
        lines.append((command, *cells, f"{row['eval/return']:,.1f}"))
    return "\n".join(aligned(lines))
