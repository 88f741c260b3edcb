"""The message where two runs of a task differ: the index, both values to the bit, the cause."""

from typing import Any

import numpy as np
import pytest
from dict_tasks import Arm

from pyfastenv.tasks.check.check import check_task
from pyfastenv.tasks.check.differences import first_difference, likely_cause

calls = [0]


class Counting(Arm):
    """Its batch's rewards depend on how often anybody has called."""

    def batch_step(self, obs, action, reward, terminated, info):
        calls[0] += 1
        return 1.0 + np.arange(len(reward)) * calls[0] * 2.0**-40, terminated


class Uninitialised(Arm):
    def observation(self, data, obs):
        obs["qpos"] = data.qpos
        rest = np.empty(2)
        obs["rest"] = rest * 0.0


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (1.0, 1.0, None),
        ([1.0, np.nan], [1.0, np.nan], None),
        (
            np.array([[0.0, 1.0], [0.0, 0.3]]),
            np.array([[0.0, 1.0], [0.0, 0.1 + 0.2]]),
            "[1, 1] 0.3 (0x3fd3333333333333) and 0.30000000000000004 (0x3fd3333333333334) "
            "(1 of 4 differ)",
        ),
        (
            np.float32([0.1, 2.0, 3.0]),
            np.float32([0.1, 2.5, 4.0]),
            "[1] 2.0 (0x40000000) and 2.5 (0x40200000) (2 of 3 differ)",
        ),
        (True, False, "True and False"),
        ([3, 4], [3, 5], "[1] 4 and 5 (1 of 2 differ)"),
        ([1.0], [1.0, 2.0], "shapes (1,) and (2,)"),
    ],
)
def test_the_first_difference(ours: Any, theirs: Any, said: str | None) -> None:
    assert first_difference(ours, theirs) == said


def test_threads_that_differ_in_the_last_bits_are_told_with_them() -> None:
    (found,) = [f.what for f in check_task(Counting) if "three threads" in f.what]
    begin = "one and three threads differ at step 0: reward of environment 1: 1.0000000"
    assert found.startswith(begin), found
    assert found.count("(0x3ff0000000") == 2, found
    assert "; two runs on one thread differ too; likely: batch_step or" in found, found


def test_memory_that_nobody_has_written_is_a_likely_cause() -> None:
    line = Uninitialised.observation.__code__.co_firstlineno + 2
    said = likely_cause(Uninitialised())
    assert said.endswith(f"test_task_differences.py:{line}; write np.zeros"), said
    assert likely_cause(Arm()).startswith("nothing in the task's methods explains this")
