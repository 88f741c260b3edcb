"""Python scripts in a process of their own, for tests."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def run_script(script: str, *args: object, timeout: float = 60.0, **kwargs: Any) -> str:
    """Runs Python; it must end by itself, with status 0 and nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **kwargs,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
