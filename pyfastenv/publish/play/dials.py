"""A command's sliders: they follow what is drawn until somebody moves one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyfastenv.publish.play.player import Dial, Player

_NOTCHES = 200


class DialControls:
    """Sliders of a command's numbers, and a box that says whether they are held.

    Args:
        gui: viser's.
        player: Whose command it is.
        dial: The command.
        ask: As of :class:`pyfastenv.publish.play.page.Page`.
    """

    def __init__(
        self, gui: Any, player: Player, dial: Dial, ask: Callable[[Callable[[], object]], None]
    ):
        self._player, self._dial, self._ask, self._shown = player, dial, ask, player.shown
        values = player.command(dial.name)
        self._sliders: dict[int, Any] = {}
        with gui.add_folder(f"Command: {dial.name}"):
            self._held = gui.add_checkbox("Hold", not dial.drawn, disabled=not dial.drawn)
            self._held.on_update(self._hold_or_release)
            for i in np.flatnonzero(dial.low < dial.high).tolist():
                low, high = float(dial.low[i]), float(dial.high[i])
                self._sliders[i] = gui.add_slider(
                    dial.elements[i],
                    min=low,
                    max=high,
                    step=(high - low) / _NOTCHES,
                    initial_value=_within(values[i], low, high),
                )
                self._sliders[i].on_update(lambda event, i=i: self._moved(event, i))
        self._mine = self._values()  # what somebody has moved shows another value

    def show(self) -> None:
        """Shows what is in force, but on sliders that somebody has moved."""
        other = self._shown != self._player.shown
        if other:
            self._shown = self._player.shown
            self._held.value = self._player.holds(self._dial.name) or not self._dial.drawn
        elif self._held.value:
            return
        values = self._player.command(self._dial.name)
        for i, slider in self._sliders.items():
            if other or slider.value == self._mine[i]:
                slider.value = self._mine[i] = _within(values[i], slider.min, slider.max)

    def _values(self) -> dict[int, float]:
        return {i: slider.value for i, slider in self._sliders.items()}

    # ---- in viser's threads; whatever this program sets itself comes back without a client -----

    def _hold_or_release(self, event: Any) -> None:
        if event.client_id is not None:
            self._ask(self._hold if event.target.value else self._release)

    def _moved(self, event: Any, i: int) -> None:
        if event.client_id is None:
            return
        value = float(event.target.value)
        self._held.value = True
        self._ask(lambda: self._take(i, value))

    # ---- in the thread that plays ----------------------------------------------------------------

    def _take(self, i: int, value: float) -> None:
        values = self._player.command(self._dial.name)
        values[i] = value
        self._player.hold(self._dial.name, values)

    def _hold(self) -> None:
        self._player.hold(self._dial.name, self._player.command(self._dial.name))

    def _release(self) -> None:
        self._player.hold(self._dial.name, None)
        self._mine = self._values()


def _within(value: float, low: float, high: float) -> float:
    return round(float(np.clip(value, low, high)), 3)
