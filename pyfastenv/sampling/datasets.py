"""Minari's datasets as transitions, for algorithms that learn offline.

Minari is imported when one is read; integrations/minari.py writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyfastenv.sampling.buffers import Transitions
from pyfastenv.vector.vector_env import FastVectorEnv


class Recorded(NamedTuple):
    """Datasets have these episodes, one after another."""

    transitions: Transitions
    returns: Tensor  # (episodes,) float64
    lengths: Tensor  # (episodes,) int64 steps


def read_datasets(names: Sequence[str], envs: FastVectorEnv) -> Recorded:
    """Reads all episodes of datasets that were recorded in such environments.

    Args:
        names: Of each dataset Minari's id, or its folder.
        envs: Whose spaces the datasets are to have. A Dict's entries become one flat row, as theirs
            do.

    Raises:
        ImportError: There is no minari, or none of what it reads files with.
        ValueError: There is no such dataset; it has other observations or actions, numbers that
            are not finite, or no step.
    """
    episodes = [each for name in names for each in _episodes(name, envs)]
    transitions = Transitions(*map(torch.cat, zip(*episodes, strict=True)))
    returns = torch.stack([each.rewards.double().sum() for each in episodes])
    lengths = torch.tensor([len(each.rewards) for each in episodes])
    return Recorded(transitions, returns, lengths)


def open_dataset(name: str) -> Any:
    """Opens a dataset (``minari.MinariDataset``) by its id or its folder.

    Raises:
        ImportError, ValueError: As :func:`read_datasets`.
    """
    try:
        import minari
    except ModuleNotFoundError as error:
        raise ImportError(f"dataset: {error}: pip install 'minari[hdf5]'") from error
    folder = Path(name).expanduser()
    try:
        if folder.is_dir():
            return minari.MinariDataset(folder / "data" if (folder / "data").is_dir() else folder)
        return minari.load_dataset(name)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"dataset: {name} cannot be opened ({error}); `pyfastenv collect RUN ID` writes one, "
            "`minari download ID` loads a published one"
        ) from error


def _episodes(name: str, envs: FastVectorEnv) -> Iterator[Transitions]:
    dataset = open_dataset(name)
    for kind in ("observation", "action"):
        mine = getattr(envs, f"single_{kind}_space")
        its = getattr(dataset, f"{kind}_space")
        if not _alike(mine, its):
            raise ValueError(f"dataset: expected {kind}s {mine}, got {its} in {name}")
    number = -1
    for number, episode in enumerate(dataset.iterate_episodes()):
        yield _episode(episode, envs, f"{name}, episode {number}")
    if number < 0:
        raise ValueError(f"dataset: expected episodes, got none in {name}")


def _alike(mine: gymnasium.Space[Any], its: gymnasium.Space[Any]) -> bool:
    """Whether numbers of the second are those of the first; dtypes may differ."""
    if isinstance(mine, gymnasium.spaces.Dict):
        if not isinstance(its, gymnasium.spaces.Dict) or mine.keys() != its.keys():
            return False
        return all(_alike(space, its[name]) for name, space in mine.items())
    if not (isinstance(mine, gymnasium.spaces.Box) and isinstance(its, gymnasium.spaces.Box)):
        return mine == its
    return mine.shape == its.shape and all(
        np.allclose(getattr(mine, side), getattr(its, side)) for side in ("low", "high")
    )


def _episode(episode: Any, envs: FastVectorEnv, where: str) -> Transitions:
    """One episode's steps; the last one has ended it, or the recording."""
    obs = _flat(episode.observations, envs)
    actions = np.asarray(episode.actions, np.float32)
    actions = actions.reshape(len(actions), -1)
    rewards = np.asarray(episode.rewards, np.float64)
    if not len(obs) - 1 == len(actions) == len(rewards) > 0:
        raise ValueError(
            f"dataset: expected a step or more, and one observation more than actions and rewards, "
            f"got {len(obs)}, {len(actions)} and {len(rewards)} in {where}"
        )
    for kind, values in (("observations", obs), ("actions", actions), ("rewards", rewards)):
        if not np.isfinite(values).all():
            step = int(np.argwhere(~np.isfinite(values))[0][0])
            raise ValueError(f"dataset: {kind} are not finite at step {step} of {where}")
    ended = np.zeros(len(actions), np.bool_)
    ended[-1] = True
    terminated = np.asarray(episode.terminations, np.bool_)
    parts = (obs[:-1], actions, rewards, obs[1:], terminated, ended)
    return Transitions(*map(torch.from_numpy, parts))


def _flat(observations: Any, envs: FastVectorEnv) -> NDArray[np.float32]:
    """Observations ``(T + 1, obs_size)`` as the pool keeps them."""
    if not isinstance(observations, Mapping):
        obs = np.asarray(observations, np.float32)
        return obs.reshape(len(obs), -1)
    number = len(next(iter(observations.values())))
    flat = np.zeros((number, envs.obs_size), np.float32)
    entries: Iterable[tuple[str, NDArray[np.float32]]] = envs.obs_views.of(flat).items()  # type: ignore[union-attr]
    for name, view in entries:
        view[...] = observations[name]
    return flat
