"""Observations so far from all before that physics must have blown up: told, and held back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.training import distributed
from pyfastenv.vector.obs_views import holding

# Random actions in 16 environments, 40,960 steps: once 10,000 samples had been seen, the furthest
# was 167 deviations away in Humanoid-v5 (contact forces), 77 in ManipulatorBringBall-v1, 60 in
# FetchPush-v4, 36 in HumanoidStandup-v5, 31 in QuadrupedRun-v1, 13 to 17 in Ant-v5, G1Walk-v0 and
# Go1JoystickFlatTerrain-v1. Before, 753 in FetchPush-v4: a box's height deviates by 0.00055.
_FAR = 1000.0  # standard deviations
_SEEN = 10_000  # samples
_STILL = 1e-3  # standard deviation
# Median of a batch, in deviations: 0.47 to 0.85 of joints' velocities in Humanoid-v5, Ant-v5 and
# T1Walk-v0, next to 0 where a column hardly ever moves: as PPO learned Humanoid-v5, a force on the
# torso, nearly always 0, was 2,146 deviations away.
_USUAL = 0.05
_COUNTED = 10.0  # one sample in 1,000, always far, then adds 5 % while samples grow tenfold


class FarObservations:
    """Moments of batches in which samples beyond 1,000 standard deviations count as 10.

    One environment of several cannot spoil a column for the rest of a training then. All is taken
    as it is where most of a batch is so far, in the first 10,000 samples, and in columns that rest:
    a deviation below 0.001, or half of a batch within 0.05 deviations (forces of rare contacts).

    Args:
        groups: Names of columns, for the warnings.
    """

    def __init__(self, groups: Mapping[str, slice]):
        self._groups = groups
        self._told: set[int] = set()

    def moments_of(
        self, obs: Tensor, before: RunningMoments, first_env: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Number, mean and ``m2`` of a batch, as :meth:`RunningMoments.merge` takes them.

        Args:
            obs: ``(T, N, size)``.
            before: Moments of all batches before.
            first_env: The number of the first of the N environments, for the warnings.
        """
        count, mean, m2 = before.of(obs)
        n, seen = float(count), float(before.count)
        if seen < _SEEN:
            return count, mean, m2
        var = before.m2.numpy() / seen
        # about the mean before: the furthest sample's square and all others'; NumPy, for speed
        squares = m2.numpy() + n * np.square(mean.numpy() - before.mean.numpy())
        suspects = squares > var * max(_FAR**2, 2.0 * n)  # among a million, 1,000 is no harm
        if not suspects.any():
            return count, mean, m2
        found = []
        for column in np.flatnonzero(suspects & (var > _STILL**2)).tolist():
            values = obs[..., column].to(mean)  # (T, N)
            base, deviation = float(before.mean[column]), float(np.sqrt(var[column]))
            away = (values - base) / deviation
            far = away.abs() > _FAR
            if not (far.any() and _USUAL < away.abs().median() <= _FAR):
                continue
            at = divmod(int(away.abs().argmax()), away.shape[1])
            found.append((float(away[at].abs()), column, first_env + at[1], float(values[at])))
            away = torch.where(far, _COUNTED * away.sign(), away)
            mean[column] = base + deviation * away.mean()
            m2[column] = deviation**2 * (away - away.mean()).square().sum()
        self._tell([each for each in found if each[1] not in self._told])
        return count, mean, m2

    def _tell(self, new: list[tuple[float, int, int, float]]) -> None:
        """Warns of the furthest of (deviations, column, environment, value)."""
        if not new:
            return
        self._told.update(each[1] for each in new)
        far, column, env, value = max(new)
        name = "".join(f" ({name}[{at}])" for name, at in holding(self._groups, column))
        process = f" of process {distributed.rank()}" if distributed.world_size() > 1 else ""
        others = f", one of {len(new)} such columns," if len(new) > 1 else ""
        warnings.warn(
            f"environment {env}{process}: observation {column}{name}{others} is {value:.4g}, "
            f"{far:,.0f} standard deviations from the mean so far: has physics blown up? End such "
            "episodes by a termination or take a smaller timestep; the moments that normalise "
            f"observations count it as {_COUNTED:.0f} deviations (obs_clip only bounds what "
            "networks see)",
            RuntimeWarning,
            stacklevel=2,
        )
