"""What was tried with which MuJoCo, Python and platform: docs/results/versions.json and its table.

``make test-mujoco`` calls it in the environment that it has tested, with pytest's report; without
arguments it writes the table of docs/versions.md anew.

    python release/matrix.py [build/mujoco-3.11.0/tests.xml]
"""

from __future__ import annotations

import json
import platform
import sys
import xml.etree.ElementTree as ElementTree
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "versions.json"
PAGE = ROOT / "docs" / "versions.md"
_COLUMNS = {
    "mujoco": "MuJoCo",
    "gymnasium": "gymnasium",
    "python": "Python",
    "platform": "platform",
    "passed": "tests passed",
    "failed": "failed",
    "lanes": "in lanes",
    "mj_step": "by `mj_step`",
}
_BEGIN, _END = "<!-- table -->\n", "<!-- end -->\n"


def measure(report: Path) -> dict[str, Any]:
    """What this environment is, and what its tests said."""
    import pyfastenv
    from pyfastenv import _core

    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    lanes, by_mujoco = 0, 0
    for env_id in pyfastenv.env_ids():
        with closing(pyfastenv.make_vec(env_id)) as envs:
            engine = envs.stats()["engine"]
            lanes += engine == "lanes"
            by_mujoco += engine == "mujoco"
    return {
        "mujoco": _core.MUJOCO_VERSION,
        "gymnasium": version("gymnasium"),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "platform": f"{platform.system()} {platform.machine()}",
        "passed": count["tests"] - count["failures"] - count["errors"] - count["skipped"],
        "failed": count["failures"] + count["errors"],
        "lanes": lanes,
        "mj_step": by_mujoco,
    }


def table(cells: list[dict[str, Any]]) -> str:
    """The page's table."""
    lines = ["| " + " | ".join(_COLUMNS.values()) + " |", "|---" * len(_COLUMNS) + "|"]
    for cell in cells:
        lines.append("| " + " | ".join(str(cell[key]) for key in _COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def read() -> list[dict[str, Any]]:
    """The cells that were tried, the newest MuJoCo first."""
    return list(json.loads(RESULTS.read_text())) if RESULTS.is_file() else []


def written(page: str, cells: list[dict[str, Any]]) -> str:
    """The page with the table of these cells."""
    before, _, rest = page.partition(_BEGIN)
    return before + _BEGIN + table(cells) + _END + rest.partition(_END)[2]


def main() -> None:
    """Adds a cell, if there is a report, and writes the table."""
    cells = read()
    if sys.argv[1:]:
        new = measure(Path(sys.argv[1]))
        where = ("mujoco", "python", "platform")
        cells = [c for c in cells if any(c[key] != new[key] for key in where)] + [new]
        cells.sort(key=lambda c: [-int(n) for n in c["mujoco"].split(".")])
        RESULTS.write_text(json.dumps(cells, indent=2) + "\n")
    PAGE.write_text(written(PAGE.read_text(), cells))


if __name__ == "__main__":
    main()
