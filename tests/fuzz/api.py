"""Random calls, legal and illegal, on every environment and mode, against a model and references.

    python tests/fuzz/api.py --seed 1 --sessions 1000
    python tests/fuzz/api.py --seed 1 --only 17
    python tests/fuzz/api.py --replay build/fuzz/api-1-17.txt

Sessions run in child processes: a signal, a hang (a call of 20 s of processor time, or 100 s) or a
wrong result ends the child; the calls up to there are kept under build/fuzz/, shortened as far as
the failure stays, and printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import batches
import calls as _calls  # noqa: F401 (registers calls)
import children
from batches import Result
from kinds import KINDS
from session import Session
from settings import CALLS_PER_SESSION, Settings, draw

if find_spec("torch") is not None:
    import rollout_calls as _rollout_calls  # noqa: F401

BUILD = Path(__file__).parents[2] / "build" / "fuzz"
SECONDS_PER_CALL = 20.0  # of processor time
CALLS_AFTER_CLOSE = 12
REPLAYS = {"hang": 8}  # to shorten one failure; a hang's take long
MANY_REPLAYS = 60
MOST_SHORTENED = 20  # failures
SHOWN = 12  # of the last calls


class Call(NamedTuple):
    """All that a call is drawn from, and so all that repeats it."""

    name: str
    seed: int
    fault: str | None


@dataclass(frozen=True)
class Program:
    """A session written down."""

    settings: dict[str, object]
    calls: list[Call]

    @staticmethod
    def read(path: Path) -> Program:
        settings, *lines = path.read_text().splitlines()
        calls = []
        for line in lines:
            name, seed, fault = line.split()
            calls.append(Call(name, int(seed), None if fault == "-" else fault))
        return Program(json.loads(settings), calls)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(self.settings), *map(_line, self.calls)]
        path.write_text("\n".join(lines) + "\n")


def _line(call: Call) -> str:
    return f"{call.name} {call.seed} {call.fault or '-'}"


# ---- in the child --------------------------------------------------------------------------------


def _draw_calls(session: Session) -> Iterator[Call]:
    """Calls that suit where the session is: mostly legal ones, results fetched now and then."""
    settings, model = session.settings, session.model
    rng = random.Random(settings.seed)
    names = list(KINDS)
    after_close = 0
    if settings.against_gymnasium or rng.random() < 0.8:
        yield Call("first_reset", rng.getrandbits(32), None)
    for _ in range(settings.num_calls):
        busy = bool(model.busy)
        waiting = any(env.needs_reset for env in model.envs)
        weights = []
        for name in names:
            kind = KINDS[name]
            weight = kind.weight if kind.possible(session) else 0.0
            if name == "recv":
                weight *= 3.0 if busy else 0.1
            elif name == "step" and (busy or waiting):
                weight *= 0.1
            elif name == "reset" and waiting and not busy:
                weight *= 6.0
            weights.append(weight)
        name = rng.choices(names, weights)[0]
        faults = KINDS[name].faults
        fault = rng.choice(faults) if faults and rng.random() < 0.2 else None
        yield Call(name, rng.getrandbits(32), fault)
        after_close += model.closed
        if after_close > CALLS_AFTER_CLOSE:
            return


def _run_session(
    settings: Settings, calls: Iterable[Call] | None, journal: int, *, show: bool = False
) -> Counter[str]:
    """Runs given or drawn calls, each written to ``journal`` before it is made."""
    counts: Counter[str] = Counter()
    children.expect_within(SECONDS_PER_CALL)
    session = Session(settings)
    for call in calls if calls is not None else _draw_calls(session):
        children.expect_within(SECONDS_PER_CALL)
        os.write(journal, f"{_line(call)}\n".encode())
        kind = KINDS[call.name]
        if calls is not None and not kind.possible(session):
            continue  # after another call was left out
        rng = random.Random(call.seed)
        plan = kind.plan(session, rng, call.fault)
        if show:
            print(plan.text, flush=True)
        legal = session.run(plan, rng)
        counts["calls"] += 1
        counts["legal" if legal else "refused"] += 1
        counts[call.name] += 1
    counts["rows"] += session.rows
    counts["gymnasium_rows" if settings.against_gymnasium else "own_rows"] += session.rows
    counts["sessions"] += 1
    children.expect_within(SECONDS_PER_CALL)
    session.close()
    return counts


def judge(options: argparse.Namespace, number: int) -> Result:
    """The n-th session of a run; where it fails, the calls up to there stay written down."""
    chosen = draw(
        options.seed, number, render=options.render, calls_per_session=options.calls_per_session
    )
    path = _program_of(options, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(journal, (json.dumps(asdict(chosen)) + "\n").encode())
    try:
        counts = _run_session(chosen, None, journal)
    except BaseException:
        traceback.print_exc()
        sys.exit(children.FAILED)
    os.close(journal)
    path.unlink()
    return {"kind": "right", **counts}


def _program_of(options: argparse.Namespace, number: int) -> Path:
    folder: Path = options.folder
    return folder / f"api-{options.seed}-{number}.txt"


PROGRAM = batches.Program(
    Path(__file__),
    batches.drawing(__doc__, "sessions", 1_500),  # a million calls, about
    judge,
    fine=("right",),
    seconds=SECONDS_PER_CALL,
    per_child=20,
)
_also = PROGRAM.parser.add_argument
_also("--calls-per-session", type=int, default=CALLS_PER_SESSION)
_also("--render", action="store_true", help="draw pictures in a few sessions")
_also("--folder", type=Path, default=BUILD, help="where failures are kept")
_also("--replay", type=Path, help="a program kept under build/fuzz")
_also("--quiet", action="store_true", help=argparse.SUPPRESS)


def _replay(path: Path, *, show: bool) -> int:
    children.guard()
    program = Program.read(path)
    journal = os.open(os.devnull, os.O_WRONLY)
    chosen = Settings(**program.settings)  # type: ignore[arg-type]
    try:
        _run_session(chosen, program.calls, journal, show=show)
    except BaseException:
        traceback.print_exc()
        return children.FAILED
    return 0


# ---- in the parent -------------------------------------------------------------------------------


def _shorten(program: Program, path: Path, kind: str) -> Program:
    """Leaves out calls while the program still ends in the same way."""
    replays = 0
    most = REPLAYS.get(kind, MANY_REPLAYS)

    def fails(calls: list[Call]) -> bool:
        nonlocal replays
        replays += 1
        Program(program.settings, calls).write(path)
        return children.run(Path(__file__), ["--replay", str(path), "--quiet"], 120.0).kind == kind

    calls = program.calls
    if not fails(calls):
        program.write(path)
        return program
    size = len(calls) // 2
    while size >= 1 and replays < most:
        start = 0
        while start < len(calls) - 1 and replays < most:
            shorter = calls[:start] + calls[start + size :]
            if shorter and fails(shorter):
                calls = shorter
            else:
                start += size
        size //= 2
    shortened = Program(program.settings, calls)
    shortened.write(path)
    return shortened


def _describe(path: Path, failure: Result) -> str:
    """Shortens a failure's program; says what happened and how to see it again."""
    program = _shorten(Program.read(path), path, failure["kind"])
    shown = children.run(Path(__file__), ["--replay", str(path)], 120.0)
    calls = "\n  ".join(shown.output.splitlines()[-SHOWN:])
    return (
        f"session {failure['number']}: {failure['kind']}\n{failure['refusal']}\n"
        f"settings: {program.settings}\nlast calls of {len(program.calls)} left:\n  {calls}\n"
        f"again: python {Path(__file__).name} --replay {path}"
    )


def fuzz(given: Sequence[str]) -> Iterator[Result]:
    """Results under these arguments; failures' programs are kept, and the first ones shortened."""
    options = PROGRAM.parser.parse_args(given)
    failures = 0
    for result in PROGRAM.results(given):
        path = _program_of(options, result["number"])
        if result["kind"] not in PROGRAM.fine:
            failures += 1
            if failures <= MOST_SHORTENED and path.exists():
                print(_describe(path, result), file=sys.stderr, flush=True)
        yield result


def _show(options: argparse.Namespace) -> int:
    """Runs one session of a run, and tells its calls."""
    outcome = children.run(Path(__file__), [*sys.argv[1:], "--batch", str(options.only), "1"], 1e5)
    print(outcome.output, outcome.errors)
    path = _program_of(options, options.only)
    return _replay(path, show=True) if path.exists() else int(not outcome.good)


def main() -> int:
    options = PROGRAM.parser.parse_args()
    if options.replay is not None:
        return _replay(options.replay, show=not options.quiet)
    if options.batch is not None:
        return PROGRAM.serve(options)
    if options.only is not None:
        return _show(options)
    return int(bool(PROGRAM.report(f"API, seed {options.seed}", fuzz(sys.argv[1:]))))


if __name__ == "__main__":
    sys.exit(main())
