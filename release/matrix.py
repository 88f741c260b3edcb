"""The MuJoCos, Pythons and platforms that were tried: docs/results/versions.json and its tables.

``make wheels`` notes what it has built. An environment that was tested, or ran something, is noted
by its own interpreter, with pytest's report or what it ran. Without arguments the tables of
docs/versions.md are written anew.

    python release/matrix.py [--report build/mujoco-3.11.0/tests.xml] [--ran "README's example"]
"""

from __future__ import annotations

import argparse
import json
import platform
import xml.etree.ElementTree as ElementTree
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "versions.json"
PAGE = ROOT / "docs" / "versions.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_WHERE = ("mujoco", "python", "platform")
_TESTED = {
    "mujoco": "MuJoCo",
    "gymnasium": "gymnasium",
    "python": "Python",
    "platform": "platform",
    "passed": "tests passed",
    "failed": "failed",
    "lanes": "in lanes",
    "mj_step": "by `mj_step`",
}

Cell = dict[str, Any]  # what was tried in one place; a place of _WHERE has at most one


def here() -> Cell:
    """The place that this interpreter is."""
    from pyfastenv import _core

    return {
        "mujoco": _core.MUJOCO_VERSION,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "platform": platform_name(platform.system(), platform.machine()),
        "gymnasium": version("gymnasium"),
    }


def platform_name(system: str, processor: str) -> str:
    """A platform as the tables call it, from the words of Python's ``platform``."""
    return f"{'macOS' if system == 'Darwin' else system} {processor}"


def tested(reports: list[Path]) -> Cell:
    """The cell of this environment: its tests' results, and the engine of its environments."""
    import pyfastenv

    suites = [next(ElementTree.parse(path).getroot().iter("testsuite")) for path in reports]
    count = {
        name: sum(int(suite.get(name, 0)) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    }
    lanes, by_mujoco = 0, 0
    for env_id in pyfastenv.env_ids():
        with closing(pyfastenv.make_vec(env_id)) as envs:
            engine = envs.stats()["engine"]
            lanes += engine == "lanes"
            by_mujoco += engine == "mujoco"
    return {
        "passed": count["tests"] - count["failures"] - count["errors"] - count["skipped"],
        "failed": count["failures"] + count["errors"],
        "lanes": lanes,
        "mj_step": by_mujoco,
    }


def add(new: Cell) -> None:
    """Notes what was found out about a place; what was known of it otherwise stays."""
    cells = {tuple(cell[key] for key in _WHERE): cell for cell in read()}
    place = tuple(new[key] for key in _WHERE)
    cells[place] = cells.get(place, {}) | new
    ordered = sorted(cells.values(), key=lambda c: (c["platform"], _descending(c["mujoco"])))
    ordered.sort(key=lambda c: c["platform"] != "Linux x86_64")  # most people's first
    RESULTS.write_text(json.dumps(ordered, indent=2) + "\n")


def _descending(version: str) -> list[int]:
    return [-int(number) for number in version.split(".")]


def read() -> list[Cell]:
    """Reads the cells that were tried, in the order of the tables."""
    return list(json.loads(RESULTS.read_text())) if RESULTS.is_file() else []


def _row(entries: list[str]) -> str:
    return "| " + " | ".join(entries) + " |\n"


def overview(cells: list[Cell]) -> str:
    """One row per platform and MuJoCo, one column per Python."""
    lines = _row(["platform", "MuJoCo", *(f"Python {python}" for python in PYTHONS)])
    lines += "|---" * (2 + len(PYTHONS)) + "|\n"
    for place in dict.fromkeys((cell["platform"], cell["mujoco"]) for cell in cells):
        found = {c["python"]: _state(c) for c in cells if (c["platform"], c["mujoco"]) == place}
        lines += _row([*place, *(found.get(python, "not tried") for python in PYTHONS)])
    return lines


def _state(cell: Cell) -> str:
    """The most that is known of a place."""
    if "passed" in cell:
        return f"**{cell['failed']} failed**" if cell["failed"] else "passed"
    if "ran" in cell:
        return f"run: {cell['ran']}"
    return "built"


def details(cells: list[Cell]) -> str:
    """One row per place that was tested."""
    lines = _row(list(_TESTED.values())) + "|---" * len(_TESTED) + "|\n"
    return lines + "".join(
        _row([str(cell[key]) for key in _TESTED]) for cell in cells if "passed" in cell
    )


def written(page: str, cells: list[Cell]) -> str:
    """The page with the tables of these cells."""
    for name, table in (("matrix", overview), ("tested", details)):
        begin, end = f"<!-- {name} -->\n", "<!-- end -->\n"
        before, _, rest = page.partition(begin)
        page = before + begin + table(cells) + end + rest.partition(end)[2]
    return page


def main(arguments: list[str] | None = None) -> None:
    """Notes what this environment has shown, if anything, and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, nargs="+", help="pytest's, of this environment")
    parser.add_argument("--ran", help="what ran in this environment")
    given = parser.parse_args(arguments)
    if given.report:
        add(here() | tested(given.report))
    if given.ran:
        add(here() | {"ran": given.ran})
    PAGE.write_text(written(PAGE.read_text(), read()))


if __name__ == "__main__":
    main()
