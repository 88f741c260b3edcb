"""FastVectorEnv and FastEnv as gymnasium environments: attributes, registry, wrappers, pickling."""

import copy
import gc
import importlib.metadata
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import StickyAction
from gymnasium.wrappers import vector as wrappers
from parity import MODES, assert_same, make_gymnasium, random_actions, step_both
from scripts import run_script

import pyfastenv
from pyfastenv.vector.specs import resolve_xml_file

SINGLE_IDS = [
    "pyfastenv/HalfCheetah-v5", "pyfastenv/Ant-v5", "pyfastenv/Hopper-v4", "pyfastenv/CartPole-v1",
    "pyfastenv/MountainCarContinuous-v0", "pyfastenv/AntGoal-v5",
]  # fmt: skip


# ---- importing and registration ------------------------------------------------------------------


def test_import_loads_no_torch() -> None:
    code = "import sys, pyfastenv; print([m for m in ('torch', 'imageio') if m in sys.modules])"
    assert run_script(code) == "[]\n"


def test_nothing_of_ours_runs_where_it_is_not_imported() -> None:
    """No start-up hook: no ``.pth`` file (an editable install's is scikit-build's), no trace."""
    files = [str(path) for path in importlib.metadata.files("pyfastenv") or ()]
    hooks = [name for name in files if name.endswith(".pth") and "_editable_" not in name]
    assert files and hooks == []
    code = """
import sys, gymnasium
print([m for m in sys.modules if m.split('.')[0] == 'pyfastenv'],
      [i for i in gymnasium.registry if 'pyfastenv' in i])
"""
    assert run_script(code) == "[] []\n"


def test_public_names() -> None:
    assert set(pyfastenv.__all__) <= set(dir(pyfastenv))
    for name in pyfastenv.__all__:
        assert getattr(pyfastenv, name).__module__.startswith("pyfastenv")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pyfastenv.nothing  # type: ignore[attr-defined]
    exec("from pyfastenv import *; make_vec, FastVectorEnv, EnvError", {})


def test_what_needs_torch_says_so() -> None:
    code = """
import sys
sys.modules["torch"] = None
import pyfastenv
pyfastenv.make_vec("CartPole-v1", 2).close()
try:
    pyfastenv.rollout
except ImportError as error:
    assert "pip install torch" in str(error), error
else:
    raise AssertionError
"""
    run_script(code)


@pytest.mark.parametrize(
    ("env_id", "imported"),
    [("pyfastenv/HalfCheetah-v5", "pyfastenv"), ("pyfastenv:pyfastenv/CartPole-v1", "gymnasium")],
)
def test_make_vec_by_gymnasium(env_id: str, imported: str) -> None:
    code = f"""
import gymnasium, {imported}
gymnasium.register_envs({imported})
envs = gymnasium.make_vec({env_id!r}, num_envs=3, num_threads=2, max_episode_steps=9)
obs, _ = envs.reset(seed=0)
envs.step(envs.action_space.sample())
print(type(envs).__name__, obs.shape[0], envs.num_threads, envs.spec.id, envs.max_episode_steps)
"""
    expected = f"FastVectorEnv 3 2 {env_id.removeprefix('pyfastenv:')} 9"
    assert run_script(code).strip() == expected


def test_all_ids_are_registered() -> None:
    for env_id in pyfastenv.env_ids():
        spec = gymnasium.spec(f"pyfastenv/{env_id}")
        assert spec.kwargs == {"env_id": env_id}


def test_make_vec_leaves_the_registry_alone() -> None:
    before = copy.deepcopy(gymnasium.spec("pyfastenv/Swimmer-v5"))
    envs = pyfastenv.make_vec("Swimmer-v5", 2, frame_skip=2)
    assert gymnasium.spec("pyfastenv/Swimmer-v5") == before
    gymnasium.make("pyfastenv/Swimmer-v5").reset(seed=0)
    assert gymnasium.make_vec("pyfastenv/Swimmer-v5", num_envs=3).num_envs == 3
    other = pyfastenv.make_vec("Swimmer-v5", 5)
    assert envs.spec is not other.spec
    assert envs.spec is not None and envs.spec.kwargs["num_envs"] == 2


def test_a_failed_construction_leaves_nothing_to_complain_about() -> None:
    # a warning that a finalizer raised would be an error here
    for call in (
        lambda: pyfastenv.FastVectorEnv("Hopper-v5", 2, num_envs=2),  # type: ignore[misc]
        lambda: pyfastenv.FastVectorEnv(),  # type: ignore[call-arg]
        lambda: pyfastenv.FastVectorEnv("Hopper-v5", 2, no_such_argument=1),
    ):
        with pytest.raises(TypeError):
            call()
    gc.collect()


def test_make_vec_by_gymnasium_equals_ours() -> None:
    theirs = gymnasium.make_vec("pyfastenv/Ant-v5", num_envs=3)
    ours = pyfastenv.make_vec("Ant-v5", 3)
    prefixed = pyfastenv.make_vec("pyfastenv/Ant-v5", 3)
    expected = ours.reset(seed=2)
    assert_same(theirs.reset(seed=2), expected)
    assert_same(prefixed.reset(seed=2), expected)
    assert isinstance(theirs, pyfastenv.FastVectorEnv)
    assert theirs.spec is not None and ours.spec is not None
    assert theirs.spec.id == ours.spec.id == "pyfastenv/Ant-v5"


@pytest.mark.parametrize("env_id", SINGLE_IDS)
def test_check_env(env_id: str) -> None:
    env = gymnasium.make(env_id)
    with warnings.catch_warnings():
        # unbounded observations are gymnasium's own
        warnings.simplefilter("ignore", UserWarning)
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("env_id", [env_id for env_id in SINGLE_IDS if "AntGoal" not in env_id])
def test_single_environment_equals_gymnasiums(env_id: str) -> None:
    ours = gymnasium.make(env_id, max_episode_steps=30)
    theirs = gymnasium.make(env_id.removeprefix("pyfastenv/"), max_episode_steps=30)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng = np.random.default_rng(0)
    ended = True
    for step in range(100):
        if ended:
            seed = None if step and step % 2 == 0 else step
            assert_same_single(ours.reset(seed=seed), theirs.reset(seed=seed))
        action = random_actions(ours.action_space, rng, 1)[0]
        result = ours.step(action)
        assert_same_single(result, theirs.step(action))
        assert type(result[1]) is float and type(result[2]) is type(result[3]) is bool
        ended = result[2] or result[3]


def assert_same_single(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
    assert np.array_equal(ours[0], theirs[0]) and ours[0].dtype == theirs[0].dtype
    assert ours[1:-1] == theirs[1:-1]
    assert set(ours[-1]) == set(theirs[-1])
    for key, value in theirs[-1].items():
        assert np.array_equal(ours[-1][key], value), key


# ---- attributes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [*MODES, *AutoresetMode])
def test_autoreset_mode(mode: str | AutoresetMode) -> None:
    envs = pyfastenv.make_vec("CartPole-v1", 2, autoreset_mode=mode)
    assert envs.metadata["autoreset_mode"] is AutoresetMode(mode)
    assert envs.autoreset_mode is AutoresetMode(mode)


def test_with_statement() -> None:
    with pyfastenv.make_vec("CartPole-v1", 2) as envs:
        assert isinstance(envs, pyfastenv.FastVectorEnv) and not envs.closed
    assert envs.closed


def test_attributes() -> None:
    envs = pyfastenv.make_vec("HalfCheetah-v5", 3, num_threads=2)
    assert isinstance(envs, VectorEnv) and envs.unwrapped is envs
    assert envs.num_envs == 3 and envs.num_threads == 2 and envs.max_episode_steps == 1000
    assert not envs.closed and envs.render_mode is None
    assert envs.metadata["render_modes"] == ["rgb_array"] and envs.metadata["render_fps"] == 20
    assert pyfastenv.FastVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert envs.spec is not None and envs.spec.id == "pyfastenv/HalfCheetah-v5"
    assert envs.action_space.shape == (3, 6) and envs.observation_space.shape == (3, 17)
    text = repr(envs)
    assert "FastVectorEnv" in text and "HalfCheetah-v5" in text and "3" in text
    envs.close()
    envs.close()
    assert envs.closed
    with pytest.raises(pyfastenv.ClosedError):
        envs.reset()


@pytest.mark.parametrize(("limit", "expected"), [(None, 500), (-1, None), (0, None), (7, 7)])
def test_max_episode_steps(limit: int | None, expected: int | None) -> None:
    envs = pyfastenv.make_vec("InvertedPendulum-v5", 1, max_episode_steps=limit)
    default = gymnasium.spec("InvertedPendulum-v5").max_episode_steps
    assert envs.max_episode_steps == (default if limit is None else expected)
    envs = pyfastenv.make_vec("Pendulum-v1", 1, max_episode_steps=limit)
    envs.reset(seed=0)
    truncated = [envs.step(np.zeros((1, 1), np.float32))[3][0] for _ in range(450)]
    first = truncated.index(True) + 1 if True in truncated else None
    assert first == (200 if limit is None else expected)


def test_random_streams_are_gymnasiums() -> None:
    ours = pyfastenv.make_vec("Reacher-v5", 3)
    theirs = make_gymnasium("Reacher-v5", 3, "NextStep")
    for seed in (5, [1, 2, 3]):
        ours.reset(seed=seed)
        theirs.reset(seed=seed)
        assert ours.np_random_seed == theirs.np_random_seed
        for mine, other in zip(ours.np_random, theirs.np_random, strict=True):
            assert mine.bit_generator.state == other.bit_generator.state
            mine.random()  # a copy: the environment's own stream stays where it is
        ours.reset()
        theirs.reset()
    seeds = ours.np_random_seed
    ours.reset(seed=[None, 9, None])
    assert ours.np_random_seed == (seeds[0], 9, seeds[2])


def test_unseeded_environments_differ() -> None:
    envs = pyfastenv.make_vec("Pendulum-v1", 3)
    others = pyfastenv.make_vec("Pendulum-v1", 3)
    obs = np.concatenate([envs.reset()[0], others.reset()[0]])
    assert len(np.unique(obs, axis=0)) == 6
    assert len(set(envs.np_random_seed + others.np_random_seed)) == 6


def test_a_single_environment_draws_from_its_np_random() -> None:
    ours, theirs = gymnasium.make("pyfastenv/Hopper-v5"), gymnasium.make("Hopper-v5")
    assert ours.unwrapped.np_random_seed is not None
    for seed in (3, None):
        assert_same_single(ours.reset(seed=seed), theirs.reset(seed=seed))
        assert ours.unwrapped.np_random_seed == theirs.unwrapped.np_random_seed == 3
        draws = [env.unwrapped.np_random.standard_normal() for env in (ours, theirs)]
        assert draws[0] == draws[1]
    sticky = [StickyAction(env, 0.5) for env in (ours, theirs)]
    for env in sticky:
        env.reset(seed=8)
    for action in np.random.default_rng(0).uniform(-1, 1, (10, 3)).astype(np.float32):
        assert_same_single(sticky[0].step(action), sticky[1].step(action))
    for env in (ours, theirs):
        env.unwrapped.np_random = np.random.default_rng(7)
    assert_same_single(ours.reset(), theirs.reset())
    assert ours.unwrapped.np_random_seed == theirs.unwrapped.np_random_seed == -1
    with pytest.raises(ValueError, match=r"np_random: expected .*default_rng.* of MT19937"):
        ours.unwrapped.np_random = np.random.Generator(np.random.MT19937(1))


def test_gymnasiums_model_and_data_are_elsewhere() -> None:
    env: Any = gymnasium.make("pyfastenv/Hopper-v5").unwrapped
    for name, where in {"model": r"envs\.new_model\(\)", "data": "infos show it"}.items():
        said = f"'FastEnv' object has no attribute '{name}': .*{where}"
        with pytest.raises(AttributeError, match=said):
            getattr(env, name)
    with pytest.raises(AttributeError, match=r"no attribute 'sim'$"):
        _ = env.sim
    assert env.envs.new_model().nq == 6


# ---- one environment at a time: call, get_attr, set_attr -----------------------------------------


def test_attributes_of_each_environment_are_gymnasiums() -> None:
    ours = pyfastenv.make_vec("Hopper-v5", 3, max_episode_steps=40, frame_skip=3)
    theirs = make_gymnasium("Hopper-v5", 3, "NextStep", 40, frame_skip=3)
    ours.reset(seed=7)
    theirs.reset(seed=7)
    for name in ("observation_space", "action_space", "render_mode", "np_random_seed"):
        assert ours.get_attr(name) == theirs.get_attr(name), name
        assert ours.call(name) == theirs.call(name), name
    for mine, other in zip(ours.get_attr("np_random"), theirs.get_attr("np_random"), strict=True):
        assert mine.bit_generator.state == other.bit_generator.state
    for mine, other in zip(ours.get_attr("spec"), theirs.get_attr("spec"), strict=True):
        assert mine.id == f"pyfastenv/{other.id}"
        for name in ("max_episode_steps", "reward_threshold"):
            assert getattr(mine, name) == getattr(other, name)
        assert mine.kwargs == {"env_id": "Hopper-v5", "frame_skip": 3}
    again = gymnasium.make(ours.get_attr("spec")[1])
    assert again.reset(seed=8)[0].tolist() == ours.reset(seed=7)[0][1].tolist()
    assert [m["render_fps"] for m in ours.get_attr("metadata")] == [ours.metadata["render_fps"]] * 3
    assert all("autoreset_mode" not in metadata for metadata in ours.get_attr("metadata"))
    assert ours.get_attr("max_episode_steps") == (40, 40, 40)
    by_gymnasium = gymnasium.make_vec("pyfastenv:pyfastenv/Hopper-v5", 2)
    gymnasium.make(by_gymnasium.get_attr("spec")[1]).close()


def test_each_environments_action_space_draws_on_its_own() -> None:
    ours = pyfastenv.make_vec("Pendulum-v1", 3)
    first = ours.get_attr("action_space")
    assert len({float(space.sample()[0]) for space in first}) == 3
    theirs = make_gymnasium("Pendulum-v1", 3, "NextStep").get_attr("action_space")
    for k, (mine, other) in enumerate(zip(first, theirs, strict=True)):
        mine.seed(k)
        other.seed(k)
    for _ in range(2):
        samples = [space.sample() for space in ours.get_attr("action_space")]
        assert np.array_equal(samples, [space.sample() for space in theirs])


def test_methods_of_each_environment() -> None:
    ours = pyfastenv.make_vec("Hopper-v5", 3)
    theirs = make_gymnasium("Hopper-v5", 3, "NextStep")
    for mine, other in zip(ours.call("reset", seed=5), theirs.call("reset", seed=5), strict=True):
        assert_same_single((*mine,), (*other,))
    states = ours.call("get_state")
    assert np.array_equal(np.stack(states), ours.get_state())
    masses = 2.0 * ours.get_model_field("body_mass")[0]
    assert ours.call("set_model_field", "body_mass", masses) == (None,) * 3
    assert np.array_equal(ours.get_model_field("body_mass"), np.stack([masses] * 3))


def test_what_trainers_call() -> None:
    """skrl's wrapper renders a vector environment by ``call("render")``; so does CleanRL's film."""
    envs = pyfastenv.make_vec("CartPole-v1", 2, render_mode="rgb_array")
    envs.reset(seed=0)
    wrapped = wrappers.RecordEpisodeStatistics(envs)
    frames = wrapped.unwrapped.call("render")
    for frame, expected in zip(frames, envs.render(), strict=True):
        assert np.array_equal(frame, expected)


@pytest.mark.parametrize("call", ["get_attr", "call"])
@pytest.mark.parametrize("name", ["gravity", "task", "step", "_envs", "__class__"])
def test_attributes_that_there_are_not(call: str, name: str) -> None:
    envs = pyfastenv.make_vec("CartPole-v1", 2)
    with pytest.raises(AttributeError, match=f"CartPole-v1 has no '{name}'") as caught:
        getattr(envs, call)(name)
    assert "action_space" in str(caught.value) and "reset_task" not in str(caught.value)


def test_setting_tasks() -> None:
    envs = pyfastenv.make_vec("HalfCheetahVel-v5", 3)
    envs.set_attr("task", [0.5, 1.0, 1.5])
    assert envs.get_attr("task") == (0.5, 1.0, 1.5)
    envs.set_attr("task", 2.0)
    assert envs.get_task().tolist() == [[2.0]] * 3
    envs.set_attr("task", ({"velocity": 1.0}, np.array([0.5]), 0.25))
    assert envs.call("get_task") == (1.0, 0.5, 0.25)
    before = envs.get_state()
    with pytest.raises(ValueError, match="values: expected 3 or no list, got 2"):
        envs.set_attr("task", [1.0, 2.0])
    with pytest.raises(AttributeError, match="only 'task' can be set by set_attr, got 'body_mass'"):
        envs.set_attr("body_mass", 1.0)
    assert np.array_equal(envs.get_state(), before)
    with pytest.raises(AttributeError, match=r"set_model_field sets physics.* got 'task'"):
        pyfastenv.make_vec("Ant-v5", 2).set_attr("task", 1.0)


# ---- arguments -----------------------------------------------------------------------------------


def test_numpy_integers() -> None:
    envs = pyfastenv.make_vec(
        "Ant-v5", np.int64(3), num_threads=np.int32(2), max_episode_steps=np.uint8(7)
    )
    assert type(envs.num_envs) is int and envs.num_envs == 3 and envs.max_episode_steps == 7
    other = pyfastenv.make_vec("Ant-v5", 3, max_episode_steps=7)
    assert_same(envs.reset(seed=np.int64(3)), other.reset(seed=3))
    assert_same(envs.reset(seed=np.array([5, 6, 7])), other.reset(seed=[5, 6, 7]))
    assert_same(envs.reset(seed=(5, None, np.int8(7))), other.reset(seed=[5, None, 7]))


def layouts(actions: np.ndarray) -> dict[str, Any]:
    """The same actions as other objects; what can be viewed is not copied by us."""
    wide = np.zeros((2 * len(actions), *actions.shape[1:]), actions.dtype)
    wide[::2] = actions
    frozen = actions.copy()
    frozen.flags.writeable = False
    odd = np.empty(actions.nbytes + 1, np.uint8)[1:].view(actions.dtype).reshape(actions.shape)
    odd[:] = actions
    return {
        "strided": wide[::2],
        "reversed": actions[::-1].copy()[::-1],
        "Fortran": np.asfortranarray(actions),
        "byte-swapped": actions.astype(actions.dtype.newbyteorder()),
        "read-only": frozen,
        "unaligned": odd,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_in_any_memory_layout(dtype: Any) -> None:
    envs, other = pyfastenv.make_vec("HalfCheetah-v5", 4), pyfastenv.make_vec("HalfCheetah-v5", 4)
    rng = np.random.default_rng(0)
    for name in layouts(np.zeros((4, 6), dtype)):
        envs.reset(seed=1)
        other.reset(seed=1)
        for _ in range(3):
            actions = random_actions(envs.single_action_space, rng, 4, dtype)
            assert_same(envs.step(layouts(actions)[name]), other.step(actions), name)


def test_actions_as_lists() -> None:
    envs, other = pyfastenv.make_vec("HalfCheetah-v5", 4), pyfastenv.make_vec("HalfCheetah-v5", 4)
    envs.reset(seed=1)
    other.reset(seed=1)
    actions = random_actions(envs.single_action_space, np.random.default_rng(0), 4, np.float64)
    assert_same(envs.step(actions.tolist()), other.step(actions))
    float32 = actions.astype(np.float32)
    assert_same(envs.step(list(float32)), other.step(float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, ">i4"])
def test_discrete_actions_of_any_integer_type(dtype: Any) -> None:
    envs, other = pyfastenv.make_vec("CartPole-v1", 4), pyfastenv.make_vec("CartPole-v1", 4)
    envs.reset(seed=1)
    other.reset(seed=1)
    actions = np.array([0, 1, 1, 0])
    assert_same(envs.step(actions.astype(dtype)), other.step(actions))
    assert_same(envs.step(actions.tolist()), other.step(actions))


BOX_IDS = ["HalfCheetah-v5", "Ant-v4", "Pusher-v5", "Reacher-v4", "Humanoid-v5", "Pendulum-v1"]
BOX_IDS += ["MountainCarContinuous-v0", "InvertedPendulum-v5"]


def whole_actions(envs: Any, rng: np.random.Generator, num_steps: int = 25) -> np.ndarray:
    """-1, 0 and 1 where the box is that large, else 0 and 1."""
    return rng.integers(-1, 2, (num_steps, *envs.action_space.shape))


@pytest.mark.parametrize("kind", ["list", "bool", "int8", "int16", "int64", ">i4"])
@pytest.mark.parametrize("env_id", BOX_IDS)
def test_whole_numbers_as_actions_of_a_box_are_gymnasiums(env_id: str, kind: str) -> None:
    ours, theirs = pyfastenv.make_vec(env_id, 2), make_gymnasium(env_id, 2, "NextStep")
    assert_same(ours.reset(seed=4), theirs.reset(seed=4))
    for actions in whole_actions(ours, np.random.default_rng(0)):
        given = actions.tolist() if kind == "list" else actions.astype(kind)
        # gymnasium's arithmetic with lists fails here and there: it gets the array of the list
        *expected, infos = theirs.step(actions if kind == "list" else given)
        if env_id == "Reacher-v4":  # reports a sum of integers as an integer
            infos["reward_ctrl"] = infos["reward_ctrl"].astype(np.float64)
        assert_same(ours.step(given), (*expected, infos))


@pytest.mark.parametrize("env_id", BOX_IDS)
def test_float16_actions(env_id: str) -> None:
    """The physics is gymnasium's; rewards are those of float32, gymnasium's have 11 bits."""
    ours, theirs = pyfastenv.make_vec(env_id, 2), make_gymnasium(env_id, 2, "NextStep")
    other = pyfastenv.make_vec(env_id, 2)
    for envs in (ours, theirs, other):
        envs.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(25):
        actions = random_actions(ours.single_action_space, rng, 2, np.float16)
        result, expected = ours.step(actions), theirs.step(actions)
        assert_same(result, other.step(actions.astype(np.float32)))
        if env_id not in ("Pendulum-v1", "MountainCarContinuous-v0"):  # theirs compute in float16
            assert_same(result[0], expected[0])
        assert np.allclose(result[1], expected[1], rtol=2e-3, atol=2e-3)
        assert_same(result[2:4], expected[2:4])


def test_integers_are_sent_too() -> None:
    envs, other = pyfastenv.make_vec("HalfCheetah-v5", 4), pyfastenv.make_vec("HalfCheetah-v5", 4)
    envs.reset(seed=1)
    other.reset(seed=1)
    envs.send([[1, 0, 1, 0, 1, 0]] * 2, [2, 1])
    infos = envs.recv()[4]
    other.step(np.array([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]] * 4))
    ids = infos["env_id"]
    assert np.array_equal(envs.get_state(ids), other.get_state(ids))


@pytest.mark.parametrize("mask", [[True, False, True], [False, False, True]])
def test_reset_options_are_not_changed(mask: list[bool]) -> None:
    envs = pyfastenv.make_vec("CartPole-v1", 3)
    envs.reset(seed=0)
    options = {"reset_mask": np.array(mask), "low": -0.01, "high": 0.01}
    before = copy.deepcopy(options)
    envs.reset(options=options)
    assert options.keys() == before.keys()
    assert all(np.array_equal(options[key], before[key]) for key in before)

    class Frozen(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return options[key]

        def __iter__(self) -> Any:
            return iter(options)

        def __len__(self) -> int:
            return len(options)

    envs.reset(options=Frozen())


# ---- copies --------------------------------------------------------------------------------------

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda envs: pickle.loads(pickle.dumps(envs)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_go_on_from_where_the_original_is(way: str) -> None:
    made = {"num_threads": 2, "autoreset_mode": "SameStep", "obs_dtype": "float32"}
    own = {"max_episode_steps": 17, "frame_skip": 2, "healthy_z_range": (0.6, 2.0)}
    envs = pyfastenv.make_vec("Hopper-v5", 3, **made, **own)  # type: ignore[arg-type]
    unset = COPIES[way](envs)
    with pytest.raises(pyfastenv.ResetNeededError):
        unset.step(np.zeros((3, 3), np.float32))
    envs.reset(seed=[4, 9, 5])
    envs.set_model_field("opt.gravity", [[0.0, 0.0, z] for z in (-1.0, -5.0, -9.0)])
    envs.step(envs.action_space.sample())
    copied = COPIES[way](envs)
    assert type(copied) is pyfastenv.FastVectorEnv and copied is not envs
    assert copied.num_threads == 2 and copied.autoreset_mode is AutoresetMode.SAME_STEP
    assert copied.max_episode_steps == 17 and copied.spec == envs.spec
    assert copied.np_random_seed == (4, 9, 5)
    assert np.array_equal(copied.action_space.sample(), envs.action_space.sample())
    step_both(copied, envs, 40)
    assert_same(copied.reset(seed=5), envs.reset(seed=5))
    envs.close()
    copied.step(np.zeros((3, 3), np.float32))
    assert not COPIES[way](envs).closed


@pytest.mark.parametrize("way", COPIES)
def test_copies_find_their_model_from_any_folder(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.xml").write_text(Path(resolve_xml_file("hopper.xml")).read_text())
    monkeypatch.chdir(tmp_path)
    envs = pyfastenv.make_vec("Hopper-v5", 2, xml_file="mine.xml")
    envs.reset(seed=0)
    monkeypatch.chdir("/")
    step_both(COPIES[way](envs), envs, 5)


def test_copies_have_their_tasks() -> None:
    envs = pyfastenv.make_vec("HalfCheetahVel-v5", 2)
    envs.reset_task([[1.0], [2.0]])
    assert copy.deepcopy(envs).get_task().tolist() == [[1.0], [2.0]]


def test_pickled_through_wrappers() -> None:
    envs = wrappers.RecordEpisodeStatistics(pyfastenv.make_vec("Hopper-v5", 2))
    copied = pickle.loads(pickle.dumps(envs))
    assert_same(copied.reset(seed=1), envs.reset(seed=1))


@pytest.mark.parametrize("way", COPIES)
def test_single_environment_is_copied(way: str) -> None:
    env = gymnasium.make("pyfastenv/Hopper-v5").unwrapped
    copied = COPIES[way](env)
    assert np.array_equal(copied.reset(seed=1)[0], env.reset(seed=1)[0])


def test_single_environment_is_copied_within_an_episode() -> None:
    env = gymnasium.make("pyfastenv/CartPole-v1")
    env.reset(seed=0)
    env.step(0)
    copied = copy.deepcopy(env)
    for action in (1, 0, 1):
        assert_same_single(copied.step(action), env.step(action))
    assert copied.unwrapped.np_random.random() == env.unwrapped.np_random.random()
    assert_same_single(copied.reset(), env.reset())


def test_workers_of_gymnasium_are_warned_about() -> None:
    script = (
        "import gymnasium, pyfastenv\n"
        "id = 'pyfastenv/CartPole-v1'\n"
        "envs = gymnasium.make_vec(id, num_envs=3, vectorization_mode='async')\n"
        "envs.reset(seed=0)\n"
        "envs.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("AsyncVectorEnv steps each environment in a process") == 1
