"""Code that runs around a task's own methods, for what it declares.

It is text, since one text runs in plain Python (``pool.plain``) and is compiled
(``compiler.build``).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyfastenv.tasks.language.commands import (
    draw_when_due,
    hold_and_draw,
    hold_commands,
    setting_name,
    show,
)
from pyfastenv.tasks.language.curricula import begin, count_steps, show_and_check
from pyfastenv.tasks.language.layout import Part
from pyfastenv.tasks.language.noise import noise_code, noise_parts
from pyfastenv.tasks.language.randomise import draw_parts
from pyfastenv.tasks.language.task import Task

ROW = "row"  # in the code after observation: the flat observation, which it may change


def code_around(task: Task, written: Mapping[str, Part] | None) -> dict[str, tuple[str, str]]:
    """The code before and after a method, which may use ``self`` and all that it may ask for.

    Args:
        task: Whose methods.
        written: The layout of its observations; None: not known yet, so there is no noise.
    """
    commands, curricula, parts = task.drawn_commands(), task.curricula(), task._parts_drawn
    starts = {n: getattr(task, setting_name(n, "start"), None) for n in curricula}
    begun = begin(curricula, starts) + draw_parts(parts, again=False) + hold_and_draw(commands)
    shown = show_and_check(curricula) + show(commands)
    due = count_steps(curricula) + draw_when_due(commands) + draw_parts(parts, again=True)
    noise = {} if written is None else task.observation_noise
    drawn, added = noise_code(noise_parts(noise, written or {}, type(task).__name__))
    return {
        "reset": (begun, shown + drawn),
        "step": (hold_commands(commands), shown + due + drawn),
        "observation": ("", added),
    }
