"""OpenGL in this process: which library draws, and MuJoCo's one look at it.

MuJoCo looks OpenGL's functions up when the process makes its first context. If that breaks off in
the middle, every later context waits for ever with the GIL (csrc/mujoco/opengl.h says why). So it
is done here first, where it cannot, and where one who waits holds nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from types import ModuleType

from pyfastenv import _core

_PIECE = 0.1  # seconds: a process that was stopped meanwhile has waited no longer than this
_PATIENCE = 600  # pieces; it takes milliseconds


class _Attempt:
    """One look at OpenGL, in a thread of its own, which may not come back."""

    def __init__(self, backend: ModuleType):
        self.error: BaseException | None = None
        self._patience = _PATIENCE  # of all who wait together
        self._ended = threading.Event()
        threading.Thread(
            target=self._look, args=(backend,), name="pyfastenv-opengl", daemon=True
        ).start()

    def ended(self) -> bool:
        """Waits for it, as long as there is patience."""
        while not self._ended.is_set() and self._patience > 0:
            self._ended.wait(_PIECE)
            self._patience -= 1
        return self._ended.is_set()

    def _look(self, backend: ModuleType) -> None:
        try:
            context = backend.GLContext(16, 16)
            try:
                context.make_current()
                _core.load_opengl()
            finally:
                context.free()
        except BaseException as error:
            self.error = error
        self._ended.set()


_lock = threading.RLock()  # of the attempt; who forks holds it, and may do so anywhere
_attempt: _Attempt | None = None


def load() -> None:
    """Makes sure that MuJoCo has looked OpenGL's functions up. Any thread may call this.

    Raises:
        RuntimeError: There is no context, or MuJoCo's look, by someone else, broke off.
        Exception: Whatever else the OpenGL library fails with.
    """
    global _attempt
    with _lock:
        if _attempt is None or _attempt.error is not None:
            _attempt = _Attempt(_choose_backend())
        attempt = _attempt
    if not attempt.ended():
        raise RuntimeError(
            "MuJoCo cannot draw any more in this process: an earlier mujoco.MjrContext, made "
            "while there was no OpenGL context, broke off in the middle; start the process anew"
        )
    if attempt.error is not None:
        raise attempt.error


def _choose_backend() -> ModuleType:
    """MuJoCo's module of OpenGL contexts.

    Without a display, MuJoCo's default (GLFW) cannot work: take EGL, unless the user chose.
    """
    headless = sys.platform == "linux" and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    take_egl = headless and "MUJOCO_GL" not in os.environ
    if take_egl:
        os.environ["MUJOCO_GL"] = "egl"
        os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
    import mujoco

    backend: ModuleType = sys.modules[mujoco.Renderer.__module__].gl_context
    if take_egl:  # mujoco may have been imported before this
        importlib.reload(backend)
    if getattr(backend, "GLContext", None) is None:
        raise RuntimeError(f"MUJOCO_GL={os.environ.get('MUJOCO_GL')} turns OpenGL off")
    return backend


def _before_fork() -> None:
    """A child would find MuJoCo's look under way, and nobody who ends it."""
    _lock.acquire()
    if _attempt is not None:
        _attempt.ended()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release
    )
