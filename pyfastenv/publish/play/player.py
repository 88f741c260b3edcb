"""The player: a policy steps environments, one of which is shown. No browser, no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from pyfastenv.publish.play.mirror import Mirror
from pyfastenv.publish.play.pace import Pace
from pyfastenv.publish.play.pushes import pushed
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.vector.vector_env import FastVectorEnv

if TYPE_CHECKING:
    from pyfastenv.tasks.pool.vector_env import TaskVectorEnv

_ENDING = "terminated_"


@dataclass(frozen=True)
class Dial:
    """A command that can be held.

    Attributes:
        name: The command's.
        elements: What each of its numbers is called.
        low: ``(size,)``, the least of each of its numbers.
        high: ``(size,)``, the greatest.
        drawn: Whether environments draw it while nobody holds it.
    """

    name: str
    elements: tuple[str, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    drawn: bool


@dataclass(frozen=True)
class Ended:
    """An episode that is over: its return, its steps, and why it ended."""

    total: float
    length: int
    why: str


class Player:
    """Steps environments by a policy; what is asked for happens to the one that is shown.

    One thread calls it at a time.

    Args:
        envs: Autoreset mode SameStep; they are reset, and stay the caller's to close.
        act: Gives actions ``(num_envs, …)`` for observations, both as the environments have them.
        seed: As of an evaluation: environment 0 begins with its first episode.
        reset: Hears in which environments episodes begin anew.

    Attributes:
        shown: Which environment.
        paused: Whether time stands still.
        pace: How fast it passes otherwise.
        steps: How many steps all environments have taken.
        mirror: MuJoCo's data of what is shown (:meth:`reflect`); None of classic control.
    """

    def __init__(
        self,
        envs: FastVectorEnv,
        act: Callable[[Any], NDArray[Any]],
        seed: int = 0,
        reset: Callable[[ArrayLike], None] | None = None,
    ):
        if envs.autoreset_mode != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"envs: expected autoreset_mode SameStep, got {envs.autoreset_mode.value}"
            )
        self.envs, self._act = envs, act
        self._began = reset or (lambda env_ids: None)
        self._own = cast("TaskVectorEnv", envs)  # where there are commands
        self.shown, self.paused, self.steps = 0, False, 0
        self.pace = Pace(1.0 / envs._core.render_fps)
        self.mirror = Mirror(envs) if envs._core.model_path else None
        self._returns, self._rewards = np.zeros(envs.num_envs), np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, np.int64)
        self._ended: list[Ended | None] = [None] * envs.num_envs
        self._held: set[tuple[int, str]] = set()
        seeds = env_seeds(seed, envs.num_envs, Stream.EVALUATION_ENVS)
        self._obs, self._infos = envs.reset(seed=seeds)

    # ---- time --------------------------------------------------------------------------------

    def advance(self, now: float) -> int:
        """Takes the steps that are due, unless it is paused; returns how many."""
        steps = 0 if self.paused else self.pace.due(now)
        for _ in range(steps):
            self.step()
        return steps

    def step(self) -> None:
        """Steps all environments once."""
        results = self.envs.step(self._act(self._obs))
        self._obs, self._rewards, terminations, truncations, infos = results
        self._infos = infos
        self.steps += 1
        self._returns += self._rewards
        self._lengths += 1
        ended = np.flatnonzero(terminations | truncations)
        self._began(ended)
        for i in ended.tolist():
            why = _why(infos, i) if terminations[i] else "time is up"
            self._ended[i] = Ended(float(self._returns[i]), int(self._lengths[i]), why)
            self._returns[i], self._lengths[i] = 0.0, 0

    def pause(self, paused: bool) -> None:
        """Lets time stand still, or go on."""
        self.paused = paused
        self.pace.restart()

    # ---- what is shown -----------------------------------------------------------------------

    def select(self, env_id: int) -> None:
        """Shows another environment.

        Raises:
            IndexError: There is none of this number.
        """
        if not 0 <= env_id < self.envs.num_envs:
            raise IndexError(f"env_id: expected 0 to {self.envs.num_envs - 1}, got {env_id}")
        self.shown = env_id

    def reset(self) -> None:
        """Begins a new episode of the one that is shown."""
        mask = np.arange(self.envs.num_envs) == self.shown
        self._obs, self._infos = self.envs.reset(options={"reset_mask": mask})
        self._began([self.shown])
        self._returns[mask], self._rewards[mask], self._lengths[mask] = 0.0, 0.0, 0

    def push(self, velocity: ArrayLike) -> None:
        """Gives the robot a blow that adds so much velocity, ``(2,)`` [m/s]: ahead, to the left.

        Raises:
            ValueError: It is classic control, which has no bodies.
        """
        mirror = self.reflect()
        mirror.set_velocity(self.shown, pushed(mirror.data, velocity))

    def reflect(self) -> Mirror:
        """The mirror, with the state that is shown.

        Raises:
            ValueError: It is classic control, which has no physics of MuJoCo.
        """
        if self.mirror is None:
            raise ValueError(f"{self.envs.env_id} has no bodies of MuJoCo's")
        self.mirror.load(self.shown)
        return self.mirror

    # ---- commands ----------------------------------------------------------------------------

    @property
    def dials(self) -> list[Dial]:
        """The commands that the task has."""
        ranges = getattr(self.envs, "command_ranges", {})
        names = self._own.command_elements if ranges else {}
        return [
            Dial(name, names[name], low, high, name in self._own.task.drawn_commands())
            for name, (low, high) in ranges.items()
        ]

    def command(self, name: str) -> NDArray[np.float64]:
        """The values in force, ``(size,)``, drawn or held."""
        values: NDArray[np.float64] = np.atleast_1d(self._own.get_command(name)[self.shown])
        return values

    def holds(self, name: str) -> bool:
        """Whether the command is held."""
        return (self.shown, name) in self._held

    def hold(self, name: str, values: ArrayLike | None) -> None:
        """Holds a command at values ``(size,)``; None lets environments draw it again."""
        self._own.set_command(name, values, [self.shown])
        (self._held.discard if values is None else self._held.add)((self.shown, name))

    # ---- what it says ------------------------------------------------------------------------

    @property
    def reward(self) -> float:
        """The latest step's."""
        return float(self._rewards[self.shown])

    @property
    def episode(self) -> tuple[float, int]:
        """The return and the steps of the episode so far."""
        return float(self._returns[self.shown]), int(self._lengths[self.shown])

    @property
    def ended(self) -> Ended | None:
        """The episode before, if there was one."""
        return self._ended[self.shown]

    def numbers(self) -> dict[str, float]:
        """The latest infos that are numbers, by name; at an episode's end, those of its end."""
        return _numbers(self._infos, self.shown)


def _numbers(infos: dict[str, Any], i: int) -> dict[str, float]:
    """One environment's infos that are numbers; of an episode's end where it has ended."""
    if "final_info" in infos and infos["_final_info"][i]:
        infos = infos["final_info"]
    return {
        name: float(values[i])
        for name, values in infos.items()
        if f"_{name}" in infos
        and infos[f"_{name}"][i]
        and np.ndim(values) == 1
        and np.asarray(values).dtype.kind in "biuf"
    }


def _why(infos: dict[str, Any], i: int) -> str:
    """The names of the conditions that have ended an episode."""
    numbers = _numbers(infos, i)
    names = [
        n.removeprefix(_ENDING) for n, value in numbers.items() if n.startswith(_ENDING) and value
    ]
    return ", ".join(names) or ("diverged" if numbers.get("diverged") else "terminated")
