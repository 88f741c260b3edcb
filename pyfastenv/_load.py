"""Loads the compiled core, and explains when that fails."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def load_core() -> None:
    """Imports ``pyfastenv._core``.

    Raises:
        ImportError: MuJoCo is missing, or another version than the core was built against.
    """
    try:
        import pyfastenv._core
    except ImportError as error:
        if "mujoco" not in str(error).lower():
            raise
        library = _find_mujoco_library()
        # the loader names the file it misses, and the file its version
        match = re.search(r"\d+\.\d+\.\d+", str(error))
        if match is None:
            raise
        built_against = match.group()
        if library is None or built_against not in library.name:
            raise ImportError(_explain(built_against)) from error
        # the right MuJoCo, but not beside us (another site-packages): load it first
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def _find_mujoco_library() -> Path | None:
    spec = importlib.util.find_spec("mujoco")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    libraries = [*folder.glob("libmujoco.so.*"), *folder.glob("libmujoco.*.dylib")]
    return libraries[0] if libraries else None


def _explain(built_against: str) -> str:
    try:
        found = f"MuJoCo {version('mujoco')} is installed"
    except PackageNotFoundError:
        found = "MuJoCo is not installed"
    return (
        f"pyfastenv was built against MuJoCo {built_against} but {found}: "
        f"run `pip install mujoco=={built_against}`, or rebuild pyfastenv with your MuJoCo"
    )
