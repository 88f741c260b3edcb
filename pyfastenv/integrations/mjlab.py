"""mjlab (1.6.0): its environments simulated by :class:`pyfastenv.physics.Batch`, on the CPU.

    mjlab.envs.manager_based_rl_env.Simulation = pyfastenv.integrations.mjlab.Simulation

before an environment is made. States are float64 and every substep is ``mj_step``'s to the last
bit; mjlab reads and writes float32 tensors, as it does with MuJoCo Warp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from mjlab.sim import Simulation as WarpSimulation
from mjlab.sim import TorchArray, WarpBridge
from numpy.typing import NDArray

from pyfastenv.physics import Batch
from pyfastenv.physics.batch_fields import DATA_FIELDS, STATE_FIELDS

Array = NDArray[Any]
_INERTIA = (mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA, mujoco.mjtSameFrame.mjSAMEFRAME_INERTIAROT)
# By what has a frame on a body: the fields that say where.
_PLACES = {
    "body": {"body_ipos", "body_iquat"},
    "geom": {"geom_pos", "geom_quat"},
    "site": {"site_pos", "site_quat"},
}


class Simulation(WarpSimulation):
    """mjlab's simulation, whose steps, resets, constants and rays are a batch's.

    ``data`` and ``model`` are tensors in the memory of Warp's arrays, as in mjlab, but Warp
    computes nothing. What is written into a tensor of the state, or of an expanded field of the
    model, is taken over by the next call; where nothing was written, the batch keeps its float64
    value. A field is computed from the moment on that somebody reads it.

    Not here: contacts and constraints as arrays (contact sensors are sensors, and work), cameras,
    meshes that differ between environments, terms that call Warp themselves (differential inverse
    kinematics). Each is refused with a sentence. A simulation that diverges is put back into the
    initial state by ``mj_step``, which ``batch.warning`` counts.

    Attributes:
        batch: The simulations. Its ``state`` is what tensors show, in float64.
    """

    batch: Batch

    def __init__(
        self,
        num_envs: int,
        cfg: Any,
        model: Any = None,
        device: str = "cpu",
        *,
        spec: Any = None,
        variant_info: Any = None,
        num_threads: int = 0,
    ):
        """Makes the simulations, in the model's initial state.

        Args:
            num_envs: Simulations.
            cfg: mjlab's SimulationCfg. What is for Warp alone has no effect here.
            model: MjModel, to which ``cfg.mujoco`` is applied.
            device: ``"cpu"``.
            spec: MjSpec, in place of ``model``.
            variant_info: None, or empty.
            num_threads: As ``nthread`` of :class:`pyfastenv.physics.Batch`.

        Raises:
            ValueError: Another device, variants, or what Batch refuses.
        """
        if str(device) != "cpu":
            raise ValueError(f"device: expected 'cpu', where these simulations are, got {device!r}")
        if variant_info:
            raise ValueError(
                "variant_info: expected none, as all simulations share their meshes, got"
                f" {len(variant_info)} entities with variants"
            )
        self._num_threads = num_threads
        super().__init__(num_envs, cfg, model, device, spec=spec)

    def _finish_init(self) -> None:
        # Warp has none; with it, bodies of several geoms with centres of mass of their own would
        # keep simulations out of lanes
        self._mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
        super()._finish_init()
        self.batch = Batch(self._mj_model, self.num_envs, self._num_threads)
        self._outputs: dict[str, _Shown] = {}
        self._own: dict[str, _Shown] = {}  # fields of the model
        self._underived = np.zeros(self.num_envs, bool)  # whose own fields have changed
        self._sameframes: list[Array] = []
        self._state = [
            _Shown(name, self._wp_data, self.batch.bind(name))
            for name in STATE_FIELDS
            if self.batch.bind(name).size and hasattr(self._wp_data, name)
        ]
        self._data_bridge = _DataBridge(self._wp_data, self._bind)
        self._last: Callable[[], None] = self.batch.forward
        self._before = self.batch.state.copy()  # before the last call
        self._show_state()

    # ---- tensors -------------------------------------------------------------------------------

    @property
    def wp_data(self) -> Any:
        """Refused: what Warp would compute from these arrays is not this simulation's."""
        raise AttributeError(
            "wp_data: these simulations are not Warp's; read fields of `data`, and compute with"
            " `batch` (jac, ray, get_data)"
        )

    def _bind(self, name: str) -> None:
        """Computes a field from now on, and once as the last call would have left it."""
        if name in STATE_FIELDS or name in self._outputs:
            return
        if name not in DATA_FIELDS:
            raise AttributeError(f"{name} has no array in a batch of simulations")
        shown = _Shown(name, self._wp_data, self.batch.bind(name))
        now = self.batch.state.copy()
        self.batch.state[:] = self._before
        try:
            self._last()
        finally:
            self.batch.state[:] = now
        shown.show()
        self._outputs[name] = shown

    def _show_state(self) -> None:
        for shown in self._state:
            shown.show()

    def _take_over(self) -> None:
        """Takes what was written into tensors."""
        for shown in self._state:
            shown.take_over(shown.written())
        for name, shown in self._own.items():
            written = shown.written()
            if written.any():
                shown.exact = self.batch.expand(name)
                shown.take_over(written)
                self._underived |= written.reshape(self.num_envs, -1).any(axis=1)

    def _call(self, call: Callable[[], None]) -> None:
        self._take_over()
        self._before[:] = self.batch.state
        self._last = call
        try:
            call()
        finally:  # where some simulations fail, the others have moved
            self._show_state()
            for shown in self._outputs.values():
                shown.show()

    # ---- mjlab's calls -------------------------------------------------------------------------

    def step(self) -> None:
        """Moves all simulations on by one ``mj_step``.

        Raises:
            SimulationError: MuJoCo raised in some, which keep their states.
        """
        with self.nan_guard.watch(self.data):
            self._call(self.batch.step)

    def forward(self) -> None:
        """Computes what follows from the states, as ``mj_forward``; raises as ``step``."""
        self._call(self.batch.forward)

    def reset(self, env_ids: Any = None) -> None:
        """Puts simulations into the initial state; what follows from it comes with ``forward``.

        Args:
            env_ids: What a tensor of all simulations may be indexed with; None: all.
        """
        self._take_over()
        selected = np.zeros(self.num_envs, bool)
        selected[slice(None) if env_ids is None else env_ids] = True
        self.batch.reset(selected, stage=mujoco.mjtStage.mjSTAGE_NONE)
        self._show_state()

    def expand_model_fields(self, fields: tuple[str, ...]) -> None:
        """Lets every simulation have its own values of fields of the model, once they are written.

        Raises:
            ValueError: A name that MuJoCo's model does not have, or that all simulations share.
        """
        super().expand_model_fields(fields)
        for name in fields:
            if getattr(self._mj_model, name).size:
                self._own[name] = _Shown(name, self._wp_model, self._values(name))
        self._separate_frames(set(fields))

    def _values(self, name: str) -> Array:
        """A field of the model for every simulation: its own, or derived, or the model's."""
        own = self.batch.expanded(name)
        if own is not None:
            return own
        shared = np.asarray(getattr(self.batch.model, name))
        return np.broadcast_to(shared, (self.num_envs, *shared.shape))

    def _separate_frames(self, fields: set[str]) -> None:
        """Frames that coincide in the model are one to MuJoCo, which then reads no place of theirs.

        To Warp they are not: where simulations have places of their own, not here either.
        """
        model = self._mj_model
        turned = not fields.isdisjoint(_PLACES["body"])
        for kind, places in _PLACES.items():
            same = getattr(model, f"{kind}_sameframe")
            moves = model.body_weldid > 0 if kind == "body" else True  # those of the world do not
            moved = not fields.isdisjoint(places) and np.any(same * moves)
            if moved or (turned and np.isin(same, _INERTIA).any()):
                self._sameframes.append(self.batch.expand(f"{kind}_sameframe"))
        for own in self._sameframes:
            own[:] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE

    def recompute_constants(self, level: Any) -> None:
        """Derives constants of those simulations whose fields were written, as ``mj_setConst``.

        Args:
            level: mjlab's RecomputeLevel; each is answered by all of ``mj_setConst``.
        """
        self._take_over()
        self.batch.set_const(self._underived)
        self._underived[:] = False
        self._separate_frames(set())  # which MuJoCo derives, too
        for name, shown in self._own.items():
            shown.exact = self._values(name)
            shown.show()

    def set_sensor_context(self, ctx: Any) -> None:
        """Wires raycast sensors, which ``sense`` answers; ValueError if there are cameras."""
        if ctx.has_cameras:
            raise ValueError(
                "cameras: expected none, as Warp, which draws them, does not simulate here; got"
                f" {', '.join(repr(sensor.cfg.name) for sensor in ctx.camera_sensors)}"
            )
        super().set_sensor_context(ctx)

    def _sense_kernel(self) -> None:
        assert self._sensor_context is not None
        for sensor in self._sensor_context.raycast_sensors:
            groups = sensor.include_geom_groups
            found = self.batch.ray(
                sensor._ray_pnt.numpy(),
                sensor._ray_vec.numpy(),
                None if groups is None else [i in groups for i in range(mujoco.mjNGROUP)],
                bodyexclude=sensor._ray_bodyexclude.numpy(),
                normal=True,
            )
            into = (sensor._ray_dist, sensor._ray_geomid, sensor._ray_normal)
            for array, values in zip(into, found, strict=True):
                np.copyto(array.numpy(), values, casting="same_kind")


class _Shown:
    """A field of all simulations, and the array of Warp's, of fewer digits, that shows it."""

    def __init__(self, name: str, struct: Any, exact: Array):
        array = TorchArray(getattr(struct, name))._tensor.numpy()  # Warp's memory
        if array.size != exact.size:
            raise ValueError(f"{name}: Warp's array is {array.shape}, MuJoCo's {exact.shape}")
        self._array = array.reshape(exact.shape)
        self.exact = exact

    def show(self) -> None:
        with np.errstate(over="ignore"):
            np.copyto(self._array, self.exact, casting="unsafe")

    def written(self) -> NDArray[np.bool_]:
        """Which numbers differ from those that were shown."""
        with np.errstate(over="ignore"):
            return np.asarray(self._array != self.exact.astype(self._array.dtype))

    def take_over(self, written: NDArray[np.bool_]) -> None:
        np.copyto(self.exact, self._array, where=written, casting="unsafe")


class _DataBridge(WarpBridge):
    """Warp's data as tensors, each of which is asked for before it is read."""

    def __init__(self, struct: Any, bind: Callable[[str], None]):
        super().__init__(struct)
        object.__setattr__(self, "_bind", bind)

    def __getattr__(self, name: str) -> Any:
        if name not in self._wrapped_cache and not isinstance(getattr(self._struct, name), int):
            self._bind(name)
        return super().__getattr__(name)
