"""Metrics: what is on disk after a kill, and nothing twice after resuming."""

import csv
import math
import pathlib
import sys
import types
from typing import Any

import pytest
import torch

from pyfastenv.runs.errors import TrainingError
from pyfastenv.runs.logger import LoggerStart, MetricLogger, read_metrics
from pyfastenv.runs.registry import LOGGERS


def read_csv(folder: pathlib.Path) -> list[dict[str, str]]:
    with open(folder / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def steps(folder: pathlib.Path) -> list[float]:
    return [row["step"] for row in read_metrics(folder)]


def log(
    folder: pathlib.Path, *rows: dict[str, Any], loggers: tuple[str, ...] = ("csv",), **start: Any
) -> None:
    """Writes rows, whose ``step`` is theirs, and ends."""
    logger = MetricLogger(folder, loggers, **start)
    for row in rows:
        logger.log(row["step"], {name: row[name] for name in row if name != "step"})
    logger.close()


def test_rows_are_there_at_once(tmp_path: pathlib.Path) -> None:
    logger = MetricLogger(tmp_path, ["csv"])
    logger.log(10, {"loss/policy": 0.25})
    assert read_metrics(tmp_path) == [{"step": 10, "loss/policy": 0.25}]
    assert read_csv(tmp_path) == [{"step": "10", "loss/policy": "0.25"}]
    logger.close()


def test_columns_may_come_and_go(tmp_path: pathlib.Path) -> None:
    changing = {"loss": 0.5}, {"loss": 0.4, "eval": 7}, {"other": 1.0}, {"loss": 0.3}
    log(tmp_path, *({"step": step, **row} for step, row in enumerate(changing, 1)))
    assert (tmp_path / "metrics.csv").read_text() == (
        "step,loss,eval,other\n1,0.5,,\n2,0.4,7,\n3,,,1.0\n4,0.3,,\n"
    )
    assert read_metrics(tmp_path)[2] == {"step": 3, "other": 1.0}


def test_numbers_come_back_exactly_and_tensors_are_numbers(tmp_path: pathlib.Path) -> None:
    log(tmp_path, {"step": 1, "third": 1 / 3, "tensor": torch.tensor(0.1, dtype=torch.float64)})
    assert read_metrics(tmp_path) == [{"step": 1, "third": 1 / 3, "tensor": 0.1}]


def test_what_is_not_finite_stays_valid_json(tmp_path: pathlib.Path) -> None:
    log(tmp_path, {"step": 1, "a": math.nan, "b": math.inf, "c": 1.0}, {"step": 2, "a": 2.0})
    assert (tmp_path / "metrics.jsonl").read_text().splitlines()[0] == (
        '{"step": 1, "a": null, "b": null, "c": 1.0}'
    )
    row = read_metrics(tmp_path)[0]
    assert math.isnan(row["a"]) and math.isnan(row["b"])
    assert [row["a"] for row in read_csv(tmp_path)] == ["", "2.0"]


def test_resuming_cuts_what_came_after_the_checkpoint(tmp_path: pathlib.Path) -> None:
    rows = [{"step": step, "loss": step / 10} for step in (10, 20, 30)]
    log(tmp_path, *rows, {"step": 40, "loss": 4.0, "late": 1.0})
    logger = MetricLogger(tmp_path, ["csv"], resume_step=20)
    assert steps(tmp_path) == [10, 20]
    logger.log(30, {"loss": -3.0})
    logger.close()
    assert steps(tmp_path) == [10, 20, 30]
    assert (tmp_path / "metrics.csv").read_text() == "step,loss\n10,1.0\n20,2.0\n30,-3.0\n"


def test_a_row_torn_by_a_kill_is_skipped_and_cut(tmp_path: pathlib.Path) -> None:
    log(tmp_path, {"step": 10, "loss": 1.0}, {"step": 20, "loss": 2.0})
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-4])
    with open(tmp_path / "metrics.csv", "a") as file:
        file.write("20,2")
    assert steps(tmp_path) == [10]

    log(tmp_path, {"step": 30, "loss": 3.0}, resume_step=20)
    assert steps(tmp_path) == [10, 30]
    assert [row["step"] for row in read_csv(tmp_path)] == ["10", "30"]


def test_a_broken_line_elsewhere_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(ValueError, match=r"metrics.jsonl, line 2: not a row of metrics"):
        read_metrics(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"it has no metrics\.jsonl"):
        read_metrics(tmp_path / "nowhere")


def test_tensorboard_has_each_step_once(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    into = {"loggers": ("tensorboard",)}
    log(tmp_path, *({"step": step, "loss/policy": float(step)} for step in (10, 20, 30)), **into)
    log(tmp_path, {"step": 30, "loss/policy": -30.0}, resume_step=20, **into)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = [(event.step, event.value) for event in events.Scalars("loss/policy")]
    assert found == [(10, 10.0), (20, 20.0), (30, -30.0)]


def test_without_tensorboard_there_is_a_word(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forgotten: Any = None  # an import of it raises
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", forgotten)
    log(tmp_path, {"step": 1, "loss": 1.0}, loggers=("tensorboard",))
    assert "pip install tensorboard" in capsys.readouterr().err
    assert steps(tmp_path) == [1]


# ---- loggers by name -----------------------------------------------------------------------------


class FakeRun:
    """The object that wandb.init returns, as far as it is used."""

    def __init__(self, arguments: dict[str, Any]):
        self.arguments, self.rows, self.finished = arguments, [], False
        self.id = arguments["id"] or "abc123"

    def log(self, row: dict[str, float], step: int) -> None:
        self.rows.append((step, row))

    def finish(self) -> None:
        self.finished = True


def test_wandb_gets_each_row_and_a_resumed_run_goes_on_in_its_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[FakeRun] = []

    def init(**arguments: Any) -> FakeRun:
        runs.append(FakeRun(arguments))
        return runs[-1]

    fake = types.ModuleType("wandb")
    fake.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delitem(sys.modules, "pyfastenv.runs.loggers.wandb", raising=False)
    for resume_step in (None, 10):
        start = {"config": {"seed": 3}, "resume_step": resume_step}
        log(tmp_path, {"step": 20, "loss": 2.0}, loggers=("wandb",), **start)
    first, second = runs
    assert first.arguments["name"] == tmp_path.name and first.arguments["config"] == {"seed": 3}
    assert first.arguments["id"] is None and first.arguments["resume"] is None
    assert second.arguments["id"] == "abc123" and second.arguments["resume"] == "allow"
    assert all(run.rows == [(20, {"loss": 2.0})] and run.finished for run in runs)


def test_mlflow_has_each_row_and_a_resumed_run_goes_on_in_its_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'store'}")
    for resume_step in (None, 10):
        row = {"step": 20 if resume_step is None else 30, "loss": 2.0, "bad": math.nan}
        log(tmp_path, row, loggers=("mlflow",), config={"seed": 3}, resume_step=resume_step)
    client = mlflow.tracking.MlflowClient()
    experiment = client.get_experiment_by_name("pyfastenv")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.data.params == {"seed": "3"} and run.info.status == "FINISHED"
    history = client.get_metric_history(run.info.run_id, "loss")
    assert [(metric.step, metric.value) for metric in history] == [(20, 2.0), (30, 2.0)]
    assert "bad" not in run.data.metrics


class Server:
    """A logger whose server is gone."""

    wrong = "log"

    def __init__(self, start: LoggerStart):
        self.told: list[float] = []
        if self.wrong == "begin":
            raise ConnectionError("no route to it")

    def log(self, step: int, metrics: Any) -> None:
        if self.wrong == "log" and step > 1:
            raise ConnectionError(111, "Connection refused")
        metrics.clear()
        self.told.append(step)

    def close(self) -> None:
        if self.wrong == "close":
            raise KeyError


@pytest.mark.parametrize("wrong", ["begin", "log", "close"])
def test_a_logger_that_fails_is_named_and_ends_nothing(
    wrong: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(LOGGERS, "server", f"{__name__}:Server")
    monkeypatch.setattr(Server, "wrong", wrong)
    if wrong == "begin":
        with pytest.raises(TrainingError, match="loggers: server: no route to it"):
            MetricLogger(tmp_path, ["server"])
        return
    rows = ({"step": step, "loss": float(step)} for step in range(4))
    log(tmp_path, *rows, loggers=("server", "csv"))
    assert [row["loss"] for row in read_csv(tmp_path)] == ["0.0", "1.0", "2.0", "3.0"]
    assert steps(tmp_path) == [0, 1, 2, 3]
    err = capsys.readouterr().err
    said = "[Errno 111] Connection refused" if wrong == "log" else "KeyError"
    assert err.startswith(f"pyfastenv: logger server: {said}; it is told nothing more")
    assert err.count("\n") == 1


def test_loggers_that_are_not_there_are_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="no logger 'wandbb'; there are csv, tensorboard, wandb"):
        MetricLogger(tmp_path, ["wandbb"])
    forgotten: Any = None  # an import of it raises
    monkeypatch.setitem(sys.modules, "wandb", forgotten)
    monkeypatch.delitem(sys.modules, "pyfastenv.runs.loggers.wandb", raising=False)
    with pytest.raises(ImportError, match="logger 'wandb' needs wandb: pip install wandb"):
        MetricLogger(tmp_path, ["wandb"])
