"""Compiled tasks on disk, and their machine code linked into the process without numba.

A cache that cannot be read or written costs a compilation and is otherwise ignored: a task runs from
a read-only home and with a full disk. Writers work on files of their own and rename them, so two
processes may compile the same task at once. Delete the folder whenever you like.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache as once
from pathlib import Path
from typing import Any, NamedTuple

from pyfastenv import _core

_FORMAT = b"pyfastenv task 1\n"
_engines: dict[str, tuple[Any, dict[str, int]]] = {}  # code lives as long as the process
_lock = threading.Lock()


class MethodCode(NamedTuple):
    """One method as machine code."""

    symbol: str
    object_file: bytes
    needed: tuple[str, ...]  # symbols that it calls


def folder() -> Path:
    """Where compiled tasks are kept: ``$PYFASTENV_CACHE``, or ``~/.cache/pyfastenv``."""
    chosen = os.environ.get("PYFASTENV_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache"
    return Path(base) / "pyfastenv"


def host() -> str:
    """What machine code made here runs on."""
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def load(key: str) -> dict[str, MethodCode] | None:
    """What :func:`store` has written; None if there is nothing usable."""
    try:
        content = (folder() / key).read_bytes()
    except OSError:
        return None
    start = len(_FORMAT) + 32
    digest, body = content[len(_FORMAT) : start], content[start:]
    if content[: len(_FORMAT)] != _FORMAT or hashlib.sha256(body).digest() != digest:
        return None  # another format, or half a file
    header, _, objects = body.partition(b"\n")
    code, at = {}, 0
    for method, (symbol, size, needed) in json.loads(header).items():
        code[method] = MethodCode(symbol, objects[at : at + size], tuple(needed))
        at += size
    return code


def store(key: str, code: Mapping[str, MethodCode]) -> None:
    """Keeps compiled methods, if it can."""
    header = {m: (c.symbol, len(c.object_file), c.needed) for m, c in code.items()}
    body = json.dumps(header).encode() + b"\n" + b"".join(c.object_file for c in code.values())
    content = _FORMAT + hashlib.sha256(body).digest() + body
    own = folder() / f".{key}.{os.getpid()}.{threading.get_ident()}"
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_bytes(content)
        own.replace(folder() / key)
    except OSError:
        with suppress(OSError):
            own.unlink(missing_ok=True)


def link(key: str, code: Mapping[str, MethodCode]) -> dict[str, int]:
    """Addresses of the methods' functions, once per process and key.

    Raises:
        RuntimeError: They call something that this process does not have.
    """
    with _lock:
        if key not in _engines:
            _engines[key] = _link(code)
        return _engines[key][1]


def linked(key: str) -> dict[str, int] | None:
    """What :func:`link` has returned for this key in this process."""
    with _lock:
        return _engines[key][1] if key in _engines else None


@once
def provide_symbols() -> None:
    """Makes what compiled tasks call known to LLVM; numba's allocator stays, where it is there."""
    import llvmlite.binding as llvm

    for name, address in _core.task_symbols().items():
        if llvm.address_of_symbol(name) is None:
            llvm.add_symbol(name, address)


def _link(code: Mapping[str, MethodCode]) -> tuple[Any, dict[str, int]]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    provide_symbols()
    for name in sorted({name for method in code.values() for name in method.needed}):
        if llvm.address_of_symbol(name) is None:
            raise RuntimeError(f"a compiled task needs {name}, which this process does not have")
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for method in code.values():
        engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(method.object_file))
    engine.finalize_object()
    return engine, {name: engine.get_function_address(m.symbol) for name, m in code.items()}
