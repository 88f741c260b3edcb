"""Finds the options in which runs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.options import marked


def differing(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The settings in which runs differ: for each its value in every run, None where it has none.

    Args:
        runs: Their settings by name; seeds, and what changes neither learning nor speed, do not
            count.
    """
    alike = marked(RunConfig, "no_setting")
    names = dict.fromkeys(name for settings in runs for name in settings)
    values = {
        name: [settings.get(name) for settings in runs] for name in names if name not in alike
    }
    return {name: column for name, column in values.items() if any(v != column[0] for v in column)}


def label_of(names: Sequence[str], settings: Mapping[str, Any]) -> str:
    """``"gamma=0.9, hidden_sizes=64×64"``: the first three of these, as one run has them."""
    own = [f"{name}={_short(settings.get(name))}" for name in names[:3]]
    return ", ".join(own) + (" …" if len(names) > 3 else "")


def _short(value: Any) -> str:
    return "×".join(map(str, value)) if isinstance(value, list) else str(value)
