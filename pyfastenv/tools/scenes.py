"""Models with something to do in them, for ``pyfastenv plan``: where they start, what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from pyfastenv.planning.model_rollouts import Array, Cost
from pyfastenv.suites.dm_control.base import SuiteModel
from pyfastenv.suites.playground.base import playground_file

_GO1_LEGS = slice(1 + 7, 1 + 19)  # of a state


@dataclass(frozen=True)
class Scene:
    """A model and what is to be done with it.

    Attributes:
        data: Of the model, where the scene starts.
        cost: As :class:`pyfastenv.planning.ModelRollouts` takes it.
        frame_skip: Physics steps for which a control is held.
        horizon: Controls that a plan covers.
        num_knots: Of a plan.
        noise: Of the candidates.
        camera: A camera of the model, which films it.
        start: The controls that the first plan is made of; None: zeros.
    """

    data: Any
    cost: Cost
    frame_skip: int
    horizon: int
    num_knots: int
    noise: float
    camera: str
    start: Array | None = field(default=None)


def cartpole() -> Scene:
    """dm_control's cart-pole, hanging down: up, to the middle, and at rest."""
    data = mujoco.MjData(SuiteModel("cartpole")())
    data.qpos[1] = np.pi

    def cost(states: Array, sensordata: Array, controls: Array) -> Any:
        _, x, angle, speed, turn = np.moveaxis(states, -1, 0)
        return 1 - np.cos(angle) + 0.2 * x**2 + 0.01 * speed**2 + 0.002 * turn**2

    return Scene(data, cost, 2, 40, 8, 0.5, "lookatcart")


def walker() -> Scene:
    """dm_control's planar walker: upright, at 1 m/s."""
    model = SuiteModel("walker")()
    stance = float(model.body("torso").pos[2])

    def cost(states: Array, sensordata: Array, controls: Array) -> Any:
        height, lean, speed = stance + states[..., 1], states[..., 3], sensordata[..., 0]
        low = np.maximum(1.2 - height, 0)
        posture = 10 * low**2 + 1 - np.cos(lean)
        return posture + 0.5 * (speed - 1) ** 2 + 0.01 * (controls**2).sum(-1)

    return Scene(mujoco.MjData(model), cost, 4, 60, 6, 0.5, "side")


def go1() -> Scene:
    """Unitree's Go1 of MuJoCo Playground: from lying on its belly to its stance."""
    model, data = _playground(
        "locomotion/go1/xmls/scene_mjx_feetonly_flat_terrain.xml", "pre_recovery"
    )
    stance = model.key("home").qpos[7:]
    up = model.sensor("upvector").adr[0] + 2

    def cost(states: Array, sensordata: Array, controls: Array) -> Any:
        height, legs, upright = states[..., 3], states[..., _GO1_LEGS], sensordata[..., up]
        bent = ((legs - stance) ** 2).sum(-1)
        drift = (states[..., 1:3] ** 2).sum(-1)
        return 20 * (height - 0.278) ** 2 + 1 - upright + 0.05 * bent + drift

    return Scene(data, cost, 5, 25, 4, 0.1, "track", data.ctrl.copy())


def leap() -> Scene:
    """The LEAP hand of MuJoCo Playground: the cube stays in the hand and turns about the vertical.

    The cost wants 1 rad/s.
    """
    model, data = _playground("manipulation/leap_hand/xmls/scene_mjx_cube.xml", "home")
    place = model.sensor("cube_position").adr[0] + np.arange(3)
    turn = model.sensor("cube_angvel").adr[0] + 2
    mujoco.mj_forward(model, data)
    home = data.sensordata[place].copy()

    def cost(states: Array, sensordata: Array, controls: Array) -> Any:
        away = ((sensordata[..., place] - home) ** 2).sum(-1)
        return 400 * away + (sensordata[..., turn] - 1) ** 2

    return Scene(data, cost, 4, 25, 4, 0.3, "side", data.ctrl.copy())


def _playground(name: str, key: str) -> tuple[Any, Any]:
    """A model of MuJoCo Playground, and its data in one of its key frames."""
    file = playground_file(name)
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key(key).id)
    return model, data


SCENES: dict[str, Callable[[], Scene]] = {
    make.__name__: make for make in (cartpole, walker, go1, leap)
}
