"""Compiled tasks on disk, and their machine code linked into the process without numba.

A cache that cannot be read or written costs a compilation and is otherwise ignored: a task runs
from a read-only home and with a full disk. Writers work on files of their own and rename them, so
two processes may compile the same task at once. Delete the folder whenever you like.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import threading
from contextlib import suppress
from functools import cache as once
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from pyfastenv import _core
from pyfastenv.tasks.language.places import Places

_FORMAT = b"pyfastenv task 3\n"
_linked: dict[str, Linked] = {}  # code lives as long as the process
_lock = threading.Lock()


class LinkError(RuntimeError):
    """Machine code calls something that is not there."""


class MethodCode(NamedTuple):
    """One method as machine code."""

    symbol: str
    object_file: bytes
    needed: tuple[str, ...]  # symbols that it calls


class TaskCode(NamedTuple):
    """A compiled task."""

    methods: dict[str, MethodCode]
    reads: tuple[str, ...]  # of mjData beyond its state
    reset_reads: tuple[str, ...]  # what only reset reads of it
    places: list[Places]  # by function: where its lines stood when it was compiled


class Linked(NamedTuple):
    """A compiled task in this process."""

    addresses: dict[str, int]  # by method
    reads: tuple[str, ...]
    reset_reads: tuple[str, ...]
    places: list[Places]
    owner: Any  # of the memory in which the code is


def folder() -> Path:
    """Where compiled tasks are kept: ``$PYFASTENV_CACHE``, or ``~/.cache/pyfastenv``."""
    chosen = os.environ.get("PYFASTENV_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache"
    return Path(base) / "pyfastenv"


@once
def host() -> str:
    """The processor and system that machine code made here runs on."""
    kinds = ("vendor_id", "cpu family", "model", "flags", "CPU", "Features")
    with suppress(OSError), open("/proc/cpuinfo") as lines:
        first = takewhile(str.strip, lines)  # processor; they are alike
        if found := [line for line in first if line.startswith(kinds)]:
            return "".join(found)
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def load(key: str) -> TaskCode | None:
    """Loads the code that :func:`store` has written; None if there is nothing usable."""
    try:
        content = (folder() / key).read_bytes()
    except OSError:
        return None
    start = len(_FORMAT) + 32
    digest, body = content[len(_FORMAT) : start], content[start:]
    if content[: len(_FORMAT)] != _FORMAT or hashlib.sha256(body).digest() != digest:
        return None  # another format, or half a file
    first_line, _, objects = body.partition(b"\n")
    header, methods, at = json.loads(first_line), {}, 0
    for method, (symbol, size, needed) in header["methods"].items():
        methods[method] = MethodCode(symbol, objects[at : at + size], tuple(needed))
        at += size
    places = [{(f, line): number for f, line, number in each} for each in header["places"]]
    return TaskCode(methods, tuple(header["reads"]), tuple(header["reset_reads"]), places)


def store(key: str, code: TaskCode) -> None:
    """Keeps a compiled task, if it can."""
    methods = {n: (m.symbol, len(m.object_file), m.needed) for n, m in code.methods.items()}
    reads = {"reads": code.reads, "reset_reads": code.reset_reads}
    places = [[(*place, number) for place, number in each.items()] for each in code.places]
    header = json.dumps({**reads, "methods": methods, "places": places}).encode()
    body = header + b"\n" + b"".join(m.object_file for m in code.methods.values())
    content = _FORMAT + hashlib.sha256(body).digest() + body
    own = folder() / f".{key}.{os.getpid()}.{threading.get_ident()}"
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_bytes(content)
        own.replace(folder() / key)
    except OSError:
        with suppress(OSError):
            own.unlink(missing_ok=True)


def link(key: str, code: TaskCode) -> Linked:
    """Puts a compiled task into this process, once.

    Raises:
        LinkError: It calls something that this process does not have.
    """
    with _lock:
        if key not in _linked:
            _linked[key] = _link(code)
        return _linked[key]


def linked(key: str) -> Linked | None:
    """The code that :func:`link` has returned for this key in this process."""
    with _lock:
        return _linked.get(key)


@once
def _address_of(name: str) -> int:
    """The address of a function of the pool's, or of the C libraries."""
    address = _core.task_symbols().get(name)
    if address is not None:
        return int(address)
    try:
        function = ctypes.CDLL(None)[name]
    except (AttributeError, OSError) as error:
        raise LinkError(f"compiled code needs {name}, which this process does not have") from error
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


@once
def provide_symbols() -> None:
    """Makes what compiled tasks call known to LLVM; numba's allocator stays, where it is there."""
    import llvmlite.binding as llvm

    for name, address in _core.task_symbols().items():
        if llvm.address_of_symbol(name) is None:
            llvm.add_symbol(name, address)


def _link(code: TaskCode) -> Linked:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    provide_symbols()
    methods = code.methods
    for name in sorted({name for method in methods.values() for name in method.needed}):
        if llvm.address_of_symbol(name) is None:
            llvm.add_symbol(name, _address_of(name))
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for method in methods.values():
        engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(method.object_file))
    engine.finalize_object()
    addresses = {name: engine.get_function_address(m.symbol) for name, m in methods.items()}
    return Linked(addresses, code.reads, code.reset_reads, code.places, engine)
