"""The parts that all algorithms share, driven by a small algorithm that is not one."""

import dataclasses
import gzip
import itertools
import json
import math
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forks import forking, two_processes
from guess import Config, Guess, Policy, batch, die, stopping, train
from trainings import assert_equal, assert_same_run, final_state, untimed_rows

import pyfastenv
from pyfastenv import cli
from pyfastenv.algorithms import ppo
from pyfastenv.nn.spans import span
from pyfastenv.publish import plots, video
from pyfastenv.runs import checkpoint, registry, saved
from pyfastenv.runs.errors import CheckpointError, DivergedError, RunFolderError, VideoError
from pyfastenv.runs.evaluation import evaluate
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.progress import BarProgress, LineProgress, duration
from pyfastenv.runs.seeds import Stream, env_seeds
from pyfastenv.sampling import rollouts
from pyfastenv.training import busy, distributed, profiling
from pyfastenv.training.loop import run

pytestmark = pytest.mark.usefixtures("guessed_rollouts")


@pytest.fixture
def guess_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The algorithm under a name that the command line finds."""
    module = types.ModuleType("guess_module", "A guess.")
    module.Config = Config  # type: ignore[attr-defined]
    module.train = lambda config: run(Guess, config)  # type: ignore[attr-defined]
    module.load_policy = lambda _, state: Policy(state["network"])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "guess_module", module)
    monkeypatch.setitem(registry.ALGORITHMS, "guess", "guess_module")


# ---- a run ---------------------------------------------------------------------------------------


def test_a_run_leaves_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = train(tmp_path / "run")
    assert result.global_step == 480
    rows = read_metrics(tmp_path / "run")
    assert [row["step"] for row in rows] == list(range(24, 481, 24))
    assert [row["step"] for row in rows if "eval/return" in row] == [120, 240, 360, 480]
    assert result.evaluation["eval/return"] == rows[-1]["eval/return"]
    names = [path.name for path in sorted((tmp_path / "run" / "checkpoints").glob("step_*"))]
    assert names == [f"step_{step:012d}.pt" for step in (240, 360, 480)]
    assert result.checkpoint == tmp_path / "run" / "checkpoints" / names[-1]
    stored = json.loads((tmp_path / "run" / "result.json").read_text())
    assert stored["global_step"] == 480 and stored["evaluation"] == result.evaluation
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["algorithm"] == "guess" and config["config"]["hidden"] == [4, 2]
    assert (tmp_path / "run" / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr() == ("", "")


def test_without_intervals_it_evaluates_and_saves_at_the_end(tmp_path: Path) -> None:
    train(tmp_path / "run", eval_every=0, checkpoint_every=0)
    assert [r["step"] for r in read_metrics(tmp_path / "run") if "eval/return" in r] == [480]
    assert len(list((tmp_path / "run" / "checkpoints").glob("step_*"))) == 1


def test_runs_are_named_and_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [run(Guess, Config(total_steps=24, seed=7)).run_dir for _ in range(2)]
    assert folders[0] != folders[1]
    assert all(str(folder).startswith("runs/guess-CartPole-v1-7-") for folder in folders)
    with pytest.raises(
        ValueError, match=f"run_dir: {folders[0]} holds a run; go on with pyfastenv resume"
    ):
        train(folders[0])


def test_neither_evaluations_nor_checkpoints_nor_profiles_change_the_training(
    tmp_path: Path,
) -> None:
    train(tmp_path / "often", total_steps=240, eval_every=24, checkpoint_every=24, profile=True)
    train(tmp_path / "never", total_steps=240, eval_every=0, checkpoint_every=0)
    assert_equal(final_state(tmp_path / "often"), final_state(tmp_path / "never"))


# ---- stopping and going on -----------------------------------------------------------------------


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_resuming_changes_nothing(
    tmp_path: Path, whole_guess: Path, capfd: pytest.CaptureFixture[str], number: int, status: int
) -> None:
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as raised:
        train(tmp_path / "cut", stopping(168, lambda: os.kill(os.getpid(), number)), quiet=False)
    assert raised.value.code == status
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    out, err = capfd.readouterr()
    assert "once more to stop at once" in err
    assert f"saved at step 168. Go on with: pyfastenv resume {tmp_path / 'cut'}" in out
    assert read_metrics(tmp_path / "cut")[-1]["step"] == 168
    assert not (tmp_path / "cut" / "result.json").exists()

    run(Guess, Config(resume=tmp_path / "cut"))
    assert_same_run(tmp_path / "cut", whole_guess)


def test_what_ignores_ctrl_c_says_how_it_is_stopped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    end = stopping(168, lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        with pytest.raises(SystemExit) as raised:
            train(tmp_path / "run", end, quiet=False)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert raised.value.code == 143
    out = capfd.readouterr().out
    assert f"SIGINT is ignored; to stop and save: kill {os.getpid()}\n" in out


def test_the_second_signal_interrupts(tmp_path: Path) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", stopping(168, twice))
    assert checkpoint.step_of(checkpoint.resolve(tmp_path / "run")) == 120


def test_a_signal_in_the_last_iteration_comes_too_late(tmp_path: Path) -> None:
    result = train(tmp_path / "run", stopping(480, lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert result.global_step == 480


def test_going_on_from_an_earlier_checkpoint_drops_the_later_ones(tmp_path: Path) -> None:
    train(tmp_path / "run")
    earlier = tmp_path / "run" / "checkpoints" / "step_000000000240.pt"
    with pytest.raises(RuntimeError, match="killed"):
        run(stopping(264, die), Config(resume=earlier))
    assert checkpoint.resolve(tmp_path / "run") == earlier
    assert read_metrics(tmp_path / "run")[-1]["step"] == 240


def test_a_folder_called_like_gloos_words_is_no_lost_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    with pytest.raises(RunFolderError), distributed.lost_processes_told():
        raise RunFolderError("/data/gloo/run: cannot be written to")


def test_what_need_not_end_is_refused_before_a_step(tmp_path: Path) -> None:
    class Endless(Guess):
        def __init__(self, config: Config):
            super().__init__(config)
            self.envs = pyfastenv.make_vec("CartPole-v1", 2, max_episode_steps=0)

        def iterate(self) -> dict[str, float]:
            raise AssertionError

    with pytest.raises(ValueError, match=r"CartPole-v1 has no time limit.*--env.max_episode_steps"):
        train(tmp_path / "run", Endless)
    assert not (tmp_path / "run").exists()


def test_a_finished_run_stays_finished_or_becomes_longer(tmp_path: Path) -> None:
    train(tmp_path / "long", total_steps=480)
    short = train(tmp_path / "short", total_steps=240)
    again = run(Guess, Config(resume=tmp_path / "short", total_steps=240))
    assert again.evaluation == short.evaluation
    before = checkpoint.load(again.checkpoint)
    assert again.elapsed_s >= before["elapsed_s"]
    assert again.processor_s >= before["processor_s"] > 0.0
    assert json.loads((tmp_path / "short" / "result.json").read_text())["processor_s"] > 0.0
    run(Guess, Config(resume=tmp_path / "short", total_steps=480))
    assert_same_run(tmp_path / "short", tmp_path / "long")


def test_other_options_do_not_resume(tmp_path: Path) -> None:
    train(tmp_path / "run")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"learning_rate was 0\.01, is 0\.5; seed was 1, is 2$"):
        run(Guess, Config(resume=tmp_path / "run", seed=2, learning_rate=0.5))

    class Other(Config):
        algorithm = "other"

    with pytest.raises(ValueError, match="the run was made by guess, this is other"):
        run(Guess, Other(resume=tmp_path / "run"))
    with pytest.raises(CheckpointError, match="no such run folder or checkpoint"):
        run(Guess, Config(resume=tmp_path / "nowhere"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_divergence_is_not_saved(tmp_path: Path, bad: float) -> None:
    with pytest.raises(DivergedError) as raised:
        train(tmp_path / "run", stopping(240, lambda: {"loss/guess": bad}))
    good = tmp_path / "run" / "checkpoints" / "step_000000000120.pt"
    assert str(raised.value) == (
        f"step 240: loss/guess is {bad}; the last good checkpoint is {good}. Try a lower learning "
        "rate or stronger gradient clipping"
    )
    assert checkpoint.resolve(tmp_path / "run") == good
    assert read_metrics(tmp_path / "run")[-1]["step"] == 216


@pytest.mark.parametrize("options", [{"eval_every": 0}, {"checkpoint_every": 24}])
def test_nor_is_one_that_the_loss_does_not_show(tmp_path: Path, options: dict[str, Any]) -> None:
    class Broken(Guess):
        def iterate(self) -> dict[str, float]:
            metrics = super().iterate()
            if self.global_step == 240:
                self.network.weight.data[1, 2] = math.inf
            return metrics

    with pytest.raises(
        DivergedError,
        match=r"step 240: state\['network'\]\['weight'\] is not finite; the last good",
    ):
        train(tmp_path / "run", Broken, **options)
    assert checkpoint.step_of(checkpoint.resolve(tmp_path / "run")) < 240


def test_other_metrics_need_not_be_finite(tmp_path: Path) -> None:
    train(tmp_path / "run", stopping(240, lambda: {"train/explained_variance": math.nan}))


# ---- configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cuda", "sample-cpu"])
def test_cuda_that_is_not_there(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"'{device}' needs CUDA, and PyTorch finds none"):
        Config(device=device).check()


def test_activities_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="profile_activities: 'cuda' needs CUDA"):
        Config(profile_activities=("cpu", "cuda")).check()


def test_folders_are_whatever_names_a_path() -> None:
    class Place:
        def __fspath__(self) -> str:
            return "a/run"

    for given in ("a/run", Path("a/run"), Place()):
        assert Config(run_dir=given).run_dir == Path("a/run")  # type: ignore[arg-type]
    for name in ("run_dir", "resume", "from_run"):
        with pytest.raises(ValueError, match=f"{name}: expected a path, got an empty one"):
            Config(**{name: ""})  # type: ignore[arg-type]


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "3")
    cpu, gpu = torch.device("cpu"), torch.device("cuda", 3)
    configs = [Config(device=device) for device in ("cpu", "cuda", "sample-cpu")]
    assert [config.learn_device for config in configs] == [cpu, gpu, gpu]


def test_configurations_come_back_from_json() -> None:
    config = Config(resume=Path("a/b"), hidden=(1, 2, 3))
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    with pytest.raises(ValueError, match="guess has no option nonsense"):
        Config.from_dict({"nonsense": 1})


# ---- evaluation ----------------------------------------------------------------------------------


def evaluation_seeds(seed: int, num_envs: int) -> list[int]:
    return env_seeds(seed, num_envs, Stream.EVALUATION_ENVS)


class ScriptedEnvs:
    """Environments whose episodes' lengths are given; an episode's return is its length."""

    autoreset_mode = pyfastenv.vector.vector_env.AutoresetMode.SAME_STEP
    max_episode_steps: int | None = 10
    pixels = None

    def __init__(self, lengths: list[list[int]]):
        self.num_envs = len(lengths)
        self.ends = [np.cumsum(mine) for mine in lengths]
        self.now = 0

    def reset(self, seed: list[int]) -> None:
        self.seed, self.now = seed, 0

    def rollout(self, policy: Any, num_steps: int, *, policy_id: Any = None) -> Any:
        ended = [
            (int(end) - self.now, i, float(length), int(length))
            for i, ends in enumerate(self.ends)
            for end, length in zip(ends, np.diff(ends, prepend=0), strict=True)
            if self.now < end <= self.now + num_steps
        ]
        self.now += num_steps
        return batch(ended)


def test_evaluation_favours_no_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyfastenv.runs.evaluation.rollout", ScriptedEnvs.rollout)
    envs: Any = ScriptedEnvs([[1] * 30, [10] * 3, [2] * 15, [9] * 3])
    result = evaluate(envs, None, 8, seed=5)
    assert envs.seed == evaluation_seeds(5, 4)
    assert sorted(result.returns.tolist()) == [1, 1, 2, 2, 9, 9, 10, 10]
    assert result.lengths.dtype == torch.int64 and result.returns.dtype == torch.float64
    # 6 of 8: what is left out depends on the environment's number, not on the length
    assert evaluate(envs, None, 6, seed=5).lengths.tolist() == [1, 10, 2, 9, 1, 10]
    metrics = evaluate(envs, None, 4, seed=5).metrics()
    assert metrics["eval/return"] == 5.5 and metrics["eval/return_max"] == 10
    assert metrics["eval/return_std"] == pytest.approx(np.std([1, 2, 9, 10], ddof=1))
    assert evaluate(envs, None, 1, seed=5).metrics()["eval/return_std"] == 0


def test_every_policy_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """One only goes left, the other leans against the pole: they fall at other times."""
    monkeypatch.setattr("pyfastenv.runs.evaluation.rollout", rollouts.rollout)
    weights = np.zeros((2, 4, 2), np.float32)
    weights[1, 2] = [5.0, -5.0]  # the second one leans against the pole's angle
    both = rollouts.PolicySpec(
        weights=[weights],
        biases=[np.array([[1, 0], [0, 0]], np.float32)],
        distribution="categorical",
        greedy=True,
    )
    envs = pyfastenv.make_vec("CartPole-v1", 9, autoreset_mode="SameStep")
    together = evaluate(envs, both, 9, seed=0)
    singles = []
    for k in range(2):
        part = [np.ascontiguousarray(array[k : k + 1]) for array in (weights, both.biases[0])]
        alone = dataclasses.replace(both, weights=[part[0]], biases=[part[1]])
        singles.append(evaluate(envs, alone, 9, seed=0))
    envs.close()
    assert together.returns.tolist() == [r for one in singles for r in one.returns.tolist()]
    assert singles[0].returns.tolist() != singles[1].returns.tolist()
    metrics = together.metrics()
    for k, single in enumerate(singles):
        assert metrics[f"eval/return_{k}"] == single.metrics()["eval/return"]
        assert "eval/return_0" not in single.metrics()


def test_evaluation_is_that_of_stepping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carts that only go left lose their poles after some while, each after its own."""
    monkeypatch.setattr("pyfastenv.runs.evaluation.rollout", rollouts.rollout)
    left = rollouts.PolicySpec(
        weights=[np.zeros((1, 4, 2), np.float32)],
        biases=[np.array([[1, 0]], np.float32)],
        distribution="categorical",
        greedy=True,
    )
    envs = pyfastenv.make_vec("CartPole-v1", 3, autoreset_mode="SameStep", num_threads=2)
    expected: list[list[int]] = [[], [], []]
    envs.reset(seed=evaluation_seeds(11, 3))
    lengths = np.zeros(3, int)
    while min(map(len, expected)) < 3:
        _, _, terminations, *_ = envs.step(np.zeros(3, int))
        lengths += 1
        for i in np.flatnonzero(terminations):
            expected[i].append(int(lengths[i]))
            lengths[i] = 0
    counted = [expected[i][n] for n in range(3) for i in range(3)][:7]
    assert len(set(counted)) > 1
    for _ in range(2):  # the second time, from within episodes
        result = evaluate(envs, left, 7, seed=11)
        assert result.lengths.tolist() == counted and result.returns.tolist() == counted


def test_evaluation_says_what_it_needs() -> None:
    with pytest.raises(ValueError, match="expected autoreset_mode SameStep, got NextStep"):
        evaluate(pyfastenv.make_vec("CartPole-v1", 2), None, 2, seed=0)
    endless = pyfastenv.make_vec("CartPole-v1", 2, autoreset_mode="SameStep", max_episode_steps=0)
    with pytest.raises(ValueError, match="without max_episode_steps"):
        evaluate(endless, None, 2, seed=0)
    with pytest.raises(ValueError, match="num_episodes: expected at least 1, got 0"):
        evaluate(endless, None, 0, seed=0)


# ---- what one sees -------------------------------------------------------------------------------


def test_lines_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([100.0, 102.0, 105.0, 106.0, 120.0])
    progress = LineProgress(1_000_000, 200_000, interval=5.0, clock=lambda: next(clock))
    for step in (220_000, 250_000, 260_000, 1_000_000):
        progress.update(step, {"train/return": 12.34} if step < 250_000 else {"eval/return": 5.0})
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "250,000 steps (25%)  10,000 steps/s  return 12.3  evaluation 5.0  1 min 15 s left",
        "1,000,000 steps (100%)  40,000 steps/s  return 12.3  evaluation 5.0  0 s left",
    ]


def test_bar() -> None:
    from rich.console import Console

    console = Console(record=True, force_terminal=True, width=120, file=open(os.devnull, "w"))  # noqa: SIM115
    progress = BarProgress(1000, 0, console)
    progress.update(400, {"train/return": 12.34})
    progress.say("[a word]")
    progress.close()
    text = console.export_text()
    assert "400 of 1,000 steps" in text and "return 12.3" in text and "[a word]" in text
    console.file.close()


def test_durations() -> None:
    assert [duration(s) for s in (12.4, 185, 3720)] == ["12 s", "3 min 05 s", "1 h 02 min"]


# ---- pictures ------------------------------------------------------------------------------------


def test_curves(tmp_path: Path) -> None:
    from matplotlib.image import imread

    folders = [train(tmp_path / str(seed), seed=seed).run_dir for seed in (1, 2)]
    one = imread(plots.plot_run(folders[0], tmp_path / "one.png"))
    many = imread(plots.plot_runs(folders, tmp_path / "many.png"))
    assert one.shape == many.shape and one.std() > 0 and not np.array_equal(one, many)
    with pytest.raises(ValueError, match=r"labels: expected 2, got 1"):
        plots.plot_runs(folders, tmp_path / "x.png", ["a"])
    with pytest.raises(
        FileNotFoundError, match=r"nowhere: not a run folder: it has no config.json"
    ):
        plots.plot_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("threads", "operation_s", "told"), [(2, 1e-5, False), (2, 1e-2, True), (1, 1e-2, False)]
)
def test_threads_that_wait_for_each_other_are_told_of(
    threads: int, operation_s: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, operation_s)
    monkeypatch.setattr(busy, "time", types.SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    note = busy.busy_note()
    assert ("2 threads wait for each other: with --torch-threads 1" in note) == told
    assert told or note == ""


def test_labels_tell_runs_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"a": 0.1, "b": 0.2, "c": 0.2}
    folders = [
        train(tmp_path / name, total_steps=24, learning_rate=rate, quiet=name != "c").run_dir
        for name, rate in rates.items()
    ]
    shown: list[str] = []
    monkeypatch.setattr(plots, "_label_ends", lambda _, *ends: shown.extend(e[1] for e in ends))
    plots.plot_runs(folders[:2], tmp_path / "two.png")
    assert shown == ["guess, seed 1, learning_rate=0.1", "guess, seed 1, learning_rate=0.2"]
    shown.clear()
    plots.plot_runs(folders[1:], tmp_path / "alike.png")
    assert shown == [f"guess, seed 1, {folder}" for folder in folders[1:]]


def test_labels_do_not_cover_each_other() -> None:
    figure, axes = plots.make_axes("title")
    axes.set_ylim(0, 1)
    plots.label_ends(axes, [(0.5, "a", "k"), (0.5, "b\nc", "k")])
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 2 and not boxes[0].overlaps(boxes[1])


FRAMES = [np.full((64, 96, 3), value, np.uint8) for value in range(0, 250, 10)]


def test_film_by_ffmpeg(tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = video.write_film(iter(FRAMES), tmp_path / "new" / "film.mp4", fps=20)
    assert path.suffix == ".mp4"
    assert ffmpeg.count_frames_and_secs(str(path)) == (25, 1.25)


def test_film_without_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image")
    missing: Any = None
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", missing)
    path = video.write_film(iter(FRAMES), tmp_path / "film.mp4", fps=25)
    assert path == tmp_path / "film.gif"
    with image.open(path) as film:
        assert film.n_frames == 25 and film.info["duration"] == 40 and film.size == (96, 64)
    monkeypatch.setitem(sys.modules, "PIL.Image", missing)
    with pytest.raises(VideoError, match=r"pip install imageio-ffmpeg.*Pillow"):
        video.write_film(iter(FRAMES), tmp_path / "film.mp4", fps=50)


class FilmedEnvs:
    """Episodes of three steps; pictures that count."""

    num_envs = 1

    def __init__(self) -> None:
        self.steps = 0

    def reset(self, seed: list[int]) -> None:
        assert seed == evaluation_seeds(0, 1)
        self.steps = 0

    def render(self, env_ids: list[int], *, follow: bool) -> Any:
        assert follow and env_ids == [0]
        return (np.full((2, 2, 3), self.steps, np.uint8),)

    def rollout(self, policy: Any, num_steps: int, *, policy_id: Any = None) -> Any:
        assert num_steps == 1
        self.steps += 1
        return batch([(0, 0, 1.0, 3)] if self.steps % 3 == 0 else [])


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"episodes": 2}, [0, 1, 2, 3, 4, 5]),  # whole ones
        ({"episodes": 9, "every": 4, "most": 10}, [0, 4, 8]),
    ],
)
def test_films(options: dict[str, int], shown: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyfastenv.runs.evaluation.rollout", FilmedEnvs.rollout)
    frames = video.film(FilmedEnvs(), None, seed=0, **options)
    assert [int(frame[0, 0, 0]) for frame in frames] == shown


def test_what_cannot_be_drawn_has_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no EGL\nat all")

    monkeypatch.setattr(FilmedEnvs, "render", fail)
    frames = video.film(FilmedEnvs(), None, episodes=1, seed=0)
    with pytest.raises(VideoError, match=r"^no picture can be drawn: no EGL$"):
        video.write_film(frames, tmp_path / "film.mp4", fps=20)
    assert list(tmp_path.iterdir()) == []


# ---- profiles ------------------------------------------------------------------------------------


def test_a_profile_names_its_ranges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path / "run", total_steps=240, profile=True, quiet=False)
    events = profiling.read_events(tmp_path / "run" / profiling.TRACE)
    names = [event.get("name") for event in events]
    assert names.count("iteration") == 3 and names.count("env") == 24
    # rollouts of evaluations are not part of an iteration
    assert names.count("aten::rand") <= 3 * 8 * 2 * 2
    table = (tmp_path / "run" / "profile.txt").read_text()
    assert table.startswith("3 iterations of ")
    assert all(f"\n{name} " in table for name in ("env", "forward", "backward", "optimiser"))
    assert table in capsys.readouterr().out
    assert "the whole run" in profiling.report(tmp_path / "run")


def test_a_range_is_told_without_those_in_it(tmp_path: Path) -> None:
    def event(name: str, start: float, duration: float, **more: Any) -> dict[str, Any]:
        shared = {"cat": "user_annotation", "tid": 1}
        return {"name": name, "ts": start, "dur": duration, **shared, **more}

    events = [
        event("iteration", 0.0, 1_000.0),
        event("update", 100.0, 500.0),
        event("forward", 150.0, 200.0),
        event("forward", 160.0, 50.0),  # nested in one of the same name: one call
        event("forward", 400.0, 100.0),
        event("env", 700.0, 200.0),
        event("forward", 100.0, 500.0, tid=2),  # another thread's
        event("forward", 155.0, 90.0, cat="gpu_user_annotation"),
    ]
    with gzip.open(tmp_path / "trace.json.gz", "wt") as file:
        json.dump({"traceEvents": events}, file)
    table = profiling.ranges_table(profiling.read_ranges(tmp_path / "trace.json.gz"))
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines()[3:]}
    assert rows["update"] == ["20.0%", "0.20", "1"]
    assert rows["forward"] == ["30.0%", "0.30", "2", "0.09"]
    assert rows["env"] == ["20.0%", "0.20", "1"]
    assert table.splitlines()[-1].split() == ["the", "rest", "30.0%", "0.30"]
    (tmp_path / "trace.json.gz").write_text("{}")
    with pytest.raises(ValueError, match=r"trace.json.gz: not a trace"):
        profiling.read_ranges(tmp_path / "trace.json.gz")


def test_a_window_by_steps_of_some_activities_and_with_memory(tmp_path: Path) -> None:
    options = {"profile_steps": "100:150", "profile_activities": ("cpu",), "profile_memory": True}
    train(tmp_path / "run", total_steps=240, **options)
    # 24 steps an iteration: those that begin at 120 and 144
    assert (tmp_path / "run" / "profile.txt").read_text().startswith("2 iterations of ")
    assert "CPU Mem" in (tmp_path / "run" / "profile.txt").read_text()
    assert (tmp_path / "run" / "memory.png").stat().st_size > 5_000
    for given in ("9", "5:5", "a:b", "7:3"):
        with pytest.raises(ValueError, match=r"profile_steps: expected A:B with steps A < B"):
            train(tmp_path / "no", profile_steps=given)
    with pytest.raises(ValueError, match="profile_steps: the run ends at step 480, before 480"):
        train(tmp_path / "no", profile_steps="480:500")


def test_a_short_run_is_profiled_as_far_as_it_goes(tmp_path: Path) -> None:
    train(tmp_path / "run", total_steps=72, profile=True)
    assert (tmp_path / "run" / "profile.txt").read_text().startswith("1 iterations of ")
    train(tmp_path / "shorter", total_steps=48, profile=True)
    assert not (tmp_path / "shorter" / "profile.txt").exists()


def test_ranges_are_nothing_without_a_profile() -> None:
    assert span("env") is span("forward")


# ---- several processes ---------------------------------------------------------------------------


def test_one_process_needs_nobody() -> None:
    assert not distributed.init()
    tensor = torch.ones(3)
    assert (distributed.rank(), distributed.world_size()) == (0, 1)
    assert distributed.mean(tensor) is tensor
    assert distributed.gather("x") == ["x"] and distributed.broadcast_object("x") == "x"
    assert distributed.any_of(True) and not distributed.any_of(False)
    network = torch.nn.Linear(2, 1)
    distributed.average_gradients(network.parameters())
    distributed.broadcast(network.state_dict().values())
    assert network.weight.grad is None


class Part(Guess):
    """One process's part of a training; one of them alone is told to stop."""

    stop_at = 0

    def __init__(self, config: Config):
        super().__init__(config)
        self.obs, _ = self.envs.reset(seed=config.seed + 100 * distributed.rank())

    def iterate(self) -> dict[str, float]:
        metrics = super().iterate()
        distributed.average_gradients(self.network.parameters())
        if distributed.rank() == 1 and self.global_step == self.stop_at:
            os.kill(os.getpid(), signal.SIGINT)
        return metrics


def check_what_they_exchange(rank: int) -> None:
    assert distributed.rank() == rank and distributed.world_size() == 2
    network = torch.nn.Linear(2, 1)
    network.weight.grad = torch.full((1, 2), float(rank))
    if rank == 0:
        network.bias.grad = torch.ones(1)
    distributed.average_gradients(network.parameters())
    assert network.weight.grad.tolist() == [[0.5, 0.5]] and network.bias.grad.tolist() == [0.5]
    assert distributed.mean(torch.tensor([rank, 4.0])).tolist() == [0.5, 4.0]
    assert distributed.gather(rank) == ([0, 1] if rank == 0 else None)
    assert distributed.broadcast_object(rank) == 0
    with torch.no_grad():
        network.weight.fill_(rank)
    distributed.broadcast([network.weight])
    assert not network.weight.any()
    assert distributed.any_of(rank == 1) and not distributed.any_of(False)
    generator = torch.Generator().manual_seed(0)
    samples = 1e4 + torch.randn(50, 3, generator=generator, dtype=torch.float64)
    mine = samples[:10] if rank == 0 else samples[10:]
    count, mean, m2 = distributed.merge_moments(
        torch.tensor(len(mine)), mean=mine.mean(0), m2=(mine - mine.mean(0)).square().sum(0)
    )
    assert count == 50
    torch.testing.assert_close(mean, samples.mean(0))
    torch.testing.assert_close(m2 / 50, samples.var(0, correction=0))
    std, mean = torch.std_mean(samples)  # recurrent PPO's advantages have two dimensions
    torch.testing.assert_close(distributed.standardized(mine), (mine - mean) / std)


@forking
@pytest.mark.parametrize("lost", [0, 1])
def test_who_has_lost_another_process_says_so(lost: int, tmp_path: Path) -> None:
    plain = ppo.PPO.iterate

    def train_until_killed(rank: int) -> int:
        def doomed(algorithm: Any) -> Any:
            if rank == lost:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(algorithm)

        ppo.PPO.iterate = doomed  # type: ignore[method-assign]  # in this fork alone
        options = ["--env-id", "InvertedPendulum-v5", "--num-envs", "2", "--num-steps", "32"]
        options += ["--minibatch-size", "32", "--quiet", "--run-dir", str(tmp_path / "run")]
        return cli.main(["train", "ppo", *options])

    statuses, errors = two_processes(train_until_killed, tmp_path)
    left = 1 - lost
    assert statuses[lost] == -signal.SIGKILL and statuses[left] == 1, errors
    said = [line for line in errors[left].splitlines() if line.startswith("pyfastenv: ")]
    assert said == [errors[left].strip()]
    assert f"process {left} of 2: another process of this training is gone" in said[0]


@forking
def test_two_processes(tmp_path: Path) -> None:
    def run_twice(rank: int) -> None:
        distributed.init()
        check_what_they_exchange(rank)
        # one process alone has a callback
        callbacks: list[Any] = [lambda run, metrics: None] if rank == 0 else []
        run(Part, Config(run_dir=tmp_path / "whole"), callbacks)
        Part.stop_at = 168
        with pytest.raises(SystemExit) as stopped:
            run(Part, Config(run_dir=tmp_path / "cut"), callbacks)
        assert stopped.value.code == 130
        Part.stop_at = 0
        run(Part, Config(resume=tmp_path / "cut"))
        distributed.shut_down()

    statuses, errors = two_processes(run_twice, tmp_path)
    assert statuses == [0, 0], "\n".join(errors)
    states = [
        checkpoint.load(checkpoint.resolve(tmp_path / name))["ranks"] for name in ("whole", "cut")
    ]
    assert len(states[0]) == 2
    assert_equal(states[0], states[1])
    assert not torch.equal(states[0][0]["algorithm"]["envs"], states[0][1]["algorithm"]["envs"])
    assert untimed_rows(tmp_path / "whole") == untimed_rows(tmp_path / "cut")
    with pytest.raises(ValueError, match="the run had 2 processes, this has 1"):
        run(Guess, Config(resume=tmp_path / "cut"))


# ---- the command line ----------------------------------------------------------------------------


def test_environments_are_listed_with_their_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["envs"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    built_in = pyfastenv.env_ids()
    assert [env_id for env_id, _ in lines[: len(built_in)]] == built_in
    engines = dict(lines)
    assert engines["metaworld/reach-v3"].startswith("own task, pyfastenv.suites.metaworld.reach:")
    assert engines["CartPole-v1"] == "native"
    assert engines["Pusher-v5"] == "lanes"


@pytest.mark.usefixtures("guess_module")
def test_from_training_to_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    options = ["--run-dir", folder, "--total-steps", "240", "--no-quiet", "--seed", "3"]
    assert cli.main(["train", "guess", *options]) == 0
    out = capsys.readouterr().out
    assert "CartPole-v1: return " in out and "after 240 steps" in out
    assert cli.main(["evaluate", folder, "--episodes", "3"]) == 0
    assert "3 episodes" in capsys.readouterr().out
    capsys.readouterr()
    assert cli.main(["resume", folder, "--total-steps", "360"]) == 0
    assert "after 360 steps" in capsys.readouterr().out
    assert read_metrics(Path(folder))[-1]["step"] == 360
    assert cli.main(["resume", folder, "--total-steps", "0"]) == 1
    assert "total_steps: expected at least 1, got 0" in capsys.readouterr().err
    assert saved.load_policy(folder).step == 360  # a string will do
    assert saved.resumed_config(folder).total_steps == 360
    assert cli.main(["resume", folder, "--anneal-steps", "400"]) == 1
    assert "anneal_steps: guess has no such option" in capsys.readouterr().err
    assert cli.main(["plot", folder, folder, "--output", str(tmp_path / "curves.png")]) == 0
    assert capsys.readouterr().out.endswith(f"{tmp_path / 'curves.png'}\n")


def test_our_own_mistakes_are_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyfastenv, "env_ids", die)
    with pytest.raises(RuntimeError, match="killed"):
        cli.main(["envs"])
