"""Many simulations of one model, stepped together: ``mujoco.batch``'s interface and results."""

from __future__ import annotations

import copy
import ctypes
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastenv import _core
from pyfastenv.physics.arguments import check_control_spec, check_count
from pyfastenv.physics.batch_fields import (
    DATA_FIELDS,
    MODEL_FIELDS,
    STATE_FIELDS,
    hint,
    not_bindable,
    not_expandable,
    not_writable,
    template,
)
from pyfastenv.physics.constants import Constants, derived_names, repeated, write_fields
from pyfastenv.physics.errors import SimulationError
from pyfastenv.physics.named_view import NamedView
from pyfastenv.vector.cpus import available_cpus

Array = NDArray[Any]
_ROW = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_CONTROLS = int(mujoco.mjtState.mjSTATE_CTRL)
_NONE, _ALL = int(mujoco.mjtStage.mjSTAGE_NONE), int(mujoco.mjtStage.mjSTAGE_ACC)
_MOST_STEPS = 2**31 - 1  # of one call


class Batch:
    """Simulations of a copy of a model, on threads that are kept from call to call.

    A simulation is a row of ``state``. Fields of the state are views of the rows: what is written
    there is the simulation's state in its next call. Other fields of MjData are outputs: read-only
    arrays that every call of a simulation fills, after ``step`` as ``mj_step`` leaves them, one
    substep behind the state. Fields are attributes, too: ``batch.ctrl = u``, ``batch.xpos``. What
    ``model.body(…)`` and ``data.body(…)`` have, ``batch.body(…)`` has of all simulations.

    Where the model allows it simulations step in SIMD lanes (``physics.lanes_refusal``); results
    equal ``mj_step``'s to the last bit either way, on any number of threads.

    Calls of several Python threads wait for each other; each reports its own failures. While a call
    runs, what belongs to its simulations is not to be written; what belongs to others may be, but
    not by ``set_const``, and nothing is to be bound or expanded.

    Attributes:
        model: The batch's copy of the model. It is not to be changed: ``expand``.
        nsim: Simulations.
        nthread: Threads, the caller's among them.
        persistent: Whether every simulation has an MjData of its own.
        state: (nsim, nstate) float64, mjSTATE_INTEGRATION.
        warning: (nsim, mjNWARNING, 2) int32, MuJoCo's warnings since the simulation's last reset:
            the latest's info, and how many.
        status: (nsim,) int32 of each simulation's last call: 0 it ran, 1 MuJoCo raised, 2 the call
            was interrupted before it ran. In the last two cases its state is that before the call.
    """

    model: Any
    nsim: int
    nthread: int
    persistent: bool
    state: Array
    warning: Array
    status: Array

    def __init__(self, model: Any, nsim: int, nthread: int = 0, persistent: bool = False):
        """Makes the simulations, in the model's initial state.

        Args:
            model: MjModel.
            nsim: Simulations.
            nthread: Threads, the caller's among them; 0: one for each CPU that may be used.
            persistent: Keep an MjData per simulation, from which outputs are taken. Takes memory,
                and lanes are not used. Models with sleep or ipc need it.

        Raises:
            TypeError: ``model`` is no MjModel.
            ValueError: Counts that are none, a model that keeps state outside mjSTATE_INTEGRATION,
                a Python function as MuJoCo's callback.
        """
        if not isinstance(model, mujoco.MjModel):
            raise TypeError(f"model: expected MjModel, got {type(model).__name__}")
        nsim = check_count("nsim", nsim, least=1)
        nthread = check_count("nthread", nthread, least=0) or available_cpus()
        _check_callback()
        own: dict[str, Any] = self.__dict__  # fields of MjData are attributes: past __setattr__
        own.update(model=copy.copy(model), nsim=nsim, nthread=nthread, persistent=persistent)
        own.update(_bound={}, _expanded={}, _errors={}, _models=None)
        own["_constants"] = Constants(self.model, nsim)
        own["_data"] = [mujoco.MjData(self.model) for _ in range(nsim if persistent else nthread)]
        row = np.empty(mujoco.mj_stateSize(self.model, _ROW))
        mujoco.mj_getState(self.model, self._data[0], row, _ROW)
        status = np.zeros(nsim, np.int32)
        own["state"] = np.tile(row, (nsim, 1))
        own["warning"] = np.zeros((nsim, int(mujoco.mjtWarning.mjNWARNING), 2), np.int32)
        own.update(_status=status, status=status.view())
        self.status.flags.writeable = False
        own["_core"] = _core.Batch(
            model=self.model._address,
            nsim=nsim,
            data=[data._address for data in self._data],
            num_threads=nthread,
            persistent=persistent,
            state=self.state,
            warning=self.warning,
            status=status,
        )

    @property
    def nstate(self) -> int:
        """Numbers of a row."""
        return int(self.state.shape[1])

    @property
    def template_data(self) -> Any:
        """An MjData of the model, for shapes and names; what is in it is no simulation's."""
        return self._data[0]

    # ---- fields of MjData ----------------------------------------------------------------------

    def bind(self, name: str) -> Array:
        """Returns a field of MjData of all simulations, the same array every time.

        Args:
            name: One of ``DATA_FIELDS``.

        Returns:
            (nsim, …): of a field of the state, a view of the rows (``eq_active`` is float64 there);
            of another, a read-only array, zero until a call has filled it.

        Raises:
            ValueError: Another name.
        """
        like = template(self.template_data, name) if name in DATA_FIELDS else None
        if like is None:
            raise not_bindable(self.template_data, name)
        if name in STATE_FIELDS:
            begin = mujoco.mj_stateSize(self.model, _ROW & (STATE_FIELDS[name] - 1))
            return self.state[:, begin : begin + like.size].reshape(self.nsim, *like.shape)
        if name not in self._bound:
            values = np.zeros((self.nsim, *like.shape), like.dtype)
            self._core.bind(name, values)
            self._bound[name] = values.view()
            self._bound[name].flags.writeable = False
        bound: Array = self._bound[name]
        return bound

    def __getattr__(self, name: str) -> Any:
        if name in DATA_FIELDS:
            return self.bind(name)
        where = "" if name.startswith("_") else hint(name, DATA_FIELDS)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{where}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in DATA_FIELDS:
            raise AttributeError(f"{name} is no field of the state{hint(name, STATE_FIELDS)}")
        if name not in STATE_FIELDS:
            raise not_writable(name)
        self.bind(name)[...] = value

    # ---- fields of MjModel ---------------------------------------------------------------------

    def expand(self, name: str) -> Array:
        """Gives every simulation its own values of a field of MjModel.

        After writing what ``mj_setConst`` reads (masses, positions, …), call ``set_const``. Fields
        that lanes take (docs/lanes.md) keep the simulations in lanes.

        Args:
            name: One of ``MODEL_FIELDS``; options are ``"opt.gravity"``.

        Returns:
            (nsim, …), to be written at any time between calls; the same array every time. Of
            ``bvh_aabb`` the bodies' volumes, of options float64 or int32.

        Raises:
            ValueError: Another name.
            mujoco.FatalError: The simulations run on the caller's models.
        """
        if name not in MODEL_FIELDS:
            raise not_expandable(self.model, name)
        self._check_own_model("expand")
        if name not in self._expanded:
            derived = self._constants.values
            values = derived.get(name, None)
            if values is None:
                values = repeated(self.model, name, self.nsim)
            self._core.set_fields({**derived, **self._expanded, name: values})
            self._expanded[name] = values
            derived.pop(name, None)
        expanded: Array = self._expanded[name]
        return expanded

    def is_expanded(self, name: str) -> bool:
        """Says whether a field has been expanded by ``expand``."""
        return name in self._expanded

    def expanded(self, name: str) -> Array | None:
        """Returns a field's values, read-only, if simulations have their own.

        :meth:`expand` gives them such values, or :meth:`set_const` has derived them.

        Args:
            name: One of ``MODEL_FIELDS``.

        Returns:
            (nsim, …), or None if all simulations have the model's.
        """
        if name not in MODEL_FIELDS:
            raise not_expandable(self.model, name)
        values = self._expanded.get(name)
        if values is None:
            values = self._constants.values.get(name)
        if values is None:
            return None
        view: Array = values.view()
        view.flags.writeable = False
        return view

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Derives constants from simulations' own fields, as ``mj_setConst``, one after the other.

        Args:
            ids: Which simulations; None: all. As for ``step``.

        Raises:
            ValueError: ids out of range, or not ascending.
            SimulationError: MuJoCo raised in some, which keep what they had.
            mujoco.FatalError: The simulations run on the caller's models.
        """
        self._check_own_model("set_const")
        selected = self._every(self._ids(ids)).astype(np.int64)
        if len(outside := selected[(selected < 0) | (selected >= self.nsim)]):
            raise ValueError(f"ids must be in [0, {self.nsim}), got {outside[0]}")
        if (np.diff(selected) <= 0).any():
            raise ValueError(f"ids must be sorted and unique, got {selected.tolist()}")
        before = set(self._constants.values)
        failures = self._constants.derive([int(i) for i in selected], self._expanded)
        if self._constants.values or before:
            self._core.set_fields({**self._constants.values, **self._expanded})
        self._status[selected] = np.isin(selected, [sim for sim, _ in failures])
        self._report(selected, failures)

    def set_models(self, models: Any) -> None:
        """Runs every simulation on a model of the caller's.

        The models are read, never written. After editing one, set them again.

        Args:
            models: An MjModel, nsim of them with the sizes of the batch's, or None: the batch's.

        Raises:
            ValueError: Another number of models, or other sizes.
            mujoco.FatalError: Fields have been expanded.
        """
        if models is None:
            self._core.set_models([])
            self.__dict__["_models"] = None
            return
        if self._expanded or self._constants.values:
            raise mujoco.FatalError(
                "set_models: simulations have fields of their own (expand), per-simulation values"
                " that models would replace"
            )
        kept = models if isinstance(models, mujoco.MjModel) else tuple(models)
        own = [kept] * self.nsim if isinstance(kept, mujoco.MjModel) else list(kept)
        if len(own) != self.nsim:
            raise ValueError(f"expected a model per simulation, {self.nsim}, got {len(own)}")
        for i, model in enumerate(own):
            if not isinstance(model, mujoco.MjModel):
                raise TypeError(f"models[{i}]: expected MjModel, got {type(model).__name__}")
        self._core.set_models([model._address for model in own])
        self.__dict__["_models"] = kept

    @property
    def models(self) -> Any:
        """The caller's model or models, as they were set; None: the batch's."""
        return self._models

    @property
    def own_models(self) -> list[Any] | None:
        """The caller's model of every simulation; None: the batch's."""
        if self._models is None:
            return None
        one = isinstance(self._models, mujoco.MjModel)
        return [self._models] * self.nsim if one else list(self._models)

    # ---- one object of all simulations ---------------------------------------------------------

    def actuator(self, key: int | str) -> NamedView:
        """The actuator of this name or number, of all simulations."""
        return NamedView(self, "actuator", key)

    def body(self, key: int | str) -> NamedView:
        """The body of this name or number, of all simulations."""
        return NamedView(self, "body", key)

    def camera(self, key: int | str) -> NamedView:
        """The camera of this name or number, of all simulations."""
        return NamedView(self, "camera", key)

    def equality(self, key: int | str) -> NamedView:
        """The equality constraint of this name or number, of all simulations."""
        return NamedView(self, "equality", key)

    def geom(self, key: int | str) -> NamedView:
        """The geom of this name or number, of all simulations."""
        return NamedView(self, "geom", key)

    def joint(self, key: int | str) -> NamedView:
        """The joint of this name or number, of all simulations."""
        return NamedView(self, "joint", key)

    def keyframe(self, key: int | str) -> NamedView:
        """The keyframe of this name or number, of all simulations."""
        return NamedView(self, "keyframe", key)

    def light(self, key: int | str) -> NamedView:
        """The light of this name or number, of all simulations."""
        return NamedView(self, "light", key)

    def material(self, key: int | str) -> NamedView:
        """The material of this name or number, of all simulations."""
        return NamedView(self, "material", key)

    def numeric(self, key: int | str) -> NamedView:
        """The numeric field of this name or number, of all simulations."""
        return NamedView(self, "numeric", key)

    def pair(self, key: int | str) -> NamedView:
        """The contact pair of this name or number, of all simulations."""
        return NamedView(self, "pair", key)

    def sensor(self, key: int | str) -> NamedView:
        """The sensor of this name or number, of all simulations."""
        return NamedView(self, "sensor", key)

    def site(self, key: int | str) -> NamedView:
        """The site of this name or number, of all simulations."""
        return NamedView(self, "site", key)

    def tendon(self, key: int | str) -> NamedView:
        """The tendon of this name or number, of all simulations."""
        return NamedView(self, "tendon", key)

    # ---- calls ---------------------------------------------------------------------------------

    def step(
        self,
        ids: ArrayLike | None = None,
        nstep: int = 1,
        stage: int = _NONE,
        callback: Callable[[], object] | None = None,
    ) -> None:
        """Moves simulations on by some calls of ``mj_step``.

        Args:
            ids: Which simulations: ascending integers, or (nsim,) bool; None: all.
            nstep: Substeps.
            stage: mjtStage, what is computed of the new state afterwards: mjSTAGE_VEL as
                ``mj_step1``, mjSTAGE_ACC as ``mj_forward``.
            callback: Called between two substeps, when states and outputs are those of the first.
                What it raises ends the call there; the substeps before it are done.

        Raises:
            ValueError: Bad ids, counts or stages, or a Python function as MuJoCo's callback;
                nothing has moved.
            SimulationError: MuJoCo raised in some simulations, which keep their states.
            KeyboardInterrupt: Ctrl-C. Each simulation has done all, or nothing: ``status``.
        """
        selected, nstep = self._begin(ids), _check_steps(nstep)
        if callback is not None:
            for _ in range(nstep - 1):
                self._report(selected, self._core.step(selected, 1, _NONE))
                callback()
            nstep = 1
        self._report(selected, self._core.step(selected, nstep, _check_stage(stage)))

    def forward(self, ids: ArrayLike | None = None, stage: int = _ALL) -> None:
        """Computes outputs of the states, up to a stage; by default as ``mj_forward``.

        Args:
            ids: Which simulations, as for ``step``.
            stage: mjtStage.

        Raises:
            As ``step``.
        """
        selected = self._begin(ids)
        self._report(selected, self._core.forward(selected, _check_stage(stage)))

    def reset(
        self, ids: ArrayLike | None = None, keyframe: ArrayLike = -1, stage: int = _ALL
    ) -> None:
        """Puts simulations into the model's initial state, or a keyframe's.

        Args:
            ids: Which simulations, as for ``step``.
            keyframe: The keyframe, of all or of each of these simulations, (n,); -1: none.
            stage: mjtStage, what is computed of the state afterwards.

        Raises:
            As ``step``.
        """
        selected = self._begin(ids)
        models = self.own_models or [self.model]
        keys = _integers(
            "keyframe", keyframe, (self._count(selected),), max(m.nkey for m in models)
        )
        self._report(selected, self._core.reset(selected, keys, _check_stage(stage)))

    def rollout(
        self,
        nstep: int,
        control: ArrayLike | None = None,
        control_spec: int = _CONTROLS,
        record: Sequence[str | int] = ("qpos",),
        ids: ArrayLike | None = None,
        out: Mapping[str | int, Array] | None = None,
    ) -> dict[str | int, Array]:
        """Moves simulations on under given controls, and records after every substep.

        A simulation in which MuJoCo warns stands still from there on; its records repeat.

        Args:
            nstep: Substeps.
            control: Broadcast to (n, nstep, ncontrol), for the n simulations of the call; None:
                inputs stay as they are.
            control_spec: What a control is made of, bits of mjSTATE_USER.
            record: Names of fields of MjData, or bits of mjtState.
            ids: Which simulations, as for ``step``.
            out: Arrays to record into, by item of ``record``; C-contiguous, of the shape and dtype
                that would be returned. New ones if there are none.

        Returns:
            (n, nstep, …) by item of ``record``.

        Raises:
            ValueError: Shapes, names or bits that do not fit; nothing has moved.
            SimulationError: MuJoCo raised in some simulations, which keep their states. The others'
                records are its ``results``, where the failed have NaN, or 0.
            KeyboardInterrupt: As in ``step``.
        """
        selected, nstep = self._begin(ids), _check_steps(nstep)
        n, spec = self._count(selected), check_control_spec(control_spec)
        if control is not None:
            size = mujoco.mj_stateSize(self.model, spec)
            control = np.ascontiguousarray(
                np.broadcast_to(np.asarray(control, np.float64), (n, nstep, size))
            )
        results: dict[str | int, Array] = {}
        records: list[tuple[str | None, int, Array]] = []
        for item in record:
            like, bits = self._recorded(item)
            shape = (n, nstep, *like.shape)
            results[item] = _output(item, (out or {}).get(item), shape, like.dtype)
            records.append((None if bits else str(item), bits, results[item]))
        failures = self._core.rollout(
            ids=selected, nstep=nstep, control=control, control_spec=spec, records=records
        )
        failed = np.searchsorted(self._every(selected), [sim for sim, _ in failures])
        for values in results.values():
            values[failed] = np.nan if values.dtype.kind == "f" else 0
        self._report(selected, failures, results)
        return results

    def jac(
        self, body: ArrayLike, point: ArrayLike, ids: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Computes Jacobians of points on bodies, as ``mj_jac`` in each simulation's state.

        Args:
            body: The body, of all or of each simulation of the call, (n,).
            point: In the world, (3,) or (n, 3).
            ids: Which simulations, as for ``step``.

        Returns:
            Of translation and of rotation, (n, 3, nv) each.

        Raises:
            As ``step``; states and outputs stay.
        """
        selected = self._begin(ids)
        n = self._count(selected)
        bodies = _integers("body", body, (n,), self.model.nbody, least=0)
        points = _wide(np.asarray(point, np.float64), (n, 3))
        jacp, jacr = np.zeros((2, n, 3, self.model.nv))
        self._report(selected, self._core.jac(selected, bodies, points, jacp, jacr), (jacp, jacr))
        return jacp, jacr

    def ray(
        self,
        pnt: ArrayLike,
        vec: ArrayLike,
        geomgroup: ArrayLike | None = None,
        flg_static: bool = True,
        bodyexclude: ArrayLike = -1,
        ids: ArrayLike | None = None,
        normal: bool = False,
    ) -> tuple[Array, ...]:
        """Measures distances along rays to the first geom, as ``mj_ray`` in each simulation.

        Args:
            pnt: Where rays begin, broadcast to (n, nray, 3): (3,) is one ray, (nray, 3) are the
                same in each simulation.
            vec: Their directions, likewise.
            geomgroup: (mjNGROUP,), which groups of geoms rays meet; None: all.
            flg_static: Whether they meet geoms that do not move.
            bodyexclude: A body whose geoms they pass, -1: none; broadcast to (n, nray).
            ids: Which simulations, as for ``step``.
            normal: Return surface normals, too.

        Returns:
            Distance and geom, (n, nray) each, -1 where there is none; the normals, (n, nray, 3).

        Raises:
            As ``step``; states and outputs stay.
        """
        selected = self._begin(ids)
        n = self._count(selected)
        begin, along = (np.atleast_2d(np.asarray(x, np.float64)) for x in (pnt, vec))
        nray = np.broadcast_shapes(begin.shape[:-1], along.shape[:-1])[-1]
        groups = None if geomgroup is None else np.array(geomgroup, np.uint8)
        excluded = _integers("bodyexclude", bodyexclude, (n, nray), self.model.nbody)
        dist, geomid = np.zeros((n, nray)), np.zeros((n, nray), np.int32)
        normals = np.zeros((n, nray, 3)) if normal else None
        results = (dist, geomid) if normals is None else (dist, geomid, normals)
        failures = self._core.ray(
            ids=selected,
            nray=nray,
            pnt=_wide(begin, (n, nray, 3)),
            vec=_wide(along, (n, nray, 3)),
            geomgroup=groups,
            flg_static=bool(flg_static),
            bodyexclude=excluded,
            dist=dist,
            geomid=geomid,
            normal=normals,
        )
        self._report(selected, failures, results)
        return results

    def error(self, sim: int) -> str:
        """Returns the message of the error in a simulation's last call; empty if it ran."""
        message: str = self._errors.get(self._sim(sim), "")
        return message

    # ---- one simulation ------------------------------------------------------------------------

    def get_model(self, sim: int, model: Any = None) -> Any:
        """Returns the model of one simulation, to draw it or for any function of MuJoCo's.

        Args:
            sim: Which.
            model: An MjModel of the same sizes to be written, but for assets; None: a new one.
        """
        sim = self._sim(sim)
        source = self.model if self.own_models is None else self.own_models[sim]
        if model is None:
            model = copy.copy(source)
        else:
            for name in (*MODEL_FIELDS, *derived_names(source)[1]):
                write_fields(model, {name: repeated(source, name, 1)}, 0)
        write_fields(model, {**self._constants.values, **self._expanded}, sim)
        return model

    def get_data(self, sim: int, data: Any = None) -> Any:
        """Returns the state of one simulation in an MjData; if persistent, all of its MjData.

        Args:
            sim: Which.
            data: An MjData of the batch's sizes, to be written; None: a new one. Unless persistent,
                ``mj_forward`` computes what is not state.

        Raises:
            TypeError: ``data`` is no MjData.
            ValueError: ``data`` is of a model of other sizes.
        """
        sim = self._sim(sim)
        if data is None:
            data = mujoco.MjData(self.model)
        elif not isinstance(data, mujoco.MjData):
            raise TypeError(f"data: expected an MjData, got {type(data).__name__}")
        elif not self._core.has_sizes_of(data.model._address):
            raise ValueError("data: it is of a model of other sizes: make it from this one's")
        if self.persistent:
            mujoco.mj_copyData(data, self.model, self._data[sim])
        mujoco.mj_setState(self.model, data, self.state[sim], _ROW)
        return data

    # ---- arguments and errors ------------------------------------------------------------------

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a Batch cannot be pickled or copied: make another one and set its state")

    def _begin(self, ids: ArrayLike | None) -> Array | None:
        _check_callback()
        return self._ids(ids)

    def _ids(self, ids: ArrayLike | None) -> Array | None:
        """Integers, whose order and range the core checks; None: all."""
        if ids is None:
            return None
        given = np.asarray(ids)
        if given.dtype == bool:
            if given.shape != (self.nsim,):
                raise ValueError(f"ids: expected ({self.nsim},) bool, got {given.shape} bool")
            return np.flatnonzero(given)
        if given.ndim != 1:
            raise ValueError(f"ids: expected one axis, got shape {given.shape}")
        if given.size == 0:
            return np.zeros(0, np.int64)
        if given.dtype.kind not in "iu":
            raise ValueError(f"ids must be integers, got {given.dtype}")
        return given

    def _every(self, selected: Array | None) -> Array:
        return np.arange(self.nsim) if selected is None else selected

    def _count(self, selected: Array | None) -> int:
        return self.nsim if selected is None else len(selected)

    def _sim(self, sim: int) -> int:
        number = operator.index(sim)
        if not 0 <= number < self.nsim:
            raise IndexError(f"sim: expected one in [0, {self.nsim}), got {sim}")
        return number

    def _recorded(self, item: str | int) -> tuple[Array, int]:
        """An array like a step's record, and its bits of mjtState if it is part of the state."""
        if not isinstance(item, str):
            bits = int(item)
            if bits <= 0 or bits & ~_ROW:
                raise ValueError(f"record: {bits} is no state, bits of mjSTATE_INTEGRATION")
            return np.empty(mujoco.mj_stateSize(self.model, bits)), bits
        like = template(self.template_data, item) if item in DATA_FIELDS else None
        if like is None:
            raise not_bindable(self.template_data, item)
        return like, STATE_FIELDS.get(item, 0) if like.dtype == np.float64 else 0

    def _check_own_model(self, call: str) -> None:
        if self._models is not None:
            raise mujoco.FatalError(f"{call}: the simulations run on caller models (set_models)")

    def _report(
        self, selected: Array | None, failures: list[tuple[int, str]], results: Any = None
    ) -> None:
        if self._errors:
            for sim in self._every(selected):
                self._errors.pop(int(sim), None)
        if failures:
            self._errors.update(failures)
            raise SimulationError(failures, self._count(selected), results)


def _check_steps(nstep: int) -> int:
    nstep = check_count("nstep", nstep, least=1)
    if nstep > _MOST_STEPS:
        raise ValueError(f"nstep: expected at most {_MOST_STEPS}, got {nstep}")
    return nstep


def _check_stage(stage: Any) -> int:
    """The stage's number, whose range the core checks."""
    try:
        return operator.index(stage)
    except TypeError:
        raise TypeError(f"stage: expected an mjtStage, got {stage!r}") from None


def _check_callback() -> None:
    """Workers run MuJoCo's callbacks without the interpreter: C functions alone."""
    name = _core.active_callback()
    if name is None or isinstance(getattr(mujoco, f"get_{name}")(), ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return
    raise ValueError(
        f"{name} is a Python function, which a batch's threads cannot run: unset it"
        f" (mujoco.set_{name}(None)), or set a C function of ctypes"
    )


def _integers(
    name: str, value: ArrayLike, shape: tuple[int, ...], end: int, *, least: int = -1
) -> Array:
    """Integers in [least, end), broadcast to a shape, int32."""
    given = np.asarray(value)
    if given.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected integers, got {given.dtype}")
    wrong = given[(given < least) | (given >= end)]
    if wrong.size:
        raise ValueError(f"{name}: expected integers in [{least}, {end}), got {wrong.flat[0]}")
    return _wide(given.astype(np.int32), shape)


def _wide(array: Array, shape: tuple[int, ...]) -> Array:
    """A C-contiguous copy, broadcast."""
    return np.array(np.broadcast_to(array, shape), order="C")


def _output(item: str | int, given: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    if given is None:
        return np.empty(shape, dtype)
    if (
        isinstance(given, np.ndarray)
        and (given.shape, given.dtype) == (shape, dtype)
        and given.flags.carray
    ):
        return given
    got = f"{given.shape} {given.dtype}" if isinstance(given, np.ndarray) else type(given).__name__
    raise ValueError(
        f"out[{item!r}]: expected a writeable C-contiguous array, {shape} {dtype}, got {got}"
    )
