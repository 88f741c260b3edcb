"""``pyfastenv bench``: this machine's rate, beside gymnasium's and the physics limit."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

import gymnasium

import pyfastenv
from pyfastenv.experiments import measure
from pyfastenv.tasks.language.find import find_task
from pyfastenv.tools.columns import aligned
from pyfastenv.tools.contestants import (
    Contestant,
    GymnasiumAsync,
    GymnasiumSync,
    Ours,
    PhysicsLimit,
    random_actions,
)
from pyfastenv.vector.arguments import integer, plain_id
from pyfastenv.vector.cpus import available_cpus

_ROUNDS = 5
_WARM_UP_STEPS = 20
_SYNC_ENVS = 8  # its rate does not depend on their number, and making them takes a while
_MOST_SECONDS = 3600.0


@dataclass(frozen=True)
class Rate:
    """The rate that one contestant reached.

    Attributes:
        name: The contestant.
        num_envs: How many environments it stepped.
        steps_per_s: Environment calls per second, median and quartiles of the rounds.
        ours: How many times as fast pyfastenv is, of the same rounds.
    """

    name: str
    num_envs: int
    steps_per_s: measure.Summary
    ours: measure.Summary


@dataclass(frozen=True)
class Race:
    """A race's result.

    Attributes:
        env_id: The environment.
        num_threads: Of pyfastenv and the physics limit.
        engine: What ran the physics, ``"lanes"`` or ``"mujoco"``, and why.
        rates: Of pyfastenv first.
        absent: Who could not take part, and why.
    """

    env_id: str
    num_threads: int
    engine: str
    rates: list[Rate]
    absent: dict[str, str]

    def __str__(self) -> str:
        head = ("", "environments", "steps/s", "quartiles", "pyfastenv is")
        table = aligned([head, *map(_cells, self.rates)])
        absent = [f"{name}: not here ({reason})" for name, reason in self.absent.items()]
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        return "\n".join([f"{self.env_id}, {threads}, physics by {self.engine}", *table, *absent])


def _cells(rate: Rate) -> tuple[str, ...]:
    steps = rate.steps_per_s
    return (
        rate.name,
        f"{rate.num_envs:,}",
        f"{steps['median']:,.0f}",
        f"{steps['q1']:,.0f} to {steps['q3']:,.0f}",
        "" if rate.name == Ours.name else f"{rate.ours['median']:.2f} × as fast",
    )


def race(env_id: str, *, num_envs: int = 64, num_threads: int = 0, seconds: float = 10.0) -> Race:
    """Steps an environment with random actions by pyfastenv, gymnasium and a bare physics loop.

    They run in turn, five rounds, so that a machine that slows down slows all of them.

    Args:
        env_id: As of :func:`pyfastenv.make_vec`; gymnasium steps an own task in plain Python.
        num_envs: Environments of pyfastenv and of the physics limit.
        num_threads: Their threads; 0: the CPUs this process may use.
        seconds: How long it takes, about; making the environments not counted.

    Raises:
        ValueError: A number out of range, or no such environment.
    """
    num_envs = integer("num_envs", num_envs, minimum=1)
    num_threads = integer("num_threads", num_threads, minimum=0) or available_cpus()
    if not 0.0 < seconds <= _MOST_SECONDS:
        raise ValueError(f"seconds: expected more than 0, at most 3600, got {seconds}")
    if find_task(env_id) is None:
        env_id = plain_id(env_id)  # gymnasium takes pyfastenv/… for ours
    with closing(pyfastenv.make_vec(env_id, 1)) as envs:  # a wrong id is said here
        stats = envs.stats()
    sizes: dict[type[Contestant], int] = {
        Ours: num_envs,
        PhysicsLimit: num_envs,
        GymnasiumSync: min(num_envs, _SYNC_ENVS),
        GymnasiumAsync: min(num_envs, 2 * available_cpus()),
    }
    absent: dict[str, str] = {}
    runs = {}
    with ExitStack() as stack:
        for kind in reversed(sizes):  # gymnasium's processes fork before there are threads
            try:
                rival = stack.enter_context(closing(kind(env_id, sizes[kind], num_threads)))
                rate = rival.run(random_actions(env_id, _WARM_UP_STEPS, sizes[kind]))
            except (ValueError, gymnasium.error.Error) as error:
                if kind is Ours:  # there is nothing to compare with
                    raise
                absent[kind.name] = str(error).strip()
                continue
            runs[kind] = (rival, rate)
        share = seconds / (_ROUNDS * len(runs))
        candidates = {}
        for kind in (kind for kind in sizes if kind in runs):
            rival, rate = runs[kind]
            num_steps = max(1, round(share * rate / sizes[kind]))
            actions = random_actions(env_id, num_steps, sizes[kind])
            candidates[kind.name] = lambda run=rival.run, actions=actions: run(actions)
        rates = measure.interleave(candidates, _ROUNDS)
    reason = f" ({stats['engine_reason']})" if stats["engine_reason"] else ""
    return Race(
        env_id=env_id,
        num_threads=num_threads,
        engine=stats["engine"] + reason,
        rates=[
            Rate(
                kind.name,
                size,
                measure.summary(rates[kind.name]),
                measure.ratio(rates[Ours.name], rates[kind.name]),
            )
            for kind, size in sizes.items()
            if kind.name in rates
        ],
        absent=absent,
    )
