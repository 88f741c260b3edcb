"""For what wheels are built: which MuJoCos, and which platforms.

A platform is the same in the words of wheels, Zig, CMake and pip.
"""

from __future__ import annotations

from dataclasses import dataclass

VERSIONS = ("4.0.0", "3.17.0", "3.11.0", "3.3.0")  # of MuJoCo; the first is the default core
GLIBC = "2.28"
_MANYLINUX = ("manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28")


@dataclass(frozen=True)
class Platform:
    """Where a wheel is to run.

    Attributes:
        tag: The end of the wheel's name.
        pip_tags: Of wheels by others that can be used there.
        target: Zig's name.
        system, processor: CMake's names, and those of Python's ``platform``.
        abi: How the names of Python's extensions end.
    """

    tag: str
    pip_tags: tuple[str, ...]
    target: str
    system: str
    processor: str
    abi: str


def _linux(processor: str) -> Platform:
    return Platform(
        tag=f"manylinux_{GLIBC.replace('.', '_')}_{processor}",
        pip_tags=tuple(f"{name}_{processor}" for name in _MANYLINUX),
        target=f"{processor}-linux-gnu.{GLIBC}",
        system="Linux",
        processor=processor,
        abi=f"{processor}-linux-gnu.so",
    )


_MACOS = "macosx_11_0_arm64"

PLATFORMS = {
    "x86_64": _linux("x86_64"),
    "aarch64": _linux("aarch64"),
    "macos": Platform(
        tag=_MACOS,
        pip_tags=(_MACOS,),
        target="aarch64-macos.11.0",
        system="Darwin",
        processor="arm64",
        abi="darwin.so",
    ),
}
