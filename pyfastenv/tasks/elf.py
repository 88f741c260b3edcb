"""Puts object files into the process without LLVM: those of 64-bit x86 under Linux.

numba compiles for the large code model, so addresses are all that is left to be filled in. A file
that wants anything else is Unsupported, and LLVM's to link (pyfastenv.tasks.cache). What unwinds
stacks is left out: nothing is thrown through compiled tasks.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_ALLOC, _EXECUTABLE = 2, 4
_ADDRESS = 1  # R_X86_64_64
_UNDEFINED, _COMMON = 0, 0xFFF2


class Unsupported(Exception):
    """Not such a file, or it wants more than addresses."""


class Section(NamedTuple):
    """A section header (Elf64_Shdr)."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    item: int


class Loaded(NamedTuple):
    """An object file in the process."""

    addresses: dict[str, int]  # of what it defines, by symbol
    memory: mmap.mmap  # which holds it


def load(content: bytes, find: Callable[[str], int]) -> Loaded:
    """Copies an object file into memory of its own, fills its addresses in, makes it executable.

    Args:
        content: The file.
        find: The address of a symbol that it needs.

    Raises:
        Unsupported: See there. What ``find`` raises.
    """
    sections = _sections(content)
    tables = [section for section in sections if section.kind == _SYMTAB]
    if len(tables) != 1:
        raise Unsupported("it has no table of symbols")
    symbols = list(_SYMBOL.iter_unpack(_bytes_of(content, tables[0])))
    kept = [
        i for i, s in enumerate(sections) if s.flags & _ALLOC and s.kind in (_PROGBITS, _NOBITS)
    ]
    kept.sort(key=lambda i: not sections[i].flags & _EXECUTABLE)  # code first, on pages of its own
    at, code_end, places = 0, 0, dict[int, int]()
    for i in kept:
        if not sections[i].flags & _EXECUTABLE and code_end == 0:
            code_end = at = _aligned(at, mmap.PAGESIZE)
        at = _aligned(at, sections[i].alignment)
        places[i] = at
        at += sections[i].size
    code_end = code_end or _aligned(at, mmap.PAGESIZE)
    commons = {}
    for number, (_, _, _, index, alignment, size) in enumerate(symbols):
        if index == _COMMON:
            at = max(_aligned(at, alignment), code_end)
            commons[number] = at
            at += size
    memory = mmap.mmap(-1, max(at, code_end))
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for i, place in places.items():
        if sections[i].kind == _PROGBITS:
            memory[place : place + sections[i].size] = _bytes_of(content, sections[i])

    names = _bytes_of(content, sections[tables[0].link])

    def address_of(number: int) -> int:
        name, _, _, index, value, _ = symbols[number]
        if index == _COMMON:
            return base + commons[number]
        if index in places:
            return base + places[index] + int(value)
        if index != _UNDEFINED:
            raise Unsupported(f"a symbol stands in section {index}")
        return find(_text(names, name))

    for section in sections:
        if section.kind != _RELA or section.info not in places:
            continue
        for offset, info, addend in _RELOCATION.iter_unpack(_bytes_of(content, section)):
            if info & 0xFFFFFFFF != _ADDRESS:
                raise Unsupported(f"a relocation is of kind {info & 0xFFFFFFFF}")
            target = address_of(info >> 32) + addend
            struct.pack_into("<Q", memory, places[section.info] + offset, target)
    defined = {_text(names, s[0]): address_of(n) for n, s in enumerate(symbols) if s[3] in places}
    _make_executable(base, code_end)
    return Loaded(defined, memory)


def _sections(content: bytes) -> list[Section]:
    if len(content) < _HEADER.size or content[: len(_MAGIC)] != _MAGIC:
        raise Unsupported("it is no such object file")
    _, kind, machine, *_, start, _, _, _, _, _, count, _ = _HEADER.unpack_from(content)
    if (kind, machine) != (_RELOCATABLE, _X86_64):
        raise Unsupported("it is no object file of 64-bit x86")
    headers = content[start : start + count * _SECTION.size]
    return [Section(*fields) for fields in _SECTION.iter_unpack(headers)]


def _bytes_of(content: bytes, section: Section) -> bytes:
    return content[section.offset : section.offset + section.size]


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode()


def _aligned(at: int, alignment: int) -> int:
    return -(-at // max(alignment, 1)) * max(alignment, 1)


def _make_executable(base: int, size: int) -> None:
    library: Any = ctypes.CDLL(None, use_errno=True)
    wanted = ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC
    if library.mprotect(*wanted) != 0:
        raise Unsupported(f"mprotect: error {ctypes.get_errno()}")
