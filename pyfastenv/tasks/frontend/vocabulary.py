"""Which of NumPy's, math's and MuJoCo's names mean the same bits when they are compiled.

A name that is neither here nor the user's own is refused with a sentence: numba would compile many
more, with other rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np


class StaleRead(RuntimeError):
    """Compiled code wants what MuJoCo has not computed yet; plain Python reads what is there."""


# compiled by numba: only additions, comparisons, copies and the like, exact in any order
NUMPY_PLAIN = {
    getattr(np, name): name
    for name in [
        "abs",
        "absolute",
        "add",
        "all",
        "any",
        "array",
        "ascontiguousarray",
        "atleast_1d",
        "bool_",
        "ceil",
        "concatenate",
        "copy",
        "copysign",
        "cross",
        "divide",
        "empty",
        "empty_like",
        "equal",
        "eye",
        "fabs",
        "float32",
        "float64",
        "floor",
        "full",
        "full_like",
        "greater",
        "greater_equal",
        "hstack",
        "identity",
        "int32",
        "int64",
        "isfinite",
        "isinf",
        "isnan",
        "less",
        "less_equal",
        "logical_and",
        "logical_not",
        "logical_or",
        "max",
        "maximum",
        "min",
        "minimum",
        "multiply",
        "negative",
        "not_equal",
        "ones",
        "ones_like",
        "outer",
        "ravel",
        "reshape",
        "roll",
        "sign",
        "signbit",
        "sqrt",
        "stack",
        "subtract",
        "transpose",
        "true_divide",
        "trunc",
        "vstack",
        "where",
        "zeros",
        "zeros_like",
        "argmax",
        "argmin",
        "flip",
    ]
}
# NumPy's own loops, called through the pool
NUMPY_UNARY = {
    getattr(np, name): name
    for name in [
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arccosh",
        "arctanh",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "cbrt",
        "degrees",
        "radians",
        "rint",
    ]
} | {np.rad2deg: "degrees", np.deg2rad: "radians"}
NUMPY_BINARY = {
    np.arctan2: "arctan2",
    np.hypot: "hypot",
    np.power: "power",
    np.fmod: "fmod",
    np.remainder: "remainder",
    np.mod: "remainder",
}
# written anew, in NumPy's order of additions
NUMPY_OWN: dict[Any, str] = {
    np.sum: "sum",
    np.mean: "mean",
    np.square: "square",
    np.arange: "arange",
    np.clip: "clip",
    np.diag: "diag",
    np.dot: "dot",
    np.matmul: "matmul",
    np.linalg.norm: "norm",
}
# methods of arrays that add up: written as functions above, or refused
ARRAY_METHODS = {"sum": "sum", "mean": "mean", "dot": "dot"}
REFUSED_METHODS = ("std", "var", "prod", "cumsum", "cumprod", "trace", "round", "sort", "argsort")

# the C library's, for numbers, as in CPython
MATH = {
    getattr(math, name): name
    for name in [
        "sqrt",
        "floor",
        "ceil",
        "fabs",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "exp",
        "log",
        "tanh",
        "sinh",
        "cosh",
        "isfinite",
        "isnan",
        "isinf",
        "copysign",
    ]
}

BUILTINS = {
    "abs", "bool", "enumerate", "float", "int", "len", "max", "min", "range", "slice",
    "tuple", "zip", "True", "False", "None",
    "ValueError", "RuntimeError", "AssertionError", "IndexError", "KeyError", "TypeError",
    "ArithmeticError", "ZeroDivisionError", "OverflowError", "NotImplementedError", "Exception",
}  # fmt: skip

# methods of numpy.random.Generator
GENERATOR = ("uniform", "normal", "standard_normal", "random", "integers")

# MuJoCo's functions of numbers alone: what each argument is ("4": so many numbers, "f": one), the
# first being what is written
MUJOCO_PURE = {
    "mju_rotVecQuat": "3 3 4",
    "mju_negQuat": "4 4",
    "mju_mulQuat": "4 4 4",
    "mju_mulQuatAxis": "4 4 3",
    "mju_axisAngle2Quat": "4 3 f",
    "mju_quat2Vel": "3 4 f",
    "mju_subQuat": "3 4 4",
    "mju_quat2Mat": "9 4",
    "mju_mat2Quat": "4 9",
    "mju_derivQuat": "4 4 3",
    "mju_quatIntegrate": "4 3 f",
    "mju_quatZ2Vec": "4 3",
    "mju_eig3": "3 9 4 9",
    "mju_normalize3": "3",
    "mju_normalize4": "4",
}
# those of a model and its data
MUJOCO_ENGINE = (
    "mj_forward",
    "mj_step",
    "mj_step1",
    "mj_step2",
    "mj_contactForce",
    "mj_objectVelocity",
    "mj_ray",
    "mj_geomDistance",
    "mj_jacSite",
)
# of these, the ones that a step may call in simulate's stead
MOVING = ("mj_step", "mj_step1", "mj_step2", "mj_forward")
MUJOCO = {
    getattr(mujoco, name): name for name in (*MUJOCO_PURE, *MUJOCO_ENGINE) if hasattr(mujoco, name)
}

# what a row holds: the rest of mjData is only known after simulate or mj_forward
STATE = frozenset(
    [
        "qpos",
        "qvel",
        "act",
        "ctrl",
        "time",
        "qacc_warmstart",
        "qfrc_applied",
        "xfrc_applied",
        "eq_active",
        "mocap_pos",
        "mocap_quat",
        "userdata",
        "history",
        "plugin_state",
    ]
)
# of it, what every row is loaded with, and what control may read
MOTION = frozenset(("time", "qpos", "qvel"))
# of the rest, what mj_step2 computes and mj_step1 does not
OF_ACCELERATIONS = frozenset(
    [
        "act_dot",
        "actuator_force",
        "qacc",
        "qacc_smooth",
        "qfrc_actuator",
        "qfrc_constraint",
        "qfrc_smooth",
    ]
)
_SCRATCH = "it is the integrator's scratch memory, which a reset leaves as another step has left it"
_LEFT_OVERS = "behind what a step writes it keeps what other environments' steps have left"
_SOMETIMES = "only some steps write it; otherwise it is what another environment's step has left"
# what depends on the steps before, which a worker has made for other environments
NEVER_KNOWN = {
    **dict.fromkeys(("qH", "qHDiagInv", "qDeriv", "qLU"), _SCRATCH),
    **dict.fromkeys(("wrap_obj", "wrap_xpos", "moment_colind", "actuator_moment"), _LEFT_OVERS),
    **dict.fromkeys(
        (
            "qfrc_inverse",
            "bvh_active",
            "bvh_aabb_dyn",
            "flexelem_krot",
            "flexvert_hessian",
            "flexedge_hessian",
            "flexvert_lambda",
            "flexvert_conage",
        ),
        _SOMETIMES,
    ),
}
# what is only computed for sensors of it
OF_SUBTREE_SENSORS = frozenset(("subtree_linvel", "subtree_angmom"))
# what mj_step leaves at zero unless it is asked for
EXTERNAL_FORCES = frozenset(("cfrc_ext", "cfrc_int", "cacc"))


def function_of(value: Any) -> str | None:
    """``"numpy:sum"``, ``"mujoco:mj_ray"`` … of a function that is known here; else None."""
    tables: Mapping[str, Mapping[Any, str]] = {
        "numpy": {**NUMPY_UNARY, **NUMPY_BINARY, **NUMPY_OWN},
        "plain": NUMPY_PLAIN,
        "math": MATH,
        "mujoco": MUJOCO,
    }
    try:
        return next(
            (f"{kind}:{table[value]}" for kind, table in tables.items() if value in table), None
        )
    except TypeError:  # not hashable: an array, say
        return None
