"""``pyfastenv new-task velocity``: a task in a file of its own, to edit, for a robot's model."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template
from typing import Any

import mujoco
import numpy as np

from pyfastenv.runs.atomic import write_text
from pyfastenv.tasks.language.models import read_model_file

_STEP = 0.02  # seconds between actions, about
_FLOOR = """
        spec.worldbody.add_geom(
            name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0.0, 0.0, 0.05)
        )"""


def new_velocity_task(model: Path, output: Path) -> str:
    """Writes a task that follows commanded velocities; returns where it stands, file:Class.

    Args:
        model: MJCF of a robot that is free to fall: a free joint first, then joints with a position
            servo each, in their order; geoms of feet have names.
        output: The file, which must be new: its name is that of the class, too.

    Raises:
        FileExistsError: There is such a file. ValueError: Another name; another kind of robot.
    """
    if output.suffix != ".py" or not output.stem.isidentifier():
        raise ValueError(f"output: expected a name such as my_robot.py, got {output}")
    if output.exists():
        raise FileExistsError(f"output: {output} exists: a task that was edited is not replaced")
    if not output.absolute().parent.is_dir():
        raise FileNotFoundError(f"output: there is no folder {output.parent}")
    if not model.is_file():
        raise FileNotFoundError(f"model: there is no file {model}")
    robot = read_model_file(model, f"model: {model}")
    _check(robot, model)
    name = output.stem.title().replace("_", "")
    has_floor = bool((robot.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)).any())
    text = Template((Path(__file__).parent / "templates" / "velocity.py.txt").read_text())
    write_text(
        output,
        text.substitute(
            file=output,
            name=name,
            model=Path(os.path.relpath(model, output.parent)).as_posix(),
            feet=tuple(_feet(robot, model)),
            joints=robot.nu,
            frame_skip=max(1, round(_STEP / robot.opt.timestep)),
            trunk=robot.body(robot.jnt_bodyid[0]).name,
            floor="" if has_floor else _FLOOR,
            home="self.model.key(0).qpos" if robot.nkey else "self.model.qpos0",
        ),
    )
    return f"{output}:{name}"


def _check(robot: Any, model: Path) -> None:
    """Checks that a robot is one that the template drives."""
    if not robot.njnt or robot.jnt_type[0] != int(mujoco.mjtJoint.mjJNT_FREE):
        raise ValueError(f"{model}: expected a free joint first, of a robot that walks")
    servos = robot.actuator_gainprm[:, 0] == -robot.actuator_biasprm[:, 1]
    moved = robot.actuator_trnid[:, 0].tolist()
    if moved != list(range(1, robot.njnt)) or robot.nq != 7 + robot.nu or not servos.all():
        raise ValueError(
            f"{model}: expected a position servo for each joint after the free one, in their "
            f"order; {robot.nu} actuators move joints {moved} of {robot.njnt}, and "
            f"{int(servos.sum())} are position servos"
        )


def _feet(robot: Any, model: Path) -> list[str]:
    """The lowest geom that collides of each body at a limb's end that is as low as the others'."""
    data = mujoco.MjData(robot)
    if robot.nkey:
        mujoco.mj_resetDataKeyframe(robot, data, 0)
    mujoco.mj_forward(robot, data)
    lowest: dict[int, int] = {}
    for geom in np.argsort(data.geom_xpos[:, 2])[::-1]:
        body, collides = (
            robot.geom_bodyid[geom],
            robot.geom_contype[geom] | robot.geom_conaffinity[geom],
        )
        if body > 0 and collides and body not in robot.body_parentid:
            lowest[body] = int(geom)
    heights = {geom: data.geom_xpos[geom, 2] for geom in lowest.values()}
    feet = [g for g, height in heights.items() if height < min(heights.values()) + 0.05]
    names = [robot.geom(geom).name for geom in sorted(feet)]
    if not names or "" in names:
        raise ValueError(f"{model}: expected geoms with names at the ends of legs, got {names}")
    return names
