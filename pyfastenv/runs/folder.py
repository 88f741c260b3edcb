"""The run folder: what its files are called, who may write into it, and where a run goes on."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pyfastenv.runs import checkpoint
from pyfastenv.runs.atomic import remove_leftovers, write_text
from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.errors import CheckpointError, RunFolderError
from pyfastenv.runs.lock import NAME as LOCK
from pyfastenv.runs.lock import FolderLock
from pyfastenv.runs.logger import METRICS, read_metrics

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
METRICS_CSV = "metrics.csv"
TENSORBOARD = "tensorboard"
CURVE = "learning_curve.png"
RESULT = "result.json"
VIDEO = "video.mp4"
EARLIER = "earlier-"  # and a number: what was here when auto_resume began again

# how long auto_resume waits for the folder [s]: a process that lost the others of its group learns
# of it within seconds, one that was asked to stop saves first, and torchrun kills after 30 s
PATIENCE = 60.0


@dataclass(frozen=True)
class Start:
    """Where a run begins: its folder and, if resumed, the checkpoint's path, contents and run."""

    folder: Path
    checkpoint: Path | None = None
    state: dict[str, Any] | None = None
    origin: Path | None = None

    @property
    def step(self) -> int | None:
        """The checkpoint's step; None for a run from the beginning."""
        return None if self.state is None else int(self.state["step"])

    @property
    def branches(self) -> bool:
        """Whether the checkpoint is another run's."""
        mine = self.origin is not None and self.origin.resolve() == self.folder.resolve()
        return self.checkpoint is not None and not mine


def claim(config: RunConfig) -> tuple[Start, FolderLock]:
    """Takes the run's folder for this process alone and finds where the run begins.

    A new run makes a folder; one whose name is chosen here gets a name that no other process has. A
    resumed run goes on in its own folder, or, with another ``run_dir``, in that one. A run that was
    killed before its first checkpoint begins again, with the checkpoint of another run if it did.
    With ``auto_resume`` the run in ``run_dir``, if there is one, is what ``resume`` names; if its
    checkpoints are gone, what is left of it is moved into a folder :data:`EARLIER` in it, and it
    begins again.

    Returns:
        The start, and the lock to be held while the run writes.

    Raises:
        CheckpointError: ``resume`` names no readable checkpoint, or a run whose checkpoints are
            gone.
        FolderInUseError: Another process trains in the folder; with ``auto_resume``, it has not
            ended within a minute.
        RunFolderError: The folder cannot be made or written into.
        ValueError: ``resume`` names a run of another configuration; ``run_dir`` holds another run.
    """
    origin = None if config.resume is None else _origin(config.resume)
    # before anything is read: a training that is still running may yet write later steps
    if config.run_dir is not None:
        lock = _lock(config.run_dir, patience=PATIENCE if config.auto_resume else 0.0)
    else:
        lock = _lock_new(config) if origin is None else _lock(origin)
    folder = lock.folder
    with _released_on_error(lock):
        if config.auto_resume and (folder / CONFIG).is_file():
            config, origin = replace(config, resume=folder), folder
        goes_on = origin is not None and folder.resolve() == origin.resolve()
        if not goes_on:
            _check_free(folder)
        remove_leftovers(folder, "*" if goes_on else CONFIG)  # of a run that was killed
        start = Start(folder) if config.resume is None else _resumed(config, folder, origin)
    return start, lock


def _origin(resume: Path) -> Path | None:
    """The run folder that ``resume`` is, or lies in; None: a checkpoint from somewhere else."""
    if (resume / CONFIG).is_file():
        return resume
    return run_of(checkpoint.resolve(resume))


def _resumed(config: RunConfig, folder: Path, origin: Path | None) -> Start:
    """Reads what ``config.resume`` stands for, and checks that ``config`` can go on from it."""
    assert config.resume is not None
    if origin == config.resume and checkpoint.CheckpointDir(origin / CHECKPOINTS).latest() is None:
        algorithm, saved = read_config(origin)
        config.check_resumes(algorithm, saved)
        path = branched_from(origin, saved)
        _begin_again(config, folder, origin, path)
        if path is None:
            return Start(folder, origin=origin)
        origin = run_of(path)
    else:
        path = checkpoint.resolve(config.resume)
    state = load_checkpoint(path)
    if "rng" not in state["ranks"][0]:
        raise CheckpointError(
            f"{path}: it has what was learned, not where the training was; begin a new run "
            f"with it: pyfastenv train {config.algorithm} --from {path}"
        )
    config.check_resumes(state["algorithm"], state["config"])
    return Start(folder, path, state, origin)


def _begin_again(config: RunConfig, folder: Path, origin: Path, path: Path | None) -> None:
    """Says that a run begins again for want of a checkpoint, and sees that nothing is lost."""
    rows = read_metrics(origin) if (origin / METRICS).is_file() else []
    reached = rows[-1]["step"] if rows else 0
    due = first_checkpoint(origin, read_config(origin)[1])
    why = (
        f"nothing had been saved when it ended after step {reached:,}, so these steps are lost "
        f"(its first checkpoint was due at {due:,}; train --checkpoint-every saves sooner)"
    )
    kept, where = "", "" if path is None else f" at {path}"
    if has_lost_checkpoints(origin):
        if not config.auto_resume or folder != origin:
            raise CheckpointError(
                f"{origin}: its checkpoints are gone, so it would begin again: put them back "
                f"into {origin / CHECKPOINTS}, or begin a new run with pyfastenv train"
            )
        why, kept = "no checkpoint", f"; what was here is in {_set_aside(folder)}"
    print(f"pyfastenv: {origin}: {why}: beginning again{where}{kept}", file=sys.stderr)


def _set_aside(folder: Path) -> Path:
    """Moves a run into a folder of its own in it; a killed process leaves it to be done again."""
    count = 1
    while (aside := folder / f"{EARLIER}{count}").exists():
        count += 1
    aside.mkdir()
    shutil.copy(folder / CONFIG, aside)
    # last what shows that the run had checkpoints
    for path in sorted(folder.iterdir(), key=lambda path: path.name in (METRICS, RESULT)):
        if path.name not in (CONFIG, LOCK) and not path.name.startswith(EARLIER):
            path.rename(aside / path.name)
    return aside


def _lock(folder: Path, *, new: bool = False, patience: float = 0.0) -> FolderLock:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"run_dir: {folder} is not a folder")
    try:
        return FolderLock(folder, new=new, patience=patience)
    except OSError as error:
        if new and isinstance(error, FileExistsError) and folder.exists():
            raise
        raise RunFolderError(
            f"{folder}: cannot be written to ({error.strerror or error}); choose another folder"
        ) from error


def _lock_new(config: RunConfig) -> FolderLock:
    """A new folder with a name chosen here, whoever else chooses at the same time."""
    date = datetime.now().strftime("%Y%m%d-%H%M%S")
    stem = Path("runs") / f"{config.algorithm}-{env_name(config.env_id)}-{config.seed}-{date}"
    folder, count = stem, 1
    while True:
        try:
            return _lock(folder, new=True)
        except FileExistsError:
            count += 1
            folder = stem.with_name(f"{stem.name}-{count}")


def env_name(env_id: str) -> str:
    """An environment's id, or a task's place without its folders, as a part of a folder's name."""
    task = env_id.rpartition("/")[2] if ".py:" in env_id else env_id
    return task.removeprefix("pyfastenv/").replace(":", "-").replace("/", "-")


@contextmanager
def _released_on_error(lock: FolderLock) -> Iterator[None]:
    try:
        yield
    except BaseException:
        lock.release(remove_folder=True)
        raise


def adopt(start: Start) -> None:
    """Copies the metrics of the run that this one branches off, if it does."""
    if start.origin is None or not start.branches:
        return
    source = start.origin / METRICS
    if source.is_file():
        write_text(start.folder / METRICS, source.read_text())


def run_of(path: Path) -> Path | None:
    """The run folder of a checkpoint file; None if it lies somewhere else."""
    folder = path.parent
    return folder.parent if folder.name == CHECKPOINTS else None


def branched_from(folder: Path, config: Mapping[str, Any]) -> Path | None:
    """The checkpoint of another run with which a run began, as its config.json has it."""
    resume = config.get("resume")
    if resume is None or checkpoint.step_of(path := Path(resume)) < 0:
        return None
    mine = run_of(path)
    return None if mine is not None and mine.resolve() == folder.resolve() else path


def write_config(folder: Path, config: RunConfig, **facts: Any) -> None:
    """Writes config.json: the algorithm's name, its options, and what else is to be known."""
    contents = {"algorithm": config.algorithm, "config": config.to_dict(), **facts}
    write_text(folder / CONFIG, json.dumps(contents, indent=2) + "\n")


def read_config(folder: Path) -> tuple[str, dict[str, Any]]:
    """Reads config.json: the algorithm's name and its options.

    Raises:
        FileNotFoundError: This is no run folder.
        ValueError: It is not what :func:`write_config` writes.
    """
    contents = read_facts(folder)
    return contents["algorithm"], contents["config"]


def read_facts(folder: Path) -> dict[str, Any]:
    """All of config.json; errors as :func:`read_config`."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: not a run folder: it has no {CONFIG}")
    try:
        contents = json.loads(path.read_text())
        algorithm, config = str(contents["algorithm"]), dict(contents["config"])
        dict(contents.get("own_losses", {}))  # earlier versions have none
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a run's configuration ({error})") from error
    return {**contents, "algorithm": algorithm, "config": config}


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Reads the checkpoint of a run.

    Raises:
        CheckpointError: It cannot be read, or is something else's.
    """
    state = checkpoint.load(path)
    for key in ("step", "algorithm", "config", "ranks"):
        if key not in state:
            raise CheckpointError(f"{path}: not the checkpoint of a run: no {key!r}")
    return state


def first_checkpoint(folder: Path, config: Mapping[str, Any]) -> int:
    """The step at which a run's first checkpoint falls due; ``config`` as config.json has it."""
    total = int(config["total_steps"])
    every = int(config.get("checkpoint_every", RunConfig.checkpoint_every)) or total
    path = branched_from(folder, config)
    begun = 0 if path is None else checkpoint.step_of(path)
    return min((begun // every + 1) * every, total)


def has_lost_checkpoints(folder: Path) -> bool:
    """Whether a run without checkpoints has had one: it has ended, or gone on after it was due.

    The row of its step is written before it: a process may have been killed in between.
    """
    if (folder / RESULT).is_file():
        return True
    if not (folder / METRICS).is_file():
        return False
    due = first_checkpoint(folder, read_config(folder)[1])
    return sum(row["step"] >= due for row in read_metrics(folder)) > 1


def _check_free(folder: Path) -> None:
    if any((folder / name).exists() for name in (CONFIG, METRICS, CHECKPOINTS)):
        raise ValueError(
            f"run_dir: {folder} holds a run; go on with pyfastenv resume {folder}, or choose "
            "another"
        )
