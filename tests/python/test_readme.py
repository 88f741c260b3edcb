"""README's Python runs, block after block as a reader would type it, with smaller numbers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

# before anything imports mujoco
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])

import pytest

README = Path(__file__).parents[2] / "README.md"
# what makes a block short, and independent of a GPU
SMALLER = {
    "for _ in range(1000):": "for _ in range(3):",
    'num_envs=64, vectorization_mode="async"': 'num_envs=2, vectorization_mode="sync"',
    "total_steps=500_000": "total_steps=4096, eval_episodes=1, quiet=True",
}


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.usefixtures("one_torch_thread")
def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    smaller = dict(SMALLER)
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(), 1):
        for text in [text for text in smaller if text in block]:
            block = block.replace(text, smaller.pop(text))
        exec(compile(block, f"README.md, block {number}", "exec"), names)
    assert not smaller, "README says nothing of these any more"
    assert names["obs"].shape == (64, 17)
    assert names["result"].global_step >= 4096
