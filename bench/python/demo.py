"""``make demo``: the same numbers as gymnasium, and how much sooner.

First compares every observation, reward and flag with gymnasium's SyncVectorEnv, then measures
both, and the physics limit, in turn. Takes less than half a minute.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import peers

import pyfastenv
from pyfastenv.experiments import measure
from pyfastenv.vector.cpus import available_cpus

ENV_IDS = ("HalfCheetah-v5", "Humanoid-v5")
NUM_ENVS = 64
GYMNASIUM_ENVS = 8
SECONDS = 0.4
ROUNDS = 5


def first_difference(env_id: str, num_envs: int = 4, num_steps: int = 300) -> str | None:
    """Where our results first differ from gymnasium's in any bit; None if nowhere."""
    names = ("observations", "rewards", "terminations", "truncations")
    actions = peers.random_actions(env_id, num_steps, num_envs)
    ours = pyfastenv.make_vec(env_id, num_envs)
    with peers.quiet_stderr():
        theirs = gymnasium.make_vec(env_id, num_envs, vectorization_mode="sync")
    try:
        if not np.array_equal(ours.reset(seed=0)[0], theirs.reset(seed=0)[0]):
            return "the first observations"
        for t, action in enumerate(actions):
            pairs: Any = zip(names, ours.step(action), theirs.step(action), strict=False)
            for name, mine, other in pairs:
                if not np.array_equal(mine, other):
                    return f"the {name} of step {t}"
    finally:
        ours.close()
        theirs.close()
    return None


def race(env_id: str) -> list[str]:
    """One line of the table."""
    threads = available_cpus()
    ours, limit = peers.Ours, peers.PhysicsLimit
    rivals: dict[str, peers.Contestant] = {
        ours.name: ours(env_id, NUM_ENVS, threads),
        limit.name: limit(env_id, NUM_ENVS, threads),
        peers.GymnasiumSync.name: peers.GymnasiumSync(env_id, GYMNASIUM_ENVS, threads),
    }
    candidates = {}
    for name, rival in rivals.items():
        num_envs = GYMNASIUM_ENVS if name == peers.GymnasiumSync.name else NUM_ENVS
        rate = rival.run(peers.random_actions(env_id, 20, num_envs))
        num_steps = max(1, round(SECONDS * rate / num_envs))
        actions = peers.random_actions(env_id, num_steps, num_envs)
        candidates[name] = lambda run=rival.run, actions=actions: run(actions)
    rates = measure.interleave(candidates, ROUNDS)
    for rival in rivals.values():
        rival.close()
    sync = rates[peers.GymnasiumSync.name]
    return [
        env_id,
        *[f"{measure.summary(r)['median']:,.0f}/s" for r in (sync, rates[ours.name])],
        f"{measure.summary(rates[limit.name])['median']:,.0f}/s",
        f"{measure.ratio(rates[ours.name], sync)['median']:.1f}×",
        f"{measure.ratio(rates[ours.name], rates[limit.name])['median']:.0%}",
    ]


def main() -> None:
    """The program."""
    warnings.filterwarnings("ignore", module="gymnasium")
    for env_id in ENV_IDS:
        difference = first_difference(env_id)
        if difference is not None:
            sys.exit(f"{env_id}: pyfastenv and gymnasium differ in {difference}")
        print(f"{env_id}: observations, rewards and flags equal gymnasium's in every bit")
    print(f"measuring on {available_cpus()} CPUs …", flush=True)
    head = [
        "environment",
        f"gymnasium ({GYMNASIUM_ENVS} envs)",
        f"pyfastenv ({NUM_ENVS})",
        "physics limit",
        "times gymnasium",
        "share of limit",
    ]
    lines = [head, *map(race, ENV_IDS)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *values in lines:
        cells = [v.rjust(w) for v, w in zip(values, widths[1:], strict=True)]
        print("  ".join([name.ljust(widths[0]), *cells]))


if __name__ == "__main__":
    main()
