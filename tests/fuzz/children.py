"""Runs a part of a fuzzer in a child process, so that a signal or a hang is a result.

Knows nothing of what is fuzzed. A child calls :func:`guard` first and :func:`expect_within` before
everything that must end soon.
"""

import faulthandler
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WAITING = 5.0  # a busy machine gives this process at least a fifth of a processor
# AddressSanitizer reserves terabytes of address space and bounds allocations itself
BOUNDED_BY_SANITIZER = "ASAN_OPTIONS" in os.environ
FAILED = 3  # a child's exit status: it found something, and has said what


@dataclass(frozen=True)
class Outcome:
    """How a child ended."""

    kind: str  # "ok", "wrong", "hang", "error", or a signal's name
    output: str  # the child's stdout
    errors: str  # the end of its stderr

    @property
    def good(self) -> bool:
        return self.kind == "ok"


def run(program: Path, arguments: Sequence[str], timeout: float) -> Outcome:
    """Runs ``python program arguments``; kills it after ``timeout`` [s]."""
    command = [sys.executable, "-W", "ignore", str(program), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        return Outcome("hang", _text(error.stdout), _text(error.stderr)[-6000:])
    kinds = {0: "ok", FAILED: "wrong", -signal.SIGALRM: "hang", -signal.SIGPROF: "hang"}
    kind = kinds.get(done.returncode)
    if kind is None:
        kind = signal.Signals(-done.returncode).name if done.returncode < 0 else "error"
    return Outcome(kind, done.stdout, done.stderr[-6000:])


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def guard(memory: int = 0) -> None:
    """In the child: what is later than :func:`expect_within` prints all stacks and ends it.

    Args:
        memory: Bound of the address space [bytes]; what asks for more gets none. 0: no bound.
    """
    faulthandler.enable()
    for late in (signal.SIGALRM, signal.SIGPROF):
        faulthandler.register(late, all_threads=True, chain=True)
    if memory and not BOUNDED_BY_SANITIZER:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def expect_within(seconds: float) -> None:
    """Starts the clock anew: so much processor time, and a multiple of it on the clock."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WAITING * seconds)
