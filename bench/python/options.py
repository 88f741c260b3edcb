"""The command line of benchmarks that are made of sections."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path


def parse(description: str | None, sections: Collection[str]) -> argparse.Namespace:
    """quick, sections (a list of known names), num_threads and output (a folder)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="short and rough")
    parser.add_argument("--sections", default=",".join(sections), help="comma-separated")
    parser.add_argument("--num-threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "results")
    args = parser.parse_args()
    args.sections = args.sections.split(",")
    for name in args.sections:
        if name not in sections:
            parser.error(f"--sections: expected some of {', '.join(sections)}, got {name!r}")
    return args
