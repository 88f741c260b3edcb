"""MuJoCo Playground's own step beside ours, from the same states, under the same actions.

``python tests/python/playground_suite.py`` (``make parity NAME=playground``) compares observations,
rewards and every term for 1,000 steps, and writes down how far they are apart. Playground's class
computes its own in float32; mj_step, from our state on Playground's model, stands in for MJX.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import counts
import mujoco
import numpy as np

import pyfastenv
from pyfastenv.suites import PLAYGROUND
from pyfastenv.suites.playground.base import playground_file

FULL = mujoco.mjtState.mjSTATE_INTEGRATION
EPISODE = 40  # steps at most, that there are many commands


class Record(SimpleNamespace):
    """What Playground's functions take for their dataclasses."""

    def replace(self, **changes: Any) -> Record:
        return Record(**{**vars(self), **changes})


class Theirs:
    """Playground's Go1, without noise and without MJX."""

    def __init__(self) -> None:
        import jax
        from mujoco_playground._src import mjx_env
        from mujoco_playground._src.locomotion.go1 import base, joystick

        self._jax = jax
        assets = playground_file("locomotion/go1/xmls/go1_mjx.xml").parents[5]
        mjx_env.MENAGERIE_PATH = type(mjx_env.ROOT_PATH)(assets / "mujoco_menagerie")
        config = joystick.default_config()
        config.noise_config.level = 0.0
        put_model, base.mjx.put_model = base.mjx.put_model, lambda model, **_: model
        try:
            self._env = joystick.Joystick(config=config)
        finally:
            base.mjx.put_model = put_model
        self.data = mujoco.MjData(self._env.mj_model)
        self._stepping = mjx_env

    def reset(self) -> None:
        """What their reset leaves behind, a command aside."""
        zeros = self._jax.numpy.zeros
        info = {name: zeros(12) for name in ("last_act", "last_last_act")}
        info |= {name: zeros(4) for name in ("feet_air_time", "swing_peak")}
        info |= {"last_contact": zeros(4, dtype=bool), "rng": self._jax.random.PRNGKey(0)}
        info |= {"steps_until_next_cmd": 10**6, "steps_until_next_pert": 10**6}
        info |= {"steps_since_last_pert": 0}
        self._state = Record(data=None, info=info, metrics={})

    def kick(self, num_steps: int, wait: int, duration: int, speed: float) -> list[float]:
        """The strength of their kicks' force at each step [N]; wait and duration in steps."""
        jax, dt = self._jax, self._env.dt
        info = {"rng": jax.random.PRNGKey(0), "pert_dir": jax.numpy.zeros(3), "pert_mag": speed}
        info |= {"steps_until_next_pert": wait, "steps_since_last_pert": 0, "pert_steps": 0}
        info |= {"pert_duration": duration, "pert_duration_seconds": duration * dt}
        state, forces = Record(data=Record(xfrc_applied=None), info=info), []
        cond, jax.lax.cond = (
            jax.lax.cond,
            lambda is_due, kick, rest, state: kick(state) if is_due else rest(state),
        )
        try:
            for _ in range(num_steps):
                state = self._env._maybe_apply_perturbation(state)
                force = state.data.xfrc_applied[self._env._torso_body_id, :3]
                forces.append(float(np.linalg.norm(force)))
        finally:
            jax.lax.cond = cond
        return forces

    def step(self, state: Any, command: Any, action: Any) -> Record:
        """Theirs from our state: obs, reward, done, and metrics."""
        numpy = self._jax.numpy

        def physics(model: Any, data: Any, targets: Any, num_substeps: int) -> Record:
            mujoco.mj_setState(self._env.mj_model, self.data, state, FULL)
            self.data.ctrl[:] = targets
            mujoco.mj_step(self._env.mj_model, self.data, num_substeps)
            names = ("qpos", "qvel", "sensordata", "site_xpos", "actuator_force", "xfrc_applied")
            shown = {name: numpy.array(getattr(self.data, name)) for name in names}
            return Record(**shown, site_xmat=numpy.array(self.data.site_xmat).reshape(-1, 3, 3))

        self._state.info["command"] = numpy.array(command)
        own, self._stepping.step = self._stepping.step, physics
        try:
            self._state = self._env.step(self._state, numpy.array(action))
        finally:
            self._stepping.step = own
        return self._state


def compare(env_id: str, num_steps: int, episode: int = EPISODE) -> dict[str, Any]:
    """Steps both from our states, in episodes of so many steps at most.

    Every third robot is thrown, which ends an episode, or bends joints beyond their limits.

    Returns:
        The greatest distance of any observation, of the reward and of each term, relative to what
        is above 1; how often robots fell; ``idle``: terms that were zero all the time.

    Raises:
        AssertionError: They differ in what has ended an episode.
    """
    theirs = Theirs()
    own: dict[str, Any] = {"observation_noise": False, "observation_dict": False}
    ours: Any = pyfastenv.debug(env_id, **own, velocity_standing=(0.7, 0.7, 0.7)).unwrapped
    rng = np.random.default_rng(0)
    gaps: dict[str, float] = {}
    falls, idle, left = 0, {name for name in vars(ours.task) if name.endswith("_weight")}, 0

    def note(name: str, mine: Any, other: Any) -> None:
        mine, other = np.asarray(mine, np.float64), np.asarray(other, np.float64)
        assert mine.shape == other.shape, name
        gap = np.abs(mine - other) / np.maximum(1.0, np.abs(other))
        gaps[name] = max(gaps.get(name, 0.0), float(gap.max()))

    for _ in range(num_steps):
        if left == 0:
            ours.set_command("velocity", None)
            _, infos = ours.reset(seed=int(rng.integers(2**31)))
            theirs.reset()
            command, left, size = infos["velocity"].copy(), episode, rng.uniform(0.1, 2.0)
            ours.set_command("velocity", command)
            ours.data.qvel[3:6] += (rng.random() < 0.3) * rng.uniform(-20.0, 20.0, 3)
        action = rng.uniform(-size, size, 12).astype(np.float32)
        state = np.empty(mujoco.mj_stateSize(ours.task.model, FULL))
        mujoco.mj_getState(ours.task.model, ours.data, state, FULL)
        obs, reward, terminated, _, infos = ours.step(action)
        result = theirs.step(state, command, action)
        assert terminated == bool(result.done)
        note("observation", obs, result.obs["privileged_state"])
        assert result.obs["state"].shape == (48,)
        note("reward", reward, result.reward)
        for name, value in result.metrics.items():
            if name.startswith("reward/"):
                name = name.removeprefix("reward/")
                note(name, infos[f"reward_{name}"] / ours.task.dt, value)
                idle -= {f"{name}_weight"} if value != 0.0 else set()
        falls += terminated
        left = 0 if terminated else left - 1
    return {"falls": falls, "gaps": gaps, "idle": sorted(idle)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    results = Path(__file__).parents[2] / "bench" / "results" / "playground_parity.json"
    parser.add_argument("--output", type=Path, default=results)
    parser.add_argument("--steps", type=int, default=1_000)
    options = parser.parse_args()
    for env_id in PLAYGROUND:
        row = {"steps": options.steps, **compare(env_id, options.steps)}
        counts.add(options.output, env_id, row, PLAYGROUND, "playground_parity")
        print(f"{env_id}: {row}", flush=True)


if __name__ == "__main__":
    main()
