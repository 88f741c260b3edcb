"""Loads the compiled core that fits the installed MuJoCo, and explains when that fails.

MuJoCo's structs change from version to version, and so a core belongs to one. A wheel carries
several: ``_core`` for the newest, ``_cores/<version>/_core`` for older ones.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from pathlib import Path

_NAME = "pyfastenv._core"
_LIBRARY = re.compile(r"libmujoco\S*?(\d+\.\d+\.\d+)")


def load_core(cores: Path = Path(__file__).parent / "_cores") -> None:
    """Imports ``pyfastenv._core``.

    Args:
        cores: Where the cores for other versions than the newest are.

    Raises:
        ImportError: MuJoCo is missing, or another version than there is a core for; or this is the
            source tree, in which nothing has been compiled.
    """
    library = _find_library()
    others = sorted((path.name for path in cores.iterdir()), key=_numbers) if cores.is_dir() else []
    core: Path | None = None
    if library is not None and (found := _version_of(library.name)) in others:
        core = next((cores / found).glob("_core.*"))
    try:
        _import(core)
    except ImportError as error:
        # the loader names the file it misses, and the file its version
        wanted = _version_of(str(error))
        if not wanted:
            source = cores.parents[1]
            if (source / "csrc").is_dir() and (source / "pyproject.toml").is_file():
                raise ImportError(
                    f"Python found pyfastenv's source tree ({source}), which has no compiled core, "
                    "before the installed package: run Python in another folder, or install by "
                    "pip install -e ."
                ) from error
            raise
        if library is None or _version_of(library.name) != wanted:
            raise ImportError(_explain(wanted, others)) from error
        # the right MuJoCo, but not beside us (another site-packages): load it first
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        _import(core)


def _import(core: Path | None) -> None:
    """Imports the core beside this file, or one that lies elsewhere under the same name."""
    if core is None:
        importlib.import_module(_NAME)
        return
    spec = importlib.util.spec_from_file_location(_NAME, core)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_NAME] = module
    sys.modules["pyfastenv"]._core = module  # type: ignore[attr-defined]


def _version_of(text: str) -> str:
    """The version in a library's name; empty if there is none."""
    match = _LIBRARY.search(text)
    return match[1] if match else ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _find_library() -> Path | None:
    """The installed MuJoCo's library, without importing it."""
    spec = importlib.util.find_spec("mujoco")
    if spec is None or not spec.submodule_search_locations:
        return None
    for folder in map(Path, spec.submodule_search_locations):
        for path in sorted(folder.glob("libmujoco*")):
            if _version_of(path.name):
                return path
    return None


def _explain(built_against: str, others: list[str]) -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow, and seldom needed

    install = f"run `pip install --force-reinstall mujoco=={built_against}`"
    try:
        found = f"MuJoCo {version('mujoco')} is installed"
    except PackageNotFoundError:
        found = "MuJoCo is not installed"
    if built_against in found:
        found += f" without its library (libmujoco {built_against})"
    versions = f"{', '.join(others)} and {built_against}" if others else built_against
    return (
        f"pyfastenv was built against MuJoCo {versions} but {found}: {install}, "
        "or rebuild pyfastenv with your MuJoCo (pip install --no-build-isolation --no-binary "
        "pyfastenv pyfastenv)"
    )
