"""run(): the loop around every algorithm, from a configuration to a run folder's files.

An algorithm collects and learns; this logs, evaluates, saves, resumes, stops and sums up. The
trainings with and without interruptions, evaluations or profiles are the same, bit for bit.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from pyfastenv.errors import EnvError
from pyfastenv.publish.plots import plot_run
from pyfastenv.runs import folder as run_folder
from pyfastenv.runs import seeds
from pyfastenv.runs.atomic import write_text
from pyfastenv.runs.checkpoint import (
    CheckpointDir,
    not_finite,
    resolve,
    rng_state,
    set_rng_state,
)
from pyfastenv.runs.config import RunConfig
from pyfastenv.runs.errors import (
    CheckpointError,
    DivergedError,
    RunFolderError,
    VideoError,
)
from pyfastenv.runs.evaluation import env_kwargs, evaluate, make_eval_envs
from pyfastenv.runs.folder import Start
from pyfastenv.runs.logger import METRICS, MetricLogger, read_metrics
from pyfastenv.runs.progress import duration, make_progress
from pyfastenv.runs.registry import ALGORITHMS
from pyfastenv.runs.seeds import Stream
from pyfastenv.sampling.obs_groups import places
from pyfastenv.sampling.rollouts import episode_means
from pyfastenv.training import distributed
from pyfastenv.training.algorithm import Algorithm
from pyfastenv.training.busy import busy_note
from pyfastenv.training.callbacks import Callback, Callbacks, Run, StepFunction
from pyfastenv.training.interrupt import StopRequest
from pyfastenv.training.own_losses import check_losses, own_losses, resuming_call
from pyfastenv.training.profiling import Profile
from pyfastenv.training.warm_start import warm_start
from pyfastenv.vector.vector_env import FastVectorEnv

C = TypeVar("C", bound=RunConfig)


def episode_metrics(
    returns: Tensor, lengths: Tensor, infos: Mapping[str, Tensor]
) -> dict[str, float]:
    """``"train/return"`` and ``"train/length"`` of the episodes that ended, if any did.

    And the means of those of their infos that sum an episode up: ``"train/reward_tracking"``.
    """
    if len(returns) == 0:
        return {}
    return {
        **{f"train/{name}": mean for name, mean in episode_means(infos).items()},
        "train/return": float(returns.mean()),
        "train/length": float(lengths.double().mean()),
    }


@dataclass(frozen=True)
class RunResult:
    """The result of a run; result.json has the same.

    Attributes:
        run_dir: The run folder.
        algorithm: Its name.
        env_id: The environment.
        seed: The seed.
        global_step: Environment steps.
        elapsed_s: Time, without that between an interruption and resuming [s].
        processor_s: Processor time in it, of all of this process's threads [s].
        evaluation: The last evaluation's metrics: ``"eval/return"`` and so on.
        checkpoint: The last checkpoint.
        stopped: Why a callback stopped it; None: it reached its end.
        acceleration: What computed the gradient steps; None: the algorithm does not say.
    """

    run_dir: Path
    algorithm: str
    env_id: str
    seed: int
    global_step: int
    elapsed_s: float
    processor_s: float
    evaluation: dict[str, float]
    checkpoint: Path | None
    stopped: str | None = None
    acceleration: str | None = None


def run(
    make_algorithm: Callable[[C], Algorithm],
    config: C,
    callbacks: Sequence[Callback | StepFunction] = (),
) -> RunResult:
    """Trains, from the beginning or from ``config.resume`` on.

    Args:
        make_algorithm: Called once, with torch's default generator seeded.
        config: The options.
        callbacks: These are told about the run as it goes (:mod:`pyfastenv.training.callbacks`).

    Raises:
        TypeError, ValueError: Options that cannot be; nothing has been written.
        CheckpointError: ``resume`` cannot be read; a checkpoint cannot be written.
        FolderInUseError: Another process trains in the run folder.
        RunFolderError: The run folder cannot be written to.
        ProcessLostError: Another process of this training is gone.
        DivergedError: A loss or the state became NaN or infinite.
        SystemExit: Status 130 after Ctrl-C, 143 after SIGTERM, once a checkpoint is saved.
    """
    _check_kind(make_algorithm, config)
    joined = distributed.init(config.device)
    threads = torch.get_num_threads()
    try:
        config.check()
        torch.set_num_threads(config.torch_threads)
        with distributed.lost_processes_told(), _claimed(config) as start:
            torch.manual_seed(seeds.stream(config.seed, Stream.TORCH))
            algorithm = make_algorithm(config)
            torch.manual_seed(seeds.stream(config.seed, Stream.TORCH, distributed.rank()))
            return _Session(algorithm, config, start, callbacks).run()
    finally:
        torch.set_num_threads(threads)
        if joined:
            distributed.shut_down()


def _check_kind(make_algorithm: Any, config: RunConfig) -> None:
    """Checks that a class gets the options of the algorithm of ours that it is or derives from."""
    for base in getattr(make_algorithm, "__mro__", ()):
        if base.__module__ in ALGORITHMS.values():
            kind = sys.modules[base.__module__].Config
            if not isinstance(config, kind) and kind.algorithm != config.algorithm:
                raise TypeError(
                    f"config: {make_algorithm.__name__} expects {kind.__module__}.Config, got "
                    f"{type(config).__module__}.{type(config).__qualname__}"
                )
            return


@contextmanager
def _claimed(config: RunConfig) -> Iterator[Start]:
    """The run's start; while it is entered, process 0 holds the run folder for all of them."""
    start, lock, error = None, None, None
    if distributed.rank() == 0:
        try:
            start, lock = run_folder.claim(config)
        except Exception as raised:  # the others wait for it
            error = raised
    start, error = distributed.broadcast_object((start, error))
    if error is not None:
        raise error if distributed.rank() == 0 else SystemExit(1)
    assert start is not None
    try:
        yield start
    finally:
        if lock is not None:
            lock.release(remove_folder=True)


class _Session:
    """One process's part of a run."""

    def __init__(
        self,
        algorithm: Algorithm,
        config: RunConfig,
        start: Start,
        callbacks: Sequence[Callback | StepFunction],
    ):
        self.algorithm = algorithm
        self.config = config
        self.folder = start.folder
        self.is_main = distributed.rank() == 0
        self.checkpoints = CheckpointDir(
            start.folder / run_folder.CHECKPOINTS, config.keep_checkpoints
        )
        self.last_checkpoint = start.checkpoint
        self.callbacks = Callbacks(callbacks, Run(algorithm, config, start.folder))
        self.elapsed_before, self.processor_before = 0.0, 0.0
        if algorithm.envs.max_episode_steps is None:
            raise ValueError(
                f"env_id: {config.env_id} has no time limit here, so an episode of an evaluation "
                "need not end; give it one with --env.max_episode_steps"
            )
        self.own_losses = own_losses(algorithm)
        self.from_note = ""
        if start.state is not None:
            self._restore(start.state)
        elif start.origin is not None:
            check_losses(self.own_losses, run_folder.read_facts(start.origin), start.origin)
        if start.state is None and config.from_run is not None:
            path = resolve(config.from_run).absolute()
            self.config = replace(config, from_run=path)
            self.from_note = warm_start(algorithm, config, path)
        self.infinite = self._infinite_by_design()
        if self.is_main:
            with self._writing():
                self._open(start)
        self.started, self.processor_started = time.monotonic(), time.process_time()

    # ---- beginning and end -------------------------------------------------------------------

    def _restore(self, state: Mapping[str, Any]) -> None:
        check_losses(self.own_losses, state, self.config.resume or self.folder)
        parts = state["ranks"]
        if len(parts) != distributed.world_size():
            raise ValueError(
                f"resume: the run had {len(parts)} processes, this has {distributed.world_size()}"
            )
        mine = dict(self.algorithm.envs.task_facts)
        its = {**mine, **state.get("task_facts", {})}  # earlier versions wrote fewer, or none
        if changed := [name for name in mine if mine[name] != its[name]]:
            config, path = self.config, self.last_checkpoint
            raise ValueError(
                f"resume: {config.env_id} has changed since: {', '.join(changed)}; a new run can "
                f"begin with what was learned: pyfastenv train {config.algorithm} --env-id "
                f"{config.env_id} --from {path}"
            )
        part = parts[distributed.rank()]
        try:
            self.algorithm.load_state_dict(part["algorithm"])
        except KeyError as error:
            raise CheckpointError(
                f"{self.last_checkpoint}: it has no {error}: another version of pyfastenv wrote it"
            ) from error
        set_rng_state(part["rng"])
        self.callbacks.run.evaluation = state["evaluation"]
        self.elapsed_before = state["elapsed_s"]
        self.processor_before = state.get("processor_s", math.nan)  # an old one is silent

    def _open(self, start: Start) -> None:
        """Makes the run folder ready: what is later than the checkpoint goes."""
        self.eval_envs = self._make_eval_envs()
        if start.step is not None:
            run_folder.adopt(start)
            if (self.folder / METRICS).is_file():
                read_metrics(self.folder)  # before anything goes: what cannot be read is refused
            self.checkpoints.discard_after(start.step)
            self.checkpoints.prune(start.step)
        self.best_return = self._best_until(start.step or 0)
        config = self.config
        if start.branches:
            assert start.checkpoint is not None
            config = replace(config, resume=start.checkpoint.resolve())
        (self.folder / run_folder.RESULT).unlink(missing_ok=True)  # of fewer steps
        run_folder.write_config(
            self.folder, config, acceleration=self._acceleration, own_losses=self.own_losses
        )
        self.logger = MetricLogger(
            self.folder,
            self.config.loggers,
            config=self.config.to_dict(),
            resume_step=start.step,
        )
        self.progress = make_progress(
            self.config.total_steps, start.step or 0, quiet=self.config.quiet
        )

    def _make_eval_envs(self) -> FastVectorEnv:
        config, envs = self.config, self.algorithm.envs
        kwargs = {**env_kwargs(envs), **config.eval_env_kwargs}
        found = make_eval_envs(config.env_id, kwargs, config.eval_episodes)
        mine, its = ((each.obs_size, each.single_action_space.shape) for each in (envs, found))
        if mine != its:
            raise ValueError(
                f"eval_env_kwargs: expected observations of {mine[0]} numbers and actions {mine[1]}"
                f" as in the training, got {its[0]} and {its[1]}"
            )
        return found

    def _best_until(self, step: int) -> float:
        """The best checkpoint's return; one of a later step goes, for the run goes on before it."""
        if not self.checkpoints.best.is_file():
            return -math.inf
        try:
            best = run_folder.load_checkpoint(self.checkpoints.best)
        except CheckpointError as error:  # the training itself needs it for nothing
            warnings.warn(f"{error}; the next evaluation's replaces it", stacklevel=2)
            return -math.inf
        if best["step"] <= step:
            return float(best["evaluation"]["eval/return"])
        self.checkpoints.best.unlink()
        return -math.inf

    def run(self) -> RunResult:
        """Trains, and closes what was opened."""
        try:
            config = self.config
            profile = Profile(
                self.folder,
                enabled=config.profiles and self.is_main,
                window=config.profile_window(),
                activities=config.profile_activities,
                memory=config.profile_memory,
            )
            with StopRequest() as stop, profile:
                choice = getattr(self.algorithm, "acceleration", None)
                self._say(choice.note if choice is not None else "")
                self._say("" if self.config.quiet else busy_note())
                if self.last_checkpoint is not None:
                    self._say(f"Going on from {self.last_checkpoint}.")
                else:
                    self._say(self.config.preset_note())
                self._say(self.from_note)
                self._say(stop.note)
                self._tell("on_start")
                finished = self._train(stop, profile)
            if not finished:
                self._say_how_to_resume()
                distributed.wait_for_all()
                raise SystemExit(stop.exit_status)
            self._say(profile.table)
            self._tell("on_end")
        finally:
            if self.is_main:
                self.progress.close()
                self.logger.close()
                self.eval_envs.close()
        result = self._result()
        if self.is_main:
            with self._writing():
                self._sum_up(result)
        distributed.wait_for_all()
        return result

    # ---- the loop ----------------------------------------------------------------------------

    def _train(self, stop: StopRequest, profile: Profile) -> bool:
        """Iterates; returns False if a signal ended it before ``total_steps`` or a callback did."""
        if self.algorithm.global_step >= self.config.total_steps:
            self._say(f"Already at step {self.algorithm.global_step:,}: nothing to train.")
            self._evaluate()  # the run may have been stopped before its first evaluation
        while (before := self.algorithm.global_step) < self.config.total_steps:
            began = time.monotonic()
            with profile.iteration(lambda: self.algorithm.global_step):
                metrics = self._iterated()
            step = self.algorithm.global_step
            self._check_losses(metrics)
            metrics["time/steps_per_s"] = (step - before) / max(time.monotonic() - began, 1e-9)
            self._tell("on_step", metrics)
            called_off = self._called_off()
            if called_off or self._is_due(self.config.eval_every, before):
                metrics |= self._evaluate()
                called_off = self._called_off()
            if self.is_main:
                with self._writing():
                    self.logger.log(step, metrics | self._times("time/"))
                self.progress.update(step, metrics)
            stopping = distributed.any_of(stop.signal is not None)
            if stopping or called_off or self._is_due(self.config.checkpoint_every, before):
                self._save()
            if called_off:
                self._say(f"Stopped at step {step:,}: {self.callbacks.run.stopped}.")
                return True
            if stopping and step < self.config.total_steps:
                return False
        return True

    def _iterated(self) -> dict[str, float]:
        """One iteration; what fails in it because numbers are no longer finite has diverged."""
        try:
            return self.algorithm.iterate()
        except EnvError:  # an environment's own mistake, which it names
            raise
        except Exception as error:
            if not (bad := self._bad_numbers(self.algorithm.state_dict())):
                raise
            raise self._diverged(f"{bad} ({error})") from error

    def _is_due(self, every: int, before: int) -> bool:
        """Whether a multiple of ``every``, or the end, was reached in this iteration."""
        step = self.algorithm.global_step
        return step >= self.config.total_steps or (every > 0 and step // every > before // every)

    def _tell(self, event: str, *arguments: Any) -> None:
        """Tells the callbacks, which run where there is a log to read."""
        if self.is_main:
            self.callbacks.tell(event, *arguments)

    def _called_off(self) -> bool:
        """Whether a callback has stopped the run; all processes hear of it."""
        return distributed.any_of(self.callbacks.run.stopped is not None)

    def _check_losses(self, metrics: Mapping[str, float]) -> None:
        bad = (
            f"{name} is {value}"
            for name, value in metrics.items()
            if name.startswith("loss/") and not math.isfinite(value)
        )
        self._raise_if_diverged(next(bad, ""))

    def _infinite_by_design(self) -> frozenset[str]:
        """The places where own networks are infinite from the beginning: attention masks, say."""
        factories = (getattr(self.config, f"{name}_factory", None) for name in ("policy", "critic"))
        return frozenset(not_finite(self.algorithm.state_dict()) if any(factories) else ())

    def _checked_state(self) -> dict[str, Any]:
        """The algorithm's state. A finite loss may have had a gradient that was not."""
        state = self.algorithm.state_dict()
        self._raise_if_diverged(self._bad_numbers(state))
        return state

    def _bad_numbers(self, state: dict[str, Any]) -> str:
        """The first that is not finite in an algorithm's state, or nothing."""
        bad = (where for where in not_finite(state) if where not in self.infinite)
        return next((f"{where} is not finite" for where in bad), "")

    def _raise_if_diverged(self, what: str) -> None:
        """Raises on all processes if ``what`` is not empty on one of them."""
        if distributed.any_of(bool(what)):
            raise self._diverged(what or "another process has diverged")

    def _diverged(self, what: str) -> DivergedError:
        good = (
            f"the last good checkpoint is {self.last_checkpoint}"
            if self.last_checkpoint
            else "there is no checkpoint yet"
        )
        return DivergedError(
            f"step {self.algorithm.global_step}: {what}; {good}. Try a lower learning rate or "
            "stronger gradient clipping"
        )

    def _evaluate(self) -> dict[str, float]:
        """Evaluates in environments of its own and without a trace in torch's generators."""
        state = self._checked_state()
        if self.is_main:
            rng = rng_state()
            self.eval_envs.take_values(self.algorithm.envs.own_values())
            try:
                evaluation = evaluate(
                    self.eval_envs,
                    self.algorithm.eval_policy(),
                    self.config.eval_episodes,
                    self.config.seeds(),
                )
            except Exception:
                set_rng_state(rng)
                self._save_before_failing()
                raise
            set_rng_state(rng)
            self.callbacks.run.evaluation = evaluation.metrics()
            self._keep_best(state)
            self._tell("on_evaluation", self.callbacks.run.evaluation)
        return self.callbacks.run.evaluation

    def _save_before_failing(self) -> None:
        """Saves the training, which an evaluation that fails leaves as it was."""
        self._say(f"An evaluation failed, after {self.algorithm.global_step:,} steps of training.")
        if distributed.world_size() == 1:  # else the others do not know, and would not come
            self._save()
            self._say(f"The training is saved until then. Go on with: {self._resume_command()}")

    def _keep_best(self, state: Mapping[str, Any]) -> None:
        """Saves what has been learned if no evaluation before had as great a return."""
        mean = self.callbacks.run.evaluation["eval/return"]
        if mean > self.best_return:
            learned = {name: state[name] for name in getattr(self.algorithm, "learned", state)}
            with self._saving():
                self.checkpoints.save_best(self._contents([{"algorithm": learned}]))
            self.best_return = mean

    def _save(self) -> None:
        parts = distributed.gather({"algorithm": self._checked_state(), "rng": rng_state()})
        if parts is None:
            return
        with self._writing():
            self.logger.sync()
        with self._saving():
            self.last_checkpoint = self.checkpoints.save(
                self.algorithm.global_step, self._contents(parts)
            )
        self._tell("on_checkpoint", self.last_checkpoint)

    def _contents(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """A checkpoint with these parts of the processes."""
        return {
            "step": self.algorithm.global_step,
            "algorithm": self.config.algorithm,
            "config": self.config.to_dict(),
            "own_losses": self.own_losses,
            "env_kwargs": env_kwargs(self.algorithm.envs),
            "env_values": self.algorithm.envs.own_values(),
            "task_facts": dict(self.algorithm.envs.task_facts),
            "observations": places(self.algorithm.envs),
            "evaluation": self.callbacks.run.evaluation,
            **self._times(),
            "ranks": parts,
        }

    @contextmanager
    def _saving(self) -> Iterator[None]:
        """Says how the run goes on if a checkpoint cannot be written."""
        try:
            yield
        except CheckpointError as error:
            raise CheckpointError(f"{error}{self._way_on()}") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turns what the disk says into a sentence."""
        try:
            yield
        except OSError as error:
            name = error.filename or self.folder
            raise RunFolderError(
                f"{name}: cannot be written ({error.strerror or error}){self._way_on()}"
            ) from error

    # ---- words -------------------------------------------------------------------------------

    def _times(self, prefix: str = "") -> dict[str, float]:
        """The run's ``elapsed_s`` and ``processor_s`` until now."""
        processor = self.processor_before + time.process_time() - self.processor_started
        elapsed = self.elapsed_before + time.monotonic() - self.started
        return {f"{prefix}elapsed_s": elapsed, f"{prefix}processor_s": processor}

    def _say(self, text: str) -> None:
        if self.is_main and text:
            self.progress.say(text)

    def _resume_command(self) -> str:
        if self.own_losses:
            return resuming_call(type(self.algorithm).__name__, self.folder)
        return f"pyfastenv resume {self.folder}"

    def _way_on(self) -> str:
        """The end of a message when nothing more can be written."""
        begun = (self.folder / run_folder.CONFIG).is_file()
        return f"; go on with: {self._resume_command()}" if begun else ""

    def _say_how_to_resume(self) -> None:
        self._say(
            f"Stopped and saved at step {self.algorithm.global_step:,}. "
            f"Go on with: {self._resume_command()}"
        )

    @property
    def _acceleration(self) -> str | None:
        choice = getattr(self.algorithm, "acceleration", None)
        return None if choice is None else str(choice.name)

    def _result(self) -> RunResult:
        return RunResult(
            run_dir=self.folder,
            algorithm=self.config.algorithm,
            env_id=self.config.env_id,
            seed=self.config.seed,
            global_step=self.algorithm.global_step,
            **self._times(),
            evaluation=self.callbacks.run.evaluation,
            checkpoint=self.last_checkpoint,
            stopped=self.callbacks.run.stopped,
            acceleration=self._acceleration,
        )

    def _sum_up(self, result: RunResult) -> None:
        """result.json, the learning curve, the film and a line; a missing picture is no failure."""
        write_text(
            self.folder / run_folder.RESULT,
            json.dumps(asdict(result), indent=2, default=str) + "\n",
        )
        try:
            plot_run(self.folder)
        except ImportError as error:
            print(error, file=sys.stderr)
        if not self.config.quiet:
            print(_sentence(result))
        if self.config.video:
            from pyfastenv.publish.video import record_apart

            try:
                film = record_apart(self.folder, quiet=self.config.quiet)
            except VideoError as error:
                print(error, file=sys.stderr)
            else:
                if not self.config.quiet:
                    print(f"Film: {film}")


def _sentence(result: RunResult) -> str:
    evaluation = result.evaluation
    return (
        f"{result.env_id}: return {evaluation['eval/return']:,.1f} ± "
        f"{evaluation['eval/return_std']:,.1f} after {result.global_step:,} steps in "
        f"{duration(result.elapsed_s)}; {result.run_dir}"
    )
