"""The same curve, sooner: ``python bench/python/learn_sb3.py [--steps N] [--seeds K]``.

Stable-Baselines3's PPO on HalfCheetah-v5 x 16 through its own environments and through ours, same
seeds and settings. Writes docs/results/sb3.json, sb3.md and sb3.png.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecNormalize

from pyfastenv.experiments import measure, pictures, sections
from pyfastenv.integrations.sb3 import make_sb3
from pyfastenv.publish.plots import COLOURS

ENV_ID = "HalfCheetah-v5"
NUM_ENVS = 16
MAKERS: dict[str, Callable[[int], VecEnv]] = {
    kind.__name__: lambda seed, kind=kind: make_vec_env(
        ENV_ID, NUM_ENVS, seed=seed, vec_env_cls=kind
    )
    for kind in (SubprocVecEnv, DummyVecEnv)
} | {
    "pyfastenv": lambda seed: make_sb3(ENV_ID, NUM_ENVS, seed=seed),
}


@dataclass(frozen=True, kw_only=True)
class Options(sections.Options):
    """How long, and how often."""

    steps: int = 200_000
    seeds: int = 3
    output: Path = Path("docs/results")
    """The folder."""


class Curve(BaseCallback):
    """Mean return of the last 100 episodes, against steps and seconds, once per rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[tuple[int, float, float]] = []
        self._start = time.perf_counter()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer
        if episodes:
            mean = float(np.mean([episode["r"] for episode in episodes]))
            seconds = time.perf_counter() - self._start
            self.points.append((self.num_timesteps, seconds, mean))


def learn(name: str, seed: int, num_steps: int) -> dict[str, Any]:
    """One training; the checksum is that of the weights at its end."""
    with measure.quiet_stderr():
        venv = VecNormalize(MAKERS[name](seed))
    model = PPO("MlpPolicy", venv, n_steps=128, batch_size=256, seed=seed, device="cpu")
    curve = Curve()
    start = time.perf_counter()
    model.learn(num_steps, callback=curve)
    seconds = time.perf_counter() - start
    venv.close()
    weights = hashlib.sha256()
    for parameter in model.policy.parameters():
        weights.update(parameter.detach().numpy().tobytes())
    return {
        "name": name,
        "seed": seed,
        "seconds": seconds,
        "steps_per_s": model.num_timesteps / seconds,
        "checksum": weights.hexdigest()[:12],
        "curve": curve.points,
    }


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """Returns against steps, where the curves cover each other, and against time."""
    figure, panels = pictures.panels(2, size=(9.2, 3.6), columns=2, sharey=True)
    for i, name in enumerate(MAKERS):
        for run in (run for run in runs if run["name"] == name):
            steps, seconds, returns = zip(*run["curve"], strict=True)
            # ever thinner, so that the ones underneath are seen
            style: dict[str, Any] = {"color": COLOURS[i], "linewidth": 4.0 - 1.5 * i}
            label = name if run["seed"] == runs[0]["seed"] else None
            panels[0].plot([step / 1e3 for step in steps], returns, label=label, **style)
            panels[1].plot(seconds, returns, **style)
    panels[0].set_xlabel("environment steps [thousands]")
    panels[1].set_xlabel("time [s]")
    panels[0].set_ylabel("return, last 100 episodes")
    panels[0].set_title("the same curves …")
    panels[1].set_title("… sooner")
    panels[0].legend(frameon=False)
    figure.suptitle(f"Stable-Baselines3's PPO on {ENV_ID} x {NUM_ENVS}")
    pictures.save(figure, path)


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    torch.set_num_threads(1)

    def runs() -> Iterator[sections.Row]:
        for seed in range(options.seeds):
            for name in sorted(MAKERS, reverse=seed % 2 == 1):
                yield learn(name, seed, options.steps)

    template = Path(__file__).parent / "templates" / "sb3.md"
    results = sections.run("sb3", {"runs": runs}, options, template=template, flat=True)
    draw(results["runs"], options.output / "sb3.png")


if __name__ == "__main__":
    main()
