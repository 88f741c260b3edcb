"""Noise of observations by name: of the distributions asked for, and the same in all ways."""

from pathlib import Path
from typing import Any

import numpy as np
import pole_task
import pytest
from algorithms import small
from parity import assert_same
from plain_python import beside_plain
from pole_task import Pole

import pyfastenv
from pyfastenv.algorithms import ppo
from pyfastenv.runs.saved import load_policy
from pyfastenv.tasks.language.noise import normal, uniform
from pyfastenv.tasks.language.randomise import scale
from pyfastenv.training.loop import run


class Noisy(Pole):
    max_episode_steps = 0
    observation_noise = {
        "angle": normal(0.1),
        "both": uniform((-0.5, 1.0), (1.5, 4.0)),  # of each element
        "alike": uniform(-1.0, 1.0, together=True),
    }
    speed = pyfastenv.command(low=0.0, high=1.0, every=0.1)  # which draws beside them

    def step(self, data, action, info):
        self.simulate(data)
        return 0.0, False

    def observation(self, data, obs):
        obs["both"] = data.qpos
        obs["exact"] = np.concatenate((data.qpos, data.qvel))
        obs["angle"] = data.qpos[1]
        obs["alike"] = data.qvel


def noise_of(envs: Any, obs: Any) -> dict[str, Any]:
    groups = envs.observation_groups
    exact = obs[..., groups["exact"]]
    parts = {"both": exact[..., :2], "angle": exact[..., 1:2], "alike": exact[..., 2:]}
    return {name: obs[..., groups[name]] - part for name, part in parts.items()}


@pytest.mark.parametrize("engine", ["mujoco", "lanes"])
def test_plain_python_gives_the_same_bits(engine: str) -> None:
    for envs, _, results, _ in beside_plain(Noisy, 40, num_envs=2, pool={"engine": engine}):
        for _ in range(2):  # looking draws nothing
            assert_same(envs.latest_obs(), results[0])


def test_it_is_of_the_distributions_asked_for() -> None:
    envs = pyfastenv.make_vec(Noisy, 64)
    obs = [envs.reset(seed=0)[0], *(envs.step(np.zeros((64, 1)))[0] for _ in range(60))]
    noise = noise_of(envs, np.array(obs))  # (61, 64, …)
    assert abs(noise["angle"].std() - 0.1) < 0.005
    assert abs(noise["angle"].mean()) < 0.01
    for i, (low, high) in enumerate(((-0.5, 1.5), (1.0, 4.0))):
        assert noise["both"][..., i].min() > low - 1e-9
        assert noise["both"][..., i].max() < high + 1e-9
        assert abs(noise["both"][..., i].mean() - (low + high) / 2) < 0.05
    assert abs(np.corrcoef(noise["both"].reshape(-1, 2).T)[0, 1]) < 0.05
    np.testing.assert_allclose(noise["alike"][..., 0], noise["alike"][..., 1], atol=1e-9)
    for values in noise.values():  # anew at every step, in every environment
        assert len(np.unique(values[..., 0].round(9))) > 0.99 * values[..., 0].size


def test_snapshots_have_it_and_false_turns_it_off() -> None:
    first, second = (pyfastenv.make_vec(Noisy, 3, num_threads=n) for n in (1, 2))
    obs = first.reset(seed=1)[0]
    second.reset(seed=2)
    second.set_state(first.get_state())
    assert_same(second.latest_obs(), obs)
    for _ in range(4):
        assert_same(first.step(np.ones((3, 1)))[0], second.step(np.ones((3, 1)))[0])
    calm = pyfastenv.make_vec(Noisy, 3, observation_noise=False)
    for values in noise_of(calm, calm.reset(seed=1)[0]).values():
        assert not values.any()


def test_evaluations_may_do_without(tmp_path: Path) -> None:
    config = small(
        "ppo",
        env_id=f"{pole_task.__file__}:Seen",
        eval_env_kwargs={"observation_noise": False},
        run_dir=tmp_path / "run",
    )
    run(ppo.PPO, config)
    saved = load_policy(tmp_path / "run")
    with saved.make_envs(2) as envs:
        assert envs.reset(seed=0)[0][:, 0].tolist() == [0.0, 0.0]
    with saved.make_envs(2, observation_noise={"nothing": normal(1.0)}) as envs:
        assert all(envs.reset(seed=0)[0][:, 0])
    with pytest.raises(ValueError, match="eval_env_kwargs: Seen: no argument 'observation_nose'"):
        small("ppo", env_id=config.env_id, eval_env_kwargs={"observation_nose": False}).check()


@pytest.mark.parametrize(
    ("noise", "error", "said"),
    [
        (
            {"both": uniform([0.0], [1.0])},
            ValueError,
            "expected bounds for the 2 elements of 'both'",
        ),
        ({"angle": scale(0.9, 1.1)}, TypeError, ".*of normal and uniform, got"),
    ],
)
def test_mistakes(noise: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=f"Noisy.observation_noise: {said}"):
        pyfastenv.make_vec(Noisy, 1, observation_noise=noise)


def test_a_deviation_below_zero() -> None:
    with pytest.raises(ValueError, match="normal: expected a standard deviation from 0 on, got -1"):
        normal(-1)


@pytest.mark.parametrize("bounds", [((0.0, 1.0), 1.0), ((0.0, 1.0), (1.0, 0.0)), (1.0, 0.0)])
def test_bounds_that_are_none(bounds: Any) -> None:
    with pytest.raises(ValueError, match="uniform: expected low <= high"):
        uniform(*bounds)
