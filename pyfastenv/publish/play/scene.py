"""The views: what is shown of an environment, a scene of MuJoCo's or a picture."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from pyfastenv.publish.play.player import Player
from pyfastenv.publish.video import draw

_LOOKS = ("geom_", "site_", "mat_", "hfield_", "mesh_")  # fields of what has been sent already
_FAR = 4.0  # how many radii of what moves the camera is away


class SceneView:
    """A scene in three dimensions, drawn by the browser.

    Args:
        server: viser's.
        player: Of environments of MuJoCo.
    """

    def __init__(self, server: Any, player: Player):
        self._player = player
        self._model = player.reflect().model
        self._scene = import_module("mjviser").ViserMujocoScene(server, self._model, num_envs=1)
        self._looks = self._own_looks()

    def add_controls(self, tabs: Any, refresh: Any) -> None:
        """Adds the camera's, and those of contacts, forces and groups."""
        self._scene.set_refresh_handler(refresh)
        with tabs.add_tab("Camera"):
            self._scene.create_scene_gui(_FAR * _radius(self._player.reflect().data))
        with tabs.add_tab("Forces"):
            self._scene.create_overlay_gui()
        with tabs.add_tab("Groups"):
            self._scene.create_groups_gui()

    def show(self) -> None:
        """Shows the present state; geoms anew where this environment's look different."""
        mirror = self._player.reflect()
        if (looks := self._own_looks()) != self._looks:
            self._looks = looks
            self._scene.rebuild_visual_handles()
        self._scene.update_from_mjdata(mirror.data)

    def _own_looks(self) -> dict[str, bytes]:
        _, fields = self._player.envs._state(self._player.shown)
        names = [name for name, *_ in fields if name.startswith(_LOOKS)]
        return {name: np.asarray(getattr(self._model, name)).tobytes() for name in names}


def _radius(data: Any) -> float:
    """The radius of a sphere around all geoms that can move [m]."""
    model = data.model
    moves = model.body_weldid[model.geom_bodyid] > 0
    if not moves.any():
        return float(model.stat.extent)
    places = data.geom_xpos[moves]
    away = np.linalg.norm(places - np.median(places, axis=0), axis=1)
    return float((away + model.geom_rbound[moves]).max())


class PictureView:
    """A picture, of classic control."""

    def __init__(self, server: Any, player: Player):
        self._server, self._player = server, player

    def add_controls(self, tabs: Any, refresh: Any) -> None:
        """Adds nothing: there is no camera."""

    def show(self) -> None:
        """Draws the present state.

        Raises:
            VideoError: No picture can be drawn.
        """
        picture = draw(self._player.envs, self._player.shown)
        self._server.scene.set_background_image(picture)
