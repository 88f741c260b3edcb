"""Small trainings of every algorithm, for tests of several of them."""

import atexit
import dataclasses
import inspect
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.registry import ALGORITHMS, algorithm_module

NAMES = tuple(ALGORITHMS)

# where an algorithm has such an option
_SHARED: dict[str, Any] = {
    "env_id": "Pendulum-v1", "num_envs": 2, "num_threads": 1, "torch_threads": 1,
    "total_steps": 200, "log_every": 1, "eval_every": 0, "eval_episodes": 2, "checkpoint_every": 0,
    "loggers": (), "quiet": True, "hidden_sizes": (16, 16), "learning_starts": 60,
    "batch_size": 16, "buffer_size": 150, "updates_per_step": 0.5,
}  # fmt: skip
_OWN: dict[str, dict[str, Any]] = {
    "ddpg": {
        "num_envs": 3, "num_steps": 10, "total_steps": 360, "buffer_size": 100,
        "updates_per_step": 1.0,
    },
    "distillation": {
        "num_envs": 4, "num_steps": 16, "num_threads": 2, "minibatch_size": 32,
        "total_steps": 4 * 16 * 6,
    },
    "dqn": {"env_id": "CartPole-v1", "num_steps": 5, "target_every": 3, "epsilon_steps": 120},
    "drqv2": {
        "env_id": "InvertedPendulum-v5", "channels": 4, "strides": (2, 2), "feature_size": 8,
        "total_steps": 160, "updates_per_step": 0.2,
        "shift": 1,
        "env_kwargs": {"pixels": {
            "height": 16, "width": 16, "frame_stack": 2,
            "camera": {"lookat": (0.0, 0.0, 0.3), "distance": 1.3, "azimuth": 90, "elevation": 0},
        }},
    },
    "flashsac": {
        "log_every": 10, "total_steps": 120, "policy_width": 8, "critic_width": 8, "num_bins": 21,
    },
    "mbpo": {
        "env_id": "InvertedPendulum-v5", "num_envs": 1, "log_every": 10, "total_steps": 160,
        "buffer_size": 1_000_000, "batch_size": 20, "real_ratio": 0.2, "updates_per_step": 1.0,
        "model_every": 25, "rollout_batch": 500, "rollout_schedule": (0, 0, 2, 2),
        "model_hidden_sizes": (16, 16), "ensemble_size": 3, "num_elites": 2,
        "flow_every": 40, "flow_updates": 2, "flow_batch_size": 32, "flow_rollout_states": 50,
        "model_agent_every": 25, "model_agent_updates": 2,
    },
    "ppo": {
        "env_id": "Hopper-v5", "num_envs": 4, "num_steps": 32, "num_threads": 2,
        "minibatch_size": 32, "update_epochs": 2, "total_steps": 4 * 32 * 6,
    },
    "recurrent_ppo": {
        "num_envs": 4, "num_steps": 16, "num_threads": 2, "rnn_hidden_dim": 8,
        "minibatch_size": 32, "update_epochs": 2, "total_steps": 4 * 16 * 6,
    },
    "sac": {"num_steps": 5},
    "td3": {"num_steps": 5, "updates_per_step": 1.0},
    "td3_bc": {
        "num_envs": 1, "learning_starts": 0, "buffer_size": 1, "updates_per_step": 1.0,
        "total_steps": 40,
    },
}  # fmt: skip


def options_of(name: str) -> set[str]:
    """The options that an algorithm has."""
    return {field.name for field in dataclasses.fields(algorithm_module(name).Config)}


def small(name: str, **options: Any) -> Any:
    """The configuration of a training of about a second, changed by ``options``."""
    known = options_of(name)
    if "teacher" in known:
        env_id = options.get("env_id", _SHARED["env_id"])
        options = {"teacher": teacher_of(env_id), **options}
    shared = {key: value for key, value in _SHARED.items() if key in known}
    given = {**shared, **_OWN.get(name, {}), **options}
    if "dataset" in known:  # tests/python/recorded.py
        given = {"dataset": (given["env_id"],), **given}
    return algorithm_module(name).Config(**given)


@cache
def teacher_of(env_id: str) -> Path:
    """The run folder of a PPO that has learned to balance; of other tasks, whatever it has."""
    folder = tempfile.TemporaryDirectory(prefix="teacher")
    atexit.register(folder.cleanup)
    balancing = {"num_envs": 8, "num_steps": 64, "minibatch_size": 64, "update_epochs": 5}
    options = {**balancing, "learning_rate": 3e-3, "total_steps": 8 * 64 * 20}
    run = Path(folder.name) / "run"
    given = options if env_id == "InvertedPendulum-v5" else {}
    algorithm_module("ppo").train(small("ppo", env_id=env_id, run_dir=run, **given))
    return run


def kind_of(name: str) -> Any:
    """The class that an algorithm's module trains: the only one that has no subclass there."""
    module = algorithm_module(name)
    kinds = [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == module.__name__ and hasattr(each, "iterate")
    ]
    bases = {base for each in kinds for base in each.__mro__[1:]}
    (kind,) = (each for each in kinds if each not in bases)
    return kind


def make(config: RunConfig) -> Any:
    """A new training of this configuration."""
    config.check()
    return kind_of(config.algorithm)(config)
