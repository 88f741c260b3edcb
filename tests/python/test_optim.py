"""Adam on flat vectors against torch's."""

from typing import Any

import pytest
import torch
from trainings import assert_equal

from pyfastenv.nn.networks import MLP, FlatParameters
from pyfastenv.nn.optim import FlatAdam

kinds = pytest.mark.parametrize("fused", [False, True])


def make(fused: bool, **options: Any) -> tuple[FlatParameters, Any]:
    torch.manual_seed(0)
    flat = FlatParameters([MLP((3, 5, 2), num_networks=2)])
    return flat, FlatAdam(flat, fused=fused, **{"lr": 0.01, **options})


def set_gradient(flat: FlatParameters, step: int) -> None:
    """Sets gradients of all magnitudes, with zeros."""
    generator = torch.Generator().manual_seed(step)
    shape = flat.grad.shape
    scale = 10.0 ** torch.randint(-12, 4, shape, generator=generator)
    flat.grad.copy_(torch.randn(shape, generator=generator) * scale)
    flat.grad[::7] = 0.0


@kinds
@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.9), "eps": 1e-3}], ids=str)
def test_it_is_torchs_adam(fused: bool, options: dict[str, Any]) -> None:
    flat, optimizer = make(fused, **options)
    parameter = torch.nn.Parameter(flat.parameter.detach().clone())
    expected = torch.optim.Adam([parameter], lr=0.01, **options)
    for step in range(20):
        set_gradient(flat, step)
        parameter.grad = flat.grad.clone()
        optimizer.step()
        expected.step()
        assert torch.equal(flat.grad, parameter.grad)
        torch.testing.assert_close(flat.parameter, parameter, rtol=1e-5, atol=1e-6)


def test_after_a_reset_it_is_as_new() -> None:
    flat, optimizer = make(True)
    set_gradient(flat, 0)
    optimizer.step()
    optimizer.reset()
    new_flat, new = make(True)
    with torch.no_grad():
        new_flat.parameter.copy_(flat.parameter)
    for each_flat, each in ((flat, optimizer), (new_flat, new)):
        set_gradient(each_flat, 1)
        each.step()
    assert torch.equal(flat.parameter, new_flat.parameter)
    assert_equal(optimizer.state_dict(), new.state_dict())
