"""Assignments that a task's methods must not make, and what to write instead."""

from __future__ import annotations

import ast

import gymnasium

from pyfastenv.tasks.frontend import vocabulary as words
from pyfastenv.tasks.language.fields import Command, Curriculum, Drawn
from pyfastenv.tasks.language.task import METHODS, Task

Refusal = tuple[str, str]  # what is written to, and what to do instead

# how mjModel's arrays of a kind begin, where that is not the kind's own name
_BEGINNINGS = {"joint": ("jnt_", "dof_"), "camera": ("cam_",)}


class Targets:
    """Judges what one function assigns to.

    Args:
        task: Whose function it is.
        tree: The function.
        itself: The name of its ``self``; None if it has none.
    """

    def __init__(self, task: Task, tree: ast.FunctionDef, itself: str | None):
        self._task = task
        self._itself = itself
        self._action_is_given = (
            "action" in METHODS.get(tree.name, ())
            and not isinstance(task.action_space, gymnasium.spaces.Discrete)
            and "action" not in _assigned_names(tree)
        )

    def refusal(self, target: ast.expr, *, in_place: bool = False) -> Refusal | None:
        """Why a target cannot be written; None if it can.

        Args:
            target: Of an assignment.
            in_place: It is ``target *= …`` or the like.
        """
        base, is_element = target, isinstance(target, ast.Subscript)
        while isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(base, ast.Name):
            given = base.id == "action" and self._action_is_given
            return _OF_ACTION if given and (is_element or in_place) else None
        if not isinstance(base, ast.Attribute):
            return None
        owner = base.value
        if isinstance(owner, ast.Name) and owner.id == "data":
            return _of_data(f"data.{base.attr}", base.attr, is_element)
        if isinstance(owner, ast.Name) and owner.id == self._itself:
            field = self._task._fields.get(base.attr)
            is_read = isinstance(field, Drawn) or _moves_by_itself(field)
            return self._of_self(base.attr) if is_element or is_read else None
        if self._is_model(owner):
            return self._of_model(ast.unparse(base), base.attr, is_element)
        if isinstance(owner, ast.Attribute) and self._is_model(owner.value):  # self.model.opt.…
            return ast.unparse(base), f"{_SHARED}; it is set once, in setup"
        return self._of_named(base, owner, is_element)

    def _of_self(self, name: str) -> Refusal | None:
        field = self._task._fields.get(name)
        if isinstance(field, Command | Drawn):
            setter = "set_command" if isinstance(field, Drawn) else "reset_task"
            return f"self.{name}", (
                f"a command is only read, envs.{setter} sets it; what a method changes is a "
                f"pyfastenv.memory, or a copy: x = self.{name}.copy()"
            )
        if _moves_by_itself(field):
            return f"self.{name}", "a curriculum over steps moves by itself and is only read"
        if field is None and name in (*self._task.params, "init_qpos", "init_qvel"):
            return f"self.{name}", (
                "a parameter is the same for all environments and is only read; what a method "
                f"changes is a pyfastenv.memory, or a copy: x = self.{name}.copy()"
            )
        return None

    def _of_model(self, shown: str, array: str, is_element: bool) -> Refusal | None:
        if array not in self._task.model_fields:
            return shown, (
                f"{_SHARED}; an array that each has for itself is declared in the class, "
                f"model_fields = ({array!r},), or set by envs.set_model_field"
            )
        return None if is_element else (shown, f"an array is written as {shown}[:] = … (or [i])")

    def _of_named(self, base: ast.Attribute, owner: ast.expr, is_element: bool) -> Refusal | None:
        """Refuses ``data.joint("hip").qpos = x`` and ``self.model.body("trunk").mass = x``."""
        if not (isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute)):
            return None
        kind, root = owner.func.attr, owner.func.value
        shown = ast.unparse(base)
        if isinstance(root, ast.Name) and root.id == "data":
            return _of_data(shown, base.attr, is_element)
        if not self._is_model(root):
            return None
        names = [begin + base.attr for begin in _BEGINNINGS.get(kind, (f"{kind}_",))]
        array = next((name for name in names if hasattr(self._task.model, name)), names[0])
        return self._of_model(shown, array, is_element)

    def _is_model(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and node.attr == "model"
            and isinstance(node.value, ast.Name)
            and node.value.id == self._itself
        )


_SHARED = "the model is shared by all environments"
_OF_ACTION = (
    "action",
    "it is only read, since control and simulate take it too; write a new array, such as "
    "scaled = action * 0.5",
)


def _of_data(shown: str, array: str, is_element: bool) -> Refusal | None:
    if array not in words.STATE:
        return shown, "MuJoCo computes it from the state; it is only read"
    if not is_element and array != "time":
        return shown, f"an array is written as {shown}[:] = … (or [i])"
    return None


def _assigned_names(tree: ast.FunctionDef) -> set[str]:
    """The names to which a function gives another value, other than in place."""
    in_place = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AugAssign)}
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and id(node) not in in_place
    }


def _moves_by_itself(field: object) -> bool:
    return isinstance(field, Curriculum) and field.over is not None
