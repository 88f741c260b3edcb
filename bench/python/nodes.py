"""Trainings over two nodes whose workers are killed: ``python bench/python/nodes.py``.

Each case runs undisturbed and with ``kill -9`` of workers in the middle. The nodes are processes of
this machine: agents of torchrun (on the loopback address), or of ``ray start``. Writes
docs/results/nodes.json and nodes.png.
"""

from __future__ import annotations

import importlib.metadata
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch
import tyro

from pyfastenv.experiments import measure, pictures, sections
from pyfastenv.publish.plots import COLOURS
from pyfastenv.runs import checkpoint
from pyfastenv.runs.logger import read_metrics

ROOT = Path(__file__).parents[2]
POLL, STILL = 0.1, 2.0  # [s] between looks at a run; if it is more, the machine stood still
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # docs/howto/many_nodes.md says why
}
STEPS = 100_000  # of PPO
KILLS = ((40_000, 0), (70_000, 1))
TRAIN = f"--total-steps {STEPS} --checkpoint-every {STEPS // 10} --env-id Hopper-v5"


@dataclass(frozen=True)
class Case:
    """A training over nodes; commands are made for a free port and a folder, its run in ``run``."""

    title: str
    nodes: Callable[[int, Path], list[str]]
    driver: str | None  # an example with its options, which ends; None: the nodes do
    worker: str  # what a worker's command line has
    kills: tuple[tuple[int, int], ...]  # from which step, on which node
    shown: str  # the return that is drawn


def torchrun(port: int, folder: Path) -> list[str]:
    """Two agents."""
    agent = (
        f"{sys.executable} -m torch.distributed.run --nnodes 2 --nproc-per-node 1 --max-restarts 3 "
        f"--rdzv-backend c10d --rdzv-id run --rdzv-endpoint 127.0.0.1:{port} -m pyfastenv train "
        f"ppo {TRAIN} --num-threads 1 --auto-resume --run-dir {folder / 'run'}"
    )
    return [agent, agent]


def ray_nodes(port: int, folder: Path) -> list[str]:
    """A head and another."""
    start = f"{Path(sys.executable).with_name('ray')} start --block"
    head = f"--head --port {port} --include-dashboard false --temp-dir {folder.parents[1]}"
    return [f"{start} --num-cpus 2 {head}", f"{start} --num-cpus 1 --address 127.0.0.1:{port}"]


CASES = {
    "torchrun": Case("PPO by torchrun", torchrun, None, "pyfastenv train", KILLS, "train/return"),
    "ray_train": Case(
        "PPO by Ray Train", ray_nodes, f"ray_train_ppo.py {TRAIN}", "ray::RayTrainWorker", KILLS,
        "train/return",
    ),
    "ray_sac": Case(
        "SAC by Ray actors", ray_nodes, "ray_sac.py", "ray::Sampler", ((2_500, 1),), "eval/return"
    ),
}  # fmt: skip


# ---- a run ---------------------------------------------------------------------------------------


@contextmanager
def process(command: str, log: Path) -> Iterator[psutil.Popen]:
    """While entered, it runs; then it and all that it has started end."""
    with log.open("ab") as file:
        started = psutil.Popen(
            command.split(), cwd=log.parent, env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield started
    finally:
        everyone = [*descendants(started), started]
        for each in everyone:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(everyone, timeout=10)


def descendants(parent: psutil.Process, having: str = "") -> list[psutil.Process]:
    """Those that still are, with something in their command lines."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in parent.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if having in " ".join(child.cmdline()):
                    found.append(child)
    return found


class Watch:
    """Watches a run's metrics as time goes by, those that a restarted training takes back too."""

    def __init__(self, folder: Path, shown: str):
        self._folder, self._shown = folder, shown
        self._seen: set[tuple[float, float]] = set()
        self._began = self._looked = time.monotonic()
        self._longest_gap = 0.0
        self.rows: list[dict[str, Any]] = []
        self.kills: list[dict[str, Any]] = []

    def look(self) -> None:
        """Notes the rows that are new."""
        now = time.monotonic()
        self._longest_gap = max(self._longest_gap, now - self._looked)
        self._looked = now
        with suppress(FileNotFoundError):
            for row in read_metrics(self._folder):
                key = row["step"], row.get("time/elapsed_s", 0.0)
                if key not in self._seen:
                    self._seen.add(key)
                    known = {name: row.get(name) for name in (self._shown, "sampler")}
                    self.rows.append(
                        {"s": round(now - self._began, 1), "step": int(row["step"]), **known}
                    )

    def kill(self, worker: psutil.Process, node: int) -> None:
        """``kill -9``."""
        worker.kill()
        seconds = round(time.monotonic() - self._began, 1)
        psutil.wait_procs([worker], timeout=10)
        time.sleep(0.5)
        self.look()  # what was written before
        kill = {"node": node, "s": seconds, "step": self.rows[-1]["step"], "rows": len(self.rows)}
        self.kills.append(kill)

    def result(self) -> dict[str, Any]:
        """The curve, and of each kill when it was learned again, and where."""
        for kill in self.kills:
            rows = kill.pop("rows")
            team = {row["sampler"] for row in self.rows[:rows]} - {None}
            again = next(row for row in self.rows[rows:] if row["sampler"] not in team)
            kill |= {"again_s": round(again["s"] - kill["s"], 1), "again_step": again["step"]}
        curve = [(row["s"], row["step"], row[self._shown]) for row in self.rows]
        curve = [point for point in curve if point[2] is not None]
        gap = round(self._longest_gap, 1)
        return {"longest_gap_s": gap, "kills": self.kills, "last_return": curve[-1][2],
                "seconds": round(time.monotonic() - self._began, 1), "curve": curve}  # fmt: skip


def run(case: Case, folder: Path, kills: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """One training, from the nodes' start to their end."""
    folder.mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log, left = folder / "log.txt", list(kills)
    with ExitStack() as stack:
        nodes = [stack.enter_context(process(each, log)) for each in case.nodes(port, folder)]
        to_end = nodes
        if case.driver is not None:
            time.sleep(20)  # until the nodes know each other
            where = f"--address 127.0.0.1:{port} --run-dir {folder / 'run'}"
            driver = f"{sys.executable} {ROOT / 'examples' / case.driver} {where}"
            to_end = [stack.enter_context(process(driver, log))]
        watch = Watch(folder / "run", case.shown)
        while any(each.poll() is None for each in to_end):
            watch.look()
            if left and watch.rows and watch.rows[-1]["step"] >= left[0][0]:
                _, node = left.pop(0)
                watch.kill(descendants(nodes[node], case.worker)[-1], node)
            time.sleep(POLL)
        watch.look()
        assert all(each.returncode == 0 for each in to_end) and not left, log.read_text()[-5000:]
    return watch.result()


def same(a: Any, b: Any) -> bool:
    """Whether two checkpoints hold the same, to the last bit."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else bool(a == b)


def measured(case: Case, folder: Path) -> dict[str, Any]:
    """Both runs."""
    machine = measure.machine()
    machine["versions"]["ray"] = importlib.metadata.version("ray")
    result = {"title": case.title, "shown": case.shown, "machine": machine}
    for name, kills in (("undisturbed", ()), ("killed", case.kills)):
        result[name] = run(case, folder / name, kills)
        print(f"{case.title}, {name}: {result[name] | {'curve': '…'}}", flush=True)
        if result[name]["longest_gap_s"] > STILL:
            print("the machine stood still meanwhile: its seconds are no measurement", flush=True)
    if (folder / "killed" / "run" / "checkpoints").exists():
        paths = [checkpoint.resolve(folder / name / "run") for name in ("undisturbed", "killed")]
        result["bit_equal"] = same(*(checkpoint.load(path)["ranks"] for path in paths))
    return result


# ---- the picture ---------------------------------------------------------------------------------


def draw(cases: dict[str, Any], path: Path) -> None:
    """A column per case: returns against time, and against steps, where kills should not show."""
    count = len(cases)
    figure, panels = pictures.panels(2 * count, size=(4 * count, 5.6), columns=count, sharey="col")
    for i, case in enumerate(cases.values()):
        for axes, x, scale in ((panels[i], 0, 1.0), (panels[count + i], 1, 1e3)):
            for name, colour, width in (
                ("undisturbed", pictures.GREY, 3.5),
                ("killed", COLOURS[0], 1.2),
            ):
                points = [(point[x] / scale, point[2]) for point in case[name]["curve"]]
                axes.plot(*zip(*points, strict=True), color=colour, linewidth=width, label=name)
            for kill in case["killed"]["kills"]:
                where = kill["step" if x else "s"] / scale
                axes.axvline(where, color=COLOURS[1], linewidth=1, linestyle="--")
                axes.annotate(
                    f"kill -9\non node {kill['node'] + 1}", (where, 0.03), xytext=(3, 0),
                    xycoords=axes.get_xaxis_transform(), textcoords="offset points", fontsize=7,
                    color=COLOURS[1],
                )  # fmt: skip
            axes.set_xlabel("environment steps [thousands]" if x else "time [s]")
        panels[i].set_title(case["title"])
        kind = "training episodes" if case["shown"] == "train/return" else "50 greedy episodes"
        for axes in (panels[i], panels[count + i]):
            axes.set_ylabel(f"return, {kind}")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
    pictures.save(figure, path)


@dataclass(frozen=True, kw_only=True)
class Options(sections.Options):
    """Which cases, and where they are kept."""

    output: Path = Path("docs/results")
    """The folder."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    with tempfile.TemporaryDirectory(prefix="nodes") as folder:
        cases = {n: partial(measured, case, Path(folder) / n) for n, case in CASES.items()}
        results = sections.run("nodes", cases, options)
    draw(results, options.output / "nodes.png")


if __name__ == "__main__":
    main()
