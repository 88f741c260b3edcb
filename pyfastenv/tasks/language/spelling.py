"""Names in a task that are nearly others: a misspelt setting would be a parameter of nobody's."""

from __future__ import annotations

import difflib
import dis
import inspect
import types
from collections.abc import Collection, Iterable, Iterator
from typing import Any

_ALIKE = 0.85  # difflib's ratio: frame_skips, max_episode_step, randomize; not action_scale
# what other packages call a setting
_ELSEWHERE = {
    "decimation": "frame_skip",
    "action_repeat": "frame_skip",
    "repeat_action": "frame_skip",
    "n_frames": "frame_skip",
    "substeps": "frame_skip",
    "n_substeps": "frame_skip",
    "num_substeps": "frame_skip",
    "n_sub_steps": "frame_skip",
    "physics_steps": "frame_skip",
    "max_steps": "max_episode_steps",
    "time_limit": "max_episode_steps",
    "episode_length": "max_episode_steps",
    "max_episode_length": "max_episode_steps",
    "horizon": "max_episode_steps",
    "domain_randomisation": "randomise",
    "domain_randomization": "randomise",
    "action_dim": "action_space",
}
# what other packages call a method, or a part of one
_METHODS_ELSEWHERE = {
    "reward": "step",
    "get_reward": "step",
    "terminated": "step",
    "get_terminated": "step",
    "get_termination": "step",
    "is_done": "step",
    "done": "step",
    "get_dones": "step",
    "get_obs": "observation",
    "_get_obs": "observation",
    "get_observation": "observation",
    "get_observations": "observation",
    "compute_observations": "observation",
    "reset_model": "reset",
    "initialize_episode": "reset",
    "reset_idx": "reset",
}


def did_you_mean(name: str, known: Iterable[str], alike: float = 0.7) -> str:
    """``"; did you mean 'frame_skip'?"``, or nothing."""
    words = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), words, 1, alike)
    return f"; did you mean {words[near[0]]!r}?" if near else ""


def misspelt(
    cls: type, attributes: Collection[str], settings: Collection[str], methods: Collection[str]
) -> tuple[str, str] | None:
    """An attribute that must be a misspelt setting or method, and which one.

    That is one whose name is nearly a setting's (or, of a method, nearly a method's), or another
    package's for a setting that is not given or for a method, and which no method reads; or a
    setting's but for underscores and capitals, whoever reads it.

    Args:
        cls: The task's class.
        attributes: The names of what it and its instance have of their own, settings among them.
        settings: Names that mean something as attributes.
        methods: Names that mean something as methods.
    """
    for name in attributes:
        if name in settings or name in methods:
            continue
        is_method = isinstance(inspect.getattr_static(cls, name, None), types.FunctionType)
        known = {_squeezed(word): word for word in (methods if is_method else settings)}
        short = _squeezed(name)
        if short in known and not is_method:
            return name, known[short]
        near = difflib.get_close_matches(short, known, 1, _ALIKE)
        if near and name not in names_read(cls):
            return name, known[near[0]]
        if is_method:
            meant = _METHODS_ELSEWHERE.get(name.lower())
        else:
            meant = _ELSEWHERE.get(name.lower())
            meant = None if meant in attributes else meant
        if meant and name not in names_read(cls):
            return name, meant
    return None


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


def names_read(cls: type) -> set[str]:
    """All attributes that methods read, of whatever."""
    return {
        str(instruction.argval)
        for code in _codes(vars(base).values() for base in cls.__mro__)
        for instruction in dis.get_instructions(code)
        if instruction.opname.startswith("LOAD_")
    }


def _codes(groups: Iterable[Iterable[Any]]) -> Iterator[types.CodeType]:
    """The code of functions, methods and properties, and what is inside of it."""
    for value in (value for group in groups for value in group):
        function = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(function, types.FunctionType):
            yield from nested_codes(inspect.unwrap(function).__code__)


def nested_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and those of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested_codes(constant)
