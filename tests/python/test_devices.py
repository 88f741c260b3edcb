"""Every learner's whole iteration on a CUDA device, on any machine (paper_cuda says how).

Covered: all of ``iterate()`` of PPO (its torch path, both placements), TD3, SAC, FlashSAC and MBPO
(fit, model rollouts, flow and flow agent), replay, normalisers, staging's rings and TorchVectorEnv,
checkpoints from CUDA to the CPU and back. A tensor on the wrong device raises. Not covered: CUDA's
own kernels, streams and graphs, which need a GPU (``pytest -m gpu``).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from algorithms import kind_of, small
from paper_cuda import CUDA, PaperTensor, paper_cuda
from torch import Tensor
from trainings import assert_equal, untimed

import pyfastenv
from pyfastenv.runs import checkpoint
from pyfastenv.runs.checkpoint import CheckpointDir
from pyfastenv.sampling.staging import Collector, PinnedRing, TorchVectorEnv

pytestmark = pytest.mark.usefixtures("short_fits", "recorded")

DISCRETE = {"env_id": "CartPole-v1"}
CASES: dict[str, dict[str, Any]] = {  # by the algorithm's name, and what is special
    "ppo": {},
    "ppo, trajectory pool": {"pool_size": 2, "target_kl": 0.01},
    "ppo, acting on the device": {"device": "cuda"},
    "ppo, discrete, acting on the device": {**DISCRETE, "device": "cuda"},
    "ppo, discrete": {**DISCRETE, "value_clip": 0.2},
    "ppo, plain": {"accelerate": "none"},
    "dqn, two seeds": {"num_seeds": 2, "normalize_obs": True},
    "td3": {"normalize_obs": True},
    "td3, two seeds, plain": {"normalize_obs": True, "num_seeds": 2, "accelerate": "none"},
    "td3, hindsight": {"env_id": "dict_tasks:GoalArm", "her_goals": 4, "total_steps": 80},
    "td3_bc, two seeds": {"num_seeds": 2, "n_step": 3},
    "sac": {},
    "sac, plain": {"accelerate": "none"},
    "sac, two seeds, amp": {"num_seeds": 2, "amp": True, "n_step": 3},
    "flashsac, two seeds": {"num_seeds": 2},
    "mbpo, flow, two seeds": {"dynamics": "flow", "num_seeds": 2},
}


# few gradient steps: each operation on paper takes as long as a hundred elsewhere
SHORT: dict[str, dict[str, Any]] = {
    "ppo": {"num_steps": 8, "update_epochs": 1},
    "dqn": {"updates_per_step": 0.1},
    "td3": {"updates_per_step": 0.1},
    "td3_bc": {"total_steps": 4},
    "flashsac": {"log_every": 2, "num_blocks": 1},
    "mbpo": {"log_every": 4},
}


@pytest.fixture
def cuda() -> Iterator[None]:
    with paper_cuda():
        yield


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [x for item in value.values() for x in tensors(item)]
    return [x for item in value for x in tensors(item)] if isinstance(value, list | tuple) else []


def on_cpu(value: Any) -> Any:
    """A state as a checkpoint gives it back."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, dict):
        return {key: on_cpu(item) for key, item in value.items()}
    return type(value)(map(on_cpu, value)) if isinstance(value, list | tuple) else value


def test_paper_raises_as_cuda_does(cuda: None) -> None:
    there = torch.ones(3, device=CUDA)
    assert isinstance(there, PaperTensor) and there.device == CUDA and there.is_cuda
    assert (there * torch.tensor(2.0)).tolist() == [2.0, 2.0, 2.0]  # CUDA takes these
    assert there[torch.tensor([0, 2])].shape == (2,)
    assert bool((there > 0).any()) and there.cpu().numpy().sum() == 3.0
    for mixed in (
        lambda: there + torch.ones(3),
        lambda: torch.cat((there, torch.ones(3))),
        lambda: torch.ones(3).copy_(there).addcmul_(there, there),
        lambda: torch.ones(3)[there > 0],
        lambda: there.normal_(generator=torch.Generator()),
        lambda: torch.rand(3, generator=torch.Generator(CUDA)),
    ):
        with pytest.raises(RuntimeError, match=r"device|cuda"):
            mixed()
    with pytest.raises(TypeError, match="can't convert cuda"):
        there.numpy()
    parameter = torch.nn.Parameter(there)
    (parameter * parameter).sum().backward()
    assert parameter.grad is not None and parameter.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("name", CASES)
def test_a_whole_training(name: str, tmp_path: Path) -> None:
    """No devices mix, results are the CPU's, checkpoints go from CUDA to CUDA and to the CPU."""
    algorithm_name = name.partition(",")[0]
    kind, options = kind_of(algorithm_name), {**SHORT.get(algorithm_name, {}), **CASES[name]}
    there = small(algorithm_name, **{"device": "sample-cpu", **options})
    here = small(algorithm_name, **{**options, "device": "cpu"})
    with paper_cuda():
        algorithm = kind(there)
        metrics = [algorithm.iterate() for _ in range(2)]
        algorithm.eval_policy()
        parts = tensors(algorithm.state_dict())
        assert any(isinstance(part, PaperTensor) for part in parts)
        path = CheckpointDir(tmp_path).save(1, {"state": on_cpu(algorithm.state_dict())})
        restored = kind(there, restore=checkpoint.load(path)["state"])
        for each in (algorithm, restored):
            each.iterate()
        assert_equal(on_cpu(algorithm.state_dict()), on_cpu(restored.state_dict()))
    plain = kind(here)
    expected = [plain.iterate() for _ in range(2)]
    if there.device == "sample-cpu":  # elsewhere the device draws the actions
        assert all_untimed(metrics) == pytest.approx(all_untimed(expected), rel=0.02, abs=1e-3)
    on_the_cpu = kind(here, restore=checkpoint.load(path)["state"])
    on_the_cpu.iterate()
    assert on_the_cpu.global_step == algorithm.global_step
    for each in (algorithm, restored, plain, on_the_cpu):
        each.envs.close()


def all_untimed(rows: list[dict[str, float]]) -> dict[str, float]:
    return {
        f"{name} of iteration {i}": value
        for i, row in enumerate(rows)
        for name, value in untimed(row).items()
    }


def test_staging(cuda: None) -> None:
    envs = pyfastenv.make_vec("Hopper-v5", 3, num_threads=1)
    tenvs = TorchVectorEnv(envs, CUDA)
    obs, _ = tenvs.reset(seed=1)
    assert obs.device == CUDA and obs.dtype == torch.float32
    obs, rewards, terminations, truncations, _ = tenvs.step(torch.zeros(3, 3, device=CUDA))
    assert {x.device for x in (obs, rewards, terminations, truncations)} == {CUDA}
    with pytest.raises(ValueError, match="actions: expected a tensor on cuda:0, got cpu"):
        tenvs.step(torch.zeros(3, 3))
    tenvs.async_reset(seed=1)
    *_, infos = tenvs.recv(3)
    assert infos["env_id"].device == CUDA
    tenvs.send(torch.zeros(3, 3, device=CUDA), infos["env_id"])
    assert tenvs.recv(3)[0].shape == (3, 11)
    tenvs.close()
    ring = PinnedRing({"x": ((4,), torch.float32)}, 2, CUDA)
    with Collector(lambda tensors: tensors["x"].fill_(2.0), ring) as collector:
        batch, _ = collector.next()
    assert batch["x"].device == CUDA and batch["x"].tolist() == [2.0] * 4
