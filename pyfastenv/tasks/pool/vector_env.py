"""TaskVectorEnv: a pool of an own task's environments."""

from __future__ import annotations

import copy as copying
import inspect
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from mujoco import mj_stateSize, mjtState
from numpy.typing import ArrayLike, NDArray

from pyfastenv import _core
from pyfastenv.tasks.compiler.native import NativeTask
from pyfastenv.tasks.language.commands import MOTION, check_command_name, command_values
from pyfastenv.tasks.language.curricula import values_of
from pyfastenv.tasks.language.fields import Command, Drawn, count_name, given_name, held_name
from pyfastenv.tasks.language.find import load_task
from pyfastenv.tasks.language.layout import Layout
from pyfastenv.tasks.language.places import Place
from pyfastenv.tasks.language.randomise import NARROW
from pyfastenv.tasks.language.symmetry import Mirror, flat_symmetry
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.batched_core import STEPPED, BatchedCore
from pyfastenv.tasks.pool.explain import explain
from pyfastenv.tasks.pool.plain import own_fields
from pyfastenv.tasks.pool.program import program_of
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.obs_views import ObsViews
from pyfastenv.vector.rendering import RENDER_KWARGS, RenderThread, State, Told, make_model_renderer
from pyfastenv.vector.vector_env import FastVectorEnv

# what FastVectorEnv itself takes; everything else is the task's
POOL_ARGUMENTS = (
    *(
        name
        for name, parameter in inspect.signature(FastVectorEnv.__init__).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ),
    *RENDER_KWARGS,
)


class TaskVectorEnv(FastVectorEnv):
    """Many environments of a task; all of :class:`FastVectorEnv`.

    Args:
        task: The class, or ``"module:Class"``.
        num_envs: How many environments.
        **kwargs: The task's parameters, and the keyword arguments of :class:`FastVectorEnv`.

    Attributes:
        task: An instance with these parameters, in plain Python.
    """

    def __init__(self, task: type[Task] | str, num_envs: int = 1, **kwargs: Any):
        given = {"task": task, "num_envs": num_envs, **kwargs}
        loaded = load_task(task)
        with _core.DefaultFloats():  # the model is compiled here, and stepped
            self._begin(loaded, num_envs, kwargs)
        self._arguments = given

    def _begin(self, task: type[Task], num_envs: int, kwargs: dict[str, Any]) -> None:
        pool = {name: kwargs.pop(name) for name in POOL_ARGUMENTS if name in kwargs}
        if shadowed := pool.keys() & set(task._parameter_names()):
            raise TypeError(
                f"{min(shadowed)}: {task.__name__}'s parameter has the name of an option of "
                "make_vec: call it something else"
            )
        if "max_episode_steps" in pool and pool["max_episode_steps"] is None:
            del pool["max_episode_steps"]
        self.task = task(**kwargs)
        program = program_of(self.task)
        self._layout = program.layout
        self.obs_views = program.obs_views
        self._batch = program.batch
        if self._batch is not None and pool.get("pixels") is not None:
            raise ValueError(
                f"pixels: {task.__name__} has functions of the whole batch, whose observations are "
                "made after the step: expected a task without them"
            )
        self._task = program.description()
        self.task_facts = program.facts
        self._places = program.fields()
        self._explain = _Explainer(self, program.moved)
        self._action_dtype = np.dtype(self.task.action_dtype).type
        super().__init__(task.__name__, num_envs, **pool)

    @property
    def observation_groups(self) -> dict[str, slice]:
        """Where each ``obs["name"]`` of the task stands in an observation."""
        shown = self._layout.obs if self._batch is None else self._batch.shown
        return {name: slice(part.offset, part.offset + part.size) for name, part in shown.items()}

    @property
    def symmetry(self) -> tuple[Mirror, Mirror]:
        """How flat observations and actions mirror left to right, by the task's ``symmetry(self)``.

        Raises:
            ValueError: The task does not say it, or not of an observation that is shown.
        """
        if not hasattr(self.task, "symmetry"):
            raise ValueError(
                f"{self.env_id} has no method symmetry(self), which says how it mirrors"
            )
        if not isinstance(space := self.single_action_space, gymnasium.spaces.Box):
            raise ValueError(f"{self.env_id}.symmetry: expected actions of a Box, got {space}")
        views = self.obs_views.views if isinstance(self.obs_views, ObsViews) else {}
        seen = np.full(self.obs_size, not views)
        for view in views.values():
            seen[view.place] = True
        said, size = self.task.symmetry(), math.prod(space.shape)
        return flat_symmetry(said, self.observation_groups, seen, size, self.env_id)

    # ---- commands ----------------------------------------------------------------------------

    @property
    def command_ranges(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """The least and the greatest that a command is drawn or sampled from, by its name.

        Each is ``(size,)``, or ``(1,)`` of a number. Where a curriculum moves the range, it is that
        of all environments together, now.

        Raises:
            BusyError: Environments have been sent, and a curriculum moves one.
        """
        found = {}
        for name, field in self._commands().items():
            owner, prefix = (self.task, f"{name}_") if isinstance(field, Drawn) else (field, "")
            low, high = (getattr(owner, prefix + side) for side in ("low", "high"))
            if isinstance(field, Drawn) and field.curriculum:
                rows = self._stages(field.curriculum)
                low, high = low[rows].min(0), high[rows].max(0)
            size = (field.size or 1,)
            found[name] = np.full(size, low), np.full(size, high)
        return found

    def _commands(self) -> dict[str, Command | Drawn]:
        fields = self.task._fields.items()
        return {n: each for n, each in fields if isinstance(each, Command | Drawn) and n[0] != "_"}

    def _stages(self, curriculum: str) -> NDArray[np.int64]:
        """The whole parts of a curriculum's values, of all environments."""
        count, value = (self._memory(each)[:, 0] for each in (count_name(curriculum), curriculum))
        first, last = values_of(curriculum, self.task, first=True)
        fresh = np.arange(int(first), int(last) + 1 if (count == 0.0).any() else 0)
        return np.union1d(value[count > 0.0].astype(np.int64), fresh)

    def _memory(self, name: str) -> NDArray[np.float64]:
        """The environments' memories of a name, ``(num_envs, size)``."""
        at = mj_stateSize(self.task.model, mjtState.mjSTATE_INTEGRATION) + self._places[name].offset
        return self._rows()[:, at : at + math.prod(self._places[name].shape or (1,))]

    @property
    def command_elements(self) -> dict[str, tuple[str, ...]]:
        """The names of a command's numbers, by its own: ``("forward", "turning")``.

        Where the task does not say it, ``("speed",)`` or ``("velocity[0]", "velocity[1]")``.
        """
        found = {}
        for name, field in self._commands().items():
            numbered = [f"{name}[{i}]" for i in range(field.size or 0)] or [name]
            found[name] = field.names or tuple(numbered)
        return found

    def get_command(self, name: str) -> NDArray[np.float64]:
        """The environments' values of a command, ``(num_envs, size)`` or ``(num_envs,)``.

        Of one that environments draw: those that are in force, drawn or held.

        Raises:
            ValueError: The task has no such command. BusyError: Environments have been sent.
        """
        check_command_name(self.task._fields, name, self.env_id)
        field, tasks = self.task._fields[name], self.get_task()
        if not isinstance(field, Drawn):
            return tasks[:, self._columns(name)].reshape(-1, *self._shape(name))
        held = tasks[:, self._columns(held_name(name))] > 0.0
        values = np.where(held, tasks[:, self._columns(given_name(name))], self._memory(name))
        return values.reshape(-1, *self._shape(name))

    def set_command(
        self, name: str, values: ArrayLike | None, env_ids: ArrayLike | None = None
    ) -> None:
        """Holds a command at values from the next step on, episode after episode.

        The observation after that step is the first to show them.

        Args:
            name: The command's.
            values: ``(n, size)``, or ``(size,)`` for all alike; of a number ``(n,)``, or a number.
                None: one that environments draw is drawn again, when it is due.
            env_ids: ``(n,)`` ints; None means all.

        Raises:
            ValueError: The task has no such command, values of another shape or that are not
                finite, or None for a command that nobody draws. IndexError: An unknown id.
        """
        check_command_name(self.task._fields, name, self.env_id)
        drawn = isinstance(self.task._fields[name], Drawn)
        if values is None and not drawn:
            raise ValueError(f"values: {name} is not drawn by the environments: expected numbers")
        tasks = self.get_task()
        ids = np.arange(self.num_envs) if env_ids is None else np.asarray(env_ids)
        if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iu":
            raise ValueError(f"env_ids: expected a vector of integers, got {env_ids!r}")
        if unknown := [i for i in ids.tolist() if not 0 <= i < self.num_envs]:
            raise IndexError(f"env_ids: expected 0 to {self.num_envs - 1}, got {unknown[0]}")
        if drawn:
            tasks[ids[:, None], self._columns(held_name(name))] = values is not None
        if values is not None:
            rows = command_values(values, self._shape(name), len(ids))
            columns = self._columns(given_name(name) if drawn else name)
            tasks[ids[:, None], columns] = rows.reshape(len(ids), -1)
        self.reset_task(tasks[ids], ids)

    def sample_tasks(self, n: int, seed: int | None = None) -> NDArray[np.float64]:
        """As :meth:`FastVectorEnv.sample_tasks`, or the task's own ``sample_tasks(self, n, rng)``;
        not of commands that environments draw."""
        if drawn := list(self.task.drawn_commands()):
            raise ValueError(
                f"{self.env_id}: its environments draw {', '.join(drawn)} themselves; set_command "
                f"holds what you want"
            )
        if hasattr(self.task, "sample_tasks"):
            rng = np.random.default_rng(seed)
            return np.asarray(self.task.sample_tasks(integer("n", n, minimum=1), rng), np.float64)
        return super().sample_tasks(n, seed)

    def _told(self, env_ids: Sequence[int]) -> Sequence[Told] | None:
        name = next((n for n, each in self.command_elements.items() if each == MOTION), None)
        return None if name is None else list(self.get_command(name)[list(env_ids)])

    def get_model_field(self, name: str) -> NDArray[np.float64]:
        """As :meth:`FastVectorEnv.get_model_field`; of a field that ``randomise`` draws, or that
        the task itself writes (``model_fields``), what is in force."""
        for field, at, shape in own_fields(self.task):
            if field == name and name not in NARROW:
                return self._rows()[:, at : at + math.prod(shape)].reshape(-1, *shape)
        return super().get_model_field(name)

    def _rows(self) -> NDArray[np.float64]:
        return np.stack([self._core.row(i)[0] for i in range(self.num_envs)])

    def _shape(self, name: str) -> tuple[int, ...]:
        return self._places[name].shape or ()

    def _columns(self, name: str) -> Any:
        """Where a command stands in :meth:`get_task`."""
        place = self._places[name]
        return np.arange(place.offset, place.offset + math.prod(place.shape or (1,)))

    def _make_core(self, **arguments: Any) -> Any:
        if self._batch is None:
            return super()._make_core(**arguments)
        task = arguments["task"]
        arguments["task"] = {**task, "infos": [*task["infos"], STEPPED]}
        return BatchedCore(arguments, self._batch)

    def _state(self, env_id: int) -> State:
        row, fields = super()._state(env_id)
        return row, [*fields, *own_fields(self.task)]

    def new_model(self) -> Any:
        return copying.copy(self.task.model)

    def _make_renderer(self) -> RenderThread:
        return make_model_renderer(self.new_model(), self._render_kwargs)


class _Explainer:
    """Words the failures of compiled methods; holds no environment alive."""

    def __init__(self, envs: TaskVectorEnv, moved: Callable[[], dict[Place, Place]]):
        self._envs = weakref.ref(envs)
        self._moved = moved

    def __call__(
        self,
        env_id: int,
        message: str,
        method: str,
        exception: bytes,
        action: list[float],
        repeatable: bool,
    ) -> str:
        envs = self._envs()
        if envs is None:
            return message
        task = copying.copy(envs.task)
        object.__setattr__(task, "model", copying.copy(envs.task.model))
        layout: Layout = envs._layout
        if isinstance(task, NativeTask):
            repeatable = False
        state, generator = envs._core.row(env_id), envs.generator(env_id)
        what = (message, method, exception, action, repeatable, self._moved)
        return explain(task, layout, state, generator, *what)
