"""A run that begins with what another one has learned: ``train … --from RUN``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.folder import load_checkpoint
from pyfastenv.sampling.obs_groups import groups_of, places
from pyfastenv.vector.vector_env import FastVectorEnv

_RUNNING = "running"  # returns of unfinished episodes


def warm_start(algorithm: Any, config: RunConfig, path: Path) -> str:
    """Gives a training the networks, normalisers and optimisers of another run.

    Networks of own tasks may see more than that run's did, or in another order: observations are
    found by their names, and what is new weighs nothing at first. Optimisers of other parameters
    begin anew. So do step counter, schedules, replay memory, environments and random streams.

    Args:
        algorithm: A new :class:`pyfastenv.training.algorithm.Algorithm`, with ``learned``.
        config: Its options, which may differ from the run's.
        path: A checkpoint file.

    Returns:
        A sentence for the log: the options that differ, and what begins anew.

    Raises:
        CheckpointError: It cannot be read.
        ValueError: Another algorithm, or networks that see other numbers or have other shapes; the
            message has the options that differ.
    """
    saved = load_checkpoint(path)
    if saved["algorithm"] not in (config.algorithm, *config.begins_with):
        raise ValueError(
            f"from_run: {path} was trained by {saved['algorithm']}, this is {config.algorithm}"
        )
    if not hasattr(algorithm, "learned"):
        raise ValueError(f"from_run: {config.algorithm} does not say which parts it has learned")
    both = (saved["config"], config.to_dict())
    for name, without, would in (("normalize_obs", False, "see"), ("activation", None, "compute")):
        was, now = (each.get(name, without) for each in both)
        if None not in (was, now) and was != now:
            raise ValueError(
                f"{name}: {path} was trained with {was}, this is {now}, so the networks would "
                f"{would} other numbers"
            )
    differences = "; ".join(config.differences(saved["config"])) or "none"
    mine, theirs = algorithm.state_dict(), saved["ranks"][0]["algorithm"]
    new = [name for name in algorithm.learned if name not in theirs]
    mine = {name: mine[name] for name in algorithm.learned}
    theirs = {name: theirs.get(name, part) for name, part in mine.items()}
    widened = ""
    try:
        if is_reordered(algorithm.envs, saved):
            raise _MisfitError("observations stand in another order")
        found = _fitted(mine, theirs, "", new)
    except _MisfitError as misfit:
        try:
            found = _fitted(mine, _widened(algorithm, theirs, saved), "", new)
        except _MisfitError:
            raise ValueError(
                f"from_run: {path} does not fit: {misfit}; options that differ: {differences}"
            ) from None
        widened = " Observations are found by name; new ones weigh nothing at first."
    algorithm.load_learned(found)
    anew = f" Begins anew: {', '.join(new)}." if new else ""
    return (
        f"Begins with what {path} had learned by step {saved['step']:,}. Options that differ: "
        f"{differences}.{anew}{widened}"
    )


def is_reordered(envs: FastVectorEnv, saved: Mapping[str, Any]) -> bool:
    """Whether an own task has any of a checkpoint's observations at another place."""
    here = places(envs).get("groups", {})
    there = (saved.get("observations") or {}).get("groups", {})
    return any(here.get(name, place) != place for name, place in there.items())


def _widened(algorithm: Any, state: Mapping[str, Any], saved: Mapping[str, Any]) -> Any:
    """The state, with room for what the networks had not seen, and no optimisers."""
    groups = groups_of(algorithm.envs)
    known = saved.get("observations")  # earlier versions did not write it
    if not groups or not known or not hasattr(algorithm, "widened"):
        raise _MisfitError
    whence = torch.full((algorithm.envs.obs_size,), -1)
    for name, (start, stop) in known["groups"].items():
        here = groups.get(name, slice(0, 0))
        if here.stop - here.start != stop - start:
            raise _MisfitError
        whence[here] = torch.arange(start, stop)
    columns = []
    for mine, (start, stop) in zip(algorithm.seen, known["seen"], strict=True):
        inside = (whence[mine] >= start) & (whence[mine] < stop)
        if inside.sum() < stop - start:
            raise _MisfitError  # something that it saw is not seen here
        columns.append(torch.where(inside, whence[mine] - start, -1))
    found = algorithm.widened(state, whence, *columns)
    return {name: None if "optimizer" in name else part for name, part in found.items()}


class _MisfitError(Exception):
    """A part of other shapes; names it."""


def _fitted(mine: Any, theirs: Any, where: str, new: list[str]) -> Any:
    """``theirs``, with ``mine`` for optimisers that do not fit, whose names go into ``new``.

    Of a learner's optimisers all begin anew if one does: accelerators want as many steps of each.
    """
    both = isinstance(mine, Mapping) and isinstance(theirs, Mapping)
    if not both or mine.keys() != theirs.keys():
        if _shapes(mine) != _shapes(theirs):
            raise _MisfitError(f"{where} is {_shapes(theirs)} there, {_shapes(mine)} here")
        return theirs
    anew = {key for key in mine if "optimizer" in key}
    if all(_shapes(mine[key]) == _shapes(theirs[key]) for key in anew):
        anew = set()
    fitted = {}
    for key, part in mine.items():
        place = f"{where}.{key}".removeprefix(".")
        if key in anew or key == _RUNNING:
            new.append(place)
            fitted[key] = part
        else:
            fitted[key] = _fitted(part, theirs[key], place, new)
    return fitted


def _shapes(state: Any) -> Any:
    """The shapes of a state's tensors, in its containers."""
    if isinstance(state, Tensor):
        return tuple(state.shape)
    if isinstance(state, Mapping):
        return {key: _shapes(part) for key, part in state.items()}
    return [_shapes(part) for part in state] if isinstance(state, list | tuple) else None
