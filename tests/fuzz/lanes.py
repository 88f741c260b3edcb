"""Random models in lanes and by mj_step: not one bit may differ.

    python tests/fuzz/lanes.py --seed 1 --models 20000
    python tests/fuzz/lanes.py --seed 1 --only 4711        one model, with the first difference
    python tests/fuzz/lanes.py --seed 1 --shrink 4711      and the smallest that fails likewise
    python tests/fuzz/lanes.py --file tests/fuzz/lanes_models/upright.xml

Children step the models, so that an error or a crash of MuJoCo's is one model's. What differs is
shrunk and kept under build/fuzz/.
"""

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
SECONDS_OF_SHRINKING = 120.0
WRONG = ("silent", "differs")
SLOW = "MuJoCo's time-out"  # a heap that mujoco.rollout did not end: not compared


def judge(options: argparse.Namespace, number: int) -> Result:
    """Judges the n-th model of a run."""
    text = random_models.render(random_models.draw(options.seed, number, options.avoid))
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


PROGRAM = batches.Program(
    Path(__file__),
    batches.drawing(__doc__, "models", 20_000),
    judge,
    fine=("equal", "refused", "invalid", "MuJoCo's error", SLOW),
    seconds=600.0,  # MuJoCo's PGS takes minutes over a heap
    per_child=100,
)
_also = PROGRAM.parser.add_argument
_also("--shrinks", type=int, default=5, help="failures that are shrunk")
_also("--shrink", type=int, help="shrink this model of the run")
_also("--file", type=Path, help="a kept model; --seed is of its states")
_also("--avoid", nargs="*", default=[], help="known causes", choices=AVOIDED)


def fuzz(given: Sequence[str]) -> Iterator[Result]:
    """Results under these arguments."""
    for result in PROGRAM.results(given):
        stood_in_mujoco = "mujoco/rollout.py" in result.get("refusal", "")
        yield result | {"kind": SLOW} if result["kind"] == "hang" and stood_in_mujoco else result


def _shrink(options: argparse.Namespace) -> int:
    """Shrinks a model that fails; writes it."""
    children.guard()
    number = options.shrink
    drawn = random_models.draw(options.seed, number, options.avoid)
    root = shrunk(drawn, number, SECONDS_OF_SHRINKING)
    text = random_models.render(root)
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"lanes-{options.seed}-{number}.xml"
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


def _run(options: argparse.Namespace) -> int:
    """The whole run; the first failures are shrunk."""
    failures = PROGRAM.report(f"random models, seed {options.seed}", fuzz(sys.argv[1:]))
    wrong = [result["number"] for result in failures if result["kind"] in WRONG]
    for number in wrong[: options.shrinks]:
        arguments = ["--seed", str(options.seed), "--shrink", str(number)]
        arguments += ["--avoid", *options.avoid]
        outcome = children.run(Path(__file__), arguments, 10 * SECONDS_OF_SHRINKING)
        print(f"\nmodel {number}: {outcome.output or outcome.errors}", flush=True)
    return int(bool(failures))


def main() -> int:
    options = PROGRAM.parser.parse_args()
    if options.batch is not None:
        return PROGRAM.serve(options)
    if options.shrink is not None:
        return _shrink(options)
    if options.only is not None:
        root = random_models.draw(options.seed, options.only, options.avoid)
        print(random_models.render(root))
        return _tell(mujoco.MjModel.from_xml_string(random_models.render(root)), options.only)
    if options.file is not None:
        return _tell(mujoco.MjModel.from_xml_path(str(options.file)), options.seed)
    return _run(options)


if __name__ == "__main__":
    sys.exit(main())
