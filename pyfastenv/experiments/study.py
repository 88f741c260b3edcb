"""An experiment's folder: what was measured is kept, and not measured again.

An experiment is a plan (a list of :class:`Measurement`) made of its sizes, and a report made of
what was measured. results.json grows with every measurement (written whole, then renamed), so a run
that was interrupted, or had its ``--minutes``, goes on where it stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pyfastenv import _core
from pyfastenv.experiments.claims import Ratio, compare
from pyfastenv.experiments.measure import interleaved, machine, today
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.progress import duration

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
Contestant = tuple[Row, Callable[[], Row], float]  # about, run and seconds of a Measurement
FORM = 2  # of results.json
_SAME = ("cpu", "cpus_available", "gpu")  # machines whose times may be compared have these
CHOICE = {"choice": True}  # metadata of a bool field of Sizes, named as the part that it leaves out


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The options that every experiment begins with; others are sizes, and choices of
    parts, which may be measured another time."""

    quick: bool = False
    """Much reduced sizes, which show that everything works."""
    output: Path | None = None
    """The folder; by default experiments/NAME, or experiments/quick/NAME."""
    report_only: bool = False
    """Write the report again from the results that are in the folder, on any machine."""
    minutes: float | None = None
    """Stop after so long; the same command goes on."""

    def measured(self) -> Row:
        """The sizes themselves, as JSON has them."""
        others = {*(field.name for field in fields(Sizes)), *self.choices()}
        values = {name: value for name, value in asdict(self).items() if name not in others}
        return dict(json.loads(json.dumps(values, default=str)))

    def choices(self) -> list[str]:
        """The parts that may be left out."""
        return [field.name for field in fields(self) if field.metadata == CHOICE]

    def torch_threads(self) -> int:
        """PyTorch's while measuring; more only slow small networks down, and a policy on one CPU
        stands for one on a device of its own."""
        return 1


@dataclass(frozen=True)
class Measurement:
    """Something to measure once."""

    part: str  # the table that it is a row of
    about: Row  # the row's columns that say what it is: numbers and strings, unique in the part
    run: Callable[[], Row]  # measures; returns the row's other columns
    seconds: float  # what it takes on two quiet cores, about
    needs_cuda: bool = False  # left out where there is no GPU
    apart: bool = False  # its part is compared with no other, and may be another machine's

    @property
    def key(self) -> str:
        """Its name in results.json."""
        return ", ".join([self.part, *(f"{name} {value}" for name, value in self.about.items())])


def rounds(
    count: int, part: str, contestants: Sequence[Contestant], *, apart: bool = False
) -> list[Measurement]:
    """Each contestant once per round, each round begun by another one."""
    return [
        Measurement(part, about | {"round": r}, run, seconds, apart=apart)
        for r, (about, run, seconds) in interleaved(contestants, count)
    ]


class Study:
    """Measures a plan in a folder.

    Args:
        name: The experiment's.
        sizes: Its sizes.

    Attributes:
        sizes: What is measured; with ``report_only`` what has been.
        state: What results.json has.

    Raises:
        ValueError: The folder has no results to report; or those of other sizes, of another
            experiment or of an older form.
    """

    def __init__(self, name: str, sizes: Sizes):
        self.name = name
        self.sizes: Any = sizes
        self.folder = sizes.output or Path("experiments", *["quick"] * sizes.quick, name)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"output: {self.folder} is not a folder")
        self.path = self.folder / "results.json"
        self.state: Row = {"experiment": name, "form": FORM, "measurements": {}}
        if self.path.exists():
            self.state = self._read()
        if not sizes.report_only:
            self._check_that_these_belong_here()
        elif "sizes" in self.state:
            lists = self.state["sizes"].items()
            values: Row = {key: tuple(v) if isinstance(v, list) else v for key, v in lists}
            values |= {part: part in self.parts for part in sizes.choices()}
            self.sizes = replace(sizes, quick=self.state["quick"], **values)
        else:
            raise ValueError(f"{self.folder}: no results to report; measure first")

    def _read(self) -> Row:
        try:
            state: Row = json.loads(self.path.read_text())
            experiment, form = state["experiment"], state.get("form", 1)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path}: not an experiment's results ({error!r}); move the file away"
            ) from error
        if experiment != self.name:
            raise ValueError(
                f"{self.path}: results of {experiment}, not of {self.name}; choose another --output"
            )
        if form != FORM:
            raise ValueError(
                f"{self.path}: results of an older form ({form}, this is {FORM}), which today's "
                "report cannot be made of; measure into another --output, or move the file away"
            )
        return state

    def _check_that_these_belong_here(self) -> None:
        mine = self.sizes.measured()
        self.state["quick"] = self.sizes.quick
        theirs = self.state.setdefault("sizes", mine)
        if theirs != mine:
            other = [f"{k} {v} (now {mine.get(k)})" for k, v in theirs.items() if mine.get(k) != v]
            raise ValueError(
                f"{self.path}: measured with {', '.join(other)}; choose another --output"
            )

    # ---- measuring ---------------------------------------------------------------------------

    def missing(self, plan: Sequence[Measurement]) -> list[Measurement]:
        """The measurements that are still to be made."""
        has_cuda = torch.cuda.is_available() and not self.sizes.report_only
        known = self.state["measurements"]
        return [one for one in plan if one.key not in known and (has_cuda or not one.needs_cuda)]

    def measure(self, plan: Sequence[Measurement]) -> bool:
        """Measures what is missing; says first how long that will take.

        Returns:
            Whether all has been measured; else the time was up.

        Raises:
            ValueError: The folder has another machine's times, which must not stand beside this
                one's.
        """
        missing = self.missing(plan)
        self._check_machine(missing)
        if missing:
            count, left = f"{len(missing)} of {len(plan)}", time_left(missing, self.sizes)
            where = f"on two quiet cores, into {self.folder}"
            print(f"{self.name}: {count} measurements, {left} {where}", flush=True)
        else:
            where = f"in {self.folder}; to measure anew, choose another --output"
            print(f"{self.name}: all {len(plan)} measurements are {where}", flush=True)
        end = time.monotonic() + 60.0 * self.sizes.minutes if self.sizes.minutes is not None else 0
        threads = torch.get_num_threads()
        torch.set_num_threads(self.sizes.torch_threads())
        try:
            for i, one in enumerate(missing):
                if end and time.monotonic() > end:
                    left = f"{len(missing) - i} measurements are left, "
                    left += time_left(missing[i:], self.sizes)
                    print(f"{self.name}: {left}; the same command goes on", flush=True)
                    return False
                start = time.perf_counter()
                row = one.run()
                self._keep(one, row, time.perf_counter() - start)
        finally:
            torch.set_num_threads(threads)
        return True

    def _check_machine(self, missing: Sequence[Measurement]) -> None:
        now = _machine()
        for one in missing:
            then = self._machine_of(one) or now
            differs = [name for name in _SAME if then.get(name) != now.get(name)]
            if differs:
                was, this = (
                    ", ".join(f"{n} {about.get(n)}" for n in _SAME) for about in (then, now)
                )
                raise ValueError(
                    f"{self.path} was measured on another machine ({was}; this is {this}); "
                    "choose another --output"
                )

    def _machine_of(self, one: Measurement) -> Row | None:
        if one.apart:
            return self.apart.get(one.part)
        return self.state.get("machine")

    def _keep(self, one: Measurement, row: Row, seconds: float) -> None:
        now = _machine()
        if one.apart:
            self.state.setdefault("apart", {})[one.part] = now
        else:
            self.state["machine"] = now
        about = {"measured_s": round(seconds, 3), "commit": now["commit"], "date": today()}
        self.state["measurements"][one.key] = {"part": one.part, **one.about, **row, **about}
        # with a line for each measurement, so that differences can be read
        head = {name: value for name, value in self.state.items() if name != "measurements"}
        rows = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in self.state["measurements"].items()]
        start, lines = json.dumps(head, indent=1).removesuffix("\n}"), ",\n  ".join(rows)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.path, f'{start},\n "measurements": {{\n  {lines}\n }}\n}}\n')
        print(f"  {one.key}: {seconds:.1f} s", flush=True)

    # ---- what was measured -------------------------------------------------------------------

    @property
    def apart(self) -> dict[str, Row]:
        """The machines of the parts that are compared with no other, by part."""
        return dict(self.state.get("apart", {}))

    @property
    def cpus(self) -> int:
        """The number of CPUs of the machine that measured."""
        return int(self.state["machine"]["cpus_available"])

    @property
    def has_gpu(self) -> bool:
        """Whether the machine that measured has one."""
        return bool(self.state["machine"]["gpu"])

    @property
    def bfloat16(self) -> str:
        """The processor's unit for products of bfloat16 numbers: AMX, AVX512-BF16, or nothing."""
        return str(self.state["machine"].get("bfloat16", ""))

    @property
    def parts(self) -> set[str]:
        """The parts of which something was measured."""
        return {row["part"] for row in self.state["measurements"].values()}

    def part(self, name: str) -> pd.DataFrame:
        """A part's rows."""
        import pandas as pd

        rows = [row for row in self.state["measurements"].values() if row["part"] == name]
        return pd.DataFrame(rows)

    def rounds(self, part: str, value: str, **about: Any) -> list[float]:
        """A contestant's values, round by round."""
        frame = self.part(part)
        for name, wanted in about.items():
            frame = frame[frame[name] == wanted]
        return [float(x) for x in frame.sort_values("round")[value]]

    def ratio(self, part: str, value: str, one: Row, other: Row) -> Ratio | None:
        """Two contestants' values, round by round as far as both have them; None: not measured."""
        first, second = (self.rounds(part, value, **about) for about in (one, other))
        count = min(len(first), len(second))
        return compare(first[:count], second[:count]) if count else None


def time_left(missing: Sequence[Measurement], sizes: Sizes) -> str:
    """The time that the missing measurements will take, in words."""
    if sizes.quick:  # the estimates are those of full sizes
        return "less than a minute"
    return f"about {duration(sum(one.seconds for one in missing))}"


def _machine() -> Row:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return machine() | {"gpu": gpu, "bfloat16": _core.bfloat16_unit()}
