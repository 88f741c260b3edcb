"""Random public calls of several threads at one vector environment, for a while.

    python tests/python/api_threads.py --seconds 60 --seed 3

Storm follows storm, each on a vector environment of its own: 2 to 8 threads call whatever they
like, whenever they like. They may only be told that a call came at the wrong moment. When they are
done the environments must be as good as new, which a twin that was left alone shows bit for bit;
then they call on while one of them closes it. ``make tsan-api`` runs this under ThreadSanitizer.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from parity import MODES, assert_same, random_actions, random_policy
from threads import HangError, run_threads

import pyfastenv
from pyfastenv import rollout
from pyfastenv.errors import BusyError, ClosedError, ForkedError, ResetNeededError

ENV_IDS = ("HalfCheetah-v5", "HalfCheetahDir-v5", "AntGoal-v5", "CartPole-v1", "Pendulum-v1")
DRAWN = ("CartPole-v1", "Pendulum-v1")  # without OpenGL, whose library no sanitizer knows
SELDOM = {"fork": 0.02, "render": 0.2}  # slow: now and then will do
FIELDS = ("body_mass", "geom_friction", "dof_damping", "opt.gravity")
WRONG_MOMENT = (BusyError, ResetNeededError, pyfastenv.NothingPendingError)
PATIENCE = 600.0  # seconds that a thread or a forked child may take to end


class Caller:
    """One thread's random calls of a shared vector environment.

    Without ``refusals`` it makes no call that another thread's calls can make impossible.
    """

    def __init__(
        self,
        envs: pyfastenv.FastVectorEnv,
        rng: np.random.Generator,
        *,
        refusals: bool,
        without: Sequence[str],
    ):
        self.envs = envs
        self.rng = rng
        self.state: np.ndarray | None = None  # of all environments
        self.counts: Counter[str] = Counter()
        self.calls: dict[str, Callable[[], object]] = {
            "step": lambda: envs.step(self.actions()),
            "reset": self.reset,
            "get_state": self.get_state,
            "row": lambda: envs._core.row(int(rng.integers(envs.num_envs))),
            "np_random": lambda: envs.np_random,
            "stats": envs.stats,
        }
        if refusals:
            self.calls["async_reset"] = self.async_reset
            self.calls["send"] = self.send
            self.calls["recv"] = self.recv
            self.calls["set_state"] = self.set_state
        else:
            # older C++ libraries' own lock for exceptions does not survive a fork beside a throw
            self.calls["fork"] = self.fork
        if envs.autoreset_mode.value != "Disabled":
            self.calls["rollout"] = self.rollout
        if envs.render_mode is not None:
            self.calls["render"] = lambda: envs.render(env_ids=self.ids())
        if envs.env_id not in DRAWN:
            self.calls["set_model_field"] = self.set_model_field
            self.calls["get_model_field"] = lambda: envs.get_model_field(self.field())
        if envs._core.tasks:
            self.calls["reset_task"] = self.reset_task
            self.calls["get_task"] = envs.get_task
        for name in without:
            self.calls.pop(name, None)

    def run(self, until: float) -> None:
        """Calls until the time has come, or the environment is closed."""
        names = list(self.calls)
        while time.monotonic() < until:
            name = names[self.rng.integers(len(names))]
            if self.rng.random() > SELDOM.get(name, 1.0):
                continue
            try:
                self.calls[name]()
            except WRONG_MOMENT:
                name += ", refused"
            except ClosedError:
                return
            self.counts[name] += 1

    def ids(self) -> np.ndarray:
        size = int(self.rng.integers(1, self.envs.num_envs + 1))
        return self.rng.permutation(self.envs.num_envs)[:size]

    def seed(self) -> int | None:
        return None if self.rng.random() < 0.5 else int(self.rng.integers(1000))

    def field(self) -> str:
        return FIELDS[self.rng.integers(len(FIELDS))]

    def actions(self, count: int | None = None) -> np.ndarray:
        return random_actions(self.envs.single_action_space, self.rng, count or self.envs.num_envs)

    def reset(self) -> None:
        mask = np.isin(np.arange(self.envs.num_envs), self.ids())
        self.envs.reset(seed=self.seed(), options={"reset_mask": mask})

    def async_reset(self) -> None:
        self.envs.async_reset(seed=self.seed(), env_ids=self.ids())

    def send(self) -> None:
        ids = self.ids()
        self.envs.send(self.actions(len(ids)), ids)

    def recv(self) -> None:
        # None: everything that is under way, which other receivers may take away meanwhile
        least = None if self.rng.random() < 0.3 else 1
        obs, rewards, *_, infos = self.envs.recv(least, timeout=float(self.rng.choice([0, 0.01])))
        assert len(obs) == len(rewards) == len(infos["env_id"]) > 0

    def rollout(self) -> None:
        batch = rollout(self.envs, random_policy(self.envs), int(self.rng.integers(1, 8)))
        assert batch.obs.isfinite().all()

    def get_state(self) -> None:
        self.state = self.envs.get_state()

    def set_state(self) -> None:
        if self.state is None:
            return
        ids = self.ids()
        try:
            self.envs.set_state(self.state[ids], ids)
        except ValueError as error:  # somebody gave the environments another model field
            if "state: " not in str(error):
                raise

    def set_model_field(self) -> None:
        name = self.field()
        factor = self.rng.uniform(0.9, 1.1)
        self.envs.set_model_field(name, self.envs.get_model_field(name)[0] * factor)

    def reset_task(self) -> None:
        ids = self.ids()
        self.envs.reset_task(self.envs.sample_tasks(len(ids), seed=0), ids)

    def fork(self) -> None:
        actions = self.actions()
        child = os.fork()
        if child == 0:
            try:
                self.envs.step(actions)
            except ForkedError:
                os._exit(0)
            finally:
                os._exit(1)
        until = time.monotonic() + PATIENCE
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError("the forked child hangs")
            time.sleep(0.002)
        assert ended[1] == 0, f"the forked child ended with status {ended[1]}"


def assert_as_good_as_new(envs: pyfastenv.FastVectorEnv, twin: pyfastenv.FastVectorEnv) -> None:
    """Given the same model fields, tasks and seeds, ``envs`` goes on as its twin begins."""
    while True:
        try:
            envs.recv()
        except pyfastenv.NothingPendingError:
            break
    for name, _, _ in envs._core.row(0)[1]:
        twin.set_model_field(name, envs.get_model_field(name))
    if envs._core.tasks:
        twin.reset_task(envs.get_task())
    rng = np.random.default_rng(0)
    assert_same(envs.reset(seed=1), twin.reset(seed=1))
    for _ in range(5):
        actions = random_actions(envs.single_action_space, rng, envs.num_envs)
        results = envs.step(actions)
        assert_same(results, twin.step(actions))
        if envs.autoreset_mode.value == "Disabled" and (results[2] | results[3]).any():
            break


def storm(seconds: float, rng: np.random.Generator, without: Sequence[str]) -> Counter[str]:
    """One vector environment's life among threads; returns how often each call was made."""
    refusals = bool(rng.random() < 0.7)  # calls that others' calls make impossible
    arguments: dict[str, Any] = {
        "env_id": ENV_IDS[rng.integers(len(ENV_IDS))],
        "num_envs": int(rng.integers(2, 12)),
        "autoreset_mode": MODES[rng.integers(len(MODES) if refusals else 2)],
        "max_episode_steps": int(rng.integers(3, 30)),
    }
    render_mode = "rgb_array" if arguments["env_id"] in DRAWN else None
    envs = pyfastenv.make_vec(
        **arguments, num_threads=int(rng.integers(1, 5)), render_mode=render_mode
    )
    envs.reset(seed=0)
    callers = [
        Caller(envs, child, refusals=refusals, without=without)
        for child in rng.spawn(int(rng.integers(2, 9)))
    ]
    until = time.monotonic() + seconds
    run_threads(*(partial(caller.run, until) for caller in callers), patience=PATIENCE)
    assert_as_good_as_new(envs, pyfastenv.make_vec(**arguments, num_threads=1))

    def close() -> None:
        time.sleep(0.02)
        envs.close()

    never = time.monotonic() + PATIENCE
    run_threads(close, *(partial(caller.run, never) for caller in callers), patience=PATIENCE)
    return sum((caller.counts for caller in callers), Counter())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--without", nargs="+", default=(), metavar="CALL", help="for narrowing down"
    )
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    sys.setswitchinterval(1e-4)  # Python's own threads take turns more often than usual
    rng = np.random.default_rng(arguments.seed)
    start = time.monotonic()
    storms = 0
    while time.monotonic() - start < arguments.seconds:
        try:
            counts += storm(0.3, rng, arguments.without)
        except HangError:
            os._exit(3)  # nothing that the hanging thread holds can be closed
        storms += 1
    print(f"{storms} storms")
    for name, count in sorted(counts.items()):
        print(f"{count:8d} {name}")


if __name__ == "__main__":
    main()
