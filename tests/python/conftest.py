"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Ctrl-C works, also where the tests were started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
