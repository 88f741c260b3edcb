"""MuJoCo's own functions, for compiled tasks; the engine's errors are the pool's to tell."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.extending import intrinsic, overload
from numba.core.typing.templates import signature

from pyfastenv.tasks.compiler.frame import DataType, ModelType, is_absent
from pyfastenv.tasks.compiler.numba_internals import (
    BYTES,
    F64,
    I32,
    OPTIONS,
    call_symbol,
    check_status,
    constant,
    raise_if,
)
from pyfastenv.tasks.compiler.numbers import is_contiguous, is_vector, refuse, stand_in
from pyfastenv.tasks.compiler.physics import need_fresh, need_part
from pyfastenv.tasks.frontend import vocabulary as words


def _checked_array(function: str, kind: Any, size: int, *, written: bool) -> None:
    if not (is_vector(kind) and is_contiguous(kind)) or (written and not kind.mutable):
        refuse(f"mujoco.{function}", kind, f"a contiguous float64 vector of {size}")


def _same_size(context: Any, builder: Any, name: str, array: Any, size: int) -> None:
    differs = builder.icmp_signed("!=", array.nitems, constant(size))
    raise_if(context, builder, differs, TypeError, f"mujoco.{name}: expected {size} numbers")


def _declare(name: str, parameters: str, typing: Any) -> None:
    """Registers a function: its parameters, as they stand in a def; its intrinsic's body."""
    names = ", ".join(part.split("=")[0] for part in parameters.split(", "))
    space: dict[str, Any] = {"typing": typing}
    exec(f"def call(context, {names}): return typing(context, {names})", space)
    space["call"] = intrinsic(space["call"])
    exec(f"def choose({parameters}): return lambda {parameters}: call({names})", space)
    overload(stand_in(f"mujoco:{name}", parameters), jit_options=OPTIONS)(space["choose"])


def _pure(name: str, arguments: str) -> None:
    wanted = arguments.split()
    returns = name.startswith("mju_normalize")

    def typing(typing_context: Any, *kinds: Any) -> Any:
        for i, (kind, want) in enumerate(zip(kinds, wanted, strict=True)):
            if want != "f":
                _checked_array(name, kind, int(want), written=i == 0)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            given = []
            for value, kind, want in zip(args, sig.args, wanted, strict=True):
                if want == "f":
                    given.append(context.cast(builder, value, kind, types.float64))
                    continue
                array = context.make_array(kind)(context, builder, value)
                _same_size(context, builder, name, array, int(want))
                given.append(array.data)
            result = call_symbol(builder, name, F64 if returns else ir.VoidType(), given)
            return result if returns else context.get_dummy_value()

        return signature(types.float64 if returns else types.void, *kinds), codegen

    _declare(name, ", ".join("abcdef"[: len(wanted)]), typing)


for _name, _arguments in words.MUJOCO_PURE.items():
    _pure(_name, _arguments)


# what they need, they compute from the state
_REFRESHING = ("mj_forward", "mj_step1", "mj_step")


def _engine(name: str, parameters: str, wanted: str, *, returns: bool = False) -> None:
    """A function of (m, d, …): its further arguments are integers, numbers, arrays or None.

    ``wanted``: "i", "f", how many numbers an array has ("uint8:6": of this kind, not float64), or
    "J": of a 3 x nv Jacobian.
    """
    kinds_wanted = wanted.split()

    def typing(typing_context: Any, *kinds: Any) -> Any:
        if not isinstance(kinds[0], ModelType) or not isinstance(kinds[1], DataType):
            raise errors.TypingError(f"mujoco.{name}: expected (self.model, data, …)")
        for kind, want in zip(kinds[2:], kinds_wanted, strict=True):
            if is_absent(kind):
                continue
            if want == "J" and not _is_jacobian(kind):
                refuse(f"mujoco.{name}", kind, "np.zeros((3, self.model.nv)), or None")
            if want[-1].isdigit():
                dtype, size = _array_of(want)
                if not (is_vector(kind, dtype) and is_contiguous(kind)):
                    refuse(f"mujoco.{name}", kind, f"a contiguous {dtype} vector of {size}")

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            frame = args[1]
            if name == "mj_step2":
                need_part(context, builder, frame, "whole", "what mujoco.mj_step2 begins with")
            elif name == "mj_contactForce":
                what = "what mujoco.mj_contactForce asks for"
                need_fresh(context, builder, frame, name, what, "row_forces")
            elif name not in _REFRESHING:
                need_fresh(context, builder, frame, name, f"what mujoco.{name} needs")
            given = [frame]
            for value, kind, want in zip(args[2:], sig.args[2:], kinds_wanted, strict=True):
                if want == "i":
                    given.append(context.cast(builder, value, kind, types.int64))
                elif want == "f":
                    given.append(context.cast(builder, value, kind, types.float64))
                elif is_absent(kind):
                    given.append(ir.Constant(BYTES, None))
                else:
                    array = context.make_array(kind)(context, builder, value)
                    size = 3 * sig.args[1].model.nv if want == "J" else _array_of(want)[1]
                    _same_size(context, builder, name, array, size)
                    given.append(builder.bitcast(array.data, BYTES))
            place = cgutils.alloca_once(builder, F64)
            if returns:
                given.append(place)
            status = call_symbol(builder, f"pyfastenv_{name}", I32, given)
            check_status(context, builder, status)
            return builder.load(place) if returns else context.get_dummy_value()

        return signature(types.float64 if returns else types.void, *kinds), codegen

    _declare(name, f"m, d, {parameters}".rstrip(", "), typing)


def _array_of(want: str) -> tuple[Any, int]:
    """The dtype of a vector's numbers, and how many there are."""
    dtype, _, size = want.rpartition(":")
    return getattr(types, dtype or "float64"), int(size)


def _is_jacobian(kind: Any) -> bool:
    return is_contiguous(kind) and kind.ndim == 2 and kind.dtype == types.float64


_engine("mj_forward", "", "")
_engine("mj_step1", "", "")
_engine("mj_step2", "", "")
_engine("mj_step", "nstep=1", "i")
_engine("mj_contactForce", "id, result", "i 6")
_engine("mj_objectVelocity", "objtype, objid, res, flg_local", "i i 6 i")
_engine(
    "mj_ray",
    "pnt, vec, geomgroup, flg_static, bodyexclude, geomid, normal=None",
    "3 3 uint8:6 i i int32:1 3",
    returns=True,
)
_engine("mj_geomDistance", "geom1, geom2, distmax, fromto", "i i f 6", returns=True)
_engine("mj_jacSite", "jacp, jacr, site", "J J i")
