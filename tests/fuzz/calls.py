"""The calls a session is made of: each is drawn from a seed and knows which errors are due.

A call's function takes the session, a random generator and a fault from its list (None: a call that
is wrong, if at all, only for what went before), and returns a Plan. Everything random comes from
the generator, so a call is repeated by its name, seed and fault.
"""

import os
import random
import signal
import warnings
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import numpy as np
from arguments import (
    ACTION_FAULTS,
    ID_FAULTS,
    SEED_FAULTS,
    draw_actions,
    draw_ids,
    draw_options,
    draw_seed,
    in_range,
    listed,
    merge,
)
from kinds import kind, own_reference
from reference import Failure
from session import Plan, Saved, Session

import pyfastenv

# ---- reset and step ------------------------------------------------------------------------------


@kind(4, f"{SEED_FAULTS} mask_list mask_ints mask_long mask_none option")
def reset(s: Session, rng: random.Random, fault: str | None) -> Plan:
    n = s.settings.num_envs
    seed, seeds, bad_seed = draw_seed(s, rng, fault)
    options, bounds, bad_options = draw_options(s, rng, "word" if fault == "option" else None)
    ids = list(s.model.ids)
    needing = [i for i in ids if s.model.envs[i].needs_reset]
    masked = rng.random() < 0.4
    bad_mask: set[Any] = set()
    if fault is not None and fault.startswith("mask"):
        options["reset_mask"], bad_mask = {
            "mask_list": ([True] * n, {TypeError}),
            "mask_ints": (np.ones(n, np.int64), {TypeError}),
            "mask_long": (np.ones(n + 1, bool), {ValueError}),
            "mask_none": (np.zeros(n, bool), {ValueError}),
        }[fault]
    elif masked:
        some = rng.sample(ids, rng.randint(1, n))
        ids = sorted(needing if needing and rng.random() < 0.7 else some)
        options["reset_mask"] = np.isin(np.arange(n), ids)
    if seeds is not None and any(seeds[i] is None for i in ids if i in s.unseeded):
        seed = seeds = [rng.getrandbits(32) for _ in range(n)]
    # also those that are masked out: their latest rows are not known while they are under way
    errors = merge(s.model.errors(s.model.ids), bad_seed, bad_mask, bad_options)
    given = dict(options)

    def check(result: Any, failed: Collection[int]) -> None:
        assert list(options) == list(given), "reset changed its options"
        for i in s.model.ids:
            where = f"reset, environment {i}"
            if i in ids:
                expected = s.reset_reference(i, seeds[i], bounds)
                s.compare(result, i, expected, i in failed, where, infos=True)
            elif s.model.envs[i].last_obs is not None:
                assert result[0][i].tobytes() == s.model.envs[i].last_obs, f"{where}: latest obs"

    text = f"reset(seed={seed!r}, options={options!r})"
    return Plan(
        text, lambda: s.pool.reset(seed=seed, options=options), errors, check, returns_arrays=True
    )


@kind(0)
def first_reset(s: Session, rng: random.Random, fault: str | None) -> Plan:
    """Opens most sessions: from here on nothing depends on the system's entropy."""
    seed = rng.getrandbits(32)

    def check(result: Any, failed: Collection[int]) -> None:
        for i in s.model.ids:
            expected = s.reset_reference(i, seed + i, {})
            s.compare(result, i, expected, i in failed, f"reset, environment {i}", infos=True)

    return Plan(f"reset(seed={seed})", lambda: s.pool.reset(seed=seed), set(), check)


@kind(30, ACTION_FAULTS)
def step(s: Session, rng: random.Random, fault: str | None) -> Plan:
    given, actions, bad = draw_actions(s, rng, fault, s.settings.num_envs)
    infos = rng.random() < 0.4

    def check(result: Any, failed: Collection[int]) -> None:
        for i in s.model.ids:
            expected = s.step_reference(i, actions[i])
            s.compare(result, i, expected, i in failed, f"step, environment {i}", infos)

    errors = merge(bad, s.model.errors(s.model.ids, reset=True))
    return Plan(
        f"step({_short(given)})", lambda: s.pool.step(given), errors, check, returns_arrays=True
    )


# ---- send and receive ----------------------------------------------------------------------------


@kind(16, f"{ID_FAULTS} {ACTION_FAULTS}")
def send(s: Session, rng: random.Random, fault: str | None) -> Plan:
    ids, bad_ids = draw_ids(s, rng, fault)
    if not bad_ids and rng.random() < 0.9:  # of those that can step
        ids = [i for i in listed(s, ids) if not s.model.envs[i].needs_reset] or ids
    count = len(listed(s, ids)) if not bad_ids else len(ids)
    given, actions, bad = draw_actions(s, rng, fault, max(count, 1))
    errors = merge(bad_ids, bad, s.model.errors(in_range(s, ids), reset=True))

    def check(result: Any, failed: Collection[int]) -> None:
        for row, i in enumerate(listed(s, ids)):
            s.model.envs[i].pending = s.step_reference(i, actions[row])

    return Plan(f"send({_short(given)}, {ids!r})", lambda: s.pool.send(given, ids), errors, check)


@kind(3, f"{ID_FAULTS} {SEED_FAULTS} mask option")
def async_reset(s: Session, rng: random.Random, fault: str | None) -> Plan:
    n = s.settings.num_envs
    seed, seeds, bad_seed = draw_seed(s, rng, fault)
    options, bounds, bad_options = draw_options(s, rng, "word" if fault == "option" else None)
    ids, bad_ids = draw_ids(s, rng, fault)
    bad_mask: set[Any] = set()
    if fault == "mask":
        options["reset_mask"], bad_mask = np.ones(n, bool), {ValueError}
    chosen = [] if bad_ids else listed(s, ids)
    if seeds is not None and any(seeds[i] is None for i in chosen if i in s.unseeded):
        seed = seeds = [rng.getrandbits(32) for _ in range(n)]
    errors = merge(bad_seed, bad_options, bad_ids, bad_mask, s.model.errors(in_range(s, ids)))

    def check(result: Any, failed: Collection[int]) -> None:
        for i in chosen:
            s.model.envs[i].pending = s.reset_reference(i, seeds[i], bounds)

    return Plan(
        f"async_reset(seed={seed!r}, options={options!r}, env_ids={ids!r})",
        lambda: s.pool.async_reset(seed=seed, options=options, env_ids=ids),
        errors,
        check,
    )


RECV_FAULTS: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "least": ({"min_envs": 0}, ValueError),
    "most": ({"max_envs": 10**6}, ValueError),
    "past": ({"timeout": -1.0}, ValueError),
    "nan": ({"timeout": np.nan}, ValueError),
    "soon": ({"timeout": "soon"}, TypeError),
    "half": ({"min_envs": 1.5}, TypeError),
}


@kind(16, " ".join(RECV_FAULTS))
def recv(s: Session, rng: random.Random, fault: str | None) -> Plan:
    n = s.settings.num_envs
    busy = s.model.busy
    least = rng.choice([None, None, rng.randint(1, n)])
    most = rng.choice([None, None, rng.randint(1, n)])
    kwargs: dict[str, Any] = {
        "min_envs": least,
        "max_envs": most,
        "timeout": rng.choice([None, None, 0.0, 1e-4, 1.0]),
    }
    errors = s.model.errors()
    if fault is not None:
        changed, error = RECV_FAULTS[fault]
        kwargs.update(changed)
        errors.add(error)
    elif least is not None and most is not None and least > most:
        errors.add(ValueError)
    if not busy:
        errors.add(pyfastenv.NothingPendingError)
    infos = rng.random() < 0.6

    def check(result: Any, failed: Collection[int]) -> None:
        ids = result[4]["env_id"].tolist()
        taken = [*ids, *failed]
        assert len(taken) == len(set(taken)) and set(taken) <= busy, f"received {taken} of {busy}"
        wanted = min(least or len(busy), most or n, len(busy))
        assert 1 <= len(taken) <= (most or n), f"received {taken} at most {most}"
        assert kwargs["timeout"] is not None or len(taken) >= wanted, f"{taken} of {wanted}"
        for row, i in enumerate(ids):
            expected = s.model.envs[i].pending
            assert expected is not None
            s.compare(result, row, expected, False, f"recv, environment {i}", infos)
        for i in failed:
            assert isinstance(s.model.envs[i].pending, Failure), f"environment {i} failed"
        for i in taken:
            s.model.envs[i].pending = None

    return Plan(
        f"recv(**{kwargs!r})", lambda: s.pool.recv(**kwargs), errors, check, returns_arrays=True
    )


# ---- state ---------------------------------------------------------------------------------------


@kind(2, ID_FAULTS)
def get_state(s: Session, rng: random.Random, fault: str | None) -> Plan:
    ids, bad = draw_ids(s, rng, fault)

    def check(states: np.ndarray, failed: Collection[int]) -> None:
        chosen = listed(s, ids)
        assert states.shape == (len(chosen), s.pool.state_bytes) and states.dtype == np.uint8
        for row, i in enumerate(chosen):
            if own_reference(s):
                expected = s.references[i].envs.get_state()[0]
                bad_bytes = np.flatnonzero(states[row] != expected)
                assert not len(bad_bytes), f"get_state, environment {i}: bytes {bad_bytes[:8]}"
        if chosen == list(s.model.ids):
            models = [env.snapshot() for env in s.model.envs]
            s.saved.append(Saved(states.copy(), models, tuple(s.model.fields)))
            del s.saved[:-3]

    errors = merge(bad, s.model.errors(in_range(s, ids)))
    return Plan(f"get_state({ids!r})", lambda: s.pool.get_state(ids), errors, check)


@kind(2, f"{ID_FAULTS} shape dtype other list", lambda s: own_reference(s) and bool(s.saved))
def set_state(s: Session, rng: random.Random, fault: str | None) -> Plan:
    ids, bad = draw_ids(s, rng, fault)
    saved = rng.choice(s.saved)
    if not bad:
        sources = [rng.randrange(s.settings.num_envs) for _ in listed(s, ids)]
    else:
        sources = [0] * len(ids)
    states: Any = saved.states[sources]
    if fault == "shape":
        states, bad = rng.choice([(states[:, :-1], {ValueError}), (states[0], {ValueError})])
    elif fault == "dtype":
        states, bad = states.astype(rng.choice(["i4", "i1", "?"])), {ValueError, TypeError}
    elif fault == "other":  # its first bytes say of which environments it is
        states = states.copy()
        states[rng.randrange(len(states)), :8] ^= 0x5A
        bad = {ValueError}
    elif fault == "list":
        states, bad = states.tolist(), {TypeError, ValueError}
    if saved.fields != tuple(s.model.fields):
        bad = bad | {ValueError}
    errors = merge(bad, s.model.errors(in_range(s, ids)))

    def check(result: Any, failed: Collection[int]) -> None:
        for i, source, state in zip(listed(s, ids), sources, states, strict=True):
            s.references[i].envs.set_state(state[None])
            s.model.envs[i].restore(saved.models[source])

    return Plan(
        f"set_state({_short(states)} of {sources}, {ids!r})",
        lambda: s.pool.set_state(states, ids),
        errors,
        check,
    )


@kind(0.5, "", lambda s: own_reference(s) and not s.model.busy and not s.model.closed)
def spoiled_state(s: Session, rng: random.Random, fault: str | None) -> Plan:
    """A state with random bytes in it: refused, or a step of it is what the reference says."""
    i = rng.randrange(s.settings.num_envs)
    good = s.pool.get_state([i])
    bad = good.copy()
    for _ in range(rng.choice([1, 2, 8, 100])):
        place = rng.randrange(8, bad.shape[1])  # the first 8 say of which environment it is
        value = rng.choice([0x00, 0x7F, 0xFF, 0x80, 0xF0, rng.randrange(256)])
        bad[0, place : place + rng.choice([1, 8])] = value
    actions = s.actions[rng.randrange(len(s.actions))][None]

    def call() -> None:
        ours = _outcome(lambda: s.pool.set_state(bad, [i]))
        theirs = _outcome(lambda: s.references[i].envs.set_state(bad))
        assert ours == theirs, f"set_state of a spoiled state: {ours}, reference: {theirs}"
        if ours is not None:
            return
        before = s.pool.stats(), s.references[i].envs.stats()
        s.forget_views()  # of its own recv
        ours = _outcome(lambda: _step_one(s.pool, actions, i))
        theirs = _outcome(lambda: _step_one(s.references[i].envs, actions, 0))
        assert ours == theirs, f"step from a spoiled state: {ours}, reference: {theirs}"
        after = s.pool.stats(), s.references[i].envs.stats()
        counted = [
            {name: new[name] - old[name] for name in s.model.stats}
            for old, new in zip(before, after, strict=True)
        ]
        assert counted[0] == counted[1], f"stats: {counted}"
        for name, count in counted[0].items():
            s.model.stats[name] += count
        s.pool.set_state(good, [i])
        s.references[i].envs.set_state(good)

    return Plan(f"a spoiled state into environment {i}", call, set())


def _step_one(envs: pyfastenv.FastVectorEnv, actions: np.ndarray, i: int) -> Any:
    envs.send(actions, [i])
    obs, rewards, terminations, truncations, _ = envs.recv()
    return obs.tobytes(), rewards.tobytes(), terminations[0], truncations[0]


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        messages = getattr(error, "messages", None)
        return type(error).__name__, messages


# ---- model fields and tasks ----------------------------------------------------------------------

FIELDS = (
    "body_mass", "geom_friction", "dof_damping", "dof_armature", "actuator_gear", "jnt_stiffness",
    "jnt_range", "geom_size", "opt.gravity", "opt.wind", "opt.density", "opt.viscosity",
)  # fmt: skip
MAX_FIELDS = 4  # of a session: each makes all rows longer


@cache
def field_defaults(env_id: str) -> dict[str, np.ndarray]:
    """The fields above that an environment has, and the model's values, (1, *field shape)."""
    envs = pyfastenv.make_vec(env_id)
    defaults = {}
    for name in FIELDS:
        try:
            defaults[name] = envs.get_model_field(name)
        except ValueError:
            continue
    envs.close()
    return defaults


@kind(1, f"{ID_FAULTS} name shape nan word", own_reference)
def set_model_field(s: Session, rng: random.Random, fault: str | None) -> Plan:
    defaults = field_defaults(s.settings.env_id)
    known = list(defaults) if len(s.model.fields) < MAX_FIELDS else s.model.fields
    ids, bad = draw_ids(s, rng, fault)
    count = len(ids) if bad else len(listed(s, ids))
    if known:
        name = rng.choice(known)
        default = defaults[name]
    else:  # no MuJoCo model
        name, default, bad = "body_mass", np.ones((1, 1)), merge(bad, {ValueError})
    each = rng.random() < 0.7
    factors = [rng.uniform(0.8, 1.2) for _ in range(max(count, 1) if each else 1)]
    extreme = rng.random() < 0.05
    if extreme:
        factors[0] = rng.choice([-1.0, 0.0, 1e6, 1e300])
    values: Any = np.concatenate([default * factor for factor in factors])
    if not each:
        values = values[0]
    if fault == "name":
        name, bad = name + "_no", merge(bad, {ValueError})
    elif fault == "shape":
        values, bad = values[..., None, None], merge(bad, {ValueError})
    elif fault == "nan":
        values = values.copy()
        values.flat[0] = rng.choice([np.nan, np.inf])
        bad = merge(bad, {ValueError})
    elif fault == "word":
        values, bad = "heavy", merge(bad, {TypeError, ValueError})
    # a new field makes all rows longer
    needed = in_range(s, ids) if name in s.model.fields else list(s.model.ids)
    errors = merge(bad, s.model.errors(needed))

    def check(result: Any, failed: Collection[int]) -> None:
        chosen = listed(s, ids)
        s.extreme |= extreme
        if name not in s.model.fields:
            s.model.fields.append(name)
        for i, reference in enumerate(s.references):
            if i in chosen:
                reference.envs.set_model_field(name, values[chosen.index(i)] if each else values)
            else:
                reference.envs.set_model_field(name, reference.envs.get_model_field(name))

    return Plan(
        f"set_model_field({name!r}, {_short(values)}, {ids!r})",
        lambda: s.pool.set_model_field(name, values, ids),
        errors,
        check,
    )


@kind(0.5, "name", own_reference)
def get_model_field(s: Session, rng: random.Random, fault: str | None) -> Plan:
    names = list(field_defaults(s.settings.env_id))
    name = rng.choice(names) if names else "body_mass"
    errors = s.model.errors()
    if fault is not None or not names:
        name, errors = name + "_no", merge(errors, {ValueError})

    def check(values: np.ndarray, failed: Collection[int]) -> None:
        expected = [r.envs.get_model_field(name)[0] for r in s.references]
        assert np.array_equal(values, np.stack(expected)), f"get_model_field({name!r})"

    return Plan(
        f"get_model_field({name!r})",
        lambda: s.pool.get_model_field(name),
        errors,
        check,
        tolerated={pyfastenv.BusyError} if s.model.busy else set(),
    )


@kind(0.5, f"{ID_FAULTS} shape nan word names", own_reference)
def reset_task(s: Session, rng: random.Random, fault: str | None) -> Plan:
    ids, bad = draw_ids(s, rng, fault)
    count = len(ids) if bad else len(listed(s, ids))
    if s.settings.meta:
        tasks: Any = s.pool.sample_tasks(max(count, 1), seed=rng.getrandbits(32))
    else:
        tasks, bad = np.ones((count, 1)), merge(bad, {ValueError})
    rows = tasks
    if fault == "shape":
        tasks, bad = tasks[..., None], merge(bad, {ValueError})
    elif fault == "nan":
        tasks, bad = tasks * np.nan, merge(bad, {ValueError})
    elif fault == "word":
        tasks, bad = [["left"]] * count, merge(bad, {TypeError, ValueError})
    elif fault == "names":
        tasks, bad = [{"no such": 1.0}] * max(count, 1), merge(bad, {ValueError})
    elif s.settings.meta and rng.random() < 0.3:
        name = {"Dir": "direction", "Vel": "velocity", "oal": "goal"}[s.settings.env_id[-6:-3]]
        tasks = [{name: row} for row in tasks]

    def check(result: Any, failed: Collection[int]) -> None:
        for row, i in enumerate(listed(s, ids)):
            s.references[i].envs.reset_task(rows[row][None])

    errors = merge(bad, s.model.errors(in_range(s, ids)))
    return Plan(
        f"reset_task({_short(tasks)}, {ids!r})",
        lambda: s.pool.reset_task(tasks, ids),
        errors,
        check,
    )


@kind(0.3, "", own_reference)
def get_task(s: Session, rng: random.Random, fault: str | None) -> Plan:
    def check(tasks: np.ndarray, failed: Collection[int]) -> None:
        assert len(tasks) == s.settings.num_envs
        for i, reference in enumerate(s.references):
            assert np.array_equal(tasks[i], reference.envs.get_task()[0]), f"task of {i}"

    return Plan(
        "get_task()",
        s.pool.get_task,
        s.model.errors(),
        check,
        tolerated={pyfastenv.BusyError} if s.model.busy else {ValueError},
    )


@kind(0.3, "zero half", own_reference)
def sample_tasks(s: Session, rng: random.Random, fault: str | None) -> Plan:
    n: Any = {"zero": 0, "half": 1.5, None: rng.randint(1, 50)}[fault]
    seed = rng.getrandbits(40)
    errors: set[Any] = set()
    if not s.settings.meta:
        errors.add(ValueError)
    if fault == "zero":
        errors.add(ValueError)
    if fault == "half":
        errors.add(TypeError)

    def check(tasks: np.ndarray, failed: Collection[int]) -> None:
        envs = s.references[0].envs
        assert tasks.shape == (n, envs.get_task().shape[1])
        assert np.array_equal(tasks, envs.sample_tasks(n, seed=seed))
        if s.settings.env_id.endswith("Dir-v5"):
            assert set(np.ravel(tasks)) <= {-1.0, 1.0}
        assert np.isfinite(tasks).all() and np.abs(tasks).max() <= 3.0

    return Plan(
        f"sample_tasks({n}, seed={seed})",
        lambda: s.pool.sample_tasks(n, seed=seed),
        errors,
        check,
        tolerated=s.model.errors(),
    )


# ---- looking, ending -----------------------------------------------------------------------------


@kind(0.5)
def stats(s: Session, rng: random.Random, fault: str | None) -> Plan:
    def check(given: dict[str, Any], failed: Collection[int]) -> None:
        expected = s.model.stats
        counts = {name: given[name] for name in expected}
        if given["engine"] == "lanes":
            assert given["lane_steps"] + given["lane_misses"] >= given["steps"], given
        if s.model.closed:  # what was queued may have been dropped
            assert all(counts[name] <= expected[name] for name in expected), (counts, expected)
        elif not s.model.busy:
            assert counts == expected, f"stats() gave {counts}, expected {expected}"

    return Plan("stats()", s.pool.stats, set(), check)


@kind(0.5)
def np_random_seed(s: Session, rng: random.Random, fault: str | None) -> Plan:
    def check(seeds: tuple[int, ...], failed: Collection[int]) -> None:
        assert seeds == tuple(env.seed for env in s.model.envs), "np_random_seed"

    return Plan("np_random_seed", lambda: s.pool.np_random_seed, set(), check)


@kind(0.5)
def np_random(s: Session, rng: random.Random, fault: str | None) -> Plan:
    def check(generators: Any, failed: Collection[int]) -> None:
        for i, reference in enumerate(s.references):
            if i not in s.unseeded:
                state = generators[i].bit_generator.state["state"]
                assert state == reference.stream(), f"np_random of environment {i}"

    return Plan("np_random", lambda: s.pool.np_random, s.model.errors(s.model.ids), check)


@kind(0.5, "beyond", lambda s: s.settings.render)
def render(s: Session, rng: random.Random, fault: str | None) -> Plan:
    ids = [rng.randrange(s.settings.num_envs)]
    errors = s.model.errors(ids)
    if fault == "beyond":
        ids, errors = [s.settings.num_envs], merge(errors, {IndexError})

    def check(frames: Any, failed: Collection[int]) -> None:
        assert len(frames) == 1 and frames[0].ndim == 3 and frames[0].dtype == np.uint8

    return Plan(f"render({ids})", lambda: s.pool.render(ids), errors, check)


@kind(0.02, "", lambda s: not s.model.closed and not s.settings.render)
def fork(s: Session, rng: random.Random, fault: str | None) -> Plan:
    """In a forked child every call is refused; the parent's pool goes on."""

    def in_child() -> bool:
        actions = s.actions[: s.settings.num_envs]
        calls = (s.pool.reset, lambda: s.pool.step(actions), s.pool.recv, s.pool.get_state)
        refused = [_outcome(call) == ("ForkedError", None) for call in calls]
        s.pool.close()
        return all(refused)

    def call() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads are running
            pid = os.fork()
        if pid == 0:
            signal.alarm(10)
            os._exit(0 if in_child() else 1)
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"a forked child ended with status {status}"

    return Plan("fork()", call, set())


@kind(0.05)
def close(s: Session, rng: random.Random, fault: str | None) -> Plan:
    def check(result: Any, failed: Collection[int]) -> None:
        s.model.closed = True
        for env in s.model.envs:
            env.pending = None
        assert s.pool.closed

    return Plan("close()", s.pool.close, set(), check)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.shape} {value.dtype}"
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
