"""Open-loop rollouts on a pool of threads: ``mujoco.rollout``'s interface and results."""

from __future__ import annotations

import os
from typing import Any, Literal

import mujoco

from pyfastenv import _core
from pyfastenv.physics.arguments import Array, Call, as_list, check_count, infer_call, trusted_call
from pyfastenv.physics.errors import RolloutError

_CONTROLS = int(mujoco.mjtState.mjSTATE_CTRL)

if mujoco.mj_versionString() != _core.MUJOCO_VERSION:
    raise ImportError(
        f"pyfastenv was built against MuJoCo {_core.MUJOCO_VERSION} but the mujoco package is "
        f"{mujoco.mj_versionString()}: install mujoco=={_core.MUJOCO_VERSION}"
    )


class Rollout:
    """Threads that are kept from call to call.

    May be used in a ``with`` statement. Calls of several Python threads wait for each other.
    """

    def __init__(self, *, nthread: int | None = None):
        """Starts the threads.

        Args:
            nthread: How many ``data`` every call brings, each with a thread of its own, the
                caller's among them. 0 or None: one, and no other thread than the caller's.
        """
        self.nthread = 0 if nthread is None else check_count("nthread", nthread, least=0)
        self._pool: _core.RolloutPool | None = _core.RolloutPool(num_threads=max(1, self.nthread))

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the threads, once a call under way is over. May be called again."""
        self._pool = None

    def rollout(
        self,
        model: Any,
        data: Any,
        initial_state: Array | float,
        control: Array | float | None = None,
        *,
        control_spec: int = _CONTROLS,
        skip_checks: bool = False,
        nstep: int | None = None,
        initial_warmstart: Array | float | None = None,
        state: Array | None = None,
        sensordata: Array | Literal[False] | None = None,
        chunk_size: int | None = None,
    ) -> tuple[Array | None, Array | None]:
        """:func:`rollout` on these threads; ``data`` must have one for each."""
        pool = self._pool
        if pool is None:
            raise RuntimeError("rollout requested after thread pool shutdown")
        prepare = trusted_call if skip_checks else infer_call
        call = prepare(
            model,
            as_list("data", data, mujoco.MjData),
            initial_state,
            control,
            control_spec=control_spec,
            nstep=nstep,
            initial_warmstart=initial_warmstart,
            state=state,
            sensordata=sensordata,
        )
        num_rollouts, num_threads = len(call.models), max(1, self.nthread)
        if self.nthread == 0 and len(call.data) > 1:
            raise ValueError(
                "More than one data instance passed but rollout is configured to run on main thread"
            )
        if len(call.data) != num_threads:
            raise ValueError(
                f"Length of data: {len(call.data)} not equal to nthread: {self.nthread}"
            )
        if chunk_size is None:
            chunk_size = max(1, num_rollouts // (10 * num_threads))
        else:
            chunk_size = check_count("chunk_size", chunk_size, least=1)
        results = (call.state, call.sensordata)
        if skip_checks:
            results = (state, None if sensordata is False else sensordata)
        failures = _run(pool, call, chunk_size)
        for to, source in call.copies:
            to[...] = source.reshape(to.shape)
        if failures:
            raise RolloutError([r for r, _ in failures], [m for _, m in failures], results)
        return results


def _run(pool: _core.RolloutPool, call: Call, chunk_size: int) -> list[tuple[int, str]]:
    if call.nstep == 0 or not call.models:
        return []
    nothing_sensed = call.sensordata is None or call.sensordata.size == 0
    return pool.rollout(
        models=[model._address for model in call.models],
        data=[data._address for data in call.data],
        data_models=[data.model._address for data in call.data],
        nstep=call.nstep,
        control_spec=call.control_spec,
        chunk_size=chunk_size,
        initial_state=call.initial_state,
        initial_warmstart=call.initial_warmstart,
        control=call.control,
        state=call.state,
        sensordata=None if nothing_sensed else call.sensordata,
    )


_persistent: tuple[int, Rollout] | None = None  # with the process that it belongs to


def shutdown_persistent_pool() -> None:
    """Ends the threads that ``rollout(persistent_pool=True)`` has kept, if any."""
    global _persistent
    if _persistent is not None:
        _persistent[1].close()
    _persistent = None


def _persistent_rollout(nthread: int) -> Rollout:
    global _persistent
    if _persistent is None or (_persistent[0], _persistent[1].nthread) != (os.getpid(), nthread):
        shutdown_persistent_pool()
        _persistent = (os.getpid(), Rollout(nthread=nthread))
    return _persistent[1]


def rollout(
    model: Any,
    data: Any,
    initial_state: Array | float,
    control: Array | float | None = None,
    *,
    control_spec: int = _CONTROLS,
    skip_checks: bool = False,
    nstep: int | None = None,
    initial_warmstart: Array | float | None = None,
    state: Array | None = None,
    sensordata: Array | Literal[False] | None = None,
    chunk_size: int | None = None,
    persistent_pool: bool = False,
) -> tuple[Array | None, Array | None]:
    """Rolls models out from initial states under given controls, as ``mujoco.rollout.rollout``.

    The arguments are that function's and the results equal its to the last bit, on any number of
    threads. Models that allow it run in SIMD lanes (:func:`lanes_refusal`), others by ``mj_step``.
    An axis of 1 stands for all rollouts, or all steps; n is the number of rollouts.

    Args:
        model: An MjModel, or n of them, with equal sizes of state, control and sensor data.
        data: An MjData, or one per thread. Afterwards it holds the last step of the last rollout
            that its thread ran.
        initial_state: (n or 1, nstate), mjSTATE_FULLPHYSICS.
        control: (n or 1, nstep or 1, ncontrol). None: what ``data`` has of ``control_spec``.
        control_spec: What a control is made of, bits of mjSTATE_USER. Other inputs are zero, mocap
            bodies and equality constraints as in the model.
        skip_checks: Infer, repeat and allocate nothing: ``model`` is a list, ``nstep`` is given,
            arrays have their full sizes, outputs that are None are not computed.
        nstep: Steps per rollout, if no array says it.
        initial_warmstart: (n or 1, nv), qacc_warmstart; zeros if None.
        state: (n, nstep, nstate), to be written; new if None.
        sensordata: (n, nstep, nsensordata), to be written; new if None. False: none; no sensor is
            computed.
        chunk_size: Rollouts that a thread takes at a time, where they run by ``mj_step``. None: a
            tenth of its share.
        persistent_pool: Keep the threads for the next call with as many.

    Returns:
        state: (n, nstep, nstate) float64 after every step.
        sensordata: (n, nstep, nsensordata) float64, as ``mj_step`` leaves it: of the state before
            every step. A rollout in which MuJoCo warns (bad numbers, say) repeats what the step
            that warned gave.

    Raises:
        ValueError: Shapes, sizes or counts that do not fit; nothing has been run.
        TypeError: Others than MjModel and MjData.
        RolloutError: MuJoCo raised an error in some rollouts; it has the others' results.
        KeyboardInterrupt: Ctrl-C; what is in ``state`` and ``sensordata`` is incomplete.
    """
    data = as_list("data", data, mujoco.MjData)
    nthread = len(data) if len(data) > 1 else 0
    keep = _persistent_rollout(nthread) if persistent_pool else None
    call = keep or Rollout(nthread=nthread)
    return call.rollout(
        model,
        data,
        initial_state,
        control,
        control_spec=control_spec,
        skip_checks=skip_checks,
        nstep=nstep,
        initial_warmstart=initial_warmstart,
        state=state,
        sensordata=sensordata,
        chunk_size=chunk_size,
    )


def lanes_refusal(model: Any, *, sensordata: bool = True) -> str | None:
    """Says why :func:`rollout` cannot step a model in lanes; None if it can.

    At least three rollouts must share a model. After a step in which lanes and ``mj_step`` were
    seen to differ, it says where.

    Args:
        model: MjModel.
        sensordata: Whether the rollouts return it, if the model has sensors.
    """
    return _core.lanes_refusal(_address(model), sensordata=sensordata) or None


def engine(model: Any, *, sensordata: bool = True) -> tuple[str, str]:
    """Says which engine steps a model in :func:`rollout` now, and why.

    Args:
        model: MjModel.
        sensordata: Whether the rollouts return it, if the model has sensors.

    Returns:
        ``("lanes", "")``, or ``"mujoco"`` and the reason: :func:`lanes_refusal`, or that
        ``mj_step`` has been measured to be faster.
    """
    reason = _core.engine_reason(_address(model), sensordata=sensordata)
    return ("mujoco" if reason else "lanes"), reason


def _address(model: Any) -> int:
    if not isinstance(model, mujoco.MjModel):
        raise TypeError(f"model: expected MjModel, got {type(model).__name__}")
    address: int = model._address
    return address
