"""Trained policies, back from a run folder or a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyfastenv.training import checkpoint
from pyfastenv.training.config import RunConfig
from pyfastenv.training.evaluation import Evaluation, evaluate, make_eval_envs
from pyfastenv.training.registry import algorithm_module
from pyfastenv.training.run_folder import read_config, run_of
from pyfastenv.vector.arguments import integer


@dataclass(frozen=True)
class SavedPolicy:
    """A policy of a checkpoint, and what it was trained with.

    Attributes:
        path: The checkpoint file.
        step: Environment steps it was trained for.
        config: The run's options, but for the device.
        env_kwargs: The environments' arguments.
        policy: What :func:`pyfastenv.rollout` takes; deterministic, on the CPU.
    """

    path: Path
    step: int
    config: RunConfig
    env_kwargs: dict[str, Any]
    policy: Any


def resumed_config(run: Path | str, **options: Any) -> RunConfig:
    """The options with which a run goes on.

    Args:
        run: The run folder, or one of its checkpoint files.
        options: Those that change; None: as it was.

    Raises:
        FileNotFoundError: This is no run folder.
        ValueError: Its algorithm is unknown, or has no such option.
    """
    run = Path(run)
    folder = run if run.is_dir() else run_of(run)
    if folder is None:
        raise FileNotFoundError(f"{run}: neither a run folder nor a checkpoint in one")
    name, values = read_config(folder)
    config: RunConfig = algorithm_module(name).Config.from_dict(values)
    changes = {option: value for option, value in options.items() if value is not None}
    for option in changes:
        if not hasattr(config, option):
            raise ValueError(f"{option}: {name} has no such option")
    return replace(config, resume=run, run_dir=None, **changes)


def load_policy(run: Path | str) -> SavedPolicy:
    """The newest policy of a run folder, or the one of a checkpoint file.

    Raises:
        CheckpointError: There is none, or it cannot be read.
        ValueError: Its algorithm or an option is unknown.
    """
    path = checkpoint.resolve(Path(run))
    saved = checkpoint.load(path)
    module = algorithm_module(saved.get("algorithm", ""))
    config = replace(module.Config.from_dict(saved["config"]), device="cpu")
    policy = module.load_policy(config, saved["ranks"][0]["algorithm"])
    return SavedPolicy(path, saved["step"], config, saved["env_kwargs"], policy)


def evaluate_run(run: Path | str, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Evaluates the policy of a run folder or checkpoint file in new environments."""
    integer("episodes", episodes, minimum=1)
    integer("seed", seed, minimum=0, below=2**63)
    saved = load_policy(run)
    envs = make_eval_envs(saved.config.env_id, saved.env_kwargs, episodes)
    try:
        return evaluate(envs, saved.policy, episodes, seed)
    finally:
        envs.close()
