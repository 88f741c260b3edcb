"""Random numbers of several seeds side by side against each seed's alone."""

import pytest
import torch
from torch import Tensor

from pyfastenv.nn.streams import SeedStreams

SEEDS = (7, 0, 7, 123)


def draws(streams: SeedStreams) -> list[Tensor]:
    """Draws numbers of all kinds and shapes, one after another."""
    return [
        streams.normal(3, 2),
        streams.uniform(5),
        streams.normal(),
        streams.uniform(),
        streams.normal(0),
        streams.fork().uniform(4),
        streams.uniform(2, 1, 3),
    ]


def test_kinds_of_numbers() -> None:
    streams = SeedStreams([1, 2])
    uniform, normal = streams.uniform(100, 200), streams.normal(100, 200)
    assert uniform.dtype == torch.float64 and normal.dtype == torch.float32
    assert uniform.shape == normal.shape == (2, 100, 200)
    assert uniform.min() >= 0.0 and uniform.max() < 1.0
    counts = torch.histc(uniform[0], bins=10, min=0.0, max=1.0)
    assert (counts - 2_000).abs().max() < 250  # standard deviation 42
    assert normal.mean((1, 2)).abs().max() < 0.05
    assert (normal.std((1, 2)) - 1.0).abs().max() < 0.05
    assert not torch.equal(streams.uniform(3), streams.uniform(3))


def test_nothing_else_is_moved() -> None:
    before = torch.get_rng_state()
    draws(SeedStreams(SEEDS))
    assert torch.equal(torch.get_rng_state(), before)


def test_how_long_a_fork_is_drawn_from_does_not_matter() -> None:
    once, twice, without = (SeedStreams(SEEDS) for _ in range(3))
    fork = once.fork()
    first = fork.normal(3)
    other = twice.fork()
    assert torch.equal(first, other.normal(3))
    other.normal(100)
    expected = once.normal(3)
    assert torch.equal(expected, twice.normal(3))
    assert not torch.equal(fork.normal(3), expected)
    assert not torch.equal(without.normal(3), first)
    assert torch.equal(first[0], first[2]) and not torch.equal(first[0], first[1])  # by seed
    assert not torch.equal(once.fork().normal(3), first)


CUDA = pytest.param("cuda", marks=[
    pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"),
])  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_side_by_side_seeds_get_what_they_would_alone(device: str) -> None:
    together = draws(SeedStreams(SEEDS, device))
    assert all(numbers.device.type == device for numbers in together)
    for k, seed in enumerate(SEEDS):
        alone = draws(SeedStreams([seed], device))
        assert all(torch.equal(a[k : k + 1], b) for a, b in zip(together, alone, strict=True))
