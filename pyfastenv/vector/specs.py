"""Where environments come from: ids, gymnasium's model files, keyword arguments.

Knows no vector environment; the environments' own defaults stand in csrc/envs.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pyfastenv import _core
from pyfastenv.vector.model_check import check_model_file


class EnvInfo(NamedTuple):
    """How gymnasium registers an environment."""

    id: str
    max_episode_steps: int
    reward_threshold: float | None


def registry() -> list[EnvInfo]:
    """All environments."""
    return [EnvInfo(*entry) for entry in _core.registry()]


def env_ids() -> list[str]:
    """Lists the ids of built-in environments; ``pyfastenv envs`` lists those of own tasks, too."""
    return [info.id for info in registry()]


@cache
def assets_dir() -> str:
    """The folder of gymnasium's MuJoCo models (found without importing gymnasium.envs.mujoco)."""
    spec = importlib.util.find_spec("gymnasium")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("pyfastenv needs gymnasium: pip install gymnasium")
    return str(Path(next(iter(spec.submodule_search_locations))) / "envs" / "mujoco" / "assets")


def resolve_xml_file(xml_file: str | os.PathLike[str]) -> str:
    """An absolute path, by gymnasium's rules: a bare name is one of its own models.

    A relative path that is not there is then looked for in the current folder.

    Raises:
        FileNotFoundError: It is in neither place.
    """
    path = Path(xml_file).expanduser()
    folders = [Path.cwd()]
    if not os.fspath(xml_file).startswith((".", "/", "~")):
        folders.insert(0, Path(assets_dir()))
    for folder in folders:
        if (folder / path).is_file():
            return str(folder / path)
    raise FileNotFoundError(
        f"xml_file: {os.fspath(xml_file)!r} is neither a file (looked in {Path.cwd()}) nor one of "
        f"gymnasium's models ({assets_dir()})"
    )


def lasting_xml_file(xml_file: str | os.PathLike[str]) -> str:
    """Names the same file whatever folder is the current one later: by its absolute path, or, if it
    is one of gymnasium's models, by its bare name.

    Raises:
        FileNotFoundError: There is none.
    """
    path = Path(resolve_xml_file(xml_file))
    return path.name if path.parent == Path(assets_dir()) else str(path)


def core_kwargs(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The environment's keyword arguments as the core takes them."""
    result = dict(kwargs)
    if "xml_file" in result:
        if not isinstance(result["xml_file"], str | os.PathLike):
            raise TypeError(f"xml_file: expected a path, got {type(result['xml_file']).__name__}")
        path = resolve_xml_file(result["xml_file"])
        if Path(path).parent != Path(assets_dir()):
            check_model_file(path)
        result["xml_file"] = path
    return result
