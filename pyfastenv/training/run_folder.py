"""The run folder: what its files are called, who may write into it, and where a run goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyfastenv.training import checkpoint
from pyfastenv.training.atomic import write_text
from pyfastenv.training.config import RunConfig
from pyfastenv.training.errors import CheckpointError

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
METRICS = "metrics.jsonl"
METRICS_CSV = "metrics.csv"
TENSORBOARD = "tensorboard"
CURVE = "learning_curve.png"
RESULT = "result.json"
VIDEO = "video.mp4"


@dataclass(frozen=True)
class Start:
    """Where a run begins: its folder and, if resumed, the checkpoint's path, contents and run."""

    folder: Path
    checkpoint: Path | None = None
    state: dict[str, Any] | None = None
    origin: Path | None = None

    @property
    def step(self) -> int | None:
        """The checkpoint's step; None for a new run."""
        return None if self.state is None else int(self.state["step"])


def choose(config: RunConfig) -> Start:
    """Finds where the run begins; writes nothing.

    A resumed run goes on in its own folder, or, with another ``run_dir``, in that one.

    Raises:
        CheckpointError: ``resume`` names no readable checkpoint.
        ValueError: ``resume`` names a run of another configuration; ``run_dir`` holds another run.
    """
    if config.resume is None:
        folder = config.run_dir or _new_name(config)
        _check_free(folder)
        return Start(folder)
    path = checkpoint.resolve(config.resume)
    state = checkpoint.load(path)
    for key in ("step", "algorithm", "config", "ranks"):
        if key not in state:
            raise CheckpointError(f"{path}: not the checkpoint of a run: no {key!r}")
    config.check_resumes(state["algorithm"], state["config"])
    origin = run_of(path)
    folder = config.run_dir or origin or _new_name(config)
    if origin is None or folder.resolve() != origin.resolve():
        _check_free(folder)
    return Start(folder, path, state, origin)


def adopt(start: Start) -> None:
    """Copies the metrics of the run that this one branches off, if it does."""
    if start.origin is None or start.origin.resolve() == start.folder.resolve():
        return
    source = start.origin / METRICS
    if source.is_file():
        write_text(start.folder / METRICS, source.read_text())


def run_of(path: Path) -> Path | None:
    """The run folder of a checkpoint file; None if it lies somewhere else."""
    folder = path.parent
    return folder.parent if folder.name == CHECKPOINTS else None


def write_config(folder: Path, config: RunConfig) -> None:
    """Writes config.json: the algorithm's name and its options."""
    contents = {"algorithm": config.algorithm, "config": config.to_dict()}
    write_text(folder / CONFIG, json.dumps(contents, indent=2) + "\n")


def read_config(folder: Path) -> tuple[str, dict[str, Any]]:
    """Reads config.json: the algorithm's name and its options.

    Raises:
        FileNotFoundError: This is no run folder.
        ValueError: It is not what :func:`write_config` writes.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: not a run folder: it has no {CONFIG}")
    try:
        contents = json.loads(path.read_text())
        return str(contents["algorithm"]), dict(contents["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a run's configuration ({error})") from error


def _check_free(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"run_dir: {folder} is not a folder")
    if any((folder / name).exists() for name in (CONFIG, METRICS, CHECKPOINTS)):
        raise ValueError(
            f"run_dir: {folder} holds a run; go on with --resume {folder}, or choose another"
        )


def _new_name(config: RunConfig) -> Path:
    env = config.env_id.removeprefix("pyfastenv/")
    date = datetime.now().strftime("%Y%m%d-%H%M%S")
    stem = Path("runs") / f"{config.algorithm}-{env}-{config.seed}-{date}"
    name, count = stem, 1
    while name.exists():
        count += 1
        name = stem.with_name(f"{stem.name}-{count}")
    return name
