"""gymnasium's vector wrappers give on our environments what they give on its SyncVectorEnv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import vector as wrappers
from parity import MODES, assert_same, make_gymnasium, random_actions
from run_example import run_example

import pyfastenv

NUM_ENVS = 3
BOX = gymnasium.spaces.Box(-np.inf, np.inf, (11,), np.float64)
# name: (wrapper, environment)
WRAPPERS: dict[str, tuple[Any, str]] = {
    "DtypeObservation": (lambda e: wrappers.DtypeObservation(e, np.float32), "Hopper-v5"),
    "FlattenObservation": (wrappers.FlattenObservation, "Hopper-v5"),
    "NormalizeReward": (wrappers.NormalizeReward, "Hopper-v5"),
    "RescaleAction": (lambda e: wrappers.RescaleAction(e, -2.0, 2.0), "Hopper-v5"),
    "RescaleObservation": (
        lambda e: wrappers.RescaleObservation(e, np.float32(0), np.float32(1)),
        "MountainCar-v0",
    ),
    "TransformObservation": (
        lambda e: wrappers.TransformObservation(
            e, lambda obs: 2 * obs, single_observation_space=BOX
        ),
        "Hopper-v5",
    ),
    "VectorizeTransformAction": (
        lambda e: wrappers.VectorizeTransformAction(
            e, gymnasium.wrappers.TransformAction, func=np.tanh, action_space=None
        ),
        "Hopper-v5",
    ),
    "VectorizeTransformObservation": (
        lambda e: wrappers.VectorizeTransformObservation(
            e, gymnasium.wrappers.TransformObservation, func=np.tanh, observation_space=BOX
        ),
        "Hopper-v5",
    ),
    "VectorizeTransformReward": (
        lambda e: wrappers.VectorizeTransformReward(
            e, gymnasium.wrappers.TransformReward, func=lambda r: 3 * r
        ),
        "Hopper-v5",
    ),
    "stack": (
        lambda e: wrappers.NormalizeReward(wrappers.ClipAction(wrappers.ClipReward(e, -1, 1))),
        "Hopper-v5",
    ),
}


def make_pair(env_id: str, mode: str, limit: int = 20, **kwargs: Any) -> tuple[Any, Any]:
    ours = pyfastenv.make_vec(
        env_id, NUM_ENVS, autoreset_mode=mode, max_episode_steps=limit, **kwargs
    )
    return ours, make_gymnasium(env_id, NUM_ENVS, mode, limit, **kwargs)


def play(
    ours: Any, theirs: Any, mode: str, compare: Any = assert_same, num_steps: int = 60
) -> None:
    rng = np.random.default_rng(0)
    compare(ours.reset(seed=3), theirs.reset(seed=3))
    for _ in range(num_steps):
        actions = random_actions(ours.unwrapped.single_action_space, rng, NUM_ENVS)
        result = ours.step(actions.copy())  # some wrappers write into them
        compare(result, theirs.step(actions.copy()))
        ended = np.asarray(result[2] | result[3])
        if mode == "Disabled" and ended.any():
            masks = [{"reset_mask": ended.copy()} for _ in range(2)]
            compare(ours.reset(options=masks[0]), theirs.reset(options=masks[1]))
    ours.close()
    theirs.close()


@pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_wrapper(name: str, mode: str) -> None:
    wrap, env_id = WRAPPERS[name]
    if mode == "SameStep" and "Observation" in name:
        with pytest.raises(ValueError, match=r"NEXT_STEP or DISABLED, got .*SAME_STEP"):
            wrap(make_pair(env_id, mode)[0])  # gymnasium's observation wrappers are not for it
        return
    ours, theirs = (wrap(envs) for envs in make_pair(env_id, mode))
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert ours.single_action_space == theirs.single_action_space
    play(ours, theirs, mode)


def test_normalize_observation() -> None:
    """gymnasium's own refuses the other modes: it would need the final observations."""
    ours, theirs = (wrappers.NormalizeObservation(e) for e in make_pair("Hopper-v5", "NextStep"))
    play(ours, theirs, "NextStep")
    assert_same(ours.obs_rms.mean, theirs.obs_rms.mean)
    stacks = (
        wrappers.NormalizeReward(wrappers.NormalizeObservation(wrappers.ClipAction(envs)))
        for envs in make_pair("HalfCheetah-v5", "NextStep")
    )
    play(*stacks, "NextStep")
    with pytest.raises(ValueError, match="NEXT_STEP"):
        wrappers.NormalizeObservation(make_pair("Hopper-v5", "SameStep")[0])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_record_episode_statistics(mode: str) -> None:
    ours, theirs = (wrappers.RecordEpisodeStatistics(e) for e in make_pair("CartPole-v1", mode))

    def compare(one: Any, other: Any) -> None:
        for infos in (one[-1], other[-1]):
            if "episode" in infos:
                del infos["episode"]["t"]
        assert_same(one, other)

    play(ours, theirs, mode, compare)
    assert list(ours.return_queue) == list(theirs.return_queue)
    assert list(ours.length_queue) == list(theirs.length_queue)
    assert len(ours.return_queue) > NUM_ENVS


def test_record_episode_statistics_without_autoreset() -> None:
    """Right on ours; SyncVectorEnv takes the mask out of the options before the wrapper sees it."""
    envs = wrappers.RecordEpisodeStatistics(make_pair("HalfCheetah-v5", "Disabled")[0])
    envs.reset(seed=0)
    actions = np.zeros((NUM_ENVS, 6), np.float32)
    for _ in range(7):
        envs.step(actions)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(13):
        *_, infos = envs.step(actions)
    np.testing.assert_array_equal(infos["episode"]["l"], [20, 0, 20])


@pytest.mark.parametrize("mode", MODES)
def test_dict_info_to_list(mode: str) -> None:
    def compare(one: Any, other: Any) -> None:
        assert_same(one[:-1], other[:-1])
        for our_info, their_info in zip(one[-1], other[-1], strict=True):
            assert set(our_info) == set(their_info)
            for key, value in their_info.items():
                assert type(our_info[key]) is type(value)
                np.testing.assert_equal(our_info[key], value)

    ours, theirs = (wrappers.DictInfoToList(envs) for envs in make_pair("Hopper-v5", mode))
    play(ours, theirs, mode, compare)


def test_numpy_to_torch() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    ours, theirs = make_pair("Hopper-v5", "NextStep")
    tensors = wrappers.NumpyToTorch(ours)
    obs, _ = tensors.reset(seed=0)
    assert_same(obs.numpy(), theirs.reset(seed=0)[0])
    actions = torch.zeros(NUM_ENVS, 3)
    obs, rewards, terminations, truncations, infos = tensors.step(actions)
    their_obs, their_rewards, *_ = theirs.step(actions.numpy())
    assert isinstance(rewards, torch.Tensor) and isinstance(infos["x_position"], torch.Tensor)
    assert_same(obs.numpy(), their_obs)
    assert_same(rewards.numpy(), their_rewards)
    assert not (terminations | truncations).any()


def test_record_video(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    pytest.importorskip("moviepy")
    frames = []
    for envs in make_pair("CartPole-v1", "NextStep", render_mode="rgb_array"):
        folder = tmp_path / type(envs).__name__
        video = wrappers.RecordVideo(envs, str(folder), video_length=4, fps=10)
        video.reset(seed=0)
        for _ in range(3):
            video.step(np.ones(NUM_ENVS, np.int64))
        frames.append(np.array(video.recorded_frames))
        for _ in range(3):
            video.step(np.ones(NUM_ENVS, np.int64))
        video.close()
        assert list(folder.glob("*.mp4"))
    assert len(frames[0]) == 4
    assert_same(*frames)


@pytest.mark.usefixtures("gl")
def test_a_picture_as_the_observation() -> None:
    looks: dict[str, Any] = {"width": 84, "height": 84}
    pool = pyfastenv.make_vec(
        "HalfCheetah-v5", 1, pixels={**looks, "frame_stack": 1, "camera": "track"}
    )
    looks |= {"render_mode": "rgb_array", "camera_name": "track"}
    wrapped = gymnasium.wrappers.AddRenderObservation(
        gymnasium.make("pyfastenv/HalfCheetah-v5", **looks)
    )
    theirs: Any = gymnasium.make("HalfCheetah-v5", **looks)
    pictures = [envs.reset(seed=3)[0] for envs in (pool, wrapped, theirs)]
    for action in np.random.default_rng(0).uniform(-1.0, 1.0, (4, 6)).astype(np.float32):
        np.testing.assert_array_equal(pictures[0][0], pictures[1])
        # gymnasium shows geoms where they were a substep ago
        mujoco.mj_forward(theirs.unwrapped.model, theirs.unwrapped.data)
        assert np.abs(pictures[1].astype(np.int64) - theirs.render()).mean() < 3.0
        actions = ((pool, action[None]), (wrapped, action), (theirs, action))
        pictures = [envs.step(each)[0] for envs, each in actions]
    for envs in (pool, wrapped, theirs):
        envs.close()


def test_human_rendering() -> None:
    pytest.importorskip("pygame")
    pytest.importorskip("cv2")
    envs = wrappers.HumanRendering(make_pair("CartPole-v1", "NextStep", render_mode="rgb_array")[0])
    envs.reset(seed=0)
    envs.step(np.ones(NUM_ENVS, np.int64))


@pytest.mark.parametrize("env_id", ["Hopper-v5", "CartPole-v1"])
def test_single_environment_in_wrappers(env_id: str) -> None:
    """gymnasium.make's view of one environment, in wrappers for single environments."""
    results = []
    for name in (f"pyfastenv/{env_id}", env_id):
        env = gymnasium.make(name, max_episode_steps=15)
        env = gymnasium.wrappers.Autoreset(gymnasium.wrappers.NormalizeObservation(env))
        env = gymnasium.wrappers.FrameStackObservation(
            gymnasium.wrappers.TimeAwareObservation(env), 2
        )
        env.action_space.seed(0)
        steps = [env.reset(seed=0)[0]]
        steps += [env.step(env.action_space.sample())[0] for _ in range(40)]
        results.append(np.array(steps))
        env.close()
    assert_same(*results)


def test_check_env_with_rendering() -> None:
    pytest.importorskip("pygame")
    env = gymnasium.make("pyfastenv/CartPole-v1", render_mode="rgb_array").unwrapped
    check_env(env)


def test_example() -> None:
    pytest.importorskip("torch")
    assert "return" in run_example("integration_gymnasium.py", "20")
