"""Callbacks: what they are told, in which order, and how they end a run."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import algorithms
import numpy as np
import pytest
from trainings import assert_same_run

from pyfastenv.algorithms import sac
from pyfastenv.runs.logger import read_metrics
from pyfastenv.training.callbacks import Callback, Run, StopAtReturn

small = partial(algorithms.small, "sac")


def config(folder: Path, **options: Any) -> sac.Config:
    return small(**{"run_dir": folder, "eval_every": 100, "checkpoint_every": 100, **options})


class Witness(Callback):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    def on_start(self, run: Run) -> None:
        assert run.folder.is_dir() and run.stopped is None
        self.events.append(("start", run.step))

    def on_step(self, run: Run, metrics: dict[str, float]) -> None:
        metrics["mine/step"] = float(run.step)
        self.events.append(("step", run.step))

    def on_evaluation(self, run: Run, metrics: dict[str, float]) -> None:
        assert run.evaluation is metrics and "eval/return" in metrics
        self.events.append(("evaluation", run.step))

    def on_checkpoint(self, run: Run, path: Path) -> None:
        assert path.is_file()
        self.events.append(("checkpoint", run.step))

    def on_end(self, run: Run) -> None:
        self.events.append(("end", run.step))


def test_they_are_told_everything_in_order_and_change_nothing(tmp_path: Path) -> None:
    witness = Witness()
    sac.train(config(tmp_path / "told"), callbacks=[witness])
    assert witness.events[:2] == [("start", 0), ("step", 60)]
    assert [event for event in witness.events if event[0] not in ("start", "step")] == [
        ("evaluation", 100),
        ("checkpoint", 100),
        ("evaluation", 200),
        ("checkpoint", 200),
        ("end", 200),
    ]
    assert witness.events.index(("step", 100)) + 1 == witness.events.index(("evaluation", 100))
    rows = read_metrics(tmp_path / "told")
    assert all(row["mine/step"] == row["step"] for row in rows)
    sac.train(config(tmp_path / "alone"), callbacks=[lambda run, metrics: None])
    path = tmp_path / "told" / "metrics.jsonl"
    for row in rows:
        del row["mine/step"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert_same_run(tmp_path / "told", tmp_path / "alone")


@pytest.mark.parametrize("event", ["on_step", "on_evaluation", "on_checkpoint"])
def test_a_stop_from_inside_is_an_end(event: str, tmp_path: Path) -> None:
    class Stop(Callback):
        pass

    def stop(run: Run, what: Any) -> bool:
        return run.step < 100

    callback = Stop()
    setattr(callback, event, stop)
    result = sac.train(config(tmp_path / "run"), callbacks=[callback])
    # what is said after the row has been logged counts from the next one on
    assert result.global_step == (110 if event == "on_checkpoint" else 100)
    assert result.stopped == f"Stop.{event} returned False"
    assert result.checkpoint is not None and result.checkpoint.is_file()
    last = read_metrics(tmp_path / "run")[-1]
    assert last["step"] == result.global_step
    assert last["eval/return"] == result.evaluation["eval/return"]
    saved = json.loads((tmp_path / "run" / "result.json").read_text())
    assert saved["stopped"] == result.stopped
    # it goes on as if nothing had happened
    sac.train(config(tmp_path / "whole"))
    sac.train(small(resume=tmp_path / "run", eval_every=100, checkpoint_every=100))
    whole, cut = (read_metrics(tmp_path / name)[-1] for name in ("whole", "run"))
    assert whole["eval/return"] == cut["eval/return"] and cut["step"] == 200


def test_a_return_that_is_high_enough_ends_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = sac.train(config(tmp_path / "run", quiet=False), callbacks=[StopAtReturn(-100_000.0)])
    assert result.global_step == 100
    assert result.stopped is not None and result.stopped.endswith("reached -100,000.0")
    assert f"Stopped at step 100: {result.stopped}." in capsys.readouterr().out
    result = sac.train(config(tmp_path / "other"), callbacks=[StopAtReturn(0.5)])
    assert result.stopped is None and result.global_step == 200


def test_a_function_is_told_of_steps_and_others_are_refused(tmp_path: Path) -> None:
    steps: list[int] = []
    sac.train(config(tmp_path / "run"), callbacks=[lambda run, metrics: steps.append(run.step)])
    assert steps[0] == 60 and steps[-1] == 200
    result = sac.train(config(tmp_path / "no"), callbacks=[lambda run, metrics: np.False_])
    assert result.stopped == "Callback.on_step returned False"

    def with_steps_of_its_own(run: Run, metrics: dict[str, float]) -> None:
        metrics["step"] = 4.0 * run.step

    with pytest.raises(ValueError, match="a row's 'step' is its own; give this number another"):
        sac.train(config(tmp_path / "frames"), callbacks=[with_steps_of_its_own])
    with pytest.raises(TypeError, match=r"callbacks: expected a list of them, got <.*StopAtReturn"):
        sac.train(config(tmp_path / "one"), callbacks=StopAtReturn(0.5))  # type: ignore[arg-type]
    for wrong in (3, Witness):
        with pytest.raises(TypeError, match="callbacks: expected objects of"):
            sac.train(config(tmp_path / f"wrong{wrong}"), callbacks=[wrong])  # type: ignore[list-item]
