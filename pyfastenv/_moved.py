"""Documented modules under the names they had up to version 0.6, until 0.8; a warning says so."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "learners": "training",
    "learners.accelerators": "training.accelerators",
    "learners.actor_critic": "training.actor_critic",
    "learners.changes": "training.changes",
    "tasks.helpers": "tasks.language.helpers",
    "tasks.randomise": "tasks.language.randomise",
    "training.config": "runs.config",
    "training.errors": "runs.errors",
    "training.evaluation": "runs.evaluation",
    "training.export": "publish.export",
    "training.logger": "runs.logger",
    "training.registry": "runs.registry",
    "training.saved": "runs.saved",
    "training.seeds": "runs.seeds",
}


class _Moved(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        found = fullname.removeprefix("pyfastenv.") in MOVED
        return ModuleSpec(fullname, self) if found and fullname.startswith("pyfastenv.") else None

    def exec_module(self, module: ModuleType) -> None:
        new = f"pyfastenv.{MOVED[module.__name__.removeprefix('pyfastenv.')]}"
        message = f"{module.__name__} is {new} now; the old name goes in version 0.8"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(new)


def find_moved() -> None:
    """Lets the import statement find them."""
    sys.meta_path.insert(0, _Moved())
