"""Settings that have worked, by environment: tables of data, each number with its source.

``algorithms/<algorithm>/preset.toml`` has a table ``[sources]`` and one for each environment, by
its name without namespace and version; there, an option is ``[value, "source"]``.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

Preset = dict[str, Any]


def presets_of(algorithm: str) -> dict[str, Preset]:
    """The presets of one of our algorithms: by environment, option by option."""
    text = (files("pyfastenv.algorithms") / algorithm / "preset.toml").read_text("utf-8")
    return parse(text)


def parse(text: str) -> dict[str, Preset]:
    """The presets in a table.

    Raises:
        ValueError: An option is not ``[value, "source"]``, or its source is not among the sources.
    """
    tables = tomllib.loads(text)
    sources = tables.pop("sources", {})
    return {
        env: {name: _value(f"{env}.{name}", pair, sources) for name, pair in table.items()}
        for env, table in tables.items()
    }


def _value(where: str, pair: Any, sources: dict[str, str]) -> Any:
    if not (isinstance(pair, list) and len(pair) == 2 and pair[1] in sources):
        raise ValueError(
            f"{where}: expected [value, source] with a source of {', '.join(sources)}, got {pair!r}"
        )
    return _with_tuples(pair[0])


def _with_tuples(value: Any) -> Any:
    """The value with tuples in place of lists, as options have them."""
    if isinstance(value, dict):
        return {key: _with_tuples(item) for key, item in value.items()}
    return tuple(value) if isinstance(value, list) else value
