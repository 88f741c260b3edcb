"""A policy at play on viser's pages: what clients ask, several of them, and a browser's look."""

from __future__ import annotations

import io
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("mjviser", reason="needs viser and mjviser (make test-play)")
import mjviser
import msgspec
import viser
from pole_task import Pole
from test_task_commands import Driven
from websockets.sync.client import ClientConnection, connect

import pyfastenv
from pyfastenv.publish.play.player import Player
from pyfastenv.publish.play.server import make_page, serve, serving
from pyfastenv.tasks.language.randomise import uniform

CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": (1, 0, 0, 0), "position": (3, 0, 1), "fov": 1.0,
    "near": 0.1, "far": 10.0, "image_height": 48, "image_width": 64, "look_at": (0, 0, 0),
    "up_direction": (0, 0, 1),
}  # fmt: skip
PATIENCE = 60.0  # seconds, on a busy machine


class Stop(Exception):
    """Ends a server's loop."""


class Playing(NamedTuple):
    """A player, its server, and what a client can do."""

    player: Player
    server: Any

    def client(self) -> ClientConnection:
        """Somebody who watches, as soon as the camera is known."""
        url = f"ws://127.0.0.1:{self.server.get_port()}"
        protocol: Any = f"viser-v{viser.__version__}"
        made = connect(url, subprotocols=[protocol], max_size=None)
        made.send(msgspec.msgpack.encode(CAMERA))
        threading.Thread(target=lambda: [None for _ in made], daemon=True).start()  # reads
        return made

    def set(self, client: ClientConnection, label: str, value: Any) -> None:
        """Moves a slider, or presses a button, as a browser says so."""
        handle = self.control(label)
        update = {"uuid": handle._impl.uuid, "updates": {"value": value}}
        client.send(msgspec.msgpack.encode({"type": "GuiUpdateMessage", **update}))

    def control(self, label: str) -> Any:
        handles = self.server.gui._gui_input_handle_from_uuid.values()
        return next(each for each in handles if each.label == label)


@contextmanager
def playing(env: Any = Driven, num_envs: int = 3) -> Iterator[Playing]:
    envs = pyfastenv.make_vec(env, num_envs, autoreset_mode="SameStep", render_mode="rgb_array")
    still = np.zeros(envs.action_space.shape, envs.action_space.dtype)
    with closing(envs), serving("127.0.0.1", 0) as server:
        player = Player(envs, lambda obs: still)
        page, requests = make_page(server, player, "Driven")
        failures: list[BaseException] = []

        def run() -> None:
            try:
                serve(server, player, page, requests)
            except BaseException as error:
                failures.append(error)

        def stop() -> None:
            raise Stop

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield Playing(player, server)
        finally:
            requests.put(stop)
            thread.join(PATIENCE)
        assert [type(failure) for failure in failures] == [Stop]


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "too late"
        time.sleep(0.02)


def test_clients_ask_and_all_see_it() -> None:
    with playing() as it:
        player = it.player
        time.sleep(0.3)
        assert player.steps == 0  # nobody watches
        one, other = it.client(), it.client()
        until(lambda: player.steps > 3)
        it.set(one, "speed", 1.5)
        until(lambda: player.holds("speed"))
        assert it.control("Hold").value
        until(lambda: player.command("speed") == 1.5)
        it.set(other, "Pause", True)
        until(lambda: player.paused)
        steps = player.steps
        it.set(other, "Episode", "one step")
        until(lambda: player.steps == steps + 1)
        assert player.reward == 1.5
        before = player.envs._core.row(0)[0]
        it.set(one, "Towards", "ahead")
        until(lambda: (player.envs._core.row(0)[0] != before).any())
        it.set(one, "Environment", 2)
        until(lambda: player.shown == 2 and not it.control("Hold").value)
        it.set(one, "Speed", "0.25")
        until(lambda: player.pace.speed == 0.25)
        one.close()
        until(lambda: len(it.server.get_clients()) == 1)
        it.set(other, "Episode", "new episode")
        it.set(other, "Go on", True)
        until(lambda: not player.paused and player.steps > steps + 3)
        other.close()
        until(lambda: not it.server.get_clients())
        time.sleep(0.3)
        steps = player.steps
        time.sleep(0.3)
        assert player.steps == steps


@pytest.mark.parametrize("env", ["CartPole-v1", "Ant-v5"])
def test_what_has_no_commands_is_shown_too(env: str) -> None:
    with playing(env) as it, it.client():
        until(lambda: it.player.steps > 5)
        labels = {each.label for each in it.server.gui._gui_input_handle_from_uuid.values()}
        assert ("Towards" in labels) == (env == "Ant-v5") and "Hold" not in labels


def test_geoms_are_sent_anew_where_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[float] = []
    rebuild = mjviser.ViserMujocoScene.rebuild_visual_handles

    def count(scene: Any) -> None:
        sent.append(scene.mj_model.geom_size[0, 0])
        rebuild(scene)

    monkeypatch.setattr(mjviser.ViserMujocoScene, "rebuild_visual_handles", count)
    options: dict[str, Any] = {"randomise": {"geom_size": uniform(0.1, 0.5)}}
    envs = pyfastenv.make_vec(Pole, 2, autoreset_mode="SameStep", **options)
    with closing(envs), serving("127.0.0.1", 0) as server:
        player = Player(envs, lambda obs: np.zeros((2, 1)))
        page, _ = make_page(server, player, "")
        player.step()
        page.show()
        assert sent == []
        player.select(1)
        for _ in range(2):
            page.show()
        assert sent == [player.reflect().model.geom_size[0, 0]]
        player.reset()
        page.show()
        assert len(set(sent)) == 2


def test_a_port_that_is_taken_is_named(one_sentence: Callable[[list[str], str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        one_sentence(["play", "Hopper-v5", "--port", port], f"port {port}: another program has it")
    one_sentence(["play", "Hopper-v5", "--port", "70000"], "port: expected less than 65536")
    one_sentence(["play", "Hopper-v5", "--host", "192.0.2.1"], "192.0.2.1, port 8080: ")


def test_what_cannot_be_drawn_is_said(
    one_sentence: Callable[[list[str], str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    one_sentence(["play", "Acrobot-v1", "--port", "0"], "no picture can be drawn: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_one_line(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "pyfastenv", "play", "CartPole-v1", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as it:
        assert it.stdout is not None
        assert " shows CartPole-v1, random actions; Ctrl-C ends it" in it.stdout.readline()
        it.send_signal(number)
        rest = it.stdout.read()
    assert (it.returncode, rest.strip()) == (0, "ended after 0 steps")


def test_a_browser_shows_the_robot_and_obeys() -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium")
    image = pytest.importorskip("PIL.Image")
    without_graphics_card = [
        "--no-sandbox",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
    ]
    with playing("Ant-v5", 2) as it, sync_api.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium, args=without_graphics_card)
        page = browser.new_page(viewport={"width": 900, "height": 600})
        page.goto(f"http://127.0.0.1:{it.server.get_port()}")
        page.get_by_text("reward_forward", exact=True).wait_for(timeout=1000 * PATIENCE)
        until(lambda: it.player.steps > 5)
        page.get_by_role("button", name="Pause").click()
        until(lambda: it.player.paused)
        page.get_by_role("button", name="ahead").click()

        def skin() -> int:
            """Pixels in a colour that only the robot has: red above blue by far."""
            picture = np.asarray(image.open(io.BytesIO(page.screenshot())).convert("RGB"), int)
            return int((picture[..., 0] - picture[..., 2] > 40).sum())

        until(lambda: skin() > 1000)
        browser.close()
