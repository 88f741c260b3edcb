"""Model files that make MuJoCo throw C++ exceptions, which no one can catch: refused beforehand.

Each is tried in a child process: without the check it is ended by a signal.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BODY = '<body><joint type="slide"/><geom size="1"/></body>'
TRY = """
import os, resource, sys
if "ASAN_OPTIONS" not in os.environ:  # which bounds allocations itself
    resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
import pyfastenv
try:
    pyfastenv.make_vec("HalfCheetah-v5", num_threads=1, xml_file=sys.argv[1]).reset(seed=0)
except ValueError as error:
    print(error)
else:
    print("loaded")
"""


def outcome(path: Path) -> str:
    """Makes an environment of a model and returns the output; the process must end by itself."""
    done = subprocess.run([sys.executable, "-c", TRY, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout.strip()


def model(path: Path, extra: str, body: str = BODY) -> Path:
    path.write_text(f"<mujoco>{extra}<worldbody>{body}</worldbody></mujoco>")
    return path


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ('<asset><model name="x"/></asset>', "<model>: expected an attribute 'file'"),
        ("<asset><model content_type='a' name='x' /></asset>", "attribute 'file'"),
        ('<size nuser_geom="2000000000"/>', "nuser_geom: expected at most 1,000,000"),
        (
            '<asset><hfield name="h" nrow="60000" ncol="60000" size="1 1 1 1"/></asset>',
            "at most 268,435,456 heights, got 60000 x 60000",
        ),
    ],
)
def test_models_over_which_mujoco_throws(tmp_path: Path, extra: str, words: str) -> None:
    path = model(tmp_path / "model.xml", extra)
    said = outcome(path)
    assert words in said
    assert str(path) in said


def test_in_a_file_that_is_included(tmp_path: Path) -> None:
    inner = tmp_path / "inner.xml"
    inner.write_text('<mujoco><asset><model name="x"/></asset></mujoco>')
    path = model(tmp_path / "model.xml", '<include file="inner.xml"/>')
    said = outcome(path)
    assert str(inner) in said and "attribute 'file'" in said


def test_in_a_file_that_is_attached(tmp_path: Path) -> None:
    inner = model(tmp_path / "inner.xml", '<size nuser_geom="2000000000"/>')
    path = model(tmp_path / "model.xml", '<asset><model name="x" file="inner.xml"/></asset>')
    assert str(inner) in outcome(path)


def test_a_timestep_without_an_inverse(tmp_path: Path) -> None:
    path = model(tmp_path / "model.xml", '<option timestep="1e-320"/>')
    said = outcome(path)
    assert "timestep" in said and str(path) in said


def test_good_models_pass(tmp_path: Path) -> None:
    inner = model(tmp_path / "inner.xml", "", '<body name="part"><geom size="1"/></body>')
    extra = (
        '<!-- <model name="x"/> --><size nuser_geom="3"/>'
        f'<asset><model name="x" file="{inner.name}"/>'
        '<hfield name="h" nrow="40" ncol="40" size="1 1 1 1"/></asset>'
    )
    path = model(tmp_path / "model.xml", extra)
    assert outcome(path) == "loaded"


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    path = model(tmp_path / "model.xml", '<include file="model.xml"/>')
    assert "cannot load" in outcome(path)
