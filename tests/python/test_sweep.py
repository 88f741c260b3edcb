"""Sweeps: what is trained, what is left, and that a stopped one goes on."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from pyfastenv import cli
from pyfastenv.algorithms import ppo, sac
from pyfastenv.runs.errors import DivergedError
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.saved import resumed_config
from pyfastenv.training.sweep import sweep
from pyfastenv.training.sweep_options import parse_options

SAC: dict[str, Any] = {
    "env_id": "Pendulum-v1", "num_threads": 1, "torch_threads": 1, "total_steps": 80,
    "learning_starts": 40, "eval_every": 40, "eval_episodes": 1, "batch_size": 8,
    "hidden_sizes": (8,), "loggers": (), "quiet": True,
}  # fmt: skip


def test_seeds_stand_side_by_side_where_they_can(tmp_path: Path) -> None:
    rates = {"learning_rate": [1e-3, 1e-2]}
    result = sweep("sac", rates, seeds=2, folder=tmp_path, **SAC)
    assert len(result.cases) == 2
    for case in result.cases:
        (run,) = case.runs  # one run of two seeds
        config = json.loads((run / "config.json").read_text())["config"]
        assert config["num_seeds"] == 2
        assert config["learning_rate"] == case.options["learning_rate"]
        assert config["temperature"] is None and len(case.returns) == 2
        last = read_metrics(run)[-1]
        assert [last[f"eval/return_{k}"] for k in range(2)] == list(case.returns)
    means = [sum(case.returns) / 2 for case in result.cases]
    assert means == sorted(means, reverse=True)
    assert result.plot.read_bytes().startswith(b"\x89PNG")
    lines = result.table.splitlines()
    assert lines[0].startswith("| learning_rate | return | ± s.d. of seeds |") and len(lines) == 4
    assert f"{means[0]:,.1f}" in lines[2] and lines[2] in (tmp_path / "sweep.md").read_text()
    stored = json.loads((tmp_path / "sweep.json").read_text())
    assert [each["returns"] for each in stored] == [list(case.returns) for case in result.cases]

    # nothing is trained twice, and what was stopped goes on
    unfinished = result.cases[0].runs[0]
    (unfinished / "result.json").unlink()
    kept = (result.cases[1].runs[0] / "result.json").stat().st_mtime_ns
    again = sweep("sac", rates, seeds=2, folder=tmp_path, **SAC)
    assert again.table == result.table
    assert (result.cases[1].runs[0] / "result.json").stat().st_mtime_ns == kept

    # nor are results of other options taken for those that are wanted
    for seeds, options, message in (
        (2, {"total_steps": 120}, "total_steps was 80, is 120; choose another folder"),
        (2, {"gamma": 0.5}, "gamma was 0.99, is 0.5; choose another folder"),
        (2, {"eval_episodes": 3}, "eval_episodes was 1, is 3; choose another folder"),
        (2, {"eval_env_kwargs": {"g": 1.0}}, r"eval_env_kwargs was {}, is {'g': 1.0}; choose"),
        (3, {}, "num_seeds was 2, is 3; choose another folder"),
    ):
        with pytest.raises(ValueError, match=message):
            sweep("sac", rates, seeds=seeds, folder=tmp_path, **{**SAC, **options})


def test_a_result_of_fewer_steps_is_none_of_a_run_that_has_gone_on(tmp_path: Path) -> None:
    (case,) = sweep("sac", {}, seeds=1, folder=tmp_path, **SAC).cases
    (run,) = case.runs

    def fail(run: Any, metrics: Any) -> None:
        if run.step > 100:
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        sac.train(resumed_config(run, total_steps=160), callbacks=[fail])
    assert not (run / "result.json").exists()
    (again,) = sweep("sac", {}, seeds=1, folder=tmp_path, **{**SAC, "total_steps": 160}).cases
    rows = read_metrics(run)
    assert rows[-1]["step"] == 160
    assert again.returns == (rows[-1]["eval/return"],) != case.returns


def test_seeds_follow_each_other_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swept = "--learning-rate 1e-3 1e-2 --hidden-sizes 8 8,8 --seeds 2 --seed 5 --no-anneal"
    options = "--num-envs 2 --num-steps 32 --minibatch-size 32 --eval-every 0 --eval-episodes 1"
    line = f"sweep ppo --env-id CartPole-v1 {swept} --total-steps 200 --num-threads 1 {options}"
    line += f" --output={tmp_path / 's'}"
    assert cli.main(line.split()) == 0
    runs = sorted(path.parent for path in (tmp_path / "s").glob("*/result.json"))
    assert len(runs) == 2 * 2 * 2
    configs = [json.loads((run / "config.json").read_text())["config"] for run in runs]
    found = {(c["learning_rate"], tuple(c["hidden_sizes"]), c["seed"]) for c in configs}
    assert found == {(r, h, s) for r in (1e-3, 1e-2) for h in ((8,), (8, 8)) for s in (5, 6)}
    assert not any(config["anneal"] for config in configs)
    out = capsys.readouterr().out
    assert "| learning_rate | hidden_sizes | return |" in out and "8x8" in out
    assert (tmp_path / "s" / "sweep.png").is_file()


def test_what_diverges_does_not_end_a_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {"learning_rate": np.array([1e30, 1e-3])}
    result = sweep("sac", rates, seeds=2, folder=str(tmp_path), **SAC)
    assert "diverged" not in capsys.readouterr().out
    good, bad = result.cases
    assert good.options["learning_rate"] == 1e-3 and len(good.returns) == 2 and not good.diverged
    assert bad.returns == () and bad.mean_return == -math.inf
    assert "not finite" in bad.diverged[0] or "is nan" in bad.diverged[0]
    assert bad.diverged[0] == (bad.runs[0] / "diverged.txt").read_text().strip()
    assert "| – | – | – | – | 0, the rest diverged |" in result.table.splitlines()[3]
    assert json.loads((tmp_path / "sweep.json").read_text())[1]["diverged"] == list(bad.diverged)

    again = sweep("sac", rates, seeds=2, folder=tmp_path, **SAC)
    assert again.table == result.table
    assert capsys.readouterr().out == ""  # nothing was trained again
    with pytest.raises(DivergedError, match="every training diverged, the first at step"):
        sweep("sac", {"learning_rate": [1e30]}, seeds=2, folder=tmp_path, **SAC)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (0.9, TypeError, "gamma: expected a list of the values to sweep, got 0.9"),
        ("0.9", TypeError, "gamma: expected a list of the values to sweep, got '0.9'"),
        ([], ValueError, "gamma: expected at least one value, got none"),
        ([0.9, 0.8, 0.90], ValueError, "gamma: 0.9 is given twice"),
    ],
)
def test_values_that_cannot_be_swept(
    values: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        sweep("sac", {"gamma": values}, folder=tmp_path, **SAC)
    with pytest.raises(ValueError, match=r"gama: sac has no such option .* did you mean 'gamma'"):
        sweep("sac", {"gama": [0.9]}, folder=tmp_path, **SAC)
    with pytest.raises(ValueError, match="hidden_sizes: 64 is given twice; a tuple has commas"):
        sweep("sac", {"hidden_sizes": (64, 64)}, folder=tmp_path)
    with pytest.raises(ValueError, match="gamma: given twice, with values to sweep and with one"):
        sweep("sac", {"gamma": [0.9]}, gamma=0.8, folder=tmp_path, **SAC)
    assert list(tmp_path.iterdir()) == []


def small_network(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Linear(num_inputs, num_outputs)


def test_runs_are_named_by_what_stays(tmp_path: Path) -> None:
    """Not by a function's address, and not by digits that two values share."""
    fields = {**SAC, "total_steps": 40, "learning_starts": 20}
    sweep("sac", {"policy_factory": [small_network]}, seeds=1, folder=tmp_path, **fields)
    sweep("sac", {"temperature": [0.1, 0.10000001]}, seeds=1, folder=tmp_path, **fields)
    names = {path.parent.name for path in tmp_path.glob("*/result.json")}
    policy = f"policy_factory={__name__}:small_network"
    assert names == {policy, "temperature=0.1", "temperature=0.10000001"}


@pytest.mark.parametrize("text", ["{", "{}", '{"evaluation": 3}'])
def test_a_damaged_result_is_named(text: str, tmp_path: Path) -> None:
    fields = {**SAC, "total_steps": 40, "learning_starts": 20}
    case = sweep("sac", {"gamma": [0.9]}, seeds=1, folder=tmp_path, **fields).cases[0]
    path = tmp_path / "gamma=0.9" / "result.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"{path}: damaged .*; without it the sweep evaluates"):
        sweep("sac", {"gamma": [0.9]}, seeds=1, folder=tmp_path, **fields)
    path.unlink()
    again = sweep("sac", {"gamma": [0.9]}, seeds=1, folder=tmp_path, **fields)
    assert again.cases[0].returns == case.returns


@pytest.mark.parametrize("algorithm", ["sac", "ppo"])
def test_help_lists_the_options(algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(["sweep", algorithm, "--help"])
    out = capsys.readouterr().out
    assert raised.value.code == 0
    assert all(option in out for option in ("--learning-rate", "--seeds N", "--output FOLDER"))


def test_options_are_of_the_fields_types() -> None:
    words = "--total-steps 1e4 --temperature none 0.2 --hidden-sizes 64 256,256 --amp --seed 3"
    fixed, grid = parse_options(sac.Config, words.split())
    assert fixed == {"total_steps": 10_000, "amp": True, "seed": 3}
    assert type(fixed["total_steps"]) is int
    assert grid == {"temperature": [None, 0.2], "hidden_sizes": [(64,), (256, 256)]}
    fixed, _ = parse_options(
        ppo.Config, ["--no-anneal", "--activation", "elu", "--anneal_steps", "5"]
    )
    assert fixed == {"anneal": False, "activation": "elu", "anneal_steps": 5}
    words = "--gamma-schedule 0,1e5,0.995 none --loggers csv csv,tensorboard --policy-factory none"
    fixed, grid = parse_options(sac.Config, words.split())
    assert fixed == {"policy_factory": None}
    assert grid == {
        "gamma_schedule": [(0, 100_000, 0.995), None],
        "loggers": [("csv",), ("csv", "tensorboard")],
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--learning-rat 1 2", "no option --learning-rat; did you mean '--learning-rate'?"),
        ("--seed 1 --outptu x", "no option --outptu; did you mean '--output'?"),
        ("--learning-rate", "--learning-rate: expected a value"),
        ("1e-3", "expected --option value …, got '1e-3'"),
        ("--learning-rate fast slow", "learning_rate: expected float, got 'fast'"),
        ("--learning-rate 1e-3 -1", "learning_rate: expected more than 0, got -1"),
        ("--seeds 0", "seeds: expected at least 1, got 0"),
        ("--seeds 1 2 3", "--seeds: expected one value, got 1 2 3"),
        ("--seeds", "--seeds: expected one value, got none"),
        ("--seeds 1.5", "--seeds: expected a whole number"),
        ("--seeds 1 --seeds 2", "--seeds: given twice"),
        ("--output=", "--output: expected one value, got none"),
        ("--anneal --no-anneal", "--no-anneal: given twice"),
        ("--no-anneal --anneal true false", "--anneal: given twice"),
        ("--gamma 0.9 --gamma 0.8", "--gamma: given twice"),
        ("--gamma 0.9 0.9", "gamma: 0.9 is given twice"),
        ("--hidden-sizes 32 32", "hidden_sizes: 32 is given twice; a tuple has commas: 64,64"),
        ("--activation gelu tanh", "activation: expected 'tanh' or 'relu'"),
        ("--minibatch-size 8,9 16", "minibatch_size: expected int"),
        ("--run-dir a b", "run_dir: ppo has no such option to sweep: each run gets its own"),
        ("--seed 1 2", "seed: expected one, the first of `seeds`, not values to sweep"),
        ("--env-id CartPole-v1 Acrobot-v1", "env_id: ppo has no such option to sweep: a sweep is"),
        ("--env.reset_noise 1 --env-id Hopper-v5", "env_kwargs: "),
    ],
)
def test_mistakes_are_one_sentence(
    line: str, message: str, one_sentence: Callable[[list[str], str], None]
) -> None:
    one_sentence(["sweep", "ppo", *line.split()], message)
