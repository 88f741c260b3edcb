"""A task as the core takes it: compiled once, kept on disk, described in a dict."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache as once
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.compiler import cache
from pyfastenv.tasks.compiler.native import NativeTask
from pyfastenv.tasks.frontend.plain_code import plain_code
from pyfastenv.tasks.frontend.sources import Sources
from pyfastenv.tasks.language.around import code_around
from pyfastenv.tasks.language.batch import has_batch_functions
from pyfastenv.tasks.language.fields import Command, Memory, in_row
from pyfastenv.tasks.language.layout import Field, Layout, obs_views
from pyfastenv.tasks.language.models import model_digest
from pyfastenv.tasks.language.places import Place
from pyfastenv.tasks.language.randomise import NARROW
from pyfastenv.tasks.language.task import PLAIN_METHODS, Task, control_size
from pyfastenv.tasks.pool.plain import PlainEnv, action_space_of

_MISSING = (
    "own tasks are compiled with numba: pip install 'pyfastenv[tasks]'; without it they run in "
    "plain Python: pyfastenv.debug(MyTask)"
)


class Program:
    """A task, ready for the core.

    Args:
        task: An instance.

    Raises:
        TaskCodeError: It cannot be compiled.
        ImportError: There is nothing to compile with.
        Exception: What the task's own methods raise in the first run.
    """

    def __init__(self, task: Task):
        self.task = task
        plain = PlainEnv(task)
        self.layout: Layout = plain.layout
        self.action_space = plain.action_space
        self.obs_views = plain.obs_views
        self.batch = plain.batch
        try:
            self._sources = Sources(task)
        except TaskCodeError as error:
            raise error.with_traceback(None) from None  # where it was found says nothing
        self._digest = self._sources.digest()
        self._params = {**task.params, "init_qpos": task.init_qpos, "init_qvel": task.init_qvel}
        self._model_digest = model_digest(task.model)

    def description(self) -> dict[str, Any]:
        """The ``task`` that ``_core.VectorEnv`` takes."""
        task, model = self.task, self.task.model
        code = self._linked_code()
        functions = code.addresses
        discrete = isinstance(self.action_space, gymnasium.spaces.Discrete)
        space: Any = self.action_space
        infos = [
            (name, part.always, part.dtype, part.size if part.shape else None)
            for name, part in self.layout.infos.items()
        ]
        seen = (*code.reads, *code.reset_reads)
        commands = [
            (name, field.size or 1, field.low, field.high)
            for name, field in task._fields.items()
            if isinstance(field, Command)
        ]
        memories = [each for each in task._fields.values() if isinstance(each, Memory)]
        return {
            "name": type(task).__name__,
            "identity": "".join(self.facts.values()),
            "model": model._address,
            "cameras": any(name.startswith(("cam_", "light_")) for name in seen),
            "frame_skip": task.frame_skip,
            "control_every": task.control_every or 0,
            "max_episode_steps": task.max_episode_steps or 0,
            "external_forces": bool(task.external_forces),
            "up_to_date": bool(task.up_to_date),
            "passive_reset": task._resets_passively,
            "moves_mocap": bool(task.moves_mocap),
            "reads": list(code.reads),
            "action_dtype": np.dtype(task.action_dtype).name,
            "num_actions": int(space.n) if discrete else 0,
            "action_low": [] if discrete else space.low.astype(float).tolist(),
            "action_high": [] if discrete else space.high.astype(float).tolist(),
            "obs_size": self.layout.obs_size,
            "memory_size": sum(each.size or 1 for each in memories),
            "lasting_size": sum(each.size or 1 for each in memories if each.lasting),
            "params": self._packed_params(),
            "infos": infos,
            "commands": commands,
            "draws": [(n, *draw[:4]) for n, draw in task.randomise.items() if n not in NARROW],
            "own_narrow": [name for name in task.randomise if name in NARROW],
            "reset": functions["reset"],
            "control": functions.get("control", 0),
            "step": functions["step"],
            "observation": functions["observation"],
        }

    def moved(self) -> dict[Place, Place]:
        """Where the places that the compiled code names are now in the user's files."""
        linked = cache.linked(self._key())
        return {} if linked is None else self._sources.moved(linked.places)

    # ---- code --------------------------------------------------------------------------------

    def _linked_code(self) -> cache.Linked:
        try:
            key = self._key()
        except ImportError as error:
            raise ImportError(_MISSING) from error
        linked = cache.linked(key)
        if linked is not None:
            return linked
        code = cache.load(key)
        if code is not None:
            with suppress(cache.LinkError):  # it needs numba's own run time
                return cache.link(key, code)
        code = self._compile()
        cache.store(key, code)
        return cache.link(key, code)

    def _compile(self) -> cache.TaskCode:
        try:
            from pyfastenv.tasks.compiler.build import compile_task
        except ImportError as error:
            raise ImportError(_MISSING) from error
        discrete = isinstance(self.action_space, gymnasium.spaces.Discrete)
        dtype = None if discrete else np.dtype(self.task.action_dtype).name
        size = 1 if discrete else int((self.action_space.shape or (1,))[0])
        return compile_task(self.task, self._sources, self.layout, self.fields(), (dtype, size))

    def fields(self) -> dict[str, Field]:
        """Where the task's attributes stand."""
        fields, offsets = {}, {"params": 0, "memory": 0, "command": 0}
        for name, value in self._params.items():
            shape = np.shape(value) if isinstance(value, np.ndarray) else None
            kind = "bool" if isinstance(value, bool) else np.asarray(value).dtype.name
            fields[name] = Field("params", offsets["params"], shape, kind)
            offsets["params"] += _packed(value).size
        for name, field in in_row(self.task._fields).items():
            section = "memory" if isinstance(field, Memory) else "command"
            shape = None if field.size is None else (field.size,)
            fields[name] = Field(section, offsets[section], shape, "float64")
            offsets[section] += field.size or 1
        return fields

    def _packed_params(self) -> Any:
        """All parameters, one behind the other."""
        return np.concatenate([_packed(value) for value in self._params.values()])

    def _key(self) -> str:
        """A hash of everything that the machine code depends on."""
        return hashlib.sha256("\n".join(self._code_facts().values()).encode()).hexdigest()[:40]

    def _code_facts(self) -> dict[str, str]:
        task = self.task
        around = code_around(task, self.layout.obs)
        space = (self.action_space.shape, self.action_space.dtype)
        own = sorted(name for name, draw in task.randomise.items() if draw.kind == "own")
        return {
            "its code": self._digest,
            "its observations, infos, actions or memory": repr(
                (sorted(self.fields().items()), around, self.layout, space)
            ),
            "its settings": repr((control_size(task), bool(task.external_forces), own)),
            "its model": self._model_digest,
            "the processor": cache.host(),
            "a version (pyfastenv, MuJoCo, NumPy, Numba)": f"{_versions()}{_compiler_digest()}",
        }

    @cached_property
    def facts(self) -> dict[str, str]:
        """Hashes of what snapshots must agree on, by what it is."""
        others = {
            "its parameters": f"{self._packed_params().tobytes()!r}{self.task.randomise}",
            "its settings": repr(self._settings()),
            "its methods in plain Python": plain_code(type(self.task), PLAIN_METHODS),
        }
        facts = {**self._code_facts(), **others}
        return {name: hashlib.sha256(fact.encode()).hexdigest() for name, fact in facts.items()}

    def _settings(self) -> tuple[Any, ...]:
        """The class's settings and what it declares, but for what other facts have."""
        task = self.task
        space: Any = self.action_space
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        bounds = (space.start, space.n) if discrete else (space.low.tolist(), space.high.tolist())
        return (
            *(task.control_every or 0, task.max_episode_steps or 0, bool(task.external_forces)),
            *(bool(task.up_to_date), task._resets_passively, bool(task.moves_mocap)),
            *(sorted(task.model_fields), np.dtype(task.action_dtype).name, bounds),
            *(self.obs_views and self.obs_views.views, sorted(task._fields.items())),
        )


def _packed(value: Any) -> Any:
    """A parameter in numbers of eight bytes: whole numbers keep their bits, masks a byte each."""
    array = np.ravel(np.asarray(value))
    if isinstance(value, np.ndarray) and array.dtype == np.bool_:
        return np.pad(array, (0, -array.size % 8)).view(np.float64)
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64).view(np.float64)


class NativeProgram(Program):
    """The same of a task in C++ (pyfastenv.tasks.compiler.native), whose code is there already.

    Raises:
        ValueError: A setting that C++ does not have.
    """

    def __init__(self, task: NativeTask):
        owner = type(task).__name__
        if np.dtype(task.action_dtype) != np.float64:
            raise ValueError(f"{owner}.action_dtype: a task in C++ has float64, got another")
        if has_batch_functions(type(task)):
            raise ValueError(f"{owner}: functions of the batch are for tasks in Python")
        self.task = task
        self._native = task._native
        self.layout = task._native.layout
        self.action_space = action_space_of(task)
        self.obs_views = obs_views(self.layout.obs, task.observation_dict, owner)
        self.batch = None
        if task.observation_noise:
            raise ValueError(f"{owner}.observation_noise: a task in C++ adds its own")
        if task._parts_drawn:
            raise ValueError(
                f"{owner}.randomise: a task in C++ draws whole fields, once per episode"
            )
        params = {name: float(getattr(task, name)) for name in task._native.parameters}
        self._params = {**params, "init_qpos": task.init_qpos, "init_qvel": task.init_qvel}
        self._model_digest = model_digest(task.model)

    def _linked_code(self) -> cache.Linked:
        reads = self._native.reads
        if reads == ("*",):
            reads = ("all of mjData (for want of TaskCode::reads)",)
        return cache.Linked(self._native.addresses, reads, (), [], self._native)

    def moved(self) -> dict[Place, Place]:
        return {}

    def _code_facts(self) -> dict[str, str]:
        return {"its code": self._native.identity, "its model": self._model_digest}


def program_of(task: Task) -> Program:
    """A task's program, whatever it is written in."""
    return NativeProgram(task) if isinstance(task, NativeTask) else Program(task)


@once
def _versions() -> tuple[str, ...]:
    return version("numba"), version("llvmlite"), np.__version__, mujoco.__version__


@once
def _compiler_digest() -> str:
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
