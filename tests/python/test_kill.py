"""``kill -9`` at random moments: what is resumed ends, bit for bit, as what was never killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

HARNESS = Path(__file__).with_name("kill_harness.py")
ALGORITHMS = ("ppo", "sac", "mbpo")


def killed(algorithm: str, folder: Path, num_kills: int, limit: float) -> dict[str, Any]:
    """What the harness counts; it compares everything itself and fails at the first other bit."""
    done = subprocess.run(
        [sys.executable, HARNESS, algorithm, folder, str(num_kills)],
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert done.returncode == 0, done.stderr
    counts: dict[str, Any] = json.loads(done.stdout)
    print(counts)
    return counts


@pytest.mark.timeout(120)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_some_kills_change_nothing(algorithm: str, tmp_path: Path) -> None:
    counts = killed(algorithm, tmp_path, 3, 110)
    assert counts["kills"] == 3 and counts["runs"] >= 1


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_hundred_kills_change_nothing(algorithm: str, tmp_path: Path) -> None:
    counts = killed(algorithm, tmp_path, 100, 990)
    assert counts["kills"] == 100
    # otherwise the moments were not random
    assert counts["while_writing"] > 0 and counts["runs"] < 100
