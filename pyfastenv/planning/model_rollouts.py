"""Costs of plans by a user's own model and a cost function in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv import physics
from pyfastenv.vector.arguments import integer

Array = NDArray[np.float64]
# states (R, T, nstate), sensordata (R, T, nsensordata), controls (R, T, nu) -> (R, T) or (R,)
Cost = Callable[[Array, Array, Array], Any]
_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_EQ_ACTIVE = int(mujoco.mjtState.mjSTATE_EQ_ACTIVE)
# in the order in which they stand behind controls
_INPUTS = (
    int(mujoco.mjtState.mjSTATE_QFRC_APPLIED),
    int(mujoco.mjtState.mjSTATE_XFRC_APPLIED),
    _EQ_ACTIVE,
    int(mujoco.mjtState.mjSTATE_MOCAP_POS),
    int(mujoco.mjtState.mjSTATE_MOCAP_QUAT),
    int(mujoco.mjtState.mjSTATE_USERDATA),
)


class ModelRollouts:
    """Rollouts of a MuJoCo model by :func:`pyfastenv.physics.rollout`, and their costs.

    Args:
        model: An MjModel; it may change between calls.
        cost: Called with states (R, T, nstate), mjSTATE_FULLPHYSICS (time, qpos, qvel, …) after
            each control, sensordata (R, T, nsensordata) and controls (R, T, nu), all float64.
            It returns the costs of each step (R, T), or of each rollout (R,). Sensor data are those
            that ``mj_step`` leaves: of the state before the control's last physics step. NaN is
            as bad as infinity.
        frame_skip: Physics steps for which a control is held.
        control_range: (nu, 2); None: the model's ctrlrange, which every actuator must have.
        sensordata: False computes none, and the cost gets (R, T, 0).
        num_threads: Threads that step.

    Raises:
        ValueError: No actuators, or one without limits; numbers out of range.
    """

    def __init__(
        self,
        model: Any,
        cost: Cost,
        *,
        frame_skip: int = 1,
        control_range: ArrayLike | None = None,
        sensordata: bool = True,
        num_threads: int = 1,
    ):
        if not isinstance(model, mujoco.MjModel):
            raise TypeError(f"model: expected MjModel, got {type(model).__name__}")
        self.model = model
        self.frame_skip = integer("frame_skip", frame_skip, minimum=1)
        limits = _control_range(model) if control_range is None else np.array(control_range, float)
        if (
            limits.shape != (model.nu, 2)
            or not np.isfinite(limits).all()
            or not (limits[:, 0] < limits[:, 1]).all()
        ):
            raise ValueError(
                f"control_range: expected ({model.nu}, 2), finite, low below high, "
                f"got {limits.tolist()}"
            )
        self.low, self.high = limits[:, 0], limits[:, 1]
        self._cost, self._sensed = cost, sensordata
        num_threads = integer("num_threads", num_threads, minimum=1)
        self._data = [mujoco.MjData(model) for _ in range(num_threads)]
        self._rollout = physics.Rollout(nthread=num_threads)

    def costs(self, state: Any, controls: Array) -> Array:
        """Mean costs per step.

        Args:
            state: Where the rollouts begin: an MjData of the model, whose mocap bodies, active
                equalities, applied forces and userdata stay as they are, or its (nstate,) row of
                mjSTATE_FULLPHYSICS.
            controls: (R, T, nu).

        Returns:
            (R,) float64.

        Raises:
            ValueError: A state or costs of another shape, or a state that is not finite.
            RolloutError: MuJoCo raised an error.
        """
        nstep, every = controls.shape[1] * self.frame_skip, self.frame_skip
        spec, held = _held_inputs(state)
        inputs = np.concatenate(
            [controls, np.broadcast_to(held, (*controls.shape[:2], len(held)))], axis=-1
        )
        states, sensed = self._rollout.rollout(
            self.model,
            self._data,
            self._row(state),
            np.repeat(inputs, every, axis=1),
            control_spec=_CONTROL | spec,
            nstep=nstep,
            sensordata=None if self._sensed else False,
        )
        assert states is not None
        if sensed is None:
            sensed = np.empty((*states.shape[:2], 0))
        last = slice(every - 1, None, every)
        costs = np.asarray(self._cost(states[:, last], sensed[:, last], controls), np.float64)
        if costs.shape not in (controls.shape[:1], controls.shape[:2]):
            raise ValueError(
                f"cost: expected {controls.shape[:2]} or {controls.shape[:1]}, got {costs.shape}"
            )
        return costs.mean(1) if costs.ndim == 2 else costs

    def _row(self, state: Any) -> Array:
        size = mujoco.mj_stateSize(self.model, _FULL)
        if isinstance(state, mujoco.MjData):
            row = np.empty(mujoco.mj_stateSize(state.model, _FULL))
            mujoco.mj_getState(state.model, state, row, _FULL)
        else:
            row = np.asarray(state, np.float64)
        if row.shape != (size,):
            raise ValueError(f"state: expected ({size},), mjSTATE_FULLPHYSICS, got {row.shape}")
        if not np.isfinite(row).all():
            raise ValueError(f"state: number {int(np.argmin(np.isfinite(row)))} is not finite")
        return row


def _held_inputs(state: Any) -> tuple[int, Array]:
    """Inputs of an MjData beside its controls, but for those of zeros: bits of mjtState, values."""
    spec, held = 0, [np.empty(0)]
    for bits in _INPUTS if isinstance(state, mujoco.MjData) else ():
        values = np.empty(mujoco.mj_stateSize(state.model, bits))
        mujoco.mj_getState(state.model, state, values, bits)
        if values.any() or (bits == _EQ_ACTIVE and len(values)):
            spec |= bits
            held.append(values)
    return spec, np.concatenate(held)


def _control_range(model: Any) -> Array:
    if model.nu == 0:
        raise ValueError("model: expected actuators, it has none")
    for i in np.flatnonzero(model.actuator_ctrllimited == 0):
        name = model.actuator(i).name or i
        raise ValueError(f"model: actuator {name} has no ctrlrange: give control_range")
    return np.array(model.actuator_ctrlrange)
