"""FlashSAC's compiled networks against autograd in float64, in any number and on any threads."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pyfastenv import _core
from pyfastenv.algorithms.flashsac.accelerated import CompiledStack
from pyfastenv.nn.networks import FlatParameters, NetworkStack
from pyfastenv.nn.unit_networks import BoundedLogStd, UnitNetwork, project

pytestmark = [
    pytest.mark.skipif(
        not _core.bfloat16_unit(), reason="this machine has neither AMX nor AVX512-BF16"
    ),
]
SHAPES = [(5, 4, 6, 1, 10), (17, 12, 64, 2, 50), (23, 101, 32, 3, 64)]  # the last: rows


def make(
    shape: tuple[int, ...], count: int = 2, *, active: bool = False, threads: int = 1
) -> tuple[NetworkStack, FlatParameters, CompiledStack]:
    """Networks with parameters and moments that they do not begin with.

    Args:
        shape: Of :data:`SHAPES`.
        count: Networks.
        active: Every ReLU lets everything through: no rounding can close one.
        threads: Of the compiled ones.
    """
    inputs, outputs, width, blocks, rows = shape
    torch.manual_seed(3)
    stack = NetworkStack([UnitNetwork(inputs, outputs, width, blocks) for _ in range(count)])
    for module in stack.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_(0.0, 0.2)
            module.running_var.uniform_(0.5, 2.0)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.3, 0.3)
            if active and module.num_features != inputs:
                module.weight.data.mul_(0.25)
                module.bias.data += 1.7
        elif isinstance(module, nn.Linear | nn.RMSNorm):
            module.weight.data += 0.1 * torch.randn_like(module.weight)
    stack.eval()
    flat = FlatParameters([stack])
    return stack, flat, CompiledStack(stack, flat, rows, threads)


def data(shape: tuple[int, ...], count: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, shape[4], shape[0], generator=generator) * 2.0 + 1.0
    return x, torch.randn(count, shape[4], shape[1], generator=generator)


def off(ours: Tensor, theirs: Tensor) -> float:
    return float((ours.detach().double() - theirs.detach()).norm() / theirs.detach().norm())


@pytest.mark.parametrize("by_batch", [True, False], ids=["by batch", "by moments"])
@pytest.mark.parametrize("active", [True, False], ids=["active", "relu"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_passes_are_autograds(shape: tuple[int, ...], active: bool, by_batch: bool) -> None:
    stack, flat, compiled = make(shape, active=active)
    exact = copy.deepcopy(stack).double()
    x, weights = data(shape)
    exact.train(by_batch)
    inputs = x.double().requires_grad_()
    ours, theirs = compiled.forward(x, by_batch=by_batch), exact(inputs)
    assert off(ours, theirs) < 0.01
    flat.grad.fill_(torch.nan)
    by_inputs = compiled.input_gradient(weights)
    (theirs * weights.double()).sum().backward()
    # a ReLU that rounding opens or closes changes a gradient by more than rounding does
    most = 0.04 if active else 0.25
    assert off(by_inputs, inputs.grad) < most
    assert flat.grad.isnan().all()  # nobody asked for them
    if not by_batch:
        return
    compiled.write_gradients(weights)
    # some gradients are nothing but rounding: of a shift before a norm
    little = 2e-3 * float(torch.cat([part.grad.flatten() for part in exact.parameters()]).norm())
    for (name, mine), part in zip(stack.named_parameters(), exact.parameters(), strict=True):
        assert (mine.grad - part.grad).norm() < most * part.grad.norm() + little, name


def test_moments_follow_batches() -> None:
    stack, _, compiled = make(SHAPES[1])
    exact = copy.deepcopy(stack).double()
    x, _ = data(SHAPES[1])
    before = compiled.moments.clone()
    compiled.forward(x)
    assert torch.equal(compiled.moments, before)
    exact.train()
    for _ in range(3):
        compiled.forward(x, by_batch=True)
        exact(x.double())
    for mine, theirs in zip(stack.modules(), exact.modules(), strict=True):
        if isinstance(mine, nn.BatchNorm1d):
            for name in ("running_mean", "running_var"):
                ours, expected = getattr(mine, name).double(), getattr(theirs, name)
                torch.testing.assert_close(ours, expected, rtol=2e-3, atol=2e-3)
    assert not torch.equal(compiled.moments, before)


def test_norms_come_back() -> None:
    stack, _, compiled = make(SHAPES[1])
    exact = copy.deepcopy(stack)
    compiled.project()
    project(exact)
    for ours, theirs in zip(stack.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def pass_of(compiled: CompiledStack, flat: FlatParameters, x: Tensor, weights: Tensor) -> list[Any]:
    outputs = compiled.forward(x, by_batch=True)
    compiled.write_gradients(weights)
    by_inputs = compiled.input_gradient(weights)
    gradients, moments = (each.view(len(x), -1) for each in (flat.grad, compiled.moments))
    return [outputs, by_inputs, gradients, moments]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_network_is_what_it_is_alone(threads: int) -> None:
    shape = SHAPES[1]
    stack, flat, compiled = make(shape, 3, threads=threads)
    x, weights = data(shape, 3)
    alone = []
    for k, network in enumerate(copy.deepcopy(stack).networks):
        single = NetworkStack([network])
        part = FlatParameters([single])
        mine = CompiledStack(single, part, shape[4], 1)
        alone.append(pass_of(mine, part, x[k : k + 1], weights[k : k + 1]))
    together = pass_of(compiled, flat, x, weights)
    for k, results in enumerate(alone):
        assert all(
            torch.equal(ours[k], mine[0]) for ours, mine in zip(together, results, strict=True)
        )


def test_what_was_there_before_does_not_count() -> None:
    shape = SHAPES[1]
    x, weights = data(shape)
    results = []
    for rows_before in (0, shape[4]):  # more than there are now
        _, flat, compiled = make(shape)
        moments = compiled.moments.clone()
        if rows_before:
            pass_of(compiled, flat, x[:, :rows_before] * 3.0, weights[:, :rows_before])
            compiled.moments.copy_(moments)
        results.append(pass_of(compiled, flat, x[:, :37], weights[:, :37]))
    for fresh, used in zip(*results, strict=True):
        assert torch.equal(fresh, used)


def test_a_head_follows() -> None:
    torch.manual_seed(0)
    stack = NetworkStack([nn.Sequential(UnitNetwork(3, 4, 8, 1), BoundedLogStd(-1.0, 1.0)).eval()])
    compiled = CompiledStack(stack, FlatParameters([stack]), 20, 1)
    x = torch.randn(1, 20, 3, requires_grad=True)
    outputs, expected = compiled.forward(x.detach()), stack(x)
    torch.testing.assert_close(outputs, expected.detach(), rtol=0.05, atol=0.02)
    assert outputs[..., 2:].abs().max() < 1.0
    weights = torch.randn(1, 20, 4)
    (expected * weights).sum().backward()
    assert off(compiled.input_gradient(weights), x.grad) < 0.1


def test_it_refuses_what_does_not_fit() -> None:
    shape = SHAPES[0]
    _, flat, compiled = make(shape)
    core = compiled.core
    x, weights = data(shape)
    outputs = torch.empty_like(weights)
    good = {
        "inputs": x.numpy(),
        "parameters": compiled.parameters.numpy(),
        "moments": compiled.moments.numpy(),
        "by_batch": True,
        "outputs": outputs.numpy(),
    }
    first = core.forward(**good)
    for name, value, message in (
        ("inputs", x[:1].numpy(), r"inputs: expected \(2, n, 5\) float32"),
        ("inputs", x.double().numpy(), r"inputs: expected \(2, n, 5\) float32"),
        ("inputs", torch.zeros(2, 11, 5).numpy(), "inputs: expected 1 to 10 rows, got 11"),
        ("inputs", torch.zeros(2, 0, 5).numpy(), "inputs: expected 1 to 10 rows, got 0"),
        ("parameters", compiled.parameters[1:].numpy(), "parameters: expected a writeable"),
        ("moments", compiled.moments[1:].numpy(), "moments: expected a writeable"),
        ("outputs", outputs[:, 1:].numpy(), "outputs: expected a writeable"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            core.forward(**{**good, name: value})
    vectors = (compiled.parameters.numpy(), flat.grad.numpy(), None)
    with pytest.raises(ValueError, match="expected the latest pass, 1, got 0"):
        core.backward(first - 1, weights.numpy(), *vectors)
    with pytest.raises(ValueError, match="by_outputs: expected 10 rows, got 9"):
        core.backward(first, weights[:, 1:].numpy(), *vectors)
    core.backward(first, weights.numpy(), *vectors)
    core.forward(**good)
    with pytest.raises(ValueError, match="backward: expected the latest pass, 2, got 1"):
        core.backward(first, weights.numpy(), *vectors)
    with pytest.raises(ValueError, match="width: expected 1 to"):
        _core.UnitNetworks(
            num_inputs=1, num_outputs=1, width=0, num_blocks=1, num_networks=1, max_rows=1,
            num_threads=1,
        )  # fmt: skip
