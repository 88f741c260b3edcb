"""Dict observations of own tasks: gymnasium's structure, the flat row's numbers, all the way."""

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from dict_tasks import Arm, Asymmetric
from gymnasium.vector import AutoresetMode
from parity import MODES, assert_same, random_policy, step_both

import pyfastenv
from pyfastenv.errors import EnvError
from pyfastenv.integrations import require
from pyfastenv.tasks.check.check import check_task

TASKS = [Arm, Asymmetric]
SIZES = {"observation": 4, "achieved_goal": 2, "desired_goal": 2, "frame": 9}


def rows(obs: Any, order: Any) -> Any:
    return {name: values[order] for name, values in obs.items()}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("mode", MODES)
def test_structure_and_numbers_are_gymnasiums(task: type[Arm], mode: str) -> None:
    envs = pyfastenv.make_vec(task, 5, num_threads=2, autoreset_mode=mode)
    plain = gymnasium.vector.SyncVectorEnv(
        [lambda: pyfastenv.debug(task)] * 5, autoreset_mode=mode, observation_mode="same"
    )
    assert envs.single_observation_space == plain.single_observation_space
    assert envs.observation_space == plain.observation_space
    assert_same(envs.reset(seed=3), plain.reset(seed=3))
    assert step_both(envs, plain, 60, most=0.9) > 4
    assert envs.step(np.zeros((5, 2)))[0] in envs.observation_space


@pytest.mark.parametrize("mode", MODES)
def test_entries_are_views_of_flat_rows(mode: str) -> None:
    named, flat = (
        pyfastenv.make_vec(Asymmetric, 4, autoreset_mode=mode, observation_dict=wanted)
        for wanted in (Asymmetric.observation_dict, False)
    )
    assert isinstance(flat.single_observation_space, gymnasium.spaces.Box)
    assert flat.observation_groups == named.observation_groups
    assert named.obs_size == flat.obs_size == sum(SIZES.values())
    views = named.obs_views
    assert views is not None
    assert list(views.views) == list(named.single_observation_space.spaces) == sorted(views.views)
    obs, infos = named.reset(seed=1)
    expected, _ = flat.reset(seed=1)
    assert "final_obs" not in infos
    assert_same(obs, views.of(expected))
    np.testing.assert_array_equal(obs["critic"], expected[:, :8])
    assert np.shares_memory(obs["policy"], obs["critic"])
    for _ in range(24):
        actions = np.full((4, 2), 0.1)
        obs, *_ = named.step(actions)
        assert_same(obs, views.of(flat.step(actions)[0]))


def test_send_and_recv_and_their_order() -> None:
    envs, other = (pyfastenv.make_vec(Arm, 6, num_threads=n) for n in (3, 1))
    envs.reset(seed=0)
    other.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        actions = rng.uniform(-1.0, 1.0, (6, 2))
        expected = other.step(actions)
        envs.send(actions)
        parts = [envs.recv(min_envs=2, max_envs=4)]
        while sum(len(part[1]) for part in parts) < 6:
            parts.append(envs.recv())
        for obs, rewards, _, _, infos in parts:
            ids = infos["env_id"]
            assert_same(obs, rows(expected[0], ids))
            assert_same(rewards, expected[1][ids])
    envs.async_reset(seed=4, env_ids=[2])
    obs, *_ = envs.recv()
    assert_same(obs, rows(other.reset(seed=4, options={"reset_mask": np.arange(6) == 2})[0], [2]))


def test_a_ring_of_arrays_holds_for_the_entries() -> None:
    envs = pyfastenv.make_vec(Arm, 2, copy=False)
    first, _ = envs.reset(seed=0)
    kept = {name: values.copy() for name, values in first.items()}
    for _ in range(3):
        envs.step(np.ones((2, 2)))
    assert_same(first, kept)
    latest, *_ = envs.step(np.ones((2, 2)))
    assert_same(first, latest)


def test_one_environment_and_its_rows() -> None:
    pyfastenv.register(Arm, id="tests/Arm-v0")
    single, plain = gymnasium.make("tests/Arm-v0"), pyfastenv.debug(Arm)
    pool = gymnasium.make_vec("tests/Arm-v0", 2)
    assert single.observation_space == plain.observation_space
    assert pool.single_observation_space == plain.observation_space
    assert_same(single.reset(seed=5)[0], plain.reset(seed=5)[0])
    for _ in range(20):
        action = np.array([0.3, -0.2])
        ours, theirs = single.step(action), plain.step(action)
        assert_same(ours[0], theirs[0])
        assert ours[1:4] == theirs[1:4]
    pool.reset(seed=0)
    ((obs, _), _) = pool.call("reset", seed=5)
    assert_same(obs, plain.reset(seed=5)[0])
    again = pickle.loads(pickle.dumps(pyfastenv.make_vec(Asymmetric, 2, observation_dict=True)))
    assert set(again.single_observation_space.spaces) == set(SIZES)


def test_check_finds_nothing_to_mend() -> None:
    for task in TASKS:
        findings = list(check_task(task))
        assert [f.what for f in findings if not f.ok] == []
        assert len(findings) >= 8


class Failing(Arm):
    """The third environment, say, fails by its goal."""

    def step(self, data, action, info):
        if action[0] > 0.9:
            raise ValueError("too strong")
        return super().step(data, action, info)


def test_results_beside_a_failure_are_dicts_too() -> None:
    envs = pyfastenv.make_vec(Failing, 3)
    envs.reset(seed=0)
    actions = np.zeros((3, 2))
    actions[1] = 1.0
    with pytest.raises(EnvError, match="too strong") as caught:
        envs.step(actions)
    obs = caught.value.results[0]
    assert set(obs) == set(SIZES)
    assert not obs["frame"][1].any()
    assert obs["frame"][0].any()


@pytest.mark.parametrize(
    ("wanted", "error", "said"),
    [
        ({"policy": ("observation", "desired_goal")}, ValueError, "one behind the other, got obs"),
        ({"policy": "goal"}, ValueError, r"no obs\['goal'\]; observation writes observation, ach"),
        ({"policy": ()}, TypeError, r"\['policy'\]: expected a name or several, got \(\)"),
        ({3: "frame"}, TypeError, r"observation_dict\[3\]: expected a name"),
        ({}, TypeError, "expected True, or a dict"),
        (["frame"], TypeError, "expected True, or a dict"),
    ],
)
def test_mistakes(wanted: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        pyfastenv.make_vec(Arm, 2, observation_dict=wanted)


def test_a_trainer_that_wants_a_box_says_so() -> None:
    mode = AutoresetMode.NEXT_STEP
    require(pyfastenv.make_vec(Arm, 2, observation_dict=False), mode, "CleanRL")
    with pytest.raises(ValueError, match=r"CleanRL needs flat .*observation_dict=False, got Dict"):
        require(pyfastenv.make_vec(Arm, 2), mode, "CleanRL")


# ---- with torch ----------------------------------------------------------------------------------


def test_tensors_are_views_of_one() -> None:
    torch = pytest.importorskip("torch")
    from staging_parts import HostDevice

    for copies in (None, HostDevice()):
        for flat in (False, True):
            envs = pyfastenv.make_vec(Asymmetric, 4, autoreset_mode="SameStep")
            other = pyfastenv.make_vec(Asymmetric, 4, autoreset_mode="SameStep")
            tenvs = pyfastenv.TorchVectorEnv(envs, obs_dtype=None, copies=copies, flat=flat)
            views = other.obs_views
            assert views is not None
            obs, _ = tenvs.reset(seed=2)
            other.reset(seed=2)
            ended = 0
            for _ in range(60):
                actions = torch.full((4, 2), 0.2, dtype=torch.float64)
                obs, rewards, _, _, infos = tenvs.step(actions)
                expected = other.step(actions.numpy())
                obs = views.of(obs) if flat else obs
                for name, values in expected[0].items():
                    np.testing.assert_array_equal(obs[name].numpy(), values, strict=True)
                np.testing.assert_array_equal(rewards.numpy(), expected[1])
                if "final_obs" in expected[4]:
                    ended += 1
                    if not flat:
                        assert_same(infos["final_obs"], expected[4]["final_obs"])
            assert ended > 0
            assert obs["policy"].data_ptr() == obs["critic"].data_ptr()


def test_rollouts_and_replay_have_flat_rows() -> None:
    torch = pytest.importorskip("torch")
    from pyfastenv.sampling.buffers import ReplayPool, RowLayout, Transitions

    envs, other = (pyfastenv.make_vec(Arm, 3, autoreset_mode="SameStep") for _ in range(2))
    envs.reset(seed=1)
    obs, _ = other.reset(seed=1)
    out = pyfastenv.RolloutBatch.allocate(envs, 40, dtype=torch.float64)
    batch = pyfastenv.rollout(envs, random_policy(envs, log_std=-0.5), 40, out=out)
    views = envs.obs_views
    assert views is not None
    parts = views.of(batch.obs)
    assert parts["frame"].shape == (40, 3, 3, 3)
    assert parts["frame"].data_ptr() - batch.obs.data_ptr() == 8 * views.views["frame"].offset
    for step in range(40):
        for name, values in obs.items():
            np.testing.assert_array_equal(parts[name][step].numpy(), values)
        obs, *_ = other.step(np.clip(batch.actions[step].numpy(), -1.0, 1.0))
    assert len(batch.episodes) > 0
    transitions = Transitions.from_rollout(batch)
    layout = RowLayout(envs.obs_size, 2)
    replay = ReplayPool(1, 1000, layout.width)
    replay.add(
        layout.pack(
            transitions.obs,
            transitions.actions,
            transitions.next_obs,
            transitions.rewards,
            transitions.terminated,
        )[None]
    )
    rows = replay.draw(torch.rand(1, 50, dtype=torch.float64))[0]
    drawn = views.of(layout.next_obs(rows))
    assert drawn["desired_goal"].shape == (50, 2)
    goals = views.of(transitions.next_obs)["desired_goal"].float()
    assert (drawn["desired_goal"][:, None] == goals[None]).all(-1).any(1).all()


@pytest.mark.parametrize(
    ("algorithm", "steps"), [("ppo", ["2048"]), ("sac", ["96", "--learning-starts", "88"])]
)
def test_training_takes_the_flat_row(algorithm: str, steps: list[str], tmp_path: Any) -> None:
    pytest.importorskip("torch")
    from pyfastenv import cli

    status = cli.main(
        [
            *("train", algorithm, "--env-id", "dict_tasks:Arm", "--total-steps", *steps),
            *("--num-envs", "8", "--run-dir", str(tmp_path / "run"), "--quiet"),
        ]
    )
    assert status == 0
