"""What is trained for docs/results: data. ``learn.py`` trains it, ``results_page.py`` tells of it.

Each study counts its seeds from a number of its own, so that neither two seeds of a robot nor two
algorithms share an environment's random stream (pyfastenv/training/seeds.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pyfastenv.training.config import RunConfig
from pyfastenv.training.registry import algorithm_module

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
    """

    name: str
    env_id: str
    seeds: int
    options: dict[str, Any] = field(default_factory=dict)
    together: int = 1


@dataclass(frozen=True)
class Study:
    """Trainings of one algorithm, and where their numbers are.

    Attributes:
        name: ``docs/results/<name>.json``.
        algorithm: Of all cases.
        title: Of the page.
        first_seed: The cases' seeds count from here.
        options: Of all cases, beside their presets.
        cases: What is trained, the most wanted first.
        note: For the page.
    """

    name: str
    algorithm: str
    title: str
    first_seed: int
    options: dict[str, Any]
    cases: tuple[Case, ...]
    note: str = ""

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

    def options(self) -> dict[str, Any]:
        """Of its Config."""
        side_by_side = {} if self.study.algorithm == "ppo" else {"num_seeds": self.count}
        return {**self.study.options, **self.case.options, "seed": self.seed, **side_by_side}

    def config(self) -> RunConfig:
        """All options, the robot's preset among them."""
        config_class: type[RunConfig] = algorithm_module(self.study.algorithm).Config
        return config_class.preset(self.case.env_id, **self.options())


_SMALL_FLASHSAC = {
    "critic_width": 128,
    "policy_width": 64,
    "batch_size": 256,
    "num_envs": 8,
    "log_every": 400,
}
_LONG = {"checkpoint_every": 20_000, "keep_checkpoints": 1}
_ONE_CORE = {"torch_threads": 1, "num_threads": 1}
# as the preset of HalfCheetah: Tianshou's program but for eight environments, which cost less than
# one
_TIANSHOU = {
    "total_steps": 1_000_000,
    "num_envs": 8,
    "updates_per_step": 1.0,
    "batch_size": 256,
    "learning_rate": 1e-3,
    "learning_starts": 10_000,
    "temperature": 0.2,
    "gamma": 0.99,
    "anneal_to": 1.0,
}
_NO_FORCES = {"env_kwargs": {"include_cfrc_ext_in_observation": False}}
_HALF = {
    "total_steps": 1_000_000,
    "num_envs": 8,
    "updates_per_step": 0.5,
    "learning_starts": 5_000,
}
_HALF_FALLING = {**_HALF, "temperature": None, "anneal_to": 0.05}
# 250,000 gradient steps
_EIGHT = {
    "total_steps": 1_000_000,
    "num_envs": 8,
    "batch_size": 256,
    "updates_per_step": 0.25,
    "learning_rate": 1e-3,
    "learning_starts": 5_000,
    "temperature": None,
    "anneal_to": 0.05,
    "gamma": 0.99,
}
# a million, which take little longer
_SMALL_BATCHES = {**_EIGHT, "batch_size": 64, "updates_per_step": 1.0}
_SIXTEEN = {
    "total_steps": 2_000_000,
    "num_envs": 16,
    "batch_size": 256,
    "updates_per_step": 0.125,
    "learning_starts": 5_000,
    "eval_every": 100_000,
    "learning_rate": 1e-3,
    "temperature": None,
    "anneal_to": 1.0,
    "gamma": 0.99,
}
_ANNEALED = {**_SIXTEEN, "anneal_to": 0.05}

STUDIES = {
    study.name: study
    for study in (
        Study(
            "ppo",
            "ppo",
            "PPO after a million steps",
            1,
            {"total_steps": 1_000_000, "eval_every": 50_000, "checkpoint_every": 250_000},
            (
                *(Case("PPO", env_id, 5) for env_id in MUJOCO),
                Case(
                    "PPO, no contact forces",
                    "Ant-v5",
                    5,
                    {"obs_clip": 10.0, **_NO_FORCES},
                ),
            ),
            "Others' Ant is v2 or v3, whose 84 observed contact forces were always zero with "
            "mujoco-py after 2.0 (says gymnasium's page on Ant); ours without them: `--env."
            "include_cfrc_ext_in_observation False`.",
        ),
        Study(
            "ppo_long",
            "ppo",
            "PPO after ten million steps",
            11,
            {
                "total_steps": 10_000_000,
                "eval_every": 250_000,
                "checkpoint_every": 500_000,
                "num_envs": 64,
                "num_steps": 128,
                "minibatch_size": 512,
                "learning_rate": 3e-4,
                **_ONE_CORE,
            },
            (
                *(Case("PPO to 10M", env_id, 3) for env_id in FIVE[:4]),
                Case(
                    "PPO to 10M",
                    "Humanoid-v5",
                    3,
                    {"log_std_init": -1.0, "hidden_sizes": (256, 256)},
                ),
                Case(
                    "PPO to 10M, as to 1M",
                    "HalfCheetah-v5",
                    1,
                    {"num_envs": 16, "minibatch_size": 128, "learning_rate": 1e-3},
                ),
            ),
            "Ten times the steps want larger batches and smaller steps: rollouts of 8,192 in "
            "minibatches of 512, a learning rate of 3e-4 (with the settings of a million steps "
            "HalfCheetah got worse). Others' figures are after one million.",
        ),
        Study(
            "sac",
            "sac",
            "What SAC learns",
            21,
            # a process a core: two with a seed each make more gradient steps than one with three
            {"amp": True, "eval_every": 20_000, **_LONG, **_ONE_CORE},
            (
                *(Case("SAC", env_id, 3, {"total_steps": 1_000_000}) for env_id in FIVE),
                *(
                    Case(
                        "SAC, no contact forces",
                        env_id,
                        3,
                        {"total_steps": 1_000_000, **_NO_FORCES},
                    )
                    for env_id in ("Ant-v5", "Humanoid-v5")
                ),
                *(
                    Case("SAC, Tianshou's settings", env_id, 3, _TIANSHOU)
                    for env_id in ("Walker2d-v5", "Hopper-v5", "Ant-v5")
                ),
                Case(
                    "SAC, Tianshou's settings, no contact forces",
                    "Ant-v5",
                    3,
                    {**_TIANSHOU, **_NO_FORCES},
                ),
                Case(
                    "SAC, one environment",
                    "HalfCheetah-v5",
                    1,
                    {"total_steps": 1_000_000, "num_envs": 1, "learning_starts": 5_000},
                ),
                Case(
                    "SAC, learning rate 3e-4",
                    "HalfCheetah-v5",
                    1,
                    {
                        "total_steps": 1_000_000,
                        "num_envs": 1,
                        "learning_starts": 5_000,
                        "updates_per_step": 1.0,
                        "learning_rate": 3e-4,
                        "anneal_to": 1.0,
                        "temperature": None,
                    },
                ),
                Case("SAC, half the gradient steps", "HalfCheetah-v5", 1, _HALF),
                *(
                    Case("SAC, half the gradient steps, falling rate", env_id, 1, _HALF_FALLING)
                    for env_id in ("HalfCheetah-v5", "Humanoid-v5")
                ),
                Case(
                    "SAC, half the gradient steps, falling rate, no contact forces",
                    "Humanoid-v5",
                    1,
                    {**_HALF_FALLING, **_NO_FORCES},
                ),
                Case(
                    "SAC, all gradient steps",
                    "Ant-v5",
                    1,
                    {
                        "total_steps": 1_000_000,
                        "num_envs": 1,
                        "updates_per_step": 1.0,
                        "learning_starts": 5_000,
                        "temperature": 0.2,
                        "anneal_to": 1.0,
                    },
                ),
                Case(
                    "SAC, minibatches of 256",
                    "Hopper-v5",
                    1,
                    {"total_steps": 1_000_000, "batch_size": 256},
                ),
                Case(
                    "SAC, discount 0.99",
                    "Hopper-v5",
                    1,
                    {"total_steps": 1_000_000, "gamma": 0.99},
                ),
                Case("SAC", "Pendulum-v1", 3, {"eval_every": 1_000}),
            ),
            "Others' Walker2d is v3, whose right foot slides (friction 0.9; v5's has 1.9).",
        ),
        Study(
            "sac_fast",
            "sac",
            "What SAC learns in minutes",
            51,
            {
                "amp": True,
                "log_every": 400,
                "eval_every": 50_000,
                "checkpoint_every": 50_000,
                "keep_checkpoints": 1,
                **_ONE_CORE,
            },
            (
                *(
                    Case("SAC, 16 environments, annealed", env_id, 3, _ANNEALED)
                    for env_id in ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5")
                ),
                Case("SAC, minibatches of 64", "Ant-v5", 1, _SMALL_BATCHES),
                *(
                    Case("SAC, 8 environments", env_id, 1, _EIGHT)
                    for env_id in ("Hopper-v5", "Walker2d-v5")
                ),
                *(
                    Case("SAC, 16 environments", env_id, 1, _SIXTEEN)
                    for env_id in ("HalfCheetah-v5", "Walker2d-v5", "Ant-v5")
                ),
                Case(
                    "SAC, 16 environments, 3e-4",
                    "HalfCheetah-v5",
                    1,
                    {**_SIXTEEN, "learning_rate": 3e-4},
                ),
                Case(
                    "SAC, 16 environments, 1e-3",
                    "Hopper-v5",
                    1,
                    _SIXTEEN,
                ),
            ),
            "A quarter of a million gradient steps on 256 transitions, with a learning rate of "
            "1e-3: for every four steps of eight environments, with a rate that falls to a "
            "twentieth along a cosine; for every eight of sixteen, where it falls if it says so. "
            "Minibatches of 64: four times the gradient steps, which take little longer; as the "
            "presets of Hopper and Walker2d ([SAC](sac.md)).",
        ),
        Study(
            "flashsac",
            "flashsac",
            "What FlashSAC learns",
            31,
            # the learning rate falls as in the authors' runs of a million steps
            {
                "amp": True,
                "eval_every": 10_000,
                "anneal_steps": 1_000_000,
                **_LONG,
                **_ONE_CORE,
            },
            (
                *(
                    Case(name, env_id, seeds, {"total_steps": 300_000, **sizes})
                    for name, seeds, sizes in (
                        ("small FlashSAC, minibatches of 256", 3, _SMALL_FLASHSAC),
                        ("small FlashSAC", 1, {**_SMALL_FLASHSAC, "batch_size": 64}),
                        ("FlashSAC", 3, dict[str, Any]()),
                    )
                    for env_id in ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5")
                ),
                Case(
                    "FlashSAC, minibatches of 64",
                    "HalfCheetah-v5",
                    1,
                    {"total_steps": 300_000, "batch_size": 64, "num_envs": 8, "log_every": 400},
                ),
                Case(
                    "small FlashSAC, discount 0.995",
                    "Hopper-v5",
                    1,
                    {
                        "total_steps": 300_000,
                        **_SMALL_FLASHSAC,
                        "batch_size": 64,
                        "gamma": 0.995,
                    },
                ),
            ),
            "The learning rate falls as in the authors' runs of a million steps (`anneal_steps`). "
            "The small one has networks half as wide, minibatches of 64 (a thirtieth of the "
            "arithmetic) or 256 (an eighth) and eight environments, which cost less than one "
            "after another.",
        ),
        Study(
            "mbpo",
            "mbpo",
            "What MBPO learns",
            41,
            {"amp": True, "checkpoint_every": 1_000, "keep_checkpoints": 1, **_ONE_CORE},
            (
                # the random steps, which the published curves do not count, included
                Case("MBPO", "Hopper-v5", 3, {"total_steps": 130_000}),
                # v4, whose feet slide as those of v2 do, of which the published curve is
                Case("MBPO", "Walker2d-v4", 2, {"total_steps": 105_000}),
                *(
                    Case(
                        f"MBPO, discount {gamma}",
                        "Hopper-v5",
                        1,
                        {"total_steps": 130_000, "gamma": gamma, "gamma_schedule": None},
                    )
                    for gamma in (0.99, 0.995)
                ),
                *(
                    Case(
                        f"MBPO, minibatches of 64{discount}",
                        env_id,
                        1,
                        {"total_steps": 105_000, "batch_size": 64, "gamma_schedule": schedule},
                    )
                    for discount, env_id, schedule in (
                        ("", "Walker2d-v4", None),
                        ("", "Walker2d-v5", None),
                        (", discount rises", "Walker2d-v4", (30_000, 50_000, 0.995)),
                        (", discount rises late", "Walker2d-v4", (58_300, 66_300, 0.995)),
                    )
                ),
                Case("MBPO", "InvertedPendulum-v5", 1, {"total_steps": 5_000}),
                Case(
                    "MBPO + flow",
                    "InvertedPendulum-v5",
                    1,
                    {"total_steps": 5_000, "dynamics": "flow"},
                ),
                Case("MBPO + flow", "Hopper-v5", 1, {"total_steps": 35_000, "dynamics": "flow"}),
            ),
            "Steps include the random ones (5,000 on Hopper and Walker2d); the authors' do not. "
            "Their Walker2d is v2, whose right foot slides as v4's does (friction 0.9; v5's has "
            "1.9).",
        ),
    )
}


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
    if together not in (None, 1) and study.algorithm == "ppo":
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
