"""A frame for programs that measure named runs: falls.py, grounds.py and reward_parts.py."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Row = dict[str, Any]


def main(description: str | None, measure: Callable[[str, Path, int], Row], output: str) -> None:
    """Measures the runs that the command line names; those of other names stay in the file.

    Args:
        description: Of the program.
        measure: Its row of a name, a run folder and a number of episodes.
        output: The file, unless the command line has another.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN", help="a name and a run folder")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path(output))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    path = arguments.output
    known = json.loads(path.read_text())["runs"] if path.exists() else []
    rows = {row["name"]: row for row in known}
    for pair in arguments.runs:
        name, _, run = pair.partition("=")
        rows[name] = measure(name, Path(run), arguments.episodes)
        print(json.dumps(rows[name]), flush=True)
    path.write_text(json.dumps({"runs": list(rows.values())}, indent=1) + "\n")
