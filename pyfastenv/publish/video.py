"""Films of trained policies.

As a program, ``python -m pyfastenv.publish.video RUN [--quiet]``, this is the film at the end of a
training (:func:`record_apart`).
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from pyfastenv.publish.outputs import check_output
from pyfastenv.runs.errors import VideoError
from pyfastenv.runs.evaluation import player
from pyfastenv.runs.folder import VIDEO, run_of
from pyfastenv.runs.progress import Progress, make_progress
from pyfastenv.runs.saved import SavedPolicy, load_policy
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.vector.arguments import integer

Frame = NDArray[np.uint8]
_SMALLEST, _TOO_LARGE = 16, 8193  # pixels, of a film's side
_WIDTH, _HEIGHT = 320, 240
_FPS = 25  # at most
_SECONDS = 20.0  # of the film at the end of a training
# half of the time that ffmpeg's own choice takes, for a file that is a sixth larger
_ENCODING = ("-preset", "veryfast")


def record(
    run: Path | str,
    output: Path | None = None,
    *,
    episodes: int = 1,
    seed: int = 0,
    width: int | None = None,
    height: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    command: Sequence[float] | None = None,
    quiet: bool = True,
    progress_to: TextIO | None = None,
) -> Path:
    """Films the policy of a run folder or checkpoint file, at most 25 pictures a second.

    The camera follows a robot that may leave, unless the run has one of its own
    (``--env.camera_name`` and the like); the floor under it has no end.

    Args:
        run: The run folder or checkpoint file.
        output: A file ending in .mp4 or .gif; by default video.mp4 in the run folder (or beside the
            checkpoint). Without ffmpeg, an mp4 becomes a GIF.
        episodes: How many episodes, one after the other.
        seed: As of :func:`pyfastenv.runs.evaluation.evaluate`, whose first episode is filmed.
        width: Of the picture [pixels]; by default 320, or the run's own (``--env.width``). Classic
            control has a size of its own.
        height: Likewise, by default 240.
        steps: Stop after so many; None: film whole episodes.
        seconds: Likewise, of the environment's time.
        command: Hold the task's command at these numbers.
        quiet: Do not show how far it is.
        progress_to: Show it there, in lines; None: on stdout, as suits it.

    Returns:
        The file written.

    Raises:
        CheckpointError: There is no readable checkpoint.
        VideoError: No picture can be drawn, or there is neither ffmpeg nor Pillow.
        ValueError: A number out of range, a size where the environment has its own, a command that
            the task does not have, or a name that ends in neither .mp4 nor .gif.
        FileNotFoundError: The output's folder does not exist.
    """
    integer("episodes", episodes, minimum=1)
    integer("seed", seed, minimum=0, below=2**63)
    sizes = {"width": width, "height": height}
    size = {
        name: integer(name, value, minimum=_SMALLEST, below=_TOO_LARGE)
        for name, value in sizes.items()
        if value is not None
    }
    most = sys.maxsize if steps is None else integer("steps", steps, minimum=1)
    if output is not None:
        check_output(output, (".mp4", ".gif"))
    saved = load_policy(run)
    if output is None:
        output = (run_of(saved.path) or saved.path.parent) / VIDEO
    looks: dict[str, Any] = {"width": _WIDTH, "height": _HEIGHT, **saved.env_kwargs, "film": True}
    if not _has_camera(saved):
        if size:
            raise ValueError(
                f"{next(iter(size))}: {saved.config.env_id} is drawn in a size of its own"
            )
        looks = saved.env_kwargs
    kwargs = {**looks, **size}
    with closing(saved.make_envs(1, "rgb_array", **kwargs)) as envs:
        if command is not None:
            _hold(envs, command)
        fps = envs.metadata["render_fps"]
        every = math.ceil(fps / _FPS)
        if seconds is not None:
            most = min(most, math.ceil(seconds * fps))
        frames = film(envs, saved.policy, episodes, seed, every=every, most=most)
        expected = min(episodes * (envs.max_episode_steps or 0), most)
        quiet = quiet or not expected
        with closing(make_progress(expected, 0, quiet=quiet, lines_to=progress_to)) as progress:
            progress.say(f"Filming up to {expected:,} steps …")
            return write_film(_shown(frames, progress, every), output, fps=fps / every)


def record_apart(run: Path, *, quiet: bool, seconds: float = _SECONDS) -> Path:
    """Films the first seconds of a trained policy, in a process of its own.

    Its priority is the training's: the user waits for it, and on a machine that others keep busy
    five seconds of work at low priority took a minute and more.

    Raises:
        VideoError: What that process says.
    """
    command = [sys.executable, "-P", "-m", __name__, str(run), str(seconds)]
    command += ["--quiet"] if quiet else []
    path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,  # whose end ends it: on Ctrl-C, and if this process is killed
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read().strip()
    if process.returncode != 0:
        raise VideoError(f"no film: {said or f'its process ended with {process.returncode}'}")
    return next(path for path in (run / VIDEO, (run / VIDEO).with_suffix(".gif")) if path.is_file())


def main(run: Path, seconds: float, *, quiet: bool) -> None:
    """Films a run; the file takes its place when it is whole. Ends with standard input."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    threading.Thread(target=_interrupt_at_end_of_input, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(prefix=".film-", dir=run) as folder:
            whole = record(run, Path(folder) / VIDEO, seconds=seconds, quiet=quiet)
            whole.replace(run / whole.name)
    except VideoError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _stop(number: int, frame: Any) -> None:
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)  # the file has yet to go
    raise KeyboardInterrupt


def _interrupt_at_end_of_input() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)


def film(
    envs: Any, policy: Any, episodes: int, seed: int, *, every: int = 1, most: int = sys.maxsize
) -> Iterator[Frame]:
    """Draws the first of ``envs`` in so many episodes.

    Args:
        envs: The environments.
        policy: What :func:`pyfastenv.rollout` takes.
        episodes: How many episodes of the first environment.
        seed: Of the evaluation whose first episode is filmed.
        every: Draw before every so many steps.
        most: Stop after so many steps.

    Raises:
        VideoError: No picture can be drawn.
    """
    envs.reset(seed=env_seeds(seed, envs.num_envs, Stream.EVALUATION_ENVS))
    play = player(envs, policy, 0, 1)
    ended = 0
    for step in range(most):
        if ended == episodes:
            return
        if step % every == 0:
            yield draw(envs, 0)
        ended += int((play().env_ids == 0).sum())


def write_film(frames: Iterator[Frame], output: Path, fps: float) -> Path:
    """Writes an mp4 by ffmpeg, or a GIF if the name says so or ffmpeg is missing.

    Raises:
        VideoError: Neither ffmpeg nor Pillow is there.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    write = _write_mp4
    if output.suffix.lower() == ".gif" or not _has_ffmpeg():
        write, output = _write_gif, output.with_suffix(".gif")
    try:
        write(frames, output, fps)
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    return output


def _shown(frames: Iterator[Frame], progress: Progress, every: int) -> Iterator[Frame]:
    for number, frame in enumerate(frames, 1):
        yield frame
        progress.update(number * every, {})


def draw(envs: Any, env_id: int) -> Frame:
    """Draws one of the environments.

    Raises:
        VideoError: No picture can be drawn.
    """
    try:
        frame: Frame = envs.render([env_id], follow=True)[0]
    except Exception as error:  # each OpenGL library, and pygame, fails in its own way
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise VideoError(f"no picture can be drawn: {reason}") from error
    return frame


def _hold(envs: Any, command: Sequence[float]) -> None:
    ranges = getattr(envs, "command_ranges", {})
    if len(ranges) != 1:
        known = ", ".join(ranges) or "none"
        raise ValueError(f"command: expected a task with one, {envs.env_id} has {known}")
    ((name, (low, _)),) = ranges.items()
    if len(command) != len(low) or not np.isfinite(command).all():
        raise ValueError(f"command: expected {len(low)} finite numbers, got {tuple(command)}")
    envs.set_command(name, command)


def _has_camera(saved: SavedPolicy) -> bool:
    with closing(saved.make_envs(1)) as envs:
        return bool(envs._core.model_path)


def _has_ffmpeg() -> bool:
    try:
        import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return False
    return True


def _write_mp4(frames: Iterator[Frame], output: Path, fps: float) -> None:
    first = next(frames)
    height, width = first.shape[:2]
    writer = import_module("imageio_ffmpeg").write_frames(
        str(output),
        (width, height),
        fps=fps,
        macro_block_size=2,
        quality=7,
        ffmpeg_log_level="error",
        output_params=[*_ENCODING],
    )
    with closing(writer):
        writer.send(None)
        writer.send(np.ascontiguousarray(first))
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))


def _write_gif(frames: Iterator[Frame], output: Path, fps: float) -> None:
    try:
        image = import_module("PIL.Image")
    except ImportError as error:
        raise VideoError(
            "films need ffmpeg (pip install imageio-ffmpeg) or, for GIFs, Pillow"
        ) from error
    pictures = map(image.fromarray, frames)
    first = next(pictures)
    first.save(output, save_all=True, append_images=pictures, duration=1000 / fps, loop=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), quiet="--quiet" in sys.argv[3:])
