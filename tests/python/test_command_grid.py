"""Commands that are held while a policy is evaluated, or filmed."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from pyfastenv import cli
from pyfastenv.algorithms import ppo
from pyfastenv.publish import video
from pyfastenv.runs.evaluation import Evaluation
from pyfastenv.runs.logger import read_metrics
from pyfastenv.tools.command_grid import endings_of, evaluate_commands, grid
from pyfastenv.tools.terms import LEGEND

pytest.importorskip("numba")
ENDED = [0, 0, 0, 0, 3]  # in the last step that an episode may have
GRID = [[0.0, 0.5], [-1.0, 0.5], [-0.5, 0.5], [1.0, 0.5], [2.0, 0.5]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("told") / "run"
    options = {"total_steps": 4096, "eval_episodes": 1, "quiet": True, "run_dir": folder}
    ppo.train(ppo.Config.preset("pole_task:Told", **options))
    return folder


def test_a_grid_has_each_number_alone() -> None:
    assert grid(np.array([-1.0, 0.5]), np.array([2.0, 0.5])).tolist() == GRID
    assert len(grid(np.full(3, -1.0), np.full(3, 1.0))) == 13


def test_each_command_is_held_all_along(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = evaluate_commands(run, episodes=3)
    assert [list(each.values) for each in held] == GRID
    for each in held:
        metrics = each.evaluation.metrics()
        assert metrics["eval/speed_error"] == abs(each.values[0])
        assert metrics["eval/return"] == 0.5 * metrics["eval/length"]
    assert [each.endings for each in held] == [{"late": n, "bent": 0} for n in ENDED]
    assert cli.main(["evaluate", str(run), "--commands", "grid", "--episodes", "2"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["command", "speed_error", "late", "bent", "return"]
    assert " ".join(lines[-1].split()) == "speed 2 0.5 2 2 of 2 0 of 2 15.0"


def test_without_named_endings_short_episodes_are_counted() -> None:
    lengths = torch.tensor([30, 29, 30])
    played = Evaluation(torch.zeros(3, dtype=torch.float64), lengths, infos={"x": lengths})
    assert endings_of(played, 30) == {"ended early": 1}


def test_a_film_holds_a_command_and_ends_in_time(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def draw(envs: object, env_id: int) -> np.ndarray:
        seen.append(envs.get_command("speed")[0].tolist())  # type: ignore[attr-defined]
        return np.zeros((16, 16, 3), np.uint8)

    monkeypatch.setattr(video, "draw", draw)
    film = run / "film.gif"
    options = ["--steps", "12", "--command", "-0.25", "0.5", "--output", str(film)]
    assert cli.main(["record", str(run), *options]) == 0
    assert seen == [[-0.25, 0.5]] * 6  # every other step
    out, err = capsys.readouterr()
    assert out == f"{film}\n"
    assert err.startswith("Filming up to 12 steps") and "12 steps (100%)" in err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("record RUN --command 1", "command: expected 2 finite numbers, got (1.0,)"),
        ("record RUN --command 1 nan", "command: expected 2 finite numbers, got (1.0, nan)"),
        ("record RUN --steps 0", "steps: expected at least 1, got 0"),
        ("evaluate RUN --commands grid --episodes 0", "episodes: expected at least 1, got 0"),
    ],
)
def test_mistakes_are_one_sentence(
    line: str, words: str, run: Path, one_sentence: Callable[[list[str], str], None]
) -> None:
    one_sentence(line.replace("RUN", str(run)).split(), words)


def test_evaluate_says_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    train = ["train", "ppo", "--env-id", "dict_tasks:Arm", "--run-dir", str(run)]
    assert cli.main([*train, "--total-steps", "512", "--num-envs", "8", "--num-steps", "32"]) == 0
    assert read_metrics(run)[-1]["eval/is_success"] >= 0.0
    capsys.readouterr()
    assert cli.main(["evaluate", str(run), "--episodes", "3"]) == 0
    _, *legend, success = capsys.readouterr().out.splitlines()
    assert "\n".join(legend) == LEGEND
    assert re.fullmatch(r"is_success +\d+%", success)
