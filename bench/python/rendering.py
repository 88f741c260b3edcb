"""Pictures without OpenGL, beside MuJoCo's: ``python bench/python/rendering.py [--quick]``.

Frames per second of process time, so that Mesa's threads count, in turn with mujoco.Renderer; and
how far the pictures are apart. Both draw the same states through the same camera with MuJoCo's
default look. Writes bench/results/rendering.json and .md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

import mujoco
import numpy as np
import pictured
import tyro

from pyfastenv import Renderer
from pyfastenv.experiments import measure, sections

SIZES = (64, 84, 480)
DIFFERENCE_SIZES = (84, 480)
FAR = 16  # of 255: a channel that far off makes a pixel count as different
_TEMPLATE = Path(__file__).parent / "templates" / "rendering.md"


def scenes() -> Iterator[pictured.Pictured]:
    """What speeds are measured on."""
    yield from pictured.gymnasium(("HalfCheetah", "Humanoid", "Ant"))
    yield from pictured.dm_control(("cheetah", "walker"))
    yield from pictured.menagerie(("Go1",))


def all_scenes() -> Iterator[pictured.Pictured]:
    """What differences are measured on."""
    yield from pictured.gymnasium()
    yield from pictured.dm_control()
    yield from pictured.fetch()
    yield from pictured.menagerie()


def mujocos(model: Any, size: int) -> Any:
    """MuJoCo's renderer of square pictures."""
    offscreen = model.vis.global_
    offscreen.offwidth = max(offscreen.offwidth, size)
    offscreen.offheight = max(offscreen.offheight, size)
    return mujoco.Renderer(model, size, size)


def draw(renderer: Any, scene: pictured.Pictured, state: int) -> Any:
    """A picture of one of the scene's states."""
    renderer.update_scene(scene.states[state % len(scene.states)], scene.camera)
    return renderer.render()


def rate(renderer: Any, scene: pictured.Pictured, seconds: float) -> float:
    """Frames per second of process time, scenes updated anew for each."""
    frames, start = 0, time.process_time()
    while frames < 2 or time.process_time() - start < seconds:
        draw(renderer, scene, frames)
        frames += 1
    return frames / (time.process_time() - start)


def speeds(rounds: int, seconds: float) -> Iterator[sections.Row]:
    """Frames per second of ours, with each instruction set here, and MuJoCo's in turn."""
    for scene in scenes():
        for size in SIZES:
            ours = {name: r for name in KERNELS if (r := _ours(scene.model, size, name))}
            theirs = mujocos(scene.model, size)
            everyone = {**ours, "mujoco": theirs}
            for renderer in everyone.values():
                draw(renderer, scene, 0)  # meshes are made
            runs = {who: partial(rate, r, scene, seconds) for who, r in everyone.items()}
            found = measure.compared(measure.interleave(runs, rounds))
            theirs.close()
            yield {"suite": scene.suite, "robot": scene.name, "size": size} | {
                "frames_per_s": found["summary"],
                "best": {who: max(values) for who, values in found["rates"].items()},
                "gain": found["ratios"],
            }


KERNELS = ("avx512", "avx2", "baseline")


def _ours(model: Any, size: int, kernels: str) -> Any:
    try:
        return Renderer(model, size, size, kernels=kernels)
    except ValueError:  # this processor lacks it
        return None


def differences() -> Iterator[sections.Row]:
    """Mean absolute difference per channel [of 255] and the share of pixels that are far off."""
    for scene in all_scenes():
        row: sections.Row = {"suite": scene.suite, "robot": scene.name}
        for size in DIFFERENCE_SIZES:
            theirs, ours = mujocos(scene.model, size), Renderer(scene.model, size, size)
            apart = [
                np.abs(draw(theirs, scene, i).astype(int) - draw(ours, scene, i))
                for i in range(len(scene.states))
            ]
            theirs.close()
            row[f"mean_{size}"] = float(np.mean(apart))
            row[f"far_{size}"] = float((np.max(apart, -1) > FAR).mean())
        yield row


def main() -> None:
    options = tyro.cli(sections.Options, description=__doc__)
    rounds, seconds = (2, 0.05) if options.quick else (7, 0.2)
    sections.run(
        "rendering",
        {"speeds": lambda: speeds(rounds, seconds), "differences": differences},
        options,
        template=_TEMPLATE,
        about={"rounds": rounds, "seconds": seconds},
    )


if __name__ == "__main__":
    main()
