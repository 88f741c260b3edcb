"""mjlab's tasks as own tasks; `make parity NAME=mjlab` and the integration's tests compare them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from plain_python import beside_plain

import pyfastenv
from pyfastenv.suites import MJLAB, packages, tasks
from pyfastenv.tasks.language.find import load_task

GO1, G1 = list(MJLAB)[:2]
needs_mjlab = pytest.mark.skipif(find_spec("mjlab") is None, reason="needs mjlab's models")
QUIET: dict[str, Any] = {"randomise": False, "push_velocity": (0.0,) * 6}


def test_without_mjlab_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"mjlab: pip install --no-deps mjlab==1\.6\.0"):
        pyfastenv.debug(GO1)


@needs_mjlab
@pytest.mark.parametrize("env_id", [GO1, pytest.param(G1, marks=pytest.mark.slow)])
def test_rides_lanes_with_the_bits_of_plain_python(env_id: str) -> None:
    count = load_task(tasks()[env_id]["task"]).action_space.shape[0]
    own: dict[str, Any] = {"velocity_every": (0.1, 0.3), "push_every": (0.1, 0.3)}
    own["action_space"] = gymnasium.spaces.Box(-0.5, 0.5, (count,), np.float64)
    own["observation_dict"] = False
    for pair in beside_plain(env_id, 60, num_envs=9, pool={"engine": "lanes"}, **own):
        stats = pair.envs.stats()
    assert stats["lane_steps"] >= stats["steps"] - 9


@needs_mjlab
@pytest.mark.slow
def test_g1_starts_and_moves_in_plain_python() -> None:
    env = pyfastenv.debug(G1)
    obs, _ = env.reset(seed=0)
    assert {name: values.shape for name, values in obs.items()} == {
        "policy": (99,),
        "critic": (111,),
    }


@needs_mjlab
def test_commands_are_of_mjlabs_kinds_and_held_ones_are_not() -> None:
    env: Any = pyfastenv.debug(GO1, velocity_every=0.02, **QUIET).unwrapped
    env.reset(seed=0)
    told, raw = [], []
    for _ in range(600):
        shown, drawn = env.task.told(env.data), env.task.velocity.copy()
        info = env.step(np.zeros(12))[4]
        assert (info["command"] == shown).all()  # a reward is for what the policy has seen
        told.append(shown), raw.append(drawn)
        if env.task.drawn[1] <= 0.3 and drawn.any():
            forward = np.zeros(3)
            mujoco.mju_rotVecQuat(forward, np.array([1.0, 0.0, 0.0]), env.data.qpos[3:7])
            left = env.task.drawn[0] - np.arctan2(forward[1], forward[0])
            left = (left + np.pi) % (2.0 * np.pi) - np.pi
            assert shown[2] == pytest.approx(np.clip(0.5 * left, -0.5, 0.5), abs=0.02)
    still = ~np.any(raw, axis=1)
    moving = np.array(told)[~still]
    ahead = moving[:, 1] == 0.0
    assert np.mean(still) == pytest.approx(0.1, abs=0.05)
    assert np.mean(ahead) == pytest.approx(0.2, abs=0.06) and (moving[ahead, 0] >= 0.3).all()
    straight = moving[ahead, 2] == 0.0  # but where a heading is wanted
    assert np.mean(straight) == pytest.approx(0.7, abs=0.12)
    env.set_command("velocity", (0.1, 0.2, 0.3))
    env.step(np.zeros(12))
    env.step(np.zeros(12))
    assert (env.task.told(env.data) == (0.1, 0.2, 0.3)).all()


@needs_mjlab
def test_contacts_of_every_substep_change_terms_of_contacts_alone() -> None:
    envs: list[Any] = [
        pyfastenv.debug(GO1, every_substep=each, **QUIET).unwrapped for each in (False, True)
    ]
    rng, differs = np.random.default_rng(0), set[str]()
    for env in envs:
        env.reset(seed=3)
    for _ in range(40):
        action = rng.normal(0.0, 0.7, 12)
        once, each = (env.step(action)[4] for env in envs)
        assert (envs[0].data.qpos == envs[1].data.qpos).all()
        differs |= {n for n in once if n.startswith("reward_") and once[n] != each[n]}
        times = envs[1].task.air_time / 0.005
        assert times == pytest.approx(np.round(times), abs=1e-6)
    assert differs and differs <= {"reward_foot_swing_height", "reward_soft_landing"}


@needs_mjlab
def test_pushes_add_to_all_velocities_and_friction_is_the_feet_s() -> None:
    envs = pyfastenv.make_vec(GO1, 64, push_every=(0.02, 0.02), observation_dict=False)
    envs.reset(seed=0)
    obs = envs.step(np.zeros((64, 12)))[0]
    calm = pyfastenv.make_vec(GO1, 64, push_velocity=(0.0,) * 6, observation_dict=False)
    calm.reset(seed=0)
    gap = (obs - calm.step(np.zeros((64, 12)))[0])[:, envs.observation_groups["true_base_ang_vel"]]
    assert 0.4 < np.abs(gap).max() < 1.0
    friction = envs.get_model_field("geom_friction")
    feet = [envs.task.model.geom(f"robot/{foot}_foot_collision").id for foot in ("FR", "RL")]
    assert (friction[:, feet[0]] == friction[:, feet[1]]).all()
    sliding, spinning = friction[:, feet[0], 0], friction[:, feet[0], 1]
    assert sliding.min() >= 0.3 and sliding.max() <= 1.5
    assert spinning.min() >= 1e-4 and spinning.max() <= 2e-2
    assert np.median(spinning) == pytest.approx(np.sqrt(1e-4 * 2e-2), rel=1.0)
