"""Algorithms and loggers by name: our own, and those of installed packages.

A package adds its own in its pyproject.toml; nothing of it is imported until the name is used:

    [project.entry-points."pyfastenv.algorithms"]
    random_search = "my_package.random_search"

    [project.entry-points."pyfastenv.loggers"]
    slack = "my_package.slack:SlackLogger"

An algorithm's module has ``Config`` (a :class:`pyfastenv.runs.config.RunConfig`),
``train(config)`` and ``load_policy(config, state)``, which makes a deterministic policy on the CPU
of what ``state_dict()`` gave. A logger is a :class:`pyfastenv.runs.logger.Logger`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any


class Registry(dict[str, str]):
    """Names, and where what they stand for is: ``"module"`` or ``"module:attribute"``.

    A name of ours cannot be taken by a package.

    Args:
        group: Of the entry points that packages add theirs to.
        kind: What the names are, for messages.
        **ours: Our own names.
    """

    def __init__(self, group: str, kind: str, **ours: str):
        super().__init__(ours)
        self._group = group
        self._kind = kind

    def names(self) -> list[str]:
        """All names, ours first."""
        return list(dict.fromkeys([*self, *entry_points(group=self._group).names]))

    def load(self, name: str) -> Any:
        """Imports the object that a name stands for.

        Raises:
            ValueError: Unknown name; the message has the known ones.
            ImportError: It cannot be imported.
        """
        if name in self:
            return EntryPoint(name, self[name], self._group).load()
        found = entry_points(group=self._group, name=name)
        if not found:
            raise ValueError(f"no {self._kind} {name!r}; there are {', '.join(self.names())}")
        point = next(iter(found))
        try:
            return point.load()
        except (ImportError, AttributeError) as error:
            raise ImportError(
                f"{self._kind} {name!r} is said to be at {point.value}, which cannot be imported: "
                f"{error}"
            ) from error


ALGORITHMS = Registry(
    "pyfastenv.algorithms",
    "algorithm",
    ddpg="pyfastenv.algorithms.ddpg.spec",
    distillation="pyfastenv.algorithms.distillation.spec",
    dqn="pyfastenv.algorithms.dqn.spec",
    drqv2="pyfastenv.algorithms.drqv2.spec",
    flashsac="pyfastenv.algorithms.flashsac.spec",
    mbpo="pyfastenv.algorithms.mbpo.spec",
    ppo="pyfastenv.algorithms.ppo.spec",
    recurrent_ppo="pyfastenv.algorithms.recurrent_ppo.spec",
    sac="pyfastenv.algorithms.sac.spec",
    td3="pyfastenv.algorithms.td3.spec",
    td3_bc="pyfastenv.algorithms.td3_bc.spec",
)

LOGGERS = Registry(
    "pyfastenv.loggers",
    "logger",
    csv="pyfastenv.runs.loggers.csv_file:CSVLogger",
    tensorboard="pyfastenv.runs.loggers.tensorboard:TensorBoardLogger",
    wandb="pyfastenv.runs.loggers.wandb:WandbLogger",
    mlflow="pyfastenv.runs.loggers.mlflow:MLflowLogger",
)


def algorithm_module(name: str) -> ModuleType:
    """The module of an algorithm, imported now.

    Raises:
        ValueError: Unknown name; the message has the known ones.
        ImportError: It cannot be imported, or is none.
    """
    module: ModuleType = ALGORITHMS.load(name)
    missing = [part for part in ("Config", "train", "load_policy") if not hasattr(module, part)]
    if missing:
        raise ImportError(f"algorithm {name!r}: {module!r} has no {', '.join(missing)}")
    return module


def load_logger(name: str) -> Any:
    """Imports the maker of a named logger (:class:`pyfastenv.runs.logger.Logger`).

    Raises:
        ValueError: Unknown name; the message has the known ones.
        ImportError: What it needs is not installed.
    """
    try:
        return LOGGERS.load(name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"logger {name!r} needs {error.name}: pip install {error.name}"
        ) from error
