"""Forks of the tests' process: what needs processes does not pay for another start of torch."""

import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

forking = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def fork(action: Callable[[], int | None], errors: Path) -> int:
    """Starts a fork that does this and ends with the status returned (None: 0); returns its id.

    Args:
        action: What is done.
        errors: What the fork writes to stderr.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        sys.stderr = errors.open("w", buffering=1)
        os.dup2(sys.stderr.fileno(), 2)
        if "torch" in sys.modules:  # the forked OpenMP has none of its threads
            sys.modules["torch"].set_num_threads(1)
        status = action() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def status_of(child: int) -> int:
    """Waits for a fork; its exit status, or the negative number of a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def two_processes(action: Callable[[int], int | None], folder: Path) -> tuple[list[int], list[str]]:
    """Two processes of one training, as torchrun starts them, each given its rank.

    Returns:
        Their statuses, and what they wrote to stderr.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    paths = [folder / f"errors-{rank}.txt" for rank in range(2)]

    def run(rank: int) -> int | None:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        return action(rank)

    children = [fork(lambda rank=rank: run(rank), paths[rank]) for rank in range(2)]
    return [status_of(child) for child in children], [path.read_text() for path in paths]
