"""mjlab's Go1 learns to walk on the CPU: ``python bench/python/mjlab_go1.py [--iterations N]``.

mjlab's velocity task on flat ground and its PPO (rsl_rl), as mjlab ships both, simulated by
pyfastenv.integrations.mjlab. Goes on from the last checkpoint in its folder, with new episodes.
Writes bench/results/mjlab_go1.json and mjlab_go1.png (`make bench NAME=mjlab`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from mjlab.envs import ManagerBasedRlEnv, manager_based_rl_env
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg
from rsl_rl.utils import LogWriter

from pyfastenv.experiments import pictures, sections
from pyfastenv.integrations.mjlab import Simulation
from pyfastenv.publish.plots import COLOURS

TASK = "Mjlab-Velocity-Flat-Unitree-Go1"
# rsl_rl's names of what is kept
KEPT = {
    "Train/mean_reward": "episode_return",
    "Train/mean_episode_length": "episode_steps",
    "Episode_Reward/track_linear_velocity": "tracking",
}


@dataclass(frozen=True, kw_only=True)
class Options(sections.Options):
    """How long."""

    iterations: int = 300
    num_envs: int = 256
    folder: Path = Path("build/mjlab_go1")
    """Checkpoints, and a line of curve.jsonl per iteration."""


class Curve(LogWriter):
    """What rsl_rl tells its logger, a line per iteration."""

    def __init__(self, log_dir: str, steps: int):
        """Goes on with a file of lines; an iteration has so many steps of environments."""
        self._path, self._steps = Path(log_dir, "curve.jsonl"), steps
        self._row: dict[str, Any] = {}
        self._began = time.process_time()

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        if tag not in KEPT:
            return
        if self._row.get("iteration") != global_step:
            self.stop()
            now = time.process_time()
            self._row = {
                "iteration": global_step,
                "env_steps": (global_step + 1) * self._steps,
                "cpu_s": round(now - self._began, 3),
            }
            self._began = now
        self._row[KEPT[tag]] = round(float(scalar_value), 4)

    def stop(self) -> None:
        if self._row:
            with self._path.open("a") as file:
                file.write(json.dumps(self._row) + "\n")


def rows(folder: Path) -> list[dict[str, Any]]:
    """The curve so far."""
    path = folder / "curve.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def learn(options: Options) -> None:
    """Trains until so many iterations are done, from the last checkpoint on."""
    manager_based_rl_env.Simulation = Simulation
    cfg, agent = load_env_cfg(TASK), load_rl_cfg(TASK)
    cfg.scene.num_envs, cfg.seed = options.num_envs, 0
    agent.save_interval = 10
    told: dict[str, Any] = asdict(agent)
    steps = options.num_envs * agent.num_steps_per_env
    told["logger"] = {"class_name": Curve, "steps": steps}
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg, device="cpu"))
    runner = MjlabOnPolicyRunner(env, told, log_dir=str(options.folder))
    options.folder.mkdir(parents=True, exist_ok=True)
    saved = {int(path.stem.removeprefix("model_")): path for path in options.folder.glob("*.pt")}
    if saved:
        runner.load(str(saved[max(saved)]))
        runner.current_learning_iteration = max(saved) + 1
    kept = [row for row in rows(options.folder) if row["iteration"] <= max(saved, default=-1)]
    Path(options.folder, "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    runner.learn(options.iterations - runner.current_learning_iteration)
    env.close()


def draw(curve: list[dict[str, Any]], path: Path) -> None:
    """Return, length of episodes and how well commands are followed, against steps."""
    shown = {
        "episode_return": "return, last 100 episodes",
        "episode_steps": "steps of an episode (at most 1,000)",
        "tracking": "reward for the velocity (at most 2)",
    }
    figure, panels = pictures.panels(3, size=(11, 3.2), columns=3)
    for axes, (name, label) in zip(panels, shown.items(), strict=True):
        known = [(row["env_steps"] / 1e6, row[name]) for row in curve if name in row]
        axes.plot(*zip(*known, strict=True), color=COLOURS[0], linewidth=1.6)
        axes.set_xlabel("environment steps [millions]")
        axes.set_title(label)
    pictures.save(figure, path)


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)

    def curve() -> Iterator[sections.Row]:
        done = max((row["iteration"] + 1 for row in rows(options.folder)), default=0)
        if done < options.iterations:
            learn(options)
        yield from (row for row in rows(options.folder) if row["iteration"] < options.iterations)

    about = {"task": TASK, "num_envs": options.num_envs}
    results = sections.run("mjlab_go1", {"curve": curve}, options, about=about, flat=True)
    draw(results["curve"], options.output / "mjlab_go1.png")


if __name__ == "__main__":
    main()
