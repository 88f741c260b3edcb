"""Two measurements of what no scheduling and no pool can win.

``python bench/python/bounds.py barrier HalfCheetah-v5``: with 8 environments and 2 threads, the
share of the physics limit that a barrier leaves when nothing but the steps themselves takes time,
from the measured costs of single steps: for the best order in hindsight, and for handing out the
next environment to whoever is free.

``python bench/python/bounds.py engine humanoidstandup.xml``: single-thread rate of the installed
MuJoCo on one of gymnasium's models. It needs only mujoco and gymnasium: run it in another virtual
environment to compare versions of the engine.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

NUM_ENVS = 8
NUM_STEPS = 4_000


def barrier(env_id: str) -> None:
    """Prints the bounds for two threads."""
    import pyfastenv

    envs = [pyfastenv.make_vec(env_id, 1, num_threads=1) for _ in range(NUM_ENVS)]
    for i, env in enumerate(envs):
        env.reset(seed=i)
    space = envs[0].single_action_space
    rng = np.random.default_rng(0)
    actions = rng.uniform(space.low, space.high, (NUM_STEPS, NUM_ENVS, 1, *space.shape))
    actions = actions.astype(np.float32)
    costs = np.zeros((NUM_STEPS, NUM_ENVS))
    for t in range(NUM_STEPS):
        for i, env in enumerate(envs):
            start = time.perf_counter()
            env.step(actions[t, i])
            costs[t, i] = time.perf_counter() - start
    costs = costs[500:]
    costs = np.minimum(costs, np.quantile(costs, 0.999))  # without interruptions by the system
    half = costs.sum() / 2
    subsets = np.array([[k >> i & 1 for i in range(NUM_ENVS)] for k in range(2 ** (NUM_ENVS - 1))])
    loads = costs @ subsets.T
    best = np.maximum(loads, costs.sum(1, keepdims=True) - loads).min(1).sum()

    def greedy(order_of: np.ndarray) -> float:
        total = 0.0
        for costs_now, order in zip(costs, order_of, strict=True):
            loads = [0.0, 0.0]
            for i in order:
                loads[int(loads[0] > loads[1])] += costs_now[i]
            total += max(loads)
        return total

    latest = np.argsort(-np.vstack((costs[:1], costs[:-1])), axis=1)
    print(f"{env_id}: a step costs {costs.mean() * 1e6:.1f} ± {costs.std() * 1e6:.1f} µs")
    print(f"best partition in hindsight: {half / best:.3f} of the limit")
    print(f"next to whoever is free, most expensive latest first: {half / greedy(latest):.3f}")


def engine(model: str) -> None:
    """Prints the rate of ``mj_step(model, data, 5)`` with random actions."""
    import mujoco

    spec = importlib.util.find_spec("gymnasium")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "envs" / "mujoco" / "assets" / model
    m = mujoco.MjModel.from_xml_path(str(path))
    d = mujoco.MjData(m)
    rates = []
    for _ in range(7):
        rng = np.random.default_rng(0)
        start = time.perf_counter()
        for step in range(3_000):
            if step % 1_000 == 0:
                mujoco.mj_resetData(m, d)
            d.ctrl[:] = rng.uniform(m.actuator_ctrlrange[:, 0], m.actuator_ctrlrange[:, 1])
            mujoco.mj_step(m, d, 5)
        rates.append(3_000 / (time.perf_counter() - start))
    print(f"MuJoCo {mujoco.__version__}, {model}: {np.median(rates):,.0f} steps/s")


if __name__ == "__main__":
    {"barrier": barrier, "engine": engine}[sys.argv[1]](sys.argv[2])
