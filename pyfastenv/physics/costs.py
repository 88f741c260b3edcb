"""Measures what of a model costs most, beside copies that lack one thing each."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from pyfastenv.physics.open_loop import lanes_refusal, rollout

_ROLLOUTS = 16
_SETTLE_S = 0.2
_MAX_STEPS = 160
_ROUNDS_BEFORE = 2  # in which lanes and mj_step are compared
_ROUNDS = 5
_SECONDS_PER_CALL = 0.05
_AMPLITUDE = 0.15  # of controls' ranges
_FEW_ITERATIONS = 4


@dataclass(frozen=True)
class Saving:
    """One thing that a model could do without.

    Attributes:
        what: The model that was tried instead; its physics is another.
        advice: How it is said in MJCF or in a call.
        ratio: How many times as fast it steps.
    """

    what: str
    advice: str
    ratio: float


@dataclass(frozen=True)
class ModelCosts:
    """The speed of a model in :func:`pyfastenv.physics.rollout` on one thread.

    Attributes:
        steps_per_second: Steps per second of processor time.
        times_mj_step: That beside ``mujoco.rollout``'s.
        refusal: Why lanes do not step it; None if they do.
        savings: What could be left out, the largest first.
    """

    steps_per_second: float
    times_mj_step: float
    refusal: str | None
    savings: list[Saving]


def measure_costs(model: Any) -> ModelCosts:
    """Steps a model and, in turn with it, copies that lack one thing each.

    All start from the same states, after 0.2 s around the first keyframe (the default pose without
    one) under random controls. A ratio is that of medians of processor time; it takes seconds.

    Args:
        model: MjModel, which stays as it is.
    """
    refusal = lanes_refusal(model)  # a plan is made at once, not when it pays
    states, data = _settled(model), mujoco.MjData(model)

    def ours(controls: Any) -> Any:
        return rollout(model, data, states, controls)

    def by_mujoco(controls: Any) -> Any:
        return mujoco.rollout.rollout(model, data, states, controls)

    def without_sensors(controls: Any) -> Any:
        return rollout(model, data, states, controls, sensordata=False)

    controls, nstep = _controls(model), 10
    while _seconds(ours, controls[:, :nstep]) < _SECONDS_PER_CALL and nstep < _MAX_STEPS:
        nstep *= 2
    controls = controls[:, :nstep]
    seconds, times_mj_step = _in_turn(ours, by_mujoco, controls)
    savings = []
    for what, advice, edit in _EDITS:
        other = copy.deepcopy(model)
        if edit(other):
            _, ratio = _in_turn(ours, _stepping(other, states), controls)
            savings.append(Saving(what, advice, 1 / ratio))
    if model.nsensordata > 0:
        _, ratio = _in_turn(ours, without_sensors, controls)
        advice = "physics.rollout(…, sensordata=False)"
        savings.append(Saving("sensors are not computed", advice, 1 / ratio))
    return ModelCosts(
        steps_per_second=_ROLLOUTS * nstep / seconds,
        times_mj_step=times_mj_step,
        refusal=refusal,
        savings=sorted(savings, key=lambda saving: -saving.ratio),
    )


def _in_turn(
    first: Callable[[Any], Any], second: Callable[[Any], Any], controls: Any
) -> tuple[float, float]:
    """Seconds of the first call, and the second's over them; medians."""
    for call in (first, second):
        for _ in range(_ROUNDS_BEFORE):
            call(controls)
    rounds = [[_seconds(call, controls) for call in (first, second)] for _ in range(_ROUNDS)]
    seconds, others = (statistics.median(each) for each in zip(*rounds, strict=True))
    return seconds, others / seconds


def _stepping(model: Any, states: Any) -> Callable[[Any], Any]:
    lanes_refusal(model)
    data = mujoco.MjData(model)
    return lambda controls: rollout(model, data, states, controls)


def _seconds(call: Callable[[Any], Any], controls: Any) -> float:
    begin = time.process_time()
    call(controls)
    return time.process_time() - begin


def _start(model: Any) -> Any:
    data = mujoco.MjData(model)
    if model.nkey > 0:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    return data


def _settled(model: Any) -> Any:
    """States (n, nstate) after some steps."""
    nstep = max(1, round(_SETTLE_S / model.opt.timestep))
    start = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, _start(model), start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    controls = np.resize(_controls(model), (_ROLLOUTS, nstep, model.nu))
    states, _ = rollout(model, mujoco.MjData(model), np.tile(start, (_ROLLOUTS, 1)), controls)
    return states[:, -1]  # type: ignore[index]


def _controls(model: Any) -> Any:
    """Random controls around the start's, (n, _MAX_STEPS, nu)."""
    low, high = model.actuator_ctrlrange.T
    limited = model.actuator_ctrllimited.astype(bool)
    reach = _AMPLITUDE * np.where(limited, high - low, 2.0)
    noise = np.random.default_rng(0).uniform(-1, 1, (_ROLLOUTS, _MAX_STEPS, model.nu))
    controls = _start(model).ctrl + reach * noise
    return np.where(limited, np.clip(controls, low, high), controls)


# ---- what may be left out: each function edits a model and returns whether it had that ----------


def _pyramidal_cones(model: Any) -> bool:
    has = model.opt.cone != mujoco.mjtCone.mjCONE_PYRAMIDAL
    model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    return bool(has)


def _three_dimensions(model: Any) -> bool:
    collides = (model.geom_contype | model.geom_conaffinity) != 0
    has = (model.geom_condim[collides] > 3).any() or (model.pair_dim > 3).any()
    np.minimum(model.geom_condim, 3, out=model.geom_condim)
    np.minimum(model.pair_dim, 3, out=model.pair_dim)
    return bool(has)


def _no_self_collision(model: Any) -> bool:
    """Keeps moving bodies from touching each other; listed contact pairs stay."""
    body = model.body_weldid[model.geom_bodyid]
    parent = model.body_weldid[model.body_parentid[body]]
    moves = body != 0
    contype, conaffinity = model.geom_contype.copy(), model.geom_conaffinity.copy()
    own = (contype[:, None] & conaffinity) != 0
    own &= (body[:, None] != body) & (parent[:, None] != body) & (parent != body[:, None])
    own &= moves[:, None] & moves
    _set_masks(model, np.where(moves, 0, contype), np.where(moves, contype | conaffinity, 0))
    return bool(own.any())


def _no_collisions_of(*kinds: Any) -> Callable[[Any], bool]:
    def edit(model: Any) -> bool:
        kind = np.isin(model.geom_type, kinds)
        has = ((model.geom_contype | model.geom_conaffinity)[kind] != 0).any()
        contype = np.where(kind, 0, model.geom_contype)
        _set_masks(model, contype, np.where(kind, 0, model.geom_conaffinity))
        return bool(has)

    return edit


def _set_masks(model: Any, contype: Any, conaffinity: Any) -> None:
    """Sets geoms' and bodies' masks, as the compiler would."""
    model.geom_contype[:], model.geom_conaffinity[:] = contype, conaffinity
    for of_body, of_geom in (
        (model.body_contype, contype),
        (model.body_conaffinity, conaffinity),
    ):
        of_body[:] = 0
        np.bitwise_or.at(of_body, model.geom_bodyid, of_geom)


def _no_contacts(model: Any) -> bool:
    has = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return bool(has)


def _implicitfast(model: Any) -> bool:
    has = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return bool(has)


def _no_noslip(model: Any) -> bool:
    has = model.opt.noslip_iterations > 0
    model.opt.noslip_iterations = 0
    return bool(has)


def _few_iterations(model: Any) -> bool:
    has = model.opt.iterations > _FEW_ITERATIONS
    model.opt.iterations = min(model.opt.iterations, _FEW_ITERATIONS)
    return bool(has)


_MESH, _FIELD = mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD
_EDITS: list[tuple[str, str, Callable[[Any], bool]]] = [
    ("cones are pyramids", '<option cone="pyramidal"/>', _pyramidal_cones),
    ("contacts have three dimensions", 'condim="3"', _three_dimensions),
    (
        "what moves touches only what does not",
        "<contact><exclude/> of bodies, or other contype and conaffinity",
        _no_self_collision,
    ),
    (
        "meshes touch nothing",
        "capsules, spheres and boxes in their place cost little",
        _no_collisions_of(_MESH),
    ),
    ("height fields touch nothing", "a plane, where it is flat", _no_collisions_of(_FIELD)),
    (
        "the integrator is implicitfast",
        '<option integrator="implicitfast"/> computes forces once per step, RK4 four times',
        _implicitfast,
    ),
    ("there is no noslip", '<option noslip_iterations="0"/>', _no_noslip),
    (
        f"the solver makes {_FEW_ITERATIONS} iterations at most",
        f'<option iterations="{_FEW_ITERATIONS}"/>',
        _few_iterations,
    ),
    (
        "nothing touches anything",
        '<flag contact="disable"/>: the rest is not contacts',
        _no_contacts,
    ),
]
