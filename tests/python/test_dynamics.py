"""The ensemble: what it learns, its gradients against autograd, which member predicts which row,
and several seeds against single ones."""

import math

import pytest
import torch
from ensembles import LAYOUT, make, member, randomised
from torch import Tensor
from trainings import assert_equal, through_a_file

from pyfastenv import _core
from pyfastenv.algorithms.mbpo import dynamics
from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.nn.streams import SeedStreams

NUM_OUTPUTS = 3  # the reward, and the change of the observation


MATRIX = torch.tensor([[0.5, -1.0, 2.0], [0.3, 0.1, -0.2], [0.0, 0.4, 0.1]])
OFFSET = torch.tensor([3.0, 0.5, -0.5])
NOISE = torch.tensor([0.3, 0.1, 0.02])


def mean_of(pairs: Tensor) -> Tensor:
    """(r, s' - s) of a linear system; its inputs lie around (0, 100) and (5, 0.1)."""
    return pairs @ MATRIX + OFFSET


def system(seed: int, n: int, noise: float = 1.0) -> Tensor:
    """Rows ``(n, width)`` of the system, with Gaussian noise of ``noise * NOISE``."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randn(n, 3, generator=generator) * torch.tensor([1.0, 5.0, 0.3])
    outcome = mean_of(pairs) + noise * NOISE * torch.randn(n, 3, generator=generator)
    obs = pairs[:, :2]
    return LAYOUT.pack(obs, pairs[:, 2:], obs + outcome[:, 1:], outcome[:, 0], torch.zeros(n))


# ---- learning ------------------------------------------------------------------------------------


def test_it_learns_a_linear_system_and_its_noise() -> None:
    model = make(hidden_sizes=(32, 32), learning_rate=3e-3, max_epochs=60)
    report = model.fit(system(0, 2_500)[None], SeedStreams([0]))
    assert 5 < report.num_epochs[0] <= 60
    test = system(1, 2_000)[None]
    pairs = LAYOUT.obs_actions(test)
    silent = model.predict(pairs, torch.zeros(1, 2_000, NUM_OUTPUTS))
    outcome = torch.cat((silent.rewards[..., None], silent.next_obs - LAYOUT.obs(test)), -1)
    errors = (outcome - mean_of(pairs)).square().mean((0, 1)).sqrt()
    spread = mean_of(pairs).std((0, 1))
    assert (errors < 0.5 * NOISE + 0.01 * spread).all()
    loud = model.predict(pairs, torch.ones(1, 2_000, NUM_OUTPUTS))
    std = torch.cat(
        ((loud.rewards - silent.rewards)[..., None], loud.next_obs - silent.next_obs), -1
    )
    learned = std.square().mean((0, 1)).sqrt()
    torch.testing.assert_close(learned[:2], NOISE[:2], rtol=0.2, atol=0.0)
    # held out: the noise, and little more
    assert report.holdout_errors.shape == (1, 3)
    assert report.holdout_errors.mean().item() == pytest.approx(
        NOISE.square().mean().item(), rel=0.25
    )


def test_training_steps_have_the_gradients_of_autograd() -> None:
    model = randomised(make((1, 2), weight_decays=(0.1, 0.2, 0.4), bound_coef=0.3))
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(6, 20, 3, generator=generator)
    targets = torch.randn(6, 20, NUM_OUTPUTS, generator=generator)
    parameters = [*model.network.parameters(), model.max_log_var, model.min_log_var]
    loss = torch.zeros((), dtype=torch.float64)
    for k in range(2):
        for m in range(3):
            pairs = inputs[3 * k + m] * model.input_std[k] + model.input_mean[k]
            mean, std = member(model, k, m, pairs)
            error = (mean - targets[3 * k + m].double()) / std
            loss = loss + (error.square() + 2.0 * std.log()).mean()
    for weight, decay in zip(model.network.weight_list, (0.1, 0.2, 0.4), strict=True):
        loss = loss + decay * 0.5 * weight.double().square().sum()
    # the official loss sums members and has one pair of bounds: of three pairs, a third each
    loss = loss + 0.3 / 3 * (model.max_log_var - model.min_log_var).double().sum()
    expected = torch.autograd.grad(loss, parameters)
    before = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        model._train_step(inputs, targets)
    for parameter, old, gradient in zip(parameters, before, expected, strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-5)
        # Adam's first step
        large = gradient.abs() > 1e-3
        step = -3e-3 * gradient.sign()
        torch.testing.assert_close((parameter - old)[large], step[large], rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize(
    ("hidden", "decays"),
    [
        (4, [2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4]),
        (2, [2.5e-5, 5e-5, 1e-4]),
        (1, [2.5e-5, 1e-4]),
        (6, [2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 7.5e-5, 7.5e-5, 1e-4]),
    ],
)
def test_weight_decays(hidden: int, decays: list[float]) -> None:
    options = DynamicsOptions(hidden_sizes=(8,) * hidden)
    assert [options.decay(layer) for layer in range(hidden + 1)] == decays


def test_members_see_each_epoch_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(max_epochs=3)
    rows = system(0, 100)
    seen: list[Tensor] = []
    step = model._train_step

    def record(inputs: Tensor, targets: Tensor) -> None:
        assert inputs.shape[:2] == targets.shape[:2]
        seen.append(inputs.clone())
        step(inputs, targets)

    monkeypatch.setattr(model, "_train_step", record)
    model.fit(rows[None], SeedStreams([0]))
    assert [part.shape[1] for part in seen] == [64, 16] * 3
    epochs = [torch.cat(seen[i : i + 2], 1)[..., 0] for i in (0, 2, 4)]  # (members, 80)
    for epoch in epochs[1:]:  # the same rows again, in another order
        assert torch.equal(epoch.sort(1).values, epochs[0].sort(1).values)
        assert not torch.equal(epoch, epochs[0])
    for mine in epochs[0]:  # drawn with replacement: 1 - 1/e of 80 are different ones
        assert 40 <= len(mine.unique()) <= 60
    assert len({tuple(mine.sort().values.tolist()) for mine in epochs[0]}) == 3


def test_an_epoch_may_be_of_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(max_epochs=8, max_epoch_rows=30)
    seen: list[Tensor] = []
    monkeypatch.setattr(model, "_train_step", lambda inputs, _: seen.append(inputs[..., 0].clone()))
    model.fit(system(0, 100)[None], SeedStreams([0]))
    assert [part.shape[1] for part in seen] == [30] * len(seen) and len(seen) > 5
    mine = torch.cat(seen, 1)[0]  # of other rows each time: in the end most of the bootstrap's 50
    assert len(mine[:30].unique()) < 30 and 40 <= len(mine.unique()) <= 60


# ---- the best networks ---------------------------------------------------------------------------


def held_out(rows: Tensor, seed: int, num_holdout: int) -> tuple[Tensor, Tensor]:
    """The held-out and the other rows of a seed's first fit."""
    order = SeedStreams([seed]).uniform(len(rows)).argsort(1)[0]
    return rows[order[:num_holdout]], rows[order[num_holdout:]]


def holdout_errors(model: EnsembleDynamics, k: int, rows: Tensor) -> list[float]:
    targets = torch.cat(
        (LAYOUT.rewards(rows)[:, None], LAYOUT.next_obs(rows) - LAYOUT.obs(rows)), -1
    )
    means = [
        member(model, k, m, LAYOUT.obs_actions(rows))[0] for m in range(model.options.ensemble_size)
    ]
    return [(mean - targets).square().mean().item() for mean in means]


@pytest.mark.parametrize("chunk", [7, 512])
def test_the_best_networks_are_restored(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamics, "_CHUNK_ROWS", chunk)
    # few rows and much noise: it soon learns them by heart, and after no two epochs is it alike
    model = make((3,), ensemble_size=5, num_elites=3, patience=2, max_epochs=60)
    rows = system(0, 200, noise=10.0)
    report = model.fit(rows[None], SeedStreams([3]))
    assert 4 <= report.num_epochs[0] < 60  # it stopped because nothing improved
    holdout, train = held_out(rows, 3, 40)
    errors = holdout_errors(model, 0, holdout)
    assert report.holdout_errors[0].tolist() == pytest.approx(errors, rel=1e-4)
    best = sorted(range(5), key=lambda m: errors[m])[:3]
    assert model.elites.tolist() == [best]
    inputs = LAYOUT.obs_actions(train)
    torch.testing.assert_close(model.input_mean[0, 0], inputs.mean(0))
    torch.testing.assert_close(model.input_std[0, 0], inputs.std(0, correction=0))


def test_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make((0,), patience=2, max_epochs=50, min_improvement=0.1)
    # of three members; with 10 %: improvements in epochs 1, 2 and 5 alone
    script = iter(
        [[9.0, 9.0, 9.0], [8.0, 9.0, 9.0], [7.5, 9.0, 8.2], [7.3, 9.0, 9.0], [9.0, 7.0, 9.0]]
        + [[7.9, 6.4, 8.2]] * 9
    )
    after_each: list[list[Tensor]] = []

    parameters = [*model.network.parameters(), model.max_log_var, model.min_log_var]

    def errors(*_: Tensor) -> Tensor:
        after_each.append([p.detach().clone() for p in parameters])
        return torch.tensor([next(script)])

    monkeypatch.setattr(model, "_holdout_errors", errors)
    report = model.fit(system(0, 100)[None], SeedStreams([0]))
    assert report.num_epochs == [8]
    assert report.holdout_errors.tolist() == [[8.0, 7.0, 9.0]]
    assert model.elites.tolist() == [[1, 0]]
    for parameter, *epochs in zip(parameters, *after_each, strict=True):
        for m, epoch in ((0, 1), (1, 4), (2, 0)):  # each member's own best
            assert torch.equal(parameter[m], epochs[epoch][m])


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("last_batch", [64, 23])
def test_the_compiled_training_is_the_one_in_torch(last_batch: int, bfloat16: bool) -> None:
    options = {"hidden_sizes": (20, 33, 16), "weight_decays": (0.1, 0.2, 0.4), "bound_coef": 0.3}
    exact = randomised(make((1, 2), native=False, **options))
    compiled = randomised(make((1, 2), bfloat16=bfloat16, num_threads=2, **options))
    if bfloat16 and not _core.bfloat16_unit():
        pytest.skip("neither AMX nor AVX512-BF16")
    assert ("in bfloat16" in compiled.choice.name) == bfloat16
    near = 1.0 if bfloat16 else 1e-3
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(2, 100, 6, generator=generator)
    order = torch.randint(100, (2, 3, 64 + last_batch), generator=generator)
    for first in (0, 64):  # two steps, the second of another size
        for model in (exact, compiled):
            with torch.no_grad():
                model._epoch(samples, order[..., first : first + 64])
        ours, theirs = (model.optimizer.state_dict() for model in (compiled, exact))
        assert ours["step"] == theirs["step"] == 1 + first // 64
        start = 0
        for parameter in [*exact.network.parameters(), exact.max_log_var, exact.min_log_var]:
            part = slice(start, start := start + parameter.numel())
            for name, tolerance in (("mean", 0.05), ("square", 0.1)):
                error = (ours[name][part] - theirs[name][part]).norm() / theirs[name][part].norm()
                assert error < near * tolerance
    # and the errors of the networks as they are now
    errors = torch.tensor([exact._holdout_errors(samples).tolist()])
    torch.testing.assert_close(
        compiled._holdout_errors(samples)[None], errors, rtol=0.02 * near, atol=0.0
    )
    held = [
        (member(compiled, k, m, samples[k, :, :3] * std + mean)[0] - samples[k, :, 3:])
        .square()
        .mean()
        .item()
        for k, (std, mean) in enumerate(zip(compiled.input_std, compiled.input_mean, strict=True))
        for m in range(3)
    ]
    assert compiled._holdout_errors(samples).flatten().tolist() == pytest.approx(
        held, rel=0.01 * near
    )


def test_moments_go_on_without_their_bias() -> None:
    model = make(max_epochs=2, batch_size=64)  # 80 rows to train on: two steps of an epoch
    adam, steps = model.optimizer, []
    taken = adam.step

    def step() -> None:
        taken()
        steps.append((adam.num_steps, adam.mean.clone(), adam.square.clone()))

    adam.step = step  # type: ignore[method-assign]
    rows = system(0, 100)[None]
    model.fit(rows, SeedStreams([0]))
    assert [count for count, *_ in steps] == [1, 2, 3, 4]
    _, mean, square = steps[-1]
    torch.testing.assert_close(adam.mean, mean / (1.0 - 0.9**4))
    torch.testing.assert_close(adam.square, square / (1.0 - 0.999**4), rtol=1e-5, atol=0.0)
    kept, square_kept = adam.mean.clone(), adam.square.clone()
    model.fit(rows, SeedStreams([1]))
    gradient = 10.0 * (steps[4][1] - 0.9 * kept)
    torch.testing.assert_close(steps[4][2], 0.999 * square_kept + 0.001 * gradient.square())
    assert torch.equal(adam.mean, steps[-1][1])  # nothing is corrected twice
    assert 1.0 - 0.999 ** steps[4][0] == 1.0


def test_a_fit_may_begin_with_a_new_optimiser() -> None:
    model = make(max_epochs=1, restart_optimizer=True)
    rows = system(0, 100)[None]
    model.fit(rows, SeedStreams([0]))
    state = through_a_file(model.state_dict())
    states = []
    for zeroed in (False, True):
        model.load_state_dict(state)
        if zeroed:
            model.optimizer.reset()
        model.fit(rows, SeedStreams([1]))
        states.append(through_a_file(model.state_dict()))
    assert_equal(*states)


# ---- several seeds -------------------------------------------------------------------------------


@pytest.mark.parametrize("bfloat16", [False, True])
def test_two_seeds_are_two_fits(bfloat16: bool) -> None:
    options = {"patience": 1, "max_epochs": 25, "bfloat16": bfloat16, "hidden_sizes": (16, 16, 16)}
    # one learns nothing and stops early, the other goes on
    rows = torch.stack((system(0, 400, noise=100.0), system(1, 400, noise=0.1)))
    together, streams = make((5, 6), **options), SeedStreams([5, 6])
    reports = [together.fit(rows, streams) for _ in range(2)]
    assert reports[0].num_epochs[0] + 3 < reports[0].num_epochs[1]
    pairs = LAYOUT.obs_actions(rows)[:, :100].contiguous()
    noise = streams.normal(100, NUM_OUTPUTS)
    both = together.predict(pairs, noise)
    for k, seed in enumerate((5, 6)):
        alone, single = make((seed,), **options), SeedStreams([seed])
        for report in reports:
            mine = alone.fit(rows[k : k + 1], single)
            assert mine.num_epochs == report.num_epochs[k : k + 1]
            torch.testing.assert_close(
                mine.holdout_errors[0], report.holdout_errors[k], rtol=1e-3, atol=1e-5
            )
        assert torch.equal(single.normal(100, NUM_OUTPUTS)[0], noise[k])  # has drawn as much
        assert torch.equal(alone.elites[0], together.elites[k])
        for name in ("mean", "square"):  # the optimiser stopped where it stops alone
            parts = together.flat.cut(getattr(together.optimizer, name))
            for mine, theirs in zip(
                alone.flat.cut(getattr(alone.optimizer, name)), parts, strict=True
            ):
                theirs = theirs[3 * k : 3 * k + 3]
                assert (mine - theirs).norm() <= 0.02 * theirs.norm()
        prediction = alone.predict(pairs[k : k + 1], noise[k : k + 1])
        for ours, theirs in zip(prediction, both, strict=True):
            torch.testing.assert_close(ours[0], theirs[k], rtol=1e-3, atol=1e-3)


# ---- predicting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 5, 512])
def test_predictions_are_samples_of_the_members(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamics, "_CHUNK_ROWS", chunk)
    model = randomised(make((0, 1)))
    generator = torch.Generator().manual_seed(1)
    pairs = torch.randn(2, 26, 3, generator=generator)
    for noise in (torch.zeros(2, 26, 3), torch.randn(2, 26, 3, generator=generator)):
        kept = pairs.clone(), noise.clone()
        result = model.predict(pairs, noise)
        assert torch.equal(pairs, kept[0]) and torch.equal(noise, kept[1])
        assert result.rewards.shape == (2, 26) and result.next_obs.shape == (2, 26, 2)
        for k in range(2):
            for i in range(26):
                mean, std = member(model, k, int(model.elites[k, i % 2]), pairs[k, i])
                expected = (mean + std * noise[k, i])[0].detach()
                assert result.rewards[k, i].item() == pytest.approx(expected[0].item(), abs=1e-4)
                change = (result.next_obs - pairs[..., :2])[k, i]
                torch.testing.assert_close(change.double(), expected[1:], rtol=1e-4, atol=1e-4)


def test_predictions_in_bfloat16_are_near(in_software: str) -> None:
    sizes = {"hidden_sizes": (64, 64, 64)}
    exact, rounded = make(**sizes), make(bfloat16=True, native=bool(in_software), **sizes)
    rows = system(0, 600)[None]
    for model in (exact, rounded):
        model.fit(rows, SeedStreams([0]))
    assert not torch.equal(exact.network.weight_list[1], rounded.network.weight_list[1])
    rounded.load_state_dict(exact.state_dict())
    noise = torch.randn(1, 600, NUM_OUTPUTS, generator=torch.Generator().manual_seed(0))
    pairs = LAYOUT.obs_actions(rows).contiguous()
    expected, result = exact.predict(pairs, noise), rounded.predict(pairs, noise)
    for ours, theirs in zip(result, expected, strict=True):
        assert not torch.equal(ours, theirs)
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


# ---- awkward data --------------------------------------------------------------------------------


def test_constant_inputs_are_left_alone() -> None:
    rows = system(0, 300)
    rows[:, 1] = 0.1  # no number of float32
    rows[:, 2] = 0.0
    model = make()
    report = model.fit(rows[None], SeedStreams([0]))
    assert report.holdout_errors.isfinite().all()
    assert model.input_std[0, 0, 1:].tolist() == [1.0, 1.0]
    pairs = LAYOUT.obs_actions(rows)[None, :10].contiguous()
    result = model.predict(pairs, torch.ones(1, 10, NUM_OUTPUTS))
    assert result.rewards.isfinite().all() and result.next_obs.isfinite().all()
    pairs[..., 1] += 0.1  # and elsewhere nothing explodes
    changed = model.predict(pairs, torch.ones(1, 10, NUM_OUTPUTS))
    assert (changed.rewards - result.rewards).abs().max() < 1.0


@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_linear_model(bfloat16: bool) -> None:
    model = make(hidden_sizes=(), bfloat16=bfloat16, learning_rate=0.03, max_epochs=60)
    report = model.fit(system(0, 1_000)[None], SeedStreams([0]))
    noise = NOISE.square().mean().item()
    assert report.holdout_errors.mean().item() == pytest.approx(noise, rel=0.3)


def test_too_few_rows() -> None:
    model = make()
    model.fit(system(0, 5)[None], SeedStreams([0]))
    for n in (0, 1, 4):
        with pytest.raises(ValueError, match=f"rows: expected at least 5 transitions .*, got {n}"):
            model.fit(system(0, n)[None], SeedStreams([0]))


def test_no_more_than_enough_is_held_out() -> None:
    model = make(max_holdout=13, max_epochs=1)
    rows = system(0, 200)
    report = model.fit(rows[None], SeedStreams([4]))
    holdout, _ = held_out(rows, 4, 13)
    assert report.holdout_errors[0].tolist() == pytest.approx(
        holdout_errors(model, 0, holdout), rel=1e-4
    )


# ---- saving --------------------------------------------------------------------------------------


def test_initial_weights_are_truncated_normals_of_the_seed() -> None:
    model = EnsembleDynamics(LAYOUT, [3, 4], DynamicsOptions())
    assert model.network.num_networks == 14
    for weight, bias in zip(model.network.weight_list, model.network.bias_list, strict=True):
        std = 0.5 / math.sqrt(weight.shape[1])
        assert weight.abs().max() <= 2.0 * std
        assert weight.std().item() == pytest.approx(0.88 * std, rel=0.1)  # what truncation leaves
        assert not bias.any()
    alone = EnsembleDynamics(LAYOUT, [4], DynamicsOptions())
    for both, mine in zip(model.network.parameters(), alone.network.parameters(), strict=True):
        assert torch.equal(both[7:], mine)
