"""SAC and MBPO on CUDA: graphs do what plain steps do, no step waits, trainings run and resume."""

from typing import Any

import pytest
import torch
from algorithms import small
from cuda_checks import no_synchronisation
from trainings import through_a_file

from pyfastenv.algorithms.mbpo import MBPO
from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.algorithms.sac.spec import METRICS, SAC, SACLearner, SACOptions
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import ReplayPool, RowLayout

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device"),
]
DEVICE = "cuda"
LAYOUT = RowLayout(5, 2)


def learner(num_seeds: int, **options: Any) -> SACLearner:
    return SACLearner(
        LAYOUT, range(num_seeds), SACOptions(hidden_sizes=(32, 32), **options), DEVICE
    )


def minibatches(mine: SACLearner, count: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randn(count, mine.num_seeds, size, LAYOUT.width, device=DEVICE)
    noise = torch.randn(count, mine.num_seeds, *mine.noise_shape(size), device=DEVICE)
    return rows, noise


def assert_close(ours: SACLearner, theirs: SACLearner) -> None:
    one, other = ours.state_dict(), theirs.state_dict()
    for name in ("actor", "critic", "target"):
        for key, tensor in one[name].items():
            torch.testing.assert_close(tensor, other[name][key], msg=f"{name}.{key}")
    torch.testing.assert_close(one["log_temperature"], other["log_temperature"])


@pytest.mark.parametrize("num_seeds", [1, 3])
@pytest.mark.parametrize("bfloat16", [False, True])
def test_graphs_do_what_plain_steps_do(bfloat16: bool, num_seeds: int) -> None:
    graphed, plain = (learner(num_seeds, bfloat16=bfloat16) for _ in range(2))
    metrics, expected = torch.zeros(2, len(METRICS), num_seeds, device=DEVICE)
    for size in (16, 16, 24, 16):  # another batch size: another graph
        rows, noise = minibatches(graphed, 8, size)
        for each in (graphed, plain):  # a graph reads it too
            each.policy_optimizer.lr *= 0.5
        graphed.run(rows, noise, metrics)
        for i in range(len(rows)):
            plain.update(rows[i], noise[i], expected)
        assert_close(graphed, plain)
        torch.testing.assert_close(metrics, expected)
    restored = learner(num_seeds, bfloat16=bfloat16)
    restored.run(*minibatches(restored, 8, 16), torch.zeros_like(metrics))  # a graph of its own
    restored.load_state_dict(through_a_file(graphed.state_dict()))
    rows, noise = minibatches(graphed, 8, 16)
    for each in (graphed, restored):
        each.run(rows, noise, metrics)
    assert_close(graphed, restored)


def test_nothing_in_a_step_waits_for_the_device() -> None:
    sac = learner(2)
    metrics = torch.zeros(len(METRICS), 2, device=DEVICE)
    rows, noise = minibatches(sac, 8, 16)
    sac.run(rows, noise, metrics)
    model = EnsembleDynamics(LAYOUT, [0, 1], DynamicsOptions(hidden_sizes=(16, 16)), DEVICE)
    pool = ReplayPool(2, 100, LAYOUT.width, DEVICE)
    pool.add(rows[0])
    streams = SeedStreams([0, 1], DEVICE)
    inputs = torch.randn(2, 4, LAYOUT.obs_size + LAYOUT.action_size, device=DEVICE)
    members = torch.randint(0, 16, (2, model.options.ensemble_size, 16), device=DEVICE)
    samples = torch.randn(2, 16, inputs.shape[-1] + model.num_outputs, device=DEVICE)
    torch.cuda.synchronize()
    with torch.no_grad(), no_synchronisation():
        sac.run(rows, noise, metrics)
        sac.choice.accelerator.update(rows[0], noise[0], metrics)
        pool.add(rows[0], keep=rows[0, ..., 0] > 0.0)
        pool.draw(streams.uniform(3, 8))
        model._epoch(samples, members)


@pytest.mark.parametrize("options", [{}, {"num_seeds": 2}, {"amp": True}])
@pytest.mark.parametrize("dynamics", [None, "ensemble", "flow"])
def test_trainings_run_and_resume(dynamics: str | None, options: dict[str, Any]) -> None:
    if dynamics is None:
        make, config = SAC, small("sac", device=DEVICE, **options)
    else:
        make, config = MBPO, small("mbpo", device=DEVICE, dynamics=dynamics, **options)
    config.check()
    algorithm = make(config)
    for _ in range(3):
        algorithm.iterate()
    restored = make(config, restore=through_a_file(algorithm.state_dict()))
    for each in (algorithm, restored):
        metrics = each.iterate()
        assert all(value == value for value in metrics.values())
    assert restored.global_step == algorithm.global_step
    algorithm.envs.close()
    restored.envs.close()
