"""Pixels: pictures as observations, as a user asks for them, as the core is told, as one gets them.

The pool keeps an observation as one row of bytes: its numbers, if they are wanted, and the pictures
behind them (csrc/core/obs_layout.h). What users see are views of such rows.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import DTypeLike

from pyfastenv.vector.arguments import integer, note_near_names
from pyfastenv.vector.obs_views import ArrayOrTensor, FlatViews

_LARGEST = 8192  # pixels, of a side
_CAMERA_KEYS = ("lookat", "distance", "azimuth", "elevation", "trackbodyid")


@dataclass(frozen=True, kw_only=True)
class PixelOptions:
    """Options of pictures as observations; :class:`~pyfastenv.FastVectorEnv` takes them as a dict.

    Attributes:
        height: Of the pictures [pixels], up to 8,192.
        width: Likewise.
        camera: A camera of the model by name or number; or a free one, a dict of ``"lookat"``,
            ``"distance"``, ``"azimuth"``, ``"elevation"`` and, to move with a body,
            ``"trackbodyid"``; None is gymnasium's, as in ``render()``.
        frame_stack: How many of the latest pictures an observation has, the oldest first. An
            episode begins with its first one so many times.
        depth: A distance [m]: pictures have one channel more, the distance along the view, whose
            255 is this distance and all beyond; None: they have not.
        segmentation: Whether they have one channel more with the geoms' numbers plus 1 (0: no
            geom), of models with fewer than 255 geoms.
        channels: ``"last"`` or ``"first"``.
        with_state: Observations are a Dict of ``"pixels"`` and ``"state"``, the numbers that they
            would be without pixels.
        render_every: Draw after every so many steps of an episode; between, the pictures stay.
        samples: Per pixel, for smooth edges: 1, 4 or 16; None: the next to the model's
            ``visual/quality/offsamples``.
    """

    height: int = 84
    width: int = 84
    camera: str | int | Mapping[str, Any] | None = None
    frame_stack: int = 3
    depth: float | None = None
    segmentation: bool = False
    channels: str = "last"
    with_state: bool = False
    render_every: int = 1
    samples: int | None = None

    @classmethod
    def of(cls, given: Any) -> PixelOptions:
        """Reads a user's dict.

        Raises:
            TypeError: No dict, an unknown key, or a value of the wrong type.
            ValueError: A value out of range.
        """
        if not isinstance(given, Mapping):
            raise TypeError(
                f"pixels: expected a dict such as {{'height': 84, 'width': 84}}, got {given!r}"
            )
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in given if name not in known]:
            error = TypeError(f"pixels: unknown {unknown[0]!r}; there are {', '.join(known)}")
            note_near_names(error, map(str, unknown), known)
            raise error
        options = cls(**given)
        options._check()
        return options

    def _check(self) -> None:
        for name, below in (
            ("height", _LARGEST + 1),
            ("width", _LARGEST + 1),
            ("frame_stack", 2**10),
            ("render_every", 2**31),
        ):
            integer(f"pixels: {name}", getattr(self, name), minimum=1, below=below)
        for name in ("segmentation", "with_state"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(
                    f"pixels: {name}: expected True or False, got {getattr(self, name)!r}"
                )
        if self.channels not in ("last", "first"):
            raise ValueError(f"pixels: channels: expected 'last' or 'first', got {self.channels!r}")
        is_whole = self.samples is None or isinstance(self.samples, int | np.integer)
        if not is_whole or self.samples not in (None, 1, 4, 16):
            raise ValueError(f"pixels: samples: expected 1, 4, 16 or None, got {self.samples!r}")
        if self.depth is not None:
            depth: Any = self.depth
            is_number = isinstance(depth, numbers.Real) and not isinstance(depth, bool)
            if not is_number or not 0.0 < self.depth < math.inf:
                raise ValueError(
                    "pixels: depth: expected the distance in metres that is to be 255, or None, "
                    f"got {self.depth!r}"
                )
        self._camera()

    def _camera(self) -> dict[str, Any]:
        if self.camera is None:
            return {}
        if isinstance(self.camera, str):
            return {"camera_name": self.camera}
        if not isinstance(self.camera, Mapping):
            return {"camera_id": integer("pixels: camera", self.camera, minimum=0)}
        camera = dict(self.camera)
        if unknown := [name for name in camera if name not in _CAMERA_KEYS]:
            keys = ", ".join(_CAMERA_KEYS)
            raise TypeError(f"pixels: camera: unknown {unknown[0]!r}; there are {keys}")
        read = {name: _read_number(name, value) for name, value in camera.items()}
        if "trackbodyid" in camera:
            name = "trackbodyid"
            read[name] = integer(f"pixels: camera: {name}", camera[name], minimum=0)
        return read

    def description(self, free_camera: Mapping[str, Any]) -> dict[str, Any]:
        """The core's words for it; ``free_camera`` says how gymnasium's default one differs."""
        nowhere = dict.fromkeys(("camera_name", "camera_id", *_CAMERA_KEYS))
        camera = {**nowhere, **(self._camera() if self.camera is not None else free_camera)}
        return {
            "height": int(self.height),
            "width": int(self.width),
            "frame_stack": int(self.frame_stack),
            "channels_first": self.channels == "first",
            "render_every": int(self.render_every),
            "depth": float(self.depth or 0.0),
            "segmentation": bool(self.segmentation),
            "samples": int(self.samples or 0),
            "with_state": bool(self.with_state),
            "identity": json.dumps(asdict(self), default=_plain, sort_keys=True),
            **camera,
        }

    @property
    def num_channels(self) -> int:
        """Channels of an observation, of all its pictures together."""
        return self.frame_stack * (3 + (self.depth is not None) + bool(self.segmentation))

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an observation's pictures."""
        if self.channels == "first":
            return self.num_channels, self.height, self.width
        return self.height, self.width, self.num_channels


def _read_number(name: str, value: Any) -> Any:
    """A camera's number, or three, as Python's; or an error that names it."""
    shape = (3,) if name == "lookat" else ()
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        array = np.full(shape, np.nan)
    if array.shape != shape or not np.isfinite(array).all():
        expected = "3 numbers" if shape else "a number"
        raise ValueError(f"pixels: camera: {name}: expected {expected}, got {value!r}")
    return array.tolist()


def _plain(value: Any) -> Any:
    """This makes NumPy's numbers Python's, for JSON, and all else text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def share_bounds(space: gymnasium.Space[Any]) -> None:
    """Makes the bounds of many environments' pictures views of one number each.

    gymnasium's four arrays are each as large as an observation of all environments.
    """
    box = space["pixels"] if isinstance(space, gymnasium.spaces.Dict) else space
    for name in ("low", "high", "bounded_below", "bounded_above"):
        bound = getattr(box, name)
        setattr(box, name, np.broadcast_to(bound.flat[0], bound.shape))


class PixelViews(FlatViews):
    """Views of the pool's rows of bytes as users see them.

    Args:
        options: What pictures are in them.
        row_bytes: Of a row.
        state: The space of the numbers that are in front of the pictures, if any are.
        dtype: Theirs, as the rows' library calls it; None: NumPy's.
    """

    def __init__(
        self,
        options: PixelOptions,
        row_bytes: int,
        state: gymnasium.spaces.Box,
        dtype: Any = None,
    ):
        self.options = options
        self._row_bytes, self._state = row_bytes, state
        self._dtype = state.dtype if dtype is None else dtype
        assert state.dtype is not None
        self._numbers = slice(state.shape[0] * state.dtype.itemsize)
        # behind the numbers, aligned
        begin = -(-self._numbers.stop // 8) * 8 if options.with_state else 0
        self._pictures = slice(begin, begin + math.prod(options.shape))
        assert row_bytes - 8 < self._pictures.stop <= row_bytes

    @property
    def numbers_dtype(self) -> Any:
        """NumPy's dtype of the state."""
        return self._state.dtype

    def with_dtype(self, dtype: Any) -> PixelViews:
        """The same of rows of a library that calls the numbers' dtype so."""
        return PixelViews(self.options, self._row_bytes, self._state, dtype)

    def of(self, flat: ArrayOrTensor) -> Any:
        """The pictures in rows, an array or a tensor ``(…, row bytes)`` uint8.

        Returns:
            ``(…, *shape)`` uint8, or a dict of that and the state: views of ``flat``.
        """
        pixels = flat[..., self._pictures].reshape((*flat.shape[:-1], *self.options.shape))
        if not self.options.with_state:
            return pixels
        return {"pixels": pixels, "state": flat[..., self._numbers].view(self._dtype)}

    def space(self, dtype: DTypeLike) -> gymnasium.Space[Any]:
        """One environment's; ``dtype`` is the state's."""
        pixels = gymnasium.spaces.Box(0, 255, self.options.shape, np.uint8)
        if not self.options.with_state:
            return pixels
        return gymnasium.spaces.Dict({"pixels": pixels, "state": self._state})
