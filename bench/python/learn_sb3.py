"""The same curve, sooner: ``python bench/python/learn_sb3.py [--steps N] [--seeds K]``.

Stable-Baselines3's PPO on HalfCheetah-v5 x 16 through its own environments and through ours, same
seeds and settings. Writes docs/results/sb3.json, sb3.md and sb3.png.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecNormalize

from pyfastenv.experiments import measure, pictures
from pyfastenv.experiments.tables import table
from pyfastenv.integrations.sb3 import make_sb3
from pyfastenv.training.plots import COLOURS

ROOT = Path(__file__).parents[2]
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


def markdown(runs: list[dict[str, Any]]) -> str:
    """The table."""
    lines = [
        f"# Stable-Baselines3's PPO on {ENV_ID} x {NUM_ENVS}",
        "",
        "Written by `python bench/python/learn_sb3.py` (`make results-sb3`): same seeds and",
        "settings; returns are means of the last 100 episodes. Equal checksums: equal weights.",
        "(SubprocVecEnv hands on float64 rewards, DummyVecEnv and ours float32 ones.)",
        "",
    ]
    rows = [
        (run["seed"], run["name"], f"{run['steps_per_s']:,.0f}", f"{run['curve'][-1][2]:,.1f}",
         run["checksum"])
        for run in runs
    ]  # fmt: skip
    columns = ("seed", "environments", "steps/s", "last return", "checksum of the weights")
    lines.append(table(columns, rows))
    rates = {name: [r["steps_per_s"] for r in runs if r["name"] == name] for name in MAKERS}
    gains = ", ".join(
        f"{measure.ratio(rates['pyfastenv'], rates[name])['median']:.2f} against {name}"
        for name in MAKERS
        if name != "pyfastenv"
    )
    lines += ["", f"Median gain in steps/s, learning included: {gains}.", ""]
    return "\n".join([*lines, "![Learning curves](sb3.png)", ""])


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    runs = []
    for seed in range(args.seeds):
        for name in sorted(MAKERS, reverse=seed % 2 == 1):
            runs.append(learn(name, seed, args.steps))
            print(f"{name}, seed {seed}: {runs[-1]['steps_per_s']:,.0f} steps/s", flush=True)
    results = {"machine": measure.machine(), "runs": runs}
    (args.output / "sb3.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.output / "sb3.md").write_text(markdown(runs))
    draw(runs, args.output / "sb3.png")


if __name__ == "__main__":
    main()
