"""Several threads' work beside each other, for tests."""

import faulthandler
import threading
from collections.abc import Callable


class HangError(AssertionError):
    """A thread does not end."""


def run_threads(*works: Callable[[], None], patience: float = 600.0) -> None:
    """Runs these beside each other and raises what any of them raised.

    Raises:
        HangError: One has not ended ``patience`` seconds after it was waited for; it goes on.
    """
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)
        if thread.is_alive():
            faulthandler.dump_traceback()
            raise HangError("a thread hangs")
    if errors:
        raise errors[0]
