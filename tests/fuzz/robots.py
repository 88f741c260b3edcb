"""Real robots with other options and numbers, written into the compiled model at random.

    python tests/fuzz/robots.py --folder build/corpus --seed 1 --variants 600
    python tests/fuzz/robots.py --folder build/corpus --seed 1 --only 17    names what is to blame

The robots are the corpus' scenes (corpus.py) that lanes take as they are.
"""

import argparse
import json
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import batches
import mujoco
import numpy as np
from batches import Result
from closed_loop import Verdict, compare
from corpus import load
from random_edits import edit

from pyfastenv import _core

STEPS = 120
MOST_DOFS = 45  # larger ones take seconds
WRONG = ("silent", "differs")


@cache
def robot(path: Path) -> Any:
    """A scene as its file has it."""
    return load(path)


def variant(options: argparse.Namespace, number: int) -> tuple[Path, Any, list[str]]:
    """The n-th edited robot of a run: whose it is, the model, and what has changed."""
    path = random.Random(f"{options.seed} {number}").choice(riding(options.folder.resolve()))
    model = mujoco.MjModel.__copy__(robot(path))
    changed = edit(model, np.random.default_rng((options.seed, number)))
    return path, model, changed


def judge(options: argparse.Namespace, number: int) -> Result:
    path, model, changed = variant(options, number)
    named = {"scene": path.stem, "path": str(path), "changed": changed}
    try:
        return {**named, **compare(model, number, steps=STEPS, gentle=number % 3 > 0).record()}
    except mujoco.FatalError as error:
        return {**named, "kind": "MuJoCo's error", "refusal": str(error)}


def blame(path: Path, model: Any, changed: list[str], number: int) -> tuple[Verdict, list[str]]:
    """Finds the fewest changes that make bits differ: each is undone if they differ without it."""
    gentle = number % 3 > 0
    verdict = compare(model, number, steps=STEPS, gentle=gentle)
    if verdict.kind not in WRONG:
        return verdict, changed
    fields = [name for name in changed if name in dir(model) and name != "opt"]
    options = [name for name in changed if name not in fields and hasattr(model.opt, name)]
    kept = list(changed)
    for name in [*fields, *options]:
        owner, original = (model, robot(path)) if name in fields else (model.opt, robot(path).opt)
        before = np.array(getattr(owner, name))
        _set(owner, name, getattr(original, name))
        found = compare(model, number, steps=STEPS, gentle=gentle)
        if found.kind in WRONG:
            kept.remove(name)
            verdict = found
        else:
            _set(owner, name, before)
    return verdict, kept


def _set(owner: Any, name: str, value: Any) -> None:
    if np.ndim(value):
        getattr(owner, name)[:] = value
    else:
        setattr(owner, name, type(getattr(owner, name))(value))


@cache
def riding(folder: Path) -> list[Path]:
    """Scenes that lanes take as they are; found once and remembered beside the packages."""
    index = folder / "riding.json"
    if not index.exists():
        kept = []
        for scene in json.loads((folder / "scenes.json").read_text()):
            model = load(folder / scene)
            if model.nv <= MOST_DOFS and not _core.lanes_refusal(model._address, unchecked=True):
                kept.append(scene)
        index.write_text(json.dumps(kept, indent=1) + "\n")
    return [folder / scene for scene in json.loads(index.read_text())]


def _show(options: argparse.Namespace) -> str:
    path, model, changed = variant(options, options.only)
    verdict, changed = blame(path, model, changed, options.only)
    print(path, *changed, f"\n{verdict.kind} {verdict.refusal}\n{verdict.difference}")
    return verdict.kind


PROGRAM = batches.Program(
    Path(__file__),
    batches.drawing(__doc__, "variants", 600),
    judge,
    fine=("equal", "refused", "MuJoCo's error"),
    seconds=60.0,
    per_child=40,
)
PROGRAM.parser.add_argument("--folder", type=Path, required=True, help="of the corpus")

if __name__ == "__main__":
    riding(PROGRAM.parser.parse_args().folder.resolve())  # before children look for them
    sys.exit(PROGRAM.main("edited robots", _show))
