"""Terrain for robots on legs: kinds of ground by levels of difficulty, in one height field.

    from pyfastenv.tasks.language import terrain

    GROUND = terrain.Terrain(
        {
            "stairs": terrain.pyramid_stairs(step_height_range=(0.02, 0.1)),
            "pit": terrain.pyramid_stairs(step_height_range=(0.02, 0.1), inverted=True),
            "waves": terrain.wave(amplitude_range=(0.0, 0.15)),
        },
        num_levels=10,
    )

    class Walker(pyfastenv.Task):
        def model(self):
            spec = mujoco.MjSpec.from_file("robot.xml")
            GROUND.add_to(spec)
            return spec

Names and parameters are those of Isaac Lab's and mjlab's terrain generators, where they have them.
A kind is a function of difficulty, from 0 to 1, a :class:`Tile` and a ``numpy.random.Generator``
that returns the heights of the tile's points ``(n, n)`` [m]; so is one of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

Heights = NDArray[np.float64]


@dataclass(frozen=True)
class Tile:
    """The points of a square of ground.

    Attributes:
        x, y: ``(n, n)`` places of its points from its centre [m]; x grows with the first index.
        size: Its length and width [m].
    """

    x: Heights
    y: Heights
    size: float

    @property
    def radius(self) -> Heights:
        """``(n, n)``: the greater of the distances along x and y from the centre [m]."""
        return np.maximum(abs(self.x), abs(self.y))


Kind = Callable[[float, Tile, np.random.Generator], Heights]
Range = tuple[float, float]
_EDGE = 1e-9  # [m]: points that rounding has put before an edge stand on it


def flat() -> Kind:
    """Flat ground, whatever the difficulty."""
    return lambda difficulty, tile, rng: np.zeros_like(tile.x)


def pyramid_slope(slope_range: Range, platform_width: float = 1.0, inverted: bool = False) -> Kind:
    """Slopes on four sides, up to a platform; ``inverted``: down to it.

    Args:
        slope_range: Rise by run, of the easiest and the hardest.
        platform_width: Of the square in the middle [m].
        inverted: Whether the platform is the lowest place.
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        run = 0.5 * tile.size - np.maximum(tile.radius, 0.5 * platform_width)
        return _sign(inverted) * _between(slope_range, difficulty) * run

    return heights


def pyramid_stairs(
    step_height_range: Range,
    step_width: float = 0.3,
    platform_width: float = 1.0,
    inverted: bool = False,
) -> Kind:
    """Stairs on four sides, up to a platform; ``inverted``: down to it.

    Args:
        step_height_range: Of the easiest and the hardest [m].
        step_width: [m]; a multiple of the horizontal scale has steps of equal width.
        platform_width: Of the square in the middle, at least [m].
        inverted: Whether the platform is the lowest place.
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        half = 0.5 * tile.size
        most = np.floor((half - 0.5 * platform_width) / step_width + _EDGE)
        steps = np.minimum(np.floor((half - tile.radius) / step_width + _EDGE), most)
        return _sign(inverted) * _between(step_height_range, difficulty) * steps

    return heights


def wave(amplitude_range: Range, num_waves: int = 2) -> Kind:
    """Hills and hollows, sines along x times sines along y.

    Args:
        amplitude_range: Of the easiest and the hardest [m].
        num_waves: Along each side.
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        waves = 2.0 * np.pi * num_waves / tile.size
        shape = np.sin(waves * tile.x) * np.sin(waves * tile.y)
        return _between(amplitude_range, difficulty) * shape

    return heights


def random_uniform(
    noise_range: Range, noise_step: float = 0.005, downsampled_scale: float | None = None
) -> Kind:
    """Random heights, in steps, times the difficulty.

    Args:
        noise_range: The least and the greatest of the hardest [m].
        noise_step: Heights are multiples of it, before the difficulty [m].
        downsampled_scale: Distance of the points that are drawn, between which the ground is
            interpolated [m]; None: every point is drawn.
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        n = len(tile.x)
        count = n if downsampled_scale is None else int(tile.size / downsampled_scale) + 1
        low, high = (round(bound / noise_step) for bound in noise_range)
        drawn = noise_step * rng.integers(low, high + 1, (count, count)).astype(np.float64)
        if count < n:
            have, want = np.linspace(0.0, 1.0, count), np.linspace(0.0, 1.0, n)
            columns = [np.interp(want, have, column) for column in drawn.T]
            drawn = np.array([np.interp(want, have, row) for row in np.array(columns).T])
        return difficulty * drawn

    return heights


def random_grid(grid_width: float, grid_height_range: Range, platform_width: float = 1.0) -> Kind:
    """Square blocks of random heights, up and down.

    Args:
        grid_width: Of a block [m].
        grid_height_range: The most that one is up or down, of the easiest and the hardest [m].
        platform_width: Of the square in the middle, which is at 0 [m].
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        most, count = _between(grid_height_range, difficulty), int(tile.size / grid_width) + 1
        blocks = rng.uniform(-most, most, (count, count))
        x, y = (np.floor((p + 0.5 * tile.size) / grid_width + _EDGE) for p in (tile.x, tile.y))
        return _with_platform(tile, blocks[x.astype(int), y.astype(int)], platform_width)

    return heights


def discrete_obstacles(
    obstacle_width_range: Range,
    obstacle_height_range: Range,
    num_obstacles: int,
    platform_width: float = 1.0,
) -> Kind:
    """Boxes and pits at random places: up or down by their height, or by half of it.

    Args:
        obstacle_width_range: The least and the greatest length and width [m].
        obstacle_height_range: Of the easiest and the hardest [m].
        num_obstacles: Of a tile; later ones stand in place of earlier ones.
        platform_width: Of the square in the middle, which is at 0 [m].
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        height, ground = _between(obstacle_height_range, difficulty), np.zeros_like(tile.x)
        for _ in range(num_obstacles):
            x, y = rng.uniform(-0.5 * tile.size, 0.5 * tile.size, 2)
            length, width = 0.5 * rng.uniform(*obstacle_width_range, 2)
            inside = (abs(tile.x - x) <= length) & (abs(tile.y - y) <= width)
            ground[inside] = height * rng.choice((-1.0, -0.5, 0.5, 1.0))
        return _with_platform(tile, ground, platform_width)

    return heights


def stepping_stones(
    stone_width_range: Range,
    stone_distance_range: Range,
    stone_height_max: float = 0.0,
    holes_depth: float = -1.0,
    platform_width: float = 1.0,
) -> Kind:
    """Square stones over a hole, smaller and farther apart where it is harder.

    Args:
        stone_width_range: Of the hardest and the easiest [m].
        stone_distance_range: Between stones, of the easiest and the hardest [m].
        stone_height_max: The most that a stone is above or below 0 [m].
        holes_depth: The height of the ground between stones [m].
        platform_width: Of the square in the middle, which is at 0 [m].
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        width = _between(stone_width_range, 1.0 - difficulty)
        period = width + _between(stone_distance_range, difficulty)
        tops = rng.uniform(-stone_height_max, stone_height_max, 2 * [int(tile.size / period) + 2])
        x, y = (p + 0.5 * tile.size + rng.uniform(0.0, period) for p in (tile.x, tile.y))
        column, row = (np.floor(p / period + _EDGE).astype(int) for p in (x, y))
        on_stone = (x - column * period <= width + _EDGE) & (y - row * period <= width + _EDGE)
        return _with_platform(
            tile, np.where(on_stone, tops[column, row], holes_depth), platform_width
        )

    return heights


def bordered(kind: Kind, border_width: float) -> Kind:
    """A kind with flat ground at 0 around it, as its tile's edge.

    Args:
        kind: Of the square inside, which is smaller by twice the border.
        border_width: [m].
    """

    def heights(difficulty: float, tile: Tile, rng: np.random.Generator) -> Heights:
        half = 0.5 * tile.size - border_width
        x, y = (np.clip(places, -half, half) for places in (tile.x, tile.y))
        inside = tile.radius <= half + _EDGE
        return np.where(inside, kind(difficulty, Tile(x, y, 2.0 * half), rng), 0.0)

    return heights


class Terrain:
    """Squares of ground in one height field: a kind for each column, harder from row to row.

    Rows (levels) follow each other along x, columns (kinds) along y; the middle is at the origin.
    Each tile draws from a stream of its own, of ``seed``, level and column.

    Args:
        kinds: Functions by name; a name for each column.
        num_levels: Rows; the difficulty rises from 0 to 1, and is 1 where there is one row.
        size: Length and width of a tile [m].
        border_width: Of the flat ground around all [m].
        horizontal_scale: Distance of the height field's points [m].
        seed: Of what tiles draw.

    Attributes:
        names: Of the columns.
        size: Of a tile [m].
        heights: ``(nx, ny)`` of the points, before they are rounded to float32 [m].
        origins: ``(num_levels, num_kinds, 3)``: the tiles' centres, and the greatest height within
            a metre of each along x and y [m].

    Raises:
        ValueError: Sizes that are not multiples of the horizontal scale, no kinds, or heights of
            another shape or that are not finite.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        num_levels: int = 10,
        *,
        size: float = 8.0,
        border_width: float = 4.0,
        horizontal_scale: float = 0.1,
        seed: int = 0,
    ):
        cells, border = (_multiple(w, horizontal_scale) for w in (size, border_width))
        if not kinds or num_levels < 1 or cells < 1:
            raise ValueError(
                "Terrain: expected at least one kind, one level and one cell of a tile"
            )
        self.names, self.size, self.scale = tuple(kinds), size, horizontal_scale
        shape = num_levels * cells + 2 * border + 1, len(kinds) * cells + 2 * border + 1
        self.heights: Heights = np.zeros(shape)
        self.origins: Heights = np.zeros((num_levels, len(kinds), 3))
        places = horizontal_scale * (np.arange(cells + 1) - 0.5 * cells)
        x, y = np.meshgrid(places, places, indexing="ij")
        tile = Tile(x, y, size)
        centre = tile.radius <= 1.0 + _EDGE
        for level in range(num_levels):
            difficulty = level / (num_levels - 1) if num_levels > 1 else 1.0
            for column, (name, kind) in enumerate(kinds.items()):
                rng = np.random.default_rng((seed, level, column))
                heights = np.asarray(kind(difficulty, tile, rng), np.float64)
                if heights.shape != tile.x.shape or not np.isfinite(heights).all():
                    raise ValueError(
                        f"Terrain: {name!r}: expected finite heights {tile.x.shape}, got "
                        f"{heights.shape}"
                    )
                i, j = border + level * cells, border + column * cells
                self.heights[i : i + cells + 1, j : j + cells + 1] = heights
                self.origins[level, column] = (
                    (level + 0.5 - 0.5 * num_levels) * size,
                    (column + 0.5 - 0.5 * len(kinds)) * size,
                    heights[centre].max(),
                )

    def add_to(
        self, spec: mujoco.MjSpec, name: str = "terrain", *, body: Any = None, **geom: Any
    ) -> Any:
        """Adds it to a model as a height field, and a geom of the world.

        Args:
            spec: The model's.
            name: Of both.
            body: Of the geom, which stands at the origin and is not turned; None: the world.
            **geom: Further attributes of the geom: ``friction``, ``material`` …

        Returns:
            The geom.
        """
        low, high = float(self.heights.min()), float(self.heights.max())
        nx, ny = self.heights.shape
        spec.add_hfield(
            name=name,
            nrow=ny,
            ncol=nx,
            size=[
                0.5 * (nx - 1) * self.scale,
                0.5 * (ny - 1) * self.scale,
                max(high - low, 1e-6),
                1.0,
            ],
            userdata=(self.heights.T - low).ravel().tolist(),
        )
        return (body or spec.worldbody).add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_HFIELD,
            hfieldname=name,
            pos=[0.0, 0.0, low],
            **geom,
        )


def grid_pattern(size: Range = (1.6, 1.0), resolution: float = 0.1) -> Heights:
    """Points of a height scan, around a robot: of setup, for :func:`.helpers.height_scan`.

    Args:
        size: Of the rectangle, ahead and across [m].
        resolution: Distance of points [m].

    Returns:
        ``(n, 2)``, 187 of 17 by 11 where nothing else is asked for, row by row across.
    """
    x, y = (
        resolution * (np.arange(n) - 0.5 * (n - 1)) for n in (_count(s, resolution) for s in size)
    )
    return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)


def _count(width: float, resolution: float) -> int:
    return int(np.floor(width / resolution + 1e-6)) + 1


def _between(bounds: Range, difficulty: float) -> float:
    return bounds[0] + difficulty * (bounds[1] - bounds[0])


def _sign(inverted: bool) -> float:
    return -1.0 if inverted else 1.0


def _with_platform(tile: Tile, heights: Heights, width: float) -> Heights:
    return np.where(tile.radius <= 0.5 * width + _EDGE, 0.0, heights)


def _multiple(width: float, scale: float) -> int:
    count = round(width / scale)
    if width < 0.0 or abs(count * scale - width) > 1e-6:
        raise ValueError(
            f"Terrain: expected a multiple of the horizontal scale {scale}, got {width}"
        )
    return count
