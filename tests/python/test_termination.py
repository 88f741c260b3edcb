"""The termination rules against what the environments themselves say."""

import importlib
import inspect
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from parity import random_actions

import pyfastenv
from pyfastenv.algorithms.mbpo import termination
from pyfastenv.algorithms.mbpo.termination import has_termination_rule, termination_rule
from pyfastenv.vector.specs import assets_dir

RULE_IDS = [env_id for env_id in pyfastenv.env_ids() if has_termination_rule(env_id)]
DISCRETE_IDS = ["Acrobot-v1", "CartPole-v0", "CartPole-v1", "MountainCar-v0"]
NEVER = {"HalfCheetah", "HalfCheetahDir", "HalfCheetahVel", "HumanoidStandup"}
NEVER |= {"Pendulum", "Pusher", "Reacher", "Swimmer"}
DOUBLE_PENDULUM_BAND = 1e-4  # [m] around a height of 1; see the module's docstring

NUM_ENVS = 64
ENDS = 300
POSITIONS = {"exclude_current_positions_from_observation": False}
# starts so wild that short rollouts have hundreds of ends
WILD: dict[str, dict[str, Any]] = {
    "Ant": {"reset_noise_scale": 0.8},
    "AntDir": {"reset_noise_scale": 0.8},
    "AntGoal": {"reset_noise_scale": 0.8},
    "AntVel": {"reset_noise_scale": 0.8},
    "Hopper": {"reset_noise_scale": 0.3},
    "Humanoid": {"reset_noise_scale": 1.0},
    "Walker2d": {"reset_noise_scale": 1.0},
}
HIDDEN = [f"include_{name}_in_observation"
          for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")]  # fmt: skip
# every argument that a rule reads, one that it must not stumble over, and columns that move
OTHER: list[tuple[str, dict[str, Any]]] = [
    ("Ant-v5", {"healthy_z_range": (0.5, 0.8), **POSITIONS}),
    ("Ant-v5", {"healthy_z_range": [0.72, math.inf], "include_cfrc_ext_in_observation": False}),
    ("Ant-v4", {"healthy_z_range": (0.3, 0.75), "use_contact_forces": True, **POSITIONS}),
    ("Hopper-v5", {"healthy_state_range": (-4.0, 5.0), "reset_noise_scale": 0.01}),
    ("Hopper-v5", {"healthy_state_range": (-10.0, 10.0), "healthy_z_range": (0.0, 9.0)}),
    ("Hopper-v5", {"healthy_z_range": np.array([1.1, 1.4]), **POSITIONS}),
    ("Hopper-v4", {"healthy_angle_range": (-0.05, 0.1), **POSITIONS}),
    ("Humanoid-v5", {"healthy_z_range": (1.35, 1.5), **POSITIONS}),
    ("Humanoid-v5", {"healthy_z_range": (1.3, 1.45), **dict.fromkeys(HIDDEN, False)}),
    ("Humanoid-v4", {"healthy_z_range": (1.3, np.float32(1.5)), **POSITIONS}),
    ("HumanoidStandup-v5", POSITIONS),
    ("HalfCheetah-v5", POSITIONS),
    ("Swimmer-v5", POSITIONS),
    ("InvertedPendulum-v5", {"reset_noise_scale": 0.25}),
    ("InvertedDoublePendulum-v5", {"reset_noise_scale": 0.5}),
    ("InvertedDoublePendulum-v5", {"xml_file": "inverted_double_pendulum.xml"}),
    ("MountainCarContinuous-v0", {"goal_velocity": 0.02}),
    ("Walker2d-v5", {"healthy_z_range": (1.15, 1.3), **POSITIONS}),
    ("Walker2d-v4", {"healthy_angle_range": (-0.1, 0.2)}),
]
UNHEALTHY = [
    env_id for env_id in RULE_IDS if env_id.startswith(("Ant-", "Hopper", "Humanoid-", "Walker2d"))
]


class Steps(NamedTuple):
    next_obs: torch.Tensor  # (T, num_envs, obs_size): not those of the next episodes
    terminations: torch.Tensor  # (T, num_envs)


def make(env_id: str, **kwargs: Any) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(env_id, NUM_ENVS, num_threads=1, **kwargs)


def family(env_id: str) -> str:
    return env_id.rpartition("-")[0]


def roll_out(envs: pyfastenv.FastVectorEnv, num_steps: int, enough: float = math.inf) -> Steps:
    """Random actions (MountainCar: with its velocity, or no episode would terminate).

    Ends after ``num_steps``, or ``enough`` terminations.
    """
    num_terminations = 0
    rng = np.random.default_rng(1)
    obs, _ = envs.reset(seed=1)
    all_next_obs, all_terminations = [], []
    for _ in range(num_steps):
        actions = random_actions(envs.single_action_space, rng, NUM_ENVS)
        if family(envs.env_id) == "MountainCarContinuous":
            actions = np.where(obs[:, 1:] < 0, -1, 1).astype(np.float32)
        obs, _, terminations, truncations, infos = envs.step(actions)
        assert "diverged" not in infos
        next_obs = obs.copy()
        for i in np.flatnonzero(terminations | truncations):
            next_obs[i] = infos["final_obs"][i]
        all_next_obs.append(torch.from_numpy(next_obs))
        all_terminations.append(torch.from_numpy(terminations))
        num_terminations += int(terminations.sum())
        if num_terminations >= enough:
            break
    return Steps(torch.stack(all_next_obs), torch.stack(all_terminations))


def check(env_id: str, obs_dtype: str, kwargs: dict[str, Any]) -> None:
    envs = make(env_id, autoreset_mode="SameStep", obs_dtype=obs_dtype, infos=False, **kwargs)
    steps = roll_out(envs, 10 if family(env_id) in NEVER else 1000, enough=ENDS)
    assert steps.next_obs.dtype == getattr(torch, obs_dtype)
    before = steps.next_obs.clone()
    result = termination_rule(envs)(steps.next_obs)
    assert result.dtype == torch.bool and result.shape == steps.terminations.shape
    assert torch.equal(steps.next_obs, before)

    num_terminations = int(steps.terminations.sum())
    if family(env_id) in NEVER:
        assert num_terminations == 0
    else:  # both outcomes are common
        assert num_terminations >= ENDS
        assert int((~steps.terminations).sum()) >= ENDS

    wrong = result != steps.terminations
    if family(env_id) == "InvertedDoublePendulum":
        heights = tip_heights(steps.next_obs[wrong])
        assert ((heights - 1.0).abs() < DOUBLE_PENDULUM_BAND).all()
        assert wrong.double().mean() < 1e-3
    else:  # rounded, a state may have crossed a threshold: 1 of a million did
        assert int(wrong.sum()) <= (1 if obs_dtype == "float32" else 0)


def tip_heights(obs: torch.Tensor) -> torch.Tensor:
    theta1 = torch.atan2(obs[..., 1], obs[..., 3])
    theta2 = torch.atan2(obs[..., 2], obs[..., 4])
    return 0.6 * theta1.cos() + 0.6 * (theta1 + theta2).cos()


@pytest.mark.parametrize("obs_dtype", ["float64", "float32"])
@pytest.mark.parametrize("env_id", RULE_IDS)
def test_rules_are_the_environments(env_id: str, obs_dtype: str) -> None:
    check(env_id, obs_dtype, WILD.get(family(env_id), {}))


@pytest.mark.parametrize(("env_id", "kwargs"), OTHER)
def test_rules_follow_the_arguments(env_id: str, kwargs: dict[str, Any]) -> None:
    check(env_id, "float64", kwargs)


@pytest.mark.parametrize("env_id", UNHEALTHY)
def test_unhealthy_need_not_terminate(env_id: str) -> None:
    envs = make(
        env_id,
        autoreset_mode="Disabled",
        terminate_when_unhealthy=False,
        **WILD[family(env_id)],
    )
    steps = roll_out(envs, 20)
    assert not steps.terminations.any()
    assert not termination_rule(envs)(steps.next_obs).any()
    # while with the default they would
    assert termination_rule(make(env_id))(steps.next_obs).any()
    assert not termination_rule(envs)(torch.full_like(steps.next_obs, torch.nan)).any()


def test_every_continuous_environment_has_a_rule() -> None:
    assert set(RULE_IDS) == set(pyfastenv.env_ids()) - set(DISCRETE_IDS)
    assert has_termination_rule("pyfastenv/Hopper-v5")
    for env_id in (*DISCRETE_IDS, "Hopper-v3", "Hopper", "Nothing-v0", ""):
        assert not has_termination_rule(env_id)


@pytest.mark.parametrize("env_id", DISCRETE_IDS)
def test_ids_without_a_rule(env_id: str) -> None:
    with pytest.raises(ValueError, match=rf"^{env_id}: no termination rule, .*Walker2d-v5"):
        termination_rule(pyfastenv.make_vec(env_id))


def test_arguments_that_the_observation_does_not_show() -> None:
    for bounds in ((-20.0, 100.0), (-100.0, 99.0), (-10.0, 10.5)):
        envs = pyfastenv.make_vec("Hopper-v5", healthy_state_range=bounds)
        with pytest.raises(ValueError, match=r"^Hopper-v5: no .* clipped to ±10 .* 10 and 100$"):
            termination_rule(envs)
    termination_rule(pyfastenv.make_vec("Hopper-v5", healthy_state_range=(-math.inf, 1000.0)))


def test_the_double_pendulums_own_model_only(tmp_path: Any) -> None:
    with open(f"{assets_dir()}/inverted_double_pendulum.xml") as file:
        longer = file.read().replace('pos="0 0 .6"', 'pos="0 0 .7"')
    (tmp_path / "longer.xml").write_text(longer)
    envs = pyfastenv.make_vec("InvertedDoublePendulum-v5", xml_file=tmp_path / "longer.xml")
    with pytest.raises(ValueError, match=r"^InvertedDoublePendulum-v5: no .* xml_file"):
        termination_rule(envs)


def test_environments_made_without_make_vec() -> None:
    envs = pyfastenv.FastVectorEnv("Ant-v5", healthy_z_range=(0.6, 0.7))
    obs = torch.zeros(3, 105)
    obs[:, 0] = torch.tensor([0.5, 0.65, 0.9])
    assert termination_rule(envs)(obs).tolist() == [True, False, True]


@pytest.mark.parametrize("env_id", RULE_IDS)
def test_any_batch_shape_and_no_gradients(env_id: str) -> None:
    envs = pyfastenv.make_vec(env_id)
    rule = termination_rule(envs)
    generator = torch.Generator().manual_seed(0)
    size = envs.single_observation_space.shape[0]
    obs = torch.randn(3, 5, size, generator=generator).requires_grad_()
    result = rule(obs)
    assert result.shape == (3, 5) and result.dtype == torch.bool and not result.requires_grad
    for k in range(3):
        assert torch.equal(rule(obs[k]), result[k])
        assert rule(obs[k, 0]).shape == () and bool(rule(obs[k, 0])) == bool(result[k, 0])
    assert rule(obs[:0]).shape == (0, 5)
    assert torch.equal(rule(obs.double()), result)  # far from every threshold


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_thresholds(dtype: torch.dtype) -> None:
    """Which side a threshold itself is on."""
    cases = [
        ("Ant-v5", 0, [(0.2, False), (1.0, False), (0.1999, True), (1.0001, True)]),
        ("AntDir-v5", 2, [(0.2, False), (1.0, False), (0.1999, True), (1.0001, True)]),
        ("Hopper-v5", 0, [(0.7, True), (0.7001, False), (1e9, False), (math.inf, True)]),
        ("Hopper-v5", 1, [(0.2, True), (0.1999, False), (-0.2, True), (-0.1999, False)]),
        ("Hopper-v5", 4, [(100.0, True), (99.99, False), (-100.0, True), (-99.99, False)]),
        ("Hopper-v5", 10, [(100.0, True), (99.99, False), (-100.0, True), (-99.99, False)]),
        ("Humanoid-v5", 0, [(1.0, True), (1.0001, False), (2.0, True), (1.9999, False)]),
        ("InvertedPendulum-v5", 1, [(0.2, False), (-0.2, False), (0.2001, True)]),
        ("MountainCarContinuous-v0", 0, [(0.45, False), (0.4499, False), (0.4501, False)]),
        ("MountainCarContinuous-v0", 1, [(0.0, True), (0.01, True), (-1e-6, False)]),
        ("Walker2d-v5", 0, [(0.8, True), (0.8001, False), (2.0, True), (1.9999, False)]),
        ("Walker2d-v5", 1, [(1.0, True), (0.9999, False), (-1.0, True), (-0.9999, False)]),
    ]
    healthy = {  # one column each, the others 0
        "Ant-v5": (0, 0.5),
        "AntDir-v5": (2, 0.5),
        "Hopper-v5": (0, 1.25),
        "Humanoid-v5": (0, 1.4),
        "InvertedPendulum-v5": (0, 0.0),
        "MountainCarContinuous-v0": (0, 0.45),
        "Walker2d-v5": (0, 1.25),
    }
    for env_id, column, values in cases:
        envs = pyfastenv.make_vec(env_id)
        rule = termination_rule(envs)
        obs = torch.zeros(envs.single_observation_space.shape, dtype=dtype)
        where, value = healthy[env_id]
        obs[where] = value
        if column == 0 and "MountainCar" in env_id:
            obs[1] = -0.01  # rolling back: no height is the goal
        for x, expected in values:
            obs[column] = x
            assert bool(rule(obs)) == expected, (env_id, column, x)


def test_hoppers_state_range_begins_with_the_angle() -> None:
    envs = pyfastenv.make_vec(
        "Hopper-v5", healthy_state_range=(-0.5, 0.5), healthy_angle_range=(-1.0, 1.0)
    )
    obs = torch.zeros(3, 11)
    obs[:, 0] = 1.25  # the height is no part of it
    obs[:, 1] = torch.tensor([0.4, 0.7, -0.7])
    assert termination_rule(envs)(obs).tolist() == [False, True, True]


def test_mountain_car_compares_in_float32() -> None:
    rule = termination_rule(pyfastenv.make_vec("MountainCarContinuous-v0"))
    position = np.float32(0.45)
    assert float(position) < 0.45
    for dtype in (torch.float32, torch.float64):
        assert rule(torch.tensor([float(position), 0.01], dtype=dtype))


def test_double_pendulum_upright_and_hanging() -> None:
    rule = termination_rule(pyfastenv.make_vec("InvertedDoublePendulum-v5"))
    angles = torch.tensor([[0.0, 0.0], [0.5, -1.0], [0.5, 0.3], [math.pi, 0.0], [0.0, math.pi]])
    obs = torch.zeros(5, 9)
    obs[:, 1:3], obs[:, 3:5] = angles.sin(), angles.cos()
    assert rule(obs).tolist() == [False, False, True, True, True]
    assert torch.equal(rule(obs), tip_heights(obs) <= 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_observations_that_are_not_finite(bad: float) -> None:
    def last_column(env_id: str, first: float) -> bool:
        envs = pyfastenv.make_vec(env_id)
        obs = torch.zeros(envs.single_observation_space.shape)
        obs[0] = first
        assert not termination_rule(envs)(obs)
        obs[-1] = bad
        return bool(termination_rule(envs)(obs))

    # these check everything that they observe
    assert last_column("Ant-v5", 0.5)
    assert last_column("Hopper-v5", 1.25)
    assert last_column("InvertedPendulum-v5", 0.0)
    # these only the coordinates that their rule names, or none
    assert not last_column("Humanoid-v5", 1.4)
    assert not last_column("Walker2d-v5", 1.25)
    assert not last_column("HalfCheetah-v5", 0.0)
    for env_id in ("Humanoid-v5", "Walker2d-v5"):
        envs = pyfastenv.make_vec(env_id)
        assert termination_rule(envs)(torch.full(envs.single_observation_space.shape, bad))


@pytest.mark.parametrize("env_id", UNHEALTHY)
def test_defaults_are_gymnasiums(env_id: str) -> None:
    name, version = env_id.lower().split("-")
    module = importlib.import_module(f"gymnasium.envs.mujoco.{name}_{version}")
    theirs = inspect.signature(getattr(module, f"{family(env_id)}Env")).parameters
    ours = inspect.signature(termination._RULES[family(env_id)]).parameters
    assert {"healthy_z_range", *POSITIONS} <= set(ours)
    for parameter in ours.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            assert parameter.default == theirs[parameter.name].default
    # no argument of gymnasium's rule is forgotten
    ranges = {name for name in theirs if name.startswith("healthy_") and name.endswith("_range")}
    assert ranges <= set(ours)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_rules_on_the_gpu() -> None:
    for env_id in RULE_IDS:
        envs = pyfastenv.make_vec(env_id)
        rule = termination_rule(envs)
        obs = torch.randn(4, 256, envs.single_observation_space.shape[0])
        result = rule(obs.cuda())
        assert result.is_cuda and torch.equal(result.cpu(), rule(obs))
