"""The page: buttons, sliders and numbers of a player, in the browsers of all who watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyfastenv.publish.play.dials import DialControls
from pyfastenv.publish.play.player import Player
from pyfastenv.publish.play.text import status, table

_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
_PUSHES = {"ahead": (1.0, 0.0), "back": (-1.0, 0.0), "left": (0.0, 1.0), "right": (0.0, -1.0)}
_HARDEST = 3.0  # m/s
_STEP, _RESET = "one step", "new episode"

# takes what the thread that plays is to call soon
Ask = Callable[[Callable[[], object]], None]


class Page:
    """Shows a player to viser's clients, and asks it for what they ask.

    Clients' callbacks run in viser's threads, and only ask. Everything else, :meth:`show` too, is
    for the thread that plays.

    Args:
        server: viser's.
        player: What is played.
        view: One of :mod:`.scene`.
        title: What is played, in words.
        ask: Takes what the thread that plays is to call soon.
    """

    def __init__(self, server: Any, player: Player, view: Any, title: str, ask: Ask):
        self._gui, self._player, self._view = server.gui, player, view
        self._title, self._ask = title, ask
        self._gui.configure_theme(show_share_button=False, control_width="large")
        tabs = self._gui.add_tab_group()
        with tabs.add_tab("Play"):
            self._status = self._gui.add_html("")
            self._add_time()
            self._dials = [DialControls(self._gui, player, dial, ask) for dial in player.dials]
            if player.mirror is not None:
                self._add_pushes()
            with self._gui.add_folder("Latest step"):
                self._numbers = self._gui.add_html("")
        view.add_controls(tabs, lambda: ask(lambda: None))

    def show(self) -> None:
        """Shows the present state."""
        self._view.show()
        for dial in self._dials:
            dial.show()
        self._pause.label = "Go on" if self._player.paused else "Pause"
        self._status.content = status(self._player, self._title)
        self._numbers.content = table(self._player)

    def _add_time(self) -> None:
        player = self._player
        self._pause = self._gui.add_button("Pause")
        self._on_click(self._pause, lambda _: player.pause(not player.paused))
        others = self._gui.add_button_group("Episode", (_STEP, _RESET))
        self._on_click(others, lambda name: self._one_step() if name == _STEP else player.reset())
        speeds = self._gui.add_button_group("Speed", _SPEEDS, hint="times real time")
        self._on_click(speeds, lambda speed: setattr(player.pace, "speed", float(speed)))
        if player.envs.num_envs > 1:
            last = player.envs.num_envs - 1
            shown = self._gui.add_slider("Environment", min=0, max=last, step=1, initial_value=0)
            shown.on_update(lambda event: self._asking(player.select, int(event.target.value)))

    def _add_pushes(self) -> None:
        with self._gui.add_folder("Push"):
            hard = self._gui.add_slider(
                "Speed [m/s]", min=0.1, max=_HARDEST, step=0.1, initial_value=1.0
            )
            ways = self._gui.add_button_group("Towards", tuple(_PUSHES))
            self._on_click(
                ways, lambda way: self._player.push([hard.value * each for each in _PUSHES[way]])
            )

    def _one_step(self) -> None:
        self._player.pause(True)
        self._player.step()

    def _on_click(self, button: Any, call: Callable[[Any], object]) -> None:
        button.on_click(lambda event: self._asking(call, event.target.value))

    def _asking(self, call: Callable[[Any], object], value: Any) -> None:
        self._ask(lambda: call(value))
