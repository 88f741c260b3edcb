"""Environments to evaluate in have what the training's were given one by one."""

# ruff: noqa: E402

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from algorithms import small

import pyfastenv
from pyfastenv import cli
from pyfastenv.algorithms import ppo, sac
from pyfastenv.runs.evaluation import evaluate, make_eval_envs
from pyfastenv.runs.saved import evaluate_run, resumed_config
from pyfastenv.training.callbacks import Callback, Run


class Heavier(Callback):
    """A curriculum: half way through, gravity is another planet's, one for each environment."""

    def on_step(self, run: Run, metrics: dict[str, float]) -> None:
        envs = run.algorithm.envs
        if run.step >= run.config.total_steps / 2:
            gravity = envs.get_model_field("opt.gravity")
            gravity[:, 2] = -20.0 - np.arange(envs.num_envs)
            envs.set_model_field("opt.gravity", gravity)


def test_model_fields_that_a_callback_sets_hold_in_evaluations(tmp_path: Path) -> None:
    config: Any = small("sac", env_id="Hopper-v5", run_dir=tmp_path)
    result = sac.train(config, callbacks=[Heavier()])
    saved = pyfastenv.load_policy(tmp_path)
    with make_eval_envs(config.env_id, saved.env_kwargs, config.eval_episodes) as envs:
        plain = evaluate(envs, saved.policy, config.eval_episodes, config.seed).metrics()
    assert plain["eval/return"] != result.evaluation["eval/return"]
    # and wherever the policy is used afterwards
    with saved.make_envs(3) as envs:
        assert envs.get_model_field("opt.gravity")[:, 2].tolist() == [-20.0, -21.0, -20.0]
    again = evaluate_run(tmp_path, config.eval_episodes, config.seed).metrics()
    assert again == result.evaluation


class Backwards(Callback):
    def on_start(self, run: Run) -> None:
        run.algorithm.envs.reset_task([{"direction": -1}] * run.algorithm.envs.num_envs)


def test_so_do_tasks(tmp_path: Path) -> None:
    config: Any = small("ppo", env_id="HalfCheetahDir-v5", run_dir=tmp_path)
    ppo.train(config, callbacks=[Backwards()])
    with pyfastenv.load_policy(tmp_path).make_envs(2) as envs:
        assert envs.get_task().tolist() == [[-1.0], [-1.0]]
    with pyfastenv.make_vec("HalfCheetahDir-v5", 2) as envs:
        assert envs.get_task().tolist() != [[-1.0], [-1.0]]


def test_own_values_are_taken_in_turn() -> None:
    with pyfastenv.make_vec("Hopper-v5", 2) as given, pyfastenv.make_vec("Hopper-v5", 3) as envs:
        assert given.own_values() == {}
        masses = given.get_model_field("body_mass") * [[2.0], [3.0]]
        given.set_model_field("body_mass", masses)
        envs.take_values(given.own_values())
        assert (envs.get_model_field("body_mass") == masses[[0, 1, 0]]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"env_id": "Pendulum-v1", "frame_stack": 3}, r"9 numbers .* got 6 "),
        ({"env_id": "Hopper-v5"}, r"11 numbers .* got 12 "),
    ],
    ids=str,
)
def test_others_than_the_policy_sees_are_refused_before_anything_is_written(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    others: dict[str, Any] = {"exclude_current_positions_from_observation": False}
    if "frame_stack" in options:
        others = {"frame_stack": 2}
    config = small("sac", run_dir=tmp_path / "run", eval_env_kwargs=others, **options)
    with pytest.raises(ValueError, match=f"^eval_env_kwargs: expected observations of {message}"):
        sac.train(config)
    assert not (tmp_path / "run").exists()


def test_a_file_with_a_task_may_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    file = tmp_path / "before" / "task_that_moves.py"
    file.parent.mkdir()
    file.write_text(Path(__file__).with_name("slider_task.py").read_text())
    run = str(tmp_path / "run")
    result = sac.train(small("sac", env_id=f"{file}:Slider", run_dir=tmp_path / "run"))
    (tmp_path / "after").mkdir()
    file = file.rename(tmp_path / "after" / file.name)
    del sys.modules[file.stem]
    assert cli.main(["evaluate", run]) == 1
    told = f"there is no file {tmp_path}/before/{file.name}, nor one of this name in the current"
    assert told in capsys.readouterr().err
    monkeypatch.chdir(file.parent)
    again = evaluate_run(run, small("sac").eval_episodes, seed=result.seed)
    assert again.metrics() == result.evaluation
    assert cli.main(["resume", run, "--total-steps", "210", "--quiet"]) == 0
    monkeypatch.chdir(tmp_path)  # or in Python
    sac.train(resumed_config(run, env_id=f"{file}:Slider", total_steps=220, quiet=True))
    # another task is still another task
    file.write_text(file.read_text().replace("1.0 - abs", "2.0 - abs"))
    del sys.modules[file.stem]
    with pytest.raises(ValueError, match=r"Slider has changed since: .*code"):
        sac.train(resumed_config(run, env_id=f"{file}:Slider", total_steps=230))
