"""Checkpoints: whole or not there, whatever happens to the process or the disk."""

from __future__ import annotations

import builtins
import contextlib
import errno
import itertools
import multiprocessing
import os
import pathlib
import random
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest
import torch

from pyfastenv.runs import atomic, checkpoint
from pyfastenv.runs.checkpoint import CheckpointDir
from pyfastenv.runs.errors import CheckpointError


def state(step: int, size: int = 1000) -> dict[str, Any]:
    return {"step": step, "weights": torch.full((size,), float(step))}


def leftovers(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".pt")


# ---- what can be stored --------------------------------------------------------------------------


def test_everything_comes_back(tmp_path: pathlib.Path) -> None:
    network = torch.nn.Linear(3, 2)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, betas=(0.8, 0.9))
    network(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    given = {
        "network": network.state_dict(),
        "optimiser": optimiser.state_dict(),
        "envs": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "count": np.int64(7),
        "generator": torch.Generator().manual_seed(3).get_state(),
        "mixed": [1, 2.5, "three", None, (True, b"bytes")],
    }
    got = checkpoint.load(CheckpointDir(tmp_path / "new" / "folder").save(12, given))

    assert got["count"] == 7 and type(got["count"]) is int
    assert got["mixed"] == given["mixed"]
    assert got["envs"].dtype == torch.uint8 and got["envs"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.equal(got["generator"], given["generator"])
    other = torch.nn.Linear(3, 2)
    other.load_state_dict(got["network"])
    assert torch.equal(other.weight, network.weight)
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(got["optimiser"])
    assert again.param_groups[0]["betas"] == (0.8, 0.9)
    assert torch.equal(
        again.state[other.weight]["exp_avg"], optimiser.state[network.weight]["exp_avg"]
    )


def test_a_view_does_not_drag_its_storage_along(tmp_path: pathlib.Path) -> None:
    path = CheckpointDir(tmp_path).save(1, {"row": torch.zeros(1_000_000)[:10]})
    assert path.stat().st_size < 10_000


def test_what_cannot_be_stored_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match=r"state\['a'\]\[1\]: a checkpoint cannot hold a PosixPath"):
        CheckpointDir(tmp_path).save(1, {"a": [0, pathlib.Path("x")]})
    assert list(tmp_path.iterdir()) == []


def test_random_streams_come_back(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(1)
    torch.rand(5)
    path = CheckpointDir(tmp_path).save(1, {"rng": checkpoint.rng_state()})
    expected = torch.rand(5)
    torch.manual_seed(2)
    checkpoint.set_rng_state(checkpoint.load(path)["rng"])
    assert torch.equal(torch.rand(5), expected)


def test_random_streams_of_devices_that_are_not_here_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = [torch.full((16,), i, dtype=torch.uint8) for i in range(3)]
    found = {}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, i: found.update({i: state}))
    checkpoint.set_rng_state({"cpu": torch.get_rng_state(), "cuda": states})
    assert found.keys() == {0, 1} and all(found[i] is states[i] for i in found)


# ---- which files there are -----------------------------------------------------------------------


def test_the_newest_stay(tmp_path: pathlib.Path) -> None:
    folder = CheckpointDir(tmp_path, keep=2)
    assert folder.latest() is None
    for step in (5, 1000, 20, 300):
        folder.save(step, state(step))
    # 300 came last: it stays, and so does what it does not replace
    assert [checkpoint.step_of(path) for path in folder.paths()] == [20, 300, 1000]
    assert checkpoint.load(folder.paths()[-1])["step"] == 1000


def test_later_ones_can_be_discarded(tmp_path: pathlib.Path) -> None:
    folder = CheckpointDir(tmp_path)
    for step in (1, 2, 3):
        folder.save(step, state(step))
    assert [checkpoint.step_of(path) for path in folder.discard_after(1)] == [3, 2]
    assert folder.latest() == folder.paths()[0]


def test_resolve(tmp_path: pathlib.Path) -> None:
    path = CheckpointDir(tmp_path / "run" / "checkpoints").save(3, state(3))
    assert checkpoint.resolve(tmp_path / "run") == path
    assert checkpoint.resolve(tmp_path / "run" / "checkpoints") == path
    assert checkpoint.resolve(path) == path
    path = CheckpointDir(tmp_path / "run.pt" / "checkpoints").save(3, state(3))
    assert checkpoint.resolve(tmp_path / "run.pt") == path
    with pytest.raises(CheckpointError, match="no checkpoint in this folder"):
        checkpoint.resolve(tmp_path)
    with pytest.raises(CheckpointError, match="nowhere: no such run folder or checkpoint"):
        checkpoint.resolve(tmp_path / "nowhere")


# ---- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_named_with_the_last_good_one(
    tmp_path: pathlib.Path, share: float
) -> None:
    folder = CheckpointDir(tmp_path)
    good, cut, last = (folder.save(step, state(step)) for step in (1, 2, 3))
    for path in (cut, last):
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(CheckpointError) as raised:
        checkpoint.load(last)
    assert str(raised.value).startswith(f"{last}: damaged, or not a checkpoint")
    assert str(raised.value).endswith(f"; the previous good checkpoint is {good}")
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "step_000000000002.pt"
    with pytest.raises(CheckpointError, match=r"step_000000000002.pt: no such checkpoint$"):
        checkpoint.load(missing)
    good = CheckpointDir(tmp_path).save(1, state(1))
    with pytest.raises(CheckpointError, match=f"the previous good checkpoint is {good}$"):
        checkpoint.load(missing)


def test_code_is_not_run(tmp_path: pathlib.Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "harm"),)

    path = tmp_path / "evil.pt"
    torch.save({"evil": Evil()}, path)
    with pytest.raises(CheckpointError, match="damaged, or not a checkpoint"):
        checkpoint.load(path)
    assert not (tmp_path / "harm").exists()


# ---- a full disk ---------------------------------------------------------------------------------


class FullFile:
    """A file on a disk that is full after so many bytes."""

    def __init__(self, file: Any, room: int):
        self.file, self.room = file, room

    def write(self, data: Any) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(self.file.write(data))

    def __enter__(self) -> FullFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def full_disk(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    def open_full(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        return FullFile(builtins.open(path, mode, *args, **kwargs), room)

    monkeypatch.setattr(atomic, "open", open_full, raising=False)


@pytest.mark.parametrize("room", [0, 1, 100, 5000, 100_000])
def test_a_full_disk_leaves_the_previous_checkpoint(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    folder = CheckpointDir(tmp_path, keep=1)
    good = folder.save(1, state(1))
    with monkeypatch.context() as patched:
        full_disk(patched, room)
        with pytest.raises(CheckpointError) as raised:
            folder.save(2, state(2, size=100_000))
    assert str(raised.value) == (
        f"{tmp_path / 'step_000000000002.pt'}: cannot be written (No space left on device); "
        f"the previous checkpoint is intact: {good}"
    )
    assert leftovers(tmp_path) == []
    assert folder.latest() == good and checkpoint.load(good)["step"] == 1
    assert checkpoint.load(folder.save(2, state(2)))["step"] == 2  # with room again


@pytest.mark.parametrize(
    ("function", "error", "seen"),
    [
        ("fsync", OSError(errno.EIO, os.strerror(errno.EIO)), CheckpointError),
        ("replace", OSError(errno.EIO, os.strerror(errno.EIO)), CheckpointError),
        ("fsync", KeyboardInterrupt("Input/output error"), KeyboardInterrupt),
    ],
)
def test_so_does_a_disk_that_fails_at_the_end_and_ctrl_c(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, function: str, error: Any, seen: Any
) -> None:
    folder = CheckpointDir(tmp_path)
    good = folder.save(1, state(1))

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, function, fail)
        with pytest.raises(seen, match="Input/output error"):
            folder.save(2, state(2))
    assert leftovers(tmp_path) == [] and folder.paths() == [good]


# ---- kill -9 -------------------------------------------------------------------------------------


def save_forever(folder: CheckpointDir, saved: Connection) -> None:
    torch.set_num_threads(1)
    first = 1 if folder.latest() is None else checkpoint.load(folder.latest())["step"] + 1
    for step in itertools.count(first):
        folder.save(step, state(step, 300_000))
        saved.send(step)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_while_saving(tmp_path: pathlib.Path) -> None:
    """A checkpoint that was reported as saved is whole, and so is every other of that name."""
    rng = random.Random(0)
    folder = CheckpointDir(tmp_path / "run", keep=2)
    context = multiprocessing.get_context("fork")
    for _ in range(4):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=save_forever, args=(folder, writer))
        process.start()
        writer.close()
        saved = [reader.recv() for _ in range(3)]
        time.sleep(rng.uniform(0, 0.02))  # anywhere within a save
        process.kill()
        process.join()
        with contextlib.suppress(EOFError, OSError):  # nothing, or half a number
            while True:
                saved.append(reader.recv())
        paths = folder.paths()
        assert 1 <= len(paths) <= 3
        for path in paths:
            loaded = checkpoint.load(path)
            assert loaded["step"] == checkpoint.step_of(path)
            assert torch.equal(loaded["weights"], torch.full((300_000,), float(loaded["step"])))
        assert checkpoint.step_of(paths[-1]) >= saved[-1]
    folder.save(10**6, state(1))
    assert leftovers(folder.folder) == []
