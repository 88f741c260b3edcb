"""Ctrl-C and SIGTERM while training: the first asks, the second insists."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

_REQUEST = b"\nFinishing this iteration, then saving; once more to stop at once.\n"


class StopRequest:
    """While entered, the first SIGINT or SIGTERM sets ``signal``; the next acts as usual.

    Signals that are ignored (``nohup``) stay so. In other threads than the main one, which cannot
    have handlers, it does nothing.

    Attributes:
        signal: The number of the signal that came, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *exception: object) -> None:
        self._restore()

    @property
    def exit_status(self) -> int:
        """The status that a shell expects: 130 after SIGINT, 143 after SIGTERM."""
        return 128 + (self.signal or signal.SIGINT)

    @property
    def note(self) -> str:
        """How to stop what does not hear Ctrl-C, since a script has begun it in the background."""
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            return ""
        return f"In the background, SIGINT is ignored; to stop and save: kill {os.getpid()}"

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._restore()
        os.write(2, _REQUEST)  # print could find stderr's lock taken

    def _restore(self) -> None:
        while self._previous:
            number, handler = self._previous.popitem()
            signal.signal(number, handler)
