"""The outputs of `pyfastenv runs`, `report`, `bench` and `doctor`."""

import base64
import html.parser
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripts import run_script

from pyfastenv import _core, cli
from pyfastenv.algorithms import ppo
from pyfastenv.runs import folder as run_folder
from pyfastenv.runs.lock import FolderLock
from pyfastenv.runs.logger import MetricLogger
from pyfastenv.runs.settings import differing
from pyfastenv.tools import bench, doctor, runs
from pyfastenv.tools.contestants import first_difference
from pyfastenv.tools.report import write_report
from pyfastenv.training import profiling

# one pixel
_GIF = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x00\x00\x00\x00\x00,"
_GIF += b"\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"


def make_run(
    folder: Path, *, steps: int = 5, evaluated: int = 5, finished: bool = True, **options: Any
) -> Path:
    """A run folder of five evaluations, whose return is the seed at first and grows by 10."""
    config = ppo.Config(env_id=options.pop("env_id", "Hopper-v5"), total_steps=5000, **options)
    folder.mkdir(parents=True)
    run_folder.write_config(folder, config)
    logger = MetricLogger(folder)
    for k in range(steps):
        row = {"train/return": 1.0, "time/update_s": 0.5, "time/elapsed_s": 2.0 * (k + 1)}
        if k < evaluated:
            row["eval/return"] = config.seed + 10.0 * k
        logger.log(1000 * (k + 1), row)
    logger.close()
    if finished:
        (folder / run_folder.RESULT).write_text("{}")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two seeds of one setting, one of another, and one in another environment."""
    runs_folder = tmp_path / "runs"
    make_run(runs_folder / "a1", seed=1)
    make_run(runs_folder / "a2", seed=2, quiet=True)
    make_run(runs_folder / "b1", seed=1, learning_rate=0.125, steps=4, finished=False)
    make_run(runs_folder / "c1", seed=1, env_id="Ant-v5")
    return runs_folder


# ---- runs ----------------------------------------------------------------------------------------


def test_runs_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["runs", str(folder)]) == 0
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert err == "" and len(lines) == 5
    assert lines[0][:5] == ["run", "algorithm", "environment", "seed", "steps"]
    expected = ["ppo", "Hopper-v5", "2", "5,000", "42.0", "500", "10", "s", "finished"]
    assert lines[2] == [str(folder / "a2"), *expected]
    assert lines[3][4:7] == ["4,000", "of", "5,000"] and lines[3][-1] == "stopped"


def test_a_running_training_is_told_from_a_stopped_one(folder: Path) -> None:
    lock = FolderLock(folder / "b1")
    try:
        assert runs.read_run(folder / "b1").state == "running"
    finally:
        lock.release()
    assert runs.read_run(folder / "b1").state == "stopped"


def test_a_run_that_has_logged_nothing(tmp_path: Path) -> None:
    run = runs.read_run(make_run(tmp_path / "run", steps=0, finished=False))
    assert run.step == 0 and math.isnan(run.last_return) and math.isnan(run.steps_per_s)
    assert runs.table([run])[1][4:] == ("0 of 5,000", "–", "–", "–", "stopped")


def test_a_damaged_run_does_not_hide_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a1" / "config.json").write_text('{"algorithm": "ppo", "config": {}}')
    torn = make_run(folder / "torn") / "metrics.jsonl"
    torn.write_text(torn.read_text() + '{"loss/value": 3.0}\n')
    assert cli.main(["runs", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4 and "no env_id, seed, total_steps" in err
    assert f"{torn}, line 6: not a row of metrics (its step is missing)" in err

    # nor do it and one without a row keep others from a report
    empty = make_run(folder / "empty", steps=0, finished=False)
    report = folder / "report.html"
    assert cli.main(["report", str(folder), "--output", str(report)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{report}\n" and "3 runs compared" in report.read_text()
    assert "no env_id, seed, total_steps; left out\n" in err
    assert f"{empty}: the run has logged nothing yet; left out\n" in err


def test_a_run_without_a_return_does_not_hide_its_others(folder: Path) -> None:
    lost = make_run(folder / "a3", seed=3, finished=False)
    rows = [json.loads(line) for line in (lost / "metrics.jsonl").read_text().splitlines()]
    rows = [{name: v for name, v in row.items() if "return" not in name} for row in rows[:1]]
    (lost / "metrics.jsonl").write_text(json.dumps(rows[0]) + "\n")
    report = folder / "report.html"
    assert cli.main(["report", str(folder), "--output", str(report)]) == 0
    assert "5 runs compared" in report.read_text()


def test_phases_are_what_iterations_spent() -> None:
    row = {"step": 10, "time/sample_s": 1.0, "time/update_s": 2.0, "time/steps_per_s": 5.0}
    so_far = {"time/elapsed_s": 50.0, "time/processor_s": 40.0}  # of the whole run until then
    assert profiling.phases_of([row | so_far, row | so_far]) == {"sample": 2.0, "update": 4.0}


def test_a_setting_of_another_type_does_not_hide_other_runs(folder: Path) -> None:
    path = folder / "a2" / "config.json"
    facts = json.loads(path.read_text())
    facts["config"]["total_steps"] = "1e6"
    path.write_text(json.dumps(facts))
    found, problems = runs.find_runs(folder)
    assert len(found) == 3 and problems == [f"{path}: total_steps: got '1e6'"]


def test_what_was_set_aside_is_no_run_of_its_own(folder: Path) -> None:
    aside = make_run(folder / "a1" / "earlier-1")
    assert len(runs.find_runs(folder)[0]) == 4
    assert [run.folder for run in runs.find_runs(aside)[0]] == [aside]


def test_damaged_losses_do_not_hide_other_runs(folder: Path) -> None:
    path = folder / "a2" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "own_losses": 3}))
    found, problems = runs.find_runs(folder)
    assert len(found) == 3 and len(problems) == 1
    assert problems[0].startswith(f"{path}: not a run's configuration (")


def test_losses_of_ones_own_are_settings(folder: Path) -> None:
    path = folder / "a2" / "config.json"
    facts = {**json.loads(path.read_text()), "own_losses": {"ppo_loss": "losses:mine"}}
    path.write_text(json.dumps(facts))
    groups = runs.grouped([runs.read_run(folder / name) for name in ("a1", "a2")])
    assert [group.label for group in groups] == ["ppo ppo_loss=None", "ppo ppo_loss=losses:mine"]


def test_settings_that_differ(folder: Path) -> None:
    found, _ = runs.find_runs(folder)
    assert differing([run.settings for run in found]) == {
        "env_id": ["Hopper-v5", "Hopper-v5", "Hopper-v5", "Ant-v5"],
        "learning_rate": [3e-4, 3e-4, 0.125, 3e-4],
    }
    groups = runs.grouped(found[:3])
    assert [[run.seed for run in group.runs] for group in groups] == [[1, 2], [1]]
    assert [group.label for group in groups] == [
        "ppo learning_rate=0.0003",
        "ppo learning_rate=0.125",
    ]
    assert [group.label for group in runs.grouped(found[:2])] == ["ppo"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # of busy machines
@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 50), st.floats(-1e6, 1e6)), min_size=1, max_size=20),
        min_size=1,
        max_size=4,
    )
)
def test_a_spread_lies_around_its_mean(steps: list[list[tuple[int, float]]]) -> None:
    curves = []
    for points in steps:
        dx, y = np.array(points, dtype=np.float64).T
        curves.append((np.cumsum(dx), y))
    found = runs.spread(curves)
    tolerance = 1e-9 * (1.0 + np.abs(found.mean))
    assert np.all(found.low <= found.mean + tolerance)
    assert np.all(found.mean <= found.high + tolerance)
    assert np.all(np.diff(found.x) > 0)
    assert found.x[0] >= max(x[0] for x, _ in curves)


def test_a_spread_of_one_curve_is_the_curve() -> None:
    x, y = np.array([1.0, 2.0, 5.0]), np.array([3.0, -1.0, 4.0])
    found = runs.spread([(x, y)])
    for values in (found.mean, found.low, found.high):
        np.testing.assert_array_equal(values, y)
    np.testing.assert_array_equal(found.x, x)


def test_a_spread_ends_where_the_first_curve_ends() -> None:
    short = (np.array([1.0, 3.0]), np.array([0.0, 2.0]))
    long = (np.array([2.0, 3.0, 9.0]), np.array([5.0, 6.0, 7.0]))
    found = runs.spread([short, long])
    assert found.x[0] == 2.0 and found.x[-1] == 3.0
    np.testing.assert_allclose(found.mean[[0, -1]], [3.0, 4.0])
    with pytest.raises(ValueError, match="expected at least one"):
        runs.spread([])


# ---- report --------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Addresses, texts of cells, and headings of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.texts += [data.strip()] if data.strip() else []


def test_a_report_stands_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "a1" / "video.gif").write_bytes(_GIF)
    (folder / "b1" / "video.mp4").write_bytes(b"a film")
    path = tmp_path / "report.html"
    assert cli.main(["report", str(folder), "--output", str(path)]) == 0
    text = path.read_text()
    page = Page(text)
    kinds = [address.partition(";")[0] for address in page.addresses]
    assert kinds.count("data:image/svg+xml") == 4  # two pictures per environment
    assert kinds.count("data:image/gif") == 1 and kinds.count("data:video/mp4") == 1
    assert len(kinds) == 6 and "url(" not in text and "@import" not in text
    assert "4 runs compared" in page.texts
    # the group of two seeds: 41 and 42 at the end, and its learning rate beside the other's
    assert "41.5 ± 0.7" in page.texts and "1, 2" in page.texts
    row = page.texts.index("learning_rate")
    assert page.texts[row + 1 : row + 3] == ["0.0003", "0.125"]
    assert page.texts[page.texts.index("update") + 1] == "25%"
    without = write_report([folder], tmp_path / "other.html", videos=False)
    assert len(Page(without.read_text()).addresses) == 4


def test_a_report_of_names_that_look_like_markup(tmp_path: Path) -> None:
    run = make_run(tmp_path / "<b>run & co")
    text = write_report([run], tmp_path / "report.html").read_text()
    assert "<b>" not in text and "&lt;b&gt;run &amp; co" in text


@pytest.mark.parametrize(
    ("evaluated", "measure", "last"),
    [(1, "evaluations", ("3.0", "41.0")), (0, "episodes trained on", ("1.0", "1.0"))],
)
def test_a_report_has_one_measure(
    evaluated: int, measure: str, last: tuple[str, str], tmp_path: Path
) -> None:
    make_run(tmp_path / "runs/short", seed=3, steps=2, evaluated=evaluated, env_id="Ant-v5")
    make_run(tmp_path / "runs/whole", seed=1)
    text = write_report([tmp_path / "runs"], tmp_path / "report.html").read_text()
    page = Page(text)
    told = [line for line in page.texts if line.startswith("Returns of ")]
    assert [line.partition(".")[0] for line in told] == [f"Returns of {measure}"] * 2
    assert page.texts.count(f"last return of {measure} ± s.d.") == 2
    assert page.texts.count(f"last return of {measure}") == 2  # of each run
    assert all(page.texts.count(number) >= 2 for number in last)
    pictures = [address for address in page.addresses if address.startswith("data:image/svg")]
    for picture in pictures:
        assert f"return of {measure}" in base64.b64decode(picture.partition(",")[2]).decode()


def test_a_report_is_of_the_runs_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    assert cli.main(["report"]) == 0
    assert capsys.readouterr().out == "report.html\n"
    assert "4 runs compared" in Path("report.html").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report", "runs: there is no such folder"),
        ("report RUNS --output x.txt", "output: expected a name ending in .html, got x.txt"),
        ("report RUNS --output RUNS/new/x.html", "output: there is no folder"),
        ("report RUNS/none", "none: there is no such folder"),
        ("report RUNS/a1/checkpoints", "neither a run folder nor a folder with runs in it"),
        ("report RUNS/empty", "empty: the run has logged nothing yet"),
        ("runs RUNS/a1/checkpoints", "no runs in it"),
        ("runs RUNS/none", "there is no such folder"),
        ("bench Hopper-v5 --num-envs 0", "num_envs: expected at least 1, got 0"),
        ("bench Hopper-v5 --num-threads -1", "num_threads: expected at least 0, got -1"),
        ("bench Hopper-v5 --seconds 0", "seconds: expected more than 0, at most 3600, got 0"),
        ("bench Hopper-v5 --seconds nan", "seconds: expected more than 0, at most 3600, got nan"),
        ("bench Hoper-v5", "unknown environment id 'Hoper-v5'; the nearest ones: Hopper-v5"),
    ],
)
def test_mistakes_are_one_sentence(
    line: str, message: str, folder: Path, one_sentence: Callable[[list[str], str], None]
) -> None:
    (folder / "a1" / "checkpoints").mkdir()
    make_run(folder / "empty", steps=0, finished=False)
    one_sentence([word.replace("RUNS", str(folder)) for word in line.split()], message)


def test_a_browser_without_a_network_shows_a_report(folder: Path, tmp_path: Path) -> None:
    """All pictures are decoded, and nothing is asked of the network."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium")
    path = write_report([folder], tmp_path / "report.html")
    probe = "<script>document.body.dataset.seen=[...document.images].map(i=>i.naturalWidth)"
    probe += ".concat(performance.getEntriesByType('resource').filter(e=>e.name.startsWith('http'))"
    probe += ".map(e=>e.name)).join(' ')</script>"
    path.write_text(path.read_text().replace("</html>", f"{probe}</html>"))
    options = ["headless", "no-sandbox", "disable-gpu", "host-resolver-rules=MAP * ~NOTFOUND"]
    options += [f"user-data-dir={tmp_path / 'profile'}", "virtual-time-budget=5000", "dump-dom"]
    done = subprocess.run(
        [browser, *(f"--{option}" for option in options), path.as_uri()],
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = done.stdout.partition('data-seen="')[2].partition('"')[0].split()
    assert len(seen) == 4 and all(int(width) > 0 for width in seen), seen


# ---- bench ---------------------------------------------------------------------------------------


def test_bench_measures_everybody() -> None:
    found = bench.race("pyfastenv/Hopper-v5", num_envs=4, num_threads=1, seconds=0.3)
    names = [rate.name for rate in found.rates]
    assert names == ["pyfastenv", "physics limit", "gymnasium sync", "gymnasium async"]
    assert all(rate.steps_per_s["median"] > 0 for rate in found.rates)
    ours, limit, *gymnasium = found.rates
    assert ours.ours["median"] == 1.0 and limit.ours["median"] > 0.1
    assert all(rate.ours["median"] > 1.0 for rate in gymnasium)
    lines = str(found).splitlines()
    assert lines[0].startswith("Hopper-v5, 1 thread, physics by ") and len(lines) == 6


def test_bench_says_who_is_not_there() -> None:
    classic = bench.race("CartPole-v1", num_envs=2, num_threads=1, seconds=0.2)
    assert classic.absent == {"physics limit": "CartPole-v1 is not a MuJoCo environment"}
    meta = bench.race("AntVel-v5", num_envs=2, num_threads=1, seconds=0.2)
    assert set(meta.absent) == {"gymnasium sync", "gymnasium async"}
    assert "gymnasium sync: not here (Environment `AntVel` doesn't exist" in str(meta)


_TASK = """
import pyfastenv

class Slide(pyfastenv.Task):
    model = '''<mujoco><worldbody><body><joint name="a" type="slide"/><geom size=".1"/></body>
      </worldbody><actuator><motor joint="a"/></actuator></mujoco>'''

    def reset(self, data, rng):
        data.qpos[:] = rng.uniform(-0.1, 0.1, 1)

    def step(self, data, action):
        self.simulate(data)
        return data.qpos[0], False

    def observation(self, data, obs):
        obs["qpos"] = data.qpos
"""


@pytest.mark.parametrize("place", ["{}:Slide", "{}.py:Slide"])
def test_bench_of_an_own_task_whose_actuator_has_no_range(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numba")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "sliding", raising=False)
    (tmp_path / "sliding.py").write_text(_TASK)
    options = ["--num-envs", "4", "--num-threads", "1", "--seconds", "0.3"]
    assert cli.main(["bench", place.format("sliding"), *options]) == 0
    head, _, *rates, absent = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{place.format('sliding')}, 1 thread, physics by ")
    names = [rate[:15].rstrip() for rate in rates]
    assert names == ["pyfastenv", "gymnasium sync", "gymnasium async"]
    assert absent == "physics limit: not here (there is no bare loop for own tasks)"


# ---- doctor --------------------------------------------------------------------------------------


def checks(*subjects: str) -> dict[str, Any]:
    return {subject: doctor._CHECKS[subject] for subject in subjects}


def findings(*subjects: str) -> dict[str, doctor.Finding]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "_CHECKS", checks(*(subjects or doctor._CHECKS)))
        return {finding.subject: finding for finding in doctor.examine()}


def test_doctor_finds_this_machine_well() -> None:
    found = findings()
    assert set(found) >= {"platform", "versions", "MuJoCo", "processor", "engine", "exactness"}
    assert set(found) >= {"threads", "OpenGL", "PyTorch"}
    for subject in ("versions", "MuJoCo", "exactness"):
        assert found[subject].state == "ok", found[subject]
    assert all(finding.advice for finding in found.values() if finding.state != "ok")


def test_doctor_ends_with_1_if_there_is_something_to_mend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_core, "MUJOCO_VERSION", "3.9.9")
    monkeypatch.setattr(doctor, "_CHECKS", checks("versions", "MuJoCo"))
    assert cli.main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert "MEND  MuJoCo" in out and "→ pip install --force-reinstall mujoco==3.9.9" in out
    assert err == "pyfastenv: 1 thing to mend\n"


def test_doctor_on_a_container_with_a_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "cgroup_quota", lambda: 0.5)
    monkeypatch.setattr("os.getloadavg", lambda: (100.0, 1.0, 1.0))
    found = findings("threads", "load")
    assert "quota is 0.5 CPUs" in found["threads"].what and "--cpus" in found["threads"].advice
    assert found["load"].what == "100.0 threads are running already"


def test_doctor_with_an_engine_chosen_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFASTENV_ENGINE", "mujoco")
    found = findings("engine")
    assert found["engine"].state == "note" and "unset it" in found["engine"].advice
    monkeypatch.setattr(doctor, "first_difference", lambda *_, **__: "the rewards of step 3")
    assert findings("exactness")["exactness"].state == "mend"


def test_doctor_without_an_optional_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks_imageio(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("No module named 'imageio'", name="imageio")

    monkeypatch.setattr(doctor, "first_difference", lacks_imageio)
    monkeypatch.setattr(doctor, "_CHECKS", checks("exactness", "disk"))
    assert cli.main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert "note  exactness" in out and "No module named 'imageio'" in out
    assert "→ pip install 'gymnasium[mujoco]'" in out and err == ""


def test_doctor_with_an_opengl_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """An OpenGL that cannot draw is found out and reported."""
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    tried: list[dict[str, str]] = []

    def draws(environment: dict[str, str]) -> str | None:
        tried.append(environment)
        return None if environment.get("MUJOCO_GL") == "egl" else "no library"

    monkeypatch.setattr(doctor, "_draws", draws)
    found = findings("OpenGL")["OpenGL"]
    assert tried == [{}, {"MUJOCO_GL": "egl"}]
    assert (found.state, found.advice) == ("mend", "export MUJOCO_GL=egl")
    assert found.what == "MUJOCO_GL=osmesa: no library"
    monkeypatch.setattr(doctor, "_draws", lambda environment: "no library")
    assert "libegl1" in findings("OpenGL")["OpenGL"].advice


def test_doctor_draws_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_DRAW", "raise SystemExit('no screen')")
    assert doctor._draws({}) == "no screen"


def test_doctor_needs_no_command_line_library() -> None:
    script = "import sys; sys.modules['tyro'] = None; from pyfastenv import cli, _core;"
    script += "from pyfastenv.tools import doctor;"
    script += "doctor._CHECKS = {name: doctor._CHECKS[name] for name in ('versions', 'MuJoCo')};"
    script += "raise SystemExit(cli.main(['doctor']))"
    assert run_script(script).count("ok") == 2


def test_a_difference_from_gymnasium_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_difference("Hopper-v5", num_envs=1, num_steps=20) is None
    from pyfastenv.vector.vector_env import FastVectorEnv

    step = FastVectorEnv.step

    def late(self: FastVectorEnv, actions: Any) -> Any:
        obs, rewards, *rest = step(self, actions)
        return (obs, np.nextafter(rewards, np.inf), *rest)

    monkeypatch.setattr(FastVectorEnv, "step", late)
    assert first_difference("Hopper-v5", num_envs=1, num_steps=2) == "the rewards of step 0"
