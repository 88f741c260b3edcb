"""A task's named reward terms, endings and errors as text, from a run's metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

_PER_STEP = "_per_step"
_REWARD, _ENDING, _ERROR, _SUCCESS = "reward_", "terminated_", "_error", "is_success"
LEGEND = """Means over the episodes. reward_…: what a term added to the return, its weight included
(the same by step); terminated_…: the share of episodes that it ended, is_success: of those that
succeeded; …_error: how far the motion was off the command, in its units (m/s, rad/s)."""


def term_names(metrics: Iterable[str], kind: str) -> list[str]:
    """The terms, endings, success and errors among metrics' names, ``"reward_near"``,
    ``"terminated_fallen"``, ``"is_success"``, ``"velocity_error"``.

    Args:
        metrics: Names such as ``"train/reward_near"``.
        kind: ``"train"`` or ``"eval"``.
    """
    names = [name.removeprefix(f"{kind}/") for name in metrics if name.startswith(f"{kind}/")]
    terms = [name for name in names if f"{name}{_PER_STEP}" in names and name.startswith(_REWARD)]
    endings = [name for name in names if name.startswith(_ENDING)]
    return terms + endings + [n for n in names if n == _SUCCESS or n.endswith(_ERROR)]


def term_text(metrics: Mapping[str, float], kind: str, name: str) -> str:
    """A term's sum and mean per step, a share of the episodes, or an error (:data:`LEGEND`)."""
    value = metrics.get(f"{kind}/{name}", math.nan)
    if not math.isfinite(value):
        return "–"
    if name.startswith(_ENDING) or name == _SUCCESS:
        return f"{value:.0%}"
    if name.endswith(_ERROR):
        return f"{value:.3g}"
    return f"{value:,.4g} ({metrics[f'{kind}/{name}{_PER_STEP}']:.3g} per step)"
