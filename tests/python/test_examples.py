"""The examples run."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_example import EXAMPLES, run_example

ARGUMENTS = {
    "step.py": ["20"],
    "partial_batches.py": ["10"],
    "rollout.py": ["20"],
    "train.py": ["4096"],
}


def test_every_example_is_run() -> None:
    """Here, or beside the tests of the library that it needs."""
    integrations = "".join(
        path.read_text() for path in (Path(__file__).parent / "integrations").glob("test_*.py")
    )
    for path in EXAMPLES.glob("*.py"):
        assert path.name in ARGUMENTS or f'run_example("{path.name}"' in integrations, path.name


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_example(name: str, tmp_path: Path) -> None:
    if name in ("rollout.py", "train.py"):
        pytest.importorskip("torch")
        pytest.importorskip("matplotlib")
    run_example(name, *ARGUMENTS[name], cwd=tmp_path, timeout=120)
