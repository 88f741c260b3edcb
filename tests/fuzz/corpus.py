"""Other people's robots in lanes and by mj_step: every scene of some packages that compiles.

    python tests/fuzz/corpus.py --folder build/corpus --output bench/results/corpus.json
    python tests/fuzz/corpus.py --folder build/corpus --steps 100 --every 5 --only menagerie

Scenes are rolled out from their default pose and their keyframes, under random and held controls;
sensordata is compared too, unless lanes refuse the sensors alone. A bit that differs, or a trial
that finds lanes wrong, is an error.
"""

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import batches
import mujoco
import numpy as np
from batches import Result
from closed_loop import compare, speed

from pyfastenv import _core
from pyfastenv.experiments import measure
from pyfastenv.experiments.render import render

HERE = Path(__file__)
TIMED = 1.0  # seconds of mujoco.rollout: a clock of 10 ms is exact to a percent
KNOWN = HERE.parents[2] / "bench" / "results" / "corpus.json"


@cache
def files(folder: Path) -> list[Path]:
    """All files that may be scenes."""
    return sorted(
        path for path in folder.rglob("*.xml") if "<mujoco" in path.read_text("utf-8", "replace")
    )


def load(path: Path) -> Any:
    """The model of a scene.

    Raises:
        ValueError: It is a part of others, or does not compile.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is deprecated in other people's files
        return mujoco.MjModel.from_xml_path(str(path))


def digest(model: Any) -> str:
    """A digest that two files have in common if they are the same model."""
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return hashlib.sha256(buffer.tobytes()).hexdigest()[:16]


# ---- in the child --------------------------------------------------------------------------------


def survey(path: Path) -> Result:
    """Whether a file is a scene, and which."""
    start = time.process_time()
    try:
        model = load(path)
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        return {"kind": "no scene", "refusal": str(error).split("\n")[0]}
    if model.nv == 0:
        return {"kind": "no scene", "refusal": "it cannot move"}
    return {"kind": "scene", "digest": digest(model), "dofs": model.nv,
            "seconds": round(time.process_time() - start, 2)}  # fmt: skip


def judge(options: argparse.Namespace, number: int) -> Result:
    """Rolls a scene out; of a survey: whether the file is one."""
    if options.survey:
        return survey(files(options.folder)[number])
    model, steps = load(options.folder / scenes(options)[number]), options.steps
    address = model._address
    ratio, of_sensors = None, ""
    if not _core.lanes_refusal(address, sensordata=False):
        of_sensors = _core.lanes_refusal(address)
    try:
        if options.timed and not _core.lanes_refusal(address):
            ratio = round(speed(model, 0, steps=steps, seconds=TIMED), 3)
        verdict = compare(model, 0, steps=steps, gentle=True, sensordata=not of_sensors)
    except mujoco.FatalError as error:
        return {"kind": "MuJoCo's error", "refusal": str(error)}
    return {"dofs": model.nv, "ratio": ratio, "sensors": model.nsensor,
            "refused sensors": of_sensors, **verdict.record()}  # fmt: skip


# ---- in the parent -------------------------------------------------------------------------------


def scenes(options: argparse.Namespace) -> list[str]:
    """Paths of different scenes; found once and remembered beside the packages."""
    index = KNOWN if options.known else options.folder / "scenes.json"
    if not index.exists():
        found = files(options.folder)
        survey = ["--folder", str(options.folder), "--workers", str(options.workers), "--survey"]
        first: dict[str, str] = {}
        for path, result in zip(found, PROGRAM.results(survey, range(len(found))), strict=True):
            if result["kind"] == "scene":
                first.setdefault(result["digest"], str(path.relative_to(options.folder)))
        index.write_text(json.dumps(sorted(first.values()), indent=1) + "\n")
    paths = json.loads(index.read_text())
    if options.known:
        paths = [row["scene"] for row in paths["scenes"]]
    return [path for path in paths if options.only in path][:: options.every]


PROGRAM = batches.Program(
    HERE,
    batches.arguments(__doc__),
    judge,
    fine=("equal", "refused"),
    seconds=240.0,  # the largest takes 20 ms a step
    per_child=5,
)
_also = PROGRAM.parser.add_argument
_also("--folder", type=lambda text: Path(text).resolve(), required=True, help="of the packages")
_also("--steps", type=int, default=500)
_also("--every", type=int, default=1, help="each n-th scene")
_also("--only", default="", help="scenes whose path has this")
_also("--timed", action="store_true", help="measure how fast each is, too")
_also("--known", action="store_true", help="scenes measured last; find no others")
_also("--survey-only", action="store_true", help="find the scenes alone")
_also("--output", type=Path, help="JSON; a table beside it")
_also("--survey", action="store_true", help=argparse.SUPPRESS)


def main() -> int:
    options = PROGRAM.parser.parse_args()
    if options.batch is not None:
        return PROGRAM.serve(options)
    if options.survey_only:
        print(f"{len(scenes(options))} scenes")
        return 0
    return _run(options)


def _text(result: Result) -> str:
    """JSON with a line for each scene."""
    head = json.dumps({**result, "scenes": []}, indent=1)
    return head.replace("[]", "[\n" + ",\n".join(map(json.dumps, result["scenes"])) + "\n ]")


def _run(options: argparse.Namespace) -> int:
    chosen = scenes(options)
    rows: list[Result] = []

    def named() -> Iterator[Result]:
        for result in PROGRAM.results(sys.argv[1:], range(len(chosen))):
            rows.append({"scene": chosen[result["number"]], **result})
            yield rows[-1]

    failures = PROGRAM.report("scenes", named())
    sensing = [row for row in rows if row["kind"] == "equal" and row["sensors"]]
    refused = [row for row in sensing if row["refused sensors"]]
    for row in refused:
        print(f"{row['scene']}: {row['refused sensors']}")
    print(f"{len(sensing)} of those that ride have sensors, {len(refused)} of them with others")
    ratios = [row["ratio"] for row in rows if row.get("ratio")]
    if ratios:
        print(
            f"mujoco.rollout's time ÷ ours: median {np.median(ratios):.2f}, least {min(ratios):.2f}"
        )
    if options.output is not None:
        result = {
            "date": measure.today(), "machine": measure.machine(), "steps": options.steps,
            "scenes": rows,
        }  # fmt: skip
        options.output.write_text(_text(result) + "\n")
        options.output.with_suffix(".md").write_text(page(result))
    return int(bool(failures))


def outcome(row: dict[str, Any]) -> str:
    """The outcome of a scene, in a word or with the reason."""
    if row["kind"] == "equal":
        return "rides"
    return str(row["refusal"]).removeprefix("lanes do not do ").replace("|", "/")


def page(result: dict[str, Any]) -> str:
    """corpus.md."""
    packages: dict[str, list[Any]] = {}
    for row in sorted(result["scenes"], key=lambda row: row["scene"].split("/")[0]):
        packages.setdefault(row["scene"].split("/")[0], []).append(row)
    refused = (outcome(row) for row in result["scenes"] if row["kind"] == "refused")
    reasons = Counter(reason.split(" (")[0] for reason in refused).most_common()
    values = {"packages": packages, "reasons": reasons, "outcome": outcome}
    return render(HERE.parents[2] / "bench/python/templates/corpus.md", result | values)


if __name__ == "__main__":
    sys.exit(main())
