"""A renderer with ``mujoco.Renderer``'s methods that needs no OpenGL and no thread of its own."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from pyfastenv import _core
from pyfastenv.vector.arguments import integer

# what renderers of one model share, as long as one of them lives; by the model's identity
_shared: weakref.WeakValueDictionary[int, _core.RenderAssets]
_shared = weakref.WeakValueDictionary()
_lock = threading.Lock()


class Renderer:
    """Draws scenes of a model as ``mujoco.Renderer`` does, on the calling thread's core.

    Its pictures are MuJoCo's to within a few shades (docs/rendering.md says how near, and what is
    not drawn). Renderers of one model share its textures and meshes; drawing releases the GIL, so
    threads with a renderer each draw side by side. The same scene gives the same bits in any
    thread.

    Args:
        model: A ``mujoco.MjModel``, whose meshes and textures stay as they are.
        height: Of the pictures [pixels], up to 8,192.
        width: Likewise.
        max_geom: Of a scene, at most.
        samples: Per pixel, for smooth edges: 1, 4 or 16; None: the next to the model's
            ``visual/quality/offsamples``.
        kernels: The instruction set, ``"avx512"``, ``"avx2"`` or ``"baseline"``; empty: the best.

    Raises:
        TypeError: The model is none, or a number is not whole.
        ValueError: A size or number of samples out of range.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        height: int = 240,
        width: int = 320,
        max_geom: int = 10_000,
        *,
        samples: int | None = None,
        kernels: str = "",
    ):
        if not isinstance(model, mujoco.MjModel):
            raise TypeError(f"model: expected a mujoco.MjModel, got {model!r}")
        height, width = integer("height", height), integer("width", width)
        max_geom = integer("max_geom", max_geom, minimum=1)
        if samples is None:
            wanted = int(model.vis.quality.offsamples)
            samples = 1 if wanted < 2 else 4 if wanted < 9 else 16
        self._model = model
        self._height, self._width = height, width
        self._assets = _assets_of(model)
        self._renderer: _core.Renderer | None = _core.Renderer(
            self._assets,
            height=height,
            width=width,
            samples=integer("samples", samples),
            kernels=kernels,
        )
        self._scene = mujoco.MjvScene(model, max_geom)
        self._option = mujoco.MjvOption()
        self._content = "colors"

    @property
    def model(self) -> mujoco.MjModel:
        """The model that is drawn."""
        return self._model

    @property
    def scene(self) -> mujoco.MjvScene:
        """The scene of the latest ``update_scene``; its geoms, lights and flags may be changed."""
        return self._scene

    @property
    def height(self) -> int:
        """Height of the pictures [pixels]."""
        return self._height

    @property
    def width(self) -> int:
        """Width of the pictures [pixels]."""
        return self._width

    def enable_depth_rendering(self) -> None:
        """From now on ``render`` gives distances along the camera's view."""
        self._content = "depth"

    def disable_depth_rendering(self) -> None:
        """Ends ``enable_depth_rendering``."""
        self._disable("depth")

    def enable_segmentation_rendering(self) -> None:
        """From now on ``render`` gives ids and types of the objects that pixels show."""
        self._content = "segments"

    def disable_segmentation_rendering(self) -> None:
        """Ends ``enable_segmentation_rendering``."""
        self._disable("segments")

    def update_scene(
        self,
        data: mujoco.MjData,
        camera: int | str | mujoco.MjvCamera = -1,
        scene_option: mujoco.MjvOption | None = None,
    ) -> None:
        """Takes the poses of geoms, sites, tendons, lights and the camera from a state.

        Args:
            data: Of the model, after ``mj_forward``.
            camera: A name or number of the model's cameras, -1 for a free one that sees the whole
                model, or an ``MjvCamera``.
            scene_option: What is shown; None: MuJoCo's defaults.

        Raises:
            ValueError: There is no such camera, or no body that an ``MjvCamera`` tracks.
        """
        if isinstance(camera, mujoco.MjvCamera):
            check_camera(self._model, camera, self._scene)
        mujoco.mjv_updateScene(
            self._model,
            data,
            scene_option or self._option,
            None,
            camera if isinstance(camera, mujoco.MjvCamera) else self._camera(camera),
            mujoco.mjtCatBit.mjCAT_ALL.value,
            self._scene,
        )

    def render(self, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Draws the scene.

        Args:
            out: A contiguous array to write into; None: a new one.

        Returns:
            ``out``: colours, (height, width, 3) uint8; or distances, (height, width) float32 [m];
            or objects, (height, width, 2) int32, their id and ``mjtObj``, -1 where there is none.

        Raises:
            ValueError: ``out`` has another shape or dtype, a pose is not finite, or the scene has
                something that is not drawn: skins, flexes, labels, arrows.
            RuntimeError: The renderer is closed.
        """
        if self._renderer is None:
            raise RuntimeError("render() after close()")
        draw, shape, dtype = {
            "colors": (self._renderer.draw, (3,), np.uint8),
            "depth": (self._renderer.draw_depth, (), np.float32),
            "segments": (self._renderer.segment, (2,), np.int32),
        }[self._content]
        if out is None:
            out = np.empty((self._height, self._width, *shape), dtype)
        draw(self._scene, out)
        return out

    def refusal(self) -> str:
        """Says why the scene is not drawn; empty if it is."""
        return _core.render_refusal(self._scene)

    def upload_height_fields(self) -> None:
        """Takes the model's heights anew, after they were changed."""
        self._assets.forget_heights()

    def close(self) -> None:
        """Frees what the renderer holds; it draws no more."""
        self._renderer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _disable(self, content: str) -> None:
        if self._content == content:
            self._content = "colors"

    def _camera(self, which: int | str) -> mujoco.MjvCamera:
        model, number = self._model, self._number(which) if isinstance(which, str) else which
        if not -1 <= number < model.ncam:
            raise ValueError(f"camera: expected -1 to {model.ncam - 1}, got {number}")
        camera = mujoco.MjvCamera()
        if number == -1:
            mujoco.mjv_defaultFreeCamera(model, camera)
        else:
            camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, number
        return camera

    def _number(self, name: str) -> int:
        model = self._model
        number: int = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, name)
        if number == -1:
            names = ", ".join(model.camera(i).name for i in range(model.ncam)) or "none"
            raise ValueError(f"no camera {name!r}; this model has: {names}")
        return number


def check_camera(
    model: mujoco.MjModel, camera: mujoco.MjvCamera, scene: mujoco.MjvScene | None = None
) -> None:
    """Refuses a camera that would end the process in ``mjv_updateScene``.

    Args:
        model: That is seen.
        camera: To be checked.
        scene: Whose own cameras ``mjCAMERA_USER`` takes; None: a new one, which has none.

    Raises:
        ValueError: It is one of the model's or tracks a body, and there is none of that number;
            or its type is none of ``mjtCamera``.
    """
    kinds = mujoco.mjtCamera
    for kind, name, count in (
        (kinds.mjCAMERA_TRACKING, "trackbodyid", model.nbody),
        (kinds.mjCAMERA_FIXED, "fixedcamid", model.ncam),
    ):
        number = getattr(camera, name)
        if camera.type == kind and not 0 <= number < count:
            there = f"0 to {count - 1}" if count else "none, as this model has none"
            raise ValueError(f"camera: {name}: expected {there}, got {number}")
    if camera.type == kinds.mjCAMERA_USER and (
        scene is None or min(eye.frustum_near for eye in scene.camera) < mujoco.mjMINVAL
    ):
        raise ValueError("camera: type: mjCAMERA_USER needs a scene whose own cameras are set")
    if camera.type not in [int(kind) for kind in kinds.__members__.values()]:
        raise ValueError(f"camera: type: expected one of mujoco.mjtCamera, got {camera.type}")


def _assets_of(model: mujoco.MjModel) -> _core.RenderAssets:
    with _lock:
        assets = _shared.get(model._address)
        if assets is None:
            assets = _core.RenderAssets(model._address)
            _shared[model._address] = assets
        return assets
