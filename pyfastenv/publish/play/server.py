"""The server: an environment or a policy live, for the browsers of this machine."""

from __future__ import annotations

import errno
import math
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Literal

from pyfastenv.publish.play.page import Page
from pyfastenv.publish.play.player import Player
from pyfastenv.publish.play.scene import PictureView, SceneView
from pyfastenv.publish.play.source import open_source
from pyfastenv.vector.arguments import integer

_PICTURES = 30.0  # a second, at most
_IDLE = 0.1  # seconds between two looks whether time is to pass
_TAKEN = "port {}: another program has it; --port 0 takes one that is free"

Requests = SimpleQueue[Callable[[], object]]


def play(
    what: str,
    *,
    num_envs: int = 8,
    seed: int = 0,
    best: bool = False,
    policy_id: int = 0,
    actions: Literal["random", "zero"] = "random",
    host: str = "127.0.0.1",
    port: int = 8080,
) -> None:
    """Plays a policy, or an environment without one, until Ctrl-C or SIGTERM.

    Time passes while somebody watches.

    Args:
        what: A run folder, a checkpoint file, or an environment as :func:`pyfastenv.make_vec` takes
            it.
        num_envs: How many environments, of which one is shown; at most 64.
        seed: As of :func:`pyfastenv.runs.evaluation.evaluate`, whose first episode is shown first.
        best: Of a run: the policy with the greatest return of its evaluations, not the newest.
        policy_id: Of a run with several seeds side by side: which policy.
        actions: Of an environment: random ones, or 0.
        host: The address to listen at; another one than this machine's own lets others play, too.
        port: Likewise; 0: any that is free.

    Raises:
        ImportError: viser or mjviser is missing.
        OSError: The address cannot be had, or the port is taken.
        ValueError, CheckpointError: As of :func:`.source.open_source`.
    """
    _import_viser()
    _check_address(host, port)
    source = open_source(
        what, num_envs=num_envs, seed=seed, best=best, policy_id=policy_id, actions=actions
    )
    with closing(source.envs), serving(host, port) as server:
        player = Player(source.envs, source.act, seed, source.reset)
        page, requests = make_page(server, player, source.title)
        url = f"http://{host}:{server.get_port()}"
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            print(f"{url} shows {source.title}; Ctrl-C ends it", flush=True)
            serve(server, player, page, requests)
        except KeyboardInterrupt:
            print(f"\nended after {player.steps:,} steps")
        finally:
            signal.signal(signal.SIGTERM, before)


def make_page(server: Any, player: Player, title: str) -> tuple[Page, Requests]:
    """Builds a player's page; returns it, and where its clients' wishes arrive."""
    requests: Requests = SimpleQueue()
    view = PictureView(server, player) if player.mirror is None else SceneView(server, player)
    page = Page(server, player, view, title, requests.put)
    page.show()
    return page, requests


def serve(server: Any, player: Player, page: Page, requests: Requests) -> None:
    """Plays and does what clients ask, until an exception ends it."""
    waiting, shown_at, stale = 0.0, -math.inf, False
    while True:
        asked = _answer(requests, waiting)
        now, watched = time.monotonic(), bool(server.get_clients())
        if watched:
            stale |= player.advance(now) > 0
        else:
            player.pace.restart()
        if asked or (stale and now - shown_at >= 1.0 / _PICTURES):
            page.show()
            shown_at, stale = now, False
        passes = watched and not player.paused
        waiting = player.pace.wait(time.monotonic()) if passes else _IDLE


def _answer(requests: Requests, waiting: float) -> bool:
    """Does what has been asked, waiting so many seconds for it; whether there was anything."""
    try:
        request = requests.get(timeout=waiting)
    except Empty:
        return False
    request()
    while not requests.empty():
        requests.get()()
    return True


@contextmanager
def serving(host: str, port: int) -> Iterator[Any]:
    """A server of viser's, which says nothing itself and is stopped in the end.

    Raises:
        OSError: Another program has taken the port meanwhile.
    """
    viser = _import_viser()
    with _quiet():
        server = viser.ViserServer(host, port, label="pyfastenv", verbose=False)
    try:
        if port not in (0, server.get_port()):  # viser takes the next one that is free
            raise OSError(_TAKEN.format(port))
        yield server
    finally:
        with _quiet():
            server.stop()


def _check_address(host: str, port: int) -> None:
    """Checks that a server can be had; viser tries other ports, and for ever where it gets none."""
    integer("port", port, minimum=0, below=2**16)
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(_TAKEN.format(port)) from error
        raise OSError(f"{host}, port {port}: {error.strerror or error}") from error


def _import_viser() -> Any:
    try:
        import mjviser  # noqa: F401
        import viser
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'pyfastenv[play]'") from error
    return viser


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps viser's banners, which rich prints, out of the terminal."""
    console = import_module("rich").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
