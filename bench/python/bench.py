"""Benchmarks of pyfastenv and its peers: ``python bench/python/bench.py [--quick]``.

Writes bench.json (machine, settings, every raw rate), bench.md (tables with the targets) and plots.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import plots
import tyro
from sections import SECTIONS, has_envpool
from settings import Settings

from pyfastenv.experiments import sections


@dataclass(frozen=True, kw_only=True)
class Options(sections.Options):
    """Which sections, and how."""

    num_threads: int = 2


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    warnings.filterwarnings("ignore", module="gymnasium")
    if not has_envpool():
        print("EnvPool is not installed (pip install envpool==1.2.5): measuring without it")
    settings = Settings(quick=options.quick, num_threads=options.num_threads)
    about = {"seconds": settings.seconds, "repeats": settings.repeats}
    results = sections.run(
        "bench",
        {name: partial(section, settings) for name, section in SECTIONS.items()},
        options,
        template=Path(__file__).parent / "templates" / "bench.md",
        about={"settings": asdict(settings) | about},
    )
    plots.write_all(results, options.output)


if __name__ == "__main__":
    main()
