"""PPO: its compiled update, discrete actions, its schedule, several processes, mistakes."""

import copy
import json
import math
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import algorithms
import numpy as np
import pytest
import torch
from algorithms import make as _make
from forks import fork, forking, status_of, two_processes
from torch import Tensor, nn
from trainings import through_a_file

import pyfastenv
from pyfastenv import _core, cli
from pyfastenv.algorithms import sac
from pyfastenv.algorithms.mbpo import MBPO
from pyfastenv.algorithms.ppo import PPO, Config, train
from pyfastenv.algorithms.ppo.accelerated import CompiledBfloat16, CompiledEpoch
from pyfastenv.algorithms.ppo.spec import adapted_rate
from pyfastenv.nn.networks import MLP
from pyfastenv.nn.normalize import RunningMoments
from pyfastenv.nn.policy_spec import ACTIVATIONS
from pyfastenv.runs import checkpoint
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.seeds import env_seeds
from pyfastenv.sampling.rollouts import RolloutBatch, rollout
from pyfastenv.training.loop import run

_config = partial(algorithms.small, "ppo")


def _parameters(ppo: PPO) -> torch.Tensor:
    return ppo.flat.parameter.detach().clone()


# ---- the compiled update -----------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1", "dict_tasks:Apart"])
@pytest.mark.parametrize(
    ("activation", "hidden_sizes"),
    [
        ("tanh", (64, 64)),
        ("relu", (7,)),
        ("tanh", ()),
        ("elu", (33, 5, 20)),
        ("silu", (40, 17)),
        ("identity", (33, 5)),
        ("tanh", (300, 280)),  # lines of weights are copied
    ],
)
def test_the_compiled_update_is_the_one_in_torch(
    env_id: str, activation: str, hidden_sizes: tuple[int, ...]
) -> None:
    _assert_the_compiled_update_is_the_one_in_torch(
        env_id=env_id,
        activation=activation,
        hidden_sizes=hidden_sizes,
        num_steps=50,
        minibatch_size=67,  # neither a multiple of anything nor a divisor of the batch
    )


@pytest.mark.parametrize(
    "options",
    [
        {"desired_kl": 0.003},
        {"desired_kl": 10.0, "learning_rate_bounds": (1e-5, 4e-4)},
        *({"activation": x, "layer_norm": True, "hidden_sizes": (33, 5)} for x in ACTIVATIONS),
        {"log_std_init": -1.0, "min_std": math.exp(-1.0)},
        {"env_id": "dict_tasks:Sided", "symmetry": True, "desired_kl": 0.01},
        {"env_id": "dict_tasks:Sided", "symmetry": True, "minibatch_size": 96},  # in three parts
    ],
    ids=str,
)
def test_the_compiled_update_has_all_options(options: dict[str, Any]) -> None:
    _assert_the_compiled_update_is_the_one_in_torch(**{"num_steps": 50, **options})


def _assert_the_compiled_update_is_the_one_in_torch(**options: Any) -> None:
    config = _config(**{"minibatch_size": 33, **options}, entropy_coef=0.01, value_clip=0.1)
    ppo = _make(config)
    samples = ppo._samples(rollout(ppo.envs, ppo.policy_spec(), config.num_steps))
    packed = ppo._pack(samples)
    packed[:, -4] += 0.2 * torch.randn(len(packed))  # as after some updates
    if ppo.mirror is not None:
        packed = torch.cat((packed, ppo._mirrored(packed, samples.obs)))
    orders = torch.stack([ppo._order(len(packed)) for _ in range(2)])
    start = _parameters(ppo)
    assert isinstance(ppo.acceleration.accelerator, CompiledEpoch)
    native = ppo.acceleration.accelerator.epochs(packed, orders)
    after_native = _parameters(ppo)
    moments = ppo.optimizer.mean.clone(), ppo.optimizer.square.clone()

    other = _make(config)
    other.flat.parameter.data.copy_(start)
    in_torch = other.epochs(packed, orders)
    assert not torch.equal(start, after_native)
    torch.testing.assert_close(after_native, _parameters(other), rtol=0, atol=2e-5)
    torch.testing.assert_close(moments[0], other.optimizer.mean, rtol=1e-2, atol=1e-5)
    torch.testing.assert_close(moments[1], other.optimizer.square, rtol=1e-2, atol=1e-6)
    assert other.optimizer.num_steps == ppo.optimizer.num_steps
    assert other.optimizer.num_steps == 2 * (200 // config.minibatch_size)
    assert ppo.optimizer.lr == pytest.approx(other.optimizer.lr)
    assert (ppo.optimizer.lr != config.learning_rate) == (config.desired_kl is not None)
    for mine, theirs in zip(native, in_torch, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-5)

    size = ppo.rows_per_minibatch
    rows = packed[orders[0, :size]]  # a minibatch of one of several processes
    other.flat.parameter.data.copy_(after_native)
    metrics = ppo.acceleration.accelerator._backward(rows)
    expected = other.backward(rows)
    assert torch.equal(_parameters(ppo), after_native)
    torch.testing.assert_close(ppo.flat.grad, other.flat.grad, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(metrics, expected, rtol=1e-3, atol=1e-5)


def _needs_bfloat16() -> None:
    if not _core.bfloat16_unit():
        pytest.skip("neither AMX nor AVX512-BF16")


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1", "dict_tasks:Apart"])
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize(
    ("activation", "hidden_sizes", "rows"),
    [
        *(("tanh", (64, 64), 100), ("tanh", (), 3), ("relu", (7,), 600)),
        *(("elu", (33, 5, 20), 1_000), ("silu", (40, 17), 2_500)),
    ],
)
def test_the_compiled_gradient_in_bfloat16_is_that_of_rounded_factors(
    env_id: str, activation: Any, hidden_sizes: tuple[int, ...], rows: int, layer_norm: bool
) -> None:
    """Of a network's every weight, by one block of rows, eight, and eight of two each."""
    _needs_bfloat16()
    options = {"env_id": env_id, "activation": activation, "hidden_sizes": hidden_sizes}
    options |= {"num_steps": max(rows // 4, 8), "total_steps": 10_000, "entropy_coef": 0.01}
    options |= {"layer_norm": layer_norm}
    plain, compiled = (_make(_config(amp=amp, **options)) for amp in (False, True))
    steps = rollout(plain.envs, plain.policy_spec(), plain.config.num_steps)
    packed = plain._pack(plain._samples(steps))
    packed[:, -4] += 0.05 * torch.randn(len(packed))  # as after some updates
    with torch.no_grad():  # a network whose outputs depend on its inputs
        plain.policy.weight_list[-1].mul_(50.0)
    compiled.flat.parameter.data.copy_(plain.flat.parameter)
    assert isinstance(compiled.acceleration.accelerator, CompiledBfloat16)
    metrics = compiled.acceleration.accelerator._backward(packed[:rows])

    def distances() -> list[float]:
        pairs = zip(*(each.flat.cut(each.flat.grad) for each in (compiled, plain)), strict=True)
        return [float((ours - theirs).norm() / theirs.norm()) for ours, theirs in pairs]

    plain.backward(packed[:rows])
    assert min(distances()[: len(hidden_sizes) + 1]) > 1e-5
    for network in (plain.policy, plain.value):
        network.forward = _in_bfloat16(network)  # type: ignore[method-assign]
    torch.testing.assert_close(metrics, plain.backward(packed[:rows]), rtol=1e-3, atol=1e-3)
    assert max(distances()) < 2e-3


def _in_bfloat16(network: MLP) -> Callable[[Tensor], Tensor]:
    """A pass whose products have bfloat16 factors, in the gradient too."""

    def rounded(x: Tensor) -> Tensor:
        return x + (x.bfloat16().float() - x).detach()

    def activated(x: Tensor) -> Tensor:
        """Slopes are kept rounded, but where floats are kept for layer normalisation."""
        at = x.detach().requires_grad_()
        y = getattr(nn.functional, network.activation)(at)
        (slope,) = torch.autograd.grad(y.sum(), at)
        return y.detach() + (slope if network.norm_list else rounded(slope)) * (x - at.detach())

    def forward(x: Tensor) -> Tensor:
        x = x[0]
        layers = zip(network.weight_list, network.bias_list, strict=True)
        for i, (weight, bias) in enumerate(layers):
            if i > 0:
                if network.norm_list:
                    x = nn.functional.layer_norm(x, x.shape[-1:], *network.norm_list[i - 1][0])
                x = activated(x)
            x = rounded(x) @ rounded(weight[0]) + bias[0]
            x.register_hook(lambda gradient: gradient.bfloat16().float())
        return x[None]

    return forward


@pytest.mark.parametrize("amp", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        *({}, {"env_id": "CartPole-v1"}, {"minibatch_size": 7}, {"minibatch_size": 512}),
        {"minibatch_size": 512, "desired_kl": 0.01},
    ],
)
def test_the_compiled_update_does_not_depend_on_the_number_of_threads(
    options: dict[str, Any], amp: bool
) -> None:
    if amp:
        _needs_bfloat16()
    results = []
    for num_threads in (1, 3, 7):
        ppo = _make(_config(num_threads=num_threads, num_steps=128, amp=amp, **options))
        rows = [ppo.iterate() for _ in range(2)]
        losses = [{k: v for k, v in row.items() if not k.startswith("time/")} for row in rows]
        packed = ppo._pack(ppo._samples(rollout(ppo.envs, ppo.policy_spec(), 128)))
        assert isinstance(ppo.acceleration.accelerator, CompiledEpoch)
        ppo.acceleration.accelerator._backward(packed)  # 512 rows, in eight parts or four
        results.append((_parameters(ppo), ppo.flat.grad.clone(), losses))
        assert ppo.acceleration.accelerator.bfloat16 == amp
    assert results[0][1].any()
    for parameters, gradient, losses in results[1:]:
        assert torch.equal(results[0][0], parameters) and torch.equal(results[0][1], gradient)
        assert losses == results[0][2]


def test_the_compiled_values_are_those_of_the_module() -> None:
    ppo = _make(_config(hidden_sizes=(33, 5)))
    accelerator = ppo.acceleration.accelerator
    assert isinstance(accelerator, CompiledEpoch)
    obs = torch.randn(101, ppo.obs_size)
    with torch.no_grad():
        expected = ppo.value(obs[None]).flatten()
    torch.testing.assert_close(accelerator.values(obs), expected, rtol=1e-5, atol=1e-6)
    assert len(accelerator.values(obs[:0])) == 0


def _update(**changes: Any) -> _core.PpoUpdate:
    sizes = {"obs_size": 3, "policy_sizes": [3, 4, 2], "value_sizes": [3, 4, 1]}
    shared = {"policy_begin": 0, "value_begin": 0, "activation": "tanh", "num_threads": 1}
    flags = dict.fromkeys(("discrete", "layer_norm", "bfloat16"), False)
    return _core.PpoUpdate(**{**flags, **sizes, **shared, **changes})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@forking
def test_the_compiled_update_goes_on_in_a_forked_child(tmp_path: Path) -> None:
    update = _update(num_threads=4)
    hyper = _core.PpoHyper()
    hyper.minibatch_size, hyper.lr = 128, 1e-3
    samples = np.random.default_rng(0).normal(size=(256, 3 + 2 + 4)).astype(np.float32)
    orders = np.arange(256)[None]

    def run() -> bytes:
        vectors = [np.full(49, 0.1, np.float32), *(np.zeros(49, np.float32) for _ in range(2))]
        update.run_epochs(samples, orders, hyper, 0, *vectors)
        update.values(samples[:, :3].copy(), vectors[0])
        return vectors[0].tobytes()

    expected = run()
    assert status_of(fork(lambda: int(run() != expected), tmp_path / "errors")) == 0


def test_the_compiled_update_refuses_what_does_not_fit() -> None:
    update = _update()
    hyper = _core.PpoHyper()
    hyper.minibatch_size = 2
    size = 3 * 4 + 4 * 2 + 4 + 2 + 3 * 4 + 4 + 4 + 1 + 2
    vectors = [np.zeros(size, np.float32) for _ in range(3)]
    samples = np.zeros((5, 3 + 2 + 4), np.float32)
    order = np.arange(5)[None]
    update.run_epochs(samples, order, hyper, 0, *vectors)
    with pytest.raises(ValueError, match=r"samples: expected \(n, 9\) float32"):
        update.run_epochs(samples[:, :8], order, hyper, 0, *vectors)
    with pytest.raises(IndexError, match="rows of samples"):
        update.run_epochs(samples, order + 1, hyper, 0, *vectors)
    with pytest.raises(ValueError, match=r"parameters: expected a writeable"):
        update.run_epochs(samples, order, hyper, 0, vectors[0][1:], *vectors[1:])
    hyper.minibatch_size = 6
    with pytest.raises(ValueError, match="minibatch_size"):
        update.run_epochs(samples, order, hyper, 0, *vectors)


@pytest.mark.parametrize(
    ("policy_sizes", "value_sizes", "message"),
    [
        ([], [3, 1], "policy_sizes: expected at least two sizes, got 0"),
        ([3, 2], [], "value_sizes: expected at least two sizes, got 0"),
        ([3], [3, 1], "policy_sizes: expected at least two sizes, got 1"),
        ([3, 0], [3, 1], "policy_sizes: expected 1 to 1000000, got 0"),
        ([3, 2], [3, 2**31 - 1, 1], "value_sizes: expected 1 to 1000000, got 2147483647"),
        ([3, 2], [300, 1], "value_sizes: expected inputs within an observation of 3, got 300 from"),
        ([3, 2], [3, 2], "value_sizes: expected 1 output, got 2"),
    ],
)
def test_the_compiled_update_refuses_networks_it_cannot_run(
    policy_sizes: list[int], value_sizes: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _update(policy_sizes=policy_sizes, value_sizes=value_sizes)


@pytest.mark.parametrize("action", [-1.0, 2.0, 1e30, float("nan"), float("inf")])
def test_the_compiled_update_refuses_actions_that_do_not_exist(action: float) -> None:
    update = _update(policy_sizes=[3, 2], value_sizes=[3, 1], discrete=True, num_threads=2)
    hyper = _core.PpoHyper()
    hyper.minibatch_size = 4
    vectors = [np.zeros(3 * 2 + 2 + 3 + 1, np.float32) for _ in range(3)]
    samples = np.zeros((4, 3 + 1 + 4), np.float32)
    update.run_epochs(samples, np.arange(4)[None], hyper, 0, *vectors)
    before = [vector.copy() for vector in vectors]
    samples[2, 3] = action
    with pytest.raises(ValueError, match="samples: row 2: expected an action from 0 to 1, got"):
        update.run_epochs(samples, np.arange(4)[None], hyper, 1, *vectors)
    with pytest.raises(ValueError, match="step: expected an integer >= 0, got -1"):
        update.run_epochs(samples, np.arange(4)[None], hyper, -1, *vectors)
    for vector, old in zip(vectors, before, strict=True):
        np.testing.assert_array_equal(vector, old)


# ---- learning ----------------------------------------------------------------------------------


def test_it_learns_with_discrete_actions() -> None:
    config = _config(
        env_id="CartPole-v1",
        total_steps=60_000,
        learning_rate=2e-3,
        num_envs=16,
        num_steps=64,
        minibatch_size=128,
        update_epochs=10,
        hidden_sizes=(64, 64),
    )
    ppo = _make(config)
    first, last = [], []
    while ppo.global_step < config.total_steps:
        metrics = ppo.iterate()
        early = ppo.global_step < config.total_steps // 10
        if "train/return" in metrics:
            (first if early else last).append(metrics["train/return"])
    assert np.mean(first) < 100.0
    assert np.mean(last[-5:]) > 300.0


def test_old_batches_stay_in_the_trajectory_pool() -> None:
    ppo = _make(_config(pool_size=3))
    sizes = []
    update = ppo._update
    ppo._update = lambda packed: sizes.append(len(packed)) or update(packed)  # type: ignore[method-assign,func-returns-value]
    for _ in range(4):
        ppo.iterate()
    assert sizes == [128, 256, 384, 384]


def test_overlapped_collection_is_one_update_behind_and_deterministic() -> None:
    def collected(overlap: bool) -> list[torch.Tensor]:
        ppo = _make(_config(overlap=overlap, learning_rate=1e-2))
        log_probs = []
        samples = ppo._samples
        ppo._samples = lambda batch: log_probs.append(batch.log_probs.clone()) or samples(batch)  # type: ignore[method-assign,func-returns-value]
        for _ in range(4):
            ppo.iterate()
        ppo.collector.close()
        return log_probs

    one, other, synchronous = collected(True), collected(True), collected(False)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert torch.equal(one[0], synchronous[0])  # the first is by the present policy
    assert not torch.equal(one[1], synchronous[1])


def test_sampling_on_the_device_is_stepping(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = PPO.begin
    monkeypatch.setattr(
        PPO, "begin", lambda self, state, in_torch: begin(self, state, in_torch=True)
    )
    config = _config(num_steps=32)
    ppo = _make(config)
    batches = []
    samples = ppo._samples

    def keep(batch: RolloutBatch) -> Any:
        batches.append(copy.deepcopy(batch))
        return samples(batch)

    monkeypatch.setattr(ppo, "_samples", keep)
    for _ in range(3):
        ppo.iterate()
    envs = pyfastenv.make_vec(config.env_id, 4, autoreset_mode="SameStep")
    obs, _ = envs.reset(seed=env_seeds(config.seed, 4))
    space = envs.single_action_space
    num_episodes = 0
    for batch in batches:
        ends = iter(range(len(batch.episodes)))
        for t in range(32):
            np.testing.assert_array_equal(batch.obs[t], obs.astype(np.float32))
            actions = np.clip(batch.actions[t].numpy(), space.low, space.high)
            obs, rewards, terminations, truncations, infos = envs.step(actions)
            np.testing.assert_array_equal(batch.rewards[t], rewards.astype(np.float32))
            np.testing.assert_array_equal(batch.terminations[t], terminations)
            np.testing.assert_array_equal(batch.truncations[t], truncations)
            for i in np.flatnonzero(terminations | truncations):
                e = next(ends)
                assert (batch.episodes.steps[e], batch.episodes.env_ids[e]) == (t, i)
                assert batch.episodes.terminated[e] == terminations[i]
                final_obs = infos["final_obs"][i].astype(np.float32)
                np.testing.assert_array_equal(batch.episodes.final_obs[e], final_obs)
                num_episodes += 1
    assert num_episodes > 3
    # and it can be saved
    state = ppo.state_dict()
    ppo.iterate()
    other = PPO(config, restore=copy.deepcopy(state))
    assert other.sampler is not None


def test_target_kl_stops_the_passes() -> None:
    free = _make(_config(update_epochs=8, learning_rate=1e-2)).iterate()
    held = _make(_config(update_epochs=8, learning_rate=1e-2, target_kl=1e-4)).iterate()
    assert free["train/epochs"] == 8 and held["train/epochs"] < 8


def test_the_learning_rate_falls_to_zero() -> None:
    config = _config()
    ppo = _make(config)
    # the first sixth went into the observations' moments
    rates = [ppo.iterate()["train/learning_rate"] for _ in range(5)]
    np.testing.assert_allclose(rates, config.learning_rate * (1 - np.arange(1, 6) / 6))
    assert ppo.global_step == config.total_steps
    assert ppo.iterate()["train/learning_rate"] == 0.0 == ppo.iterate()["train/learning_rate"]
    constant = _make(_config(anneal=False))
    assert {constant.iterate()["train/learning_rate"] for _ in range(3)} == {3e-4}


def test_the_rate_follows_the_divergence() -> None:
    bounds = (1e-5, 1e-2)
    for kl, expected in (
        (0.021, 2e-3),
        (0.02, 3e-3),
        (0.005, 3e-3),
        (0.0049, 4.5e-3),
        (1e-7, 3e-3),
    ):
        assert adapted_rate(3e-3, kl, 0.01, bounds) == pytest.approx(expected)
    assert adapted_rate(1.2e-5, 1.0, 0.01, bounds) == 1e-5
    assert adapted_rate(9e-3, 1e-3, 0.01, bounds) == 1e-2


@pytest.mark.parametrize("accelerate", ["none", "native"])
def test_the_rate_goes_to_where_the_policy_moves_as_desired(accelerate: Any) -> None:
    """From far too low and from far too high; it stays when the run goes on."""
    ends, divergences = [], []
    for rate in (1e-5, 1e-2):
        config = _config(
            accelerate=accelerate, desired_kl=0.01, learning_rate=rate, update_epochs=8,
            total_steps=30 * 128,
        )  # fmt: skip
        ppo = _make(config)
        divergences.append([ppo.iterate()["policy/kl"] for _ in range(12)])
        ends.append(ppo.optimizer.lr)
        again = PPO(config, restore=through_a_file(ppo.state_dict()))
        assert again.optimizer.lr == ppo.optimizer.lr
    assert ends[0] > 5e-5 and ends[1] < 9e-3
    assert all(0.002 < np.mean(last[-6:]) < 0.05 for last in divergences), divergences


@pytest.mark.parametrize("accelerate", ["none", "native"])
def test_no_deviation_falls_below_the_least(accelerate: Any) -> None:
    options = {"accelerate": accelerate, "entropy_coef": -5.0, "learning_rate": 1e-2}
    free = _make(_config(**options, anneal=False))
    held = _make(_config(**options, anneal=False, min_std=0.58))
    for _ in range(4):
        free.iterate(), held.iterate()
    assert free.log_std.exp().max() < 0.5
    torch.testing.assert_close(held.log_std.exp(), torch.full_like(held.log_std, 0.58))


@pytest.mark.parametrize("accelerate", ["none", "native"])
def test_the_entropy_bonus_moves_to_its_end(accelerate: Any) -> None:
    config = _config(entropy_coef=0.1, entropy_coef_end=-5.0, accelerate=accelerate)
    ppo, found, deviations = _make(config), [], []
    for _ in range(5):
        deviations.append(ppo.iterate()["policy/std"])
        found.append(ppo.entropy_coef)
    np.testing.assert_allclose(found, 0.1 - 5.1 * np.arange(1, 6) / 6)
    alike = _make(_config(accelerate=accelerate, entropy_coef=0.1))
    assert deviations[-1] < [alike.iterate()["policy/std"] for _ in range(5)][-1] - 1e-3
    assert alike.entropy_coef == 0.1
    # where the learning rate stays, at any step
    soon = _config(entropy_coef=0.1, entropy_coef_end=-5.0, anneal=False, anneal_steps=3 * 128)
    soon.check()
    ppo, found = _make(soon), []
    for _ in range(4):
        ppo.iterate()
        found.append(ppo.entropy_coef)
    np.testing.assert_allclose(found, [-1.6, -3.3, -5.0, -5.0])


def test_the_steps_that_the_moments_take_are_counted() -> None:
    for normalize_obs, steps in ((True, 2 * 4 * 32), (False, 4 * 32)):
        ppo = _make(_config(normalize_obs=normalize_obs))
        ppo.iterate()
        assert ppo.global_step == steps


def test_a_longer_run_does_not_raise_the_learning_rate_again(tmp_path: Path) -> None:
    steps = 4 * 32
    train(_config(run_dir=tmp_path / "run", total_steps=6 * steps, checkpoint_every=steps))
    third = tmp_path / "run" / "checkpoints" / f"step_{4 * steps:012d}.pt"
    with pytest.raises(ValueError, match=r"total_steps: the learning rate falls to 0 at step 768"):
        train(_config(resume=third, run_dir=tmp_path / "no", total_steps=12 * steps))
    assert not (tmp_path / "no").exists()
    # shorter: the schedule stays
    train(_config(resume=third, run_dir=tmp_path / "shorter", total_steps=5 * steps))
    rates = [row["train/learning_rate"] for row in read_metrics(tmp_path / "shorter")]
    np.testing.assert_allclose(rates, 3e-4 * (1 - np.arange(1, 5) / 6))
    # longer: by a schedule that is asked for
    longer = {"run_dir": tmp_path / "longer", "total_steps": 6 * steps, "anneal_steps": 8 * steps}
    train(_config(resume=third, **longer))
    rates = [row["train/learning_rate"] for row in read_metrics(tmp_path / "longer")]
    np.testing.assert_allclose(rates, 3e-4 * np.array([5 / 6, 4 / 6, 3 / 6, 4 / 8, 3 / 8]))
    # without annealing there is nothing to ask for
    constant = {"anneal": False, "run_dir": tmp_path / "constant"}
    train(_config(**constant, total_steps=3 * steps))
    result = train(_config(resume=tmp_path / "constant", anneal=False, total_steps=4 * steps))
    assert result.global_step == 4 * steps


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # compiled, in torch
def test_running_moments_are_those_of_all_samples(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    samples = 1e4 + torch.randn(1000, 3, dtype=dtype, generator=generator)
    moments = RunningMoments(3)
    for part in samples.split([0, 1, 9, 0, 490, 500]):
        moments.update(part)
    torch.testing.assert_close(moments.mean, samples.double().mean(0))
    torch.testing.assert_close(moments.var, samples.double().var(0, correction=0))


# ---- several processes -------------------------------------------------------------------------


@forking
def test_two_processes_are_one_with_twice_the_envs(tmp_path: Path) -> None:
    def train_with(num_envs: int, name: str) -> None:
        shared = {"minibatch_size": 4 * 32, "update_epochs": 4, "total_steps": 4 * 32 * 5}
        train(_config(num_envs=num_envs, run_dir=tmp_path / name, **shared))

    train_with(4, "one")
    statuses, errors = two_processes(lambda rank: train_with(2, "two"), tmp_path)
    assert statuses == [0, 0], errors
    one, two = (checkpoint.load(checkpoint.resolve(tmp_path / name)) for name in ("one", "two"))
    assert one["step"] == two["step"] == 4 * 32 * 5
    assert len(two["ranks"]) == 2
    a, b = one["ranks"][0]["algorithm"], two["ranks"][0]["algorithm"]
    for name in ("policy", "value"):
        for key, value in a[name].items():
            torch.testing.assert_close(value, b[name][key], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(a["obs_moments"]["mean"], b["obs_moments"]["mean"])
    torch.testing.assert_close(a["return_moments"]["m2"], b["return_moments"]["m2"])


# ---- mistakes ----------------------------------------------------------------------------------


def test_numbers_of_numpy_and_whole_ones_will_do(tmp_path: Path) -> None:
    config = _config(run_dir=tmp_path / "run", num_envs=np.int64(4), log_std_init=0)
    assert type(config.num_envs) is int
    assert train(config).global_step == config.total_steps
    stored = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert stored["num_envs"] == 4 and stored["log_std_init"] == 0


def test_another_algorithms_options_are_refused() -> None:
    class Mine(PPO):
        pass

    for kind, module in ((PPO, "ppo"), (Mine, "ppo"), (MBPO, "mbpo")):
        message = f"{kind.__name__} expects pyfastenv.algorithms.{module}.spec.Config"
        with pytest.raises(TypeError, match=message):
            run(kind, sac.Config())


def test_an_own_class_may_stand_beside_another_algorithms_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine(PPO):
        pass

    config = _config(run_dir=tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "Config", sac.Config)  # as if imported from there
    assert run(Mine, config).global_step == config.total_steps


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ("HalfCheetah-v5", 1e-3)),
        (["--env-id", "Swimmer-v5"], ("Swimmer-v5", 1e-3)),
        (["--env-id=Walker2d-v5"], ("Walker2d-v5", 3e-4)),
        (["--env_id", "Swimmer-v5", "--learning-rate", "0.5"], ("Swimmer-v5", 0.5)),
    ],
)
def test_the_command_line_starts_from_the_preset(
    arguments: list[str], expected: tuple[str, float], ppo_configs: list[Config]
) -> None:
    assert cli.main(["train", "ppo", *arguments]) == 0
    assert (ppo_configs[0].env_id, ppo_configs[0].learning_rate) == expected


# ---- on a GPU ----------------------------------------------------------------------------------

needs_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="PyTorch finds no CUDA device"
)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize(
    "fields", [{"device": "sample-cpu"}, {"device": "sample-cpu", "pool_size": 2}]
)
def test_learning_on_cuda_is_learning_on_the_cpu(fields: dict[str, Any]) -> None:
    on_cpu = _make(_config(**{**fields, "device": "cpu"}))
    on_cuda = _make(_config(**fields))
    for _ in range(2):
        expected, metrics = on_cpu.iterate(), on_cuda.iterate()
    torch.testing.assert_close(_parameters(on_cuda).cpu(), _parameters(on_cpu), rtol=0, atol=1e-3)
    assert metrics["loss/value"] == pytest.approx(expected["loss/value"], rel=1e-2)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize(
    "fields",
    [
        {"device": "cuda"},
        {"device": "cuda", "env_id": "CartPole-v1"},
        {"device": "sample-cpu", "overlap": True},
    ],
)
def test_every_placement_runs_and_resumes(fields: dict[str, Any]) -> None:
    ppo = _make(_config(**fields))
    for _ in range(3):
        metrics = ppo.iterate()
    assert np.isfinite(metrics["loss/policy"]) and np.isfinite(metrics["loss/value"])
    other = PPO(_config(**fields), restore=through_a_file(ppo.state_dict()))
    other.iterate()
    assert other.global_step == ppo.global_step + 128
