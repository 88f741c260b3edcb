"""Pictures of environments, drawn from their state rows.

MuJoCo environments with gymnasium's camera, through pyfastenv's own renderer or, over OpenGL, that
of the ``mujoco`` package; classic control through gymnasium's own drawing (pygame). All are
imported on the first frame, and work in a thread of their own.
"""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import reduce
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyfastenv import _core
from pyfastenv.vector import opengl
from pyfastenv.vector.arguments import integer

Frame = NDArray[np.uint8]
# what the core says of a per-environment model field: name, offset in the row, shape
Fields = Sequence[tuple[str, int, Sequence[int]]]
# a commanded velocity (3,): forward, sideways, turning [m/s, m/s, rad/s]
Told = NDArray[np.float64] | None

# gymnasium's MujocoEnv takes these; the physics does not
RENDER_KWARGS = (
    "width",
    "height",
    "camera_id",
    "camera_name",
    "default_camera_config",
    "max_geom",
    "visual_options",
    "film",
    "renderer",
)
_RENDERERS = ("auto", "pyfastenv", "mujoco")
_CAMERA_FIELDS = (
    "type",
    "fixedcamid",
    "trackbodyid",
    "lookat",
    "distance",
    "azimuth",
    "elevation",
    "orthographic",
)
_FEWEST_GEOMS = 1000  # of a scene; gymnasium's number
_CABLE = 32  # geoms of a tendon that hangs
_FILM_SHADOWS = 1024  # a side of the map of shadows [pixels]; software spends its time on 4096

# DEFAULT_CAMERA_CONFIG of gymnasium/envs/mujoco/<robot>_v5.py, by the id's beginning (the longer
# name first where one begins another)
_CAMERAS: dict[str, dict[str, Any]] = {
    "HumanoidStandup": {"distance": 4.0, "lookat": (0.0, 0.0, 0.8925), "elevation": -20.0},
    "Humanoid": {"distance": 4.0, "lookat": (0.0, 0.0, 2.0), "elevation": -20.0},
    "HalfCheetah": {"distance": 4.0},
    "Ant": {"distance": 4.0},
    "Hopper": {"distance": 3.0, "lookat": (0.0, 0.0, 1.15), "elevation": -20.0},
    "Walker2d": {"distance": 4.0, "lookat": (0.0, 0.0, 1.15), "elevation": -20.0},
    "InvertedDoublePendulum": {"distance": 4.1225, "lookat": (0.0, 0.0, 0.1225)},
    "InvertedPendulum": {"distance": 2.04},
    "Pusher": {"distance": 4.0},
}


class Renderer(Protocol):
    """Draws one state row after another, always in the thread that made it."""

    def draw(self, row: NDArray[np.float64], fields: Fields, follow: bool, told: Told) -> Frame: ...
    def close(self) -> None: ...


class RenderThread:
    """A renderer in a thread of its own, which any thread may ask for pictures.

    An OpenGL context is current in one thread at a time, and making one takes the calling thread's
    away. So no caller's thread ever has ours, and only this thread knows the renderer: the garbage
    collector, which runs anywhere, cannot free it elsewhere.
    """

    def __init__(self, make: Callable[[], Renderer]):
        self._pid = os.getpid()
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._closed: Future[None] = Future()
        made: Future[None] = Future()
        threading.Thread(
            target=_serve,
            args=(make, made, self._requests, self._closed),
            name="pyfastenv-render",
            daemon=True,  # an environment that is not closed does not keep the process
        ).start()
        try:
            made.result()
        except BaseException:  # Ctrl-C too, which leaves a thread behind that is still making it
            self._requests.put(None)
            raise

    def draw(
        self, states: Sequence[State], *, follow: bool = False, told: Sequence[Told] | None = None
    ) -> tuple[Frame, ...]:
        """Draws environments' states, each a row and the model fields in it.

        Args:
            states: Of each environment.
            follow: As films do.
            told: What each is told, to be drawn; None: nothing.
        """
        drawn: Future[tuple[Frame, ...]] = Future()
        self._requests.put((states, follow, told or [None] * len(states), drawn))
        return drawn.result()

    def close(self, *, wait: bool = True) -> None:
        """Frees what the renderer holds, and ends the thread. In a fork there is neither."""
        if os.getpid() != self._pid:
            return
        self._requests.put(None)
        if wait:
            self._closed.result()


State = tuple[NDArray[np.float64], Fields]
_Request = tuple[Sequence[State], bool, Sequence["Told"], "Future[tuple[Frame, ...]]"]


def _serve(
    make: Callable[[], Renderer],
    made: Future[None],
    requests: SimpleQueue[_Request | None],
    closed: Future[None],
) -> None:
    with _core.DefaultFloats():  # threads inherit another mode from who starts them
        try:
            renderer = make()
        except BaseException as error:
            made.set_exception(error)
            return
        made.set_result(None)
        while (request := requests.get()) is not None:
            states, follow, told, drawn = request
            try:
                drawn.set_result(
                    tuple(
                        renderer.draw(*state, follow, each)
                        for state, each in zip(states, told, strict=True)
                    )
                )
            except BaseException as error:
                drawn.set_exception(error)
            del request, states, told, drawn  # nothing lives on while this waits
        try:
            renderer.close()
        finally:
            closed.set_result(None)


def check_render_kwargs(
    env_id: str, model_path: str, given: Mapping[str, Any], model: Callable[[], Any]
) -> None:
    """Refuses what no picture can be drawn with, before hours of steps have gone by.

    Args:
        env_id: For messages.
        model_path: Empty for classic control.
        given: Some of :data:`RENDER_KWARGS`.
        model: Makes the environments' ``mujoco.MjModel``; called if a camera names a part of it.

    Raises:
        TypeError, ValueError: A number out of range, another renderer, two cameras, a camera that
            the model has not, or any of :data:`RENDER_KWARGS` of classic control, which has none.
    """
    if given and not model_path:
        raise TypeError(f"{env_id} has no camera: {', '.join(given)} cannot be set")
    if (renderer := given.get("renderer", "auto")) not in _RENDERERS:
        raise ValueError(f"renderer: expected one of {', '.join(_RENDERERS)}, got {renderer!r}")
    if given.get("camera_id") is not None and given.get("camera_name") is not None:
        raise ValueError("give camera_id or camera_name, not both")
    for name in ("width", "height", "max_geom"):
        if name in given:
            integer(name, given[name], minimum=1)
    if config := given.get("default_camera_config"):
        _check_camera_config(config, model)


def _check_camera_config(config: Mapping[str, Any], model: Callable[[], Any]) -> None:
    import mujoco

    from pyfastenv.rendering.renderer import check_camera

    if unknown := [name for name in config if name not in _CAMERA_FIELDS]:
        known = ", ".join(_CAMERA_FIELDS)
        raise TypeError(f"default_camera_config: unknown {unknown[0]!r}; there are {known}")
    camera = mujoco.MjvCamera()
    _set_camera(camera, config)
    if "type" in config:  # else it is free, and its ids are not read
        try:
            check_camera(model(), camera)
        except ValueError as error:
            raise ValueError(f"default_camera_config: {error}") from None


def make_renderer(
    env_id: str, model_path: str, env_kwargs: Mapping[str, Any], render_kwargs: Mapping[str, Any]
) -> RenderThread:
    """The renderer of an environment; ``model_path`` is empty for classic control."""
    return RenderThread(lambda: _make(env_id, model_path, env_kwargs, render_kwargs))


def _make(
    env_id: str, model_path: str, env_kwargs: Mapping[str, Any], render_kwargs: Mapping[str, Any]
) -> Renderer:
    if not model_path:
        return ClassicRenderer(env_id, env_kwargs)
    camera = camera_config(env_id)
    return MujocoRenderer(lambda: read_model(model_path), camera, **render_kwargs)


def camera_config(env_id: str) -> dict[str, Any]:
    """gymnasium's free camera for an environment, where it differs from any model's."""
    return next((c for name, c in _CAMERAS.items() if env_id.startswith(name)), {})


def read_model(path: str) -> Any:
    import mujoco

    if path.endswith(".mjb"):
        return mujoco.MjModel.from_binary_path(path)
    with warnings.catch_warnings():  # gymnasium's models have what MuJoCo will drop (settotalmass)
        warnings.simplefilter("ignore")
        return mujoco.MjSpec.from_file(path).compile()


def make_model_renderer(model: Any, render_kwargs: Mapping[str, Any]) -> RenderThread:
    """The renderer of environments of a ``mujoco.MjModel``, which it changes."""
    return RenderThread(lambda: MujocoRenderer(lambda: model, {}, **render_kwargs))


def set_fields(model: Any, row: NDArray[np.float64], fields: Fields) -> None:
    """Gives a ``mujoco.MjModel`` an environment's own numbers."""
    for name, offset, _ in fields:
        *owners, last = name.split(".")
        owner = reduce(getattr, owners, model)
        target = np.asarray(getattr(owner, last))
        values = row[offset : offset + doubles(target)].view(target.dtype)[: target.size]
        setattr(owner, last, values.reshape(target.shape))


def load_state(model: Any, data: Any, row: NDArray[np.float64], fields: Fields) -> None:
    """Brings a ``mujoco.MjModel`` and its ``MjData`` to an environment's state, forward too."""
    import mujoco

    set_fields(model, row, fields)
    state = mujoco.mjtState.mjSTATE_INTEGRATION
    size = mujoco.mj_stateSize(model, state)
    mujoco.mj_setState(model, data, row[:size], state)
    mujoco.mj_forward(model, data)


def doubles(array: NDArray[Any]) -> int:
    """How many of a row's numbers an array takes; heights and kinds of geoms stand two in one."""
    return -(-array.nbytes // 8)


def tile(frames: Sequence[Frame]) -> Frame:
    """Lays frames of one size out in a grid as square as possible, row by row; gaps are black."""
    columns = math.ceil(math.sqrt(len(frames)))
    rows = math.ceil(len(frames) / columns)
    height, width, channels = frames[0].shape
    picture = np.zeros((rows * height, columns * width, channels), np.uint8)
    for i, frame in enumerate(frames):
        y, x = divmod(i, columns)
        picture[y * height : (y + 1) * height, x * width : (x + 1) * width] = frame
    return picture


class MujocoRenderer:
    """Offscreen frames of a MuJoCo model, with gymnasium's arguments and free camera.

    ``film``: with coarser shadows, and under a robot that may leave with a floor that has no end
    (bodies touch MuJoCo's planes beyond the size that these are drawn in).

    ``renderer``: ``"pyfastenv"``, ``"mujoco"`` (its pictures are gymnasium's bit for bit, and need
    OpenGL), or ``"auto"``: the first, unless it does not draw what the model or a scene has.

    Where gymnasium points the camera at the middle of the first frame's geoms, this takes the
    default pose's: all environments, whatever their reset noise, are seen from the same place.
    """

    def __init__(
        self,
        make_model: Callable[[], Any],
        camera: Mapping[str, Any],
        *,
        width: int = 480,
        height: int = 480,
        camera_id: int | None = None,
        camera_name: str | None = None,
        default_camera_config: Mapping[str, Any] | None = None,
        max_geom: int | None = None,
        visual_options: Mapping[int, bool] | None = None,
        film: bool = False,
        renderer: str = "auto",
    ):
        import mujoco

        from pyfastenv.rendering.renderer import Renderer as OwnRenderer
        from pyfastenv.vector.command_marks import CommandMarks

        self._mujoco = mujoco
        self._model = make_model()
        if film:
            quality = self._model.vis.quality
            quality.shadowsize = min(quality.shadowsize, _FILM_SHADOWS)
        offscreen = self._model.vis.global_
        offscreen.offwidth = max(offscreen.offwidth, width)
        offscreen.offheight = max(offscreen.offheight, height)
        self._data = mujoco.MjData(self._model)
        mujoco.mj_forward(self._model, self._data)
        self._options = mujoco.MjvOption()
        for flag, value in (visual_options or {}).items():
            self._options.flags[flag] = value
        base = leaving_base(self._data)
        self._camera: Any = camera_id if camera_id is not None else camera_name
        self._follower: _Follower | None = None
        if self._camera is None:
            config = default_camera_config or camera
            self._camera = _free_camera(mujoco, self._data, config)
            if default_camera_config is None:
                free = _free_camera(mujoco, self._data, config)
                self._follower = _Follower(mujoco, self._data, base, free)
        self._floors = _Floors(mujoco, self._data, base) if film else None
        self._marks = CommandMarks(self._data, base) if base is not None else None
        self._may_grow = max_geom is None
        self._size = height, width, max_geom or _geoms_of(self._model)
        self._may_change = renderer == "auto"
        self._renderer: Any
        self._make_renderer: Any
        if renderer == "mujoco" or (self._may_change and _has_soft_bodies(self._model)):
            self._use_opengl()
        else:
            self._make_renderer = OwnRenderer
            self._renderer = OwnRenderer(self._model, *self._size)

    def draw(self, row: NDArray[np.float64], fields: Fields, follow: bool, told: Told) -> Frame:
        """Draws one environment's state; ``follow``: as a film, if the user chose no camera."""
        load_state(self._model, self._data, row, fields)
        if any(name in ("hfield_data", "hfield_size") for name, *_ in fields):
            self._upload_heights()
        if self._floors is not None:
            self._floors.move()
        follower = self._follower if follow else None
        camera = self._camera if follower is None else follower.camera()
        self._update_scene(camera)
        if self._may_change and (reason := self._renderer.refusal()):
            warnings.warn(f"{reason}, so MuJoCo's renderer takes over", stacklevel=2)
            self._use_opengl()
            self._update_scene(camera)
        if told is not None and self._marks is not None:
            self._marks.add_to(self._renderer.scene, told)
        frame: Frame = self._renderer.render()
        return frame

    def close(self) -> None:
        """Frees what the renderer holds."""
        self._renderer.close()

    def _update_scene(self, camera: Any) -> None:
        self._renderer.update_scene(self._data, camera, self._options)
        # a full scene may lack some
        while self._may_grow and self._renderer.scene.ngeom == self._renderer.scene.maxgeom:
            height, width, max_geom = self._size
            self._size = height, width, 2 * max_geom
            self._renderer.close()
            self._renderer = self._make_renderer(self._model, *self._size)
            self._renderer.update_scene(self._data, camera, self._options)

    def _use_opengl(self) -> None:
        try:
            opengl.load()
        except Exception as error:  # each OpenGL library fails in its own way
            reason = str(error).strip().split("\n")[0] or type(error).__name__
            raise RuntimeError(
                f"MuJoCo's renderer needs OpenGL ({reason}): without a display, install libegl1 "
                "and set MUJOCO_GL=egl; renderer='pyfastenv' needs none"
            ) from error
        self._may_change = False
        self._make_renderer = self._mujoco.Renderer
        self._renderer = self._mujoco.Renderer(self._model, *self._size)

    def _upload_heights(self) -> None:
        if hasattr(self._renderer, "upload_height_fields"):
            self._renderer.upload_height_fields()
            return
        for ground in range(self._model.nhfield):
            context = self._renderer._mjr_context
            self._mujoco.mjr_uploadHField(self._model, context, ground)


def _geoms_of(model: Any) -> int:
    """How many geoms a scene of this model has, with some to spare."""
    tendons = 2 * model.nwrap + _CABLE * model.ntendon
    return int(_FEWEST_GEOMS + model.ngeom + model.nsite + tendons)


def _has_soft_bodies(model: Any) -> bool:
    return bool(model.nskin or model.nflex)


def _free_camera(mujoco: Any, data: Any, config: Mapping[str, Any]) -> Any:
    """gymnasium's: at the middle of a state's geoms."""
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_FREE
    camera.lookat[:] = np.median(data.geom_xpos, axis=0)
    camera.distance = data.model.stat.extent
    _set_camera(camera, config)
    return camera


def _set_camera(camera: Any, config: Mapping[str, Any]) -> None:
    for name, value in config.items():
        if name == "lookat":
            camera.lookat[:] = value
        else:
            setattr(camera, name, value)


def free_camera(model: Any, env_id: str) -> Any:
    """The ``MjvCamera`` through which gymnasium shows an environment of this id and model."""
    import mujoco

    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return _free_camera(mujoco, data, camera_config(env_id))


class _Floors:
    """The planes on which a robot that may leave walks: they reach the horizon and go with it.

    They are moved by whole periods of their texture. Planes without sizes, MuJoCo's own way, are a
    net of 40,000 squares each, which costs software more than the rest of the picture.

    Args:
        mujoco: The package.
        data: Of the model that is drawn, which is changed, in the default pose.
        base: Its :func:`leaving_base`.
    """

    def __init__(self, mujoco: Any, data: Any, base: int | None):
        self._data, self._base, model = data, base, data.model
        planes = model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)
        touches = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        ends = (model.geom_size[:, :2] > 0.0).all(1)
        self._planes = np.flatnonzero(planes & touches & ends & (self._base is not None))
        self._sizes = model.geom_size[self._planes, :2].copy()
        self._periods = np.zeros_like(self._sizes)  # 0: no texture
        self._horizon = model.vis.map.zfar * model.stat.extent  # nothing is drawn beyond
        # odd, so that the texture's middle stays where it is
        times = 2 * np.ceil(self._horizon / self._sizes / 2.0) + 1
        for plane, size, period, n in zip(
            self._planes, self._sizes, self._periods, times, strict=True
        ):
            material = model.geom_matid[plane]
            if material >= 0 and (model.mat_texid[material] >= 0).any():
                stretched = not model.mat_texuniform[material]
                repeat = model.mat_texrepeat[material]
                period[:] = (2.0 * size if stretched else 2.0) / repeat
                if stretched:
                    repeat *= n
        self._sizes *= times
        self.move()  # OpenGL is given the planes when it is made

    def move(self) -> None:
        """Puts them under the robot, in the picture alone."""
        data = self._data
        data.model.geom_size[self._planes, :2] = self._sizes
        for plane, period in zip(self._planes, self._periods, strict=True):
            axes = data.geom_xmat[plane].reshape(3, 3)[:, :2]
            away = (data.subtree_com[self._base] - data.geom_xpos[plane]) @ axes
            step = np.where(period > 0.0, period, 1.0)
            data.geom_xpos[plane] += axes @ (np.round(away / step) * step)


class _Follower:
    """The camera of films: one of the model's own that goes with the robot.

    If it has none, the free camera, moved as far as the robot has moved from its default pose; a
    robot that cannot leave is not followed.

    Args:
        mujoco: The package.
        data: In the default pose; of what is drawn later.
        base: Its :func:`leaving_base`.
        free: The free camera, which is changed.
    """

    def __init__(self, mujoco: Any, data: Any, base: int | None, free: Any):
        self._data, self._base, self._camera = data, base, free
        if self._base is None:
            return
        model, kinds = data.model, mujoco.mjtCamLight
        modes = [int(kinds.mjCAMLIGHT_TRACK), int(kinds.mjCAMLIGHT_TRACKCOM)]
        is_robots = model.body_treeid[model.cam_bodyid] == model.body_treeid[self._base]
        own = np.flatnonzero(np.isin(model.cam_mode, modes) & is_robots)
        if own.size > 0:
            self._camera, self._base = int(own[0]), None
        else:
            self._offset = free.lookat - data.subtree_com[self._base]

    def camera(self) -> Any:
        """As ``mujoco.Renderer.update_scene`` takes it."""
        if self._base is not None:
            self._camera.lookat[:] = self._data.subtree_com[self._base] + self._offset
        return self._camera


def leaving_base(data: Any) -> int | None:
    """The robot's first body, if a free joint or a slide without limits carries it.

    The robot is the kinematic tree that actuators move most, then the one with most degrees of
    freedom.
    """
    import mujoco

    model = data.model
    if model.nv == 0:
        return None
    driven = data.moment_colind[: data.moment_rownnz.sum()]
    moves = np.bincount(model.dof_treeid[driven], minlength=model.ntree)
    freedom = np.bincount(model.dof_treeid, minlength=model.ntree)
    tree = max(range(model.ntree), key=lambda tree: (moves[tree], freedom[tree]))
    base = int(model.dof_bodyid[np.argmax(model.dof_treeid == tree)])
    kinds = mujoco.mjtJoint
    slides = (model.jnt_type == int(kinds.mjJNT_SLIDE)) & (model.jnt_limited == 0)
    leaves = slides | (model.jnt_type == int(kinds.mjJNT_FREE))
    return base if leaves[model.jnt_bodyid == base].any() else None


class ClassicRenderer:
    """gymnasium's drawing of a classic-control environment in a given state."""

    # pygame.gfxdraw fills polygons in one buffer of the process, without the GIL
    _pygame = threading.Lock()

    def __init__(self, env_id: str, env_kwargs: Mapping[str, Any]):
        import gymnasium

        env: Any = gymnasium.make(env_id, render_mode="rgb_array", **env_kwargs)
        self._env = env.unwrapped
        self._env.reset(seed=0)  # makes the attributes that render() reads
        self._state_size = len(self._env.state)

    def draw(self, row: NDArray[np.float64], fields: Fields, follow: bool, told: Told) -> Frame:
        """Draws one environment's state; there is nothing to follow."""
        self._env.state = row[: self._state_size]
        if hasattr(self._env, "last_u"):  # Pendulum's arrow; its row keeps the torque, NaN at first
            torque = row[self._state_size]
            self._env.last_u = None if np.isnan(torque) else torque
        with self._pygame:
            frame: Frame = self._env.render()
        return frame

    def close(self) -> None:
        """Frees pygame's surfaces."""
        with self._pygame:
            self._env.close()

    @classmethod
    def unlock(cls) -> None:
        """In a fork: the thread that may have been drawing is not there."""
        cls._pygame = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ClassicRenderer.unlock)
