"""Errors while an own task runs: they name the line, and nothing else is hurt."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fragile_task import Fragile

import pyfastenv
from pyfastenv import EnvError
from pyfastenv.tasks.compiler import cache

TASK = Path(__file__).with_name("fragile_task.py")


def line_of(text: str) -> int:
    lines = TASK.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("action", "said", "line"),
    [
        (2.0, r"two is too much after 0\.008 s", line_of("raise ValueError(f")),
        (3.0, "index 3 is out of bounds", line_of("return data.qpos[int(")),
        (4.0, "not finite", line_of("return np.log(-1.0)")),
    ],
)
def test_an_exception_has_its_line_and_the_others_go_on(
    action: float, said: str, line: int
) -> None:
    envs = pyfastenv.make_vec(Fragile, 3, num_threads=2)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.zeros((3, 1)))
    before = envs.get_state()
    actions = np.array([[0.0], [action], [0.0]])
    with pytest.raises(EnvError, match=said) as caught:
        envs.step(actions)
    assert caught.value.env_ids == (1,)
    assert f"{TASK.name}:{line}" in str(caught.value)
    assert caught.value.results[1].tolist() == [4.0, 0.0, 4.0]
    np.testing.assert_array_equal(envs.get_state([1]), before[[1]])
    assert envs.step(np.zeros((3, 1)))[1].tolist() == [5.0, 4.0, 5.0]


def test_a_rollout_and_recv_name_the_line_too() -> None:
    envs = pyfastenv.make_vec(Fragile, 2, num_threads=2)
    envs.async_reset(seed=0)
    envs.recv()
    envs.send(np.full((2, 1), 2.0))
    with pytest.raises(EnvError, match="two is too much"):
        envs.recv()


def test_an_error_of_the_engine_inside_a_step_breaks_nothing() -> None:
    envs = pyfastenv.make_vec(Fragile, 2, num_threads=1)
    twin = pyfastenv.make_vec(Fragile, 2, num_threads=1)
    envs.reset(seed=0)
    twin.reset(seed=0)
    with pytest.raises(EnvError, match=r"environment 0: Fragile\.step: mj_ray: vector length"):
        envs.step(np.array([[5.0], [0.0]]))
    twin.step(np.zeros((2, 1)))
    twin.set_state(envs.get_state())
    for _ in range(5):
        ours, theirs = envs.step(np.ones((2, 1))), twin.step(np.ones((2, 1)))
        np.testing.assert_array_equal(ours[0], theirs[0])


def test_diverged_physics_ends_the_episode_and_is_no_mistake() -> None:
    envs = pyfastenv.make_vec(Fragile, 2, autoreset_mode="Disabled")
    envs.reset(seed=0)
    obs, rewards, terminations, _, infos = envs.step(np.array([[6.0], [0.0]]))
    assert infos["diverged"].tolist() == [True, False]
    assert terminations.tolist() == [True, False]
    assert rewards.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(obs[0], [0.0, 0.0])
    plain = pyfastenv.debug(Fragile)
    plain.reset(seed=0)
    assert plain.step(np.array([6.0]))[1:] == (0.0, True, False, {"diverged": True})


# ---- the cache -----------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import pyfastenv
from fragile_task import Fragile
envs = pyfastenv.make_vec(Fragile, 2)
envs.reset(seed=0)
assert envs.step(np.zeros((2, 1)))[1].tolist() == [1.0, 1.0]
print("numba" in sys.modules)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={
            **os.environ,
            "PYFASTENV_CACHE": str(folder),
            "PYTHONPATH": str(Path(__file__).parent),
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def compiled(process: subprocess.Popen[str]) -> bool:
    """Whether numba was needed."""
    out, error = process.communicate()
    assert process.returncode == 0, error
    return out.strip() == "True"


def test_two_processes_compile_into_one_cache_and_a_third_needs_no_numba(tmp_path: Path) -> None:
    both = [start(tmp_path), start(tmp_path)]
    assert [compiled(process) for process in both] == [True, True]
    assert not compiled(start(tmp_path))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-100])  # as if a disk had been full
    assert compiled(start(tmp_path))
    assert not compiled(start(tmp_path))


def test_a_terminal_shows_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFASTENV_CACHE", str(tmp_path))
    for is_terminal, expected in (
        (False, ""),
        (True, f"Seen.step, once; the code is kept in {tmp_path}"),
    ):
        shown = io.StringIO()
        monkeypatch.setattr(shown, "isatty", lambda answer=is_terminal: answer)
        monkeypatch.setattr(sys, "stderr", shown)
        pyfastenv.make_vec(type("Seen", (Fragile,), {f"seen_{is_terminal}": 1.0}), 1)
        assert expected in shown.getvalue()
        assert bool(shown.getvalue()) == is_terminal
        assert not is_terminal or shown.getvalue().endswith("\r\033[K")


def test_a_cache_that_cannot_be_written_costs_a_compilation(tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.write_text("no folder")
    assert compiled(start(nowhere / "cache"))


def test_a_full_disk_leaves_no_half_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("PYFASTENV_CACHE", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", full)
    places = [{("task.py", 3): 4}]
    code = cache.TaskCode({"step": cache.MethodCode("f", b"object", ())}, (), (), places)
    cache.store("key", code)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setenv("PYFASTENV_CACHE", str(tmp_path))
    cache.store("key", code)
    assert cache.load("key") == code


def own_network(num_inputs: int, num_outputs: int) -> Any:
    from torch import nn

    return nn.Linear(num_inputs, num_outputs)


@pytest.mark.parametrize("own", [False, True], ids=["ours", "own"])
@pytest.mark.parametrize("algorithm", ["ppo", "sac", "ddpg"])
def test_an_observation_that_is_no_number_is_named_when_it_is_learned_from(
    algorithm: str, own: bool, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    from pyfastenv.runs.registry import algorithm_module

    module = algorithm_module(algorithm)
    config = module.Config(
        env_id=f"{TASK}:Blind",
        env_kwargs={"max_episode_steps": 20},
        num_envs=2,
        num_threads=1,
        total_steps=600,
        run_dir=tmp_path / "run",
        loggers=(),
        quiet=True,
        policy_factory=own_network if own else None,
        **({} if algorithm == "ppo" else {"learning_starts": 30}),
    )
    message = r"component 1 \(obs\['steps'\]\) (is|of its observation is) NaN or infinite"
    with pytest.raises(EnvError, match=message):
        module.train(config)
    if algorithm == "ppo":  # whose policy sees the second observation alone
        config.run_dir = tmp_path / "part"
        config.env_kwargs["observation_dict"] = {"policy": "steps", "critic": ("state", "steps")}
        with pytest.raises(EnvError, match=message):
            module.train(config)
