"""Rewards as sums of named, weighted terms: a convenience on top of ``step``, not a framework."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any


def reward_terms(**weights: float) -> Callable[[Any], Any]:
    """Lets ``step`` return its reward as named terms, ``return {"name": value, …}, terminated``.

    The reward is the sum of weight times value, in the order in which they are written, and
    ``info["reward_name"]`` is each of these products. Weights are parameters of the task, so they
    are keyword arguments of ``make_vec``::

        @pyfastenv.reward_terms(tracking=1.0, effort=-0.01)
        def step(self, data, action, info):
            self.simulate(data)
            error = data.qvel[0] - self.speed
            effort = np.sum(np.square(action))
            return {"tracking": np.exp(-4.0 * error * error), "effort": effort}, data.qpos[2] < 0.2

        envs = pyfastenv.make_vec(Walker, 64, effort_weight=-0.1)

    Args:
        **weights: Of each term that ``step`` may return; one that it leaves out counts nothing.

    Raises:
        TypeError: No weights, or ``step`` does not ask for ``info``.
    """
    if not weights:
        raise TypeError("reward_terms: expected weights, such as tracking=1.0")

    def decorate(step: Any) -> Any:
        arguments = list(inspect.signature(step).parameters)[1:]
        if "info" not in arguments:
            raise TypeError(f"reward_terms: {step.__qualname__} must ask for info")
        place = arguments.index("info")

        @functools.wraps(step)
        def summed(self: Any, *given: Any) -> tuple[float, Any]:
            terms, terminated = step(self, *given)
            if not isinstance(terms, Mapping) or not terms:
                raise TypeError(
                    f"{step.__qualname__} must return ({{…}}, terminated), got {terms!r}"
                )
            unknown = [name for name in terms if name not in weights]
            if unknown:
                raise TypeError(
                    f"{step.__qualname__}: no weight for {unknown[0]!r}; reward_terms has "
                    f"{', '.join(weights)}"
                )
            products = [getattr(self, weight_name(name)) * terms[name] for name in terms]
            for name, product in zip(terms, products, strict=True):
                given[place][info_name(name)] = product
            for name in weights:
                if name not in terms:
                    given[place][info_name(name)] = 0.0
            return functools.reduce(lambda total, product: total + product, products), terminated

        summed.reward_weights = {n: float(w) for n, w in weights.items()}  # type: ignore[attr-defined]
        return summed

    return decorate


def compiled_return(node: ast.Return, weights: Mapping[str, float]) -> list[ast.stmt]:
    """A return of named terms as statements without the dict, for the compiler.

    Args:
        node: ``return {"name": value, …}, terminated``.
        weights: Of the terms that there may be.

    Raises:
        TypeError: It is something else; a sentence.
    """
    pair = node.value
    terms = pair.elts[0] if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 else None
    if not isinstance(terms, ast.Dict) or not terms.keys:
        shown = ", ".join(f"{name!r}: …" for name in weights)
        raise TypeError(f"reward_terms needs return {{{shown}}}, terminated")
    names = [str(key.value) if isinstance(key, ast.Constant) else "" for key in terms.keys]
    unknown = [name for name in names if name not in weights]
    if unknown:
        raise TypeError(f"no weight for {unknown[0]!r}; reward_terms has {', '.join(weights)}")
    text = [f"reward_of_{name} = self.{weight_name(name)} * 0" for name in names]
    for name in weights:
        product = f"reward_of_{name}" if name in names else "0.0"
        text.append(f"info[{info_name(name)!r}] = {product}")
    text.append(f"return {' + '.join(f'reward_of_{name}' for name in names)}, 0")
    statements: list[Any] = ast.parse("\n".join(text)).body
    for part in (part for statement in statements for part in ast.walk(statement)):
        ast.copy_location(part, node)
    for statement, value in zip(statements, terms.values, strict=False):
        statement.value.right = value
    assert isinstance(pair, ast.Tuple)
    statements[-1].value.elts[1] = pair.elts[1]
    return statements


def weights_of(method: Any) -> dict[str, float]:
    """Those that :func:`reward_terms` has given a method; else none."""
    weights: dict[str, float] = getattr(method, "reward_weights", {})
    return weights


def weight_name(term: str) -> str:
    """The parameter that is a term's weight."""
    return f"{term}_weight"


def info_name(term: str) -> str:
    """The info that is a term's part of the reward."""
    return f"reward_{term}"
