"""The studies of docs/results (studies.toml): learn.py trains them, results_page.py reports them.

Each study counts its seeds from a number of its own, so that neither two seeds of a robot nor two
algorithms share an environment's random stream (pyfastenv/runs/seeds.py).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.options import marked
from pyfastenv.runs.registry import algorithm_module

MUJOCO = (
    "HalfCheetah-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "Ant-v5",
    "Humanoid-v5",
    "Swimmer-v5",
    "Reacher-v5",
    "Pusher-v5",
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
    "HumanoidStandup-v5",
)
FIVE = MUJOCO[:5]


@dataclass(frozen=True)
class Case:
    """One robot, with all its seeds.

    Attributes:
        name: What is trained, as tables call it.
        env_id: The robot.
        seeds: Their number.
        options: Beside those of the study.
        together: How many of the seeds stand side by side in a process; 1: each has its own.
        algorithm: Where it is another than the study's.
        minutes: Of a processor that it is to have, in a study of minutes.
    """

    name: str
    env_id: str
    seeds: int
    options: dict[str, Any] = field(default_factory=dict)
    together: int = 1
    algorithm: str = ""
    minutes: float = 0.0


@dataclass(frozen=True)
class Study:
    """Trainings of one algorithm, and where their numbers are.

    Attributes:
        name: ``docs/results/<name>.json``.
        algorithm: Of all cases that have no other.
        title: Of the page.
        first_seed: The cases' seeds count from here.
        options: Of all cases, beside their presets.
        cases: What is trained, the most wanted first.
        note: For the page.
        minutes: Of a processor, after which returns are compared.
        targets: Returns wanted after each of :attr:`minutes`, by environment.
    """

    name: str
    algorithm: str
    title: str
    first_seed: int
    options: dict[str, Any]
    cases: tuple[Case, ...]
    note: str = ""
    minutes: tuple[float, ...] = ()
    targets: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def trainings(self) -> Iterator[Training]:
        """Seed by seed, so that each case soon has one."""
        most = max(case.seeds for case in self.cases)
        for first in range(most):
            for case in self.cases:
                if first < case.seeds and first % case.together == 0:
                    count = min(case.together, case.seeds - first)
                    yield Training(self, case, self.first_seed + first, count)


@dataclass(frozen=True)
class Training:
    """A process's: seeds ``seed`` to ``seed + count - 1`` of a case."""

    study: Study
    case: Case
    seed: int
    count: int

    @property
    def seeds(self) -> range:
        """All of them."""
        return range(self.seed, self.seed + self.count)

    @property
    def algorithm(self) -> str:
        """The case's or the study's."""
        return self.case.algorithm or self.study.algorithm

    def options(self) -> dict[str, Any]:
        """The options of its Config."""
        side_by_side = {"num_seeds": self.count} if _has_seeds(self.algorithm) else {}
        return {**self.study.options, **self.case.options, "seed": self.seed, **side_by_side}

    def config(self) -> RunConfig:
        """All options, the robot's preset among them."""
        config_class: type[RunConfig] = algorithm_module(self.algorithm).Config
        return config_class.preset(self.case.env_id, **self.options())

    def command(self) -> str:
        """The command line that trains it, evaluated and saved as by default."""
        config_class = algorithm_module(self.algorithm).Config
        left_out = marked(config_class, "no_setting") | {"eval_episodes"}
        words = [f"pyfastenv train {self.algorithm} --env-id {self.case.env_id}"]
        for name, value in self.options().items():
            option = name.replace("_", "-")
            if name in left_out:
                continue
            if name == "env_kwargs":
                words += [f"--env.{key} {each}" for key, each in value.items()]
            elif isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
            else:
                many = value if isinstance(value, tuple) else (value,)
                words.append(" ".join([f"--{option}", *map(str, many)]))
        return " ".join(words)


def _has_seeds(algorithm: str) -> bool:
    """Whether it trains several side by side."""
    return hasattr(algorithm_module(algorithm).Config, "num_seeds")


def _read() -> Iterator[Study]:
    """The studies of studies.toml."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    for study in data["study"]:
        cases = tuple(
            Case(
                case["name"],
                env_id,
                case["seeds"],
                _options(case, data["sets"]),
                together=case.get("together", 1),
                algorithm=case.get("algorithm", ""),
                minutes=case.get("minutes", 0.0),
            )
            for case in study.pop("case")
            for env_id in case["env_ids"]
        )
        yield Study(**study, cases=cases)


def _options(case: dict[str, Any], sets: dict[str, Any]) -> dict[str, Any]:
    parts = [*(sets[name] for name in case.get("use", ())), case.get("options", {})]
    options = {key: value for part in parts for key, value in part.items()}
    options |= dict.fromkeys(case.get("unset", ()))
    return {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}


STUDIES = {study.name: study for study in _read()}


def changed(
    study: Study,
    *,
    env_ids: list[str] | None = None,
    names: list[str] | None = None,
    seeds: int | None = None,
    together: int | None = None,
    options: dict[str, Any] | None = None,
) -> Study:
    """A study with a part of its robots or seeds, or with other options.

    Raises:
        ValueError: It has no such robot or name, an option is its own, or PPO's seeds cannot stand
            side by side.
    """
    for name in options or {}:
        if name in ("env_id", "seed", "num_seeds", "run_dir", "resume", "auto_resume"):
            raise ValueError(f"{name}: the study's to set")
    if together not in (None, 1) and not _has_seeds(study.algorithm):
        raise ValueError("--together: PPO trains one seed after another")
    known = [case.env_id for case in study.cases]
    for env_id in env_ids or ():
        if env_id not in known:
            raise ValueError(f"{study.name} has no {env_id}; it has {', '.join(known)}")
    for name in names or ():
        if all(case.name != name for case in study.cases):
            known = list(dict.fromkeys(case.name for case in study.cases))
            raise ValueError(f"{study.name} has no {name!r}; it has {', '.join(map(repr, known))}")
    cases = [
        case
        for case in study.cases
        if case.env_id in (env_ids or [case.env_id]) and case.name in (names or [case.name])
    ]
    return replace(
        study,
        cases=tuple(
            replace(
                case,
                seeds=case.seeds if seeds is None else seeds,
                together=case.together if together is None else together,
                options={**case.options, **(options or {})},
            )
            for case in cases
        ),
    )
