"""``pyfastenv plan``: a robot that plans while it moves; how fast it plans, a film, its cost."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from pyfastenv.planning import MPPI, CrossEntropy, ModelRollouts, Planner, PredictiveSampling
from pyfastenv.publish.outputs import check_output
from pyfastenv.publish.plots import COLOURS, FORMATS, make_axes, save_figure
from pyfastenv.publish.video import write_film
from pyfastenv.rendering.renderer import Renderer
from pyfastenv.tools.scenes import SCENES, Scene
from pyfastenv.vector.arguments import integer
from pyfastenv.vector.cpus import available_cpus

OPTIMIZERS = {
    "predictive_sampling": PredictiveSampling,
    "cross_entropy": CrossEntropy,
    "mppi": MPPI,
}
_FPS = 25  # at most
_MOST_SECONDS = 3600.0


@dataclass(frozen=True)
class Planned:
    """The course of a planned motion.

    Attributes:
        scene: Its name.
        control_s: Time between two controls, and plans [s].
        planning_s: How long each plan took, (num_controls,) [s].
        costs: Of the states that were reached, (num_controls,).
        film: The file; None: none was asked for.
        plot: Likewise.
    """

    scene: str
    control_s: float
    planning_s: np.ndarray
    costs: np.ndarray
    film: Path | None = None
    plot: Path | None = None

    @property
    def plans_per_s(self) -> float:
        """Plans per second of planning."""
        return len(self.planning_s) / float(self.planning_s.sum())

    def __str__(self) -> str:
        tenth = max(1, len(self.costs) // 10)
        return (
            f"{self.scene}: {len(self.costs) * self.control_s:.1f} s, "
            f"{self.plans_per_s:.1f} plans/s, {self.plans_per_s * self.control_s:.2f} × real time; "
            f"cost {self.costs[:tenth].mean():.3g} in the first tenth, "
            f"{self.costs[-tenth:].mean():.3g} in the last"
        )


def plan(
    name: str,
    *,
    seconds: float = 5.0,
    optimizer: str = "predictive_sampling",
    num_rollouts: int = 64,
    num_threads: int = 0,
    seed: int = 0,
    film: Path | None = None,
    plot: Path | None = None,
) -> Planned:
    """Lets a scene's robot plan anew at every control.

    Args:
        name: A scene of :data:`pyfastenv.tools.scenes.SCENES`.
        seconds: How long it moves [s of its own time].
        optimizer: A name of :data:`OPTIMIZERS`.
        num_rollouts: Candidates per plan.
        num_threads: Threads that roll out; 0: the CPUs this process may use.
        seed: Of the candidates.
        film: A file ending in .mp4 or .gif.
        plot: A picture of the cost over time, ending in .png, .pdf or .svg.

    Raises:
        ValueError: An unknown scene or optimiser, numbers out of range, other endings.
        ImportError: The package that brings the robot is missing.
        VideoError: There is neither ffmpeg nor Pillow.
    """
    for what, given, known in (("scene", name, SCENES), ("optimizer", optimizer, OPTIMIZERS)):
        if given not in known:
            raise ValueError(f"{what}: expected {', '.join(known)}, got {given!r}")
    if not 0 < seconds <= _MOST_SECONDS:
        raise ValueError(f"seconds: expected more than 0 and at most 3600, got {seconds}")
    for output, formats in ((film, (".mp4", ".gif")), (plot, FORMATS)):
        if output is not None:
            check_output(output, formats)
    scene = SCENES[name]()
    model, data = scene.data.model, scene.data
    num_threads = integer("num_threads", num_threads, minimum=0) or available_cpus()
    rollouts = ModelRollouts(
        model, scene.cost, frame_skip=scene.frame_skip, num_threads=num_threads
    )
    planner = Planner(
        rollouts,
        OPTIMIZERS[optimizer](num_rollouts=num_rollouts, noise=scene.noise),
        horizon=scene.horizon,
        num_knots=scene.num_knots,
        start=scene.start,
        seed=seed,
    )
    control_s = float(model.opt.timestep) * scene.frame_skip
    planning_s: list[float] = []
    costs: list[float] = []

    def move() -> Iterator[None]:
        """Goes on by one control each time that it is asked."""
        for _ in range(max(1, round(seconds / control_s))):
            begin = time.perf_counter()
            data.ctrl = planner.act(data)
            planning_s.append(time.perf_counter() - begin)
            mujoco.mj_step(model, data, scene.frame_skip)
            costs.append(_cost_now(scene))
            yield

    if film is None:
        deque(move(), maxlen=0)
    else:
        every = math.ceil(1 / (control_s * _FPS))
        film = write_film(_frames(scene, move(), every), film, 1 / (control_s * every))
    planned = Planned(name, control_s, np.array(planning_s), np.array(costs), film, plot)
    if plot is not None:
        _draw(planned, plot)
    return planned


def _cost_now(scene: Scene) -> float:
    """The cost of the state that the robot is in, as a rollout of one step."""
    data = scene.data
    state = np.empty(mujoco.mj_stateSize(data.model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(data.model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    parts = (state, data.sensordata, data.ctrl)
    return float(np.squeeze(scene.cost(*(np.array(part)[None, None] for part in parts))))


def _frames(scene: Scene, moves: Iterator[None], every: int) -> Iterator[np.ndarray]:
    model, data = scene.data.model, scene.data
    shown = mujoco.MjData(model)  # mj_forward changes what the next step begins with
    with Renderer(model) as renderer:
        for number, _ in enumerate(moves):
            if number % every == 0:
                mujoco.mj_copyData(shown, model, data)
                mujoco.mj_forward(model, shown)
                renderer.update_scene(shown, scene.camera)
                yield renderer.render()


def _draw(planned: Planned, output: Path) -> None:
    figure, axes = make_axes(f"{planned.scene}, cost of the states reached")
    times = planned.control_s * np.arange(1, len(planned.costs) + 1)
    axes.plot(times, planned.costs, color=COLOURS[0], linewidth=1.2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("cost")
    save_figure(figure, output)
