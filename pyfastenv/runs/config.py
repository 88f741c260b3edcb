"""RunConfig: the options that all algorithms share. An algorithm's Config inherits from it."""

from __future__ import annotations

import os
import types
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch

from pyfastenv.runs.field_types import check_field_types
from pyfastenv.runs.options import (
    BOOKKEEPING,
    MAY_DIFFER,
    NO_SETTING,
    at_least,
    check_bounds,
    marked,
    merged,
)
from pyfastenv.runs.registry import load_logger
from pyfastenv.tasks.language.importing import absolute_place
from pyfastenv.tasks.language.spelling import did_you_mean
from pyfastenv.tasks.pool.make import make_vec
from pyfastenv.vector import specs

_MOST_ENVS = 2**31
# make_vec's arguments that are no property of the environment
_OF_THE_RUN = frozenset(
    {
        "env_id",
        "num_envs",
        "num_threads",
        "engine",
        "autoreset_mode",
        "obs_dtype",
        "copy",
        "infos",
        "render_mode",
    }
)

_HUMANOID = {
    "include_cinert_in_observation": False,
    "include_cvel_in_observation": False,
    "include_qfrc_actuator_in_observation": False,
    "include_cfrc_ext_in_observation": False,
}
# what compact_obs leaves out
_COMPACT: dict[str, dict[str, Any]] = {
    "Ant-v5": {"include_cfrc_ext_in_observation": False},
    "Humanoid-v5": _HUMANOID,
    "HumanoidStandup-v5": _HUMANOID,
}


@dataclass(kw_only=True)
class RunConfig:
    """The options of every training run."""

    algorithm: ClassVar[str] = ""
    """The algorithm's name, as in ``pyfastenv train NAME``; each Config sets it."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Options that have worked, by the environment's name without namespace and version; where an
    environment is not in it, and for the rest of the options, the defaults hold. An environment
    that the defaults have worked for has an empty one."""
    begins_with: ClassVar[tuple[str, ...]] = ()
    """Other algorithms, whose runs this one can begin with: they have learned the same networks."""
    learns_from_pixels: ClassVar[bool] = False
    """Whether observations are to be pictures (``env_kwargs``' ``pixels``)."""
    env_id: str = "HalfCheetah-v5"
    """The environment; `pyfastenv envs` lists them. Or an own task: my_tasks:Arm,
    path/to/my_tasks.py:Arm."""
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    """The environment's own arguments (xml_file, reset_noise_scale, …): `--env.KEY VALUE`."""
    eval_env_kwargs: dict[str, Any] = field(default_factory=dict, metadata=MAY_DIFFER)
    """Those that evaluations' environments have otherwise: `--eval-env.KEY VALUE`."""
    compact_obs: bool = False
    """Leave contact forces and inertias out of Ant's and Humanoid's observations: 27 numbers in
    place of 105, 45 in place of 348. Others have none."""
    frame_stack: int | None = field(default=None, metadata=at_least(1))
    """The latest observations that are seen as one, the oldest first (make_vec's); None: the last.
    Own tasks have histories, pixels a frame_stack of their own."""
    num_envs: int = field(metadata=at_least(1))
    """How many environments are stepped at once (in each process)."""
    num_threads: int = field(default=0, metadata=at_least(0) | MAY_DIFFER)
    """Threads that step environments; 0: the CPUs this process may use."""
    engine: Literal["auto", "mujoco", "lanes"] = field(default="auto", metadata=MAY_DIFFER)
    """Engine of MuJoCo environments' physics (make_vec's); the results are the same."""
    torch_threads: int = field(default=1, metadata=at_least(1) | MAY_DIFFER)
    """Threads of PyTorch's own operations: more only pay with large networks."""
    total_steps: int = field(metadata=at_least(1) | MAY_DIFFER)
    """Environment steps to train for."""
    seed: int = field(default=1, metadata=at_least(0) | NO_SETTING)
    """Seeds everything: environments, networks, sampling."""
    device: str = "cpu"
    """cpu, cuda, or sample-cpu: sample the policy on the CPU, learn on CUDA."""
    run_dir: Path | None = field(default=None, metadata=BOOKKEEPING)
    """Where everything is written; by default runs/<algorithm>-<env>-<seed>-<date>."""
    eval_every: int = field(default=100_000, metadata=at_least(0) | BOOKKEEPING)
    """Environment steps between evaluations; 0: only at the end."""
    eval_episodes: int = field(default=10, metadata=at_least(1) | MAY_DIFFER)
    """Episodes per evaluation."""
    checkpoint_every: int = field(default=500_000, metadata=at_least(0) | BOOKKEEPING)
    """Environment steps between checkpoints; 0: only at the end."""
    keep_checkpoints: int = field(default=3, metadata=at_least(1) | BOOKKEEPING)
    """How many of the newest checkpoints stay."""
    resume: Path | None = field(default=None, metadata=BOOKKEEPING)
    """A run folder, or a checkpoint file, to go on from."""
    from_run: Path | None = field(default=None, metadata=MAY_DIFFER)
    """A run folder, or a checkpoint file, whose networks, normalisers and optimisers this new run
    begins with (`--from`); its options may be others."""
    auto_resume: bool = field(default=False, metadata=BOOKKEEPING)
    """Go on with the run in run_dir if there is one, else begin it: for what is started again by
    itself (torchrun, Ray, a cluster's queue). Waits if the training before it is still ending."""
    profile: bool = field(default=False, metadata=BOOKKEEPING)
    """Profile some iterations: trace.json.gz (for Perfetto) and profile.txt."""
    profile_steps: str | None = field(default=None, metadata=BOOKKEEPING)
    """Profile the environment steps A:B; by default those in which all that is due falls due."""
    profile_activities: tuple[Literal["cpu", "cuda"], ...] = field(default=(), metadata=BOOKKEEPING)
    """Activities to profile; by default cpu, and cuda where there is one. Less costs less."""
    profile_memory: bool = field(default=False, metadata=BOOKKEEPING)
    """Profile allocations too: memory.png, and columns in profile.txt."""
    loggers: tuple[str, ...] = field(default=("csv", "tensorboard"), metadata=BOOKKEEPING)
    """Where metrics go beside metrics.jsonl: csv, tensorboard, wandb, mlflow, a package's own."""
    video: bool = field(default=False, metadata=BOOKKEEPING)
    """Film the first 20 seconds of an episode when all results are written, in a process of low
    priority: 320 × 240, at most 25 pictures a second (`pyfastenv record` films otherwise)."""
    quiet: bool = field(default=False, metadata=BOOKKEEPING)
    """Print nothing but warnings and errors."""

    def __post_init__(self) -> None:
        for name in ("run_dir", "resume", "from_run"):
            given = getattr(self, name)
            if given == "":
                raise ValueError(f"{name}: expected a path, got an empty one")
            if isinstance(given, str | os.PathLike):
                setattr(self, name, Path(given))
        for option in fields(self):
            if isinstance(value := getattr(self, option.name), np.generic):
                setattr(self, option.name, value.item())  # as config.json can hold it
        if isinstance(self.env_id, str):
            self.env_id = absolute_place(self.env_id)  # the run folder is used from anywhere
        for name in ("env_kwargs", "eval_env_kwargs"):
            if isinstance(given := getattr(self, name), Mapping):
                setattr(self, name, {k: _recordable(k, v) for k, v in given.items()})

    def env_defaults(self) -> dict[str, Any]:
        """The environment's own arguments that ``env_kwargs`` may have otherwise."""
        compact = _COMPACT.get(self.env_id.rpartition("/")[2], {}) if self.compact_obs else {}
        return {**compact, **({"frame_stack": self.frame_stack} if self.frame_stack else {})}

    @classmethod
    def preset(cls, env_id: str, **fields: Any) -> Self:
        """The options that have worked for an environment (:attr:`presets`), changed by ``fields``.

        Args:
            env_id: With any version and namespace: ``"Hopper-v5"``, ``"pyfastenv/Hopper-v4"``.
            **fields: Options that win over the preset's; of ``env_kwargs``, key by key.

        Raises:
            TypeError: No such option; the message names the nearest one.
        """
        for option in fields.keys() - cls.__dataclass_fields__.keys():
            near = did_you_mean(option, cls.__dataclass_fields__)
            raise TypeError(f"{cls.algorithm} has no option {option!r}{near}")
        return cls(env_id=env_id, **merged(cls.presets.get(_name_of(env_id), {}), fields))

    def preset_note(self) -> str:
        """Says that there is no preset for the environment, or nothing."""
        if not self.presets or _name_of(self.env_id) in self.presets:
            return ""
        return (
            f"{self.algorithm} has no preset for {self.env_id}: what is not given has its default."
        )

    def seeds(self) -> range:
        """The seeds that are trained, side by side if there are several."""
        return range(self.seed, self.seed + 1)

    def check(self) -> None:
        """Checks the values.

        Raises:
            TypeError, ValueError: One sentence: which field, what was expected, what was given.
        """
        check_field_types(self)
        check_bounds(self)
        if self.num_envs >= _MOST_ENVS:
            raise ValueError(f"num_envs: expected less than {_MOST_ENVS}, got {self.num_envs}")
        if self.auto_resume and self.run_dir is None:
            raise ValueError("auto_resume: expected a run_dir, where the run is to be found again")
        self._check_env()
        self._check_device()
        for name in self.loggers:
            load_logger(name)
        window = self.profile_window()
        if self.profile_steps is not None and window and window[0] >= self.total_steps:
            raise ValueError(
                f"profile_steps: the run ends at step {self.total_steps}, before {window[0]}"
            )

    @property
    def profiles(self) -> bool:
        """Whether the run is profiled: by ``profile``, or by an option that says of what."""
        return bool(
            self.profile or self.profile_steps or self.profile_activities or self.profile_memory
        )

    def profile_window(self) -> tuple[int, int] | None:
        """Environment steps between which iterations are profiled; None: the first three or so.

        Raises:
            ValueError: ``profile_steps`` is no range.
        """
        if self.profile_steps is None:
            return self.busy_steps()
        first, colon, last = self.profile_steps.partition(":")
        if colon and first.isdecimal() and last.isdecimal() and int(first) < int(last):
            return int(first), int(last)
        raise ValueError(
            f"profile_steps: expected A:B with steps A < B such as 5000:5100, got "
            f"{self.profile_steps!r}"
        )

    def busy_steps(self) -> tuple[int, int] | None:
        """A window in which all that is due now and then falls due; None: any will do."""
        return None

    @property
    def learn_device(self) -> torch.device:
        """Where the networks learn; under torchrun, each process its own GPU."""
        if self.device == "cpu":
            return torch.device("cpu")
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))

    def _check_env(self) -> None:
        is_known = self.env_id.removeprefix("pyfastenv/") in specs.env_ids()
        self._check_kwargs("env_kwargs", self.env_kwargs, is_known and not self.env_kwargs)
        others = {**self.env_kwargs, **self.eval_env_kwargs}
        self._check_kwargs("eval_env_kwargs", others, not self.eval_env_kwargs)
        self._record_model()

    def _check_kwargs(self, option: str, kwargs: Mapping[str, Any], is_known: bool) -> None:
        for name in kwargs:
            if name in _OF_THE_RUN:
                raise ValueError(f"{option}: {name} is the run's to set, not the environment's")
        if is_known:
            return
        try:  # names the nearest ids, the arguments there are, the file that is missing
            make_vec(self.env_id, num_threads=1, **kwargs).close()
        except TypeError as error:
            if not any(name in str(error) for name in kwargs):
                raise
            raise ValueError(f"{option}: {error}") from error

    def _record_model(self) -> None:
        """Makes the path of a task's model absolute, unless it is beside the task's file."""
        model = self.env_kwargs.get("model")
        if not isinstance(model, str):
            return
        from pyfastenv.tasks.language.find import find_task
        from pyfastenv.tasks.language.models import is_xml, local_model
        from pyfastenv.tasks.language.task import source_folder

        found = find_task(self.env_id)
        path = Path(model).expanduser()
        if found is None or is_xml(model) or local_model(path, source_folder(found[0])) != path:
            return
        self.env_kwargs["model"] = str(path.resolve())

    def _check_device(self) -> None:
        if self.device not in ("cpu", "cuda", "sample-cpu"):
            raise ValueError(f"device: expected cpu, cuda or sample-cpu, got {self.device!r}")
        if self.device != "cpu" and not torch.cuda.is_available():
            raise ValueError(
                f"device: {self.device!r} needs CUDA, and PyTorch finds none here; use --device cpu"
            )
        if "cuda" in self.profile_activities and not torch.cuda.is_available():
            raise ValueError("profile_activities: 'cuda' needs CUDA, and PyTorch finds none here")

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON has them; :meth:`from_dict` is its inverse."""
        return {name: _to_json(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Makes a configuration of :meth:`to_dict`'s result.

        Raises:
            ValueError: Unknown fields (of another version, say).
        """
        hints = get_type_hints(cls)
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"{cls.algorithm} has no option {', '.join(unknown)}")
        return cls(**{name: _from_json(hints[name], value) for name, value in values.items()})

    def check_resumes(
        self,
        saved_algorithm: str,
        saved: Mapping[str, Any],
        may_differ: frozenset[str] | None = None,
    ) -> None:
        """Checks that this configuration can go on from a run that had ``saved``.

        Args:
            saved_algorithm: What the run trained.
            saved: Its options, as :meth:`to_dict` has them.
            may_differ: Options that do not matter; None: those marked so.

        Raises:
            ValueError: Another algorithm, or other options; the message names them all.
        """
        if saved_algorithm != self.algorithm:
            raise ValueError(
                f"resume: the run was made by {saved_algorithm}, this is {self.algorithm}"
            )
        if differences := self.differences(saved, may_differ):
            raise ValueError(f"resume: the run had other options: {'; '.join(differences)}")

    def differences(
        self, saved: Mapping[str, Any], may_differ: frozenset[str] | None = None
    ) -> list[str]:
        """The options that were others in a run that had ``saved``, each with both values.

        Options that its version did not have yet were what their defaults are; those that this one
        no longer has differ. Arguments are those of :meth:`check_resumes`.
        """
        if may_differ is None:
            may_differ = marked(type(self), "may_differ")
        mine, was = self.to_dict(), {**self._defaults(), **saved}
        return [
            f"{name} was {was.get(name)!r}, is "
            f"{repr(mine[name]) if name in mine else 'no option here'}"
            for name in sorted((mine.keys() | was.keys()) - may_differ)
            if name not in mine or not _same(name, mine[name], was.get(name))
        ]

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The options' defaults as JSON has them, of those that have one."""
        plain = {each.name: each.default for each in fields(cls) if each.default is not MISSING}
        return {name: _to_json(value) for name, value in plain.items()}


def _same(name: str, mine: Any, saved: Any) -> bool:
    """Whether a run goes on with an option as it was: a user's file may stand elsewhere now."""
    if name in ("env_id", "policy_factory", "critic_factory") and mine and saved:
        mine, saved = (each.rpartition(":")[2] for each in (mine, saved))
    return bool(mine == saved)


def _name_of(env_id: str) -> str:
    """The environment's name without namespace and version."""
    return env_id.rpartition("/")[2].partition("-v")[0]


def _recordable(name: str, value: Any) -> Any:
    """An environment's argument as config.json can hold it.

    A file's path is made absolute, so that the run folder can be used from anywhere; the bare name
    of one of gymnasium's models stays.

    Raises:
        TypeError: It is no number, string, path, nor a list or a mapping of these.
    """
    if name == "xml_file" and isinstance(value, str | os.PathLike):
        try:
            return specs.lasting_xml_file(value)
        except FileNotFoundError:  # said by check()
            return os.fspath(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(_recordable("", item) for item in value)
    if isinstance(value, Mapping):
        return {key: _recordable("", item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"env_kwargs: {name}: expected a number, a string, a path, or a list or a mapping of "
        f"these, got {value!r}"
    )


def _to_json(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _from_json(hint: Any, value: Any) -> Any:
    """Turns strings back into paths and lists into tuples where the type says so."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if isinstance(value, str) and Path in options:
        return Path(value)
    if isinstance(value, list) and any(get_origin(option) is tuple for option in options):
        return tuple(value)
    return value
