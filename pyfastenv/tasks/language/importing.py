"""Modules by the place that a user names: ``package.module``, or ``path/to/file.py``."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType


def import_place(place: str, where: str) -> ModuleType:
    """The module that a place names; modules in the current folder are found.

    Args:
        place: ``"package.module"`` or ``"path/to/file.py"``.
        where: ``"place:name"``, for messages.

    Raises:
        FileNotFoundError, ImportError: There is no such file or module; its imports' errors.
    """
    return import_file(place, where) if place.endswith(".py") else _import_module(place, where)


def absolute_place(where: str) -> str:
    """``"path/to/file.py:name"`` with the whole path, for whoever asks elsewhere; else itself.

    A module of the current folder is its file. In the place of a whole path where no file is any
    more, one of its name in the current folder.
    """
    place, colon, name = where.rpartition(":")
    file = Path(f"{place}.py" if place.isidentifier() else place).expanduser()
    if file.is_absolute() and not file.is_file():
        file = Path(file.name)
    return f"{file.resolve()}{colon}{name}" if file.suffix == ".py" and file.is_file() else where


def _import_module(name: str, where: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    if all(part.isidentifier() for part in name.split(".")):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # of an import in it
    file = f"{name}.py" if "/" in name else f"path/to/{name.rpartition('.')[2] or 'file'}.py"
    raise ModuleNotFoundError(
        f"{where}: there is no module {name!r} in {here} or among the installed packages; a file "
        f"elsewhere is named as {file}:{where.rpartition(':')[2]}",
        name=name,
    )


def import_file(path: str, where: str) -> ModuleType:
    """A file as a module, beside which its imports are found, as if Python ran it."""
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        nor = ", nor one of this name in the current folder" if Path(path).is_absolute() else ""
        raise FileNotFoundError(f"{where}: there is no file {file}{nor}")
    if not file.stem.isidentifier():
        raise ImportError(f"{where}: {file.stem!r} is no name of a module: rename the file")
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    module = importlib.import_module(file.stem)
    found = getattr(module, "__file__", None)
    if found is None or not file.samefile(found):
        raise ImportError(
            f"{where}: Python takes the name {file.stem!r} for {found or 'a module of its own'}: "
            f"rename the file"
        )
    return module
