"""A run folder belongs to one process, and what cannot be written is said in one sentence."""

import contextlib
import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forks import fork, forking, status_of
from guess import Config, Guess, die, stopping, train, train_killed
from trainings import assert_same_run

from pyfastenv import cli
from pyfastenv.runs import checkpoint
from pyfastenv.runs import folder as run_folder
from pyfastenv.runs import lock as folder_lock
from pyfastenv.runs.atomic import append, remove_leftovers, write_text
from pyfastenv.runs.checkpoint import CheckpointDir
from pyfastenv.runs.errors import CheckpointError, FolderInUseError, RunFolderError
from pyfastenv.runs.lock import FolderLock
from pyfastenv.runs.logger import MetricLogger, read_metrics
from pyfastenv.training.loop import run

guesses = pytest.mark.usefixtures("guessed_rollouts")


@contextmanager
def children(count: int, action: Callable[[], object], folder: Path) -> Iterator[list[int]]:
    """Forks of this process that do something and stay alive; their ids."""

    def stay() -> None:
        action()
        time.sleep(3600)

    pids = [fork(stay, folder / f"errors-{i}") for i in range(count)]
    try:
        yield pids
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def wait_for(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.005)


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder but its lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != folder_lock.NAME
    }


# ---- one process each ----------------------------------------------------------------------------


def test_runs_that_start_at_once_get_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    at = time.time() + 0.3

    def begin() -> None:
        time.sleep(max(0.0, at - time.time()))  # all in the same second, and nearly at once
        config = Config(seed=5)
        start, _ = run_folder.claim(config)
        run_folder.write_config(start.folder, replace(config, seed=os.getpid()))

    with children(8, begin, tmp_path) as pids:
        wait_for(lambda: len(list(tmp_path.glob("runs/*/config.json"))) == 8)
    folders = list(Path("runs").iterdir())
    assert len(folders) == 8
    seeds = [json.loads((f / "config.json").read_text())["config"]["seed"] for f in folders]
    assert sorted(seeds) == sorted(pids)


@guesses
def test_a_folder_in_use_is_refused_until_its_process_dies(tmp_path: Path) -> None:
    config = Config(run_dir=tmp_path / "run")
    held: list[object] = []

    def hold() -> None:
        start, lock = run_folder.claim(config)
        held.append(lock)
        run_folder.write_config(start.folder, config)

    with children(1, hold, tmp_path) as (pid,):
        wait_for((tmp_path / "run" / "config.json").is_file)
        expected = rf"a training is running in this folder \(process {pid} on "
        with pytest.raises(FolderInUseError, match=expected):
            train(tmp_path / "run")
        with pytest.raises(FolderInUseError, match=expected):
            run(Guess, Config(resume=tmp_path / "run"))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert run(Guess, Config(resume=tmp_path / "run")).global_step == 480


@guesses
def test_two_trainings_in_one_folder(tmp_path: Path, whole_guess: Path) -> None:
    """The second comes while the first iterates, of a new run and of a resumed one."""
    said: list[str] = []

    def come_second() -> None:
        for second in (
            Config(run_dir=tmp_path / "run"),
            Config(resume=tmp_path / "run"),
            Config(resume=tmp_path / "run" / "checkpoints" / "step_000000000120.pt"),
        ):
            with pytest.raises(FolderInUseError) as raised:
                run(Guess, second)
            said.append(str(raised.value))

    with pytest.raises(RuntimeError, match="killed"):
        train(tmp_path / "run", stopping(168, lambda: (come_second(), die())))
    run(stopping(360, come_second), Config(resume=tmp_path / "run"))
    assert len(said) == 6 and all("\n" not in each for each in said)
    assert_same_run(whole_guess, tmp_path / "run")


@guesses
def test_a_branch_may_be_made_from_a_running_training(tmp_path: Path, whole_guess: Path) -> None:
    def branch() -> None:
        train(tmp_path / "branch", resume=tmp_path / "run")

    train(tmp_path / "run", stopping(360, branch))
    assert_same_run(whole_guess, tmp_path / "branch")


@guesses
def test_nothing_is_left_of_a_training_that_cannot_be(tmp_path: Path) -> None:
    def refuse(_: Config) -> Guess:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(refuse, Config(run_dir=tmp_path / "new" / "run"))
    assert not (tmp_path / "new" / "run").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(ValueError, match="no"):
        run(refuse, Config(run_dir=tmp_path / "mine"))
    assert (tmp_path / "mine").is_dir()
    train(tmp_path / "mine")


def test_a_folder_that_vanishes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maker may take it away, empty, between our opening its lock file and our locking it."""
    flock = fcntl.flock
    gone = FolderLock(tmp_path / "run")

    def late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        gone.release(remove_folder=True)
        assert not (tmp_path / "run").exists()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    mine = FolderLock(tmp_path / "run")
    with pytest.raises(FolderInUseError):
        FolderLock(tmp_path / "run")
    mine.release()


@guesses
def test_file_systems_without_locks_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(folder_lock.fcntl, "flock", cannot)
    train(tmp_path / "run")
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{tmp_path / 'run'}: this file system has no locks" in said


# ---- going on ------------------------------------------------------------------------------------


@guesses
def test_what_is_started_again_by_itself_begins_goes_on_and_has_ended(
    tmp_path: Path, whole_guess: Path
) -> None:
    cut = tmp_path / "cut"
    for step in (72, 336):  # before the first checkpoint, and after the second
        train_killed(cut, step, auto_resume=True)
    train(cut, auto_resume=True)
    assert_same_run(whole_guess, cut)
    assert train(cut, auto_resume=True).global_step == 480  # nothing to do
    with pytest.raises(ValueError, match=r"learning_rate was 0\.01, is 0\.02"):
        train(cut, auto_resume=True, learning_rate=0.02)
    with pytest.raises(ValueError, match="auto_resume: expected a run_dir"):
        run(Guess, Config(auto_resume=True))


@guesses
def test_what_is_started_again_waits_for_the_one_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = FolderLock(tmp_path / "run")
    timer = threading.Timer(0.3, ending.release)
    timer.start()
    assert train(tmp_path / "run", auto_resume=True).global_step == 480
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "waiting for up to 60 s" in said
    monkeypatch.setattr(run_folder, "PATIENCE", 0.1)
    staying = FolderLock(tmp_path / "run")
    with pytest.raises(FolderInUseError):
        train(tmp_path / "run", auto_resume=True)
    staying.release()


@guesses
def test_a_run_killed_before_its_first_checkpoint_begins_again(
    tmp_path: Path, whole_guess: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_killed(tmp_path / "cut", 96)
    assert len(read_metrics(tmp_path / "cut")) == 3 and not (tmp_path / "cut/checkpoints").exists()
    capsys.readouterr()
    run(Guess, Config(resume=tmp_path / "cut"))
    said = (
        f"pyfastenv: {tmp_path / 'cut'}: nothing had been saved when it ended after step 72, so "
        "these steps are lost (its first checkpoint was due at 120; train --checkpoint-every saves "
        "sooner): beginning again\n"
    )
    assert capsys.readouterr().err == said
    assert_same_run(whole_guess, tmp_path / "cut")
    with pytest.raises(ValueError, match="seed was 1, is 2"):
        run(Guess, Config(resume=whole_guess, seed=2))


@guesses
@pytest.mark.parametrize("ended", [True, False])
def test_a_run_whose_checkpoints_were_deleted_is_not_begun_again(
    tmp_path: Path, ended: bool
) -> None:
    folder = tmp_path / "run"
    if ended:
        train(folder, checkpoint_every=0)
    else:
        train_killed(folder, 168)
    shutil.rmtree(folder / "checkpoints")
    before = contents(folder)
    for options in ({"resume": folder}, {"resume": folder, "run_dir": tmp_path / "branch"}):
        with pytest.raises(CheckpointError, match=r"checkpoints are gone.* pyfastenv train$"):
            run(Guess, Config(**options))
    assert contents(folder) == before and not (tmp_path / "branch").exists()


@guesses
def test_what_is_started_again_without_its_checkpoints_begins_again_and_loses_nothing(
    tmp_path: Path, whole_guess: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    train(folder)
    for count in (1, 2):
        shutil.rmtree(folder / "checkpoints")
        before = contents(folder)
        train(folder, auto_resume=True)
        aside = folder / f"earlier-{count}"
        said = f"pyfastenv: {folder}: no checkpoint: beginning again; what was here is in {aside}\n"
        assert capsys.readouterr().err == said
        kept = {name: text for name, text in before.items() if not name.startswith("earlier-")}
        assert contents(aside) == kept
    assert_same_run(whole_guess, folder)


@guesses
@pytest.mark.parametrize("auto_resume", [True, False])
def test_a_branch_killed_before_its_first_checkpoint_begins_where_it_branched_off(
    tmp_path: Path, auto_resume: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path / "whole")
    earlier = tmp_path / "whole" / "checkpoints" / "step_000000000240.pt"
    options = {"resume": earlier, "auto_resume": auto_resume}
    again = options if auto_resume else {"resume": tmp_path / "branch"}
    for step, these in ((264, options), (264, again), (288, again)):
        train_killed(tmp_path / "branch", step, **these)
        assert not (tmp_path / "branch/checkpoints").exists()
    capsys.readouterr()
    train(tmp_path / "branch", **again)
    said = capsys.readouterr().err
    assert "nothing had been saved when it ended after step 264, so these steps are lost" in said
    assert said.endswith(f": beginning again at {earlier}\n")
    assert_same_run(tmp_path / "whole", tmp_path / "branch")
    assert not list((tmp_path / "branch").glob("earlier-*"))
    # later it goes on from checkpoints of its own
    shutil.rmtree(tmp_path / "whole")
    longer = train(tmp_path / "branch", resume=tmp_path / "branch", total_steps=600)
    assert longer.global_step == 600


def test_a_run_may_be_killed_between_the_row_and_the_checkpoint(tmp_path: Path) -> None:
    config = Config(checkpoint_every=100)
    run_folder.write_config(tmp_path, config)
    logger = MetricLogger(tmp_path)
    for step in (96, 120):
        logger.log(step, {})
    assert not run_folder.has_lost_checkpoints(tmp_path)
    logger.log(144, {})
    logger.close()
    assert run_folder.has_lost_checkpoints(tmp_path)


@guesses
def test_a_run_killed_as_it_began_begins_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".config.json.0123456789ab.tmp").write_text("{")
    train(folder)
    assert not list(folder.glob(".config*"))


@guesses
def test_a_run_stopped_before_its_first_evaluation_can_end_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_killed(tmp_path / "run", 264, eval_every=0)
    result = run(Guess, Config(resume=tmp_path / "run", total_steps=240, quiet=False))
    assert result.global_step == 240 and result.evaluation["eval/return"] > 0.0
    out = capsys.readouterr().out
    assert "Already at step 240: nothing to train." in out and "after 240 steps" in out


@guesses
def test_a_run_killed_before_it_removed_an_old_checkpoint_removes_it_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = train(tmp_path / "whole", checkpoint_every=24, keep_checkpoints=1)
    prune = CheckpointDir.prune

    def killed_at_the_end(folder: CheckpointDir, step: int) -> None:
        if step == result.global_step:
            die()
        prune(folder, step)

    monkeypatch.setattr(CheckpointDir, "prune", killed_at_the_end)
    with pytest.raises(RuntimeError, match="killed"):
        train(tmp_path / "cut", checkpoint_every=24, keep_checkpoints=1)
    monkeypatch.setattr(CheckpointDir, "prune", prune)
    cut = CheckpointDir(tmp_path / "cut/checkpoints")
    assert len(cut.paths()) == 2
    run(Guess, Config(resume=tmp_path / "cut", keep_checkpoints=1))
    whole = CheckpointDir(tmp_path / "whole/checkpoints")
    assert [path.name for path in cut.paths()] == [path.name for path in whole.paths()]


# ---- temporary files -----------------------------------------------------------------------------


def test_temporary_files_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    replace = os.replace

    def note(source: Path, target: Path) -> None:
        names.append(Path(source).name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", note)
    for _ in range(3):
        write_text(tmp_path / "file", "text")
    assert len(set(names)) == 3


@guesses
def test_what_killed_processes_left_goes_with_the_next_run(tmp_path: Path) -> None:
    train_killed(tmp_path / "run", 264)
    left = tmp_path / "run" / ".metrics.csv.0123456789ab.tmp"
    also = tmp_path / "run" / "checkpoints" / ".step_000000000360.pt.ba9876543210.tmp"
    mine = tmp_path / "run" / ".mine.tmp"
    for path in (left, also, mine):
        path.write_text("half")
    run(Guess, Config(resume=tmp_path / "run"))
    assert not left.exists() and not also.exists() and mine.exists()
    remove_leftovers(tmp_path / "nowhere")


def test_what_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(FileNotFoundError, match=re.escape(f"'{tmp_path / 'no' / 'file'}'")):
        write_text(tmp_path / "no" / "file", "text")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=re.escape(f"No space left on device: '{tmp_path / 'file'}'")):
        write_text(tmp_path / "file", "text")
    assert list(tmp_path.iterdir()) == []


@guesses
def test_a_resume_that_is_refused_leaves_everything(tmp_path: Path) -> None:
    run(Guess, Config(run_dir=tmp_path / "run"))
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace("\n", "\nxx\n", 1))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("[!.]*.*")}
    oldest = CheckpointDir(tmp_path / "run" / "checkpoints").paths()[0]
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 2: not a row of metrics"):
        run(Guess, Config(resume=oldest))
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("[!.]*.*")} == before


def test_an_append_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"

    class Nearly:
        """A disk that has room for three more bytes."""

        room = 3

        def __init__(self) -> None:
            self.file = open(path, "ab", buffering=0)  # noqa: SIM115

        def fileno(self) -> int:
            return self.file.fileno()

        def write(self, data: memoryview) -> int:
            if self.room == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            count = self.file.write(data[: self.room])
            self.room -= count
            return count

    path.write_text("first\n")
    disk: Any = Nearly()
    with pytest.raises(OSError, match="No space left"):
        append(disk, b"second\n")
    assert path.read_text() == "first\n"
    disk.room = 100
    append(disk, b"third\n")
    assert path.read_text() == "first\nthird\n"
    disk.file.close()


# ---- disks that are full, folders that cannot be written -----------------------------------------


class Done(NamedTuple):
    """The status and output of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs ``pyfastenv …`` in this process."""

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        status = cli.main([str(argument) for argument in arguments])
        return Done(status, *capsys.readouterr())

    return call


_OPTIONS = """
    train ppo --env-id InvertedPendulum-v5 --num-envs 4 --num-steps 32 --minibatch-size 32
    --total-steps 3840 --eval-episodes 2 --eval-every 1280 --quiet
    --hidden-sizes 16 --checkpoint-every
"""
SMALL = _OPTIONS.split()


@pytest.fixture(scope="module")
def whole_ppo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nothing stops; how often it saves changes nothing of it."""
    folder = tmp_path_factory.mktemp("ppo") / "whole"
    assert cli.main([*SMALL, "384", "--run-dir", str(folder)]) == 0
    return folder


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small disk with options, or changes it; skipped where that is not allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = False

    def mount(options: str) -> Path:
        nonlocal mounted
        if mounted:
            options = f"remount,{options}"
        arguments = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        try:
            done = subprocess.run(arguments, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip("there is no mount here")
        if done.returncode != 0:
            pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
        mounted = True
        return place

    yield mount
    if mounted:
        subprocess.run(["umount", "-l", str(place)], check=True)


def assert_one_sentence(done: Any, *parts: str) -> None:
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("pyfastenv: ") and done.stderr.count("\n") == 1, done.stderr
    for part in parts:
        assert part in done.stderr


@pytest.mark.parametrize(("every", "room"), [(384, "72k"), (0, "48k")], ids=["saving", "logging"])
def test_a_full_disk_stops_a_training_that_goes_on_later(
    disk: Callable[[str], Path],
    command: Callable[..., Done],
    whole_ppo: Path,
    every: int,
    room: str,
) -> None:
    folder = disk(f"size={room}") / "run"
    stopped = command(*SMALL, every, "--run-dir", folder)
    way_on = f"go on with: pyfastenv resume {folder}"
    # another logger's file may be the first that finds no room: its lines have times, too
    said = re.sub(r"pyfastenv: logger .*metrics.jsonl has everything\n", "", stopped.stderr)
    assert_one_sentence(stopped._replace(stderr=said), "(No space left on device)", way_on)
    rows = read_metrics(folder)  # every line is whole
    assert 0 < len(rows) < 29
    disk("size=20m")
    resumed = command("resume", folder, "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(whole_ppo, folder)


@forking
def test_a_limit_on_files_is_a_full_disk(
    tmp_path: Path, command: Callable[..., Done], whole_ppo: Path
) -> None:
    """Where nothing can be mounted: the system refuses files above so many bytes."""
    folder, errors = tmp_path / "run", tmp_path / "errors"

    def limited() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        return cli.main([*SMALL, "384", "--run-dir", str(folder)])

    stopped = Done(status_of(fork(limited, errors)), "", errors.read_text())
    assert_one_sentence(stopped, "cannot be written (File too large); go on with: pyfastenv resume")
    resumed = command("resume", folder, "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(whole_ppo, folder)


def test_a_read_only_folder_is_named(
    disk: Callable[[str], Path], command: Callable[..., Done], whole_ppo: Path
) -> None:
    place = disk("size=20m")
    folder = place / "run"
    shutil.copytree(whole_ppo, folder)
    before = contents(folder)
    disk("ro")
    reason = "cannot be written to (Read-only file system)"
    for arguments in (
        ("resume", folder, "--total-steps", 5000),
        (*SMALL, 384, "--run-dir", place / "new"),
    ):
        assert_one_sentence(command(*arguments), reason, "choose another folder")
    assert before == contents(folder)
    assert command("evaluate", folder, "--episodes", 1).returncode == 0


def test_a_folder_without_permission_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a user without rights sees it, whoever runs the test."""

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(folder_lock.os, "open", refuse)
    with pytest.raises(RunFolderError, match=r"run: cannot be written to \(Permission denied\)"):
        run_folder.claim(Config(run_dir=tmp_path / "run"))


def test_a_file_in_the_way_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").write_text("")
    with pytest.raises(RunFolderError, match=r"^runs/guess-.*: cannot be written to \(File exists"):
        run_folder.claim(Config())
    with pytest.raises(ValueError, match="run_dir: runs is not a folder"):
        run_folder.claim(Config(run_dir=Path("runs")))


@guesses
def test_a_disk_that_fills_up_between_rows_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MetricLogger.log

    def full(self: MetricLogger, step: int, metrics: Any) -> None:
        if step == 264:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        log(self, step, metrics)

    with monkeypatch.context() as patched:
        patched.setattr(MetricLogger, "log", full)
        with pytest.raises(RunFolderError) as raised:
            train(tmp_path / "run")
    folder = tmp_path / "run"
    assert str(raised.value) == (
        f"{folder}: cannot be written (No space left on device); go on with: pyfastenv resume "
        f"{folder}"
    )
    assert checkpoint.step_of(checkpoint.resolve(folder)) == 240
