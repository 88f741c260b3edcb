"""Weights & Biases, if it is installed; its own environment variables (WANDB_PROJECT, WANDB_MODE,
WANDB_ENTITY, …) say where rows go."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import wandb

from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.logger import LoggerStart

_RUN_ID = "wandb_run_id.txt"


class WandbLogger:
    """A run of the same name as the run folder; a resumed training goes on in the same one.

    Args:
        start: Where the run begins.
    """

    def __init__(self, start: LoggerStart):
        path = start.folder / _RUN_ID
        known = path.read_text().strip() if path.is_file() else None
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "pyfastenv"),
            name=start.folder.resolve().name,
            dir=str(start.folder),
            config=start.config,
            id=known,
            resume=None if known is None else "allow",
        )
        write_text(path, f"{self._run.id}\n")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Sends a row; wandb drops those that a resumed run repeats."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Ends wandb's run."""
        self._run.finish()
