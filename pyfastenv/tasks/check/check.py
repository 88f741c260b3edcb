"""``pyfastenv check``: whether a task does what tasks should, and what to mend if not."""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from pyfastenv.errors import EnvError
from pyfastenv.physics.costs import measure_costs
from pyfastenv.tasks.check.differences import differing, first_difference, likely_cause
from pyfastenv.tasks.compiler.native import NativeTask
from pyfastenv.tasks.frontend.sources import Sources
from pyfastenv.tasks.language.batch import has_batch_functions
from pyfastenv.tasks.language.commands import setting_name
from pyfastenv.tasks.language.find import find_task
from pyfastenv.tasks.language.places import place_in_class
from pyfastenv.tasks.language.rewards import weight_name, weights_of
from pyfastenv.tasks.language.spelling import names_read
from pyfastenv.tasks.language.task import SETTINGS, Task, settings_of
from pyfastenv.tasks.pool.explain import blame
from pyfastenv.tasks.pool.make import debug, make_vec
from pyfastenv.vector.obs_views import holding, row_of
from pyfastenv.vector.vector_env import FastVectorEnv

_STEPS = 300
_ENVS = 5
_WORTH_SAYING = 1.25


class Finding(NamedTuple):
    """One check's outcome."""

    ok: bool
    what: str


class _Wrong(Exception):
    """A finding of a check; its message says where."""


def check_task(env: str | type[Task], **kwargs: Any) -> Iterator[Finding]:
    """Runs a task in all its ways against each other.

    Args:
        env: As for :func:`pyfastenv.make_vec`.
        **kwargs: The task's parameters.

    Yields:
        One finding per check, as they are made; the last ones need the first to succeed.
    """
    found = find_task(env)
    if found is None:
        raise ValueError(
            f"check: expected a pyfastenv.Task or where one stands (my_tasks:Arm, "
            f"path/to/my_tasks.py:Arm) or a task's id, got {env!r}"
        )
    begin = time.perf_counter()
    try:
        envs: Any = make_vec(env, _ENVS, num_threads=1, **kwargs)
        envs.reset(seed=0)
        envs.step(_actions(envs, np.random.default_rng(0)))
    except Exception as error:
        yield Finding(False, f"it does not run: {_said(error) or repr(error)}")
        return
    seconds = time.perf_counter() - begin
    yield Finding(True, f"compiled and stepped after {seconds:.2f} s: {_settings(envs)}")
    if unread := _unread_parameters(envs.task):
        yield Finding(True, f"no method reads {unread}; is that meant to be a setting?")
    checks: tuple[Callable[..., str], ...] = (
        _against_plain_python,
        _against_gymnasium,
        _observations,
        _actions_matter,
        _threads,
        _send_and_recv,
        _snapshots,
        _rows_of_a_batch,
        _speed,
    )
    left_out: set[Any] = set()
    if issubclass(found[0], NativeTask):  # there is no plain Python
        left_out |= {_against_plain_python, _against_gymnasium}
    if np.prod(envs.single_action_space.shape) == 0:
        left_out.add(_actions_matter)
    if has_batch_functions(found[0]):
        left_out.add(_send_and_recv)  # rows come in another order: _rows_of_a_batch is about that
    else:
        left_out.add(_rows_of_a_batch)
    for check in checks:
        if check in left_out:
            continue
        try:
            yield Finding(True, check(env, kwargs))
        except _Wrong as error:
            yield Finding(False, str(error))
        except Exception as error:
            said = _said(error)
            if said is not None:  # the others would stumble over the same
                yield Finding(False, f"a method raised: {said}")
                return
            if not isinstance(error, AssertionError | gymnasium.error.Error):
                raise
            yield Finding(False, f"gymnasium's check_env: {error}")
    stats = envs.stats()
    if stats["engine"] == "lanes":
        yield Finding(True, "its physics runs in lanes")
    else:
        yield Finding(True, f"its physics runs by mj_step: {stats['engine_reason']}")
    for saving in measure_costs(envs.task.model).savings:
        if saving.ratio >= _WORTH_SAYING:
            what = f"steps would be {saving.ratio:.1f} times as fast if {saving.what}"
            yield Finding(True, f"{what} ({saving.advice})")


def _said(error: Exception) -> str | None:
    """A method's exception (of several environments, the first's); None if it is no method's."""
    return error.messages[0] if isinstance(error, EnvError) else blame(error)


def _settings(envs: Any) -> str:
    task = envs.task
    limit = f"{task.max_episode_steps} steps" if task.max_episode_steps else "no limit"
    given = ("dt", "frame_skip", "init_qpos", "init_qvel")
    own = ", ".join(name for name in task.params if name not in given) or "none"
    return (
        f"a step is {task.dt:g} s (frame_skip {task.frame_skip}), an episode {limit}, "
        f"parameters: {own}"
    )


def _unread_parameters(task: Any) -> str:
    """Parameters of the class that no method has a use for, with file and line."""
    if isinstance(task, NativeTask):
        return ""
    cls = type(task)
    used = {*names_read(cls), *map(weight_name, weights_of(cls.step)), *SETTINGS}
    used |= {setting_name(n, each) for n, f in task._fields.items() for each in settings_of(f)}
    for function in Sources(task).functions.values():
        used |= {n.attr for n in ast.walk(function.tree) if isinstance(n, ast.Attribute)}
    unread = [name for name in task._parameter_names() if name not in used]
    return ", ".join(f"{name} ({place_in_class(cls, name).rstrip(': ')})" for name in unread)


def _against_plain_python(env: Any, kwargs: dict[str, Any]) -> str:
    envs: Any = make_vec(env, 1, num_threads=1, autoreset_mode="Disabled", **kwargs)
    plain = debug(env, **kwargs)
    rng = np.random.default_rng(1)
    ours, theirs = envs.reset(seed=1), plain.reset(seed=1)
    _compare_obs("reset: observation", row_of(ours[0], 0), theirs[0], envs)
    for step in range(_STEPS):
        actions = _actions(envs, rng)
        obs, rewards, terminations, truncations, infos = envs.step(actions)
        expected = plain.step(actions[0])
        place = f"plain Python and compiled code differ at step {step}: "
        _compare_obs(place + "observation", row_of(obs, 0), expected[0], envs)
        _compare(place + "reward", rewards[0], expected[1])
        _compare(place + "terminated", terminations[0], expected[2])
        for name, value in expected[4].items():
            _compare(f"{place}info[{name!r}]", infos[name][0], value)
        if terminations[0] or truncations[0]:
            obs, _ = envs.reset()
            _compare_obs(place + "the next reset", row_of(obs, 0), plain.reset()[0], envs)
    return f"plain Python and compiled code agree in all bits over {_STEPS} steps"


def _against_gymnasium(env: Any, kwargs: dict[str, Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(debug(env, **kwargs).unwrapped, skip_render_check=True)
    return "gymnasium's check_env has no complaint"


def _observations(env: Any, kwargs: dict[str, Any]) -> str:
    (envs,) = _started(env, kwargs, 4, 1)
    for step, actions in enumerate(_random_actions(envs, 4, _STEPS)):
        obs = envs.flat_step(actions)[0]
        for at in np.flatnonzero(~np.isfinite(obs).all(axis=0))[:1]:
            raise _Wrong(f"{_name_at(at, envs)} is NaN or infinite after {step + 1} steps")
    return "observations are finite numbers"


def _actions_matter(env: Any, kwargs: dict[str, Any]) -> str:
    pools = _started(env, kwargs, 8, 1, 1)
    for both in zip(*(_random_actions(pools[0], seed) for seed in (8, 9)), strict=True):
        first, second = (
            envs.flat_step(actions)[0] for envs, actions in zip(pools, both, strict=True)
        )
        if not np.array_equal(first, second, equal_nan=True):
            return "actions change what is observed"
    raise _Wrong(
        f"no action changes an observation in {_STEPS // 3} steps: simulate hands actions on to "
        f"the actuators if there are as many; else control(self, action, ctrl) does"
    )


def _threads(env: Any, kwargs: dict[str, Any]) -> str:
    found = _difference_of_threads(env, kwargs, 1, 3)
    if found is None:
        return "one and three threads give the same"
    repeated = _difference_of_threads(env, kwargs, 1, 1) is None
    alone = "two runs on one thread agree" if repeated else "two runs on one thread differ too"
    cause = likely_cause(make_vec(env, **kwargs).task)  # type: ignore[attr-defined]
    raise _Wrong(f"one and three threads differ at {found}; {alone}; {cause}")


def _difference_of_threads(env: Any, kwargs: dict[str, Any], *threads: int) -> str | None:
    """Where runs of the same seed and actions on so many threads first differ."""
    pools = _started(env, kwargs, 2, *threads)
    for step, actions in enumerate(_random_actions(pools[0], 2)):
        first, second = (envs.flat_step(actions) for envs in pools)
        try:
            _compare_rows(f"step {step}: ", first, second, pools[0])
        except _Wrong as error:
            return str(error)
    return None


def _send_and_recv(env: Any, kwargs: dict[str, Any]) -> str:
    first, second = _started(env, kwargs, 6, 1, 3)
    for step, actions in enumerate(_random_actions(first, 6)):
        second.send(actions)
        obs, rewards, *_, infos = second.flat_recv()
        order = np.argsort(infos["env_id"])
        expected = first.flat_step(actions)
        place = f"step and send/recv differ at step {step}: "
        _compare_rows(place, expected, (obs[order], rewards[order]), first)
    return "step and send/recv give the same"


def _rows_of_a_batch(env: Any, kwargs: dict[str, Any]) -> str:
    """Another number of rows may round otherwise (matrix products do), and nothing more."""
    (many,) = _started(env, kwargs, 7, 1)
    one = make_vec(env, 1, num_threads=1, **kwargs)
    one.reset(seed=7 + 2)
    for step, actions in enumerate(_random_actions(many, 7, _STEPS // 10)):
        pairs = zip(many.flat_step(actions)[:2], one.flat_step(actions[2:3])[:2], strict=True)
        for name, (ours, alone) in zip(("observation", "reward"), pairs, strict=True):
            if not np.allclose(ours[2], alone[0], rtol=1e-4, atol=1e-5, equal_nan=True):
                raise _Wrong(
                    f"functions of the batch treat a row of {_ENVS} and the same one alone "
                    f"differently at step {step}: {name}: {np.ravel(ours[2])[:4]} and "
                    f"{np.ravel(alone[0])[:4]}"
                )
    return "functions of the batch treat every row alike"


def _snapshots(env: Any, kwargs: dict[str, Any]) -> str:
    (first,), (second,) = _started(env, kwargs, 3, 1), _started(env, kwargs, 4, 1)
    for actions in _random_actions(first, 3, 20):
        first.step(actions)
    second.set_state(first.get_state())
    for step, actions in enumerate(_random_actions(first, 4)):
        place = f"{step} steps after set_state a snapshot differs from its original: "
        ours, theirs = first.flat_step(actions), second.flat_step(actions)
        _compare_rows(place, ours, theirs, first)
    return "snapshots go on as their originals do"


def _speed(env: Any, kwargs: dict[str, Any]) -> str:
    envs: Any = make_vec(env, 64, **kwargs)
    actions = _actions(envs, np.random.default_rng(5))
    envs.reset(seed=0)
    compiled = _rate(lambda: envs.step(actions)) * envs.num_envs
    if isinstance(envs.task, NativeTask):
        return f"{compiled:,.0f} steps/s with 64 environments"
    plain = debug(env, **kwargs)
    plain.reset(seed=0)

    def step() -> None:
        _, _, terminated, truncated, _ = plain.step(actions[0])
        if terminated or truncated:
            plain.reset()

    return f"{compiled:,.0f} steps/s with 64 environments; plain Python {_rate(step):,.0f}"


def _rate(call: Callable[[], Any]) -> float:
    """Calls per second, over a fifth of a second."""
    call()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.2:
        call()
        count += 1
    return count / (time.perf_counter() - begin)


def _started(env: Any, kwargs: dict[str, Any], seed: int, *threads: int) -> list[FastVectorEnv]:
    """Pools with so many threads each, their episodes begun by one seed."""
    pools = [make_vec(env, _ENVS, num_threads=n, **kwargs) for n in threads]
    for envs in pools:
        envs.reset(seed=seed)
    return pools


def _random_actions(envs: FastVectorEnv, seed: int, num_steps: int = _STEPS // 3) -> Iterator[Any]:
    rng = np.random.default_rng(seed)
    return (_actions(envs, rng) for _ in range(num_steps))


def _actions(envs: FastVectorEnv, rng: np.random.Generator) -> Any:
    space: Any = envs.single_action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(0, space.n, envs.num_envs)
    low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
    return rng.uniform(low, high, (envs.num_envs, *space.shape)).astype(space.dtype)


def _compare_rows(what: str, ours: Any, theirs: Any, envs: Any) -> None:
    """Compares the flat observations and the rewards of two steps, environment by environment."""
    for i, (mine, other) in enumerate(zip(ours[0], theirs[0], strict=True)):
        _compare_obs(f"{what}observation of environment {i}", mine, other, envs)
    for i, (mine, other) in enumerate(zip(ours[1], theirs[1], strict=True)):
        _compare(f"{what}reward of environment {i}", mine, other)


def _compare_obs(what: str, ours: Any, theirs: Any, envs: Any) -> None:
    if isinstance(ours, dict):
        for name, values in ours.items():
            _compare(f"{what}[{name!r}]", values, theirs[name])
        return
    for at in np.flatnonzero(differing(ours, theirs))[:1]:
        what += f" ({_name_at(at, envs)})"
    _compare(what, ours, theirs)


def _name_at(at: Any, envs: Any) -> str:
    """The name of the observation at a place in a flat row."""
    (name, _), *_ = holding(envs.observation_groups, at)
    return f"obs[{name!r}]"


def _compare(what: str, ours: Any, theirs: Any) -> None:
    found = first_difference(ours, theirs)
    if found is not None:
        raise _Wrong(f"{what}: {found}")
