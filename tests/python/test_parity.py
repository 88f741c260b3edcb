"""Bit-identity with gymnasium, for every environment and autoreset mode."""

import inspect
import os
import pathlib
import re

import gymnasium
import numpy as np
import pytest
from numpy.lib.introspect import opt_func_info
from parity import GYMNASIUM_IDS, MODES, assert_same, compare, make_gymnasium, step_both
from scripts import run_script

import pyfastenv
from pyfastenv.vector.specs import resolve_xml_file

LONG = ["HalfCheetah-v5", "Swimmer-v4", "CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", GYMNASIUM_IDS)
def test_equals_gymnasium(env_id: str, mode: str) -> None:
    """Some episodes to their own limit; every environment's and mode's resets at a nearer one."""
    if mode == "NextStep" and env_id in LONG:
        assert compare(env_id, mode, 1_250, num_envs=2, num_threads=1, reset_every=1_103) >= 2
    else:
        assert compare(env_id, mode, 150, reset_every=83, max_episode_steps=50) >= 4


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("env_id", GYMNASIUM_IDS)
def test_equals_gymnasium_for_a_million_steps(env_id: str) -> None:
    compare(env_id, "NextStep", 125_000, num_envs=8, seed=1, reset_every=10_007)


# NumPy, its BLAS and lanes take what AVX2 alone allows
WITHOUT_AVX512 = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "PYFASTENV_LANES": "4",
}


def test_equals_gymnasium_on_a_processor_with_fewer_instructions() -> None:
    """Where another loop computes sines, and another kernel Reacher's and Pusher's norms."""
    loops = opt_func_info(func_name="^sin$")["sin"].values()
    if not any("X86_V4" in loop["current"] for loop in loops):
        pytest.skip("this processor has no AVX-512 to do without")
    code = """
import sys
from parity import compare
for env_id in sys.argv[1:]:
    compare(env_id, "NextStep", 150, reset_every=83, max_episode_steps=50)
"""
    env = {**os.environ, **WITHOUT_AVX512, "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    run_script(code, "Reacher-v5", "Pusher-v5", "Hopper-v5", "Acrobot-v1", env=env)


VARIANTS = [
    ("HalfCheetah-v5", {"forward_reward_weight": 2.5, "ctrl_cost_weight": 0.3, "frame_skip": 3}),
    ("HalfCheetah-v5", {"exclude_current_positions_from_observation": False}),
    ("HalfCheetah-v4", {"reset_noise_scale": 0.02, "ctrl_cost_weight": 0.01}),
    ("Ant-v5", {"main_body": "torso", "contact_force_range": (-0.5, 0.3), "healthy_reward": 0.7}),
    ("Ant-v5", {"include_cfrc_ext_in_observation": False, "terminate_when_unhealthy": False}),
    ("Ant-v5", {"main_body": 3, "exclude_current_positions_from_observation": False}),
    ("Ant-v4", {"use_contact_forces": True, "contact_cost_weight": 0.01}),
    ("Ant-v4", {"healthy_z_range": (0.4, 0.8), "terminate_when_unhealthy": False}),
    ("Hopper-v5", {"healthy_angle_range": (-0.1, 0.3), "healthy_z_range": (0.9, 1.5)}),
    ("Hopper-v5", {"terminate_when_unhealthy": False, "healthy_state_range": (-3.0, 3.0)}),
    ("Hopper-v4", {"terminate_when_unhealthy": False, "reset_noise_scale": 0.01}),
    ("Walker2d-v5", {"healthy_angle_range": (-0.4, 0.4), "ctrl_cost_weight": 0.02}),
    ("Walker2d-v4", {"exclude_current_positions_from_observation": False}),
    ("Humanoid-v5", {"include_cinert_in_observation": False, "healthy_reward": 2.0}),
    ("Humanoid-v5", {"include_cvel_in_observation": False, "contact_cost_range": (0.0, 0.001)}),
    ("Humanoid-v5", {"include_qfrc_actuator_in_observation": False, "contact_cost_weight": 1e-3}),
    ("Humanoid-v5", {"include_cfrc_ext_in_observation": False, "terminate_when_unhealthy": False}),
    ("Humanoid-v4", {"exclude_current_positions_from_observation": False}),
    ("HumanoidStandup-v5", {"impact_cost_range": (0.0, 0.002), "uph_cost_weight": 3.0}),
    ("HumanoidStandup-v5", {"include_cfrc_ext_in_observation": False, "impact_cost_weight": 1e-4}),
    ("InvertedPendulum-v5", {"reset_noise_scale": 0.1, "frame_skip": 4}),
    ("InvertedDoublePendulum-v5", {"healthy_reward": 5.0, "reset_noise_scale": 0.02}),
    ("Pusher-v5", {"reward_near_weight": 0.2, "reward_dist_weight": 3.0}),
    ("Pusher-v5", {"reward_control_weight": 0.7}),
    ("Reacher-v5", {"reward_dist_weight": 0.4, "reward_control_weight": 0.3}),
    ("Swimmer-v5", {"exclude_current_positions_from_observation": False, "frame_skip": 7}),
    ("Swimmer-v4", {"forward_reward_weight": 3.0, "ctrl_cost_weight": 0.1}),
    ("CartPole-v1", {"sutton_barto_reward": True}),
    ("Pendulum-v1", {"g": 9.81}),
    ("MountainCar-v0", {"goal_velocity": 0.01}),
    ("MountainCarContinuous-v0", {"goal_velocity": 0.01}),
]


@pytest.mark.parametrize(("env_id", "kwargs"), VARIANTS, ids=lambda v: str(v)[:40])
def test_equals_gymnasium_with_other_arguments(env_id: str, kwargs: dict) -> None:
    compare(env_id, "NextStep", 100, max_episode_steps=40, **kwargs)


def integer_arguments(env_id: str) -> dict[str, object]:
    """Every number and range that gymnasium's class takes, as integers."""
    entry_point = gymnasium.registry[env_id].entry_point
    assert isinstance(entry_point, str)
    cls = gymnasium.envs.registration.load_env_creator(entry_point)
    given: dict[str, object] = {}
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        if isinstance(parameter.default, float) or name.endswith("_weight"):
            given[name] = 0 if name == "reset_noise_scale" else 2
        elif name.endswith("_range"):
            given[name] = (-1, 3)
    return given


@pytest.mark.parametrize("env_id", GYMNASIUM_IDS)
def test_integer_arguments_leave_integers_in_the_infos(env_id: str) -> None:
    given = integer_arguments(env_id)
    for mode in ("NextStep", "SameStep"):
        compare(env_id, mode, 30, max_episode_steps=12, **given)


@pytest.mark.parametrize(
    "env_id", ["HalfCheetah-v5", "Ant-v4", "Reacher-v5", "Pendulum-v1", "MountainCarContinuous-v0"]
)
def test_float64_actions_are_used_as_they_are(env_id: str) -> None:
    compare(env_id, "SameStep", 150, dtype=np.float64, max_episode_steps=60)


@pytest.mark.parametrize("env_id", ["Hopper-v5", "HalfCheetah-v5", "Acrobot-v1"])
@pytest.mark.parametrize("mode", MODES)
def test_failure_and_truncation_on_the_same_step(env_id: str, mode: str) -> None:
    # a limit of 1 makes every step the last: terminations there are terminations and truncations
    compare(env_id, mode, 30, max_episode_steps=1)


def test_own_model_file(tmp_path: pathlib.Path) -> None:
    xml = pathlib.Path(gymnasium.__file__).parent / "envs/mujoco/assets/hopper.xml"
    text = xml.read_text().replace('damping="1"', 'damping="2"')
    assert text != xml.read_text()
    own = tmp_path / "my_hopper.xml"
    own.write_text(text)
    compare("Hopper-v5", "NextStep", 100, xml_file=str(own))
    envs = pyfastenv.make_vec("Hopper-v5", xml_file=own)
    default = pyfastenv.make_vec("Hopper-v5")
    envs.reset(seed=0)
    default.reset(seed=0)
    actions = np.ones((1, 3), np.float32)
    assert not np.array_equal(envs.step(actions)[0], default.step(actions)[0])


@pytest.mark.parametrize("when", [0, 3])
@pytest.mark.parametrize("env_id", ["Humanoid-v5", "Humanoid-v4"])
def test_masses_count_from_the_next_step_on(env_id: str, when: int) -> None:
    envs = pyfastenv.make_vec(env_id, 3)
    twins = gymnasium.make_vec(env_id, 3, vectorization_mode="sync")
    assert_same(envs.reset(seed=0), twins.reset(seed=0))
    masses = envs.get_model_field("body_mass")
    masses[:, 2] *= [2.0, 3.0, 4.0]
    actions = np.full((3, 17), 0.1, np.float32)
    for step in range(6):
        if step == when:
            envs.set_model_field("body_mass", masses)
            for twin, mass in zip(twins.envs, masses, strict=True):
                twin.unwrapped.model.body_mass[:] = mass
        assert_same(envs.step(actions), twins.step(actions))


@pytest.mark.parametrize("engine", ["auto", "mujoco"])
@pytest.mark.parametrize("env_id", ["Humanoid-v5", "HumanoidStandup-v5"])
def test_a_model_without_tendons(tmp_path: pathlib.Path, env_id: str, engine: str) -> None:
    text = pathlib.Path(resolve_xml_file("humanoid.xml")).read_text()
    own = tmp_path / "bare.xml"
    own.write_text(re.sub(r"<tendon>.*</tendon>", "", text, flags=re.DOTALL))
    envs = pyfastenv.make_vec(env_id, 3, xml_file=str(own), engine=engine)
    twins = gymnasium.make_vec(env_id, 3, vectorization_mode="sync", xml_file=str(own))
    assert_same(envs.reset(seed=0), twins.reset(seed=0))
    actions = np.full((3, 17), 0.1, np.float32)
    for _ in range(5):
        mine, theirs = envs.step(actions), twins.step(actions)
        assert_same(mine, theirs)
    assert mine[4]["tendon_length"].shape == (3, 0)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("CartPole-v1", {"low": -0.2, "high": 0.1}),
        ("Acrobot-v1", {"high": 0.3}),
        ("MountainCar-v0", {"low": -0.5}),
        ("MountainCarContinuous-v0", {"low": -0.9, "high": -0.8}),
        ("Pendulum-v1", {"x_init": 0.1, "y_init": 0.2}),
    ],
)
def test_reset_bounds(env_id: str, options: dict) -> None:
    ours = pyfastenv.make_vec(env_id, 3)
    theirs = make_gymnasium(env_id, 3, "NextStep")
    assert_same(ours.reset(seed=5, options=options), theirs.reset(seed=5, options=dict(options)))
    step_both(ours, theirs, 20)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32, 2**63 + 5, 2**64 + 1, 2**127 + 3, 2**200 + 9])
def test_seeds_of_any_size(seed: int) -> None:
    ours = pyfastenv.make_vec("Ant-v5", 2)
    theirs = make_gymnasium("Ant-v5", 2, "NextStep")
    assert_same(ours.reset(seed=seed), theirs.reset(seed=seed))
    assert ours.np_random_seed == theirs.np_random_seed
    for mine, other in zip(ours.np_random, theirs.np_random, strict=True):
        assert mine.random() == other.random()


@pytest.mark.parametrize("env_id", GYMNASIUM_IDS)
def test_spaces_and_spec(env_id: str) -> None:
    ours = pyfastenv.make_vec(env_id, 3)
    theirs = make_gymnasium(env_id, 3, "NextStep")
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert ours.single_action_space == theirs.single_action_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata["render_fps"] == theirs.metadata["render_fps"]
    spec = gymnasium.spec(env_id)
    assert ours.spec is not None
    assert ours.spec.max_episode_steps == ours.max_episode_steps == spec.max_episode_steps
    assert ours.spec.reward_threshold == spec.reward_threshold


# ---- Acrobot's angles ----------------------------------------------------------------------------


def set_acrobot(envs: pyfastenv.FastVectorEnv, states: np.ndarray) -> None:
    """Writes (angles, velocities) and "not fresh from a reset" into the snapshots' rows."""
    snapshots = envs.get_state()
    end = envs.state_bytes - 6 * 4  # the row's five doubles stand before the observation
    rows = np.column_stack([states, np.zeros(len(states))])
    snapshots[:, end - 5 * 8 : end] = rows.view(np.uint8)
    envs.set_state(snapshots)


@pytest.mark.parametrize("scale", [3.0, 1e2, 1e4, 1e6])
def test_acrobot_wraps_large_angles_as_gymnasium_does(scale: float) -> None:
    ours = pyfastenv.make_vec("Acrobot-v1", 4)
    theirs = make_gymnasium("Acrobot-v1", 4, "NextStep")
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, (4, 4)) * np.array([scale, scale, 3.0, 3.0])
    set_acrobot(ours, states)
    for env, state in zip(theirs.envs, states, strict=True):
        env.unwrapped.state = state.copy()  # type: ignore[attr-defined]
    for _ in range(5):
        actions = np.zeros(4, np.int64)
        assert_same(ours.step(actions), theirs.step(actions))


@pytest.mark.parametrize("bad", [1e12, -1e17, 1e300, np.inf, -np.inf, np.nan])
def test_acrobot_ends_for_angles_that_gymnasium_never_wraps(bad: float) -> None:
    envs = pyfastenv.make_vec("Acrobot-v1", 2)
    envs.reset(seed=1)
    set_acrobot(envs, np.array([[bad, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1]]))
    actions = np.zeros(2, np.int64)
    obs, rewards, terminations, _, infos = envs.step(actions)
    assert np.isfinite(obs).all()
    assert not terminations[1]
    if np.isfinite(bad):
        assert "diverged" not in infos
    else:  # hanging at rest, and a new episode next
        assert infos["diverged"].tolist() == [True, False]
        assert terminations[0]
        assert rewards[0] == 0.0
        np.testing.assert_array_equal(obs[0], [1, 0, 1, 0, 0, 0])
    assert np.isfinite(envs.step(actions)[0]).all()
