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
        importlib.import_module("pyfastenv._core")
    except ImportError as error:
        # the loader names the file it misses, and the file its version
        missing = re.search(r"libmujoco\S*?(\d+\.\d+\.\d+)", str(error))
        if missing is None:
            raise
        built_against = missing.group(1)
        library = _find_mujoco_library(built_against)
        if library is None:
            raise ImportError(_explain(built_against)) from error
        # the right MuJoCo, but not beside us (another site-packages): load it first
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        importlib.import_module("pyfastenv._core")


def _find_mujoco_library(wanted: str) -> Path | None:
    spec = importlib.util.find_spec("mujoco")
    if spec is None or not spec.submodule_search_locations:
        return None
    for folder in map(Path, spec.submodule_search_locations):
        for name in (f"libmujoco.so.{wanted}", f"libmujoco.{wanted}.dylib"):
            if (folder / name).is_file():
                return folder / name
    return None


def _explain(built_against: str) -> str:
    install = f"run `pip install --force-reinstall mujoco=={built_against}`"
    try:
        found = f"MuJoCo {version('mujoco')} is installed"
    except PackageNotFoundError:
        found = "MuJoCo is not installed"
    if built_against in found:
        found += f" without its library (libmujoco {built_against})"
    return (
        f"pyfastenv was built against MuJoCo {built_against} but {found}: {install}, "
        "or rebuild pyfastenv with your MuJoCo"
    )
