"""Observations that are far from all before are told and held back; all others change no bit."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from algorithms import make, small
from forks import forking, two_processes
from torch import Tensor
from trainings import assert_equal, through_a_file

from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.sampling.rollouts import rollout
from pyfastenv.training import collecting, distributed, on_policy
from pyfastenv.training.obs_normalizer import ObsNormalizer, SeedNormalizers

GROUPS = {"pose": slice(0, 2), "speeds": slice(2, 5)}
STEPS, ENVS = 32, 64  # 2,048 samples a batch


def normalizer() -> ObsNormalizer:
    return ObsNormalizer(5, clip=10.0, device=torch.device("cpu"), groups=GROUPS)


def batches(count: int, seed: int = 0) -> Tensor:
    """``(count, T, N, 5)`` float32 whose columns have deviations of 0.1 to 1,000."""
    generator = torch.Generator().manual_seed(seed)
    deviations = torch.tensor([0.1, 1.0, 3.0, 30.0, 1000.0])
    return 2.0 + deviations * torch.randn(count, STEPS, ENVS, 5, generator=generator)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # compiled, in torch
def test_one_environment_does_not_spoil_a_column(dtype: torch.dtype) -> None:
    mine, plain = normalizer(), RunningMoments(5)
    obs = batches(20).to(dtype)
    clean = obs.clone()
    obs[10, 7, 5, 3], obs[10, 8, 5, 3], obs[10, 9, 6, 2] = 1e6, -2e6, 5e4
    for i in range(10):
        mine.update(obs[i])
    said = re.escape(
        "environment 5: observation 3 (speeds[1]), one of 2 such columns, is -2e+06, 66,"
    )
    with pytest.warns(RuntimeWarning, match=said) as caught:
        mine.update(obs[10])
    assert len(caught) == 1
    for i in range(11, 20):
        obs[i, :, 5, 3] = 1e6  # told already; one environment of 64, until the end
        mine.update(obs[i])
    for each in clean:
        plain.update(each)
    assert mine.moments.count == plain.count == 20 * STEPS * ENVS
    for part in ("mean", "m2"):
        got, expected = getattr(mine.moments, part), getattr(plain, part)
        assert torch.equal(got[[0, 1, 4]], expected[[0, 1, 4]])
    torch.testing.assert_close(mine.moments.var[2], plain.var[2], rtol=0.05, atol=0.0)
    assert mine.moments.var[3].sqrt() < 2.0 * plain.var[3].sqrt()


def test_samples_beyond_the_bound_count_as_ten_deviations() -> None:
    mine, plain = normalizer(), RunningMoments(5)
    obs = batches(9)
    for each in obs[:8]:
        mine.update(each)
        plain.update(each)
    spoiled = obs[8].double()
    mean, deviation = plain.mean[2], plain.var[2].sqrt()
    spoiled[3, 4, 2], spoiled[4, 4, 2] = mean + 990.0 * deviation, mean - 1010.0 * deviation
    with pytest.warns(
        RuntimeWarning, match=r"environment 4: observation 2 \(speeds\[0\]\) .* 1,010 "
    ):
        mine.update(spoiled)
    spoiled[4, 4, 2] = mean - 10.0 * deviation
    plain.update(spoiled)
    torch.testing.assert_close(mine.moments.state_dict(), plain.state_dict(), rtol=1e-12, atol=0.0)


def test_honest_columns_change_no_bit() -> None:
    mine, plain = normalizer(), RunningMoments(5)
    obs = batches(20)
    obs[2, 3, 4, 2] = 1e6  # while few samples have been seen
    obs[..., 0] = 0.1 + 1e-4 * obs[..., 1]
    obs[12:, :, :9, 0] = 50.0  # at rest until then
    obs[..., 1] = 0.0
    obs[9, 0, 0, 1], obs[15, 0, 0, 1], obs[15, 1, 0, 1] = 0.5, 5e3, 1e2  # a rare contact
    obs[..., 3] = torch.distributions.StudentT(3.0).sample(obs.shape[:-1])  # heavy tails
    obs[17, ..., 4] += 5e6  # moved for good
    for each in obs:
        mine.update(each)
        plain.update(each)
    assert_equal(mine.moments.state_dict(), plain.state_dict())


def test_environments_of_seeds_are_numbered_as_in_the_pool() -> None:
    mine = SeedNormalizers(3, 5, clip=10.0, device=torch.device("cpu"), groups=GROUPS)
    obs = batches(3 * 8).unflatten(0, (8, 3))
    for each in obs[:7]:
        mine.update(each)
    others = [each["m2"].clone() for each in mine.state_dict()["moments"]]
    obs[7, 2, 0, 9, 1] = 1e6
    with pytest.warns(RuntimeWarning, match=rf"environment {2 * ENVS + 9}: observation 1 \(pose\["):
        mine.update(obs[7])
    for before, after in zip(others, mine.state_dict()["moments"], strict=True):
        assert (after["m2"] < 1.3 * before).all()


@forking
def test_processes_hold_back_their_own(tmp_path: Path) -> None:
    def update(rank: int) -> None:
        distributed.init()
        mine = normalizer()
        obs = batches(9, seed=rank)
        for each in obs[:8]:
            mine.update(each)
        if rank == 0:
            mine.update(obs[8])  # warnings are errors
        else:
            obs[8, 3, 7, 2] = 1e7
            with pytest.warns(RuntimeWarning, match="environment 7 of process 1: observation 2"):
                mine.update(obs[8])
        torch.save(mine.moments.state_dict(), tmp_path / f"{rank}.pt")
        distributed.wait_for_all()
        distributed.shut_down()

    statuses, errors = two_processes(update, tmp_path)
    assert statuses == [0, 0], errors
    one, two = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert_equal(one, two)
    assert (one["m2"] / one["count"]).sqrt()[2] < 3.1


# ---- trainings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "env", "said", "options"),
    [
        (
            "ppo",
            5,
            r"environment 5: observation 1 \(observation\[1\]\) is 1e\+06",
            {"env_id": "dict_tasks:Sided"},
        ),
        ("td3", 13, "environment 13: observation 1 is 1e\\+06", {"num_seeds": 2}),
    ],
)
def test_a_training_tells_it_once_and_resumes_bit_for_bit(
    name: str, env: int, said: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    blown_up = False

    def spoiled(*args: Any, **kwargs: Any) -> Any:
        batch = rollout(*args, **kwargs)
        if blown_up:
            batch.obs[3, env, 1] = 1e6
        return batch

    monkeypatch.setattr(on_policy, "rollout", spoiled)
    monkeypatch.setattr(collecting, "rollout", spoiled)
    options |= {"num_envs": 8, "num_steps": 64, "total_steps": 20_000}
    options |= {"normalize_obs": True, "num_threads": 1}
    if name == "td3":
        options |= {"learning_starts": 10_240, "buffer_size": 12_000, "updates_per_step": 0.01}
    config = small(name, **options)
    algorithm = make(config)
    while algorithm.global_step < 10_240:
        algorithm.iterate()
    blown_up = True
    with pytest.warns(RuntimeWarning, match=said) as caught:
        algorithm.iterate()
    assert len(caught) == 1
    middle = through_a_file(algorithm.state_dict())
    algorithm.iterate()  # warnings are errors
    resumed = type(algorithm)(config, restore=middle)
    with pytest.warns(RuntimeWarning, match=said):  # once more: it is another process
        resumed.iterate()
    assert_equal(through_a_file(resumed.state_dict()), through_a_file(algorithm.state_dict()))
    moments = algorithm.state_dict()["obs_moments" if name == "ppo" else "normalizer"]
    for each in moments.get("moments", [moments]):
        assert (each["m2"] / each["count"]).sqrt()[1] < 10.0
