"""README's Python runs, block after block as a reader would type it, with smaller numbers."""

import os
import re
from pathlib import Path
from typing import Any

# before anything imports mujoco
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])

import pytest

README = Path(__file__).parents[2] / "README.md"
# these make the blocks short
SMALLER = {
    "for _ in range(1000):": "for _ in range(3):",
    '64, vectorization_mode="async"': '2, vectorization_mode="sync"',
}


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    smaller = dict(SMALLER)
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(), 1):
        for text in [text for text in smaller if text in block]:
            block = block.replace(text, smaller.pop(text))
        exec(compile(block, f"README.md, block {number}", "exec"), names)
    assert not smaller, "README says nothing of these any more"
    assert names["obs"].shape == (64, 17)
