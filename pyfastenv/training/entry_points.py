"""``train`` and ``load_policy`` of an algorithm, as its module offers them. Knows no algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.runs.config import RunConfig
from pyfastenv.training.algorithm import Algorithm
from pyfastenv.training.callbacks import Callback, StepFunction
from pyfastenv.training.loop import RunResult, run

C = TypeVar("C", bound=RunConfig)
C_contra = TypeVar("C_contra", bound=RunConfig, contravariant=True)


class Train(Protocol[C_contra]):
    """Trains an algorithm."""

    def __call__(
        self, config: C_contra, callbacks: Sequence[Callback | StepFunction] = ()
    ) -> RunResult: ...


class LoadPolicy(Protocol[C_contra]):
    """Makes the policies of a checkpoint."""

    def __call__(
        self, config: C_contra, state: Mapping[str, Any]
    ) -> PolicySpec | list[TorchPolicy]: ...


def entry_points(
    algorithm: Callable[[], Callable[[C], Algorithm]],
) -> tuple[Train[C], LoadPolicy[C]]:
    """The functions ``train`` and ``load_policy`` of a module: ``entry_points(lambda: PPO)``.

    Args:
        algorithm: Returns the class. It is asked in every call: a class that replaces the module's
            is the one that trains.
    """

    def train(config: C, callbacks: Sequence[Callback | StepFunction] = ()) -> RunResult:
        """Trains {name}, from the beginning or from ``config.resume`` on.

        Args:
            config: The options, a ``Config`` of this module.
            callbacks: These are told about the run (:mod:`pyfastenv.training.callbacks`).

        Raises:
            See :func:`pyfastenv.training.loop.run`; ValueError too for an environment that the
            algorithm cannot learn, as one of discrete actions where it needs continuous ones.
        """
        return run(algorithm(), config, callbacks)

    def load_policy(config: C, state: Mapping[str, Any]) -> PolicySpec | list[TorchPolicy]:
        """The deterministic policies of a checkpoint of {name}, one per seed.

        They are the same wherever it was trained, and whatever its environments have become since.

        Args:
            config: The options, a ``Config`` of this module.
            state: Its ``state_dict``, or the parts of it that were learned, and ``global_step``.
        """
        restored: Any = algorithm()(config)
        restored.load_learned(state)
        restored.global_step = state.get("global_step", 0)  # exploration may fall by steps
        restored.envs.close()
        policies: PolicySpec | list[TorchPolicy] = restored.eval_policy()
        return policies

    name = algorithm().__name__
    for function in (train, load_policy):
        assert function.__doc__ is not None
        function.__doc__ = function.__doc__.replace("{name}", name)
        function.__annotations__["config"] = "Config"
        function.__module__, function.__qualname__ = algorithm.__module__, function.__name__
    return train, load_policy
