"""A task's methods, and the user's functions that they call, as sources ready for the compiler.

Knows no numba. What cannot be compiled is refused with file, line and a sentence.
"""

from __future__ import annotations

import ast
import hashlib
import types
from typing import Any

from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.frontend.definitions import Definitions, Function
from pyfastenv.tasks.frontend.rewriter import Rewriter, written
from pyfastenv.tasks.frontend.vocabulary import MOVING
from pyfastenv.tasks.language.places import Place, Places, moved_places, places_of, show_place
from pyfastenv.tasks.language.task import METHODS, Task


class Sources:
    """All functions of a task.

    Args:
        task: An instance, whose attributes are known.

    Raises:
        TaskCodeError: Something cannot be compiled; the message says where and why.
    """

    def __init__(self, task: Task):
        self.task = task
        self.functions: dict[str, Function] = {}  # in order of discovery
        self.hooks: dict[str, str] = {}  # method -> function's name
        self._names: dict[types.FunctionType, str | None] = {}
        self._definitions = Definitions()
        for hook in METHODS:
            method = getattr(type(task), hook, None)
            if method is not None:
                name = self.add(method)
                assert name is not None
                self.hooks[hook] = name
        if "step" in self.hooks and not self._moves(self.hooks["step"], set()):
            self._refuse_step(self.functions[self.hooks["step"]])
        if "control" in self.hooks:
            self._check_control(self.hooks["control"], set())

    def _moves(self, name: str, seen: set[str]) -> bool:
        """Whether a function, or one that it calls, has a call that steps the physics."""
        seen.add(name)
        function = self.functions[name]
        calls = (node.func for node in ast.walk(function.tree) if isinstance(node, ast.Call))
        if any(isinstance(called, ast.Attribute) and called.attr == "simulate" for called in calls):
            return True
        kinds = [call.partition(":") for call in function.calls.values()]
        if any(kind == "mujoco" and called in MOVING for kind, _, called in kinds):
            return True
        helpers = [called for kind, _, called in kinds if kind == "helper" and called not in seen]
        return any(self._moves(called, seen) for called in helpers)

    def _refuse_step(self, step: Function) -> None:
        place = show_place(step.filename, step.tree.lineno)
        raise TaskCodeError(
            f"{place}: {type(self.task).__name__}.step never steps the physics: it calls "
            f"self.simulate(data) (or one of mujoco.{', '.join(MOVING)})"
        )

    def _check_control(self, name: str, seen: set[str]) -> None:
        """Refuses a control that changes anything: the pool may ask for it ahead of time."""
        seen.add(name)
        function = self.functions[name]
        for node in ast.walk(function.tree):
            target = node.value if isinstance(node, ast.Subscript) else node
            if (
                isinstance(target, ast.Attribute)
                and isinstance(getattr(node, "ctx", None), ast.Store)
                and isinstance(target.value, ast.Name)
                and target.value.id in ("self", "data")
            ):
                place = show_place(function.filename, target.lineno)
                raise TaskCodeError(
                    f"{place}: control writes {ast.unparse(target)}, but it may only write "
                    f"ctrl: the pool asks for it ahead of time\n    {ast.unparse(node)}"
                )
        for call in function.calls.values():
            kind, _, called = call.partition(":")
            if kind == "helper" and called not in seen:
                self._check_control(called, seen)

    def digest(self) -> str:
        """A hash of everything that compiled code depends on here."""
        text = "".join(function.text() for function in self.functions.values())
        return hashlib.sha256(text.encode()).hexdigest()

    def places(self) -> list[Places]:
        """Where everything stands in the user's files; not part of the digest."""
        return [places_of(f.tree, f.filename) for f in self.functions.values()]

    def moved(self, then: list[Places]) -> dict[Place, Place]:
        """Where the places that sources of the same digest have had are now."""
        now = [(function.tree, function.filename) for function in self.functions.values()]
        return moved_places(then, now)

    def add(self, function: Any) -> str | None:
        """Rewrites a function, once, and those that it calls; returns its name here.

        It is None while the function is being rewritten: one that it calls has called it.
        """
        if function not in self._names:
            name = f"{function.__name__}_{len(self._names)}"
            self._names[function] = None
            tree, filename = self._definitions.of(written(function))
            rewritten = Function(name, tree, filename)
            self.functions[name] = rewritten
            Rewriter(self.task, self.add, function, rewritten).run()
            self._names[function] = name
        return self._names[function]
