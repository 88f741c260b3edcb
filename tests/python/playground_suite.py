"""MuJoCo Playground's own steps beside ours, from the same states, under the same actions.

``python tests/python/playground_suite.py`` (``make parity NAME=playground``) compares observations,
rewards and every term of every id for 1,000 steps, and writes down how far they are apart. It goes
on where it stopped.
Playground's class computes its own in float32; mj_step, from our state on Playground's model and
under our controls, stands in for MJX.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import counts
import mujoco
import numpy as np

import pyfastenv
from pyfastenv.suites import PLAYGROUND, tasks
from pyfastenv.suites.playground.base import playground_file
from pyfastenv.tasks.language.find import load_task

FULL = mujoco.mjtState.mjSTATE_INTEGRATION
EPISODE = 40  # steps at most, that there are many commands
SHOWN = (
    "qpos", "qvel", "qacc", "ctrl", "time", "xpos", "site_xpos", "sensordata", "actuator_force",
    "qfrc_actuator", "xfrc_applied", "xquat", "mocap_pos", "mocap_quat",
)  # fmt: skip
DELAYS = {"action_delay": (1, 2), "obs_delay": (6, 7)}
DRAWN = ("phase", "phase_dt", "gait_freq", "gait", "foot_height")  # by an episode, in both


class Record(SimpleNamespace):
    """What Playground's functions take for their dataclasses."""

    def replace(self, **changes: Any) -> Record:
        return Record(**{**vars(self), **changes})


class Theirs:
    """Playground's environment of an id, without noise, pushes and kicks, and without MJX."""

    def __init__(self, env_id: str) -> None:
        import jax
        from mujoco_playground import registry
        from mujoco_playground._src import mjx_env

        _register_records()
        self._jax, self._stepping = jax, mjx_env
        clip = jax.numpy.clip
        # by the name that Playground 0.2 has for max, and JAX no more
        self._clip = lambda *given, a_max=None, **named: (
            clip(*given, **named) if a_max is None else clip(*given, max=a_max, **named)
        )
        self._steps: dict[Any, Any] = {}  # compiled, by the terms' weights
        name = env_id.removesuffix("-v1")
        config = registry.get_default_config(name)
        _silence(config)
        scene = playground_file(_task(env_id).scene)
        assets = next(folder for folder in scene.parents if folder.name == "assets")
        if not (assets / "mujoco_menagerie").exists():
            assets = next(f for f in assets.parents if (f / "mujoco_menagerie").exists())
        mjx_env.MENAGERIE_PATH = type(mjx_env.ROOT_PATH)(assets / "mujoco_menagerie")
        with self._without_mjx():
            self._env = registry.load(name, config=config)
        self.model = self._env.mj_model
        for geom, body in enumerate(self.model.geom_bodyid):  # MJX has no masks of bodies
            self.model.body_conaffinity[body] |= self.model.geom_conaffinity[geom]
        self.data = mujoco.MjData(self.model)
        rewards = config.reward_config
        # of terms, by name; read in every step
        self.scales = rewards.get("scales", rewards.get("reward_scales"))

    @contextmanager
    def _without_mjx(self) -> Iterator[None]:
        from mujoco import mjx

        put = {"impl": SimpleNamespace(value="")}

        def model(given: Any, **_: Any) -> Any:
            return SimpleNamespace(
                **{n: getattr(given, n) for n in ("nq", "nv", "nu", "nbody", "geom_size")}, **put
            )

        with (
            mock.patch.object(mjx, "put_model", model),
            mock.patch.object(mjx, "forward", lambda model, data: data),
            mock.patch.object(self._jax.random, "bernoulli", return_value=False),
            mock.patch.object(self._jax.numpy, "clip", self._clip),
            mock.patch.object(self._stepping, "make_data", self._start),
            mock.patch.object(self._stepping, "step", self._settle),
        ):
            yield

    def _start(self, model: Any, **given: Any) -> Record:
        mujoco.mj_resetData(self.model, self.data)
        for name in ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat"):
            if name in given:
                getattr(self.data, name)[:] = given[name]
        mujoco.mj_forward(self.model, self.data)
        return self._shown()

    def _shown(self) -> Record:
        numpy = self._jax.numpy
        found = {name: numpy.array(getattr(self.data, name)) for name in SHOWN}
        for name in ("xmat", "site_xmat"):
            found[name] = numpy.array(getattr(self.data, name)).reshape(-1, 3, 3)
        return Record(**found)

    def _settle(self, model: Any, data: Any, targets: Any, num_substeps: int) -> Record:
        """The physics of their resets."""
        mujoco.mj_step(self.model, self.data, int(num_substeps))
        return self._shown()

    def _compiled(self) -> Any:
        """Their step with these weights, of a state, what the physics makes of it and an action."""

        def step(state: Any, after: Record, action: Any) -> tuple[Any, Any]:
            kept = []

            def physics(model: Any, data: Any, targets: Any, num_substeps: int) -> Record:
                kept.append(targets)
                return after

            with self._without_mjx(), mock.patch.object(self._stepping, "step", physics):
                return self._env.step(state, action), kept[0]

        weights = tuple(self.scales.values())
        return self._steps.setdefault(weights, self._jax.jit(step))

    def reset(self, command: Any, drawn: dict[str, Any]) -> None:
        """Their reset, with what we have drawn."""
        numpy = self._jax.numpy
        self._env.sample_command = lambda *_: numpy.array(command)
        with self._without_mjx():
            self._state = self._env.reset(self._jax.random.PRNGKey(0))
        info = self._state.info
        if command is not None:
            info["command"] = numpy.array(command)
        for name in ("steps_until_next_cmd", "steps_until_next_pert"):
            if name in info:
                info[name] = 10**6
        for name, value in drawn.items():
            if name in info:
                info[name] = numpy.array(value).reshape(np.shape(info[name]))

    def kick(self, num_steps: int, wait: int, duration: int, speed: float) -> list[float]:
        """The strength of their kicks' force at each step [N]; wait and duration in steps."""
        jax, dt = self._jax, self._env.dt
        info = {"rng": jax.random.PRNGKey(0), "pert_dir": jax.numpy.zeros(3), "pert_mag": speed}
        info |= {"steps_until_next_pert": wait, "steps_since_last_pert": 0, "pert_steps": 0}
        info |= {"pert_duration": duration, "pert_duration_seconds": duration * dt}
        state, forces = Record(data=Record(xfrc_applied=None), info=info), []

        def cond(is_due: Any, kick: Any, rest: Any, state: Any) -> Any:
            return kick(state) if is_due else rest(state)

        with mock.patch.object(jax.lax, "cond", cond):
            for _ in range(num_steps):
                state = self._env._maybe_apply_perturbation(state)
                force = state.data.xfrc_applied[self._env._torso_body_id, :3]
                forces.append(float(np.linalg.norm(force)))
        return forces

    def note(self, known: dict[str, Any]) -> None:
        """Writes numbers of an episode's start into their state."""
        for name, value in known.items():
            old = self._state.info[name]
            self._state.info[name] = self._jax.numpy.asarray(value, np.result_type(old))

    def unit(self, name: str, task: Any) -> float:
        """What our info of a term is where theirs is 1: their metrics have weights, or none."""
        package = type(self._env).__module__
        weight = float(getattr(task, f"{name}_weight"))
        if "franka_emika_panda." in package:
            return 1.0 if name == "lifted" else weight
        if name == "success":
            return weight * (float(task.dt) if "robotiq" in package else 1.0)
        if "aloha.handover" in package:
            return 1.0
        whole = 1.0 if "aloha" in package else float(task.dt)
        is_share = "aloha" in package or "robotiq" in package
        return whole / sum(self.scales.values()) if is_share else whole

    def step(self, row: Any, ctrl: Any, action: Any) -> Any:
        """Theirs from our state: obs, reward, done, and metrics.

        Args:
            row: Our mjSTATE_INTEGRATION before the step.
            ctrl: ``(nu,)`` our controls of this step, which stand in for their targets' float32.
            action: ``(nu,)`` float32.
        """
        mujoco.mj_setState(self.model, self.data, row, FULL)
        before = self._state.replace(data=self._shown())
        self.data.ctrl[:] = ctrl
        mujoco.mj_step(self.model, self.data, self._env.n_substeps)
        self._state, self.targets = self._compiled()(before, self._shown(), action)
        return self._state


@functools.cache
def _register_records() -> None:
    """Lets JAX look into records."""
    import jax

    jax.tree_util.register_pytree_node(
        Record,
        lambda record: (tuple(vars(record).values()), tuple(vars(record))),
        lambda names, values: Record(**dict(zip(names, values, strict=True))),
    )


def _silence(config: Any) -> None:
    """Turns off what draws in a step."""
    noise = config.get("noise_config", config.get("obs_noise", {}))
    if isinstance(noise, float):
        config.obs_noise = 0.0
    elif "noise_scales" in noise:  # Robotiq's, with delays that are drawn
        noise.noise_scales.update(dict.fromkeys(noise.noise_scales, 0.0))
        noise.action_max_delay, noise.obs_max_delay = (
            DELAYS["action_delay"][1],
            DELAYS["obs_delay"][1],
        )
    elif "scales" not in noise:
        pass
    elif "level" in noise:
        noise.level = 0.0
    else:
        for name, scale in noise.scales.items():
            noise.scales[name] = [0.0] * len(scale) if isinstance(scale, list | tuple) else 0.0
    if "push_config" in config:
        config.push_config.enable = False
    if "velocity_kick" in config:
        config.velocity_kick = [0.0, 0.0]


def compare(env_id: str, num_steps: int, episode: int = EPISODE) -> dict[str, Any]:
    """Steps both from our states, in episodes of so many steps at most.

    Terms of weight 0 have weight 1 in every other episode.

    Returns:
        The greatest distance of any control, of any observation, of the reward and of each term,
        relative to what is above 1; how often episodes ended; ``idle``: terms that were zero all
        the time.

    Raises:
        AssertionError: They differ in what has ended an episode, or in a bit of the physics.
    """
    theirs, ours = Theirs(env_id), _ours(env_id)
    has_command = "velocity_standing" in ours.task.params
    rng = np.random.default_rng(0)
    gaps = counts.Gaps()
    falls, idle, left = 0, set(theirs.scales), 0

    unweighted = [n for n, scale in theirs.scales.items() if scale == 0.0]
    for i in range(num_steps):
        if left == 0:
            for name in unweighted:  # in every other episode they count
                weight = 1.0 - theirs.scales[name]
                theirs.scales[name] = weight
                object.__setattr__(ours.task, f"{name}_weight", weight)
            if has_command:
                ours.set_command("velocity", None)
            _, infos = ours.reset(seed=int(rng.integers(2**31)))
            command = infos["velocity"].copy() if has_command else None
            if has_command:
                ours.set_command("velocity", command)
            if hasattr(ours.task, "heard"):  # without what is too small
                command = ours.task.heard()
            drawn = {n: np.copy(getattr(ours.task, n)) for n in DRAWN if hasattr(ours.task, n)}
            theirs.reset(command, drawn)
            left, size = episode, rng.uniform(0.1, 2.0)
            theirs.note(arrange(ours, rng))
        action = rng.uniform(-size, size, ours.action_space.shape).astype(np.float32)
        row = np.empty(mujoco.mj_stateSize(ours.task.model, FULL))
        mujoco.mj_getState(ours.task.model, ours.data, row, FULL)
        obs, reward, terminated, _, infos = ours.step(action)
        result = theirs.step(row, ours.data.ctrl, action)
        assert np.array_equal(ours.data.qpos, theirs.data.qpos), f"step {i}: other physics"
        assert terminated == bool(result.done), f"step {i}"
        gaps.note("controls", ours.data.ctrl, theirs.targets)
        seen = result.obs
        gaps.note("observation", obs, seen["privileged_state"] if isinstance(seen, dict) else seen)
        most = 1e4  # where Playground cuts a reward off, which unusual weights reach
        gaps.note("reward", min(reward, most), min(result.reward, most))
        for name, value in result.metrics.items():
            name, unit = name.removeprefix("reward/"), 1.0
            mine = infos.get(name)
            if f"reward_{name}" in infos:
                mine, unit = infos[f"reward_{name}"], theirs.unit(name, ours.task)
            if mine is not None and unit != 0.0:
                gaps.note(name, mine / unit, value)
                idle -= {name} if value != 0.0 else set()
        falls += terminated
        left = 0 if terminated or infos.get("reward_success", 0.0) > 0.0 else left - 1
    return {"falls": falls, "gaps": gaps, "idle": sorted(idle)}


def arrange(ours: Any, rng: Any) -> dict[str, Any]:
    """Changes starts, that what random actions do not bring about is compared too.

    Every third robot on legs is thrown, every third lifted. Things are put into grippers, at their
    targets, and where they have fallen.

    Returns:
        Numbers of the changed start by their names in Playground's states.
    """
    data, kind = ours.data, rng.random()
    file = type(ours.task).__module__.rsplit(".", 1)[1]
    known: dict[str, Any] = {}
    if data.mocap_pos.size and hasattr(ours.task, "targets"):
        known["target_pos"] = data.mocap_pos[0].copy()
    if file == "panda":
        if hasattr(ours.task, "best"):  # the tips' own place
            del known["target_pos"]
        elif rng.random() < 0.3:
            ours.task.has_reached = known["reached_box"] = 1.0
        if data.qpos.size > 10:
            place = data.qpos[9:12]
            if kind < 0.3:
                place[:] = data.site("gripper").xpos
            elif kind < 0.5:
                place[:] = data.mocap_pos[0] + rng.uniform(-0.06, 0.06, 3)
            elif kind < 0.6:
                data.qvel[9:12] = rng.uniform(-20.0, 20.0, 3)
    elif file == "robotiq":
        if kind < 0.3:
            data.qpos[-7:-4], data.qpos[-4:] = data.mocap_pos[0], data.mocap_quat[0]
            ours.task.held_for = known["success_step_count"] = 25
        elif kind < 0.7:
            data.qpos[-7:-4] = data.site("gripper").xpos + rng.uniform(-0.12, 0.12, 3)
    elif file == "aloha":
        hands = [data.site(f"{side}/gripper").xpos for side in ("left", "right")]
        if "target_pos" in known:
            spots = [*hands, (0.0, 0.0, 0.24), known["target_pos"], (0.0, 0.0, 0.2)]
            if kind < 0.8:
                data.qpos[16:19] = spots[int(kind / 0.16)] + rng.uniform(-0.05, 0.05, 3)
        else:
            if kind < 0.5:
                data.qpos[16:19], data.qpos[23:26] = hands
            elif kind < 0.9:
                data.qpos[16:19] = data.qpos[23:26] = (-0.05, 0.0, 0.15)
                data.qpos[23] += 0.048 + rng.uniform(0.0, 0.08)
            if rng.random() < 0.2:
                data.qvel[16:19] = rng.uniform(-30.0, 30.0, 3)
    elif file == "hands":
        known.pop("target_pos", None)
        if kind < 0.2:
            data.qpos[18] -= rng.uniform(0.0, 0.15)
        elif kind < 0.5:
            data.mocap_quat[0] = data.qpos[-4:]
            getattr(ours.task, "next_goal", np.zeros(4))[:] = data.qpos[-4:]
    else:
        data.qvel[3:6] += (kind < 0.3) * rng.uniform(-20.0, 20.0, 3)
        data.qpos[2] += (rng.random() < 0.3) * rng.uniform(0.0, 0.1)
    return known


def _ours(env_id: str) -> Any:
    """Our environment, without what draws in a step, and often told to stand."""
    task = _task(env_id)
    quiet: dict[str, Any] = {"push_speed": (0.0, 0.0), "kick": 0.0, "kick_least": 0.0, "noise": 0.0}
    own = {name: value for name, value in (quiet | DELAYS).items() if hasattr(task, name)}
    own |= {"observation_noise": False, "observation_dict": False}
    standing = getattr(task, "velocity_standing", None)
    if standing is not None:
        own["velocity_standing"] = (0.7, 0.7, 0.7) if np.ndim(standing) > 0 else 0.3
    return pyfastenv.debug(env_id, **own).unwrapped


def _task(env_id: str) -> Any:
    return load_task(tasks()[env_id]["task"])


if __name__ == "__main__":
    counts.run("playground_parity", PLAYGROUND, compare, __doc__)
