"""Trains, measures and films robots: ``python bench/python/robots.py [--seed 0] [--only ID …]``.

Trains each one as ``pyfastenv train ppo --env-id …`` does (a run that is there already goes on),
Playground's with two more seeds and once more with kicks and less noise, and walkers by
examples/walk.py with three seeds; measures how well each follows its commands, drawn and held ones,
and films it: docs/results/robots.json, docs/robots.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import pyfastenv
from pyfastenv.algorithms import ppo
from pyfastenv.experiments import sections
from pyfastenv.runs.folder import read_config, run_of
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.saved import SavedPolicy, resumed_config
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.suites import ROBOTS
from pyfastenv.vector.vector_env import FastVectorEnv

ROOT = Path(__file__).parents[2]
NUM_ENVS = 64
WINDOW = 50  # steps over which velocities are averaged: a second, some strides
FILM_STEPS, FILM_SIZE = 400, (360, 270)
# forward, sideways [m/s], turning [rad/s]
COMMANDS = {
    "stand": (0.0, 0.0, 0.0),
    "forward": (1.0, 0.0, 0.0),
    "fast": (1.5, 0.0, 0.0),
    "backward": (-1.0, 0.0, 0.0),
    "left": (0.0, 0.5, 0.0),
    "right": (0.0, -0.5, 0.0),
    "turn left": (0.0, 0.0, 1.0),
    "turn right": (0.0, 0.0, -1.0),
    "curve": (0.8, 0.0, 0.8),
    "diagonal": (0.7, 0.4, -0.5),
}
GENTLE = {name: each for name, each in COMMANDS.items() if name != "fast"}  # humanoids'
# what examples/walk.py calls them
WALKERS = {
    "BerkeleyHumanoidWalk-v0": "berkeley",
    "G1Walk-v0": "g1",
    "Go1Trot-v0": "go1",
    "T1Walk-v0": "t1",
}
SHOWN = ("velocity_error", "turning_error", "length")  # by minutes
GO1 = "Go1JoystickFlatTerrain-v1"
KICK = 3.0  # as Playground's, where they are enabled [m/s]
# a second training, from the first one's policy: kicks, more turning on the spot, and a bonus that
# lowers the noise of actions, by which the first one's policy turns
STEADY: dict[str, Any] = {"entropy_coef": -0.02, "learning_rate": 4e-4, "total_steps": 1_500_000}
STEADY_ENV = {
    "kick": KICK,
    "velocity_every": (0.02, 10.0),
    "velocity_standing": (0.4, 0.5, 0.25),
}
SETTLING, HELD_WINDOWS, HELD_ENVS = 100, 8, 8  # steps before them; windows; robots per command


def learn(env_id: str, seed: int, folder: Path, first: Path | None = None) -> dict[str, Any]:
    """Trains, or goes on; what it took, and the curve: training returns by step.

    With the folder of a first training it is the second one.
    """
    config: Any = (
        resumed_config(folder)
        if folder.exists()
        else ppo.Config.preset(env_id, seed=seed, run_dir=folder)
    )
    command = f"pyfastenv train ppo --env-id {env_id} --seed {seed}"
    if first is not None:
        told = {each.replace("_", "-"): value for each, value in STEADY.items()}
        told |= {f"env.{each}": " ".join(map(str, np.ravel(v))) for each, v in STEADY_ENV.items()}
        command += " --from FIRST" + "".join(f" --{each}={value}" for each, value in told.items())
        if not folder.exists():
            kwargs = config.env_kwargs | STEADY_ENV
            config = replace(config, from_run=first, env_kwargs=kwargs, **STEADY)
    if not (folder / "result.json").exists():
        ppo.train(config)
    rows = [row for row in read_metrics(folder) if "train/return" in row]
    result = json.loads((folder / "result.json").read_text())
    return {
        "command": command,
        **took(folder),
        "seconds": round(result["elapsed_s"]),
        "evaluation": result["evaluation"],
        "curve": [[row["step"], round(row["train/return"], 2)] for row in thinned(rows, 60)],
        "config": {
            k: v for k, v in config.to_dict().items() if k not in ("run_dir", "resume", "from_run")
        },
    }


class Walk:
    """Environments that a policy drives, and what is seen of them."""

    def __init__(self, saved: SavedPolicy, envs: FastVectorEnv, seed: int):
        self._policy, self.envs = saved.as_torch(), envs
        self.rows, _ = envs.flat_reset(seed=env_seeds(seed, envs.num_envs, Stream.EVALUATION_ENVS))

    def step(self) -> tuple[Any, ...]:
        """One, of all; what ``flat_step`` gives."""
        results = self.envs.flat_step(self._policy.act(self._policy.of_rows(self.rows)))
        self.rows = results[0]
        return results

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """A part of the observations, ``(num_envs, size)``."""
        return self.rows[:, self.envs.observation_groups[name]]

    def command(self) -> NDArray[np.float64] | None:
        """``(num_envs, 3)``: what robots are told; None where there are no commands."""
        shown = self.envs.observation_groups
        name = next((each for each in ("told", "command") if each in shown), None)
        return None if name is None else self[name].copy()

    def motion(self) -> NDArray[np.float64]:
        """``(num_envs, 3)``: forward, sideways [m/s], turning [rad/s], in the robot's frame."""
        if "motion" in self.envs.observation_groups:
            return self["motion"].copy()
        names = ("velocity", "gyro")
        if "true_linvel" in self.envs.observation_groups:  # beside one with noise
            names = ("true_linvel", "true_gyro")
        velocity, spin = (self[name] for name in names)
        return np.column_stack((velocity[:, :2], spin[:, 2]))


def follow(saved: SavedPolicy, seed: int, **kwargs: Any) -> dict[str, Any]:
    """How an episode each of NUM_ENVS robots goes, greedily, over all grounds and physics.

    Errors are absolute differences between command and motion, both averaged over a second in which
    the command does not change; ``standing`` is what a robot that stays where it is would have.
    """
    name = saved.config.env_id
    with closing(pyfastenv.make_vec(name, NUM_ENVS, autoreset_mode="SameStep", **kwargs)) as envs:
        walk = Walk(saved, envs, seed)
        alive, fallen = np.ones(NUM_ENVS, np.bool_), np.zeros(NUM_ENVS, np.bool_)
        returns, lengths = np.zeros(NUM_ENVS), np.zeros(NUM_ENVS, np.int64)
        errors, standing, speeds = [], [], []
        while alive.any():
            began, commands, motions = alive.copy(), [], []
            for _ in range(WINDOW):
                if (command := walk.command()) is not None:
                    commands.append(command)
                _, rewards, terminations, truncations, _ = walk.step()
                motions.append(walk.motion())
                returns += alive * rewards
                lengths += alive
                fallen |= alive & terminations
                alive &= ~(terminations | truncations)
            whole = began & alive
            speeds.append(np.mean(motions, 0)[whole])
            if commands:
                steady = whole & (np.ptp(commands, 0).max(1) == 0)
                errors.append(np.abs(np.mean(motions, 0) - commands[0])[steady])
                standing.append(np.abs(commands[0])[steady])
        found: dict[str, Any] = {
            "episodes": NUM_ENVS,
            "return": returns.mean(),
            "length": lengths.mean(),
            "falls": int(fallen.sum()),
            "forward_speed": np.concatenate(speeds)[:, 0].mean(),
        }
        if errors:
            of_all, of_standing = np.concatenate(errors), np.concatenate(standing)
            found |= {"seconds": len(of_all), "error": of_all.mean(0).tolist()}
            found["standing"] = of_standing.mean(0).tolist()
    return found


def follow_held(
    saved: SavedPolicy, seed: int, held: Mapping[str, Any] = COMMANDS
) -> dict[str, Any]:
    """How commands are followed that are held, each by HELD_ENVS robots: by its name, the mean
    motion, the absolute difference between it, averaged over a second, and the command, and falls.
    """
    envs = pyfastenv.make_vec(saved.config.env_id, len(held) * HELD_ENVS, autoreset_mode="SameStep")
    with closing(envs):
        commands = np.repeat(list(held.values()), HELD_ENVS, 0)
        (name,) = envs.task.drawn_commands()
        envs.set_command(name, commands)
        walk = Walk(saved, envs, seed)
        fallen = np.zeros(envs.num_envs, np.bool_)
        motions = []
        for step in range(SETTLING + HELD_WINDOWS * WINDOW):
            fallen |= walk.step()[2]
            if step >= SETTLING:
                motions.append(walk.motion())
    windows = np.reshape(motions, (HELD_WINDOWS, WINDOW, len(held), HELD_ENVS, 3)).mean(1)
    errors = np.abs(windows - commands.reshape(len(held), HELD_ENVS, 3))
    return {
        each: {
            "command": held[each],
            "motion": windows[:, i].mean((0, 1)).tolist(),
            "error": errors[:, i].mean((0, 1)).tolist(),
            "falls": int(fallen.reshape(len(held), HELD_ENVS)[i].sum()),
        }
        for i, each in enumerate(held)
    }


def chain(run: Path) -> list[Path]:
    """The folders of a run, last, and of those from which it began."""
    first = read_config(run)[1]["from_run"]
    return [*(chain(run_of(Path(first)) or Path(first)) if first else ()), run]


def thinned(rows: list[Any], count: int) -> list[Any]:
    """About so many of the rows, evenly."""
    return rows[:: max(1, len(rows) // count)]


def took(run: Path) -> dict[str, Any]:
    """Steps and processor time of a finished run."""
    result = json.loads((run / "result.json").read_text())
    seconds = round(result["processor_s"])
    return {"steps": result["global_step"], "processor_seconds": seconds}


def walker(env_id: str, runs: Path) -> Iterator[sections.Row]:
    """What three seeds of examples/walk.py took and have learned; the first one is filmed.

    A row's curve has, by processor minutes, the errors [m/s, rad/s] of each moment, actions with
    noise, and the lengths of episodes.
    """
    robot = WALKERS[env_id]
    held = COMMANDS if robot == "go1" else GENTLE
    calm, fine = {"push_velocity": (0.0,) * 6}, {"timestep": 0.002, "frame_skip": 10}
    for seed in (1, 2, 3):
        last = runs / f"{robot}-{seed}" / robot
        if not (last / "result.json").exists():
            program = [sys.executable, ROOT / "examples/walk.py", robot, last.parent, str(seed)]
            subprocess.run(program, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        curve, spent = [], {"steps": 0, "processor_seconds": 0}
        for folder in chain(last):
            rows = [row for row in read_metrics(folder) if "train/velocity_error" in row]
            for row in thinned(rows, 20):
                means = (row[f"train/{each}"] for each in SHOWN)
                minutes = (spent["processor_seconds"] + row["time/processor_s"]) / 60.0
                curve.append([round(each, 2) for each in (minutes, *means)])
            spent = {name: spent[name] + more for name, more in took(folder).items()}
        saved = pyfastenv.load_policy(last)
        if seed == 1:
            film(saved, seed, ROOT / "docs" / "robots" / f"{env_id}.webp")
        yield {
            "seed": seed,
            **spent,
            "curve": curve,
            "pushed": [follow(saved, episodes) for episodes in range(3)],
            "calm": follow(saved, 0, **calm),
            "fine": follow(saved, 0, **fine),
            "held": follow_held(saved, 0, held),
        }


def film(saved: SavedPolicy, seed: int, path: Path, **kwargs: Any) -> None:
    """A moving picture of one robot, with its command and its motion of the last second."""
    width, height = FILM_SIZE
    kwargs = {"width": width, "height": height, "camera_id": 0, **kwargs}
    frames = []
    with closing(
        pyfastenv.make_vec(
            saved.config.env_id, 1, autoreset_mode="SameStep", render_mode="rgb_array", **kwargs
        )
    ) as envs:
        walk = Walk(saved, envs, seed)
        motions = [walk.motion()[0]]
        for step in range(FILM_STEPS):
            walk.step()
            motions = [*motions, walk.motion()[0]][-WINDOW:]
            if step % 2 == 0:
                picture = Image.fromarray(envs.render()[0])
                texts = [("moves", np.mean(motions, 0))]
                if (command := walk.command()) is not None:
                    texts.insert(0, ("command", command[0]))
                for line, (what, (x, y, turn)) in enumerate(texts):
                    text = f"{what} {x:.1f} {y:.1f} m/s, {turn:.1f} rad/s"
                    place, edge = (6, 4 + 12 * line), {"stroke_width": 1, "stroke_fill": "black"}
                    ImageDraw.Draw(picture).text(place, text, "white", **edge)
                frames.append(picture)
        duration = round(2000 / envs.metadata["render_fps"])
    path.parent.mkdir(parents=True, exist_ok=True)
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=duration, loop=0, quality=40
    )


@dataclass(frozen=True, kw_only=True)
class Options(sections.Options):
    """Which robots, and from where."""

    seed: int = 0
    """The first one."""
    runs: Path = Path("runs/robots")
    output: Path = Path("docs/results")
    """The folder."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    torch.set_num_threads(1)

    def robot(env_id: str, more: int = 0) -> sections.Row:
        seed, folder = options.seed + more, options.runs / f"{env_id}{f'-{more}' if more else ''}"
        run = learn(env_id, seed, folder)
        saved = pyfastenv.load_policy(folder)
        found = {"walk": follow(saved, seed)}
        if env_id == GO1:
            found["held"] = follow_held(saved, seed)
        elif not more:
            film(saved, seed, ROOT / "docs" / "robots" / f"{env_id}.webp")
        return run | found

    def steady(env_id: str) -> sections.Row:
        first, folder = options.runs / env_id, options.runs / f"{env_id}-steady"
        run = learn(env_id, options.seed, folder, first)
        before, saved = pyfastenv.load_policy(first), pyfastenv.load_policy(folder)
        kicked = {"kicked_before": follow(before, options.seed, kick=KICK)}
        kicked["kicked"] = follow(saved, options.seed, kick=KICK)
        film(saved, options.seed, ROOT / "docs" / "robots" / f"{env_id}.webp")
        held = follow_held(saved, options.seed)
        return run | kicked | {"walk": follow(saved, options.seed), "held": held}

    parts = {env_id: partial(robot, env_id) for env_id in (*ROBOTS, GO1) if env_id not in WALKERS}
    parts |= {env_id: partial(walker, env_id, options.runs) for env_id in WALKERS}
    parts |= {f"{GO1}, {k}": partial(robot, GO1, k) for k in (1, 2)}
    parts |= {f"{GO1}, steady": partial(steady, GO1)}
    sections.run("robots", parts, options)


if __name__ == "__main__":
    main()
