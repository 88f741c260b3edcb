"""mjlab's own environments beside ours, from the same states, under the same actions.

``make parity NAME=mjlab`` compares observations, the reward, every term and what ends an episode,
for 1,000 steps of each id, and writes down how far they are apart. It goes on where it stopped.
mjlab's managers and terms compute theirs in float32; its physics is pyfastenv.integrations.mjlab
under our controls, every substep with the bits of ours, on our rough ground, too.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import counts
import mujoco
import numpy as np
from mjlab_motion import TRACKING, own_motion

import pyfastenv
from pyfastenv.suites import MJLAB
from pyfastenv.suites.mjlab.rough import GROUND
from pyfastenv.tasks.language.helpers import ground_height

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
EPISODE = 80  # steps at most


def lay_our_ground(generator: Any, spec: mujoco.MjSpec) -> None:
    """Our ground, in the place of what mjlab's generator would make."""
    GROUND.add_to(spec, body=spec.worldbody.add_body(name="terrain"))
    generator.terrain_origins = GROUND.origins


class Theirs:
    """mjlab's environment of an id, one of it, without what draws in a step.

    Args:
        env_id: mjlab's.
        weights: Of its reward's terms, in the place of its own.
        ours: Our environment, whose state, controls and draws it takes over.
    """

    command = "twist"

    def __init__(self, env_id: str, weights: dict[str, float], ours: Any) -> None:
        import torch
        from mjlab.envs import ManagerBasedRlEnv, manager_based_rl_env
        from mjlab.tasks.registry import load_env_cfg
        from mjlab.terrains import TerrainGenerator

        from pyfastenv.integrations.mjlab import Simulation

        class UnderOurControls(Simulation):
            def step(self) -> None:
                self.data.ctrl[0] = torch.as_tensor(ours.data.ctrl.astype(np.float32))
                self._take_over()
                self.batch.ctrl[0] = ours.data.ctrl
                super().step()

            def _sense_kernel(self) -> None:
                super()._sense_kernel()
                for sensor in self._sensor_context.raycast_sensors if is_rough else ():
                    for ray, (x, y, z) in enumerate(sensor._ray_pnt.numpy()[0]):
                        if z < ground_height(ours.task.model, ours.task.ground, x, y):
                            sensor._ray_dist.numpy()[0, ray] = -1.0  # as Warp's, from below

        is_rough = hasattr(ours.task, "ground")
        cfg = load_env_cfg(env_id)
        cfg.scene.num_envs, cfg.auto_reset, cfg.curriculum = 1, False, {}
        cfg.observations["actor"].enable_corruption = False
        if self.command == "motion":
            cfg.commands["motion"].motion_file = ours.task.motion_file
        cfg.events = {name: e for name, e in cfg.events.items() if e.mode == "reset"}
        for name, weight in weights.items():
            if name in cfg.rewards:
                cfg.rewards[name].weight = weight
        manager_based_rl_env.Simulation = UnderOurControls
        self._torch, self._ours = torch, ours
        compile_ground = lay_our_ground if is_rough else TerrainGenerator.compile
        with patch.object(TerrainGenerator, "compile", compile_ground):
            self._env = ManagerBasedRlEnv(cfg, device="cpu")
        self._robot = self._env.scene["robot"].data
        self._command = self._env.command_manager.get_term(self.command)
        self._command._resample_command = lambda env_ids: self._take_command()
        self.terms = self._env.reward_manager.active_terms

    def _tensor(self, values: Any) -> Any:
        return self._torch.as_tensor(np.asarray(values, np.float32))[None]

    def _drawn(self) -> float:
        """Changes where we draw a command."""
        return float(self._ours.task._velocity_until)

    def _take_command(self) -> None:
        """What we have drawn, in the place of what it would draw."""
        task, term = self._ours.task, self._command
        is_new = task.drawn_until != task._velocity_until
        heading, turns, forward = task.coming if is_new else task.drawn
        velocity = task.velocity.copy()
        term.is_standing_env[:] = bool(not velocity.any())
        term.is_heading_env[:] = bool(turns <= task.heading_share)
        if forward <= task.forward_share:
            velocity[:] = max(abs(velocity[0]), 0.3), 0.0, 0.0
        term.vel_command_b[:] = self._tensor(velocity)
        term.heading_target[:] = float(heading)

    def _show_state(self) -> None:
        """Takes over our state, every bit of it."""
        sim = self._env.sim
        mujoco.mj_getState(self._ours.task.model, self._ours.data, sim.batch.state[0], STATE)
        sim._show_state()

    def reset(self) -> None:
        """Begins an episode in our state, with our encoders' errors and command."""
        self._env.reset()
        self._robot.encoder_bias[:] = self._tensor(self._ours.task.bias)
        self._show_state()
        self._env.sim.forward()
        self._env.command_manager.compute(dt=0.0)
        self._env.sim.sense()
        self._drawn_until = self._drawn()
        self._env._manual_reset_pending[:] = False
        self._show_state()  # without the warm start that forward has left

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, dict[str, float]]:
        """Steps after ours: observations, reward, whether it has ended, terms by name."""
        until = self._drawn()
        self._command.time_left[:] = 100.0 if until == self._drawn_until else 0.0
        self._drawn_until = until
        obs, reward, ended, *_ = self._env.step(self._tensor(action))
        self.targets = self._robot.data.ctrl.numpy()[0]
        terms = self._env.reward_manager._step_reward.numpy()[0]
        self._env._manual_reset_pending[:] = False
        return (
            {name: values.numpy()[0] for name, values in obs.items()},
            float(reward[0]),
            bool(ended[0]),
            dict(zip(self.terms, map(float, terms), strict=True)),
        )

    def ends(self) -> dict[str, bool]:
        """What has ended the episode in the last step, and what has not, by name."""
        manager = self._env.termination_manager
        names = [name for name in manager.active_terms if name != "time_out"]
        return {name: bool(manager.get_term(name)[0]) for name in names}

    def has_our_state(self) -> bool:
        """Whether the physics has made the same of it, every bit."""
        row = np.empty_like(self._env.sim.batch.state[0])
        mujoco.mj_getState(self._ours.task.model, self._ours.data, row, STATE)
        return bool(np.array_equal(row, self._env.sim.batch.state[0]))


class Following(Theirs):
    """One that follows a motion, of which we say in which frames it begins."""

    command = "motion"

    def _drawn(self) -> float:
        return 0.0

    def _take_command(self) -> None:
        frame = int(self._ours.task.frame)
        self._command.time_steps[:] = frame - 2 * self._resets  # which moves it on twice
        if not self._resets:
            self._show_state()
            self._command._pending_forward = self._is_put_back = True

    def reset(self) -> None:
        self._resets = True
        super().reset()
        self._resets = False

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, dict[str, float]]:
        self._is_put_back = False
        results = super().step(action)
        if self._is_put_back:
            self._show_state()  # as in reset
        return results


def compare(env_id: str, num_steps: int, episode: int = EPISODE) -> dict[str, Any]:
    """Steps both, in episodes of so many steps at most; terms of weight 0 have weight 1.

    Returns:
        The greatest distance of any control, of any observation, of the reward and of each term,
        relative to what is above 1; how often episodes ended; ``idle``: terms that were zero all
        the time.

    Raises:
        AssertionError: They differ in what has ended an episode, or in a bit of the physics.
    """
    follows = env_id in TRACKING
    own: dict[str, Any] = {"randomise": False, "observation_noise": False, "every_substep": True}
    own["push_velocity"] = (0.0,) * 6
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mjlab's own dependencies
        if follows:
            own["motion_file"] = str(own_motion(Path(folder) / "motion.npz"))
        else:
            own["velocity_every"] = (0.3, 0.8)
        params = pyfastenv.debug(env_id, **own).unwrapped.task.params
        names = [name.removesuffix("_weight") for name in params if name.endswith("_weight")]
        weights = {name: params[f"{name}_weight"] or 1.0 for name in names}
        own |= {f"{name}_weight": weight for name, weight in weights.items()}
        ours: Any = pyfastenv.debug(env_id, **own).unwrapped
        theirs = (Following if follows else Theirs)(env_id, weights, ours)
    rng, gaps, idle, falls, left = np.random.default_rng(0), counts.Gaps(), set(theirs.terms), 0, 0
    dt, count, is_rough = ours.task.dt, len(ours.task.pose), hasattr(ours.task, "ground")
    scans = 187 * is_rough  # behind the rest in mjlab, of the policy's
    first = 9 + 2 * count  # of the critic's numbers in mjlab: actions and command stand behind

    for i in range(num_steps):
        if left == 0:
            if is_rough:
                ours.task.column, ours.task.level = rng.integers(1, 8), rng.integers(0, 10)
            ours.reset(seed=None if i else 0)  # what a seed would forget, mjlab does not
            kind, size, left = rng.random(), rng.uniform(0.05, 2.0), episode
            ours.data.qvel[3:6] += (kind < 0.3) * rng.uniform(-10.0, 10.0, 3)
            ours.data.qpos[2] += (0.2 < kind < 0.5) * rng.uniform(0.0, 0.3)
            ours.data.qpos[7:] += (kind > 0.8) * rng.uniform(-0.6, 0.6, count)
            (ours.task.look if follows else ours.task.measure_heights)(ours.data)
            theirs.reset()
        action = rng.normal(0.0, size, count)
        obs, reward, ended, _, infos = ours.step(action)
        seen, their_reward, their_end, terms = theirs.step(action)
        assert theirs.has_our_state(), f"step {i}: other physics"
        assert ended == their_end, f"step {i}"
        ends = theirs.ends()
        assert ends == {name: bool(infos[f"terminated_{name}"]) for name in ends}, f"step {i}"
        gaps.note("controls", ours.data.ctrl, theirs.targets)
        gaps.note("policy", np.roll(obs["policy"], -scans), seen["actor"])
        critic = obs["critic"]
        if not follows:
            parts = (count + 3, count + 3 + first, len(critic) - scans)
            shared, true, feet, scan = np.split(critic, parts)
            critic = np.concatenate((true, shared, scan, feet))
        gaps.note("critic", critic, seen["critic"])
        gaps.note("reward", reward, their_reward)
        for name, value in terms.items():
            gaps.note(name, infos[f"reward_{name}"] / dt, value)
            idle -= {name} if value != 0.0 else set()
        falls += ended
        left = 0 if ended else left - 1
    return {"falls": falls, "gaps": gaps, "idle": sorted(idle)}


if __name__ == "__main__":
    counts.run("mjlab_parity", MJLAB, compare, __doc__)
