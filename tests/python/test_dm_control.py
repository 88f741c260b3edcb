"""dm_control's suite as own tasks: dm_control's bits from the same state, and its starts."""

from typing import Any

import numpy as np
import pytest
from distributions import assert_distributed_alike
from dm_control_suite import NUM_STARTS, SIGNIFICANCE, compare, make, starts
from parity import compare_engines, step_both

import pyfastenv
from pyfastenv.suites import DM_CONTROL, tasks
from pyfastenv.suites.dm_control import rewards
from pyfastenv.tasks.language.find import load_task

pytest.importorskip("dm_control")

# models that MuJoCo's own compiler warns of (settotalmass)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

LARGE = ("Dog", "HumanoidCMU", "Stacker", "Manipulator")  # minutes to compile and to compare
IDS = list(DM_CONTROL)
SMALL_IDS = [env_id for env_id in IDS if not env_id.startswith(LARGE)]
# the first and the last task of each domain; the slow test has them all
TWO_OF_A_DOMAIN = {
    **{DM_CONTROL[env_id][0]: env_id for env_id in reversed(SMALL_IDS)},
    **{f"last of {DM_CONTROL[env_id][0]}": env_id for env_id in SMALL_IDS},
}
# whose models lanes do not do
LEFT_TO_MJ_STEP = ("Dog", "HumanoidCMU", "QuadrupedEscape")
IN_LANES = [env_id for env_id in IDS if not env_id.startswith(LEFT_TO_MJ_STEP)]
# the last, whose model has as many joints as any of its domain
ONE_OF_A_DOMAIN = set({DM_CONTROL[e][0]: e for e in IN_LANES if not e.startswith(LARGE)}.values())


def test_every_task_of_dm_control_is_there() -> None:
    from dm_control import suite

    assert sorted(DM_CONTROL.values()) == sorted(suite.ALL_TASKS)
    for env_id in DM_CONTROL:
        task = load_task(tasks()[env_id]["task"])
        assert task.__name__ == env_id.removesuffix("-v1")
        assert task.max_episode_steps == tasks()[env_id]["max_episode_steps"]


@pytest.mark.parametrize("env_id", sorted({*TWO_OF_A_DOMAIN.values()}))
def test_equals_dm_control(env_id: str) -> None:
    assert compare(env_id, 40, restart_every=20) > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("env_id", IDS)
def test_equals_dm_control_for_1_000_steps(env_id: str) -> None:
    assert compare(env_id, 1_000, seed=1) > 1_000


# ---- engines -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env_id",
    [e if e in ONE_OF_A_DOMAIN else pytest.param(e, marks=pytest.mark.slow) for e in IN_LANES],
)
def test_lanes_and_mj_step_are_the_same(env_id: str, poison: None) -> None:
    stats = compare_engines(env_id)
    assert stats["lane_steps"] > 0.95 * stats["steps"] > 400


@pytest.mark.parametrize("env_id", [e for e in SMALL_IDS if e.startswith(LEFT_TO_MJ_STEP)])
def test_models_that_lanes_do_not_do(env_id: str) -> None:
    stats = pyfastenv.make_vec(env_id, 1).stats()
    assert stats["engine"] == "mujoco"
    assert "lanes do not do " in stats["engine_reason"]


# ---- starts --------------------------------------------------------------------------------------


def check_starts(env_id: str, count: int) -> None:
    assert_distributed_alike(*starts(env_id, count), SIGNIFICANCE)


@pytest.mark.parametrize("env_id", ["AcrobotSwingup-v1", "PointMassHard-v1", "ReacherEasy-v1"])
def test_starts_are_distributed_as_dm_controls(env_id: str) -> None:
    check_starts(env_id, 1_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("env_id", IDS)
def test_all_starts_are_distributed_as_dm_controls(env_id: str) -> None:
    check_starts(env_id, NUM_STARTS)


def test_other_starts_are_seen() -> None:
    ours, theirs = starts("CartpoleBalance-v1", 1_000)
    assert_distributed_alike(ours, theirs, SIGNIFICANCE)
    with pytest.raises(AssertionError):
        assert_distributed_alike(1.2 * ours, theirs, SIGNIFICANCE)


# ---- rewards.tolerance ---------------------------------------------------------------------------

SIGMOIDS = {
    rewards.GAUSSIAN: "gaussian",
    rewards.LINEAR: "linear",
    rewards.QUADRATIC: "quadratic",
    rewards.LONG_TAIL: "long_tail",
    rewards.RECIPROCAL: "reciprocal",
}


@pytest.mark.parametrize("sigmoid", SIGMOIDS)
@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_tolerance_is_dm_controls(sigmoid: int, margin: float) -> None:
    from dm_control.utils.rewards import tolerance

    rng = np.random.default_rng(0)
    for _ in range(300):
        x = rng.normal(0.0, 2.0, 7)
        bounds = (-0.3, np.inf) if rng.random() < 0.3 else tuple(np.sort(rng.normal(size=2)))
        value = rng.uniform(0.01, 0.9)
        theirs = tolerance(x, bounds, margin, SIGMOIDS[sigmoid], value)
        ours = rewards.tolerances(x, bounds, margin, sigmoid, value)
        np.testing.assert_array_equal(ours, theirs)
        one = tolerance(x[0], bounds, margin, SIGMOIDS[sigmoid], value)
        assert rewards.tolerance(x[0], bounds, margin, sigmoid, value) == one


# ---- the rest ------------------------------------------------------------------------------------


def test_ids_and_parameters() -> None:
    import gymnasium

    envs = pyfastenv.make_vec("CheetahRun-v1", 2, speed=5.0)
    assert envs.task.speed == 5.0
    for given, limit in ((None, 1000), (2000, 2000), (-1, 2500)):
        env = gymnasium.make("pyfastenv/PendulumSwingup-v1", max_episode_steps=given)
        obs, _ = env.reset(seed=0)
        assert obs.shape == (3,)
        ended = (any(env.step(np.zeros(1))[2:4]) for _ in range(2500))
        assert next((step for step, end in enumerate(ended, 1) if end), 2500) == limit
        env.close()


def test_a_start_is_not_sought_for_ever() -> None:
    env = pyfastenv.debug("BallInCupCatch-v1")
    plain: Any = env.unwrapped
    plain.task.model.geom_margin[:] = 10.0
    with pytest.raises(ValueError, match="every start that was drawn has contacts"):
        env.reset(seed=0)


def test_an_episode_ends_as_dm_controls_does() -> None:
    envs = make("PendulumSwingup-v1")
    envs.reset(seed=0)
    for step in range(1, 1001):
        *_, terminations, truncations, _ = envs.step(np.zeros((1, 1)))
        assert not terminations[0]
        assert truncations[0] == (step == 1000)


def test_lqr_terminates_at_rest() -> None:
    env = pyfastenv.debug("LqrLqr21-v1")
    env.reset(seed=0)
    assert not env.step(np.zeros(1))[2]
    data = env.unwrapped.data
    data.qpos[:], data.qvel[:] = 1e-8, 0.0
    assert env.step(np.zeros(1))[2]


def test_targets_are_each_environments_own() -> None:
    envs = pyfastenv.make_vec("ReacherEasy-v1", 3, num_threads=1, autoreset_mode="Disabled")
    twins = pyfastenv.make_vec("ReacherEasy-v1", 3, num_threads=3, autoreset_mode="Disabled")
    obs, _ = envs.reset(seed=0)
    twins.reset(seed=9)
    twins.set_state(envs.get_state())
    step_both(envs, twins, 5)
    to_target = envs.observation_groups["to_target"]
    assert len(np.unique(obs[:, to_target], axis=0)) == 3
