"""Rollouts of one model by ``pyfastenv.physics`` and by ``mujoco.rollout``, and where they differ.

States begin at rest, near rest, fast, settled, far beyond limits, with turns that are no units;
controls are none, held, random, saturated or at their bounds. Some calls apply forces to dofs and
bodies, some have a model of each rollout's own. Everything is a function of a seed.
"""

import copy
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import mujoco
import numpy as np
import random_edits
from mujoco import rollout as theirs

from pyfastenv import _core, physics

ROLLOUTS = 16
STEPS = 300
SETTLING = 150  # steps until a heap lies
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
DIFFER = "lanes and mj_step differ"


@dataclass(frozen=True)
class Difference:
    """The first number that differs, by steps."""

    step: int
    rollout: int
    element: str
    ours: str  # to the bit
    theirs: str
    rollouts: int  # in how many of them something differs

    def __str__(self) -> str:
        return (
            f"step {self.step}, rollout {self.rollout}: {self.element} is {self.ours} in lanes, "
            f"{self.theirs} by mj_step; {self.rollouts} of {ROLLOUTS} rollouts differ"
        )


@dataclass(frozen=True)
class Verdict:
    """The outcome of a model.

    Attributes:
        kind: "equal": it rides, and no bit differs. "refused": lanes name what they do not do.
            "differs": the trial found lanes wrong. "silent": nothing did, and bits differ.
        refusal: Why it does not ride.
        steps: By lanes and by mj_step each.
        left: The share of them that lanes left to mj_step.
        difference: The first one, if lanes' results differ.
    """

    kind: str
    refusal: str = ""
    steps: int = 0
    left: float = 0.0
    difference: Difference | None = None

    def record(self) -> dict[str, Any]:
        return asdict(self)


# ---- states and controls -------------------------------------------------------------------------


def _moved(model: Any, data: Any, rng: np.random.Generator, far: float, fast: float) -> None:
    """From the state that ``data`` has: a displacement and a velocity."""
    mujoco.mj_integratePos(model, data.qpos, far * rng.uniform(-1, 1, model.nv), 1)
    data.qvel[:] = fast * rng.uniform(-1, 1, model.nv)
    data.act[:] = rng.choice([0.0, 0.1, 1.0]) * rng.uniform(-1, 1, model.na)


def _turns(model: Any) -> list[int]:
    """Where positions have quaternions: of free and ball joints."""
    free, ball = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
    starts = {free: 3, ball: 0}
    kinds = enumerate(model.jnt_type)
    return [int(model.jnt_qposadr[i]) + starts[kind] for i, kind in kinds if kind in starts]


def _begin(model: Any, data: Any, rng: np.random.Generator, rollout: int) -> None:
    """Puts a rollout's first state into ``data``: a keyframe or the default pose, changed."""
    mujoco.mj_resetData(model, data)
    if model.nkey and rollout % 2:
        mujoco.mj_resetDataKeyframe(model, data, rollout // 2 % model.nkey)
    match rollout:
        case 0 | 1:
            pass
        case 2:  # turned by a quarter: faces and axes stay parallel to the world's
            for quat in _turns(model):
                turn = np.zeros(4)
                turn[[0, rng.integers(1, 4)]] = np.sqrt(0.5)
                mujoco.mju_mulQuat(data.qpos[quat : quat + 4], turn, data.qpos[quat : quat + 4] + 0)
        case 3:  # turns of other lengths
            _moved(model, data, rng, 0.1, 0.5)
            for quat in _turns(model):
                data.qpos[quat : quat + 4] *= rng.choice([-1.0, 0.5, 2.0])
        case 4 | 5:
            _moved(model, data, rng, 1e-3, 1e-3)
        case 6 | 7 | 8 | 9:
            _moved(model, data, rng, 0.2, 1.0)
        case 10:
            _moved(model, data, rng, 0.3, 30.0)
        case 11:
            _moved(model, data, rng, 0.3, 8.0)
        case 12:
            _moved(model, data, rng, 2.0, 0.1)
        case 13:
            data.qvel[:] = rng.choice([-1.0, 0.0, 1.0], model.nv)
        case _:  # settled
            _moved(model, data, rng, 0.1, 0.1 * (rollout == 15))
            mujoco.mj_step(model, data, SETTLING)
    if rollout % 5 == 4:
        data.time = rng.uniform(0, 10)


def initial_states(model: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """First states, (ROLLOUTS, nstate), and warm starts, (ROLLOUTS, nv)."""
    data = mujoco.MjData(model)
    states = np.empty((ROLLOUTS, mujoco.mj_stateSize(model, FULL)))
    warm = np.zeros((ROLLOUTS, model.nv))
    for rollout in range(ROLLOUTS):
        _begin(model, data, rng, rollout)
        mujoco.mj_getState(model, data, states[rollout], FULL)
        if rollout >= 14:
            warm[rollout] = data.qacc_warmstart
    return np.nan_to_num(states), np.nan_to_num(warm)


def gentle_states(model: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """First states as people use a robot: its default pose and its keyframes, some moved a bit."""
    data = mujoco.MjData(model)
    states = np.empty((ROLLOUTS, mujoco.mj_stateSize(model, FULL)))
    for rollout in range(ROLLOUTS):
        mujoco.mj_resetData(model, data)
        if model.nkey and rollout % 4 != 0:
            mujoco.mj_resetDataKeyframe(model, data, rollout % model.nkey)
        if rollout >= 8:
            mujoco.mj_integratePos(model, data.qpos, 0.02 * rng.uniform(-1, 1, model.nv), 1)
            data.qvel[:] = 0.1 * rng.uniform(-1, 1, model.nv)
        mujoco.mj_getState(model, data, states[rollout], FULL)
    return states, np.zeros((ROLLOUTS, model.nv))


def gentle_controls(model: Any, rng: np.random.Generator, steps: int) -> np.ndarray:
    """(ROLLOUTS, steps, nu): random, held at a random place, or held at a keyframe's."""
    low, high = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange.T, [[-1.0], [1.0]])
    drawn = rng.uniform(low, high, (ROLLOUTS, steps, model.nu))
    drawn[1::2] = drawn[1::2, :1]
    for rollout in range(3, ROLLOUTS if model.nkey else 0, 4):
        drawn[rollout] = model.key_ctrl[rollout % model.nkey]
    return drawn


def _held(steps: int, count: int) -> np.ndarray:
    """Indices of steps, each held ``count`` times."""
    return np.arange(steps) // count * count


def controls(model: Any, rng: np.random.Generator, steps: int) -> np.ndarray:
    """(ROLLOUTS, steps, nu): a way of acting per rollout."""
    low, high = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange.T, [[-1.0], [1.0]])
    middle, half = (low + high) / 2, (high - low) / 2
    drawn = np.empty((ROLLOUTS, steps, model.nu))
    for rollout in range(ROLLOUTS):
        noise = rng.uniform(-1, 1, (steps, model.nu))
        match rollout % 8:
            case 0:
                drawn[rollout] = 0.0
            case 1 | 6:
                drawn[rollout] = middle + 1.2 * half * noise
            case 2:  # held
                drawn[rollout] = middle + half * noise[0]
            case 3:  # saturated
                drawn[rollout] = middle + 3.0 * (half + 0.1) * np.sign(noise[_held(steps, 50)])
            case 4:  # held for ten steps
                drawn[rollout] = middle + 1.2 * half * noise[_held(steps, 10)]
            case 5:  # at a bound
                drawn[rollout] = np.where(noise[_held(steps, 20)] > 0, low, high)
            case _:
                drawn[rollout] = middle + 0.1 * half * noise
    return drawn


def mocap_poses(model: Any, rng: np.random.Generator, steps: int, *, gentle: bool) -> np.ndarray:
    """(ROLLOUTS, steps, 7 nmocap): positions, then quaternions, that mocap bodies are led through.

    Each moves by some millimetres a step; unless ``gentle``, some stand still, some jump, and some
    have quaternions of other lengths.
    """
    bodies = np.flatnonzero(model.body_mocapid >= 0)
    bodies = bodies[np.argsort(model.body_mocapid[bodies])]
    home = np.concatenate([model.body_pos[bodies].ravel(), model.body_quat[bodies].ravel()])
    moves = np.cumsum(rng.normal(0, 2e-3, (ROLLOUTS, steps, len(home))), axis=1)
    if not gentle:
        moves[0::4] = rng.uniform(-0.2, 0.2, (len(moves[0::4]), 1, 1))
        moves[1::4] = rng.uniform(-0.2, 0.2, moves[1::4].shape)[:, _held(steps, 40)]
        moves[0] = 0.0
    poses: np.ndarray = home + moves
    return poses


def pushes(model: Any, rng: np.random.Generator, steps: int) -> np.ndarray:
    """(ROLLOUTS, steps, nv + 6 nbody): forces on dofs and bodies, of half of the rollouts."""
    weight = 10 * float(model.body_subtreemass[0])
    scale = np.repeat([0.1 * weight, weight], [model.nv, 6 * model.nbody])
    drawn = rng.normal(0, 1, (ROLLOUTS, steps, len(scale))) * scale
    drawn = np.where(rng.random(drawn.shape) < 0.2, drawn, 0.0)
    drawn[::4] = drawn[::4, _held(steps, 50)]
    drawn[1::2] = 0.0
    result: np.ndarray = drawn
    return result


# fields that rollouts may have their own of, bounding volumes staying as they are
OWN = ("geom_size", "geom_margin", "geom_pos", "geom_quat", "geom_friction", "body_ipos",
       "body_iquat", "body_mass", "dof_damping")  # fmt: skip


def own_models(model: Any, rng: np.random.Generator) -> list[Any]:
    """A model of each rollout's own, which differ in some fields."""
    fields = [name for name in OWN if rng.random() < 0.4]
    models = [copy.copy(model) for _ in range(ROLLOUTS)]
    for each in models:
        for name in fields:
            random_edits.draw(each, name, rng)
    return models


# ---- comparison ----------------------------------------------------------------------------------


def element_names(model: Any) -> list[str]:
    """The names of the numbers of a state and of sensordata."""
    joints = [model.joint(i).name or str(i) for i in range(model.njnt)]

    def of(addresses: Any, count: int, what: str) -> list[str]:
        owners = np.searchsorted(addresses, np.arange(count), side="right") - 1
        return [f"{what}[{i}] of joint {joints[owners[i]]}" for i in range(count)]

    def sensors() -> list[str]:
        names = []
        for i in range(model.nsensor):
            kind = mujoco.mjtSensor(model.sensor_type[i]).name.removeprefix("mjSENS_").lower()
            name = f"sensor {model.sensor(i).name or i}, {kind}"
            names += [f"sensordata[{k}] of {name}" for k in range(model.sensor_dim[i])]
        return names

    return [
        "time",
        *of(model.jnt_qposadr, model.nq, "qpos"),
        *of(model.jnt_dofadr, model.nv, "qvel"),
        *(f"act[{i}]" for i in range(model.na)),
        *sensors(),
    ]


def _rolled(
    rollout: Any, models: list[Any], states: np.ndarray, given: dict[str, Any]
) -> np.ndarray:
    """States and sensordata, if there is any, (ROLLOUTS, steps, nstate + nsensordata)."""
    results = rollout(models, mujoco.MjData(models[0]), states, **given)
    return np.concatenate([array for array in results if array is not None], axis=-1)


def first_difference(model: Any, ours: np.ndarray, other: np.ndarray) -> Difference | None:
    """Where results, (ROLLOUTS, steps, nstate + nsensordata), differ first; None if no bit does."""
    differs = ours.view(np.uint64) != other.view(np.uint64)
    if not differs.any():
        return None
    step = int(np.flatnonzero(differs.any(axis=(0, 2)))[0])
    rollout = int(np.flatnonzero(differs[:, step].any(axis=1))[0])
    element = int(np.flatnonzero(differs[rollout, step])[0])
    names = element_names(model)
    values = [repr(float(x[rollout, step, element])) for x in (ours, other)]
    return Difference(
        step,
        rollout,
        names[element] if element < len(names) else f"state[{element}]",
        *values,
        int(differs.any(axis=(1, 2)).sum()),
    )


def compare(
    model: Any, seed: int, *, steps: int = STEPS, gentle: bool = False, sensordata: bool = True
) -> Verdict:
    """Rolls a model out both ways.

    Lanes are neither watched nor left where they are slower, so that every bit of theirs is seen.

    Args:
        model: MjModel.
        seed: Of states and controls.
        steps: How many of them.
        gentle: States and controls as people use a robot; else everything that may be wrong.
        sensordata: Whether it is compared too.
    """
    refusal = _core.lanes_refusal(model._address, sensordata=sensordata)
    wrong = refusal.startswith(DIFFER)
    if refusal and not wrong:
        return Verdict("refused", refusal)
    _core.lanes_refusal(model._address, unchecked=True, sensordata=sensordata)
    states, given = _inputs(model, seed, steps, gentle)
    rng = np.random.default_rng((seed, 2))
    own = not gentle and rng.random() < 0.25
    models = own_models(model, rng) if own else [model]
    with physics.Rollout(nthread=0) as pool, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        given_ours = given if sensordata else given | {"sensordata": False}
        ours = _rolled(pool.rollout, models, states, given_ours)
        asked, left = pool._pool.lane_steps()
    other = _rolled(theirs.rollout, models, states, given)[..., : ours.shape[-1]]
    if asked == 0 and not own:
        raise RuntimeError("the model rides, but lanes were not asked for a step")
    if own and said:  # watched, unlike a model alone
        return Verdict("differs", str(said[0].message), ROLLOUTS * steps)
    difference = first_difference(model, ours, other)
    kind = "differs" if wrong else "silent" if difference else "equal"
    return Verdict(kind, refusal, ROLLOUTS * steps, left / max(1, asked), difference)


def speed(model: Any, seed: int, *, steps: int, seconds: float) -> float:
    """How many times as fast as mujoco.rollout physics.rollout is, in processor time.

    Call it before :func:`compare`, which takes lanes whatever they cost.

    Args:
        model: MjModel.
        seed: Of states and controls as people use a robot.
        steps: How many.
        seconds: How long mujoco.rollout is timed, in turn with ours.
    """
    states, given = _inputs(model, seed, steps, True)
    data = mujoco.MjData(model)
    took = [0.0, 0.0]
    with physics.Rollout(nthread=0) as pool:
        pool.rollout(model, data, states, **given)  # makes the plan
        while took[1] < seconds:
            for way, run in enumerate((pool.rollout, theirs.rollout)):
                start = time.process_time()
                run(model, data, states, **given)
                took[way] += time.process_time() - start
    return took[1] / max(took[0], 1e-3)


def _inputs(model: Any, seed: int, steps: int, gentle: bool) -> tuple[np.ndarray, dict[str, Any]]:
    """First states, and the arguments that give warm starts and controls."""
    rng = np.random.default_rng(seed)
    states, warm = (gentle_states if gentle else initial_states)(model, rng)
    acts = (gentle_controls if gentle else controls)(model, rng, steps)
    state, spec, parts = mujoco.mjtState, 0, []
    if model.nu:
        spec, parts = state.mjSTATE_CTRL, [acts]
    if not gentle and np.random.default_rng((seed, 1)).random() < 0.25:
        spec |= state.mjSTATE_QFRC_APPLIED | state.mjSTATE_XFRC_APPLIED
        parts.append(pushes(model, rng, steps))
    if model.nmocap:
        spec |= state.mjSTATE_MOCAP_POS | state.mjSTATE_MOCAP_QUAT
        parts.append(mocap_poses(model, rng, steps, gentle=gentle))
    inputs = (
        {"control": np.concatenate(parts, axis=-1), "control_spec": spec}
        if parts
        else {"nstep": steps}
    )
    return states, {"initial_warmstart": warm, **inputs}
