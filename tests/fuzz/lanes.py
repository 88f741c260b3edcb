"""Random models in lanes and by mj_step: not one bit may differ.

    python tests/fuzz/lanes.py --seed 1 --models 20000
    python tests/fuzz/lanes.py --seed 1 --only 4711        one model, with the first difference
    python tests/fuzz/lanes.py --seed 1 --shrink 4711      and the smallest that fails likewise
    python tests/fuzz/lanes.py --file tests/fuzz/lanes_models/upright.xml

Children step the models, so that an error or a crash of MuJoCo's is one model's. What differs is
shrunk and kept under build/fuzz/.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import batches
import children
import mujoco
import random_models
from batches import Result
from closed_loop import compare
from random_models.avoid import AVOIDED
from shrink import shrunk, suspects

BUILD = Path(__file__).parents[2] / "build" / "fuzz"
SECONDS_PER_MODEL = 60.0  # of processor time; a heap takes MuJoCo half of it
SECONDS_OF_SHRINKING = 120.0
MODELS_PER_CHILD = 100
WRONG = ("silent", "differs")
SLOW = "MuJoCo's time-out"  # a heap that mujoco.rollout did not end: not compared
FINE = ("equal", "refused", "invalid", "MuJoCo's error", SLOW)


def judge(seed: int, number: int, avoided: list[str]) -> Result:
    """Judges the n-th model of a run."""
    text = random_models.render(random_models.draw(seed, number, avoided))
    start = time.process_time()
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        return {"kind": "invalid", "refusal": str(error).replace("\n", " ")}
    try:
        verdict = compare(model, number)
    except mujoco.FatalError as error:
        return {"kind": "MuJoCo's error", "refusal": str(error)}
    seconds = time.process_time() - start
    return {"dofs": model.nv, "seconds": round(seconds, 3), **verdict.record()}


def _shrink(seed: int, avoided: list[str], number: int, folder: Path) -> int:
    """Shrinks a model that fails; writes it."""
    children.guard()
    root = shrunk(random_models.draw(seed, number, avoided), number, SECONDS_OF_SHRINKING)
    text = random_models.render(root)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"lanes-{seed}-{number}.xml"
    path.write_text(f"<!-- seed {number} of states and controls -->\n{text}")
    # in another process, in which no plan of it has been made without the trial
    again = children.run(Path(__file__), ["--seed", str(number), "--file", str(path)], 60.0)
    print(f"{again.output or again.errors}{path}\n{text}")
    print("equal with", *suspects(root, number), sep=" ")
    return 0


def _tell(model: Any, seed: int) -> int:
    verdict = compare(model, seed)
    print(f"{verdict.kind} {verdict.refusal}\n{verdict.difference or 'no bit differs'}")
    return int(verdict.kind in WRONG)


def fuzz(
    seed: int, models: int, *, first: int = 0, workers: int = 2, avoided: Sequence[str] = ()
) -> Iterator[Result]:
    """Judges so many models, ``workers`` at a time."""
    for result in batches.run(
        Path(__file__),
        ["--seed", str(seed), "--avoid", *avoided],
        range(first, first + models),
        seconds=SECONDS_PER_MODEL,
        per_child=MODELS_PER_CHILD,
        workers=workers,
    ):
        stood_in_mujoco = "mujoco/rollout.py" in result.get("refusal", "")
        yield result | {"kind": SLOW} if result["kind"] == "hang" and stood_in_mujoco else result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shrinks", type=int, default=5, help="failures that are shrunk")
    parser.add_argument("--only", type=int, help="this model of the run")
    parser.add_argument("--shrink", type=int, help="shrink this model of the run")
    parser.add_argument("--file", type=Path, help="a kept model; --seed is of its states")
    parser.add_argument("--avoid", nargs="*", default=[], help="known causes", choices=AVOIDED)
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch is not None:
        return batches.serve(
            lambda number: judge(options.seed, number, options.avoid),
            *options.batch,
            SECONDS_PER_MODEL,
        )
    if options.shrink is not None:
        return _shrink(options.seed, options.avoid, options.shrink, BUILD)
    if options.only is not None:
        root = random_models.draw(options.seed, options.only, options.avoid)
        print(random_models.render(root))
        return _tell(mujoco.MjModel.from_xml_string(random_models.render(root)), options.only)
    if options.file is not None:
        return _tell(mujoco.MjModel.from_xml_path(str(options.file)), options.seed)
    return _main_run(options)


def _main_run(options: argparse.Namespace) -> int:
    start = time.monotonic()
    results, failures = batches.tell(
        fuzz(
            options.seed,
            options.models,
            first=options.first,
            workers=options.workers,
            avoided=options.avoid,
        ),
        FINE,
    )
    wrong = [result["number"] for result in failures if result["kind"] in WRONG]
    for number in wrong[: options.shrinks]:
        arguments = ["--seed", str(options.seed), "--shrink", str(number)]
        arguments += ["--avoid", *options.avoid]
        outcome = children.run(Path(__file__), arguments, 10 * SECONDS_OF_SHRINKING)
        print(f"\nmodel {number}: {outcome.output or outcome.errors}", flush=True)
    seconds = time.monotonic() - start
    print(f"random models, seed {options.seed}, {seconds:.0f} s\n{batches.table(results)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
