"""Arguments of the calls, right and wrong: each with the errors that it is due."""

import random
from typing import Any

import gymnasium
import numpy as np
from session import Session

ID_FAULTS = "beyond negative twice none fraction matrix"


def draw_ids(s: Session, rng: random.Random, fault: str | None, *, free: bool = True) -> Any:
    """env_ids in any order, and the errors they are due. Mostly of free environments."""
    n = s.settings.num_envs
    if fault == "beyond":
        return [n + rng.choice([0, 1, 2**40])], {IndexError}
    if fault == "negative":
        return [0, -1], {IndexError}
    if fault == "twice":
        return [0, 0], {ValueError}
    if fault == "none":
        return np.zeros(0, np.int64), {ValueError, TypeError}
    if fault == "fraction":
        return [0.0], {TypeError}
    if fault == "matrix":
        return [[0]], {ValueError}
    candidates = list(s.model.ids)
    if free and rng.random() < 0.9:
        candidates = [i for i in candidates if i not in s.model.busy] or candidates
    ids = rng.sample(candidates, rng.randint(1, len(candidates)))
    if ids == list(s.model.ids) and rng.random() < 0.5:
        return None, set()
    return rng.choice([ids, np.array(ids, rng.choice(["i4", "i8", "u2"])), tuple(ids)]), set()


def listed(s: Session, ids: Any) -> list[int]:
    return list(s.model.ids) if ids is None else [int(i) for i in ids]


def in_range(s: Session, ids: Any) -> list[int]:
    """Those that name environments, for what the model says of a call with bad ids."""
    if ids is None:
        return list(s.model.ids)
    return [int(i) for i in np.ravel(ids) if 0 <= i < s.settings.num_envs]


ACTION_FAULTS = "shape fewer dtype object bad"


def draw_actions(
    s: Session, rng: random.Random, fault: str | None, count: int
) -> tuple[Any, np.ndarray, set[Any]]:
    """Makes the arguments, the rows the references get, and the errors that are due."""
    start = rng.randrange(len(s.actions) - count)
    actions = s.actions[start : start + count]
    if fault == "shape":
        return actions[..., None], actions, {ValueError}
    if fault == "fewer":
        return actions[1:], actions, {ValueError}
    if fault == "dtype":
        return actions.astype(complex), actions, {TypeError}
    if fault == "object":
        return rng.choice([None, "up", {}, object()]), actions, {TypeError}
    if fault == "bad":
        actions = actions.copy()
        bad = [-1, 10**6] if s.discrete else [np.nan, np.inf, -np.inf]
        actions[rng.randrange(count)] = rng.choice(bad)
        return actions, actions, {ValueError}
    if s.discrete:
        given = actions.astype(rng.choice(["i8", "i8", "i4", "u1"]))
        return (given.tolist() if rng.random() < 0.1 else given), actions, set()
    if rng.random() < 0.2:
        actions = actions.astype(np.float64) * rng.uniform(0.5, 1.0)  # used as they are
    form = rng.random()
    if form < 0.1:
        return np.asfortranarray(actions), actions, set()
    if form < 0.2:
        return np.repeat(actions, 2, axis=0)[::2], actions, set()
    return actions, actions, set()


SEED_FAULTS = "minus half word few"


def draw_seed(s: Session, rng: random.Random, fault: str | None) -> tuple[Any, Any, set[Any]]:
    """``seed``, each environment's seed, and the errors it is due."""
    n = s.settings.num_envs
    if fault == "minus":
        return -1, None, {gymnasium.error.Error}
    if fault == "half":
        return rng.choice([0.5, [0.5] * n]), None, {TypeError}
    if fault == "word":
        return "seed", None, {TypeError}
    if fault == "few":
        return [1] * (n + 1), None, {ValueError}
    form = rng.random()
    if form < 0.3:
        return None, [None] * n, set()
    if form < 0.6:
        seed = rng.choice([0, 1, 7, rng.getrandbits(31), rng.getrandbits(70)])
        return seed, [seed + i for i in range(n)], set()
    seeds = [rng.choice([None, rng.getrandbits(rng.choice([1, 32, 64, 100]))]) for _ in range(n)]
    return seeds, seeds, set()


def draw_options(
    s: Session, rng: random.Random, fault: str | None
) -> tuple[dict[str, Any], dict[str, float], set[Any]]:
    """Reset options without a mask, the references', and the errors they are due."""
    if not s.settings.env_id.startswith(("CartPole", "Pendulum")):
        return {}, {}, set()
    low, high = ("x_init", "y_init") if "Pendulum" in s.settings.env_id else ("low", "high")
    if fault == "word":
        return {low: "down"}, {}, {ValueError}
    if rng.random() < 0.8:
        return {}, {}, set()
    size = rng.uniform(0.01, 0.04)
    bounds = {low: size if low == "x_init" else -size, high: size}
    return dict(bounds), bounds, set()


def merge(*sets: set[Any]) -> set[Any]:
    return set().union(*sets)
