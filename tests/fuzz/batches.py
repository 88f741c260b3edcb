"""Many numbered cases in child processes, some at a time: one that crashes or hangs is one result.

A program that is run this way takes ``--batch first count`` and calls :func:`serve`. Knows nothing
of the cases.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import children

Result = dict[str, Any]
TOLD = 1000  # cases between two lines that tell how far it is


def serve(
    judge: Callable[[int], Result], first: int, count: int, seconds: float, memory: int = 0
) -> int:
    """In the child: cases first … first + count - 1, a line of JSON before and after each.

    Args:
        judge: What becomes of a case.
        first: The first case.
        count: How many.
        seconds: Processor time that a case may take.
        memory: Bound of the address space [bytes]; 0: none.
    """
    children.guard(memory)
    for number in range(first, first + count):
        print(json.dumps({"begun": number}), flush=True)
        children.expect_within(seconds)
        print(json.dumps({"number": number, **judge(number)}), flush=True)
    return 0


def _batch(
    program: Path, arguments: Sequence[str], seconds: float, first: int, count: int
) -> list[Result]:
    """Results of some cases; a child that ends is followed by another behind its last case."""
    results: list[Result] = []
    number = first
    while number < first + count:
        batch = ["--batch", str(number), str(first + count - number)]
        outcome = children.run(program, [*arguments, *batch], 4 * seconds * count)
        lines = [json.loads(line) for line in outcome.output.splitlines() if line.endswith("}")]
        results += [line for line in lines if "begun" not in line]
        if outcome.good:
            break
        number = lines[-1].get("begun", number) if lines else number
        results.append({"number": number, "kind": outcome.kind, "refusal": outcome.errors[-2500:]})
        number += 1
    return results


def run(
    program: Path,
    arguments: Sequence[str],
    cases: range,
    *,
    seconds: float,
    per_child: int,
    workers: int,
) -> Iterator[Result]:
    """Results of ``cases``, in order.

    Args:
        program: What is run with these arguments and ``--batch``.
        arguments: For every child.
        cases: Consecutive numbers.
        seconds: Processor time that a case may take.
        per_child: Cases of a child that does not crash.
        workers: Children at a time.
    """
    starts = range(cases.start, cases.stop, per_child)
    counts = (min(per_child, cases.stop - start) for start in starts)
    with ThreadPoolExecutor(workers) as pool:
        for results in pool.map(partial(_batch, program, arguments, seconds), starts, counts):
            yield from results


def tell(results: Iterable[Result], fine: Collection[str]) -> tuple[list[Result], list[Result]]:
    """Prints what is not of a ``fine`` kind as it comes; returns all results, and these."""
    start = time.monotonic()
    done: list[Result] = []
    failures: list[Result] = []
    for result in results:
        done.append(result)
        if result["kind"] not in fine:
            print(json.dumps(result), flush=True)
            failures.append(result)
        if len(done) % TOLD == 0:
            seconds = time.monotonic() - start
            print(f"{len(done):,} cases, {len(failures)} wrong, {seconds:.0f} s", flush=True)
    return done, failures


def table(results: list[Result]) -> str:
    """Counts by what became of cases, and reasons of refusals."""
    kinds = Counter(result["kind"] for result in results)
    reasons = Counter(
        result["refusal"].split(" (")[0].split(", at ")[0]
        for result in results
        if result["kind"] in ("refused", "differs")
    )
    rows = [("cases", len(results)), *sorted(kinds.items()),
            ("steps compared", sum(result.get("steps", 0) for result in results))]  # fmt: skip
    rows += [(f"  {reason}", count) for reason, count in reasons.most_common()]
    return "\n".join(f"{name:<76}{count:>12,}" for name, count in rows)
