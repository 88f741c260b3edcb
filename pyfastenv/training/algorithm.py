"""Algorithm: what the loop drives and callbacks see."""

from __future__ import annotations

from typing import Any, Protocol

from pyfastenv.vector.vector_env import FastVectorEnv


class Algorithm(Protocol):
    """Interface of the algorithms that :func:`pyfastenv.training.loop.run` drives.

    Attributes:
        global_step: Environment steps so far, of all processes together.
        envs: The training environments.

    If there is an attribute ``acceleration`` (:class:`pyfastenv.training.accelerators.Choice`), the
    run records its name and prints its note. If there is an attribute ``learned``, the names of the
    parts of :meth:`state_dict` that were learned (networks, normalisers, optimisers), the best
    checkpoint has these alone, and ``load_learned(state)`` takes them (``train … --from RUN``).
    """

    global_step: int
    envs: FastVectorEnv

    def iterate(self) -> dict[str, float]:
        """Collects and learns once.

        Returns:
            Metrics: ``"train/return"`` and ``"train/length"`` if episodes ended, ``"loss/…"``,
            ``"time/…_s"`` and others.
        """
        ...

    def eval_policy(self) -> Any:
        """A deterministic policy for :func:`pyfastenv.rollout`."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that the training goes on from: networks, optimisers, normalisers, buffers,
        environment states, generators, ``global_step``. Floating-point tensors in it are finite
        unless the training has diverged."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`; NumPy arrays come as tensors, all tensors on the CPU."""
        ...
