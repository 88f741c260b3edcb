"""How long a training has taken on a machine that is not its own: seconds in which it ran.

A training may be stopped (SIGSTOP) while something else is measured, interrupted and resumed. Its
curve is to tell what it would have taken otherwise.
"""

from __future__ import annotations

import threading
import time

_TICK = 0.1  # [s]
# longer than a process that runs ever goes without a tick: the rest of a gap is not its time [s]
_MOST = 2.0


class Awake:
    """Wall-clock seconds without those in which the process was stopped.

    Args:
        seconds: Where it goes on from.
    """

    def __init__(self, seconds: float = 0.0):
        self._seconds = seconds
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def seconds(self) -> float:
        """Until now."""
        with self._lock:
            now = time.monotonic()
            self._seconds += min(now - self._last, _MOST)
            self._last = now
            return self._seconds

    def close(self) -> None:
        """Ends its thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_TICK):
            self.seconds()
