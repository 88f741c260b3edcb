"""Environments to evaluate in have what the training's were given one by one."""

# ruff: noqa: E402

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from algorithms import small

import pyfastenv
from pyfastenv.algorithms import ppo, sac
from pyfastenv.runs.evaluation import evaluate, make_eval_envs
from pyfastenv.runs.saved import evaluate_run
from pyfastenv.training.callbacks import Callback, Run

pytestmark = pytest.mark.usefixtures("one_torch_thread")


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
