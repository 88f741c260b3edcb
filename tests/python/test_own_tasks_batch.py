"""Functions of whole batches: what they decide is what compiled code would have decided."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from dict_tasks import Arm
from parity import MODES, assert_same, random_policy, step_both

import pyfastenv
from pyfastenv.errors import BusyError, EnvError, ResetNeededError
from pyfastenv.tasks.check.check import check_task


class Compiled(Arm):
    observation_dict = None

    def step(self, data, action, info):
        self.simulate(data)
        tip = data.site("tip").xpos
        distance = np.hypot(tip[0] - self.goal[0], tip[1] - self.goal[1])
        info["is_success"] = 1.0 * (distance < self.near)
        info["distance"] = distance
        return -distance - 0.1 * action[0] * action[0], abs(data.qpos[1]) > 1.2


class Batched(Arm):
    """The same, decided in NumPy after the compiled step."""

    observation_dict = None

    def step(self, data, action, info):
        if action[1] > 1.5:
            raise ValueError("too strong")
        self.simulate(data)
        tip = data.site("tip").xpos
        distance = np.hypot(tip[0] - self.goal[0], tip[1] - self.goal[1])
        info["is_success"] = 1.0 * (distance < self.near)
        return 0.0, False

    def batch_step(self, obs, action, info):
        gap = obs["achieved_goal"] - obs["desired_goal"]
        distance = np.hypot(gap[:, 0], gap[:, 1])
        info["distance"] = distance
        reward = -distance - 0.1 * action[:, 0] * action[:, 0]
        return reward, np.abs(obs["observation"][:, 1]) > 1.2


class Tame(Batched):
    """A policy may do anything, and the compiled reward is another one."""

    step = Arm.step


class Features(Batched):
    """A task that shows a network's outputs: other numbers, in a Dict."""

    observation_dict = True

    def batch_observation(self, obs):
        import torch

        reach = torch.from_numpy(obs["observation"])
        weights = torch.arange(12.0, dtype=torch.float64).reshape(4, 3)
        features = (reach[:, :, None] * weights).sum(1)
        return {"features": torch.tanh(features), "goal": obs["desired_goal"]}


def make(task: Any, count: int = 5, **kwargs: Any) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(task, count, **{"num_threads": 2, **kwargs})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("infos", [True, False])
def test_equals_the_compiled_task(mode: str, infos: bool) -> None:
    ours, theirs = (make(t, autoreset_mode=mode, infos=infos) for t in (Batched, Compiled))
    other = make(Batched, autoreset_mode=mode, infos=infos)
    assert_same(ours.reset(seed=3), theirs.reset(seed=3))
    other.reset(seed=9)
    rng, ended = np.random.default_rng(0), [0, 0, 0]
    for step in range(120):
        actions = rng.uniform(-0.9, 0.9, (5, 2))
        results, expected = ours.step(actions), theirs.step(actions)
        assert_same(results, expected)
        if step == 40:  # episodes that have just ended, too
            other.set_state(ours.get_state())
        elif step > 40:
            assert_same(other.step(actions), expected)
        _, _, terminations, truncations, _ = results
        kinds = terminations, truncations, terminations | truncations
        ended = [count + ends.sum() for count, ends in zip(ended, kinds, strict=True)]
        if mode == "Disabled" and (ends := terminations | truncations).any():
            with pytest.raises(ResetNeededError):
                ours.step(actions)
            for envs in (ours, theirs, *([other] if step >= 40 else [])):
                envs.reset(options={"reset_mask": ends})
    assert min(ended) > 0
    assert ours.stats()["episodes"] == theirs.stats()["episodes"] == ended[2]


@pytest.mark.parametrize("task", [Batched, Features])
@pytest.mark.parametrize("mode", MODES)
def test_plain_python_has_the_same_batches_of_one(task: type[Arm], mode: str) -> None:
    if task is Features:
        pytest.importorskip("torch")
    envs = make(task, autoreset_mode=mode)
    plain = gymnasium.vector.SyncVectorEnv([lambda: pyfastenv.debug(task)] * 5, autoreset_mode=mode)
    assert envs.single_observation_space == plain.single_observation_space
    assert_same(envs.reset(seed=4), plain.reset(seed=4))
    step_both(envs, plain, 60, most=0.8)


def test_send_and_recv() -> None:
    ours, theirs = make(Batched, 6, num_threads=3), make(Compiled, 6)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.uniform(-0.9, 0.9, (6, 2))
        expected = theirs.step(actions)
        order = rng.permutation(6)
        ours.send(actions[order[:4]], order[:4])
        ours.send(actions[order[4:]], order[4:])
        received = 0
        while received < 6:
            obs, rewards, terminations, truncations, infos = ours.recv(min_envs=2)
            ids = infos["env_id"]
            received += len(ids)
            got = obs, rewards, terminations, truncations
            assert_same(got, tuple(values[ids] for values in expected[:4]))
            if "distance" in infos:
                assert_same(infos["distance"], expected[4]["distance"][ids])
    ours.send(actions)
    with pytest.raises(BusyError):
        ours.send(actions)
    same = make(Batched, autoreset_mode="SameStep")
    same.reset(seed=0)
    with pytest.raises(ValueError, match="needs autoreset_mode='NextStep' or 'Disabled'"):
        same.send(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="needs autoreset_mode"):
        same.async_reset()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_rollouts_are_the_closed_loops(mode: str) -> None:
    pytest.importorskip("torch")
    ours, theirs = (make(task, 4, autoreset_mode=mode) for task in (Tame, Compiled))
    policy = random_policy(ours, num_policies=2, log_std=-1.0)
    for envs in (ours, theirs):
        envs.reset(seed=2)
    for _ in range(2):  # the second goes on in the middle of episodes
        batches = [
            pyfastenv.rollout(envs, policy, 40, policy_id=[0, 1, 1, 0]) for envs in (ours, theirs)
        ]
        for name, tensor in batches[0].tensors().items():
            assert_same(tensor.numpy(), batches[1].tensors()[name].numpy(), name)
        assert len(batches[0].episodes) > 2
        mine, compiled = (vars(batch.episodes) | batch.episodes.infos for batch in batches)
        assert mine.pop("infos").keys() == compiled.pop("infos").keys()
        for name, tensor in mine.items():
            assert_same(tensor.numpy(), compiled[name].numpy(), name)
    other = pyfastenv.PolicySpec.of_vectors(np.zeros((1, 8)), (3, 2), distribution="deterministic")
    with pytest.raises(ValueError, match="size 17, got one for 3"):
        pyfastenv.rollout(ours, other, 3)
    with pytest.raises(ValueError, match="autoreset_mode='SameStep' or 'NextStep'"):
        pyfastenv.rollout(make(Tame, autoreset_mode="Disabled"), policy, 3)


@pytest.mark.parametrize("task", [Batched, Features])
def test_a_failing_environment_is_no_row_of_the_batch(task: type[Arm]) -> None:
    envs = make(task)
    envs.reset(seed=0)
    actions = np.zeros((5, 2))
    actions[2, 1] = 2.0
    with pytest.raises(EnvError, match=r"environment 2: .*too strong") as caught:
        envs.step(actions)
    obs, rewards, _, _, infos = caught.value.results
    shown = obs["goal"] if task is Features else obs
    assert shown[3].any()
    assert not shown[2].any()
    assert rewards[2] == 0.0
    assert infos["_distance"].tolist() == [True, True, False, True, True]
    assert (rewards[[0, 1, 3, 4]] < 0.0).all()


def test_tensors_and_float32() -> None:
    torch = pytest.importorskip("torch")
    from staging_parts import HostDevice

    for copies in (None, HostDevice()):
        envs, other = (make(Features, 3, obs_dtype="float32") for _ in range(2))
        assert envs.single_observation_space["features"].dtype == np.float32
        tenvs = pyfastenv.TorchVectorEnv(envs, copies=copies)
        tenvs.reset(seed=0)
        other.reset(seed=0)
        for _ in range(30):
            obs, rewards, *_ = tenvs.step(torch.zeros((3, 2), dtype=torch.float64))
            expected = other.step(np.zeros((3, 2)))
            for name, values in expected[0].items():
                assert_same(obs[name].numpy(), values)
            assert_same(rewards.numpy(), expected[1])


@pytest.mark.parametrize("task", [Batched, Features])
def test_check_finds_nothing_to_mend(task: type[Arm]) -> None:
    assert [f.what for f in check_task(task) if not f.ok] == []


class Ranked(Batched):
    """Its reward depends on the other rows."""

    def batch_step(self, obs, reward):
        return obs["observation"][:, 0] - obs["observation"][:, 0].max(), reward > 1.0


def test_check_finds_rows_that_depend_on_each_other() -> None:
    wrong = [f.what for f in check_task(Ranked) if not f.ok]
    assert len(wrong) == 1
    assert "treat a row of 5 and the same one alone differently at step 0: reward" in wrong[0]


def changed(**methods: Any) -> type[Arm]:
    return type("Changed", (Batched,), methods)


@pytest.mark.parametrize(
    ("method", "function", "error", "said"),
    [
        ("batch_step", lambda self, obs: obs, TypeError, r"must return \(reward, terminated\)"),
        ("batch_step", lambda self, reward: (0.0, reward > 0), ValueError, r"\(1,\), got \(\)"),
        ("batch_step", lambda self, reward: (reward, reward), TypeError, "expected bools, got flo"),
        ("batch_step", lambda self, reward: (reward * np.nan, reward > 1), ValueError, "rows .0. "),
        ("batch_step", lambda self, reward, rewards: 0, TypeError, "cannot give rewards; a batch_"),
        ("batch_step", lambda self, obs: obs["tip"], KeyError, "tip"),
        ("batch_observation", lambda self, obs: "x", TypeError, "expected numbers, got 'x'"),
        ("batch_observation", lambda self, obs: np.zeros(3), ValueError, r"\(1, …\), got \(3,\)"),
    ],
)
def test_mistakes_are_told_by_make_vec(
    method: str, function: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        make(changed(**{method: function}))


def test_mistakes_that_only_larger_batches_show() -> None:
    envs = make(changed(batch_observation=lambda self, obs: obs["observation"][:1]))
    with pytest.raises(ValueError, match=r"batch_observation .*: expected shape \(5, …\), got"):
        envs.reset(seed=0)
    envs = make(changed(batch_observation=lambda self, obs: np.zeros((len(obs["frame"]), 2))))
    assert envs.reset(seed=0)[0].shape == (5, 2)
    assert envs.obs_size == 2
    grows = changed(
        batch_observation=lambda s, obs: np.zeros((len(obs["frame"]), len(obs["frame"])))
    )
    with pytest.raises(ValueError, match=r"expected numbers per environment .*'observation': 1"):
        make(grows).reset(seed=0)
