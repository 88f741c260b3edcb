"""Refuses model files that MuJoCo's reader would end the process over.

MuJoCo throws C++ exceptions for them. Its library carries a C++ runtime of its own, so the core
cannot catch them, and even MuJoCo's own bindings, which can, hang on the next model
(tests/fuzz/mujoco_crashes). So they are found beforehand, by a look at the text: what MuJoCo's
lenient parser accepts is not always XML.
"""

from __future__ import annotations

import re
from pathlib import Path

# each of this many elements or more is a real model's; beyond it, allocating throws
MAX_USER_NUMBERS = 1_000_000  # of <size nuser_…>
MAX_HEIGHTS = 2**28  # nrow * ncol of <hfield>: a gigabyte


def check_model_file(path: str) -> None:
    """Looks at a model file and at the files that it includes or attaches.

    Raises:
        ValueError: ``<model>`` without ``file``, or a size that no memory has room for.
    """
    waiting, seen = [Path(path)], set()
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file() or file.suffix == ".mjb":
            continue  # binary files are read by plain C; MuJoCo says which one is missing
        seen.add(file)
        text = re.sub(r"<!--.*?-->", "", file.read_text(errors="replace"), flags=re.DOTALL)
        for name, attributes in _elements(text):
            problem = _problem(name, attributes)
            if problem:
                raise ValueError(f"{file}: MuJoCo cannot load this model: {problem}")
            if name in ("include", "model") and "file" in attributes:
                waiting += [
                    folder / attributes["file"] for folder in (Path(path).parent, file.parent)
                ]


def _elements(text: str) -> list[tuple[str, dict[str, str]]]:
    """The elements that are looked at, with their attributes."""
    elements = []
    for name, rest in re.findall(r"<(model|include|size|hfield)\b([^<>]*)", text):
        attributes = re.findall(r"(\w+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", rest)
        elements.append((name, {key: double or single for key, double, single in attributes}))
    return elements


def _problem(name: str, attributes: dict[str, str]) -> str | None:
    if name == "model" and "file" not in attributes:
        return "<model>: expected an attribute 'file'"
    if name == "size":
        for key, value in attributes.items():
            if key.startswith("nuser_") and _number(value) > MAX_USER_NUMBERS:
                return f"{key}: expected at most {MAX_USER_NUMBERS:,}, got {value}"
    if name == "hfield":
        nrow, ncol = (_number(attributes.get(key, "0")) for key in ("nrow", "ncol"))
        if nrow * ncol > MAX_HEIGHTS:
            return f"<hfield>: expected at most {MAX_HEIGHTS:,} heights, got {nrow:g} x {ncol:g}"
    return None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0  # MuJoCo refuses it in plain words
