"""The pace: how many steps are due, so that time passes in environments as for who watches."""

from __future__ import annotations

import math

_MOST_LATE = 0.1  # seconds of the watcher's; what is later is dropped, not made up for
_WINDOW = 1.0  # seconds over which the rate is measured


class Pace:
    """Counts the steps that are due.

    Args:
        period: Seconds of the environment's time in a step.

    Attributes:
        rate: Seconds of the environment's time in one of the watcher's, of the latest second; None
            before the first is over.
    """

    def __init__(self, period: float):
        self._period, self._speed = period, 1.0
        self.restart()

    @property
    def period(self) -> float:
        """Seconds of the environment's time in a step."""
        return self._period

    @property
    def speed(self) -> float:
        """Seconds of the environment's time that are to pass in one of the watcher's."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if not 0.0 < speed < math.inf:
            raise ValueError(f"speed: expected more than 0, got {speed}")
        self._speed = speed
        self.restart()

    def restart(self) -> None:
        """Begins anew, as after a pause: nothing is late."""
        self._next: float | None = None
        self._began, self._steps = 0.0, 0
        self.rate: float | None = None

    def due(self, now: float) -> int:
        """The steps to take now, a time in seconds that never falls; they count as taken."""
        if self._next is None:
            self._next = self._began = now
        interval = self._period / self._speed
        steps = max(0, 1 + math.floor((now - self._next) / interval))
        most = max(1, math.ceil(_MOST_LATE / interval))
        if steps > most:
            steps, self._next = most, now + interval
        else:
            self._next += steps * interval
        self._measure(now, steps)
        return steps

    def wait(self, now: float) -> float:
        """Seconds until the next step is due."""
        return 0.0 if self._next is None else max(0.0, self._next - now)

    @property
    def late(self) -> bool:
        """Whether fewer steps are taken than the speed asks for."""
        return self.rate is not None and self.rate < 0.9 * self._speed

    def _measure(self, now: float, steps: int) -> None:
        self._steps += steps
        if (passed := now - self._began) >= _WINDOW:
            self.rate = self._steps * self._period / passed
            self._began, self._steps = now, 0
