"""Many numbered cases in child processes, some at a time: one that crashes or hangs is one result.

Knows nothing of the cases. A fuzzer is a :class:`Program`: this is its command line, its children
and its report.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import children

Result = dict[str, Any]
TOLD = 1000  # cases between two lines that tell how far it is
# what results count, and how the closing table calls it
COUNTED = {
    "steps": "steps compared",
    "calls": "calls compared",
    "refused": "calls refused as they should be",
    "own_rows": "results compared with pools of one",
    "gymnasium_rows": "results compared with gymnasium",
}


def arguments(doc: str) -> argparse.ArgumentParser:
    """What every program takes."""
    parser = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=2, help="children at a time")
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    return parser


def drawing(doc: str, cases: str, count: int) -> argparse.ArgumentParser:
    """What a program takes whose cases are drawn: ``count`` of them, by default."""
    parser = arguments(doc)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(f"--{cases}", dest="count", type=int, default=count)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--only", type=int, help="this one of the run, with what is wrong")
    return parser


@dataclass(frozen=True)
class Program:
    """A file that judges cases, in children that are given its own arguments and ``--batch``.

    Attributes:
        file: It runs :meth:`serve` where ``--batch`` is given.
        parser: See :func:`arguments`.
        judge: What becomes of a case, under the options given: its ``kind`` and more.
        fine: Kinds that are no failures.
        seconds: Processor time that a case may take.
        per_child: Cases of a child that does not crash.
        memory: Bound of a child's address space [bytes]; 0: none.
    """

    file: Path
    parser: argparse.ArgumentParser
    judge: Callable[[argparse.Namespace, int], Result]
    fine: Collection[str]
    seconds: float
    per_child: int
    memory: int = 0

    def serve(self, options: argparse.Namespace) -> int:
        """In the child: the cases of ``--batch``, a line of JSON before and after each."""
        first, count = options.batch
        children.guard(self.memory)
        for number in range(first, first + count):
            print(json.dumps({"begun": number}), flush=True)
            children.expect_within(self.seconds)
            print(json.dumps({"number": number, **self.judge(options, number)}), flush=True)
        return 0

    def results(self, given: Sequence[str], cases: range | None = None) -> Iterator[Result]:
        """Results in order, under these arguments; ``cases`` are those drawn by default."""
        options = self.parser.parse_args(given)
        if cases is None:
            cases = range(options.first, options.first + options.count)
        starts = range(cases.start, cases.stop, self.per_child)
        counts = (min(self.per_child, cases.stop - start) for start in starts)
        with ThreadPoolExecutor(options.workers) as pool:
            for results in pool.map(partial(self._batch, given), starts, counts):
                yield from results

    def _batch(self, given: Sequence[str], first: int, count: int) -> list[Result]:
        """Results of some cases; a child that ends is followed by another behind its last case."""
        results: list[Result] = []
        number = first
        while number < first + count:
            batch = ["--batch", str(number), str(first + count - number)]
            outcome = children.run(self.file, [*given, *batch], 4 * self.seconds * count)
            lines = [json.loads(line) for line in outcome.output.splitlines() if line.endswith("}")]
            results += [line for line in lines if "begun" not in line]
            if outcome.good:
                break
            number = lines[-1].get("begun", number) if lines else number
            died = {"number": number, "kind": outcome.kind, "refusal": outcome.errors[-2500:]}
            results.append(died)
            number += 1
        return results

    def report(self, title: str, results: Iterable[Result]) -> list[Result]:
        """Prints what is not fine as it comes, and a closing table; returns the failures."""
        start = time.monotonic()
        done: list[Result] = []
        failures: list[Result] = []
        for result in results:
            done.append(result)
            if result["kind"] not in self.fine:
                print(json.dumps(result), flush=True)
                failures.append(result)
            if len(done) % TOLD == 0:
                seconds = time.monotonic() - start
                print(f"{len(done):,} cases, {len(failures)} wrong, {seconds:.0f} s", flush=True)
        print(f"{title}, {time.monotonic() - start:.0f} s\n{table(done)}")
        return failures

    def main(self, title: str, show: Callable[[argparse.Namespace], str]) -> int:
        """A child's part, one case, or a whole run; returns the exit status.

        Args:
            title: What the cases are.
            show: Judges the case ``--only`` and tells more of it; returns its kind.
        """
        options = self.parser.parse_args()
        if options.batch is not None:
            return self.serve(options)
        if options.only is not None:
            return int(show(options) not in self.fine)
        return int(bool(self.report(f"{title}, seed {options.seed}", self.results(sys.argv[1:]))))


def table(results: list[Result]) -> str:
    """Counts by what became of cases, and reasons of refusals."""
    kinds = Counter(result["kind"] for result in results)
    reasons = Counter(
        result["refusal"].split(" (")[0].split(", at ")[0]
        for result in results
        if result["kind"] in ("refused", "differs") and "refusal" in result
    )
    rows = [("cases", len(results)), *sorted(kinds.items())]
    for name, what in COUNTED.items():
        if any(name in result for result in results):
            rows.append((what, sum(result.get(name, 0) for result in results)))
    rows += [(f"  {reason}", count) for reason, count in reasons.most_common()]
    return "\n".join(f"{name:<76}{count:>12,}" for name, count in rows)
