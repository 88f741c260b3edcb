"""Rewards as sums of named, weighted terms, and named reasons to end: on top of ``step``."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyfastenv.tasks.language.places import place_in_function
from pyfastenv.tasks.language.spelling import did_you_mean


def reward_terms(
    least: float = -math.inf, added: Sequence[str] = (), /, **weights: float
) -> Callable[[Any], Any]:
    """Lets ``step`` return its reward as named terms, ``return {"name": value, …}, terminated``.

    The reward is the sum of weight times value, in the order in which they are written.
    ``info["reward_name"]`` is each of these products, ``info["episode_reward_name"]`` its sum since
    the episode began, ``info["episode_reward_name_per_step"]`` that sum by steps. Weights are
    parameters of the task, so they are keyword arguments of ``make_vec``::

        @pyfastenv.reward_terms(tracking=1.0, effort=-0.01)
        def step(self, data, action, info):
            self.simulate(data)
            error = data.qvel[0] - self.speed
            effort = np.sum(np.square(action))
            terms = {"tracking": np.exp(-4.0 * error * error), "effort": effort}
            return terms, {"fallen": data.qpos[2] < 0.2, "tilted": data.qpos[3] < 0.5}

        envs = pyfastenv.make_vec(Walker, 64, effort_weight=-0.1)

    ``terminated`` may be a dict of conditions, as here: one that holds ends the episode, and
    ``info["terminated_name"]`` is 1 where it does.

    Args:
        least: The reward is not less, though the terms add up to less: ``reward_terms(0.0, …)``.
        added: Names of terms that are added to the bounded sum, so that they may take it below
            ``least``: ``reward_terms(0.0, ["fall"], near=1.0, fall=-5.0)``.
        **weights: Of each term that ``step`` may return; one that it leaves out counts nothing.

    Raises:
        TypeError: No weights, ``added`` has a name without one, ``step`` does not ask for ``info``,
            or a term has another one's name with ``_per_step``.
    """
    if not weights:
        raise TypeError("reward_terms: expected weights, such as tracking=1.0")
    if not isinstance(least, int | float) or not least < math.inf:
        raise TypeError(f"reward_terms: expected a number as the least reward, got {least!r}")
    if isinstance(added, str):
        raise TypeError(f"reward_terms: expected names of added terms, as [{added!r}]")
    _check_names(added, weights, "reward_terms: added: ")
    if taken := [name for name in weights if mean_name(name) in map(sum_name, weights)]:
        raise TypeError(
            f"reward_terms: {taken[0]}_per_step is what the infos have of {taken[0]}: expected "
            f"another name"
        )

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
            if unknown := [name for name in terms if name not in weights]:
                where = place_in_function(step, unknown[0])
                _check_names(unknown, weights, f"{where}{step.__qualname__}: ")
            for name, value in terms.items():
                if np.ndim(value) > 0 or np.asarray(value).dtype.kind not in "biuf":
                    raise TypeError(
                        f"{place_in_function(step, name)}{step.__qualname__}: {name!r}: expected a "
                        f"number, got {value!r}"
                    )
            products = {name: getattr(self, weight_name(name)) * terms[name] for name in terms}
            info, sums = given[place], getattr(self, sums_name(type(self), summed))
            sums[0] += 1.0
            for i, name in enumerate(weights, start=1):
                product = products.get(name, 0.0)
                sums[i] += product
                info[info_name(name)] = product
                info[sum_name(name)] = sums[i]
                info[mean_name(name)] = sums[i] / sums[0]
            if isinstance(terminated, Mapping):
                terminated = _any_of(terminated, info, step.__qualname__)
            bounded = [value for name, value in products.items() if name not in added]
            reward = functools.reduce(operator.add, bounded) if bounded else 0.0
            reward = least if reward < least else reward  # NaN stays what it is
            beyond = (value for name, value in products.items() if name in added)
            return functools.reduce(operator.add, beyond, reward), terminated

        summed.reward_weights = {n: float(w) for n, w in weights.items()}  # type: ignore[attr-defined]
        summed.least_reward, summed.added_terms = least, added  # type: ignore[attr-defined]
        return summed

    return decorate


def _any_of(conditions: Mapping[str, Any], info: Any, owner: str) -> bool:
    """Notes named conditions to end the episode; returns whether one of them holds."""
    _check_conditions(list(conditions), f"{owner}: ")
    for name, value in conditions.items():
        if np.ndim(value) > 0 or np.asarray(value).dtype.kind not in "bi":
            raise TypeError(f"{owner}: {name!r}: expected True or False, got {value!r}")
        info[ending_name(name)] = int(bool(value))
    return any(conditions.values())


def _check_names(names: Any, weights: Mapping[str, float], where: str = "") -> None:
    unknown = [name for name in names if name not in weights]
    if unknown:
        known = ", ".join(weights)
        raise TypeError(
            f"{where}no weight for {unknown[0]!r}; reward_terms has {known}"
            f"{did_you_mean(unknown[0], weights)}"
        )


def _check_conditions(names: list[Any], where: str = "") -> None:
    bad = [name for name in names if not (isinstance(name, str) and name.isidentifier())]
    if bad or not names:
        got = repr(bad[0]) if bad else "{}"
        raise TypeError(
            f"{where}expected terminated as True or False, or by names such as "
            f"{{'fallen': …}}, got {got}"
        )


def compiled_return(node: ast.Return, step: Any, sums: str, itself: str) -> list[ast.stmt]:
    """A return of named terms as statements without dicts, for the compiler.

    Args:
        node: ``return {"name": value, …}, terminated``.
        step: The method under :func:`reward_terms`, which has the weights.
        sums: The memory that :func:`sums_name` names.
        itself: The name of ``self``.

    Raises:
        TypeError: It is something else; a sentence.
    """
    pair, weights, least = node.value, weights_of(step), step.least_reward
    terms = pair.elts[0] if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 else None
    if not isinstance(terms, ast.Dict) or not terms.keys:
        shown = ", ".join(f"{name!r}: …" for name in weights)
        raise TypeError(f"reward_terms needs return {{{shown}}}, terminated")
    assert isinstance(pair, ast.Tuple)
    names = _keys(terms)
    _check_names(names, weights)
    ended = pair.elts[1]
    conditions = _keys(ended) if isinstance(ended, ast.Dict) else []
    if isinstance(ended, ast.Dict):
        _check_conditions(conditions)
    text = [f"reward_of_{name} = {itself}.{weight_name(name)} * 0" for name in names]
    text += [f"ended_by_{name} = bool(0)" for name in conditions]
    text += [f"reward_sums = {itself}.{sums}", "reward_sums[0] += 1.0"]
    for i, name in enumerate(weights, start=1):
        if name in names:
            text.append(f"reward_sums[{i}] += reward_of_{name}")
        product = f"reward_of_{name}" if name in names else "0.0"
        text.append(f"info[{info_name(name)!r}] = {product}")
        text.append(f"info[{sum_name(name)!r}] = reward_sums[{i}]")
        text.append(f"info[{mean_name(name)!r}] = reward_sums[{i}] / reward_sums[0]")
    text += [f"info[{ending_name(name)!r}] = 1 * ended_by_{name}" for name in conditions]
    bounded = [f"reward_of_{name}" for name in names if name not in step.added_terms]
    text.append(f"reward_summed = {' + '.join(bounded) or '0.0'}")
    if least > -math.inf:
        text.append(f"reward_summed = {least!r} if reward_summed < {least!r} else reward_summed")
    text += [f"reward_summed += reward_of_{n}" for n in names if n in step.added_terms]
    text.append(f"return reward_summed, {' or '.join(f'ended_by_{n}' for n in conditions) or 0}")
    statements: list[Any] = ast.parse("\n".join(text)).body
    for part in (part for statement in statements for part in ast.walk(statement)):
        ast.copy_location(part, node)
    for statement, value in zip(statements, terms.values, strict=False):
        statement.value.right = value
    if isinstance(ended, ast.Dict):
        for statement, value in zip(statements[len(names) :], ended.values, strict=False):
            statement.value.args = [value]
    else:
        statements[-1].value.elts[1] = ended
    return statements


def _keys(terms: ast.Dict) -> list[Any]:
    return [key.value if isinstance(key, ast.Constant) else "" for key in terms.keys]


def weights_of(method: Any) -> dict[str, float]:
    """Those that :func:`reward_terms` has given a method; else none."""
    weights: dict[str, float] = getattr(method, "reward_weights", {})
    return weights


def sums_of(task: type) -> dict[str, Any]:
    """The steps under :func:`reward_terms` in a task's classes, by the memory of their sums."""
    steps = [vars(base).get("step") for base in reversed(task.__mro__)]
    return {f"_reward_sums_{i}": s for i, s in enumerate(filter(weights_of, steps))}


def sums_name(task: type, step: Any) -> str:
    """The memory with the steps of an episode so far, and the sum of each of a step's terms."""
    return next(name for name, each in sums_of(task).items() if each is step)


def weight_name(term: str) -> str:
    """The parameter that is a term's weight."""
    return f"{term}_weight"


def info_name(term: str) -> str:
    """The info that is a term's part of the reward."""
    return f"reward_{term}"


def sum_name(term: str) -> str:
    """The info that is the sum of these parts since the episode began."""
    return f"episode_reward_{term}"


def mean_name(term: str) -> str:
    """The info that is this sum by the steps that the episode has had."""
    return f"episode_reward_{term}_per_step"


def ending_name(condition: str) -> str:
    """The info that says whether a named condition has ended the episode."""
    return f"terminated_{condition}"
