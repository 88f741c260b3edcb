"""README's film: ``python bench/python/film.py``, trained robots side by side.

The policies of docs/results/policies, acting greedily from a reset with the same seed; rendered by
pyfastenv into docs/robots/trained.webp.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import policies
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import pyfastenv
from pyfastenv.nn.torch_policy import TorchPolicy

ROBOTS = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5", "Swimmer-v5")
COLUMNS = 3
SIZE = 240, 160  # of a picture
SKIPPED_S, SECONDS, RATE = 1.0, 5.0, 20  # from a standstill; filmed; pictures a second
OUTPUT = Path(__file__).parents[2] / "docs/robots/trained.webp"


def pictures(env_id: str) -> Iterator[NDArray[np.uint8]]:
    """``(height, width, 3)``, RATE a second of the robot's time."""
    width, height = SIZE
    looks: dict[str, Any] = {
        "width": width,
        "height": height,
        "camera_name": "track",
        "render_mode": "rgb_array",
    }
    with closing(pyfastenv.make_vec(env_id, 1, autoreset_mode="SameStep", **looks)) as envs:
        policy = TorchPolicy.of(policies.load(env_id), envs.single_action_space)
        obs, _ = envs.reset(seed=0)
        fps = envs.metadata["render_fps"]
        due = SKIPPED_S
        for step in range(round((SKIPPED_S + SECONDS) * fps)):
            obs = envs.step(policy.act(obs, deterministic=True))[0]
            if step / fps >= due:
                due += 1.0 / RATE
                yield envs.render()[0]


def main() -> None:
    """Writes the film."""
    films = [list(pictures(env_id)) for env_id in ROBOTS]
    frames = []
    for shown in zip(*films, strict=False):
        rows = [np.hstack(shown[i : i + COLUMNS]) for i in range(0, len(shown), COLUMNS)]
        frame = Image.fromarray(np.vstack(rows))
        for i, env_id in enumerate(ROBOTS):
            corner = SIZE[0] * (i % COLUMNS) + 6, SIZE[1] * (i // COLUMNS) + 4
            outline: dict[str, Any] = {"stroke_width": 2, "stroke_fill": "black"}
            ImageDraw.Draw(frame).text(corner, env_id, "white", **outline)
        frames.append(frame)
    options: dict[str, Any] = {
        "duration": round(1000 / RATE),
        "loop": 0,
        "quality": 40,
        "method": 6,
    }
    frames[0].save(OUTPUT, save_all=True, append_images=frames[1:], **options)
    print(f"{OUTPUT.name}: {len(frames)} pictures, {OUTPUT.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
