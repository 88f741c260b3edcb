"""The errors of training that a user must act on; each message is one sentence that says how."""

from __future__ import annotations


class TrainingError(RuntimeError):
    """The kind of all of these."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written or read; names the file and the last good one."""


class DivergedError(TrainingError):
    """A loss or the state became NaN or infinite; names it and the last good checkpoint."""


class FolderInUseError(TrainingError):
    """Another process trains in the run folder; names it."""


class NoSuchPolicyError(TrainingError, IndexError):
    """A run has fewer policies, one for each of its seeds, than was asked for."""


class ProcessLostError(TrainingError):
    """Another process of a training in several is gone; says how such a training goes on."""


class RunFolderError(TrainingError):
    """The run folder cannot be written to; says why and how to go on."""


class VideoError(TrainingError):
    """A picture cannot be drawn, or there is nothing to write films with."""
