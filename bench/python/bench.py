"""Benchmarks of pyfastenv and its peers: ``python bench/python/bench.py [--quick]``.

Writes bench.json (machine, settings, every raw rate), bench.md (tables with the targets) and
plots. A section measured alone replaces its own part of bench.json.
"""

from __future__ import annotations

import importlib.util
import json
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import options
import report
from sections import SECTIONS, has_envpool
from settings import Settings

from pyfastenv.experiments import measure


def main() -> None:
    """The program."""
    args = options.parse(__doc__, SECTIONS)
    warnings.filterwarnings("ignore", module="gymnasium")
    if not has_envpool():
        print("EnvPool is not installed (pip install envpool==1.2.5): measuring without it")
    settings = Settings(quick=args.quick, num_threads=args.num_threads)
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / "bench.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name in args.sections:
        print(f"{name}:", flush=True)
        start = time.perf_counter()
        rows = SECTIONS[name](settings)
        results[name] = {
            "machine": measure.machine(),
            "settings": {
                **asdict(settings),
                "seconds": settings.seconds,
                "repeats": settings.repeats,
            },
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "duration_s": round(time.perf_counter() - start),
            "rows": rows,
        }
        # after each section, so that an interrupted run leaves what it has measured
        ordered = {name: results[name] for name in SECTIONS if name in results}
        path.write_text(json.dumps(ordered, indent=1) + "\n")
        (args.output / "bench.md").write_text(report.markdown(ordered))
    _plot(results, args.output)
    print("wrote bench.json, bench.md and plots")


def _plot(results: dict[str, Any], output: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed (pip install matplotlib): no plots")
        return
    import plots

    plots.write_all(results, output)


if __name__ == "__main__":
    main()
