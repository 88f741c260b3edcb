"""Options and numbers of a compiled model, drawn at random and written into it in place.

What tasks, planners and domain randomisation do. Knows mjModel's fields and no robot.
"""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

Rng = np.random.Generator
DISABLED = (
    "CONSTRAINT", "EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT", "GRAVITY", "CLAMPCTRL",
    "FILTERPARENT", "REFSAFE", "EULERDAMP", "NATIVECCD", "MIDPHASE", "MULTICCD",
)  # fmt: skip
EULER, RK4, IMPLICITFAST = 0, 1, 3  # mjtIntegrator
PGS, NEWTON = 0, 2  # mjtSolver
SIZES = {2: 1, 3: 2, 4: 3, 5: 2, 6: 3}  # of shapes that have them: sphere … box


def _solref(rng: Rng, count: int) -> np.ndarray:
    """(count, 2): one way of giving them for all, since a mixture of the two is refused."""
    if rng.random() < 0.25:
        return -rng.uniform((10, 0.1), (3000, 80), (count, 2))
    return rng.uniform((0.004, 0.4), (0.1, 1.5), (count, 2))


def _solimp(rng: Rng, count: int) -> np.ndarray:
    """(count, 5)"""
    drawn = rng.uniform((0.3, 0.9, 5e-4, 0.1, 1), (0.9, 0.99, 0.05, 0.9, 3), (count, 5))
    drawn[:, 4] = np.where(rng.random(count) < 0.5, 2.0, drawn[:, 4])
    return drawn


def _scaled(low: float, high: float) -> Callable[[Any, Rng], Any]:
    """Every number times a factor of its own."""
    return lambda field, rng: field * rng.uniform(low, high, field.shape)


def _some(field: Any, rng: Rng, drawn: np.ndarray) -> Any:
    """The new numbers in about half of the rows."""
    rows = rng.random(len(field)) < 0.5
    return np.where(rows.reshape(-1, *[1] * (field.ndim - 1)), drawn, field)


def _turned(field: Any, rng: Rng) -> Any:
    """Turned a bit, lengths kept."""
    turned = field + 0.1 * rng.normal(size=field.shape)
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)


# field of mjModel -> its new value
FIELDS: dict[str, Callable[[Any, Rng], Any]] = {
    "geom_friction": _scaled(0.2, 2),
    "geom_solref": lambda field, rng: _solref(rng, len(field)),
    "geom_solimp": lambda field, rng: _some(field, rng, _solimp(rng, len(field))),
    "geom_margin": lambda field, rng: _some(field, rng, rng.uniform(0, 0.02, field.shape)),
    "geom_gap": lambda field, rng: _some(field, rng, rng.uniform(0, 0.01, field.shape)),
    "geom_condim": lambda field, rng: _some(field, rng, rng.choice([1, 3, 4, 6], field.shape)),
    "geom_contype": lambda field, rng: _some(field, rng, rng.integers(0, 4, field.shape)),
    "geom_conaffinity": lambda field, rng: _some(field, rng, rng.integers(0, 4, field.shape)),
    "geom_priority": lambda field, rng: _some(field, rng, rng.integers(0, 3, field.shape)),
    "geom_solmix": _scaled(0, 2),
    "geom_pos": lambda field, rng: field + 0.005 * rng.normal(size=field.shape),
    "geom_quat": _turned,
    "body_mass": _scaled(0.5, 2),
    "body_inertia": _scaled(0.8, 1.3),
    "body_ipos": lambda field, rng: field + 0.01 * rng.normal(size=field.shape),
    "body_iquat": _turned,
    "body_pos": lambda field, rng: field + 0.002 * rng.normal(size=field.shape),
    "dof_damping": lambda field, rng: _some(field, rng, rng.uniform(0, 2, field.shape)),
    "dof_armature": lambda field, rng: _some(field, rng, rng.uniform(0, 0.1, field.shape)),
    "dof_frictionloss": lambda field, rng: _some(field, rng, rng.uniform(0, 1, field.shape)),
    "jnt_stiffness": lambda field, rng: _some(field, rng, rng.uniform(0, 20, field.shape)),
    "jnt_range": _scaled(0.7, 1.2),
    "jnt_margin": lambda field, rng: _some(field, rng, rng.uniform(0, 0.1, field.shape)),
    "jnt_solref": lambda field, rng: _solref(rng, len(field)),
    "qpos_spring": lambda field, rng: field + 0.1 * rng.normal(size=field.shape),
    "actuator_gear": _scaled(0.5, 1.5),
    "actuator_gainprm": _scaled(0.5, 1.5),
    "actuator_biasprm": _scaled(0.5, 1.5),
    "actuator_forcerange": _scaled(0.3, 1.5),
    "actuator_ctrlrange": _scaled(0.5, 1.5),
    "eq_solref": lambda field, rng: _solref(rng, len(field)),
    "eq_active0": lambda field, rng: rng.integers(0, 2, field.shape),
    "tendon_damping": lambda field, rng: rng.uniform(0, 1, field.shape),
    "tendon_stiffness": lambda field, rng: rng.uniform(0, 5, field.shape),
    "pair_friction": _scaled(0.2, 2),
    "pair_margin": lambda field, rng: rng.uniform(0, 0.02, field.shape),
}


def _resize(model: Any, rng: Rng) -> None:
    """geom_size of some shapes."""
    for geom in np.flatnonzero(rng.random(model.ngeom) < 0.4):
        count = SIZES.get(int(model.geom_type[geom]), 0)
        model.geom_size[geom, :count] *= rng.uniform(0.8, 1.2, count)


def _options(model: Any, rng: Rng) -> list[str]:
    opt = model.opt
    draws: dict[str, Callable[[], Any]] = {
        "integrator": lambda: int(rng.choice([EULER, RK4, IMPLICITFAST])),
        "cone": lambda: int(rng.integers(0, 2)),
        "solver": lambda: int(rng.choice([PGS, NEWTON])),
        "iterations": lambda: int(rng.choice([1, 2, 3, 5, 10, 50, 100])),
        "ls_iterations": lambda: int(rng.choice([1, 3, 5, 10, 50])),
        "impratio": lambda: float(rng.choice([0.5, 1, 10, 100])),
        "tolerance": lambda: float(rng.choice([0, 1e-10, 1e-6, 1e-3])),
        "ls_tolerance": lambda: float(rng.choice([0, 1e-3, 0.1])),
        "timestep": lambda: opt.timestep * float(rng.choice([0.3, 0.5, 0.9, 1.5])),
        "viscosity": lambda: float(rng.choice([0, 0.01, 1])),
        "density": lambda: float(rng.choice([0, 1.2, 1000])),
    }
    changed = [name for name in draws if rng.random() < 0.2]
    for name in changed:
        setattr(opt, name, draws[name]())
    if rng.random() < 0.2:
        opt.gravity[:] = rng.choice([(0, 0, 0), (0, 0, -1.6), (1, 2, -9), (0, 0, 3)])
        changed.append("gravity")
    if rng.random() < 0.1:
        opt.wind[:] = rng.uniform(-3, 3, 3)
        changed.append("wind")
    for name in DISABLED:
        if rng.random() < 0.03:
            opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
            changed.append(name.lower())
    return changed


def draw(model: Any, name: str, rng: Rng) -> None:
    """Draws a field anew."""
    if name == "geom_size":
        return _resize(model, rng)
    field = getattr(model, name)
    if field.size:
        field[:] = FIELDS[name](field, rng)


def edit(model: Any, rng: Rng) -> list[str]:
    """Draws options and fields anew; returns the names of those that have changed."""
    changed = _options(model, rng)
    if rng.random() < 0.15:
        draw(model, "geom_size", rng)
        changed.append("geom_size")
    for name in FIELDS:
        if getattr(model, name).size and rng.random() < 0.1:
            draw(model, name, rng)
            changed.append(name)
    return changed
