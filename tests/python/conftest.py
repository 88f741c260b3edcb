"""What holds for all tests."""

import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """Ctrl-C works, also where the tests were started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Small networks are slower with more."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
