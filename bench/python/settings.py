"""How long benchmarks measure, and what: settings that sections share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyfastenv.tools import contestants

Row = dict[str, Any]
Contestants = list[type[contestants.Contestant]]

STEPPING_IDS = ["HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "Hopper-v5", "InvertedPendulum-v5"]
ALL_PEERS_IDS = ["HalfCheetah-v5", "Ant-v5", "Humanoid-v5"]
TASK_IDS = [
    *STEPPING_IDS,
    "HumanoidStandup-v5",
    "InvertedDoublePendulum-v5",
    "Pusher-v5",
    "Reacher-v5",
    "Swimmer-v5",
    "Walker2d-v5",
]
MANY = 32_000


@dataclass(frozen=True)
class Settings:
    """How long and how often; ``quick`` shows that everything runs, not what it is worth."""

    quick: bool = False
    num_threads: int = 2

    @property
    def seconds(self) -> float:
        """One timing of ours [s]."""
        return 0.1 if self.quick else 0.5

    @property
    def repeats(self) -> int:
        """Rounds."""
        return 3 if self.quick else 5

    def of(self, num_envs: int, *, seconds: float | None = None) -> dict[str, Any]:
        """Arguments of :func:`contest`; few rounds where a single step takes long."""
        many = num_envs >= MANY
        return {
            "num_threads": self.num_threads,
            "seconds": self.seconds if seconds is None or self.quick else seconds,
            "repeats": min(self.repeats, 3) if many else self.repeats,
        }
