"""Algorithms and loggers of installed packages are found by name."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pyfastenv.runs.registry import ALGORITHMS, Registry, algorithm_module, load_logger

pytest.importorskip("torch")

DOCUMENT = Path(__file__).parents[2] / "docs" / "add_an_algorithm.md"

LOGGER = """
import json

class Lines:
    def __init__(self, start):
        self.file = open(start.folder / "lines.txt", "a")
        self.file.write(start.config["env_id"] + "\\n")

    def log(self, step, metrics):
        self.file.write(f"{step} {json.dumps(metrics)}\\n")

    def close(self):
        self.file.close()
"""
ENTRY_POINTS = """
[pyfastenv.algorithms]
random_search = tiny_package.random_search
sac = tiny_package.random_search
broken = tiny_package.nothing
empty = tiny_package

[pyfastenv.loggers]
lines = tiny_package.lines:Lines
"""


# runs command lines, each of which ends with a line of its status and of what it said
COMMANDS = """
import contextlib, io, json, sys
from pyfastenv import cli

for line in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = cli.main(line.split())
        except SystemExit as end:
            status = end.code
    print(json.dumps([status or 0, said.getvalue()]))
"""


def write_wheel(folder: Path) -> Path:
    """A package with the algorithm of docs/add_an_algorithm.md, and a logger."""
    (algorithm,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    info = "tiny_package-1.0.dist-info"
    files = {
        "tiny_package/__init__.py": "",
        "tiny_package/random_search.py": algorithm,
        "tiny_package/lines.py": LOGGER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-package\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": ENTRY_POINTS,
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = folder / "tiny_package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def test_an_outside_package_trains_logs_and_evaluates(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), str(wheel)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip

    train = "train random_search --env-id Pendulum-v1 --total-steps 3200 --num-threads 1"
    run("-m", "pyfastenv", *train.split(), "--run-dir", "run", "--eval-episodes", "2",
        "--loggers", "lines", "--quiet")  # fmt: skip
    lines = (tmp_path / "run" / "lines.txt").read_text().splitlines()
    assert lines[0] == "Pendulum-v1" and lines[-1].startswith("3200 {")
    assert "train/best_reward" in json.loads(lines[1].partition(" ")[2])
    assert not (tmp_path / "run" / "metrics.csv").exists()
    # ours cannot be taken, and what is wrong with theirs is said
    expected = {
        "evaluate run --episodes 2": (0, "return "),
        "train --help": (0, "random_search"),
        "train sac --help": (0, "--batch-size"),
        "train broken": (1, "algorithm 'broken' is said to be at tiny_package.nothing"),
        "train empty": (1, "has no Config, train, load_policy"),
        "train nobody": (1, "random_search"),
    }
    said = [json.loads(line) for line in run("-c", COMMANDS, *expected).splitlines()]
    for (status, words), (found, text) in zip(expected.values(), said, strict=True):
        assert found == status and words in text


def test_names_of_ours_come_first_and_unknown_ones_are_told_the_known() -> None:
    assert ALGORITHMS.names()[: len(ALGORITHMS)] == sorted(ALGORITHMS)
    assert algorithm_module("sac").__name__ == "pyfastenv.algorithms.sac.spec"
    with pytest.raises(
        ValueError,
        match="no algorithm 'SAC'; there are ddpg, distillation, dqn, drqv2, flashsac, mbpo, ",
    ):
        algorithm_module("SAC")
    with pytest.raises(ValueError, match="no logger 'x'; there are csv, tensorboard, wandb, mlf"):
        load_logger("x")
    empty = Registry("pyfastenv.nothing", "thing", dataclass="dataclasses:dataclass")
    assert empty.load("dataclass").__name__ == "dataclass" and empty.names() == ["dataclass"]
