"""The examples run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ARGUMENTS = {
    "step.py": ["20"],
    "partial_batches.py": ["10"],
    "rollout.py": ["20"],
    "train.py": ["4096"],
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(ARGUMENTS)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_example(name: str, tmp_path: Path) -> None:
    if name in ("rollout.py", "train.py"):
        pytest.importorskip("torch")
        pytest.importorskip("matplotlib")
    result = subprocess.run(
        [sys.executable, EXAMPLES / name, *ARGUMENTS[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
