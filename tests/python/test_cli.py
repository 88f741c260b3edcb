"""The command line: what careless commands get, and what short ones may leave out."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pyfastenv
from pyfastenv import cli
from pyfastenv.algorithms import mbpo, ppo, sac
from pyfastenv.runs import folder as run_folder
from pyfastenv.runs.registry import ALGORITHMS, algorithm_module
from pyfastenv.runs.saved import load_policy


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of CartPole, with a checkpoint."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    options = ["--env-id", "CartPole-v1", "--total-steps", "5000", "--quiet", "--loggers", "csv"]
    assert cli.main(["train", "ppo", *options, "--run-dir", str(folder)]) == 0
    return folder


def command(text: str, run: Path) -> list[str]:
    """The words of a command line, in which RUN is the run folder."""
    return [word.replace("RUN", str(run)) for word in text.split()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate RUN --seed -3", "seed: expected at least 0, got -3"),
        ("evaluate RUN --seed 1e30", "seed: expected less than"),
        ("evaluate RUN --episodes 0", "episodes: expected at least 1, got 0"),
        ("evaluate RUN --episodes 1e12", "episodes: expected less than"),
        ("evaluate RUN/config.json", "config.json: damaged, or not a checkpoint (Weights only"),
        ("record RUN --seed -1", "seed: expected at least 0, got -1"),
        ("record RUN --episodes 0", "episodes: expected at least 1, got 0"),
        ("record RUN --command 1", "command: expected a task with one, CartPole-v1 has none"),
        ("evaluate RUN --commands grid", "commands: CartPole-v1 has none"),
        ("record RUN --width 0", "width: expected at least 16, got 0"),
        ("record RUN --height 1e5", "height: expected less than 8193, got 100000"),
        ("record RUN --width 100", "width: CartPole-v1 is drawn in a size of its own"),
        ("record RUN --output a.avi", "output: expected a name ending in .mp4 or .gif, got a.avi"),
        ("record RUN --output RUN/new/film.mp4", "output: there is no folder"),
        ("plot", "runs: expected at least one run folder, got none"),
        ("plot RUN --output x.jpg", "expected a name ending in .png or .pdf or .svg, got x.jpg"),
        ("plot RUN --output x", "output: expected a name ending in"),
        ("plot RUN --output RUN/new/x.png", "output: there is no folder"),
        ("train ppo --total-steps 0", "total_steps: expected at least 1, got 0"),
        ("train ppo --total-steps 1e400", "total_steps: expected less than"),
        ("train ppo --seed 1e30", "seed: expected less than 2**63"),
        ("train ppo --num-envs 1e12", "num_envs: expected less than"),
        ("train ppo --hidden-sizes 64 0", "hidden_sizes: expected widths >= 1, got (64, 0)"),
        ("train PPO", f"no algorithm 'PPO'; there are {', '.join(ALGORITHMS.names())}"),
        ("train ppo --env-id CartPol-v1", "CartPole-v1"),
        ("evaluate nowhere", "nowhere: no such run folder or checkpoint"),
        ("record nowhere.pt", "nowhere.pt: no such checkpoint"),
        ("resume nowhere", "nowhere: neither a run folder nor a checkpoint in one"),
        ("plot nowhere", "nowhere: not a run folder"),
        ("resume RUN --total-steps -1", "total_steps: expected at least 1, got -1"),
        ("resume RUN --anneal-steps 100", "anneal_steps: expected None, got 100: neither"),
        ("experiment flow --output RUN/config.json", "config.json is not a folder"),
    ],
)
def test_mistakes_are_one_sentence(
    line: str, message: str, run: Path, one_sentence: Callable[[list[str], str], None]
) -> None:
    before = sorted(run.rglob("*"))
    one_sentence(command(line, run), message)
    assert sorted(run.rglob("*")) == before


def test_a_finished_run_with_a_schedule_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    options = ["--env-id", "CartPole-v1", "--anneal", "--total-steps", "4096", "--quiet"]
    assert cli.main(["train", "ppo", *options, "--run-dir", str(folder)]) == 0
    assert cli.main(["resume", str(folder), "--total-steps", "5000"]) == 1
    assert "--anneal-steps 5000" in capsys.readouterr().err
    steps = ["--total-steps", "5000", "--anneal-steps", "6000"]
    assert cli.main(["resume", str(folder), *steps]) == 0
    assert load_policy(folder).step >= 5000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate RUN --episodes ten", "--episodes"),
        ("evaluate RUN --episodes 1.5", "expected a whole number such as"),
        ("resume RUN --total-steps abc", "--total-steps"),
        ("train ppo --total-steps nan", "--total-steps"),
        ("train ppo --total-steps inf", "--total-steps"),
        ("train ppo --learning-rate 1e-3x", "--learning-rate"),
        ("train ppo --env-id", "--env-id"),
        ("train mbpo --dynamics nothing", "--dynamics"),
        ("plot RUN -o x.png", "-o"),
        ("evaluate", "run folder"),
        ("", "evaluate"),
        ("train", "ppo"),
        ("nonsense", "nonsense"),
        ("envs --nonsense", "--nonsense"),
    ],
)
def test_command_lines_that_do_not_parse(
    line: str, message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(command(line, run))
    assert raised.value.code == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


def test_the_process_prints_its_version_or_ends_with_1(run: Path) -> None:
    mistake = "pyfastenv: seed: expected at least 0, got -3\n"
    for arguments, outcome in (
        (["--version"], (0, f"{pyfastenv.__version__}\n", "")),
        (["version"], (0, f"{pyfastenv.__version__}\n", "")),
        (["evaluate", str(run), "--seed", "-3"], (1, "", mistake)),
    ):
        command = [sys.executable, "-m", "pyfastenv", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == outcome


_WITHOUT_PACKAGES = """
import sys
from pyfastenv import cli
def begin(*packages):
    for name in [name for name in sys.modules if name.startswith("pyfastenv.experiments")]:
        del sys.modules[name]
    sys.modules.update(dict.fromkeys(packages))
packages = ["scipy", "pandas", "psutil", "jinja2"]
for package in packages:
    begin(package)
    assert cli.main(["experiment", "flow", "--quick"]) == 1
    del sys.modules[package]
begin(*packages)
raise SystemExit(cli.main(["experiment", "--help"]))
"""


def test_experiments_are_listed_where_their_packages_are_missing() -> None:
    command = [sys.executable, "-P", "-c", _WITHOUT_PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "sampling" in done.stdout
    answers = done.stderr.splitlines()
    assert len(answers) == 4
    assert all(line.endswith(": pip install 'pyfastenv[train,experiments]'") for line in answers)


@pytest.mark.parametrize(
    ("text", "number"), [("1e5", 100_000), ("2.5e3", 2500), ("1E3", 1000), ("12_000", 12_000)]
)
def test_whole_numbers_in_scientific_notation(
    text: str, number: int, ppo_configs: list[ppo.Config]
) -> None:
    assert cli.main(["train", "ppo", "--total-steps", text, "--hidden-sizes", text, "8"]) == 0
    (given,) = ppo_configs
    assert given.total_steps == number and type(given.total_steps) is int
    assert given.hidden_sizes == (number, 8)


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_a_misspelt_option_of_a_preset_is_named(name: str) -> None:
    expected = f"^{name} has no option 'total_step'; did you mean 'total_steps'[?]$"
    with pytest.raises(TypeError, match=expected):
        algorithm_module(name).Config.preset("Hopper-v5", total_step=3)
    assert algorithm_module(name).Config.preset("Hopper-v5", total_steps=3).total_steps == 3


def test_of_a_presets_env_kwargs_those_stay_that_are_not_given() -> None:
    """In Python and in a sweep, too, which gives what ``--env.KEY`` sets."""
    given = {"frame_skip": 2, "pixels": {"height": 32}}
    config = algorithm_module("drqv2").Config.preset("CartpoleBalance-v1", env_kwargs=given)
    pixels = {"height": 32, "width": 48, "camera": 0}
    assert config.env_kwargs == {"frame_skip": 2, "max_episode_steps": 250, "pixels": pixels}


@pytest.mark.parametrize("line", ["evaluate RUN", "record RUN"])
@pytest.mark.parametrize(
    ("every", "result", "message"),
    [
        (3000, False, "the first comes at step 3,000 (checkpoint_every = 3,000), or on Ctrl-C"),
        (0, False, "the first comes at step 5,000 (checkpoint_every = 0), or on Ctrl-C"),
        (0, True, "those that the run had are gone"),
    ],
)
def test_a_run_without_a_checkpoint_says_when_the_first_comes(
    line: str,
    every: int,
    result: bool,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = ppo.Config(env_id="CartPole-v1", total_steps=5000, checkpoint_every=every)
    run_folder.write_config(tmp_path, config)
    if result:
        (tmp_path / run_folder.RESULT).write_text("{}")
    assert cli.main(command(line, tmp_path)) == 1
    expected = f"pyfastenv: {tmp_path}: no checkpoint in this folder: {message}\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("module", [sac, mbpo])
def test_a_short_training_explores_for_less(
    module: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[sac.Config] = []
    monkeypatch.setattr(module.spec, "train", given.append)  # type: ignore[attr-defined]
    name = str(module.Config.algorithm)  # type: ignore[attr-defined]
    assert cli.main(["train", name, "--env-id", "Hopper-v5", "--total-steps", "5000"]) == 0
    given[0].check()
    assert given[0].learning_starts == 500
    assert "learning starts after 500 steps, not after 5,000" in capsys.readouterr().err
    options = ["--env-id", "Hopper-v5", "--total-steps", "6000"]
    assert cli.main(["train", name, *options]) == 0
    assert given[1].learning_starts == 5000 and capsys.readouterr().err == ""
    # the model begins with a minibatch
    assert cli.main(["train", name, "--env-id", "Walker2d-v5", "--total-steps", "2000"]) == 0
    given[2].check()
    assert given[2].learning_starts == (256 if module is mbpo else 200)


@pytest.mark.parametrize(
    ("name", "begins"), [("x.png", b"\x89PNG"), ("x.pdf", b"%PDF"), ("x.SVG", b"<?xml")]
)
def test_a_plot_is_what_its_name_says(name: str, begins: bytes, run: Path, tmp_path: Path) -> None:
    assert cli.main(["plot", str(run), "--output", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": "1e-3"}, "learning_rate: expected float, got '1e-3'"),
        ({"hidden_sizes": 32}, "hidden_sizes: expected tuple[int, ...], got 32"),
        ({"hidden_sizes": (64, 3.5)}, "hidden_sizes: expected tuple[int, ...], got (64, 3.5)"),
        ({"total_steps": 1e5}, "total_steps: expected int, got 100000.0"),
        ({"env_id": None}, "env_id: expected str, got None"),
        ({"video": "no"}, "video: expected bool, got 'no'"),
        ({"num_envs": True}, "num_envs: expected int, got True"),
        ({"target_kl": "small"}, "target_kl: expected float | None, got 'small'"),
    ],
)
def test_options_of_a_wrong_type_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        ppo.Config(**options).check()  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_other_options_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"rollout_schedule: expected tuple\[int, int, int, int\]"):
        mbpo.Config(rollout_schedule=(20, 150, 1)).check()  # type: ignore[arg-type]
    for given, error in ((1, TypeError), ("Flow", ValueError)):
        message = f"dynamics: expected 'ensemble' or 'flow', got {given!r}"
        with pytest.raises(error, match=message):
            mbpo.Config(dynamics=given).check()  # type: ignore[arg-type]


def test_options_that_numpy_and_json_give() -> None:
    config = ppo.Config(
        learning_rate=np.float32(1e-3),  # type: ignore[arg-type]
        gamma=1,
        num_envs=np.int64(4),  # type: ignore[arg-type]
        hidden_sizes=[32, 32],  # type: ignore[arg-type]
        run_dir="runs/x",  # type: ignore[arg-type]
    )
    config.check()
    for each in (config, ppo.Config(run_dir=Path("runs/x"))):
        again = ppo.Config.from_dict(json.loads(json.dumps(each.to_dict())))
        again.check()
        assert again.to_dict() == each.to_dict()


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m pyfastenv envs | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("Ant-v5") and done.stderr == ""


def test_without_pytorch_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dispatch(arguments: list[str]) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(cli, "_dispatch", dispatch)
    assert cli.main(["train", "ppo"]) == 1
    assert "needs PyTorch, which environments do not: pip install" in capsys.readouterr().err


def test_too_little_memory_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = "--batch-size 1e12 --learning-starts 100 --total-steps 200 --quiet"
    line = f"train sac --env-id Pendulum-v1 {sizes} --run-dir {tmp_path / 'run'}"
    assert cli.main(line.split()) == 1
    said = capsys.readouterr().err
    assert "pyfastenv: out of memory: fewer or smaller minibatches, buffers or env" in said
    assert "Traceback" not in said
