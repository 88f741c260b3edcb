"""The models that tasks name: a path, XML text, an MjSpec, an MjModel, or a function of one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from pyfastenv.vector import specs
from pyfastenv.vector.model_check import check_model_file


def is_xml(source: Any) -> bool:
    """Whether a model is given as text."""
    return isinstance(source, str) and source.lstrip().startswith("<")


def local_model(source: str | os.PathLike[str], folder: Path | None) -> Path | None:
    """The file of that path, beside the task's file or in the current folder; None: there is none.

    Args:
        source: A path.
        folder: Of the file in which the task stands; None if it stands in none.
    """
    path = Path(source).expanduser()
    places = (path,) if folder is None else (folder / path, path)
    return next((place for place in places if place.is_file()), None)


def load_model(source: Any, folder: Path | None, owner: str) -> Any:
    """Compiles or loads a model.

    Args:
        source: A path (relative to the task's file, the current folder, or one of gymnasium's own
            models), XML text (it begins with ``<``), a ``mujoco.MjSpec`` or ``MjModel``, or a
            function without arguments that returns any of these.
        folder: Of the file in which the task stands; None if it stands in none.
        owner: Who asks, for messages.

    Returns:
        A ``mujoco.MjModel``.

    Raises:
        TypeError: None of these. FileNotFoundError: No such file. ValueError: MuJoCo refuses it.
    """
    if callable(source):
        source = source()
    if isinstance(source, mujoco.MjModel):
        return source
    if is_xml(source):
        return _made(mujoco.MjModel.from_xml_string, source, f"{owner}.model")
    if isinstance(source, mujoco.MjSpec):
        return source.compile()
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise TypeError(
            f"{owner}.model: expected a path, XML text, a mujoco.MjSpec or MjModel, or a function "
            f"that returns one, got {source!r}"
        )
    path = local_model(source, folder) or _gymnasium_model(source, folder, owner)
    return read_model_file(path, f"{owner}.model, {path}")


def read_model_file(path: Path, where: str) -> Any:
    """Reads a ``mujoco.MjModel`` of a file: MJCF, URDF or .mjb.

    Args:
        path: The file, which is there.
        where: Who names it, and its name, for messages.

    Raises:
        ValueError: MuJoCo refuses it, or it is Python.
    """
    if path.suffix == ".py":
        raise ValueError(
            f"{where}: expected a model's file (MJCF, URDF or .mjb), got Python; a task in a file "
            f"goes by {path}:Class, as in pyfastenv check {path}:Class"
        )
    if path.suffix == ".mjb":
        return _made(mujoco.MjModel.from_binary_path, str(path), where)
    check_model_file(str(path))
    return _made(mujoco.MjModel.from_xml_path, str(path), where)


def _made(make: Callable[[str], Any], source: str, where: str) -> Any:
    try:
        return make(source)
    except ValueError as error:
        raise ValueError(f"{where}: {str(error).strip()}") from None


def _gymnasium_model(source: Any, folder: Path | None, owner: str) -> Path:
    try:
        return Path(specs.resolve_xml_file(source))
    except FileNotFoundError:
        places = dict.fromkeys(place for place in (folder, Path.cwd()) if place is not None)
        looked = ", ".join(map(str, places))
        raise FileNotFoundError(
            f"{owner}.model: {os.fspath(source)!r} is no file (looked in {looked}) and none of "
            f"gymnasium's models"
        ) from None


def model_digest(model: Any) -> str:
    """A hash of everything in a model."""
    content = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, content)
    return hashlib.sha256(content.tobytes()).hexdigest()
