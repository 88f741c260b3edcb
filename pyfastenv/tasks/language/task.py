"""Task: what a user's class derives from. It says what one environment is; others run it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from pyfastenv.tasks.language.commands import COMMAND_SETTINGS, check_command, setting_name
from pyfastenv.tasks.language.curricula import (
    check_curriculum,
    curriculum_settings,
    range_error,
    values_of,
)
from pyfastenv.tasks.language.fields import Command, Curriculum, Drawn, Memory, parts_of
from pyfastenv.tasks.language.places import place_in_class, placed
from pyfastenv.tasks.language.randomise import check_randomise, parts_drawn
from pyfastenv.tasks.language.rewards import sums_of, weight_name, weights_of
from pyfastenv.tasks.language.spelling import did_you_mean, misspelt

# what a method may ask for, by the names of its parameters
METHODS = {
    "reset": ("data", "rng", "info"),
    "control": ("data", "action", "ctrl"),
    "step": ("data", "action", "rng", "info"),
    "observation": ("data", "obs"),
}
# those that stay Python and get all environments of a call at once
BATCH_METHODS = {
    "batch_step": ("obs", "action", "reward", "terminated", "info"),
    "batch_observation": ("obs",),
}
# … and others that trainers call, which are no parts of an environment
PLAIN_METHODS = (*BATCH_METHODS, "compute_reward", "sample_tasks", "symmetry")
# attributes that shape the environment; every other one is a parameter of the task's own
SETTINGS = (
    "model",
    "frame_skip",
    "control_every",
    "max_episode_steps",
    "external_forces",
    "up_to_date",
    "passive_reset",
    "moves_mocap",
    "model_fields",
    "action_space",
    "action_dtype",
    "observation_dict",
    "randomise",
    "observation_noise",
)
# every name with a meaning of its own
_WORDS = {*METHODS, *BATCH_METHODS, *SETTINGS, "setup", "simulate", "dt", "init_qpos", "init_qvel"}
# what a task reads from its model, and what says it otherwise
_INSTEAD = {
    "dt": "a step is frame_skip times the model's timestep",
    "init_qpos": "reset writes data.qpos[:] = …",
    "init_qvel": "reset writes data.qvel[:] = …",
}


class Task:
    """Describes one environment: its model, and what happens in it. Subclass it to make your own.

    A subclass says it in MuJoCo's own Python vocabulary. Methods take what they name, in any order;
    in plain Python ``data`` is a ``mujoco.MjData`` and ``rng`` a ``numpy.random.Generator``, and
    compiled the same names mean the same numbers.

    - ``reset(self, data, rng, info)`` draws an episode's start. ``mj_forward`` follows; call
      ``mujoco.mj_forward(self.model, data)`` to read what it computes.
    - ``step(self, data, action, rng, info)`` calls :meth:`simulate` and returns reward and
      terminated. What it reads before ``simulate`` is the state (``qpos``, ``qvel``, ``time`` …);
      everything else is only known afterwards.
    - ``observation(self, data, obs)`` writes ``obs["name"] = numbers``.
    - ``control(self, data, action, ctrl)``, where the controls are not the action itself, writes
      ``ctrl``. ``self.simulate(data)`` asks for it, and again every ``control_every`` substeps;
      the pool may ask before. It reads ``data``'s time, ``qpos`` and ``qvel``, and changes nothing
      else.
    - ``batch_step(self, obs, action, reward, terminated, info)`` and
      ``batch_observation(self, obs)``, for what cannot be compiled, are plain Python (NumPy, torch
      …): once per call of the pool, with a row per environment. ``obs`` is what ``observation``
      has written, by name. The one returns rewards ``(n,)`` and terminated ``(n,)``, and may add
      infos; the other the observation that is shown, an array ``(n, …)`` or a dict of them. They
      keep nothing, and treat every row alike.
    - ``sample_tasks(self, n, rng)``, where commands are not uniform, is plain Python: it returns n
      tasks for ``reset_task``, ``(n, size)``.
    - ``symmetry(self)``, for trainers that learn from mirrored steps too, is plain Python:
      :mod:`pyfastenv.tasks.language.symmetry`.
    - ``setup(self)`` runs once, in plain Python, with ``self.model``: ids, constants.

    Class attributes that are numbers, or arrays of them, are parameters: keyword arguments of
    ``make_vec``, read in methods as ``self.name``, constant while an environment lives.

    Attributes:
        model: A path, XML text, ``mujoco.MjSpec``, ``MjModel``, or a function that makes one: of
            nothing, or of ``self``, whose parameters it may read; in an instance the ``MjModel``.
        frame_skip: Substeps in a step.
        control_every: Substeps between calls of ``control``; None: once per step.
        max_episode_steps: Where episodes are truncated; None: never.
        external_forces: Have ``cfrc_ext``, ``cfrc_int`` and ``cacc`` computed after ``simulate``.
        up_to_date: After ``simulate`` what depends on positions and velocities (body poses, their
            sensors, contacts …) is the new state's; False: its last substep's, as in gymnasium.
            dm_control's way: ``mj_step1`` follows, and a reset's physics leaves actuators out
            (``passive_reset = False``: it does not).
        moves_mocap: ``control``'s ``ctrl`` has, behind the actuators' numbers, the places of all
            mocap bodies ``(nmocap, 3)`` and then their orientations ``(nmocap, 4)``; lanes know
            them in time, which they do not if ``step`` writes ``data.mocap_pos``.
        model_fields: Names of arrays of the model that each environment has for itself: the
            model's own when an episode starts, then what methods write into ``self.model``. Of
            reals; or ``hfield_data``; or ``geom_type``, whose kinds may be 2 (sphere) to 6 (box).
        action_space: None means a Box with the actuators' ``ctrlrange``; else a Box or Discrete.
        action_dtype: Of a Box: ``"float64"``, or ``"float32"`` as gymnasium's are.
        observation_dict: None (or False): observations are flat, one Box. True: a Dict space with
            an entry per name. Or a dict, entry -> name or names, such as ``{"policy": ("gyro",
            "joints"), "critic": ("gyro", "joints", "load")}``; several names must be written
            one behind the other, entries may share them. All are views of the same flat row.
        randomise: Physics drawn anew by every episode: :mod:`pyfastenv.tasks.language.randomise`.
            False: none.
        observation_noise: Noise by observations' names: :mod:`pyfastenv.tasks.language.noise`.
            False: none.
        dt: A step's length [s].
        init_qpos: ``(nq,)``, the model's.
        init_qvel: ``(nv,)``, the model's.
    """

    model: Any = None
    frame_skip: int = 1
    control_every: int | None = None
    max_episode_steps: int | None = 1000
    external_forces: bool = False
    up_to_date: bool = False
    passive_reset: bool = True
    moves_mocap: bool = False
    model_fields: Any = ()
    action_space: Any = None
    action_dtype: Any = "float64"
    observation_dict: Any = None
    randomise: Any = None
    observation_noise: Any = None

    dt: float
    init_qpos: Any
    init_qvel: Any

    # what a subclass has; with the arguments that it names
    reset: Any
    step: Any
    observation: Any
    batch_step: Any
    batch_observation: Any

    def __init_subclass__(cls, **arguments: Any):
        super().__init_subclass__(**arguments)
        for term, weight in weights_of(getattr(cls, "step", None)).items():
            name = weight_name(term)
            if name not in vars(cls) and ("step" in vars(cls) or not hasattr(cls, name)):
                setattr(cls, name, weight)
        for command in dir(cls):
            field = inspect.getattr_static(cls, command)
            for setting in settings_of(field):
                name = setting_name(command, setting)
                if name not in vars(cls) and (command in vars(cls) or not hasattr(cls, name)):
                    setattr(cls, name, getattr(field, setting))

    def __init__(self, **arguments: Any):
        from pyfastenv.tasks.language.models import load_model

        cls = type(self)
        for name in ("reset", "step", "observation"):
            if not callable(getattr(cls, name, None)):
                own = [each for each in self._own_names() if each not in _WORDS]
                raise TypeError(
                    f"{place_in_class(cls)}{cls.__name__} needs a method {name}(self, …)"
                    f"{did_you_mean(name, own, 0.6)}"
                )
        known = sorted({*SETTINGS, *self._parameter_names()})
        for name, value in arguments.items():
            if name not in known:
                raise TypeError(
                    f"{cls.__name__}: no argument {name!r}; there are {', '.join(known)}"
                    f"{did_you_mean(name, known)}"
                )
            if isinstance(value, float) and np.isnan(value):
                raise ValueError(f"{cls.__name__}.{name}: expected a number, got {value}")
            object.__setattr__(self, name, value)
        self.model = load_model(self._model_source(), source_folder(cls), cls.__name__)
        self._check_settings()
        randomise = self.randomise
        with placed(cls, "randomise"):
            self.randomise = check_randomise(randomise, self.model_fields, self.model, cls.__name__)
        self.dt = self.model.opt.timestep * self.frame_skip
        self.init_qpos, self.init_qvel = _initial_state(self.model)
        declared = {name: inspect.getattr_static(cls, name) for name in dir(cls)}
        self._fields: dict[str, Memory | Command] = {
            part: each
            for name, value in declared.items()
            if isinstance(value, Memory | Command)
            for part, each in parts_of(name, value).items()
        }
        self._fields |= {n: Memory(1 + len(weights_of(s))) for n, s in sums_of(cls).items()}
        self.setup()
        with placed(cls, "randomise"):
            self._parts_drawn = parts_drawn(randomise, self.model, cls.__name__)
        self._fields |= {part.until: Memory(None) for part in self._parts_drawn if part.draw.every}
        self._check_timestep()
        self._check_spelling()
        curricula_first = sorted(self._fields.items(), key=lambda item: isinstance(item[1], Drawn))
        for name, field in curricula_first:
            given = {each: getattr(self, setting_name(name, each)) for each in settings_of(field)}
            checked: dict[str, Any] = {}
            with placed(cls, name):
                if isinstance(field, Drawn):
                    values = self._values_of(field)
                    checked = check_command(name, field, given, cls.__name__, values)
                elif isinstance(field, Curriculum):
                    checked = check_curriculum(name, field, given, cls.__name__)
            for each, value in checked.items():
                object.__setattr__(self, setting_name(name, each), value)
        self.params = self._read_params()
        for name, value in self.params.items():
            object.__setattr__(self, name, value)
        for name, field in self._fields.items():
            object.__setattr__(self, name, 0.0 if field.size is None else np.zeros(field.size))
        self._ready = True

    def setup(self) -> None:
        """Runs once, in plain Python, when ``self.model`` is there."""

    def simulate(self, data: Any, ctrl: Any = None, nstep: int = 0) -> None:
        """Runs the physics.

        Args:
            data: The method's own.
            ctrl: None means those of ``control`` (or the action), asked for again every
                ``control_every`` substeps; else ``(nu,)`` controls.
            nstep: Substeps with these controls; 0 means ``frame_skip``.
        """
        raise RuntimeError("simulate belongs into step: it is not for setup, reset or observation")

    def _model_source(self) -> Any:
        """The argument ``model``, or what the class says; a method is called."""
        if "model" in vars(self):
            return vars(self)["model"]
        source = type(self).model
        if inspect.isfunction(source) and inspect.signature(source).parameters:
            return source(self)
        return source

    # ---- what the pool asks ------------------------------------------------------------------

    @property
    def _resets_passively(self) -> bool:
        """Whether the physics of resets leaves actuators out."""
        return bool(self.up_to_date and self.passive_reset)

    def drawn_commands(self) -> dict[str, Drawn]:
        """The commands that environments draw for themselves."""
        return {name: each for name, each in self._fields.items() if isinstance(each, Drawn)}

    def curricula(self) -> dict[str, Curriculum]:
        """The numbers that make it harder."""
        return {name: each for name, each in self._fields.items() if isinstance(each, Curriculum)}

    def _values_of(self, command: Drawn) -> tuple[float, float] | None:
        """The least and the greatest value of the curriculum that moves a command's range."""
        name, known = command.curriculum, self.curricula()
        if name is not None and name not in known:
            raise ValueError(
                f"{type(self).__name__} has no curriculum {name!r}; there are "
                f"{', '.join(known) or 'none'}"
            )
        return None if name is None else values_of(name, self)

    @classmethod
    def _own_names(cls) -> list[str]:
        """The names that subclasses have, in the order of writing."""
        bases = [each for each in cls.__mro__ if each not in (Task, object)]
        names = dict.fromkeys(name for base in reversed(bases) for name in vars(base))
        return [name for name in names if not name.startswith("_")]

    @classmethod
    def _parameter_names(cls) -> list[str]:
        own = [n for n in dir(cls) if not n.startswith("_") and n not in SETTINGS]
        return [
            n
            for n in own
            if not callable(value := inspect.getattr_static(cls, n))
            and not isinstance(value, Memory | Command | property | staticmethod | classmethod)
        ]

    def _read_params(self) -> dict[str, Any]:
        """Attributes that are numbers, and tuples, lists and arrays of numbers as arrays."""
        params: dict[str, Any] = {"dt": float(self.dt), "frame_skip": int(self.frame_skip)}
        names = {*self._parameter_names(), *vars(self)} - {*SETTINGS, *self._fields}
        for name in sorted(n for n in names if not n.startswith("_")):
            value = getattr(self, name)
            if isinstance(value, bool | np.bool_):
                params[name] = bool(value)
            elif isinstance(value, int | np.integer):
                params[name] = int(value)
            elif isinstance(value, float | np.floating):
                params[name] = float(value)
            elif isinstance(value, tuple | list | np.ndarray):
                array = np.asarray(value)
                if array.dtype.kind in "biuf" and array.size > 0:
                    kinds = {"f": np.float64, "b": np.bool_}
                    params[name] = np.array(array, kinds.get(array.dtype.kind, np.int64))
                    params[name].flags.writeable = False
        return params

    def _check_timestep(self) -> None:
        cls = type(self)
        if self.dt != self.model.opt.timestep * self.frame_skip:
            raise ValueError(
                f"{place_in_class(cls, 'setup')}{cls.__name__}.setup changes frame_skip or the "
                f"model's timestep, when dt is known already: the class says the one, and "
                f"the model the other"
            )

    def _check_spelling(self) -> None:
        """Checks the names of attributes, those that setup has added too."""
        cls = type(self)
        names = dict.fromkeys([*self._own_names(), *(n for n in vars(self) if n[:1] != "_")])
        for name in ("dt", "init_qpos", "init_qvel"):
            if any(name in vars(base) for base in cls.__mro__):
                raise ValueError(
                    f"{place_in_class(cls, name)}{cls.__name__}.{name} is read from the model, and "
                    f"no setting: {_INSTEAD[name]}"
                )
        own = [n for n in names if n in SETTINGS or (n not in _WORDS and n not in self._fields)]
        found = misspelt(cls, own, SETTINGS, [*METHODS, *BATCH_METHODS, "setup"])
        if found is not None:
            raise ValueError(
                f"{place_in_class(cls, found[0])}{cls.__name__}.{found[0]} has no meaning; did you "
                f"mean {found[1]}? (a parameter of your own needs a name that differs more)"
            )

    def _check_settings(self) -> None:
        owner = type(self).__name__
        if self.moves_mocap and not hasattr(type(self), "control"):
            raise TypeError(f"{owner}.moves_mocap: expected a method control(self, data, …), too")
        for name, least in (("frame_skip", 1), ("control_every", 1), ("max_episode_steps", 0)):
            value = getattr(self, name)
            if name != "frame_skip" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"{owner}.{name}: expected an integer from {least} on, got {value!r}"
                )
        try:
            dtype = np.dtype(self.action_dtype).name
        except TypeError:  # no dtype at all
            dtype = ""
        if dtype not in ("float32", "float64"):
            raise ValueError(
                f"{owner}.action_dtype: expected float64 or float32, got {self.action_dtype!r}"
            )
        for name, known in {**METHODS, **BATCH_METHODS}.items():
            method = getattr(type(self), name, None)
            if method is None:
                continue
            given = list(inspect.signature(method).parameters)
            unknown = [argument for argument in given[1:] if argument not in known]
            has_self = given and given[0] not in known
            if has_self and not unknown:
                continue
            said = f"cannot give {', '.join(unknown)}; a {name} may ask for {', '.join(known)}"
            if not has_self:
                said = "its first argument must be self"
            raise TypeError(f"{place_in_class(type(self), name)}{owner}.{name}: {said}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not getattr(self, "_ready", False):
            object.__setattr__(self, name, value)
            return
        field = self._fields.get(name)
        if isinstance(field, Curriculum) and field.over is None:
            low, high = (getattr(self, setting_name(name, each)) for each in ("low", "high"))
            if not low <= value <= high:
                raise range_error(name, value, low, high)
        if isinstance(field, Memory) and field.size is None:
            object.__setattr__(self, name, float(value))
        elif isinstance(field, Memory):
            raise AttributeError(f"self.{name} is a vector: write self.{name}[:] = …")
        elif isinstance(field, Command):
            raise AttributeError(f"self.{name} is a command: only reset_task sets it")
        else:
            raise AttributeError(
                f"self.{name} cannot be set in a method: it would be shared by all environments; "
                f"what each keeps for itself is declared in the class: {name} = pyfastenv.memory()"
            )


def settings_of(field: Any) -> tuple[str, ...]:
    """The parameters of what a class declares, without its name in front."""
    if isinstance(field, Curriculum):
        return curriculum_settings(field)
    return COMMAND_SETTINGS if isinstance(field, Drawn) else ()


def control_size(task: Task) -> int:
    """How many numbers ``control`` writes."""
    mocap = 7 * int(task.model.nmocap) if task.moves_mocap else 0
    return int(task.model.nu) + mocap


def arguments_of(method: Any) -> list[str]:
    """The names of the arguments that a method asks for."""
    return list(inspect.signature(method).parameters)[1:]


def source_folder(cls: type) -> Path | None:
    """The folder of the file in which a class stands; None if it stands in none."""
    try:
        return Path(inspect.getfile(cls)).resolve().parent
    except (OSError, TypeError):
        return None


def _initial_state(model: Any) -> tuple[Any, Any]:
    import mujoco

    data = mujoco.MjData(model)
    return data.qpos.copy(), data.qvel.copy()
