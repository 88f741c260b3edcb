"""Local names that may be read before they are written, which compiled code would read as 0."""

from __future__ import annotations

import ast


def check_unwritten(tree: ast.FunctionDef, check: ast.Name) -> set[str]:
    """Has a function check such names where it reads them.

    ``name`` becomes ``check(name, has_name)``; ``has_name`` is a new local.

    Args:
        tree: The function, which is changed.
        check: What is called.

    Returns:
        The new names.
    """
    reads = _Reads(tree)
    if not reads.unsure:
        return set()
    flags = {node.id: f"has_{node.id}" for node in reads.unsure}
    while set(flags.values()) & (reads.stored | reads.arguments):
        flags = {name: f"_{flag}" for name, flag in flags.items()}
    checks = _Checks(flags, {id(node) for node in reads.unsure}, check)
    checks.generic_visit(tree)
    tree.body[:0] = [_set(flag, False, tree) for flag in flags.values()]
    return {*flags.values(), check.id}


class _Reads:
    """Which reads of a function's local names may come before all writes."""

    def __init__(self, tree: ast.FunctionDef):
        self.unsure: list[ast.Name] = []
        self.arguments = {argument.arg for argument in tree.args.args}
        self.stored = _stored(tree)
        self._follow(tree.body, self.arguments)

    def _read(self, node: ast.AST, known: set[str]) -> None:
        changed = node.target if isinstance(node, ast.AugAssign) else None
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
        self.unsure += [
            name
            for name in names
            if isinstance(name.ctx, ast.Load) or name is changed
            if name.id in self.stored - known
        ]

    def _follow(self, body: list[ast.stmt], known: set[str]) -> set[str] | None:
        """The names that are written whenever statements end; None: they never do."""
        after: set[str] | None = known
        for statement in body:
            if after is None:
                break
            after = self._behind(statement, after)
        return after

    def _behind(self, statement: ast.stmt, known: set[str]) -> set[str] | None:
        if isinstance(statement, ast.If):
            self._read(statement.test, known)
            ends = [self._follow(each, known) for each in (statement.body, statement.orelse)]
            reached = [end for end in ends if end is not None]
            return set.intersection(*reached) if reached else None
        if isinstance(statement, ast.For | ast.While):
            inside = known
            if isinstance(statement, ast.For):
                self._read(statement.iter, known)
                inside = known | _stored(statement.target)
            else:
                self._read(statement.test, known)
            self._follow(statement.body, inside)
            self._follow(statement.orelse, known)
            return known
        self._read(statement, known)
        if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
            return None
        return known | _stored(statement)


class _Checks(ast.NodeTransformer):
    """Puts the checks in, and says behind each write that it has been made."""

    def __init__(self, flags: dict[str, str], unsure: set[int], check: ast.Name):
        self._flags, self._unsure, self._check = flags, unsure, check

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._checked(node) if id(node) in self._unsure else node

    def _checked(self, node: ast.Name) -> ast.expr:
        arguments: list[ast.expr] = [
            ast.Name(node.id, ast.Load()),
            ast.Name(self._flags[node.id], ast.Load()),
        ]
        return ast.copy_location(ast.Call(self._check, arguments, []), node)

    def _written(self, node: ast.stmt, target: ast.AST) -> list[ast.stmt]:
        return [_set(self._flags[n], True, node) for n in sorted(_stored(target) & {*self._flags})]

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> list[ast.stmt]:
        self.generic_visit(node)
        return [node, *self._written(node, node)]

    visit_AnnAssign = visit_Assign

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        target = node.target
        node.value = self.visit(node.value)
        if not isinstance(target, ast.Name):
            node.target = self.visit(target)
        elif id(target) in self._unsure:
            return [ast.copy_location(ast.Expr(self._checked(target)), node), node]
        return [node]

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.body[:0] = self._written(node, node.target)
        return node


def _stored(node: ast.AST) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _set(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    """``name = value`` in the line of another statement."""
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), at)
