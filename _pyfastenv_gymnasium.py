"""Registers pyfastenv's environments as soon as gymnasium is imported.

gymnasium 1.0 removed its plugin entry points, so this does their work: a ``.pth`` file beside it
runs ``install()`` when the interpreter starts, which only places a finder for one module name. Once
gymnasium's registry exists, the environments are registered and the finder takes itself away.
Standard library only; pyfastenv and gymnasium are not imported before gymnasium is.
"""

from __future__ import annotations

import sys
import warnings
from importlib.machinery import PathFinder

_WATCHED = "gymnasium.envs"


def register() -> None:
    """Registers the environments; a broken installation costs gymnasium's users only a warning."""
    try:
        from pyfastenv.registration import register_envs

        register_envs()
    except Exception as error:
        warnings.warn(f"pyfastenv's environments are not registered: {error}", stacklevel=2)


class _Finder:
    def find_spec(self, fullname, path=None, target=None):
        if fullname != _WATCHED:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        exec_module = spec.loader.exec_module

        def exec_and_register(module):
            exec_module(module)
            register()

        spec.loader.exec_module = exec_and_register
        return spec


def install() -> None:
    """Registers now if gymnasium is there, else when it is imported."""
    if _WATCHED in sys.modules:
        register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
