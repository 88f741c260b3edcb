"""MLflow, if it is installed; its own environment variables (MLFLOW_TRACKING_URI,
MLFLOW_EXPERIMENT_NAME, …) say where rows go."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient

from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.logger import LoggerStart

_RUN_ID = "mlflow_run_id.txt"


class MLflowLogger:
    """A run of the same name as the run folder; a resumed training goes on in the same one.

    Args:
        start: Where the run begins.
    """

    def __init__(self, start: LoggerStart):
        self._client: Any = MlflowClient()
        path = start.folder / _RUN_ID
        if path.is_file():
            self._run_id = path.read_text().strip()
            self._client.update_run(self._run_id, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "pyfastenv")
        experiment = self._client.get_experiment_by_name(name)
        number = (
            self._client.create_experiment(name) if experiment is None else experiment.experiment_id
        )
        run = self._client.create_run(number, run_name=start.folder.resolve().name)
        self._run_id = run.info.run_id
        write_text(path, f"{self._run_id}\n")
        options = [Param(key, json.dumps(value)) for key, value in start.config.items()]
        self._client.log_batch(self._run_id, params=options)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Sends a row, without what is not finite, which MLflow's stores refuse."""
        row = [
            Metric(name, value, 0, step) for name, value in metrics.items() if math.isfinite(value)
        ]
        self._client.log_batch(self._run_id, metrics=row)

    def close(self) -> None:
        """Ends MLflow's run."""
        self._client.set_terminated(self._run_id)
