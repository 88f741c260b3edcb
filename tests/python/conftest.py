"""Fixtures and settings of all tests."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

_TRY_GL = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco/>")
renderer = mujoco.Renderer(model, 8, 8)
renderer.update_scene(mujoco.MjData(model))
renderer.render()
renderer.close()
"""

# what neither the package nor its extra ``test`` brings along
OPTIONAL = {
    "absl", "dm_env", "h5py", "jax", "jinja2", "matplotlib", "minari", "pandas", "rich", "rsl_rl",
    "skrl", "stable_baselines3", "tianshou", "torch",
}  # fmt: skip


def pytest_configure() -> None:
    """Ctrl-C works, also where the tests were started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # lanes are tested wherever they can do a model, and not only where they are faster
    os.environ.setdefault("PYFASTENV_MEASURE", "0")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A file that imports an optional package is skipped where that is missing."""
    report = yield
    error = report.call.excinfo.value if report.failed else None
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL:
            report.outcome = "skipped"
            report.longrepr = (str(report.fspath), 0, f"Skipped: {error.name} is not installed")
        error = error.__cause__ or error.__context__
    return report


@pytest.fixture
def in_software(monkeypatch: pytest.MonkeyPatch) -> str:
    """PyTorch rounds to bfloat16 on every processor; the unit that multiplies such numbers."""
    core = pytest.importorskip("pyfastenv._core")
    unit = str(core.bfloat16_unit())
    monkeypatch.setattr(core, "bfloat16_unit", lambda: unit or "software")
    return unit


@pytest.fixture(autouse=True)
def _same_torch() -> None:
    """PyTorch's random numbers and threads do not depend on the tests before.

    Small networks are slower with more than one thread.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True, scope="module")
def _freed_memory_is_given_back() -> Iterator[None]:
    """glibc keeps what was freed: a process of many modules would grow to gigabytes."""
    yield
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)


@pytest.fixture
def short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """MBPO's fits of the model end soon: on few rows the official ones take 500 epochs."""
    from pyfastenv.algorithms.mbpo import spec

    short = partial(spec.DynamicsOptions, batch_size=32, patience=1, max_epochs=40)
    monkeypatch.setattr(spec, "DynamicsOptions", short)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Datasets are opened without Minari: an environment's id is the name of one."""
    from recorded import dataset_of

    monkeypatch.setattr("pyfastenv.sampling.datasets.open_dataset", dataset_of)


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes NaN of all that a task reads of mjData without having declared it."""
    monkeypatch.setenv("PYFASTENV_POISON", "1")


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where MuJoCo may write its log."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def gl() -> None:
    """Skips where no OpenGL context can be made (found out elsewhere: a failure may crash)."""
    tried = subprocess.run([sys.executable, "-c", _TRY_GL], capture_output=True, text=True)
    if tried.returncode != 0:
        last = (tried.stderr.strip().splitlines() or [f"exit status {tried.returncode}"])[-1]
        pytest.skip(f"no OpenGL context (MUJOCO_GL={os.environ.get('MUJOCO_GL')}): {last}")


@pytest.fixture
def one_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[list[str], str], None]:
    """Runs ``pyfastenv …``, which must say one sentence with these words and write nothing."""
    from pyfastenv import cli

    def run(arguments: list[str], words: str) -> None:
        here = tmp_path_factory.mktemp("here")
        monkeypatch.chdir(here)
        capsys.readouterr()
        assert cli.main(arguments) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("pyfastenv: ") and err.count("\n") == 1
        assert words in err
        assert list(here.iterdir()) == []

    return run


@pytest.fixture
def ppo_configs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configurations that ``pyfastenv train ppo`` makes; nothing is trained."""
    given: list[Any] = []
    monkeypatch.setattr("pyfastenv.algorithms.ppo.spec.train", given.append)
    return given


@pytest.fixture
def guessed_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces rollouts by those that the guessing algorithm can be evaluated by."""
    from guess import fake_rollout

    monkeypatch.setattr("pyfastenv.runs.evaluation.rollout", fake_rollout)


@pytest.fixture(scope="session")
def whole_guess(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the guessing algorithm, which stopped ones are compared with."""
    from guess import fake_rollout, train

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("pyfastenv.runs.evaluation.rollout", fake_rollout)
        return train(tmp_path_factory.mktemp("guess") / "whole").run_dir
