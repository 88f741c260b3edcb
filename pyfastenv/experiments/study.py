"""An experiment's folder: what was measured is kept, and not measured again.

An experiment is a plan (a list of :class:`Measurement`) made of its sizes, and a report made of
what was measured. results.json grows with every measurement (written whole, then renamed), so a run
that was interrupted, or had its ``--minutes``, goes on where it stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from pyfastenv.experiments.measure import interleaved, machine, today
from pyfastenv.training.atomic import write_text
from pyfastenv.training.progress import duration

Row = dict[str, Any]
FORM = 2  # of results.json
RESULTS = "results.json"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What every experiment's options begin with; the rest is how much it measures."""

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
        general = {field.name for field in fields(Sizes)}
        values = {name: value for name, value in asdict(self).items() if name not in general}
        return dict(json.loads(json.dumps(values)))

    def torch_threads(self) -> int:
        """PyTorch's while measuring; more only slow small networks down, and a policy on one CPU
        stands for one on a device of its own."""
        return 1

    def folder(self, name: str) -> Path:
        """Where the experiment of this name goes."""
        return self.output or Path("experiments", *(["quick"] if self.quick else []), name)


@dataclass(frozen=True)
class Measurement:
    """Something to measure once.

    Attributes:
        part: The table that it is a row of.
        about: The row's columns that say what it is: numbers and strings, unique in the part.
        run: Measures; returns the row's other columns.
        seconds: What it takes on two quiet cores, about.
        needs_cuda: Left out where there is no GPU.
    """

    part: str
    about: Row
    run: Callable[[], Row]
    seconds: float
    needs_cuda: bool = False

    @property
    def key(self) -> str:
        """Its name in results.json."""
        return ", ".join([self.part, *(f"{name} {value}" for name, value in self.about.items())])


def rounds(
    count: int, part: str, contestants: Sequence[tuple[Row, Callable[[], Row], float]]
) -> list[Measurement]:
    """Each contestant (about, run, seconds) once per round, each round begun by another one."""
    return [
        Measurement(part, about | {"round": r}, run, seconds)
        for r, (about, run, seconds) in interleaved(contestants, count)
    ]


class Results:
    """What was measured.

    Args:
        path: Of results.json.
        name: The experiment's.

    Attributes:
        state: What results.json has; empty if it does not exist.

    Raises:
        ValueError: These are another experiment's results, or of an older form.
    """

    def __init__(self, path: Path, name: str):
        self.path = path
        self.state: Row = {"experiment": name, "form": FORM, "measurements": {}}
        if not path.exists():
            return
        try:
            state = json.loads(path.read_text())
            experiment, form = state["experiment"], state.get("form", 1)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}: not an experiment's results ({error!r}); move the file away"
            ) from error
        if experiment != name:
            raise ValueError(
                f"{path}: results of {experiment}, not of {name}; choose another --output"
            )
        if form != FORM:
            raise ValueError(
                f"{path}: results of an older form ({form}, this is {FORM}), which today's report "
                "cannot be made of; measure into another --output, or move the file away"
            )
        self.state = state

    @property
    def cpus(self) -> int:
        """Of the machine that measured."""
        return int(self.state["machine"]["cpus_available"])

    @property
    def has_gpu(self) -> bool:
        """Whether the machine that measured has one."""
        return bool(self.state["machine"]["gpu"])

    def part(self, name: str) -> pd.DataFrame:
        """A part's rows."""
        rows = [row for row in self.state["measurements"].values() if row["part"] == name]
        return pd.DataFrame(rows)

    def rounds(self, part: str, value: str, **about: Any) -> list[float]:
        """A contestant's values, round by round."""
        frame = self.part(part)
        for name, wanted in about.items():
            frame = frame[frame[name] == wanted]
        return [float(x) for x in frame.sort_values("round")[value]]


class Study:
    """Measures a plan in a folder.

    Args:
        name: The experiment's.
        sizes: Its sizes; with ``report_only`` those of the results are taken.

    Attributes:
        sizes: What is, or was, measured.
        results: What has been.

    Raises:
        ValueError: The folder has results of other sizes, of another experiment or of another
            machine, whose times must not stand beside this one's.
    """

    def __init__(self, name: str, sizes: Sizes):
        self.name = name
        self.sizes: Any = sizes
        self.folder = sizes.folder(name)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"output: {self.folder} is not a folder")
        self.results: Results = Results(self.folder / RESULTS, name)
        state = self.results.state
        if sizes.report_only:
            if "sizes" not in state:
                raise ValueError(f"{self.folder}: no results to report; measure first")
            values: Row = {
                k: tuple(v) if isinstance(v, list) else v for k, v in state["sizes"].items()
            }
            values["quick"] = state["quick"]
            self.sizes = replace(sizes, **values)
            return
        mine = sizes.measured()
        theirs = state.setdefault("sizes", mine)
        if theirs != mine:
            other = [f"{k} {v} (now {mine.get(k)})" for k, v in theirs.items() if mine.get(k) != v]
            raise ValueError(
                f"{self.results.path}: measured with {', '.join(other)}; choose another --output"
            )
        state["quick"] = sizes.quick
        then, now = (
            {name: about.get(name) for name in ("cpu", "cpus_available", "gpu")}
            for about in (state.get("machine") or _machine(), _machine())
        )
        if then != now:
            raise ValueError(
                f"{self.results.path} was measured on another machine ({then}, this is {now}); "
                "choose another --output"
            )

    def missing(self, plan: Sequence[Measurement]) -> list[Measurement]:
        """What is still to be measured."""
        known = self.results.state["measurements"]
        has_cuda = torch.cuda.is_available() and not self.sizes.report_only
        return [one for one in plan if one.key not in known and (has_cuda or not one.needs_cuda)]

    def measure(self, plan: Sequence[Measurement]) -> bool:
        """Measures what is missing; says first how long that will take.

        Returns:
            Whether all has been measured; else the time was up.
        """
        missing = self.missing(plan)
        if missing:
            count, left = f"{len(missing)} of {len(plan)}", time_left(missing, self.sizes)
            where = f"on two quiet cores, into {self.folder}"
            print(f"{self.name}: {count} measurements, {left} {where}", flush=True)
        began = time.monotonic()
        for i, one in enumerate(missing):
            if (
                self.sizes.minutes is not None
                and time.monotonic() - began > 60 * self.sizes.minutes
            ):
                print(
                    f"{self.name}: {len(missing) - i} measurements are left, "
                    f"{time_left(missing[i:], self.sizes)}; the same command goes on",
                    flush=True,
                )
                return False
            start = time.perf_counter()
            row = one.run()
            self._keep(one, row, time.perf_counter() - start)
        return True

    def _keep(self, one: Measurement, row: Mapping[str, Any], seconds: float) -> None:
        state, now = self.results.state, _machine()
        state["machine"] = now
        state["measurements"][one.key] = {
            "part": one.part,
            **one.about,
            **row,
            "measured_s": round(seconds, 3),
            "commit": now["commit"],
            "date": today(),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.results.path, _json(state))
        print(f"  {one.key}: {seconds:.1f} s", flush=True)


def time_left(missing: Sequence[Measurement], sizes: Sizes) -> str:
    """What that will take, in words."""
    if sizes.quick:  # the estimates are those of full sizes
        return "less than a minute"
    return f"about {duration(sum(one.seconds for one in missing))}"


def _json(state: Row) -> str:
    """With a line for each measurement, so that differences can be read."""
    head = {name: value for name, value in state.items() if name != "measurements"}
    rows = (f"{json.dumps(key)}: {json.dumps(row)}" for key, row in state["measurements"].items())
    start, lines = json.dumps(head, indent=1).removesuffix("\n}"), ",\n  ".join(rows)
    return f'{start},\n "measurements": {{\n  {lines}\n }}\n}}\n'


def _machine() -> Row:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return machine() | {"gpu": gpu}
