"""Films of trained policies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastenv.training.errors import VideoError
from pyfastenv.training.evaluation import make_eval_envs, player
from pyfastenv.training.outputs import check_output
from pyfastenv.training.progress import Progress, make_progress
from pyfastenv.training.run_folder import VIDEO, run_of
from pyfastenv.training.saved import SavedPolicy, load_policy
from pyfastenv.training.seeds import Stream, env_seeds
from pyfastenv.vector.arguments import integer

Frame = NDArray[np.uint8]
_SMALLEST, _TOO_LARGE = 16, 8193  # pixels, of a film's side


def record(
    run: Path | str,
    output: Path | None = None,
    *,
    episodes: int = 1,
    seed: int = 0,
    width: int | None = None,
    height: int | None = None,
    quiet: bool = True,
) -> Path:
    """Films the policy of a run folder or checkpoint file.

    The camera follows a robot that may leave, unless the run has one of its own
    (``--env.camera_name`` and the like).

    Args:
        run: The run folder or checkpoint file.
        output: A file ending in .mp4 or .gif; by default video.mp4 in the run folder (or beside the
            checkpoint). Without ffmpeg, an mp4 becomes a GIF.
        episodes: How many episodes, one after the other.
        seed: As of :func:`pyfastenv.training.evaluation.evaluate`, whose first episode is filmed.
        width: Of the picture [pixels]; by default 480. Classic control has a size of its own.
        height: As width.
        quiet: Do not show how far it is.

    Returns:
        The file written.

    Raises:
        CheckpointError: There is no readable checkpoint.
        VideoError: No OpenGL, or neither ffmpeg nor Pillow.
        ValueError: A number out of range, a size where the environment has its own, or a name that
            ends in neither .mp4 nor .gif.
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
    if output is not None:
        check_output(output, (".mp4", ".gif"))
    saved = load_policy(run)
    if output is None:
        output = (run_of(saved.path) or saved.path.parent) / VIDEO
    if size and not _has_camera(saved):
        raise ValueError(f"{next(iter(size))}: {saved.config.env_id} is drawn in a size of its own")
    kwargs = {**saved.env_kwargs, **size}
    with closing(make_eval_envs(saved.config.env_id, kwargs, 1, "rgb_array")) as envs:
        frames = film(envs, saved.policy, episodes, seed)
        steps = episodes * (envs.max_episode_steps or 0)
        with closing(make_progress(steps, 0, quiet=quiet or not steps)) as progress:
            progress.say(f"Filming up to {steps:,} steps …")
            return write_film(_shown(frames, progress), output, fps=envs.metadata["render_fps"])


def film(envs: Any, policy: Any, episodes: int, seed: int) -> Iterator[Frame]:
    """Draws the first of ``envs`` before every step of so many episodes.

    Raises:
        VideoError: No OpenGL.
    """
    envs.reset(seed=env_seeds(seed, envs.num_envs, Stream.EVALUATION_ENVS))
    play = player(envs, policy, 0, 1)
    ended = 0
    while ended < episodes:
        yield _draw(envs)
        ended += int((play().env_ids == 0).sum())


def write_film(frames: Iterator[Frame], output: Path, fps: int) -> Path:
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


def _shown(frames: Iterator[Frame], progress: Progress) -> Iterator[Frame]:
    for step, frame in enumerate(frames, 1):
        yield frame
        progress.update(step, {})


def _draw(envs: Any) -> Frame:
    try:
        frame: Frame = envs.render(follow=True)[0]
    except Exception as error:  # each OpenGL library fails in its own way
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise VideoError(
            f"no picture can be drawn ({reason}): this needs OpenGL; without a display, install "
            "libegl1 and set MUJOCO_GL=egl"
        ) from error
    return frame


def _has_camera(saved: SavedPolicy) -> bool:
    with closing(make_eval_envs(saved.config.env_id, saved.env_kwargs, 1)) as envs:
        return bool(envs._core.model_path)


def _has_ffmpeg() -> bool:
    try:
        import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return False
    return True


def _write_mp4(frames: Iterator[Frame], output: Path, fps: int) -> None:
    first = next(frames)
    height, width = first.shape[:2]
    writer = import_module("imageio_ffmpeg").write_frames(
        str(output),
        (width, height),
        fps=fps,
        macro_block_size=2,
        quality=7,
        ffmpeg_log_level="error",
    )
    with closing(writer):
        writer.send(None)
        writer.send(np.ascontiguousarray(first))
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))


def _write_gif(frames: Iterator[Frame], output: Path, fps: int) -> None:
    """At most 25 pictures a second: a GIF's clock has hundredths."""
    try:
        image = import_module("PIL.Image")
    except ImportError as error:
        raise VideoError(
            "films need ffmpeg (pip install imageio-ffmpeg) or, for GIFs, Pillow"
        ) from error
    every = max(1, round(fps / 25))
    pictures = (image.fromarray(frame) for i, frame in enumerate(frames) if i % every == 0)
    first = next(pictures)
    first.save(output, save_all=True, append_images=pictures, duration=1000 * every / fps, loop=0)
