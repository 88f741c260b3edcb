"""A task in plain Python, on real MjData: for debuggers, for the first run, for replays.

It does what csrc/envs/function_env.cc does, in the same order, and gives the same bits.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from pyfastenv.tasks.language import randomise
from pyfastenv.tasks.language.around import ROW, code_around
from pyfastenv.tasks.language.batch import BatchFunctions, has_batch_functions
from pyfastenv.tasks.language.commands import check_command_name, command_values
from pyfastenv.tasks.language.fields import Drawn, Memory, given_name, held_name
from pyfastenv.tasks.language.layout import Layout, Writer, info_parts, obs_parts, obs_views
from pyfastenv.tasks.language.noise import NOISE, noise_parts, noise_size
from pyfastenv.tasks.language.places import place_in_class, placed, show_place
from pyfastenv.tasks.language.rewards import info_name, sums_of, weights_of
from pyfastenv.tasks.language.task import Task, arguments_of
from pyfastenv.vector.obs_views import ObsViews
from pyfastenv.vector.rendering import Fields, doubles

MAX_VALUE = 1e10  # mjMAXVAL
_BAD = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)


def action_space_of(task: Task) -> gymnasium.Space[Any]:
    """The task's own, or a Box with its actuators' range.

    Raises:
        TypeError: Neither a vector's Box nor a Discrete space, or there is nobody to turn its
            actions into controls.
    """
    owner = type(task).__name__
    space = task.action_space
    if space is None:
        limits = task.model.actuator_ctrlrange.astype(np.dtype(task.action_dtype))
        limits[task.model.actuator_ctrllimited == 0] = (-np.inf, np.inf)
        return gymnasium.spaces.Box(limits[:, 0], limits[:, 1], dtype=limits.dtype.type)
    if isinstance(space, gymnasium.spaces.Discrete):
        if space.start != 0:
            raise TypeError(f"{owner}.action_space: expected Discrete from 0 on, got {space}")
        if not hasattr(task, "control") and "action" not in arguments_of(type(task).step):
            raise TypeError(f"{owner}: Discrete actions need a method control(self, action, ctrl)")
        return space
    if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:
        dtype: Any = np.dtype(task.action_dtype).type
        return gymnasium.spaces.Box(space.low.astype(dtype), space.high.astype(dtype), dtype=dtype)
    raise TypeError(f"{owner}.action_space: expected a Box of shape (n,) or Discrete, got {space}")


class PlainEnv(gymnasium.Env[Any, Any]):
    """One environment of a task as a gymnasium.Env: breakpoints, print and profilers work in it.

    ``infos["diverged"]`` as in the pool. There is no time limit: ``pyfastenv.debug`` adds it.

    Args:
        task: Whose methods are called.
        layout: What it writes, for a replay of its compiled methods alone; None means that of a
            first run, which this does.
    """

    metadata = {"render_modes": []}

    def __init__(self, task: Task, layout: Layout | None = None):
        if not hasattr(task, "_ready"):
            owner = type(task)
            raise TypeError(
                f"{place_in_class(owner, '__init__')}{owner.__name__}.__init__ does not call "
                f"super().__init__(**arguments); what is to be done once belongs into setup(self)"
            )
        if task.randomise or task.up_to_date:  # which change the model: one of its own
            task = copy.copy(task)
            object.__setattr__(task, "model", copy.copy(task.model))
        self.task = task
        self._bases = {name: getattr(task.model, name).copy() for name in task.randomise}
        self._disabled = task.model.opt.disableflags
        self.data = mujoco.MjData(task.model)
        self.action_space = action_space_of(task)
        self._action: Any = None
        self._learn(None)
        self.layout = self._first_run() if layout is None else layout
        self._learn(self.layout)
        self.batch: BatchFunctions | None = None
        if layout is None and has_batch_functions(type(task)):
            self.batch = self._first_batch()
        shown = self.layout.obs if self.batch is None else self.batch.shown
        self.obs_views: ObsViews | None = None
        if layout is None:
            self.obs_views = obs_views(shown, task.observation_dict, type(task).__name__)
        self.observation_space: gymnasium.Space[Any]
        if self.obs_views is None:
            size = sum(part.size for part in shown.values())
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        else:
            self.observation_space = self.obs_views.space(np.float64)

    # ---- gymnasium ---------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        super().reset(seed=seed)
        if seed is not None:
            self._forget(lasting=True)
        written = self._reset()
        return self._shown(self._flat(self._observe())), self._filled(written, always=True)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Runs one step."""
        reward, terminated, written = self._step(action)
        if self.diverged():
            mujoco.mj_resetData(self.task.model, self.data)
            mujoco.mj_forward(self.task.model, self.data)
            self._forget()
            return self._shown(self._flat(self._observe())), 0.0, True, False, {"diverged": True}
        infos = self._filled(written, always=False)
        raw = self._flat(self._observe())
        if self.batch is not None:
            reward, terminated = self._finish(self.batch, raw, reward, terminated, infos)
        return self._shown(raw), reward, terminated, False, infos

    def set_command(self, name: str, values: Any) -> None:
        """Holds a command from the next step on; None: it is drawn again, if it is one of those."""
        check_command_name(self.task._fields, name, type(self.task).__name__)
        field = self.task._fields[name]
        target = given_name(name) if isinstance(field, Drawn) else name
        if isinstance(field, Drawn):
            object.__setattr__(self.task, held_name(name), float(values is not None))
        if values is not None:
            value = command_values(values, () if field.size is None else (field.size,))
            object.__setattr__(self.task, target, value if field.size else float(value))

    # ---- the methods, one by one -------------------------------------------------------------

    def _call(self, name: str, **available: Any) -> Any:
        method = getattr(self.task, name)
        given = {"data": self.data, **available}
        returned = method(
            *(given[argument] for argument in arguments_of(getattr(type(self.task), name)))
        )
        if name != "step" and self._layout is None and returned is not None:
            instead = {"observation": "obs['name'] = …", "control": "ctrl[:] = …"}.get(name, "data")
            raise TypeError(
                f"{place_in_class(type(self.task), name)}{type(self.task).__name__}.{name} returns "
                f"{returned!r}, which nobody reads: it writes {instead}"
            )
        self._check_types()
        return returned

    def _check_types(self) -> None:
        """Refuses kinds of geoms that MuJoCo would take for indices of its tables."""
        if "geom_type" not in self._bases:
            return
        types = self.task.model.geom_type
        wrong = (types != self._bases["geom_type"]) & ((types < 2) | (types > 6))
        if wrong.any():
            at = wrong.argmax()
            raise ValueError(
                f"{type(self.task).__name__}: self.model.geom_type[{at}]: expected a kind from 2 "
                f"(sphere) to 6 (box), got {types[at]}"
            )

    def _forget(self, *, lasting: bool = False) -> None:
        for name, field in self.task._fields.items():
            if isinstance(field, Memory) and (lasting or not field.lasting):
                value = 0.0 if field.size is None else np.zeros(field.size)
                object.__setattr__(self.task, name, value)

    def _reset(self) -> dict[str, NDArray[Any]]:
        self._set_passive(True)
        if "qpos0" in self._bases:  # the pose in which MuJoCo begins
            self.task.model.qpos0[:] = self._bases["qpos0"]
        mujoco.mj_resetData(self.task.model, self.data)
        self._forget()
        randomise.apply(self.task.randomise, self.task.model, self._bases, self.np_random)
        info = self._writer("info")
        self._run_around("reset", 0, info)
        self._call("reset", rng=self.np_random, info=info)
        self._run_around("reset", 1, info)
        mujoco.mj_forward(self.task.model, self.data)
        return info.arrays()

    def _step(self, action: Any) -> tuple[float, bool, dict[str, NDArray[Any]]]:
        self._action = action = self._checked(action)
        self._set_passive(False)
        info = self._writer("info")
        self._run_around("step", 0, info)
        object.__setattr__(self.task, "simulate", self._simulate)
        try:
            returned = self._call("step", action=action, rng=self.np_random, info=info)
        finally:
            object.__delattr__(self.task, "simulate")
        self._run_around("step", 1, info)
        written = info.arrays()
        reward, terminated = self._checked_result(returned, written)
        return reward, terminated, written

    def _checked_result(self, returned: Any, infos: dict[str, NDArray[Any]]) -> tuple[float, bool]:
        owner = f"{type(self.task).__name__}.step"
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(
                f"{owner} must return (reward, terminated), got {returned!r} ({self._returns()})"
            )
        reward, terminated = returned
        for name, value, kinds, kind in (
            ("reward", reward, "biuf", "a number"),
            ("terminated", terminated, "bi", "True or False"),
        ):
            array = np.asarray(value)
            if array.ndim > 0 or array.dtype.kind not in kinds:
                instead = "; names are for @pyfastenv.reward_terms" * isinstance(value, dict)
                raise TypeError(
                    f"{owner}: {name}: expected {kind}, got {value!r} ({self._returns()}){instead}"
                )
        if not np.isfinite(reward) and not self.diverged():
            raise ValueError(f"{owner}: {self._not_finite(reward, infos)}")
        return float(reward), bool(terminated)

    def _not_finite(self, reward: Any, infos: dict[str, NDArray[Any]]) -> str:
        """Says which part of a reward is not finite, and where it stands."""
        terms = (term for each in sums_of(type(self.task)).values() for term in weights_of(each))
        for term in terms:
            if not np.isfinite(number := infos.get(info_name(term), np.zeros(()))):
                place = self._lines_of(lambda node: getattr(node, "value", None) == term)  # noqa: B023
                return f"the reward term {term!r} is not finite: {number} ({place})"
        return f"the reward is not finite: {reward} ({self._returns()})"

    def _returns(self) -> str:
        """Where step returns."""
        return self._lines_of(lambda node: isinstance(node, ast.Return))

    def _lines_of(self, wanted: Callable[[ast.AST], bool]) -> str:
        """Where step has such code; where it begins if it has none."""
        step = inspect.unwrap(type(self.task).step)
        lines, first = inspect.getsourcelines(step)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        at = {first - 1 + getattr(node, "lineno", 1) for node in ast.walk(tree) if wanted(node)}
        return ", ".join(show_place(inspect.getfile(step), line) for line in sorted(at or {first}))

    def _control(self) -> None:
        if self.task.moves_mocap:
            parts = (self.data.ctrl, self.data.mocap_pos, self.data.mocap_quat)
            ctrl = np.concatenate([part.ravel() for part in parts])
            self._call("control", action=self._action, ctrl=ctrl)
            ends = np.cumsum([part.size for part in parts])
            for part, new in zip(parts, np.split(ctrl, ends[:-1]), strict=True):
                part.flat = new
        elif hasattr(type(self.task), "control"):
            self._call("control", action=self._action, ctrl=self.data.ctrl)
        elif np.ndim(self._action) == 1 and len(self._action) == self.task.model.nu:
            self.data.ctrl[:] = self._action

    @functools.wraps(Task.simulate)  # a wrong argument's TypeError names what the task has called
    def _simulate(self, data: Any, ctrl: Any = None, nstep: int = 0) -> None:
        task = self.task
        self._check_types()
        if ctrl is not None or nstep > 0:
            if ctrl is not None:
                data.ctrl[:] = ctrl
            mujoco.mj_step(task.model, data, nstep or task.frame_skip)
        else:
            every = task.control_every or task.frame_skip
            for done in range(0, task.frame_skip, every):
                self._control()
                mujoco.mj_step(task.model, data, min(every, task.frame_skip - done))
        if task.external_forces:
            mujoco.mj_rnePostConstraint(task.model, data)
        if task.up_to_date:
            mujoco.mj_step1(task.model, data)

    def _observe(self) -> dict[str, NDArray[Any]]:
        obs = self._writer("obs")
        self._call("observation", obs=obs)
        return obs.arrays()

    def _run_around(self, hook: str, when: int, info: Any = None, row: Any = None) -> None:
        """Runs the code before (0) or after (1) a method, for what the task declares."""
        self._around[hook][when](self.task, self.data, self.np_random, info, row)

    # ---- helpers -----------------------------------------------------------------------------

    def _learn(self, layout: Layout | None) -> None:
        """Takes the layout of what the task writes; None: a first run is to find it out."""
        self._layout = layout
        task, obs = self.task, None if layout is None else layout.obs
        if obs is not None:
            with placed(type(task), "observation_noise"):
                noise = noise_parts(task.observation_noise, obs, type(task).__name__)
            if size := noise_size(noise):
                task._fields[NOISE] = Memory(size)
                object.__setattr__(task, NOISE, np.zeros(size))
        self._around = {
            hook: (_function_of(before), _function_of(after))
            for hook, (before, after) in code_around(task, obs).items()
        }

    def _set_passive(self, passive: bool) -> None:
        """Has the engine leave actuators out, or not; only of tasks whose resets do."""
        if self.task._resets_passively:
            flag = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
            self.task.model.opt.disableflags = self._disabled | flag * passive

    def diverged(self) -> bool:
        """Whether the engine met a bad number, or the state holds one (as Workspace::Diverged)."""
        if any(self.data.warning[warning].number for warning in _BAD):
            return True
        state = np.concatenate([self.data.qpos, self.data.qvel])
        return not bool((np.abs(state) <= MAX_VALUE).all())

    def _checked(self, action: Any) -> Any:
        if isinstance(self.action_space, gymnasium.spaces.Discrete):
            return int(action)
        action = np.array(action, self.action_space.dtype)
        if action.shape != self.action_space.shape:
            raise ValueError(
                f"action: expected {self.action_space.shape} {action.dtype}, got {action.shape}"
            )
        return action

    def _writer(self, what: str) -> Writer:
        if self._layout is None:
            return Writer(what, None)
        return Writer(what, self._layout.obs if what == "obs" else self._layout.infos)

    def _flat(self, written: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        obs = np.zeros(self.layout.obs_size)
        for name, array in written.items():
            part = self.layout.obs[name]
            obs[part.offset : part.offset + part.size] = array.ravel()
        self._run_around("observation", 1, row=obs)
        return obs

    def _shown(self, raw: NDArray[np.float64]) -> Any:
        flat = raw if self.batch is None else self.batch.observe(raw[None])[0]
        return flat if self.obs_views is None else self.obs_views.of(flat)

    def _finish(
        self,
        batch: BatchFunctions,
        raw: NDArray[np.float64],
        reward: float,
        terminated: bool,
        infos: dict[str, Any],
    ) -> tuple[float, bool]:
        """A step's results by the functions of the batch, which is this one; adds their infos."""
        columns = {name: np.asarray(value)[None] for name, value in infos.items()}
        action = np.asarray(self._action)[None]
        numbers = np.array([reward]), np.array([terminated])
        rewards, ends, added = batch.finish(raw[None], action, *numbers, columns)
        infos |= {name: values[0] for name, values in added.items()}
        return float(rewards[0]), bool(ends[0])

    def _filled(self, written: dict[str, NDArray[Any]], *, always: bool) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for name, part in self.layout.infos.items():
            if part.always or not always:
                array = written.get(name, np.zeros(part.shape)).astype(part.dtype)
                infos[name] = array if part.shape else array[()]
        return infos

    def _first_run(self) -> Layout:
        """One reset and one step: typing mistakes and wrong shapes are ordinary tracebacks here."""
        task = self.task
        self.np_random = np.random.default_rng(0)
        of_reset = self._reset()
        obs = self._observe()
        if not obs:
            place = _begin(type(task).observation)
            raise ValueError(
                f"{place}: {type(task).__name__}.observation writes nothing into obs: "
                f"obs['name'] = numbers"
            )
        action = np.zeros(self.action_space.shape or (), self.action_space.dtype)
        if isinstance(self.action_space, gymnasium.spaces.Box):
            action = np.clip(action, self.action_space.low, self.action_space.high)
        _, _, of_step = self._step(action)
        owner = f"{_begin(type(task).step)}: {type(task).__name__}"
        layout = Layout(obs_parts(obs), info_parts(of_reset, of_step, owner))
        self._learn(layout)
        self._observe()  # of the same sizes
        self._forget(lasting=True)
        return layout

    def _first_batch(self) -> BatchFunctions:
        """The same for the functions of the batch: where the first run has ended."""
        raw = self._flat(self._observe())
        batch = BatchFunctions(self.task, self.layout, raw)
        infos = self._filled({}, always=False)
        self._finish(batch, raw, 0.0, False, infos)
        return batch


def _function_of(code: str) -> Callable[..., None]:
    """Code around a method as a function."""
    space: dict[str, Any] = {"exp": np.exp}
    lines = [f"def around(self, data, rng, info, {ROW}):", *code.splitlines(), "return"]
    exec("\n    ".join(lines), space)
    around: Callable[..., None] = space["around"]
    return around


def _begin(method: Any) -> str:
    """Where a method begins."""
    code = inspect.unwrap(method).__code__
    return show_place(code.co_filename, code.co_firstlineno)


def own_fields(task: Any) -> Fields:
    """Where a task's ``randomise`` and ``model_fields`` stand in a row: behind its memory."""
    at = mujoco.mj_stateSize(task.model, mujoco.mjtState.mjSTATE_INTEGRATION)
    at += sum(field.size or 1 for field in task._fields.values() if isinstance(field, Memory))
    fields = []
    for name in task.randomise:
        array = getattr(task.model, name)
        fields.append((name, at, array.shape))
        at += doubles(array)
    return fields
