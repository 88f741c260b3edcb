"""MuJoCo's own tests of rollouts, batches and sysid, with ours in the place of what they test."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

# The last line: outcomes of tests that did not fail, how often ours was called, and what failed.
PROGRAM = """
import json
import sys

import mujoco.rollout
import pytest
from pyfastenv import physics
from pyfastenv.physics import batch

calls, outcomes, failed = [], {}, {}


def counted(of):
    def call(*args, **kwargs):
        calls.append(1)
        return of(*args, **kwargs)
    return call


class Outcomes:
    def pytest_runtest_logreport(self, report):
        if report.failed:
            failed[report.nodeid] = report.longrepr.reprcrash.message
        elif report.when == "call" or report.skipped:
            outcomes[report.nodeid] = report.outcome


mujoco.rollout.rollout = counted(physics.rollout)
mujoco.rollout.Rollout = physics.Rollout
mujoco.rollout.shutdown_persistent_pool = physics.shutdown_persistent_pool
batch.Batch.step = counted(batch.Batch.step)
sys.modules["mujoco.batch"] = mujoco.batch = batch
pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", ".", sys.argv[1]], [Outcomes()])
for name in failed:  # which may have passed, but for a subtest
    outcomes.pop(name, None)
print(json.dumps([list(outcomes.values()), len(calls), failed]))
"""
# They call names of mujoco.batch that begin with an underscore.
PRIVATE = {
    "test_error_messages",
    "test_integer_arguments_checked",
    "test_mask_ids",
    "test_named_contype_and_pre_expanded_type_fields",
    "test_private_binding_does_not_convert",
    "test_rollout_checks_buffers",
}


@pytest.mark.parametrize(
    ("tests", "passing", "skipped", "private", "needs"),
    [
        ("rollout_test.py", 69, 1, set(), "absl"),  # one is skipped with MuJoCo's, too
        ("batch_test.py", 48, 0, PRIVATE, "absl"),
        ("sysid/tests", 68, 0, set(), "plotly"),  # mujoco[sysid]
    ],
)
def test_they_pass_on_ours(
    tests: str, passing: int, skipped: int, private: set[str], needs: str, tmp_path: Path
) -> None:
    path = Path(mujoco.__file__).parent / tests
    if not path.exists() or importlib.util.find_spec(needs) is None:
        pytest.skip(f"needs {needs} and a MuJoCo that has its {tests}")
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        cwd=tmp_path,
        env={"MUJOCO_GL": "egl", **os.environ},
        capture_output=True,
        text=True,
    )
    assert result.stdout, result.stderr
    *said, last = result.stdout.strip().splitlines()
    outcomes, calls, failed = json.loads(last)
    assert {name.split("::")[-1] for name in failed} == private, "\n".join(said[-80:])
    for message in failed.values():  # at a private name, and nothing before it
        assert "has no attribute '_" in message, message
    assert (outcomes.count("passed"), outcomes.count("skipped")) == (passing, skipped)
    assert calls > 10
