"""Per-environment model fields = gymnasium environments whose models were edited the same way."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import assert_same, make_gymnasium, random_actions

import pyfastenv

NUM_ENVS = 4
LIMIT = 60
FIELDS = ["body_mass", "geom_friction", "actuator_gainprm", "dof_damping", "opt.gravity"]


def target(model: Any, name: str) -> np.ndarray:
    """The model's own array, to be written into."""
    for part in name.split("."):
        model = getattr(model, part)
    array: np.ndarray = model
    return array


class Pair:
    """Ours and gymnasium's, edited and stepped together."""

    def __init__(self, env_id: str, mode: str = "NextStep", num_threads: int = 3, **kwargs: Any):
        kwargs.setdefault("max_episode_steps", LIMIT)
        self.theirs = make_gymnasium(env_id, NUM_ENVS, mode, **kwargs)
        self.ours = pyfastenv.make_vec(
            env_id, NUM_ENVS, autoreset_mode=mode, num_threads=num_threads, **kwargs
        )
        self.rng = np.random.default_rng(0)

    @property
    def models(self) -> list[Any]:
        envs: list[gymnasium.Env[Any, Any]] = self.theirs.envs
        return [env.unwrapped.model for env in envs]  # type: ignore[attr-defined]

    def defaults(self, name: str) -> np.ndarray:
        return np.stack([target(model, name) for model in self.models])

    def set(self, name: str, values: np.ndarray, env_ids: Any = None) -> None:
        self.ours.set_model_field(name, values, env_ids)
        ids = range(NUM_ENVS) if env_ids is None else env_ids
        shape = target(self.models[0], name).shape
        for i, value in zip(ids, np.broadcast_to(values, (len(ids), *shape)), strict=True):
            target(self.models[i], name)[:] = value

    def scale(self, name: str, low: float = 0.6, high: float = 1.4) -> None:
        """Multiplies every entry by a random factor."""
        values = self.defaults(name)
        self.set(name, values * self.rng.uniform(low, high, values.shape))

    def reset(self, **kwargs: Any) -> None:
        assert_same(self.ours.reset(**kwargs), self.theirs.reset(**kwargs), "reset")

    def run(self, num_steps: int, where: str = "") -> int:
        ended = 0
        for step in range(num_steps):
            actions = random_actions(self.ours.single_action_space, self.rng, NUM_ENVS)
            result = self.ours.step(actions)
            assert_same(result, self.theirs.step(actions), f"{where} step {step}")
            ended += int((result[2] | result[3]).sum())
        return ended


@pytest.mark.parametrize("name", FIELDS)
def test_equals_an_edited_model(name: str) -> None:
    pair = Pair("HalfCheetah-v5")
    pair.scale(name)
    pair.reset(seed=1)
    assert pair.run(130, name) >= NUM_ENVS
    pair.reset(seed=[3, None, 5, None])
    pair.run(20, name)
    assert np.array_equal(pair.ours.get_model_field(name), pair.defaults(name))


@pytest.mark.parametrize("env_id", ["Ant-v5", "HumanoidStandup-v5", "InvertedPendulum-v5"])
def test_several_fields_in_other_environments(env_id: str) -> None:
    pair = Pair(env_id, "SameStep", num_threads=2)
    for name in ("body_mass", "opt.gravity", "geom_friction"):
        pair.scale(name)
    pair.reset(seed=1)
    assert pair.run(200) >= NUM_ENVS


@pytest.mark.parametrize("num_threads", [1, 3])
def test_all_fields_at_once(num_threads: int) -> None:
    pair = Pair("Humanoid-v5", num_threads=num_threads)
    for name in FIELDS:
        pair.scale(name)
    pair.reset(seed=2)
    pair.run(200)
    for name in FIELDS:
        assert np.array_equal(pair.ours.get_model_field(name), pair.defaults(name))


def test_env_ids() -> None:
    pair = Pair("HalfCheetah-v5")
    pair.reset(seed=0)
    masses = pair.defaults("body_mass")
    pair.set("body_mass", masses[:2] * np.array([[0.5], [2.0]]), [3, 1])
    got = pair.ours.get_model_field("body_mass")
    assert np.array_equal(got, masses * np.array([1.0, 2.0, 1.0, 0.5])[:, None])
    pair.run(100)
    pair.set("body_mass", masses[0] * 1.5, [0, 2])  # one value for both
    pair.run(100)
    pair.set("opt.gravity", np.array([[0.0, 0.0, -3.0]]), np.array([2]))
    pair.set("dof_damping", 2.0 * pair.defaults("dof_damping")[0])  # … and for all
    pair.run(100)


def test_values_changed_later() -> None:
    # in the middle of episodes, right before a reset, and back to the default
    pair = Pair("HalfCheetah-v5")
    default = pair.defaults("body_mass")
    pair.reset(seed=0)
    pair.run(35)
    for _ in range(4):
        pair.scale("body_mass", 0.8, 1.25)
        pair.run(40)
    pair.scale("geom_friction")
    pair.reset()
    pair.run(40)
    pair.set("body_mass", default)
    pair.run(70)


@pytest.mark.parametrize(("name", "scale"), [("opt.density", 1000.0), ("opt.viscosity", 0.1)])
def test_scalar_options(name: str, scale: float) -> None:
    # MuJoCo's Python attribute is a number and cannot be written into
    pair = Pair("Swimmer-v5")
    attribute = name.removeprefix("opt.")
    values = scale * np.array([[0.1], [0.5], [1.0], [3.0]])
    pair.ours.set_model_field(name, values)
    for model, value in zip(pair.models, values[:, 0], strict=True):
        setattr(model.opt, attribute, value)
    pair.reset(seed=0)
    pair.run(150)
    assert np.array_equal(pair.ours.get_model_field(name), values)


def test_wind() -> None:
    pair = Pair("Swimmer-v5")
    pair.reset(seed=0)
    pair.set("opt.wind", np.array([[0, 0, 0], [1, 0, 0], [0, -2, 0], [3, 3, 0]]))
    pair.run(150)


def test_fields_reach_sent_steps() -> None:
    pair = Pair("HalfCheetah-v5")
    pair.scale("body_mass")
    pair.reset(seed=0)
    for _ in range(80):
        actions = random_actions(pair.ours.single_action_space, pair.rng, NUM_ENVS)
        pair.ours.send(actions)
        obs, rewards, *_, infos = pair.ours.recv()
        order = np.argsort(infos["env_id"])
        expected = pair.theirs.step(actions)
        assert np.array_equal(obs[order], expected[0])
        assert np.array_equal(rewards[order], expected[1])


def test_reading_changes_nothing() -> None:
    pair = Pair("Humanoid-v5")
    for name in FIELDS:
        values = pair.ours.get_model_field(name)
        assert values.dtype == np.float64
        assert np.array_equal(values, pair.defaults(name))
        values[:] = 0.0  # a copy
    pair.reset(seed=0)
    pair.run(60)


def test_environments_that_share_a_model_file_do_not_share_fields() -> None:
    pair = Pair("HalfCheetah-v5")
    other = pyfastenv.make_vec("HalfCheetah-v5", NUM_ENVS)
    other.set_model_field("body_mass", 2.0 * other.get_model_field("body_mass"))
    pair.reset(seed=0)
    other.reset(seed=0)
    for _ in range(50):
        pair.run(1)
        other.step(np.zeros((NUM_ENVS, 6), np.float32))
    values = pair.ours.get_model_field("body_mass")
    assert np.array_equal(values * 2.0, other.get_model_field("body_mass"))


def test_masses_that_differ_by_far() -> None:
    """MuJoCo replaces pivots that rounding has made too small: lanes leave such a step to it."""
    rewards = {}
    for engine in ("auto", "mujoco"):
        envs = pyfastenv.make_vec(
            "Pusher-v5", 3, num_threads=1, engine=engine, autoreset_mode="SameStep",
            max_episode_steps=1,
        )  # fmt: skip
        envs.reset(seed=0)
        envs.set_model_field("body_mass", 1e6 * envs.get_model_field("body_mass")[2:], [2])
        rng = np.random.default_rng(0)
        steps = [envs.step(rng.normal(size=(3, 7)).astype(np.float32)) for _ in range(12)]
        rewards[engine] = [step[1] for step in steps]
        assert any("diverged" in step[4] for step in steps)
        envs.close()
    np.testing.assert_array_equal(rewards["auto"], rewards["mujoco"])
