"""docs/results: trainings that may be stopped at any moment, curves of each seed, their pages."""

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench" / "python"
if not (ROOT / "bench" / "results").is_dir():
    pytest.skip("the measurements are not in a source distribution", allow_module_level=True)
sys.path.insert(0, str(BENCH))

import awake  # noqa: E402
import curves  # noqa: E402
import learn  # noqa: E402
import named_runs  # noqa: E402
import results_page  # noqa: E402
import reward_parts  # noqa: E402
from studies import STUDIES, changed  # noqa: E402

from pyfastenv import cli  # noqa: E402
from pyfastenv.algorithms import sac  # noqa: E402
from pyfastenv.experiments import pictures  # noqa: E402
from pyfastenv.experiments.render import render  # noqa: E402
from pyfastenv.experiments.tables import mean_and_deviation  # noqa: E402
from pyfastenv.runs.options import marked  # noqa: E402
from pyfastenv.runs.registry import algorithm_module  # noqa: E402

SMALL = [
    "sac", "--env-ids", "Pendulum-v1", "--names", "SAC", "--seeds", "2", "--together", "2",
    "--total-steps", "800", "--learning-starts", "100", "--eval-every", "200",
    "--eval-episodes", "1", "--checkpoint-every", "100", "--batch-size", "16",
    "--hidden-sizes", "8,8", "--torch-threads", "1",
]  # fmt: skip


def command(folder: Path, *arguments: str) -> list[str]:
    script = str(BENCH / "learn.py")
    where = ["--output", str(folder / "out"), "--runs", str(folder / "runs")]
    return [sys.executable, script, *SMALL, *where, *arguments]


def run_learn(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> Any:
    """Runs learn.py in this process; returns its exit status."""
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        learn.main()
    return ended.value.code


def test_a_trainings_command_is_its_configuration() -> None:
    for training in STUDIES["minutes"].trainings():
        words = shlex.split(training.command())
        name, arguments = words[2], words[3:]
        assert words[:2] == ["pyfastenv", "train"]
        arguments, env_kwargs = cli._env_kwargs(arguments)
        config = cli._parse(algorithm_module(name).Config, "", arguments, "")
        config = dataclasses.replace(config, env_kwargs=env_kwargs)
        left_out = marked(type(config), "no_setting") | {"eval_episodes"}
        mine, wanted = config.to_dict(), training.config().to_dict()
        assert {k: mine[k] for k in mine.keys() - left_out} == {
            k: wanted[k] for k in wanted.keys() - left_out
        }, training.case.name


def test_a_study_that_is_killed_goes_on_and_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trained(name: str) -> list[dict[str, Any]]:
        assert run_learn(monkeypatch, command(tmp_path / name)[1:]) == 0
        return curves.read(tmp_path / name / "out", "sac")

    expected = trained("whole")
    assert [(run["seed"], run["side_by_side"], run["done"]) for run in expected] == [
        (21, 2, True),
        (22, 2, True),
    ]
    runs = tmp_path / "cut" / "runs"
    for end in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(command(tmp_path / "cut"))
        begun = len(list(runs.rglob("step_*.pt")))
        latest = max((p.name for p in runs.rglob("step_*.pt")), default="")
        while max((p.name for p in runs.rglob("step_*.pt")), default="") <= latest:
            assert process.poll() is None, begun
            time.sleep(0.01)
        process.send_signal(end)
        assert process.wait() == (-signal.SIGKILL if end == signal.SIGKILL else 143)
        cut = curves.read(tmp_path / "cut" / "out", "sac")
        assert not any(run["done"] for run in cut)
        if end == signal.SIGTERM:  # a kill may come before anything is written
            assert [run["seed"] for run in cut] == [21, 22]
    found = trained("cut")
    for one, other in zip(found, expected, strict=True):
        for name in ("greedy_returns", "train_return", "steps", "config"):
            assert one[name] == other[name]
        for name in ("steps", "returns"):
            assert one["curve"][name] == other["curve"][name]
        for name in ("seconds", "cpu_seconds"):
            assert one["curve"][name] == sorted(one["curve"][name])
            assert 0.0 < one["curve"][name][0] <= one[name]
    capsys.readouterr()
    assert trained("cut") == found
    assert capsys.readouterr().out == ""  # it was done
    page = (tmp_path / "cut" / "out" / "README.md").read_text()
    assert "| 2 | 800 |" in page and "SAC (Pendulum-v1)" in page  # fewer than planned
    assert (tmp_path / "cut" / "out" / "wall_clock.png").is_file()


def test_ppos_seeds_follow_each_other_and_leave_a_policy(tmp_path: Path) -> None:
    study = changed(
        STUDIES["ppo"],
        env_ids=["Hopper-v5"],
        seeds=2,
        options={"total_steps": 5_000, "eval_every": 2_500, "eval_episodes": 2},
    )
    assert learn.train_all(study, tmp_path, tmp_path / "runs")
    runs = curves.read(tmp_path, "ppo")
    assert [run["seed"] for run in runs] == [1, 2]
    assert runs[0]["curve"]["returns"] != runs[1]["curve"]["returns"]
    assert all(run["train_return"] > 0 and len(run["greedy_returns"]) == 20 for run in runs)
    assert (tmp_path / "policies" / "Hopper-v5.npz").is_file()
    assert all(learn.is_done(training, tmp_path) for training in study.trainings())
    longer = changed(study, options={"total_steps": 7_000})
    assert not any(learn.is_done(training, tmp_path) for training in longer.trainings())
    curves.write(tmp_path, "ppo", [run | {"earlier": "It was otherwise."} for run in runs])
    assert not any(learn.is_done(training, tmp_path) for training in study.trainings())


def test_no_two_trainings_share_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    # the datasets are made when their study is
    monkeypatch.setattr("pyfastenv.algorithms.td3_bc.spec.read_datasets", lambda names, envs: None)
    seeds = {
        name: {seed for training in study.trainings() for seed in training.seeds}
        for name, study in STUDIES.items()
    }
    assert sum(map(len, seeds.values())) == len(set.union(*seeds.values()))
    for study in STUDIES.values():
        for case in study.cases:
            mine = [t for t in study.trainings() if t.case is case]
            assert sorted(seed for t in mine for seed in t.seeds) == list(
                range(study.first_seed, study.first_seed + case.seeds)
            )
            for training in mine:
                training.config().check()


def test_mistakes_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, message in (
        (["ppo", "--env-ids", "Hopper"], "ppo has no Hopper; it has HalfCheetah-v5, "),
        (["ppo", "--together", "2"], "--together: PPO trains one seed after another"),
        (
            ["mbpo", "--names", "SAC"],
            "mbpo has no 'SAC'; it has 'MBPO', 'MBPO, epochs of 20,000 rows', "
            "'MBPO, epochs of all rows', 'MBPO, discount 0.99', 'MBPO, discount 0.995', "
            "'MBPO, minibatches of 64', 'MBPO, minibatches of 64, discount rises', "
            "'MBPO, minibatches of 64, discount rises late', 'MBPO, float32', "
            "'MBPO + flow'",
        ),
        (["sac", "--seed", "3"], "seed: the study's to set"),
        (["sac", "--learning-rate", "1e-3", "1e-4"], "learning_rate: expected one value"),
    ):
        assert run_learn(monkeypatch, ["learn.py", *arguments, "--output", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_time_in_which_the_process_was_stopped_does_not_count() -> None:
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import awake\n"
        "clock = awake.Awake(5.0); print('ready', flush=True); sys.stdin.readline()\n"
        "print(clock.seconds()); clock.close()"
    )
    arguments = [sys.executable, "-c", script, str(BENCH)]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(awake._MOST + 3.0)
        os.kill(process.pid, signal.SIGCONT)
        seconds = float(process.communicate("\n")[0])
    assert process.returncode == 0
    assert 5.0 < seconds < 5.0 + awake._MOST + 2.0


def run_of(seed: int, returns: list[float], **fields: Any) -> dict[str, Any]:
    steps = [1_000 * (i + 1) for i in range(len(returns))]
    return {
        "name": "SAC", "algorithm": "sac", "env_id": "Hopper-v5", "seed": seed, "side_by_side": 2,
        "steps": steps[-1], "done": True, "seconds": 120.0 * len(returns), "cpu_seconds": 480.0,
        "greedy_return": returns[-1], "train_return": 1.0,
        "curve": {"steps": steps, "returns": returns, "seconds": [120.0 * s / 1e3 for s in steps],
                  "cpu_seconds": [0.0] * len(steps)},
        "config": {"total_steps": 3_000, "amp": True}, "acceleration": "compiled in bfloat16",
        "machine": {"cpu": "a processor", "cpus_available": 2}, **fields,
    }  # fmt: skip


def test_a_group_counts_what_came_to_its_end() -> None:
    whole = [run_of(1, [1.0, 8.0, 6.0]), run_of(2, [3.0, 10.0, 4.0])]
    begun = run_of(3, [100.0], done=False)
    old = run_of(4, [50.0, 50.0, 50.0], earlier="It was otherwise.")
    group = results_page.Group([*whole, begun, old])
    assert group.seeds() == "2 (+ 1 begun)"
    assert group.minutes() == [(1.0, 2.0), (2.0, 9.0), (3.0, 5.0)]  # a seed's share
    assert group.best() == (2_000, 9.0)
    assert mean_and_deviation(group.end()) == "5.0 ± 1.4"  # of the sample
    begun_only = results_page.Group([begun, run_of(5, [200.0, 300.0], done=False), old])
    assert begun_only.reached() == "1,000 of 3,000" and begun_only.curve() == [(1_000, 150.0)]
    page = results_page.study_page(STUDIES["sac"], [old])
    assert "To be measured again: SAC (Hopper-v5). It was otherwise." in page
    published = "3542.2 ± 51.5 (Tianshou)"
    assert published in page


def test_a_page_says_what_was_rounded_and_what_has_a_control() -> None:
    exact = {"config": {"total_steps": 3_000, "amp": False}}
    runs = [
        run_of(21, [1.0]),
        run_of(21, [1.0], name="SAC, float32", **exact),
        run_of(21, [1.0], env_id="Ant-v5"),
    ]
    page = results_page.study_page(STUDIES["sac"], runs)
    assert (
        "In bfloat16 (`--amp`), with a control in float32: SAC (Hopper-v5). In bfloat16, without "
        "one: SAC (Ant-v5)."
    ) in page.replace("\n", " ")
    assert "bfloat16" not in results_page.study_page(STUDIES["sac"], runs[1:2])
    no_unit = run_of(21, [1.0], acceleration="compiled in float32")
    assert "bfloat16" not in results_page.study_page(STUDIES["sac"], [no_unit])
    assert results_page.Group([no_unit]).clock() == "processor in float32"
    controls = 0
    for study in STUDIES.values():
        mine = {(case.name, case.env_id): case for case in study.cases}
        for (name, env_id), case in mine.items():
            if name.endswith(", float32"):
                twin = mine[name.removesuffix(", float32"), env_id]
                options = study.options | twin.options
                assert options["amp"] and {**options, "amp": False} == study.options | case.options
                controls += 1
    assert controls >= 2


def test_minutes_are_of_one_processor() -> None:
    slow = {"machine": {"cpu": "AMD EPYC", "cpus_available": 2}}
    fast = {"machine": {"cpu": "Intel(R) Xeon(R) Processor", "cpus_available": 2}}
    returns = [1.0, 2.0]
    group = results_page.Group(
        [
            run_of(1, [10.0, 20.0], **slow, seconds=9_000.0),
            *(run_of(seed, returns, **fast) for seed in (2, 3)),
        ]
    )
    assert (group.processor, group.clock()) == ("Xeon", "Xeon, 2 of 3")
    assert group.share("seconds") == 2.0 and group.minutes() == [(1.0, 1.0), (2.0, 2.0)]
    assert group.end() == [20.0, 2.0, 2.0]  # of all
    assert results_page.Group([run_of(1, returns, **slow)]).clock() == "EPYC"


def test_returns_within_minutes_are_by_each_seeds_own_clock() -> None:
    def run(seed: int, cpu_seconds: list[float], **fields: Any) -> dict[str, Any]:
        made = run_of(seed, [1.0, 2.0], name="PPO for 1 minute", algorithm="ppo", side_by_side=1)
        curve = {**made["curve"], "cpu_seconds": cpu_seconds}
        return {**made, "curve": curve, "cpu_seconds": cpu_seconds[-1], **fields}

    early, late = run(201, [20.0, 50.0], greedy_return=7.0), run(202, [30.0, 61.0])
    assert results_page.Group([early, late]).within(1.0) == [7.0, 1.0]
    assert results_page.Group([early, run(202, [70.0, 80.0])]).within(1.0) == [7.0]
    other = run(1, [10.0, 40.0], name="PPO")
    page = results_page.study_page(STUDIES["minutes"], [early, late], [other])
    first, second, *_ = (line for line in page.splitlines() if line.startswith("| Hopper-v5 |"))
    assert first.startswith("| Hopper-v5 | 1 | 4.0 ± 4.2 | 3,500 | 2 of 5 | PPO for 1 minute |")
    assert first.endswith("| 2.0 (PPO; seeds: 1) |")
    assert second.startswith("| Hopper-v5 | 5 | not finished | 3,600 | 0 of 5 |")
    for study in STUDIES.values():
        wanted = [
            (e, m)
            for e, targets in study.targets.items()
            for m, _ in zip(study.minutes, targets, strict=True)
        ]
        assert sorted(wanted) == sorted((c.env_id, c.minutes) for c in study.cases if c.minutes)


def test_no_curve_has_anothers_colour() -> None:
    for study in STUDIES.values():
        names = list(dict.fromkeys(case.name for case in study.cases))
        assert len(set(pictures.colours(names).values())) == len(names)


def test_a_table_says_what_was_ahead_when() -> None:
    quick = run_of(1, [2_000.0, 2_500.0], name="PPO", algorithm="ppo", side_by_side=20)
    slow = run_of(2, [1.0, 3_000.0, 2_900.0])
    page = results_page.summary_page({"ppo": [quick], "sac": [slow]})
    row = next(line for line in page.splitlines() if line.startswith("| Hopper-v5 |"))
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells[:2] == ["2,000 (PPO; one seed)", "2,500 (PPO; one seed)"]
    assert cells[2:] == ["3,000 (SAC; one seed)", *["2,900 (SAC; one seed)"] * 3]
    assert "Which, and when" not in results_page.summary_page({"ppo": [quick]})


def test_processes_share_the_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shared = command(tmp_path, "--together", "1", "--jobs", "2")
    assert run_learn(monkeypatch, shared[1:]) == 0
    done = capfd.readouterr().out  # the other process's too
    assert sorted(line.split(":")[0] for line in done.splitlines()) == [
        f"SAC, Pendulum-v1, seed {seed}" for seed in (21, 22)
    ]
    assert [run["done"] for run in curves.read(tmp_path / "out", "sac")] == [True, True]


def test_a_training_whose_return_is_being_written_is_another_programs(tmp_path: Path) -> None:
    study = changed(STUDIES["sac"], env_ids=["Pendulum-v1"], names=["SAC"], seeds=1)
    (training,) = study.trainings()
    folder = learn.folder_of(training, tmp_path / "runs")
    with learn.claimed(folder) as mine:
        assert mine
        assert learn.train_all(study, tmp_path, tmp_path / "runs")
        assert not folder.exists() and not (tmp_path / "sac.json").exists()
    with learn.claimed(folder) as mine:
        assert mine  # a lock ends with its program, whatever became of the file


def test_other_programs_runs_stay(tmp_path: Path) -> None:
    curves.write(tmp_path, "sac", [run_of(2, [1.0]), run_of(1, [1.0])])
    curves.write(tmp_path, "sac", [run_of(2, [2.0])])
    found = curves.read(tmp_path, "sac")
    assert [(run["seed"], run["curve"]["returns"]) for run in found] == [(1, [1.0]), (2, [2.0])]
    text = (tmp_path / "sac.json").read_text()
    assert '"returns": [2.0]' in text and json.loads(text)["runs"] == found


def test_a_training_begun_anew_waits_until_it_is_further(tmp_path: Path) -> None:
    def written(run: dict[str, Any]) -> Any:
        curves.write(tmp_path, "sac", [run])
        return curves.read(tmp_path, "sac")[0]["curve"]["returns"]

    assert written(run_of(1, [1.0, 2.0], done=False)) == [1.0, 2.0]
    assert written(run_of(1, [3.0], done=False)) == [1.0, 2.0]
    assert written(run_of(1, [3.0, 4.0], done=False)) == [3.0, 4.0]
    assert written(run_of(1, [5.0])) == [5.0]  # to its end, which may be wanted nearer
    assert written(run_of(1, [6.0, 7.0], earlier="It was otherwise.")) == [6.0, 7.0]
    assert written(run_of(1, [8.0], done=False)) == [8.0]


def test_pages_are_what_the_files_say() -> None:
    folder = ROOT / "docs" / "results"
    for name, text in results_page.pages(folder).items():
        assert (folder / name).read_text() == text, f"{name}: make results STUDY=page"


@pytest.mark.parametrize(
    ("name", "template"),
    [
        *((name, name) for name in ("bench", "train", "mbpo", "own_tasks", "consumers")),
        *((f"suites_{which}", "suites") for which in ("ten", "rest", "playground")),
        *((f"suites_{which}", "suites") for which in ("metaworld", "myosuite")),
        ("gradients", "gradients"),
        ("sb3", "sb3"),
    ],
)
def test_benchmarks_are_shown_as_the_files_say(name: str, template: str) -> None:
    folder = ROOT / ("docs" if name == "sb3" else "bench") / "results"
    results = json.loads((folder / f"{name}.json").read_text())
    text = render(BENCH / "templates" / f"{template}.md", results | {"results": results})
    assert (folder / f"{name}.md").read_text() == text


def test_a_return_is_the_sum_of_its_parts(tmp_path: Path, monkeypatch: Any) -> None:
    options = {"total_steps": 30, "learning_starts": 20, "eval_episodes": 1, "hidden_sizes": (8,)}
    run = tmp_path / "run"
    sac.train(sac.Config(env_id="Hopper-v5", run_dir=run, loggers=(), quiet=True, **options))
    output = tmp_path / "parts.json"
    output.write_text('{"runs": [{"name": "other"}]}')
    arguments = [f"mine={run}", "--episodes", "3", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["reward_parts.py", *arguments])
    named_runs.main(None, reward_parts.reward_parts, "nowhere.json")
    other, mine = json.loads(output.read_text())["runs"]
    assert other == {"name": "other"}
    parts = {name: value for name, value in mine.items() if name.startswith("reward_")}
    assert set(parts) == {"reward_survive", "reward_forward", "reward_ctrl"}
    assert sum(parts.values()) == pytest.approx(mine["return"])
    assert mine["reward_survive"] == pytest.approx(mine["length"], abs=1.0)
