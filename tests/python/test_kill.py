"""``kill -9`` at random moments: what is resumed ends, bit for bit, as what was never killed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

HARNESS = Path(__file__).with_name("kill_harness.py")
ALGORITHMS = ("ppo", "sac", "flashsac", "mbpo")


def killed(folder: Path, num_kills: int, *algorithms: str) -> list[dict[str, Any]]:
    """The harness' counts; it compares everything itself and fails at the first other bit."""
    done = subprocess.run(
        [sys.executable, HARNESS, folder, str(num_kills), *algorithms],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_some_kills_change_nothing(tmp_path: Path) -> None:
    (counts,) = killed(tmp_path, 2, "sac")
    assert counts["kills"] == 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_hundred_kills_change_nothing(algorithm: str, tmp_path: Path) -> None:
    (counts,) = killed(tmp_path, 100, algorithm)
    assert counts["kills"] == 100
    # otherwise the moments were not spread over a training
    assert counts["while_writing"] > 0 and counts["before_a_checkpoint"] < 50
