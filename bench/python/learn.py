"""Trains the studies of docs/results: ``python bench/python/learn.py STUDY [--env-ids …] …``.

Trains the cases of a study (studies.py) with their presets and writes docs/results/<study>.json as
it goes, after each the study's page and at last all pages (results_page.py). It may be stopped at
any moment, by Ctrl-C, SIGTERM or a kill, and goes on by the same command from the latest
checkpoint; what is done is not trained again. Several may run at a time, on different robots or
studies.
"""

from __future__ import annotations

import argparse
import gc
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import curves
import policies
import results_page
from studies import STUDIES, Study, Training, changed

from pyfastenv.runs.errors import DivergedError, FolderInUseError
from pyfastenv.runs.lock import FolderLock
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.registry import algorithm_module
from pyfastenv.runs.saved import evaluate_run, load_policy
from pyfastenv.training.callbacks import Run
from pyfastenv.training.sweep_options import parse_options

ROOT = Path(__file__).parents[2]
EVAL_EPISODES = 20


def folder_of(training: Training, runs: Path) -> Path:
    """The run folder of a training."""
    case = training.case
    name = f"{training.study.name} {case.name} {case.env_id} {training.seed} x{training.count}"
    return runs / re.sub(r"\W+", "-", name.lower())


def learn(training: Training, output: Path, runs: Path) -> list[dict[str, Any]]:
    """Trains, or goes on; returns the runs that it has written.

    Args:
        training: What.
        output: docs/results.
        runs: Where the run folder is.
    """
    study, env_id = training.study, training.case.env_id
    module = algorithm_module(training.algorithm)
    folder = folder_of(training, runs)
    fields = {"loggers": (), "quiet": True, **training.options()}
    config = module.Config.preset(env_id, run_dir=folder, auto_resume=True, **fields)
    recorder = curves.Recorder(training, output)
    ended: list[Run] = []
    recorder.on_end = ended.append  # type: ignore[assignment,method-assign]
    try:
        module.train(config, [recorder])
    finally:
        recorder.close()
    evaluation = evaluate_run(folder, EVAL_EPISODES, seed=training.seed)
    greedy = evaluation.returns.view(training.count, -1)
    if training.case.name == "PPO" and training.seed == study.first_seed:
        policies.save(load_policy(folder).policy, env_id, output / "policies")
    rows = read_metrics(folder)
    return recorder.save(
        ended[0],
        done=True,
        greedy_return=greedy.mean(1).tolist(),
        greedy_returns=[[round(value, 2) for value in each] for each in greedy.tolist()],
        train_return=[_of_last_episodes(rows, k, training.count) for k in range(training.count)],
    )


def _of_last_episodes(rows: Sequence[dict[str, float]], k: int, count: int) -> float | None:
    """The mean return of a seed's last 100 training episodes, or few more."""
    name = "train/return" if count == 1 else f"train/return_{k}"
    total = episodes = 0.0
    for row in reversed(rows):
        if name in row and episodes < 100:
            number = row.get("train/episodes", 1.0)
            total, episodes = total + number * row[name], episodes + number
    return total / episodes if episodes else None


def is_done(training: Training, output: Path) -> bool:
    """Whether all its seeds reached the end that is wanted."""
    total = training.config().total_steps
    done = {
        run["seed"]
        for run in curves.read(output, training.study.name)
        if (run["name"], run["env_id"]) == (training.case.name, training.case.env_id)
        and run["done"]
        and "earlier" not in run
        and run["steps"] >= total
    }
    return set(training.seeds) <= done


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Whether no other of these programs has the training, until its return is written too."""
    try:
        # beside the run folder, which its training holds for itself, and only until it has ended
        lock = FolderLock(folder.with_name(f"{folder.name}.claim"))
    except FolderInUseError:
        yield False
        return
    try:
        yield True
    finally:
        lock.release(remove_folder=True)


def train_all(study: Study, output: Path, runs: Path) -> bool:
    """Trains all that is not done yet; returns whether nothing went wrong."""
    well = True
    for training in study.trainings():
        with claimed(folder_of(training, runs)) as mine:
            if not mine or is_done(training, output):
                continue
            about = f"{training.case.name}, {training.case.env_id}"
            try:
                for run in learn(training, output, runs):
                    greedy, minutes = run["greedy_return"], run["seconds"] / 60
                    done = f"{about}, seed {run['seed']}: {greedy:,.1f}, {minutes:.1f} min"
                    print(done, flush=True)
            except DivergedError as error:
                print(f"{about}: {error}", file=sys.stderr, flush=True)
                well = False
            results_page.write(output, study.name)
        gc.collect()  # replayed transitions may take most of the memory
    results_page.write_all(output)
    return well


def print_plan(study: Study, output: Path) -> None:
    """Prints which trainings are planned, and which are done."""
    for training in study.trainings():
        state = "done" if is_done(training, output) else "to be trained"
        about = f"{training.case.name}, {training.case.env_id}"
        steps = f"{training.config().total_steps:,} steps"
        print(f"{about}, {steps}, seeds {', '.join(map(str, training.seeds))}: {state}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Other options are the algorithm's: --total-steps 2000.",
        allow_abbrev=False,  # --seed is not --seeds
    )
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--env-ids", nargs="*", help="some of the study's robots")
    parser.add_argument("--names", nargs="*", help="some of what it trains, as its page has it")
    parser.add_argument("--seeds", type=int, help="how many of each robot")
    parser.add_argument("--together", type=int, help="seeds side by side in a process")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the trainings")
    parser.add_argument("--plan", action="store_true", help="say what is done, and end")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/results", help="run folders")
    args, others = parser.parse_known_args()
    study = STUDIES[args.study]
    try:
        options, swept = parse_options(algorithm_module(study.algorithm).Config, others)
        if swept:
            raise ValueError(f"{', '.join(swept)}: expected one value")
        study = changed(
            study,
            env_ids=args.env_ids,
            names=args.names,
            seeds=args.seeds,
            together=args.together,
            options=options,
        )
    except ValueError as error:
        parser.error(str(error))
    if args.plan:
        print_plan(study, args.output)
        return
    args.output.mkdir(parents=True, exist_ok=True)
    again = [sys.executable, *sys.argv, "--jobs", "1"]
    helpers = [subprocess.Popen(again) for _ in range(args.jobs - 1)]
    try:
        well = train_all(study, args.output, args.runs)
        failed = [process.wait() for process in helpers]
    except BaseException:
        for process in helpers:
            process.terminate()
        raise
    sys.exit(any(failed) or not well)


if __name__ == "__main__":
    main()
