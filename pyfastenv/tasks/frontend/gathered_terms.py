"""Terms that step gathers in a dict before it returns them, as variables for the compiler.

``terms = {"near": x}; terms["effort"] = y; return terms, done`` becomes
``term_near = x; term_effort = y; return {"near": term_near, "effort": term_effort}, done``; and so
does a dict of what ends the episode.
"""

from __future__ import annotations

import ast
from typing import Any


class TermsError(TypeError):
    """A dict of terms that cannot become variables: the node, and what to write instead."""

    def __init__(self, node: ast.AST, what: str, instead: str):
        super().__init__(f"{what}: {instead}")
        self.node, self.what, self.instead = node, what, instead


def unfold_terms(tree: ast.FunctionDef) -> set[str]:
    """Rewrites a step under reward_terms in place.

    Args:
        tree: The method.

    Returns:
        The variables that it has now in the dicts' stead.

    Raises:
        TermsError: Which terms there are depends on the run, or the dict is used otherwise.
    """
    returned = {
        part.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
        for part in node.value.elts
        if isinstance(part, ast.Name)
    }
    unfolder = _Unfolder(returned)
    tree.body = unfolder.statements(tree.body)
    return {name for terms in unfolder.variables.values() for name in terms.values()}


class _Unfolder(ast.NodeTransformer):
    def __init__(self, returned: set[str]):
        self.variables: dict[str, dict[str, str]] = {}  # of each dict: term -> variable
        self._returned = returned
        self._depth = 0  # of statements in if, for and while

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A body's statements, rewritten."""
        found: list[ast.stmt] = []
        for statement in body:
            now = self.visit(statement)
            found += now if isinstance(now, list) else [now]
        return found

    def _visit_block(self, node: Any) -> Any:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    visit_If = visit_For = visit_While = _visit_block

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None or not self._begins_dict(node.target, node.value):
            return self.generic_visit(node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        if self._begins_dict(target, node.value):
            return self._begin(target, node.value)
        if isinstance(target, ast.Subscript) and self._is_dict(target.value):
            self._variable(target, may_be_new=True)
        return self.generic_visit(node)

    def _begins_dict(self, target: ast.expr, value: ast.expr) -> bool:
        is_returned = isinstance(target, ast.Name) and target.id in self._returned
        return is_returned and isinstance(value, ast.Dict)

    def _begin(self, target: Any, terms: Any) -> list[ast.stmt]:
        if self._depth > 0 or target.id in self.variables:
            raise TermsError(
                target,
                target.id,
                "the terms' dict begins once, and in every step: not in if or for",
            )
        self.variables[target.id] = {}
        found: list[ast.stmt] = []
        for key, value in zip(terms.keys, terms.values, strict=True):
            place = ast.Subscript(ast.Name(target.id, ast.Load()), key, ast.Store())
            ast.copy_location(place, value)
            variable = self._variable(place, may_be_new=True)
            found.append(
                ast.copy_location(
                    ast.Assign([ast.Name(variable, ast.Store())], self.visit(value)), value
                )
            )
        return found or [ast.copy_location(ast.Pass(), target)]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not self._is_dict(node.value):
            return self.generic_visit(node)
        return ast.copy_location(ast.Name(self._variable(node), node.ctx), node)

    def visit_Return(self, node: ast.Return) -> Any:
        pair = node.value
        if isinstance(pair, ast.Tuple):
            pair.elts = [self._as_dict(part) if self._is_dict(part) else part for part in pair.elts]
        return self.generic_visit(node)

    def _as_dict(self, node: Any) -> ast.expr:
        terms = self.variables[node.id]
        keys: list[ast.expr | None] = [ast.Constant(term) for term in terms]
        values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in terms.values()]
        return ast.copy_location(ast.Dict(keys, values), node)

    def visit_Name(self, node: ast.Name) -> Any:
        if self._is_dict(node):
            raise TermsError(
                node, node.id, f"the terms' dict is only used as {node.id}['name'], and returned"
            )
        return node

    def _is_dict(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.variables

    def _variable(self, place: Any, *, may_be_new: bool = False) -> str:
        """The variable of ``terms["name"]``."""
        terms, key = self.variables[place.value.id], place.slice
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise TermsError(place, place.value.id, "a term's name is a text, written out")
        term = key.value
        if term not in terms:
            shown = f"{place.value.id}[{term!r}]"
            if not may_be_new:
                raise TermsError(place, shown, "it is read before it is written")
            if self._depth > 0:
                raise TermsError(
                    place, shown, "every step has the same terms: write it before, as 0.0"
                )
            terms[term] = f"term_{place.value.id}_{term}"
        return terms[term]
