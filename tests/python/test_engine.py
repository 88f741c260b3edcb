"""Lanes and mj_step give the same bits through every call; who runs, and why, is said."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from parity import MODES, both_engines, random_policy

import pyfastenv

MUJOCO_IDS = [env_id for env_id in pyfastenv.env_ids() if env_id.endswith(("-v5", "-v4"))]

NUM_ENVS = 11  # a group and a rest


@pytest.fixture(autouse=True)
def default_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the whole run is made with."""
    monkeypatch.delenv("PYFASTENV_ENGINE", raising=False)


def bits(value: Any) -> Any:
    """Comparable, a zero's sign included."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [bits(item) for item in value]
    return value


def draw_actions(envs: pyfastenv.FastVectorEnv, rng: np.random.Generator) -> np.ndarray:
    """Up to a fifth beyond the bounds."""
    space = envs.single_action_space
    assert isinstance(space, gymnasium.spaces.Box)
    shape = (envs.num_envs, *space.shape)
    return rng.uniform(1.2 * space.low, 1.2 * space.high, shape).astype(np.float32)


def steps_of(
    envs: pyfastenv.FastVectorEnv, num_steps: int, seed: int | None = 1
) -> Iterator[tuple[Any, ...]]:
    """The results of a seeded reset (unless seed is None) and steps."""
    rng = np.random.default_rng(0)
    if seed is not None:
        yield envs.reset(seed=seed)
    for _ in range(num_steps):
        yield envs.step(draw_actions(envs, rng))


# ---- the same bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", MUJOCO_IDS)
def test_steps_are_the_same(env_id: str, poison: None) -> None:
    mode = MODES[MUJOCO_IDS.index(env_id) % 2]
    lanes, mujoco = both_engines(
        env_id, NUM_ENVS, autoreset_mode=mode, num_threads=2, max_episode_steps=17
    )
    for ours, theirs in zip(steps_of(lanes, 40), steps_of(mujoco, 40), strict=True):
        assert bits(ours) == bits(theirs)
    assert lanes.get_state().tobytes() == mujoco.get_state().tobytes()
    stats = lanes.stats()
    assert stats["lane_steps"] + stats["lane_misses"] == stats["steps"] > 300
    # a lying robot's touches can be so slight that only mj_step knows what it sees of them
    lies = env_id.startswith("HumanoidStandup")
    assert stats["lane_misses"] <= (0.03 * stats["steps"] if lies else 0)
    for name in ("steps", "episodes", "diverged", "errors"):
        assert stats[name] == mujoco.stats()[name]


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Ant-v5", "InvertedPendulum-v5"])
@pytest.mark.parametrize("num_envs", [1, 2, 4, 5, 8, 37])
def test_groups_of_any_size_are_the_same(env_id: str, num_envs: int) -> None:
    lanes, mujoco = both_engines(env_id, num_envs, num_threads=1)
    for ours, theirs in zip(steps_of(lanes, 15), steps_of(mujoco, 15), strict=True):
        assert bits(ours) == bits(theirs)
    assert lanes.stats()["lane_steps"] == lanes.stats()["steps"]


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.parametrize(
    ("env_id", "fields"),
    [
        *((env_id, []) for env_id in ("Walker2d-v5", "Ant-v5", "Reacher-v5")),
        ("Hopper-v5", ["body_mass", "body_inertia"]),
    ],
)
def test_rollouts_are_the_same(env_id: str, fields: list[str], mode: str, poison: None) -> None:
    results = []
    for envs in both_engines(
        env_id, NUM_ENVS, autoreset_mode=mode, num_threads=2, max_episode_steps=23
    ):
        envs.reset(seed=1)
        randomise(envs, fields)
        policy = random_policy(envs, 16, num_policies=2)
        ids = np.arange(NUM_ENVS) % 2  # groups in which two policies act
        batches = [pyfastenv.rollout(envs, policy, n, policy_id=ids) for n in (1, 40)]
        arrays = [
            bits(array.numpy())
            for batch in batches
            for array in (batch.obs, batch.actions, batch.rewards, batch.episodes.returns)
        ]
        results.append((arrays, envs.get_state().tobytes()))
        if envs.stats()["engine"] == "lanes":
            assert envs.stats()["lane_steps"] == envs.stats()["steps"]
    assert results[0] == results[1]


@pytest.mark.parametrize("mode", MODES)
def test_what_lanes_refuse_is_left_to_mj_step(mode: str, tmp_path: Path) -> None:
    """Some of one group diverge, by huge forces; the others' steps are lanes' all the same."""
    source = Path(pyfastenv.vector.specs.assets_dir()) / "half_cheetah.xml"
    model = tmp_path / "unlimited.xml"
    model.write_text(source.read_text().replace('ctrllimited="true"', 'ctrllimited="false"'))
    lanes, mujoco = both_engines("HalfCheetah-v5", 8, xml_file=model, autoreset_mode=mode)
    for envs in (lanes, mujoco):
        envs.reset(seed=1)
    actions = draw_actions(lanes, np.random.default_rng(0))
    actions[[2, 5]] = 1e9
    assert bits(lanes.step(actions)) == bits(mujoco.step(actions))
    assert lanes.stats()["diverged"] == mujoco.stats()["diverged"] == 2
    assert (lanes.stats()["lane_steps"], lanes.stats()["lane_misses"]) == (6, 2)
    if mode != "Disabled":
        assert bits(lanes.step(0 * actions)) == bits(mujoco.step(0 * actions))
    assert lanes.get_state().tobytes() == mujoco.get_state().tobytes()


_DIGEST = """
import hashlib
import numpy as np
import pyfastenv
digest = hashlib.sha256()
for env_id in ("HalfCheetah-v5", "Ant-v5", "InvertedDoublePendulum-v5", "HumanoidStandup-v5"):
    envs = pyfastenv.make_vec(env_id, 9, num_threads=2, engine={engine!r})
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        digest.update(envs.step(rng.uniform(-1, 1, envs.action_space.shape))[0].tobytes())
    assert envs.stats()["engine"] == {engine!r}
print(digest.hexdigest())
"""


def test_instruction_sets_are_the_same() -> None:
    digests = set()
    for engine, width in [("mujoco", "1"), *(("lanes", width) for width in "1248")]:
        done = subprocess.run(
            [sys.executable, "-c", _DIGEST.format(engine=engine)],
            env={**os.environ, "PYFASTENV_LANES": width}, capture_output=True, text=True,
        )  # fmt: skip
        if "that this processor has" in done.stderr:
            continue
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1


# ---- which engine --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "engine", "runs", "reason"),
    [
        ("HalfCheetah-v5", "auto", "lanes", ""),
        ("HalfCheetah-v5", "lanes", "lanes", ""),
        ("HalfCheetah-v5", "mujoco", "mujoco", "asked for"),
        ("CartPole-v1", "auto", "native", ""),
        ("CartPole-v1", "mujoco", "native", ""),
    ],
)
def test_stats_say_what_runs_and_why(env_id: str, engine: str, runs: str, reason: str) -> None:
    stats = pyfastenv.make_vec(env_id, 2, engine=engine).stats()
    assert stats["engine"] == runs
    assert reason in stats["engine_reason"]
    assert bool(stats["engine_reason"]) == bool(reason)
    assert stats["lane_steps"] == stats["lane_misses"] == 0


@pytest.mark.parametrize(
    ("env_id", "engine", "message"),
    [
        ("CartPole-v1", "lanes", "engine='lanes': CartPole-v1 is not a MuJoCo environment"),
        ("HalfCheetah-v5", "warp", r"engine: expected one of .*'auto'.*, got 'warp'"),
    ],
)
def test_engines_that_there_are_not(env_id: str, engine: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pyfastenv.make_vec(env_id, 2, engine=engine)


def test_a_model_that_lanes_do_not_do(tmp_path: Path) -> None:
    assets = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
    xml = (assets / "pusher_v5.xml").read_text()
    file = tmp_path / "implicit.xml"
    file.write_text(xml.replace('integrator="Euler"', 'integrator="implicit"'))
    stats = pyfastenv.make_vec("Pusher-v5", 2, xml_file=str(file)).stats()
    assert stats["engine"] == "mujoco"
    assert stats["engine_reason"] == "lanes do not do the integrator implicit"
    with pytest.raises(ValueError, match=r"lanes do not do the integrator implicit in .*implicit"):
        pyfastenv.make_vec("Pusher-v5", 2, engine="lanes", xml_file=str(file))


def test_the_variable_says_what_auto_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFASTENV_ENGINE", "mujoco")
    assert pyfastenv.make_vec("HalfCheetah-v5").stats()["engine"] == "mujoco"
    assert pyfastenv.make_vec("HalfCheetah-v5", engine="lanes").stats()["engine"] == "lanes"
    monkeypatch.setenv("PYFASTENV_ENGINE", "warp")
    with pytest.raises(ValueError, match="PYFASTENV_ENGINE: expected auto or mujoco, got 'warp'"):
        pyfastenv.make_vec("HalfCheetah-v5")


def test_through_gymnasium() -> None:
    envs: Any = gymnasium.make_vec("pyfastenv/HalfCheetah-v5", 2, engine="mujoco")
    assert envs.stats()["engine"] == "mujoco"
    env: Any = gymnasium.make("pyfastenv/HalfCheetah-v5", engine="lanes")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert env.unwrapped.envs.stats()["lane_steps"] == 1


FIELDS = ["body_mass", "geom_friction", "dof_damping", "actuator_gear", "opt.gravity"]


def randomise(envs: pyfastenv.FastVectorEnv, fields: list[str], seed: int = 0) -> None:
    """Every environment's own numbers, up to a third more or less than the model's."""
    rng = np.random.default_rng(seed)
    for name in fields:
        values = envs.get_model_field(name)
        envs.set_model_field(name, values * rng.uniform(0.7, 1.3, values.shape))


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Ant-v5", "Swimmer-v5", "Humanoid-v5"])
def test_model_fields_are_the_same(env_id: str, poison: None) -> None:
    lanes, mujoco = both_engines(env_id, NUM_ENVS, num_threads=2, max_episode_steps=17)
    for envs in (lanes, mujoco):
        envs.reset(seed=1)
        envs.step(np.zeros(envs.action_space.shape, np.float32))
        randomise(envs, FIELDS)
    assert bits(list(steps_of(lanes, 20, seed=None))) == bits(list(steps_of(mujoco, 20, seed=None)))
    for envs in (lanes, mujoco):  # values alone: the same plan
        randomise(envs, FIELDS[:2], seed=1)
    assert bits(list(steps_of(lanes, 20))) == bits(list(steps_of(mujoco, 20)))
    assert lanes.get_state().tobytes() == mujoco.get_state().tobytes()
    assert lanes.stats()["lane_steps"] == lanes.stats()["steps"]


def test_numbers_of_another_kind_are_left_to_mj_step() -> None:
    """Without any damping MuJoCo integrates otherwise; the other environments' steps are lanes'."""
    lanes, mujoco = both_engines("HalfCheetah-v5", 8)
    for envs in (lanes, mujoco):
        envs.reset(seed=1)
        damping = envs.get_model_field("dof_damping")
        damping[3] = 0
        envs.set_model_field("dof_damping", damping)
    assert bits(list(steps_of(lanes, 10, seed=None))) == bits(list(steps_of(mujoco, 10, seed=None)))
    assert (lanes.stats()["lane_steps"], lanes.stats()["lane_misses"]) == (70, 10)


def test_fields_that_lanes_do_not_do() -> None:
    envs = pyfastenv.make_vec("HalfCheetah-v5", NUM_ENVS, num_threads=2)
    mujoco = pyfastenv.make_vec("HalfCheetah-v5", NUM_ENVS, num_threads=1, engine="mujoco")
    for e in (envs, mujoco):
        e.reset(seed=1)
        e.step(np.zeros(e.action_space.shape, np.float32))
        randomise(e, ["body_mass", "geom_gap"])
    assert envs.stats()["engine"] == "mujoco"
    assert envs.stats()["engine_reason"] == "lanes do not do per-environment geom_gap"
    assert bits(list(steps_of(envs, 10, seed=None))) == bits(list(steps_of(mujoco, 10, seed=None)))
    assert envs.stats()["lane_steps"] == NUM_ENVS


def test_lanes_refuse_model_fields_that_they_do_not_do() -> None:
    envs = pyfastenv.make_vec("HalfCheetah-v5", 2, engine="lanes")
    envs.reset(seed=1)
    state_bytes = envs.state_bytes
    with pytest.raises(ValueError, match="engine='lanes': lanes do not do per-environment geom_g"):
        envs.set_model_field("geom_gap", envs.get_model_field("geom_gap"))
    assert envs.state_bytes == state_bytes
    envs.step(np.zeros((2, 6), np.float32))
    assert envs.stats()["lane_steps"] == 2
