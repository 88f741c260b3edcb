"""Tasks in C++, compiled at run time: the same bits as in Python, and clear words when not."""

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dict_tasks import Arm
from parity import assert_same

import pyfastenv
from pyfastenv.errors import EnvError, TaskCodeError
from pyfastenv.tasks.check.check import check_task
from pyfastenv.tasks.compiler import native
from pyfastenv.tasks.language.find import place_of

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
SOURCE = Path(__file__).with_name("native_tasks") / "arm.cc"


class PythonArm(Arm):
    observation_dict = None

    def observation(self, data, obs):
        obs["observation"] = np.concatenate((data.qpos, data.qvel))
        obs["achieved_goal"] = data.site("tip").xpos[:2]
        obs["desired_goal"] = self.goal


@pytest.fixture(scope="module")
def arm() -> type[pyfastenv.Task]:
    return pyfastenv.compile_task(SOURCE)


@needs_compiler
@pytest.mark.parametrize("engine", ["auto", "mujoco"])
def test_equals_the_task_in_python(arm: Any, engine: str) -> None:
    pytest.importorskip("numba")
    ours, theirs = (
        pyfastenv.make_vec(
            task, 9, num_threads=2, autoreset_mode="SameStep", engine=engine, near=0.1
        )
        for task in (arm, PythonArm)
    )
    other = pyfastenv.make_vec(arm, 9, num_threads=3, autoreset_mode="SameStep", near=0.1)
    assert ours.observation_groups == theirs.observation_groups
    assert ours.stats()["engine"] == theirs.stats()["engine"]
    assert_same(ours.reset(seed=3), theirs.reset(seed=3))
    other.reset(seed=4)
    rng, successes, ended = np.random.default_rng(0), 0.0, 0
    for step in range(80):
        actions = rng.uniform(-0.9, 0.9, (9, 2))
        results = ours.step(actions)
        assert_same(results, theirs.step(actions))
        successes += results[4]["is_success"].sum()
        ended += (results[2] | results[3]).sum()
        if step == 40:
            other.set_state(ours.get_state())
        elif step > 40:
            assert_same(other.step(actions), results)
    assert successes > 0
    assert ended > 9
    with pytest.raises(ValueError, match="state"):
        pyfastenv.make_vec(arm, 9).set_state(ours.get_state())


@needs_compiler
def test_failures_are_one_environments(arm: Any) -> None:
    envs = pyfastenv.make_vec(arm, 3)
    envs.reset(seed=0)
    for action, said in ((2.0, r"environment 1: .*RuntimeError: too \\ strong"), (-2.0, "no more")):
        actions = np.zeros((3, 2))
        actions[1, 0] = action
        before = envs.get_state([1])
        with pytest.raises(EnvError, match=said) as caught:
            envs.step(actions)
        assert caught.value.env_ids == (1,)
        assert_same(envs.get_state([1]), before)
        envs.step(np.zeros((3, 2)))
    with pytest.raises(RuntimeError, match=r"arm.cc: it is C\+\+"):
        pyfastenv.debug(arm)
    with pytest.raises(TypeError, match=r"no argument 'nera'; there are .*near"):
        pyfastenv.make_vec(arm, 1, nera=1.0)
    with pytest.raises(ValueError, match="float64"):
        pyfastenv.make_vec(arm, 1, action_dtype="float32")


@needs_compiler
def test_is_a_task_like_others(arm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [f.what for f in check_task(arm) if not f.ok] == []
    named = pyfastenv.make_vec(arm, 2, observation_dict=True)
    assert set(named.single_observation_space.spaces) == {
        "observation",
        "achieved_goal",
        "desired_goal",
    }
    module = types.ModuleType("some_tasks")
    monkeypatch.setitem(sys.modules, "some_tasks", module)
    monkeypatch.setattr(arm, "__module__", "some_tasks")
    module.arm = arm  # type: ignore[attr-defined]
    assert place_of(arm) == "some_tasks:arm"


@needs_compiler
def test_is_compiled_once_and_again_when_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYFASTENV_CACHE", str(tmp_path / "cache"))
    (tmp_path / "arm.xml").write_text(SOURCE.with_name("arm.xml").read_text())
    (tmp_path / "weight.h").write_text("constexpr double kWeight = 1.0;\n")
    text = SOURCE.read_text().replace("#include <cmath>", '#include "weight.h"\n#include <cmath>')
    (tmp_path / "arm.cc").write_text(text.replace("= -distance", "= -kWeight * distance"))
    compilations = []
    run = subprocess.run

    def counted(command: list[Any], **kwargs: Any) -> Any:
        compilations.extend([command] if "-o" in command else [])
        return run(command, **kwargs)

    monkeypatch.setattr(native.subprocess, "run", counted)

    def reward() -> float:
        task = pyfastenv.compile_task(tmp_path / "arm.cc", flags=["-O0"])
        envs = pyfastenv.make_vec(task, 1)
        envs.reset(seed=0)
        return float(envs.step(np.zeros((1, 2)))[1][0])

    first = reward()
    assert reward() == first
    assert len(compilations) == 1
    (tmp_path / "weight.h").write_text("constexpr double kWeight = 2.0;\n")
    assert reward() == 2.0 * first
    assert len(compilations) == 2


@needs_compiler
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#include <pyfastenv/task.h>\nint f() { return undeclared; }\n", r"bad.cc:2:.*undeclared"),
        ("int f() { return 1; }\n", r"expected PYFASTENV_TASK"),
        ("extern int g();\nint f() { return g(); }\n", "undefined reference"),
    ],
)
def test_what_cannot_be_compiled(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYFASTENV_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bad.cc").write_text(text)
    with pytest.raises(TaskCodeError, match=said) as caught:
        pyfastenv.compile_task(tmp_path / "bad.cc", flags=["-O0"])
    assert str(caught.value).startswith("bad.cc")
    assert len(str(caught.value).splitlines()) <= 22
    if "PYFASTENV" not in said:
        assert list((tmp_path / "cache").iterdir()) == []


@needs_compiler
def test_names_are_declared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    monkeypatch.setenv("PYFASTENV_CACHE", str(not_a_folder))  # nor can anything be kept
    text = SOURCE.read_text().replace('desired("desired_goal", 2)', 'desired("observation", 2)')
    (tmp_path / "arm.cc").write_text(text)
    with pytest.raises(TaskCodeError, match=r"arm.cc: obs 'observation' is declared twice"):
        pyfastenv.compile_task(tmp_path / "arm.cc", flags=["-O0"])


def test_without_a_compiler_or_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"no-such-compiler-{os.getpid()}")
    with pytest.raises(
        ImportError, match=r"needs a C.. compiler, and there is no no-such-.*pyfasten"
    ):
        pyfastenv.compile_task(SOURCE)
    with pytest.raises(FileNotFoundError, match=r"nothing.cc' is no file"):
        pyfastenv.compile_task("nothing.cc")
