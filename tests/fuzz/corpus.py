"""Other people's robots in lanes and by mj_step: every scene of some packages that compiles.

    python tests/fuzz/corpus.py --folder build/corpus --output bench/results/corpus.json
    python tests/fuzz/corpus.py --folder build/corpus --steps 100 --every 5 --only menagerie

Scenes are rolled out from their default pose and their keyframes, under random and held controls;
sensordata is compared too, unless lanes refuse the sensors alone. A bit that differs, or a trial
that finds lanes wrong, is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections import Counter
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
STEPS = 500
SECONDS_PER_SCENE = 240.0  # of processor time: the largest takes 20 ms a step
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


def judge(path: Path, steps: int, *, timed: bool) -> Result:
    """Rolls a scene out."""
    model = load(path)
    address = model._address
    ratio, of_sensors = None, ""
    if not _core.lanes_refusal(address, sensordata=False):
        of_sensors = _core.lanes_refusal(address)
    try:
        if timed and not _core.lanes_refusal(address):
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
        results = batches.run(
            HERE, ["--folder", str(options.folder), "--survey"], range(len(found)),
            seconds=SECONDS_PER_SCENE, per_child=20, workers=options.workers,
        )  # fmt: skip
        first: dict[str, str] = {}
        for path, result in zip(found, results, strict=True):
            if result["kind"] == "scene":
                first.setdefault(result["digest"], str(path.relative_to(options.folder)))
        index.write_text(json.dumps(sorted(first.values()), indent=1) + "\n")
    paths = json.loads(index.read_text())
    if options.known:
        paths = [row["scene"] for row in paths["scenes"]]
    return [path for path in paths if options.only in path][:: options.every]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the packages are")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--every", type=int, default=1, help="each n-th scene")
    parser.add_argument("--only", default="", help="scenes whose path has this")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timed", action="store_true", help="measure how fast each is, too")
    parser.add_argument("--known", action="store_true", help="scenes measured last; find no others")
    parser.add_argument("--survey-only", action="store_true", help="find the scenes alone")
    parser.add_argument("--output", type=Path, help="JSON; a table beside it")
    parser.add_argument("--survey", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if options.batch is not None:
        if options.survey:
            found = files(options.folder)
            return batches.serve(lambda i: survey(found[i]), *options.batch, SECONDS_PER_SCENE)
        chosen = scenes(options)
        return batches.serve(
            lambda i: judge(
                options.folder / chosen[i], options.steps, timed=options.timed
            ),
            *options.batch, SECONDS_PER_SCENE,
        )  # fmt: skip
    if options.survey_only:
        print(f"{len(scenes(options))} scenes")
        return 0
    return _run(options)


def _text(result: Result) -> str:
    """JSON with a line for each scene."""
    head = json.dumps({**result, "scenes": []}, indent=1)
    return head.replace("[]", "[\n" + ",\n".join(map(json.dumps, result["scenes"])) + "\n ]")


def _run(options: argparse.Namespace) -> int:
    chosen, start = scenes(options), time.monotonic()
    arguments = ["--folder", str(options.folder), "--steps", str(options.steps),
                 "--every", str(options.every), "--only", options.only]  # fmt: skip
    arguments += ["--timed"] * options.timed + ["--known"] * options.known
    rows: list[Result] = []
    for result in batches.run(
        HERE, arguments, range(len(chosen)), seconds=SECONDS_PER_SCENE, per_child=5,
        workers=options.workers,
    ):  # fmt: skip
        rows.append({"scene": chosen[result["number"]], **result})
        if result["kind"] not in ("equal", "refused"):
            print(json.dumps(rows[-1]), flush=True)
    kinds = [row["kind"] for row in rows]
    sensing = [row for row in rows if row["kind"] == "equal" and row["sensors"]]
    refused = [row for row in sensing if row["refused sensors"]]
    for row in refused:
        print(f"{row['scene']}: {row['refused sensors']}")
    print(f"{len(sensing)} of those that ride have sensors, {len(refused)} of them with others")
    ratios = [row["ratio"] for row in rows if row.get("ratio")]
    print(f"{len(rows)} scenes, {time.monotonic() - start:.0f} s: "
          + ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))))  # fmt: skip
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
    return 0 if set(kinds) <= {"equal", "refused"} else 1


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
