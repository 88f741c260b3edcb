"""frame_stack: observations are those of gymnasium's FrameStackObservation, flattened."""

from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from algorithms import small
from dict_tasks import Arm
from gymnasium.wrappers import FlattenObservation, FrameStackObservation

import pyfastenv
from pyfastenv.runs.registry import algorithm_module


class Stacked(Arm):
    frame_stack = 3


ENVS = ["Hopper-v5", "Humanoid-v5", "CartPole-v1"]


@pytest.mark.parametrize("env_id", ENVS)
@pytest.mark.parametrize("stack", [1, 3])
def test_observations_are_gymnasiums_wrappers(env_id: str, stack: int) -> None:
    mode, steps = gymnasium.vector.AutoresetMode.SAME_STEP, 60
    with (
        closing(
            gymnasium.vector.SyncVectorEnv(
                [
                    lambda: FlattenObservation(FrameStackObservation(gymnasium.make(env_id), stack))
                    for _ in range(3)
                ],
                autoreset_mode=mode,
            )
        ) as theirs,
        closing(pyfastenv.make_vec(env_id, 3, autoreset_mode=mode, frame_stack=stack)) as ours,
    ):
        assert ours.single_observation_space == theirs.single_observation_space
        ours.action_space.seed(0)
        np.testing.assert_array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
        ended = 0
        for _ in range(steps):
            actions = ours.action_space.sample()
            obs, rewards, terminations, _, infos = ours.step(actions)
            expected = theirs.step(actions)
            np.testing.assert_array_equal(obs, expected[0])
            np.testing.assert_array_equal(rewards, expected[1])
            np.testing.assert_array_equal(terminations, expected[2])
            for i in np.flatnonzero(terminations):
                ended += 1
                np.testing.assert_array_equal(infos["final_obs"][i], expected[4]["final_obs"][i])
        assert ended > 2


def test_threads_engines_rollouts_and_snapshots_agree() -> None:
    def make(**options: Any) -> Any:
        options = {"autoreset_mode": "SameStep", "frame_stack": 4, **options}
        return closing(pyfastenv.make_vec("Hopper-v5", 16, **options))

    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((1, 44, 3)).astype(np.float32)]
    policy = pyfastenv.PolicySpec(
        weights=weights, biases=[np.zeros((1, 3), np.float32)], distribution="deterministic"
    )
    with make() as envs, make(engine="mujoco", num_threads=3) as others, make() as third:
        for each in (envs, others, third):
            each.reset(seed=1)
        first = pyfastenv.rollout(envs, policy, 70)
        second = pyfastenv.rollout(others, policy, 70)
        assert len(first.episodes) > 16
        for name in ("obs", "last_obs", "actions"):
            assert torch.equal(getattr(first, name), getattr(second, name))
        assert torch.equal(first.episodes.final_obs, second.episodes.final_obs)
        # step by step, with a field of each environment's own, which moves what stands behind it
        for t in range(30):
            third.set_model_field("dof_damping", third.new_model().dof_damping)
            obs, *_ = third.step(first.actions[t].numpy())
            np.testing.assert_array_equal(obs.astype(np.float32), first.obs[t + 1].numpy())
        others.set_state(envs.get_state())
        for each in (envs, others):
            each.step(np.zeros((16, 3), np.float32))
        np.testing.assert_array_equal(envs.latest_obs(), others.latest_obs())


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_trainers_take_it_and_runs_remember(name: str, tmp_path: Path) -> None:
    config = small(name, run_dir=tmp_path / "run", frame_stack=2)
    result = algorithm_module(name).train(config)
    saved = pyfastenv.load_policy(result.run_dir)
    with closing(saved.make_envs(2)) as envs:
        size = 2 * {"Hopper-v5": 11, "Pendulum-v1": 3}[config.env_id]
        assert envs.frame_stack == 2 and envs.obs_size == size == saved.policy.weights[0].shape[1]
        assert saved.act(envs.reset(seed=0)[0]).shape == envs.action_space.shape


def test_mistakes_are_told() -> None:
    cases: list[tuple[str, dict[str, Any], type[Exception], str]] = [
        ("Hopper-v5", {"frame_stack": 0}, ValueError, "frame_stack: expected at least 1, got 0"),
        ("Hopper-v5", {"frame_stack": 2.0}, TypeError, "frame_stack: expected an integer"),
        (
            "Hopper-v5",
            {"frame_stack": 2, "pixels": {"height": 8, "width": 8}},
            ValueError,
            "frame_stack: expected None, got 2: pixels have a frame_stack of their own",
        ),
        ("dict_tasks:Arm", {"frame_stack": 2}, ValueError, "own task, which keeps histories"),
        (
            f"{__name__}:Stacked",
            {"frame_stack": 2},
            TypeError,
            "frame_stack: Stacked's parameter has the name of an option of make_vec: call it some",
        ),
    ]
    for env_id, options, error, message in cases:
        with pytest.raises(error, match=message):
            pyfastenv.make_vec(env_id, 1, **options)
    config = small("mbpo", frame_stack=2)
    with pytest.raises(ValueError, match="frame_stack is 2, and it reads one observation"):
        algorithm_module("mbpo").train(config)
