"""A folder with which an own task's policy runs without pyfastenv: policy, model and a program.

What the policy sees, and how its actions become controls, is found by playing the task in plain
Python: each number of an observation must be one of MuJoCo's, of an action's or of the command's,
scaled and shifted, at every step of some random episodes. No method's code is read.
"""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from pyfastenv.publish import run_policy
from pyfastenv.publish.export import Exported, export, exportable
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.evaluation import make_eval_envs
from pyfastenv.runs.saved import load_policy
from pyfastenv.tasks.language.batch import has_batch_functions
from pyfastenv.tasks.language.commands import COMMAND_SETTINGS, setting_name
from pyfastenv.tasks.language.task import Task
from pyfastenv.tasks.pool.plain import PlainEnv

_EPISODES, _STEPS = 16, 12
_TOLERANCE = 1e-9  # of a number that the program computes, relative where it is above 1
# what an observation may be made of, in the order in which it is preferred: what the program has,
# and of mjData
_GIVEN = ("command", "action", "previous_action")
_DATA = ("sensordata", "qpos", "qvel", "actuator_force", "site_xmat", "xmat", "site_xpos", "xpos")
# where an episode starts; of what comes after the first three, what is not MuJoCo's own
_STATE = ("qpos", "qvel", "ctrl", "act", "mocap_pos", "mocap_quat", "eq_active")
_ON_JOINTS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_Array = NDArray[np.float64]


def deploy(run: Path | str, folder: Path, *, policy_id: int = 0) -> list[Exported]:
    """Writes policy.onnx, policy.c, policy.json, model.mjb and run.py.

    Args:
        run: The run folder or checkpoint file, of an own task with continuous actions.
        folder: Where to; it is made, and files of these names in it are replaced.
        policy_id: Which policy, if the run trained several seeds side by side.

    Raises:
        ValueError: This is no such task, or an observation, a control or a step is none that the
            program can compute; nothing has been written. What ``export`` raises.
    """
    saved = load_policy(run)
    task = _task_of(saved)
    policy = exportable(saved, policy_id)
    described = {
        "policy": f"{saved.config.algorithm} on {saved.config.env_id}, {saved.step:,} steps",
        **_describe(task, range(policy.row_begin, policy.row_begin + policy.obs_size)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".deploy-", dir=folder) as unfinished:
        part = Path(unfinished)
        names = ("policy.onnx", "policy.c")
        exported = [export(run, part / name, policy_id=policy_id) for name in names]
        mujoco.mj_saveModel(task.model, str(part / "model.mjb"))
        write_text(part / "policy.json", json.dumps(described, indent=1) + "\n")
        shutil.copyfile(run_policy.__file__, part / "run.py")
        for path in part.iterdir():
            path.replace(folder / path.name)
    return [replace(each, path=folder / each.path.name) for each in exported]


def _task_of(saved: Any) -> Task:
    """The task as it was trained, whatever evaluations had otherwise.

    Raises:
        ValueError: It is none that the program can run.
    """
    with closing(make_eval_envs(saved.config.env_id, saved.env_kwargs, 1)) as envs:
        task = getattr(envs, "task", None)
    if (
        not isinstance(task, Task)
        or has_batch_functions(type(task))
        or not isinstance(saved.spaces[1], Box)
        or len(task.drawn_commands()) > 1
    ):
        raise ValueError(
            f"deploy: expected a task in Python with continuous actions, without batch functions "
            f"and with one drawn command at most, got {saved.config.env_id}"
        )
    return task


def _describe(task: Task, columns: range) -> dict[str, Any]:
    """policy.json, for a policy that sees these columns of observations."""
    model, played = task.model, _play(task)
    moved = [
        trn if kind in _ON_JOINTS else -1
        for kind, trn in zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)
    ]
    joints = [model.joint(i) if i >= 0 else None for i in moved]
    control = _fit(played.ctrl, played.actions)
    if control is None or control["index"] != list(range(model.nu)):
        raise ValueError("deploy: expected controls that are the actions, scaled and shifted")
    command: dict[str, Any] = {}
    for name in task.drawn_commands():
        settings = {each: getattr(task, setting_name(name, each)) for each in COMMAND_SETTINGS}
        command = {"name": name} | {k: np.asarray(v).tolist() for k, v in settings.items()}
        size = task._fields[name].size or 1
        for bound in ("low", "high"):  # of a curriculum, which has a row for each value, the last
            command[bound] = np.reshape(command[bound], (-1, size))[-1].tolist()
    noise = task.observation_noise or {}
    return {
        "mujoco": mujoco.__version__,
        "step": task.dt,  # [s]: the policy acts once in it
        "substeps": task.frame_skip,
        "up_to_date": bool(task.up_to_date),  # mj_step1 follows, before the policy sees anything
        "start_without": int(mujoco.mjtDisableBit.mjDSBL_ACTUATION) * task._resets_passively,
        "actuators": [model.actuator(i).name for i in range(model.nu)],
        "joints": [joint and joint.name for joint in joints],
        "stiffness": model.actuator_gainprm[:, 0].tolist(),
        "damping": [joint and float(joint.damping[0]) for joint in joints],
        "action_scale": control["scale"],
        "action_offset": control["offset"],
        "observation": [
            {"name": name, **_source(name, part, played, model)}
            | {"noise": noise[name]._asdict() if name in noise else None}
            for name, part in played.layout.items()
            if part.offset in columns
        ],
        "command": command,
        "motion": _motion(model) if len(command.get("low", ())) == 3 else [],
        "free": bool(model.njnt and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE),
        "starts": played.starts,
    }


def _play(task: Task) -> Any:
    """T steps of random episodes: where they start, what was seen, done and could be seen of.

    Raises:
        ValueError: A step of the task is not ``frame_skip`` of the model's.
    """
    task, fresh = copy.copy(task), mujoco.MjData(task.model)
    object.__setattr__(task, "observation_noise", None)
    layout = PlainEnv(task).layout
    env, command = PlainEnv(task, layout), next(iter(task.drawn_commands()), None)
    env.action_space.seed(0)
    starts, rows, actions, ctrl = [], [], [], []
    sources: dict[str, list[_Array]] = {name: [] for name in (*_GIVEN, *_DATA)}
    for episode in range(_EPISODES):
        if command:  # any, that it is told from what does not change
            size = task.drawn_commands()[command].size
            env.set_command(command, np.random.default_rng(episode).normal(size=size))
        row, _ = env.reset(seed=episode)
        state = {name: getattr(env.data, name) for name in _STATE}
        moved = [n for n, x in state.items() if not np.array_equal(x, getattr(fresh, n))]
        starts.append({n: state[n].tolist() for n in dict.fromkeys((*_STATE[:3], *moved))})
        action = previous = np.zeros(env.action_space.shape or ())
        for step in range(_STEPS + 1):
            if step > 0:
                previous, action = action, np.asarray(env.action_space.sample(), np.float64)
                before = env.data.time
                row, *_, info = env.step(action)
                took = env.data.time - before
                if "diverged" not in info and not np.isclose(took, task.dt):
                    raise ValueError(
                        f"deploy: expected steps of one self.simulate(data), {task.dt:g} s; "
                        f"{type(task).__name__}.step took {took:g} s"
                    )
                actions.append(action)
                ctrl.append(env.data.ctrl.copy())
            told = getattr(env.task, command) if command else ()
            given = dict(zip(_GIVEN, (told, action, previous), strict=True))
            rows.append(row)
            for name, column in sources.items():
                column.append(
                    np.array(given.get(name, getattr(env.data, name, None)), float).ravel()
                )
    return SimpleNamespace(
        layout=layout.obs,
        up_to_date=task.up_to_date,
        starts=starts,
        rows=np.array(rows),  # (T, obs_size)
        actions=np.array(actions),  # (T - episodes, action_size)
        ctrl=np.array(ctrl),  # (T - episodes, nu)
        sources={name: np.array(column) for name, column in sources.items()},  # (T, n) each
    )


def _source(name: str, part: Any, played: Any, model: Any) -> dict[str, Any]:
    """Which numbers an observation is, and what they belong to.

    Raises:
        ValueError: It is none that is known.
    """
    wanted = played.rows[:, part.offset : part.offset + part.size]
    for source, numbers in played.sources.items():
        if (found := _fit(wanted, numbers)) is not None:
            of = [_owner(model, source, i) for i in found["index"]]
            return {"source": source, "of": of, **found}
    late = "; poses of bodies and sites are of one physics step before without up_to_date = True"
    raise ValueError(
        f"deploy: obs[{name!r}] is not, scaled and shifted, of one of {', '.join(played.sources)}"
        + ("" if played.up_to_date else late)
    )


def _fit(wanted: _Array, numbers: _Array) -> dict[str, list[Any]] | None:
    """Finds the columns of ``numbers`` that ``wanted`` ``(T, n)`` is, scaled and shifted."""
    moves = np.flatnonzero(np.ptp(numbers, 0) > 1e-9)
    if len(moves) == 0 or (np.ptp(wanted, 0) == 0.0).any():
        return None
    x, mean, means = numbers[:, moves], wanted.mean(0), numbers[:, moves].mean(0)
    scale = (x - means).T @ (wanted - mean) / np.square(x - means).sum(0)[:, None]
    offset = mean - means[:, None] * scale  # (moves, n)
    misses = np.abs(x[:, :, None] * scale + offset - wanted[:, None]).max(0)
    best, each = misses.argmin(0), np.arange(wanted.shape[1])
    if (misses[best, each] > _TOLERANCE * np.maximum(1.0, np.abs(wanted).max(0))).any():
        return None
    rounded = (np.round(array[best, each], 12) + 0.0 for array in (scale, offset))
    return dict(
        zip(
            ("index", "scale", "offset"),
            map(np.ndarray.tolist, (moves[best], *rounded)),
            strict=True,
        )
    )


def _owner(model: Any, source: str, index: int) -> str:
    """The name of what a number belongs to; none of a command's."""
    if source == "command":
        return ""
    sites, bodies = np.arange(model.nsite), np.arange(model.nbody)
    begins, owners = {
        "sensordata": (model.sensor_adr, model.sensor),
        "qpos": (model.jnt_qposadr, model.joint),
        "qvel": (model.jnt_dofadr, model.joint),
        "site_xmat": (9 * sites, model.site),
        "site_xpos": (3 * sites, model.site),
        "xmat": (9 * bodies, model.body),
        "xpos": (3 * bodies, model.body),
    }.get(source, (np.arange(model.nu), model.actuator))
    return str(owners(int(np.searchsorted(begins, index, "right")) - 1).name)


def _motion(model: Any) -> list[int]:
    """Places in sensordata of the speed forward, sideways and of turning; none without sensors."""
    kinds = (mujoco.mjtSensor.mjSENS_VELOCIMETER, mujoco.mjtSensor.mjSENS_GYRO)
    places = [model.sensor_adr[model.sensor_type == kind].tolist() for kind in kinds]
    return [places[0][0], places[0][0] + 1, places[1][0] + 2] if all(places) else []
