"""The words and numbers on a player's page, as HTML."""

from __future__ import annotations

import html

from pyfastenv.publish.play.player import Player

_TERM, _SUM, _MEAN = "reward_", "episode_", "_per_step"
_BOX = '<div style="font-size: 0.85em; line-height: 1.4; padding: 0 1em 0.5em 1em">{}</div>'
_RIGHT = ' style="text-align: right; font-variant-numeric: tabular-nums; padding-left: 1em"'


def status(player: Player, title: str) -> str:
    """Lines on what is played, how fast, and how the episode goes."""
    total, steps = player.episode
    ended = player.ended
    lines = [
        f"<b>{html.escape(title)}</b>",
        _speed(player),
        f"{steps * player.pace.period:,.2f} s, {steps:,} steps, return {total:,.2f}",
        "&nbsp;"  # what is below stays in its place
        if ended is None
        else f"Before: {ended.length:,} steps, return {ended.total:,.2f}, {html.escape(ended.why)}",
    ]
    return _BOX.format("<br>".join(lines))


def table(player: Player) -> str:
    """The reward and its terms, with their sums over the episode, then the other infos."""
    numbers = player.numbers()
    shown = {name: value for name, value in numbers.items() if not name.startswith(_SUM)}
    sums = {name: numbers[_SUM + name] for name in shown if _SUM + name in numbers}
    rows: list[tuple[str | float, ...]] = [("", "latest", "episode")]
    rows.append(("reward", player.reward, player.episode[0]))
    terms_first = sorted(shown, key=lambda name: not name.startswith(_TERM))
    rows += [(name, shown[name], sums.get(name, "")) for name in terms_first]
    return _BOX.format(f"<table>{''.join(map(_row, rows))}</table>")


def _speed(player: Player) -> str:
    pace = player.pace
    if player.paused:
        return "paused"
    said = f"{pace.speed:g} times real time"
    if pace.late:
        return f"{said} asked for, {pace.rate:.2f} reached: this machine is too slow"
    return said


def _row(cells: tuple[str | float, ...]) -> str:
    name, *values = cells
    texts = [v if isinstance(v, str) else f"{v or 0.0:,.4g}" for v in values]  # no -0
    right = "".join(f"<td{_RIGHT}>{html.escape(text)}</td>" for text in texts)
    return f"<tr><td>{html.escape(str(name))}</td>{right}</tr>"
