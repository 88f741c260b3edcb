"""FastVectorEnv: gymnasium's VectorEnv API over the compiled core. No physics and no torch here."""

from __future__ import annotations

import math
import operator
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Self, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pyfastenv import _core
from pyfastenv.errors import EnvError
from pyfastenv.vector import arguments, specs
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.cpus import available_cpus
from pyfastenv.vector.obs_views import FlatViews
from pyfastenv.vector.pixels import PixelOptions, PixelViews, share_bounds
from pyfastenv.vector.rendering import (
    RENDER_KWARGS,
    RenderThread,
    State,
    Told,
    camera_config,
    check_render_kwargs,
    make_renderer,
    read_model,
    tile,
)
from pyfastenv.vector.rows import Row

Infos = dict[str, Any]
# observations are an array, or a dict of them where the space is a Dict
StepReturn = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Infos]


def make_vec(env_id: str, num_envs: int = 1, **kwargs: Any) -> FastVectorEnv:
    """Makes a vector environment.

    Args:
        env_id: An id of :func:`pyfastenv.env_ids`, e.g. ``"HalfCheetah-v5"``
            (``"pyfastenv/HalfCheetah-v5"`` is the same, and so is ``"pyfastenv:pyfastenv/…"``).
        num_envs: How many environments.
        **kwargs: See :class:`FastVectorEnv`.

    Raises:
        ValueError: Unknown id.
        TypeError: Unknown keyword argument; the message names the known ones.
        FileNotFoundError: ``xml_file`` does not exist.
    """
    env_id = arguments.plain_id(env_id)
    envs = FastVectorEnv(env_id, num_envs, **kwargs)
    spec = deepcopy(gymnasium.spec(f"pyfastenv/{env_id}"))
    spec.kwargs = {**kwargs, "env_id": env_id, "num_envs": num_envs}
    envs.spec = spec
    return envs


class FastVectorEnv(VectorEnv[Any, NDArray[Any], NDArray[Any]]):
    """Steps many environments on a pool of C++ threads.

    Observations, rewards, terminations, truncations and infos are gymnasium's for the same id,
    arguments, seeds and actions, bit for bit; they do not depend on the number of threads.

    Args:
        env_id: The environment, e.g. ``"HalfCheetah-v5"``.
        num_envs: How many environments.
        num_threads: Threads that step, the calling one included; 0 means the CPUs this process may
            use (affinity mask and container quota). Never more than ``num_envs``.
        autoreset_mode: ``"NextStep"`` (gymnasium's default), ``"SameStep"`` or ``"Disabled"``, or
            the :class:`gymnasium.vector.AutoresetMode`. See docs/autoreset.md.
        obs_dtype: ``"float64"`` or ``"float32"``; None means gymnasium's own for this environment
            (float64 for MuJoCo, float32 for classic control).
        copy: True returns new arrays from every call. False returns views of a ring of 4 sets of
            arrays: what a call returns is overwritten by the fourth call after it, whichever
            thread makes it; with several threads that call at once, take True.
        infos: False leaves gymnasium's info entries out, which saves a little time; ``final_obs``,
            ``diverged`` and ``env_id`` are there all the same.
        max_episode_steps: Where episodes are truncated; None means the registered number, 0 or -1
            never.
        render_mode: None or ``"rgb_array"``.
        engine: What runs a MuJoCo environment's physics; the results are the same, bit for bit.
            ``"lanes"`` steps several environments at once, one per SIMD lane (docs/lanes.md says
            which models it can do), ``"mujoco"`` calls ``mj_step``, ``"auto"`` takes lanes where
            the model allows. :meth:`stats` says which one runs, and why.
        pixels: Observations are pictures, drawn by the threads that step: a dict of what
            :class:`pyfastenv.vector.pixels.PixelOptions` has, such as ``{"height": 84, "width":
            84, "camera": "track"}`` (docs/rendering.md, "Learning from pixels"). None: they are
            numbers.
        frame_stack: An observation is so many of the latest ones in one flat array, the oldest
            first; an episode begins with its first one so many times. What gymnasium's
            ``FlattenObservation(FrameStackObservation(env, frame_stack))`` gives. None: the latest
            alone. Pictures have an option of their own, own tasks histories (docs/own_tasks.md).
        **kwargs: The environment's own arguments (gymnasium's names and defaults; NumPy's numbers
            count as Python's, whatever their type), and those of gymnasium's renderer: ``width``,
            ``height``, ``camera_id``, ``camera_name``, ``default_camera_config``, ``max_geom``,
            ``visual_options``; ``film``, True for a floor without an end under a robot that may
            leave; and ``renderer``, ``"auto"``, ``"pyfastenv"`` or ``"mujoco"``
            (docs/rendering.md).
    """

    metadata = {"render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.NEXT_STEP}
    closed = True  # until there is something to close
    # what tasks.vector_env.TaskVectorEnv has: a description for the core, and who words its errors
    _task: dict[str, Any] | None = None
    task_facts: Mapping[str, str] = MappingProxyType({})  # hashes that snapshots agree on, by name
    _explain: Any = None
    _action_dtype: Any = np.float32
    # what makes a Dict, or pictures, of observations; None: they are flat, one Box
    obs_views: FlatViews | None = None
    pixels: PixelOptions | None = None

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        *,
        num_threads: int = 0,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        obs_dtype: DTypeLike | None = None,
        copy: bool = True,
        infos: bool = True,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        engine: str = "auto",
        pixels: Mapping[str, Any] | None = None,
        frame_stack: int | None = None,
        **kwargs: Any,
    ):
        self._arguments = {
            "env_id": env_id,
            "num_envs": num_envs,
            "num_threads": num_threads,
            "autoreset_mode": autoreset_mode,
            "obs_dtype": obs_dtype,
            "copy": copy,
            "infos": infos,
            "max_episode_steps": max_episode_steps,
            "render_mode": render_mode,
            "engine": engine,
            "pixels": pixels,
            "frame_stack": frame_stack,
            **kwargs,
        }
        self.num_envs = integer("num_envs", num_envs, minimum=1)
        num_threads = integer("num_threads", num_threads, minimum=0) or available_cpus()
        for name, flag in (("copy", copy), ("infos", infos)):
            if not isinstance(flag, bool | np.bool_):
                raise TypeError(f"{name}: expected True or False, got {flag!r}")
        self.autoreset_mode = arguments.autoreset_mode(autoreset_mode)
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode: expected None or 'rgb_array', got {render_mode!r}")
        self.render_mode = render_mode
        self._render_kwargs = {name: kwargs.pop(name) for name in RENDER_KWARGS if name in kwargs}
        self._renderer: RenderThread | None = None
        self._render_lock = threading.Lock()
        if max_episode_steps is not None:
            max_episode_steps = max(0, integer("max_episode_steps", max_episode_steps, minimum=-1))

        self.env_id = env_id = arguments.plain_id(env_id)
        if pixels is not None:
            self.pixels = PixelOptions.of(pixels)
            if self.pixels.with_state and self.obs_views is not None:
                raise ValueError(
                    f"pixels: with_state: {env_id}'s observations are a Dict: expected False"
                )
        self.frame_stack = 1
        if frame_stack is not None:
            self.frame_stack = integer("frame_stack", frame_stack, minimum=1, below=2**10)
            other = "pixels have a frame_stack of their own" if pixels is not None else ""
            if self._task is not None:
                other = f"{env_id} is an own task, which keeps histories by itself (refill)"
            if other:
                raise ValueError(f"frame_stack: expected None, got {frame_stack}: {other}")
        self._seeds = _draw_seeds(self.num_envs)
        self._action_spaces: dict[int, gymnasium.Space[Any]] = {}
        try:
            core_kwargs = specs.core_kwargs(kwargs)
            if "xml_file" in kwargs:
                self._arguments["xml_file"] = specs.lasting_xml_file(core_kwargs["xml_file"])
            self._core: _core.VectorEnv = self._make_core(
                env_id=env_id,
                kwargs=core_kwargs,
                assets_dir=specs.assets_dir(),
                num_envs=self.num_envs,
                num_threads=num_threads,
                autoreset_mode=self.autoreset_mode.value,
                obs_dtype=arguments.obs_dtype(obs_dtype),
                max_episode_steps=max_episode_steps,
                copy=bool(copy),
                infos=bool(infos),
                frame_stack=self.frame_stack,
                amended=False,
                engine=arguments.engine(engine),
                seeds=self._seeds,
                task=self._task,
                explain=self._explain,
                pixels=self._describe_pixels(),
            )
        except TypeError as error:
            arguments.note_near_names(error, kwargs, self._arguments.keys() - kwargs.keys())
            raise
        check_render_kwargs(env_id, self._core.model_path, self._render_kwargs, self.new_model)
        if not np.isfinite(self._core.render_fps):
            raise ValueError(
                f"{self._core.model_path}: expected a timestep that can be divided by, "
                f"got {self._core.render_fps} steps per second"
            )
        self.closed = False
        reason = self.stats()["engine_reason"]
        if reason.startswith("lanes and mj_step differ"):
            warnings.warn(f"{reason}: mj_step steps {env_id}", RuntimeWarning, stacklevel=2)
        self._env_kwargs = kwargs
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": round(self._core.render_fps),
            "autoreset_mode": self.autoreset_mode,
        }
        self._make_spaces()
        # saves an attribute look-up per call
        self._core_step: Callable[[ArrayLike], StepReturn] = self._core.step

    def _make_core(self, **arguments: Any) -> Any:
        return _core.VectorEnv(**arguments)

    def _describe_pixels(self) -> dict[str, Any] | None:
        if self.pixels is None:
            return None
        free = {} if self._task is not None else camera_config(self.env_id)
        return self.pixels.description(free)

    def _make_spaces(self) -> None:
        core = self._core
        dtype: Any = np.dtype(core.obs_dtype).type
        self.single_observation_space: gymnasium.Space[Any]
        numbers = gymnasium.spaces.Box(
            np.array(core.obs_low, dtype), np.array(core.obs_high, dtype), dtype=dtype
        )
        if self.pixels is not None:
            self.obs_views = PixelViews(self.pixels, core.obs_bytes, numbers)
        if self.obs_views is None:
            self.single_observation_space = numbers
        else:
            self.single_observation_space = self.obs_views.space(dtype)
        if core.num_actions > 0:
            self.single_action_space = gymnasium.spaces.Discrete(core.num_actions)
        else:
            self.single_action_space = gymnasium.spaces.Box(
                np.array(core.action_low, self._action_dtype),
                np.array(core.action_high, self._action_dtype),
                dtype=self._action_dtype,
            )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        if self.pixels is not None:
            share_bounds(self.observation_space)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    @property
    def num_threads(self) -> int:
        """Threads that step, the calling one included."""
        num_threads: int = self._core.num_threads
        return num_threads

    @property
    def max_episode_steps(self) -> int | None:
        """Where episodes are truncated; None: never."""
        return self._core.max_episode_steps or None

    @property
    def obs_size(self) -> int:
        """Numbers in an observation, of a Dict's entries together; bytes, with pixels."""
        return len(self._core.obs_low) if self.pixels is None else self._core.obs_bytes

    @property
    def obs_dtype(self) -> np.dtype[Any]:
        """The type of those numbers; uint8, with pixels."""
        return np.dtype(self._core.obs_dtype if self.pixels is None else np.uint8)

    # ---- reset and step ----------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Infos]:
        """Starts new episodes.

        Args:
            seed: An int seeds environment i with ``seed + i``; a sequence has one int or None per
                environment; None continues the environments' random streams.
            options: ``"reset_mask"``, ``(num_envs,)`` bool, resets only some environments; the
                others keep their state, and their rows are their latest observations. Classic
                control also takes gymnasium's bounds (``"low"`` and ``"high"``; Pendulum
                ``"x_init"`` and ``"y_init"``). The mapping is not changed.

        Returns:
            Observations ``(num_envs, obs_size)`` and infos. Where the observation space is a Dict,
            here as everywhere: a dict of ``(num_envs, *shape)``, views of one such array; with
            ``pixels``, pictures ``(num_envs, height, width, channels)`` uint8.

        Raises:
            BusyError: Environments (masked or not) have been sent and not received.
            EnvError: Environments raised; see its ``results``.
        """
        result: tuple[Any, Infos] = self._with_views(self.flat_reset, seed=seed, options=options)
        return result

    def flat_reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[NDArray[Any], Infos]:
        """:meth:`reset` with flat observations, whatever the observation space."""
        options = arguments.reset_options(options)
        mask = self._reset_mask(options.pop("reset_mask", None))
        bounds = self._reset_bounds(options)
        seeds = self._parse_seed(seed)
        try:
            result: tuple[NDArray[Any], Infos] = self._core.reset(seeds, mask, bounds)
        except EnvError as error:
            self._remember_seeds(seeds, mask, error.env_ids)
            raise
        self._remember_seeds(seeds, mask)
        return result

    def latest_obs(self) -> NDArray[Any]:
        """Returns all environments' latest observations, flat ``(num_envs, obs_size)``; none moves.

        Of no meaning before the first reset.

        Raises:
            BusyError: Environments have been sent and not received.
        """
        seeds: list[None] = [None] * self.num_envs
        nobody = np.zeros(self.num_envs, np.bool_)
        result: tuple[NDArray[Any], Infos] = self._core.reset(seeds, nobody, [])
        return result[0]

    def step(self, actions: ArrayLike) -> StepReturn:
        """Steps every environment once.

        Args:
            actions: ``(num_envs, action_size)`` float32, or ``(num_envs,)`` integers. Rewards are
                computed in the actions' dtype, as in gymnasium: float64 is used as it is, integers
                and bools as float64. The exception is float16, which is used as float32.

        Returns:
            Observations ``(num_envs, obs_size)``, rewards ``(num_envs,)`` float64, terminations and
            truncations ``(num_envs,)`` bool, and infos with gymnasium's keys and ``_key`` masks.
            ``infos["diverged"]`` is there when the physics blew up in an environment, whose episode
            then ends with reward 0.

        Raises:
            ValueError: Wrong shape, NaN or infinite actions. No environment has moved.
            TypeError: Wrong dtype, or no array. No environment has moved.
            ResetNeededError: Before the first reset; after an episode's end with autoreset
                disabled; after an interrupted (Ctrl-C) step or reset.
            BusyError: Environments have been sent and not received.
            EnvError: Environments raised; see its ``results``.
        """
        if self.obs_views is None:  # without another call in between
            return self._core_step(actions)
        result: StepReturn = self._with_views(self.flat_step, actions)
        return result

    def flat_step(self, actions: ArrayLike) -> StepReturn:
        """:meth:`step` with flat observations, whatever the observation space."""
        return self._core_step(actions)

    # ---- send and receive --------------------------------------------------------------------

    def async_reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
        env_ids: ArrayLike | None = None,
    ) -> None:
        """Queues a reset; the results come with :meth:`recv`.

        Args:
            seed: As for :meth:`reset`: environment i gets ``seed + i``, or ``seed[i]``.
            options: As for :meth:`reset`, without ``"reset_mask"``.
            env_ids: ``(n,)`` ints; None means all.
        """
        options = arguments.reset_options(options)
        if "reset_mask" in options:
            raise ValueError("async_reset: reset_mask is for reset(); give env_ids here")
        seeds = self._parse_seed(seed)
        self._core.send_reset(seeds, self._reset_bounds(options), env_ids)
        mask = None
        if env_ids is not None:
            mask = np.isin(np.arange(self.num_envs), np.asarray(env_ids))
        self._remember_seeds(seeds, mask)

    def send(self, actions: ArrayLike, env_ids: ArrayLike | None = None) -> None:
        """Queues one step of each of ``env_ids`` and returns at once.

        Args:
            actions: ``(len(env_ids), action_size)`` or ``(len(env_ids),)``, copied.
            env_ids: ``(n,)`` ints, in any order; None means all.

        Raises:
            IndexError: Unknown id. ValueError: An id twice. BusyError: An environment whose result
                has not been received. In each case nothing has been sent.
        """
        self._core.send(actions, env_ids)

    def recv(
        self,
        min_envs: int | None = None,
        timeout: float | None = None,
        *,
        max_envs: int | None = None,
    ) -> StepReturn:
        """Takes results as they arrive.

        Args:
            min_envs: Wait for this many; None waits for all that are under way.
            timeout: Having at least one result, wait no longer than this [s]. Nothing is lost: the
                rest comes with the next call.
            max_envs: Take no more than this many.

        Returns:
            As :meth:`step`, one row per result in order of arrival; ``infos["env_id"]`` ``(n,)``
            int32 names the environments. Rewards of resets are 0.

        Raises:
            NothingPendingError: Nothing has been sent.
            EnvError: Environments raised; its ``results`` are those of the others.
        """
        result: StepReturn = self._with_views(self.flat_recv, min_envs, timeout, max_envs=max_envs)
        return result

    def flat_recv(
        self,
        min_envs: int | None = None,
        timeout: float | None = None,
        *,
        max_envs: int | None = None,
    ) -> StepReturn:
        """:meth:`recv` with flat observations, whatever the observation space."""
        if min_envs is not None:
            min_envs = integer("min_envs", min_envs)
        if max_envs is not None:
            max_envs = integer("max_envs", max_envs)
        if timeout is not None and not isinstance(timeout, int | float | np.number):
            raise TypeError(f"timeout: expected seconds or None, got {timeout!r}")
        return self._core.recv(min_envs, max_envs, timeout)

    def _with_views(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Makes a flat call; shows a Dict space's observations in its results as dicts of views."""
        views = self.obs_views
        if views is None:
            return call(*args, **kwargs)
        try:
            return views.of_results(call(*args, **kwargs))
        except EnvError as error:
            error.results = views.of_results(error.results)
            raise

    # ---- rollout -----------------------------------------------------------------------------

    def run_rollout(
        self,
        policy: _core.Policy,
        policy_ids: NDArray[Any] | None,
        num_steps: int,
        out: dict[str, NDArray[Any]],
    ) -> dict[str, Any]:
        """Runs the closed loop on NumPy arrays; :func:`pyfastenv.rollout` is the one to use.

        Observations are flat, whatever the observation space.
        """
        num_steps = integer("num_steps", num_steps, minimum=1)
        return self._core.rollout(policy, policy_ids, num_steps, out)

    # ---- state -------------------------------------------------------------------------------

    def get_state(self, env_ids: ArrayLike | None = None) -> NDArray[np.uint8]:
        """Takes complete snapshots, ``(n, state_bytes)`` uint8.

        Physics, random stream, elapsed steps, pending autoreset, task, per-environment model fields
        and latest observation: a restored environment goes on bit for bit as the original would.
        """
        states: NDArray[np.uint8] = self._core.get_state(env_ids)
        return states

    def set_state(self, state: NDArray[np.uint8], env_ids: ArrayLike | None = None) -> None:
        """Restores snapshots of :meth:`get_state`, also into other environments or another object.

        Seeds are not part of a snapshot (the random streams are): ``np_random_seed`` stays.

        Raises:
            ValueError: Not snapshots of such environments: same id, arguments, contents of
                ``xml_file``, autoreset_mode, max_episode_steps, obs_dtype and fields set by
                :meth:`set_model_field` are needed.
        """
        self._core.set_state(state, env_ids)

    @property
    def state_bytes(self) -> int:
        """Size of one environment's snapshot [bytes]."""
        return self._core.state_bytes

    def stats(self) -> dict[str, Any]:
        """Returns counts since creation, and what runs the physics.

        Returns:
            ``steps``, ``episodes`` ended, ``diverged`` and ``errors``: counts. ``engine``:
            ``"lanes"``, ``"mujoco"``, or ``"native"`` for classic control; ``engine_reason``: why
            it is ``mj_step`` that steps now (it may be faster, as measured), else empty.
            ``lane_steps``: environment steps that lanes did; ``lane_misses``: those that
            ``mj_step`` did in their stead (bad numbers, or it is faster). ``lane_checks``:
            environment steps that were done both ways and compared, bit for bit;
            ``lane_differences``: of those that differed. The first one is warned of, and lanes
            are left for good.
        """
        return self._core.stats()

    # ---- tasks and per-environment physics ---------------------------------------------------

    def sample_tasks(self, n: int, seed: int | None = None) -> NDArray[np.float64]:
        """Draws tasks of a meta-RL environment, ``(n, task_size)``.

        A direction is -1 or 1 with equal odds; velocities and goals are uniform.

        Raises:
            ValueError: This environment has no tasks.
        """
        if not self._core.tasks:
            raise ValueError(f"{self.env_id} has no tasks")
        rng = np.random.default_rng(seed)
        columns = []
        for task in self._core.tasks:
            shape = (integer("n", n, minimum=1), task["size"])
            if task["sampler"] == "sign":
                columns.append(2.0 * rng.integers(0, 2, shape) - 1.0)
            else:
                columns.append(rng.uniform(task["low"], task["high"], shape))
        return np.concatenate(columns, axis=1)

    def reset_task(
        self,
        tasks: ArrayLike | Sequence[Mapping[str, ArrayLike]],
        env_ids: ArrayLike | None = None,
    ) -> None:
        """Sets environments' tasks, from the next step on; episodes go on (reset them yourself).

        Args:
            tasks: ``(n, task_size)`` as from :meth:`sample_tasks`, or n dicts such as
                ``{"direction": 1}``.
            env_ids: ``(n,)`` ints; None means all.
        """
        if isinstance(tasks, Sequence) and any(isinstance(task, Mapping) for task in tasks):
            tasks = [self._task_row(task) for task in tasks]
        self._core.set_tasks(tasks, env_ids)

    def _task_row(self, task: Any) -> NDArray[np.float64]:
        names = [field["name"] for field in self._core.tasks]
        if not isinstance(task, Mapping) or set(task) != set(names):
            raise ValueError(f"tasks: expected dicts with {names}, got {task!r}")
        return np.concatenate([np.atleast_1d(task[name]) for name in names])

    def get_task(self) -> NDArray[np.float64]:
        """Returns the environments' tasks, ``(num_envs, task_size)``."""
        tasks: NDArray[np.float64] = self._core.get_tasks()
        return tasks

    def set_model_field(
        self, name: str, values: ArrayLike, env_ids: ArrayLike | None = None
    ) -> None:
        """Gives environments their own values of a MuJoCo model field, from the next step on.

        What ``env.unwrapped.model.<name>[:] = values`` does in gymnasium: constants that MuJoCo
        derives when it compiles a model (inverse weights, say) are not derived anew.

        Args:
            name: A real-valued array of mjModel (``"body_mass"``, ``"geom_friction"``,
                ``"actuator_gainprm"``, ``"dof_damping"`` …) or ``"opt.gravity"``, ``"opt.wind"``,
                ``"opt.density"``, ``"opt.viscosity"``.
            values: ``(n, *field shape)``, or ``(*field shape)`` for all alike.
            env_ids: ``(n,)`` ints; None means all.

        Raises:
            ValueError: No such field (the message names similar ones), or wrong shape.
        """
        self._core.set_model_field(name, values, env_ids)

    def get_model_field(self, name: str) -> NDArray[np.float64]:
        """Returns the environments' values of a model field, ``(num_envs, *field shape)``."""
        values: NDArray[np.float64] = self._core.get_model_field(name)
        return values

    def own_values(self) -> dict[str, NDArray[np.float64]]:
        """Returns the values each environment has of its own: model fields set so far, and tasks.

        Returns:
            ``(num_envs, …)`` by the field's name; tasks, where there are any, under ``"task"``.
        """
        _, fields = self._core.row(0)
        values = {name: self.get_model_field(name) for name, _, _ in fields}
        return {**values, "task": self.get_task()} if self._core.tasks else values

    def take_values(self, values: Mapping[str, ArrayLike]) -> None:
        """Takes other environments' :meth:`own_values`: i has those of i modulo their number."""
        for name, rows in values.items():
            mine = np.asarray(rows)[np.arange(self.num_envs) % len(rows)]  # type: ignore[arg-type]
            if name == "task":
                self.reset_task(mine)
            else:
                self.set_model_field(name, mine)

    # ---- rendering ---------------------------------------------------------------------------

    def render(  # type: ignore[override]
        self, env_ids: Sequence[int] | None = None, *, tiled: bool = False, follow: bool = False
    ) -> tuple[NDArray[np.uint8], ...] | NDArray[np.uint8] | None:
        """Draws environments in their present states; any thread may ask for that.

        Args:
            env_ids: Which; None means all.
            tiled: Return one picture, the frames laid out in a grid.
            follow: Keep a robot that may leave in the picture, as films do, unless ``camera_id``,
                ``camera_name`` or ``default_camera_config`` was given, and show over it what
                velocity a task commands (blue) and its own (green).

        Returns:
            A tuple of ``(height, width, 3)`` uint8 frames, or one such array if ``tiled``; None
            without ``render_mode="rgb_array"`` (as gymnasium does, with a warning).
        """
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() without a render mode: make the environment with render_mode='rgb_array'"
            )
            return None
        ids = range(self.num_envs) if env_ids is None else [operator.index(i) for i in env_ids]
        if len(ids) == 0:
            raise ValueError("env_ids: expected at least one id")
        states = [self._state(env_id) for env_id in ids]
        with self._render_lock:
            if self._renderer is None:
                self._renderer = self._make_renderer()
            renderer = self._renderer
        frames = renderer.draw(states, follow=follow, told=self._told(ids) if follow else None)
        return tile(frames) if tiled else frames

    def new_model(self) -> Any:
        """Makes a ``mujoco.MjModel`` as the environments have it, but for values of their own.

        Raises:
            ValueError: It is classic control, which has none.
        """
        if not self._core.model_path:
            raise ValueError(f"{self.env_id} has no model of MuJoCo")
        return read_model(self._core.model_path)

    def _state(self, env_id: int) -> State:
        state: State = self._core.row(env_id)
        return state

    def _told(self, env_ids: Sequence[int]) -> Sequence[Told] | None:
        """The commanded velocities of environments, where there are any."""
        return None

    def _make_renderer(self) -> RenderThread:
        return make_renderer(
            self.env_id, self._core.model_path, self._env_kwargs, self._render_kwargs
        )

    # ---- gymnasium's odds and ends -----------------------------------------------------------

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The environments' seeds (drawn from the system's entropy where none was given)."""
        return tuple(self._seeds)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Copies of the environments' generators in their present states."""
        return tuple(self.generator(env_id) for env_id in range(self.num_envs))

    def generator(self, env_id: int) -> np.random.Generator:
        """Copies an environment's generator in its present state."""
        generator = np.random.Generator(np.random.PCG64(0))
        self.write_generator(env_id, generator)
        return generator

    def write_generator(self, env_id: int, generator: np.random.Generator) -> None:
        """Brings a generator to the present state of an environment's."""
        words = self._core.random_state(env_id)
        state_high, state_low, inc_high, inc_low, has_uint32, uinteger = words
        generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state_high << 64 | state_low, "inc": inc_high << 64 | inc_low},
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }

    def read_generator(self, env_id: int, generator: np.random.Generator) -> None:
        """Brings an environment's generator to the present state of this one.

        Raises:
            ValueError: It is of another kind than NumPy's ``default_rng``.
        """
        state: Any = generator.bit_generator.state
        if state["bit_generator"] != "PCG64":
            raise ValueError(
                "np_random: expected a generator of numpy.random.default_rng (PCG64), got one of "
                f"{state['bit_generator']}"
            )
        words, low = state["state"], 2**64 - 1
        self._core.set_random_state(
            env_id,
            [
                *(words["state"] >> 64, words["state"] & low),
                *(words["inc"] >> 64, words["inc"] & low),
                *(state["has_uint32"], state["uinteger"]),
            ],
        )

    def action_space_of(self, env_id: int) -> gymnasium.Space[Any]:
        """Returns an environment's action space: the same object each time, with its own stream."""
        if env_id not in self._action_spaces:
            self._action_spaces[env_id] = deepcopy(self.single_action_space)
            self._action_spaces[env_id].seed()
        return self._action_spaces[env_id]

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of each environment, or reads an attribute.

        gymnasium's vector classes do this with the objects that they step; here it is done with
        :class:`pyfastenv.vector.rows.Row`, one environment after another: slow, and meant for what
        has no call of its own here.

        Args:
            name: ``"render"``, ``"reset"``, ``"get_state"``, ``"set_model_field"`` …
            *args: What each environment's method gets.
            **kwargs: Likewise.

        Returns:
            One result per environment.

        Raises:
            AttributeError: No such name; the message has those that there are.
        """
        attributes = [self._attribute(Row(self, i), name) for i in range(self.num_envs)]
        return tuple(a(*args, **kwargs) if callable(a) else a for a in attributes)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Reads an attribute of each environment: ``"spec"``, ``"np_random"``, ``"task"`` …

        As in gymnasium, a method's name calls it.

        Raises:
            AttributeError: No such name; the message has those that there are.
        """
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each environment; there is one: ``"task"`` (:meth:`reset_task`).

        Physics is set by :meth:`set_model_field`.

        Args:
            name: Which.
            values: A list or tuple has one value per environment; anything else is the value of
                all.

        Raises:
            AttributeError: It cannot be set. gymnasium would add an attribute that nothing reads.
            ValueError: Another number of values.
        """
        if name != "task" or not self._core.tasks:
            can = "only 'task'" if self._core.tasks else "nothing (set_model_field sets physics)"
            raise AttributeError(f"{self.env_id}: {can} can be set by set_attr, got {name!r}")
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"values: expected {self.num_envs} or no list, got {len(values)}")
        self.reset_task(
            [self._task_row(v) if isinstance(v, Mapping) else np.atleast_1d(v) for v in values]
        )

    def _attribute(self, row: Row, name: str) -> Any:
        names = [known for known in dir(row) if not known.startswith("_")]
        if not self._core.tasks:
            names = [known for known in names if "task" not in known]
        if name not in names:
            raise AttributeError(
                f"{self.env_id} has no {name!r} for each environment; there are {', '.join(names)}"
            )
        return getattr(row, name)

    def close_extras(self, *, wait_for_renderer: bool = True, **kwargs: Any) -> None:
        """Waits for running steps, drops queued ones, ends the threads, frees the renderer."""
        self._core.close()
        if self._renderer is not None:
            self._renderer.close(wait=wait_for_renderer)
            self._renderer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or one in another process, goes on as this one; of closed ones it is new."""
        how = _remake, (type(self), self._arguments, self.spec)
        if self.closed:
            return how
        states = self.get_state()
        spaces = self.single_action_space, self.action_space  # with what they draw from
        return *how, (self.own_values(), states, self._seeds, spaces)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        values, states, self._seeds, spaces = state
        self.take_values(values)
        self.set_state(states)
        self.single_action_space, self.action_space = spaces

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            # the collector may have interrupted anything, an import that rendering waits for, say
            self.close(wait_for_renderer=False)

    # ---- arguments ---------------------------------------------------------------------------

    def _parse_seed(self, seed: int | Sequence[int | None] | None) -> list[int | None] | None:
        if seed is None:
            return None
        try:
            if not isinstance(seed, bytes) and isinstance(seed, Sequence | np.ndarray):
                seeds = [None if s is None else operator.index(s) for s in seed]
            else:
                first = operator.index(seed)  # type: ignore[arg-type]
                seeds = [first + i for i in range(self.num_envs)]
        except TypeError:
            raise TypeError(
                f"seed: expected an int, {self.num_envs} ints or None, got {seed!r}"
            ) from None
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: expected {self.num_envs} seeds, got {len(seeds)}")
        if any(s is not None and s < 0 for s in seeds):
            raise gymnasium.error.Error(f"seed: expected integers >= 0, got {seed}")
        return seeds

    def _remember_seeds(
        self,
        seeds: list[int | None] | None,
        mask: NDArray[np.bool_] | None,
        failed: Sequence[int] = (),
    ) -> None:
        for i, seed in enumerate(seeds or []):
            if seed is not None and (mask is None or mask[i]) and i not in failed:
                self._seeds[i] = seed

    def _reset_mask(self, mask: Any) -> NDArray[np.bool_] | None:
        if mask is None:
            return None
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            got = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
            raise TypeError(f"options['reset_mask']: expected a bool array, got {got}")
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"options['reset_mask']: expected shape ({self.num_envs},), got {mask.shape}"
            )
        if not mask.any():
            raise ValueError("options['reset_mask']: expected at least one True")
        return np.ascontiguousarray(mask)

    def _reset_bounds(self, options: Mapping[str, SupportsFloat]) -> list[float]:
        bounds = []
        for name, default in self._core.reset_options:
            try:
                bounds.append(float(options.get(name, default)))
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"options[{name!r}]: expected a number, got {options[name]!r}"
                ) from error
        names = [name for name, _ in self._core.reset_options]
        for name, bound in zip(names, bounds, strict=True):
            if not math.isfinite(bound):
                raise ValueError(f"options[{name!r}]: expected a finite number, got {bound}")
        # the intervals that are drawn from: (low, high), or Pendulum's (-x_init, x_init) …
        if names == ["low", "high"]:
            if bounds[0] > bounds[1]:
                raise ValueError(f"options: low ({bounds[0]}) is above high ({bounds[1]})")
            widths = {"high": bounds[1] - bounds[0]}
        else:
            for name, bound in zip(names, bounds, strict=True):
                if bound < 0.0:
                    raise ValueError(f"options[{name!r}]: expected a number >= 0, got {bound}")
            widths = {name: 2.0 * bound for name, bound in zip(names, bounds, strict=True)}
        for name, width in widths.items():
            if not math.isfinite(width):
                raise ValueError(f"options[{name!r}]: expected a narrower interval, got {options}")
        return bounds


def _draw_seeds(n: int) -> list[int]:
    entropy = os.urandom(16 * n)
    return [int.from_bytes(entropy[16 * i : 16 * (i + 1)], "little") for i in range(n)]


def _remake(kind: type[FastVectorEnv], arguments: dict[str, Any], spec: Any) -> FastVectorEnv:
    envs = kind(**arguments)
    envs.spec = spec
    return envs
