"""docs/start.md by the letter, as a stranger with an empty folder: ``make bench NAME=ten_minutes``.

Clones the checkout's commit, follows the page from top to bottom with no cache of pip's and nothing
installed, and writes how long each step took to docs/results/ten_minutes.json, from which ``make
figures`` makes the table of docs/ten_minutes.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyfastenv.experiments.measure import machine, today
from pyfastenv.experiments.tables import table
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.progress import duration

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start.md"
RESULTS = ROOT / "docs" / "results"
_PART = re.compile(
    r"^## (?P<section>[^\n]*)$|^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
_ACTIVATE = "source .venv/bin/activate"


@dataclass(frozen=True)
class Step:
    """A command that the reader runs.

    Attributes:
        section: Of the page.
        shown: As the results' table has it.
        command: For bash.
    """

    section: str
    shown: str
    command: str


def steps(page: str) -> Iterator[Step]:
    """The page's commands, line by line, and its programs."""
    section = ""
    for part in _PART.finditer(re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)):
        if part["section"]:
            section = part["section"]
        elif part["language"] == "python":
            last = part["code"].splitlines()[-1]
            yield Step(
                section, f"the program ending in `{last}`", f"python - <<'END'\n{part['code']}END"
            )
        else:
            for line in part["code"].splitlines():
                yield Step(section, f"`{line}`", line)


def follow(folder: Path) -> Iterator[dict[str, Any]]:
    """Clones and does what the page says; a step that fails ends the walk."""
    clone, home = folder / "pyfastenv", folder / "home"
    home.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "MUJOCO_GL") if name in os.environ}
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    # PyTorch for CPUs, as the page advises
    pip |= {"PIP_NO_CACHE_DIR": "1", "PIP_CONSTRAINT": str(clone / "constraints.txt")}
    first = Step("Install", "`git clone`", f"git clone --quiet '{ROOT}' '{clone}'")
    for step in (first, *steps(PAGE.read_text())):
        command, place = step.command, folder if step is first else clone
        if (clone / ".venv").exists() and _ACTIVATE not in command:
            command = f"{_ACTIVATE}\n{command}"
        if "RUN" in command.split():
            newest = max((clone / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
            command = command.replace("RUN", f"'{newest}'")
        print(f"{step.section}: {step.shown}", flush=True)
        start = time.perf_counter()
        done = subprocess.run(
            ["bash", "-c", command], cwd=place, env={**kept, **pip, "HOME": str(home)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        print(done.stdout, f"{duration(seconds)}\n", flush=True)
        yield {
            "section": step.section,
            "step": step.shown,
            "seconds": round(seconds, 1),
            "status": done.returncode,
        }
        if done.returncode != 0:
            return


def tables() -> dict[str, str]:
    """The walk, as docs/ten_minutes.md has it."""
    results = json.loads((RESULTS / "ten_minutes.json").read_text())
    rows, clock = [], 0.0
    for row in results["steps"]:
        clock += row["seconds"]
        failed = f" **failed with status {row['status']}**" if row["status"] else ""
        times = duration(clock), duration(row["seconds"])
        rows.append((*times, row["section"], f"{row['step']}{failed}"))
    about = results["machine"]
    walk = table(("after", "took", "section", "step"), rows) + (
        f"\n\n*{results['date']}, commit {about['commit']}; {about['cpu']}, "
        f"{about['cpus_available']} CPUs; {about['os']}, Python {about['python']}*\n"
    )
    return {"walk": walk}


def main() -> None:
    """Walks."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(follow(Path(folder)))
    results = {"date": today(), "machine": machine(), "steps": rows}
    write_text(RESULTS / "ten_minutes.json", json.dumps(results, indent=1) + "\n")
    if any(row["status"] for row in rows):
        sys.exit("a step failed")


if __name__ == "__main__":
    main()
