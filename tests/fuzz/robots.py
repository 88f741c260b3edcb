"""Real robots with other options and numbers, written into the compiled model at random.

    python tests/fuzz/robots.py --folder build/corpus --seed 1 --variants 600
    python tests/fuzz/robots.py --folder build/corpus --seed 1 --only 17    names what is to blame

The robots are the corpus' scenes (corpus.py) that lanes take as they are.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
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
SECONDS_PER_VARIANT = 60.0
WRONG = ("silent", "differs")
FINE = ("equal", "refused", "MuJoCo's error")


@cache
def robot(path: Path) -> Any:
    """A scene as its file has it."""
    return load(path)


def variant(robots: list[Path], seed: int, number: int) -> tuple[Path, Any, list[str]]:
    """The n-th edited robot of a run: whose it is, the model, and what has changed."""
    path = random.Random(f"{seed} {number}").choice(robots)
    model = mujoco.MjModel.__copy__(robot(path))
    changed = edit(model, np.random.default_rng((seed, number)))
    return path, model, changed


def judge(robots: list[Path], seed: int, number: int) -> Result:
    path, model, changed = variant(robots, seed, number)
    named = {"scene": path.stem, "path": str(path), "changed": changed}
    try:
        return {**named, **compare(model, number, steps=STEPS, gentle=number % 3 > 0).record()}
    except mujoco.FatalError as error:
        return {**named, "kind": "MuJoCo's error", "refusal": str(error)}


def blame(robots: list[Path], seed: int, number: int) -> tuple[Verdict, list[str]]:
    """Finds the fewest changes that make bits differ: each is undone if they differ without it."""
    path, model, changed = variant(robots, seed, number)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="of the corpus")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=int, help="this variant of the run")
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    robots = riding(options.folder)
    if options.batch is not None:
        return batches.serve(
            lambda number: judge(robots, options.seed, number), *options.batch, SECONDS_PER_VARIANT
        )
    if options.only is not None:
        path, *_ = variant(robots, options.seed, options.only)
        verdict, changed = blame(robots, options.seed, options.only)
        print(path, *changed, f"\n{verdict.kind} {verdict.refusal}\n{verdict.difference}")
        return int(verdict.kind in WRONG)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    start = time.monotonic()
    variants = batches.run(
        Path(__file__), ["--folder", str(options.folder), "--seed", str(options.seed)],
        range(options.first, options.first + options.variants), seconds=SECONDS_PER_VARIANT,
        per_child=40, workers=options.workers,
    )  # fmt: skip
    results, failures = batches.tell(variants, FINE)
    seconds = time.monotonic() - start
    print(f"edited robots, seed {options.seed}, {seconds:.0f} s\n{batches.table(results)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
