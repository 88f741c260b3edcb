"""MetaWorld's benchmarks: which tasks, and with which numbers their episodes begin.

Source: MetaWorld 3.1.1, __init__.py and env_dict.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastenv.suites import METAWORLD
from pyfastenv.tasks.language.find import load_task

_MT10 = (
    "reach push pick-place door-open drawer-open drawer-close button-press-topdown "
    "peg-insert-side window-open window-close"
)
_MT25 = (
    f"{_MT10} coffee-pull pick-out-of-hole disassemble pick-place-wall basketball stick-pull "
    "button-press-wall faucet-open door-lock lever-pull sweep-into faucet-close coffee-button "
    "button-press-topdown-wall dial-turn"
)
_MT50 = (
    "assembly basketball bin-picking box-close button-press-topdown button-press-topdown-wall "
    "button-press button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble "
    "door-close door-lock door-open door-unlock hand-insert drawer-close drawer-open faucet-open "
    "faucet-close hammer handle-press-side handle-press handle-pull-side handle-pull lever-pull "
    "pick-place-wall pick-out-of-hole pick-place plate-slide plate-slide-side plate-slide-back "
    "plate-slide-back-side peg-insert-side peg-unplug-side soccer stick-push stick-pull push "
    "push-wall push-back reach reach-wall shelf-place sweep-into sweep window-open window-close"
)
_ML10 = (
    "reach push pick-place door-open drawer-close button-press-topdown peg-insert-side "
    "window-open sweep basketball"
)
_ML45 = (
    "assembly basketball button-press-topdown button-press-topdown-wall button-press "
    "button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble door-close "
    "door-open drawer-close drawer-open faucet-open faucet-close hammer handle-press-side "
    "handle-press handle-pull-side handle-pull lever-pull pick-place-wall pick-out-of-hole "
    "push-back pick-place plate-slide plate-slide-side plate-slide-back plate-slide-back-side "
    "peg-insert-side peg-unplug-side soccer stick-push stick-pull push-wall push reach-wall reach "
    "shelf-place sweep-into sweep window-open window-close"
)
# which are trained, which are tested
_NAMES = {
    "MT10": (_MT10, ""),
    "MT25": (_MT25, ""),
    "MT50": (_MT50, ""),
    "ML10": (_ML10, "drawer-open door-close shelf-place sweep-into lever-pull"),
    "ML25": (_MT25, "basketball door-close shelf-place sweep button-press"),
    "ML45": (_ML45, "bin-picking box-close hand-insert door-lock door-unlock"),
}
_GOALS = 50  # of a task


@dataclass(frozen=True)
class Benchmark:
    """Tasks by their names, each with the numbers ``(50, size)`` [m] of 50 episodes' starts.

    Attributes:
        train: Those to learn, for ``envs.reset_task`` of ``metaworld/<name>``.
        test: Those that are kept for the test; of multi-task benchmarks none.
        partially_observable: Whether observations have no goals: the environments' parameter.
    """

    train: dict[str, NDArray[np.float64]]
    test: dict[str, NDArray[np.float64]]
    partially_observable: bool


def make_benchmark(name: str, seed: int | None = None, task: str | None = None) -> Benchmark:
    """Draws a benchmark's tasks: with a seed, MetaWorld's own of that seed.

    Args:
        name: ``"MT10"``, ``"MT25"``, ``"MT50"``, ``"ML10"``, ``"ML25"``, ``"ML45"``; ``"MT1"`` or
            ``"ML1"`` of one task.
        seed: Of the draws; None: another one every time.
        task: Whose benchmark MT1 or ML1 is, such as ``"reach-v3"``.

    Raises:
        ValueError: There is no such benchmark or task, or a task is named where none belongs.
    """
    single = name in ("MT1", "ML1")
    if not single and name not in _NAMES:
        raise ValueError(f"name: expected MT1, ML1, {', '.join(_NAMES)}, got {name!r}")
    if single and task not in METAWORLD:
        raise ValueError(f"task: expected one of {', '.join(METAWORLD)}, got {task!r}")
    if not single and task is not None:
        raise ValueError(f"task: {name} has tasks of its own, got {task!r}")
    meta = name.startswith("ML")
    if single:
        train = [str(task)]
        test, later = (train, 1) if meta else ([], 0)
    else:
        train, test = ([f"{each}-v3" for each in names.split()] for names in _NAMES[name])
        later = 0
    return Benchmark(
        _draw_all(train, seed),
        _draw_all(test, None if seed is None else seed + later),
        partially_observable=meta,
    )


def _draw_all(names: list[str], seed: int | None) -> dict[str, NDArray[np.float64]]:
    rng = np.random.RandomState(seed)
    return {name: _draw(name, rng) for name in names}


def _draw(name: str, rng: np.random.RandomState) -> NDArray[np.float64]:
    task: Any = load_task(f"pyfastenv.suites.metaworld.{METAWORLD[name]}")
    starts: list[NDArray[np.float64]] = []
    while len(starts) < 2 * _GOALS:
        numbers = rng.uniform(task.low, task.high)
        if task.fits(task, numbers):
            starts.append(numbers)
    return np.array(starts[1::2])  # of the two resets that MetaWorld makes, the second stays
