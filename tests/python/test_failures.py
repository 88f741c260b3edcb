"""Engine errors, divergence, Ctrl-C, fork, the end: the pool survives or says why."""

import gc
import importlib.metadata
import importlib.util
import os
import pathlib
import pickle
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from parity import MODES, assert_same
from scripts import FORK, LONG, PROMPT, interrupt, run_script

import pyfastenv
from pyfastenv.errors import EnvError, ResetNeededError
from pyfastenv.vector import specs

NUM_ENVS = 4
THREADS = [1, 4]
BAD, GOOD = [1, 3], [0, 2]


def actions(step: int = 0) -> np.ndarray:
    return np.random.default_rng(step).uniform(-1, 1, (NUM_ENVS, 6)).astype(np.float32)


def make(xml_file: pathlib.Path | str = "half_cheetah.xml", **kwargs: Any) -> Any:
    return pyfastenv.make_vec(
        "HalfCheetah-v5", **{"num_envs": NUM_ENVS, "num_threads": 1, "xml_file": xml_file, **kwargs}
    )


@pytest.fixture(autouse=True)
def quiet(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """MuJoCo prints nothing and writes no log file."""
    monkeypatch.chdir(tmp_path)
    yield
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.glob("MUJOCO_LOG*"))


# ---- errors of the physics engine ----------------------------------------------------------------


TURN = (0.6, 0.0, 0.0, 0.8)


@pytest.fixture
def xml_file(tmp_path: pathlib.Path) -> pathlib.Path:
    """A cheetah on a floor that is turned, about its normal, so that MuJoCo reads how far."""
    text = pathlib.Path(specs.assets_dir(), "half_cheetah.xml").read_text()
    quat = " ".join(map(str, TURN))
    text, count = re.subn(r"<geom (?=[^>]*type=\"plane\")", f'<geom quat="{quat}" ', text)
    assert count == 1
    path = tmp_path / "cheetah.xml"
    path.write_text(text)
    return path


def turn_floor(envs: Any, ids: list[int], quaternion: tuple[float, ...] = TURN) -> None:
    quaternions = envs.get_model_field("geom_quat")[ids]
    quaternions[:, 0] = quaternion
    envs.set_model_field("geom_quat", quaternions, ids)


def break_contacts(envs: Any, ids: list[int]) -> None:
    """A floor without a direction, whose contacts are errors of the engine."""
    turn_floor(envs, ids, (0.0, 0.0, 0.0, 0.0))


def broken_pair(xml_file: pathlib.Path, num_threads: int, **kwargs: Any) -> tuple[Any, Any]:
    """An environment with BAD broken, and a twin without; both a few steps into their episodes."""
    envs, twin = make(xml_file, num_threads=num_threads, **kwargs), make(xml_file, **kwargs)
    for each in (envs, twin):
        turn_floor(each, [0, 1, 2, 3])
        each.reset(seed=0)
        for step in range(3):
            each.step(actions(step))
    break_contacts(envs, BAD)
    return envs, twin


def assert_failed(error: EnvError) -> None:
    assert error.env_ids == tuple(BAD)
    assert len(error.messages) == len(BAD)
    assert all("contact frame undefined" in message for message in error.messages)
    assert f"environments {', '.join(map(str, BAD))}: " in str(error)  # which say the same
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.env_ids, copy.messages) == (error.env_ids, error.messages)
    assert_same(copy.results, error.results)


def assert_rows_same(ours: Any, theirs: Any, rows: Any, their_rows: Any = None) -> None:
    """Like assert_same, of some environments' rows."""
    their_rows = rows if their_rows is None else their_rows
    if isinstance(theirs, dict):
        assert set(theirs) <= set(ours)
        for key in theirs:
            assert_rows_same(ours[key], theirs[key], rows, their_rows)
    elif isinstance(theirs, tuple):
        for a, b in zip(ours, theirs, strict=True):
            assert_rows_same(a, b, rows, their_rows)
    else:
        assert_same(ours[rows], theirs[their_rows])


def assert_goes_on(envs: Any, twin: Any) -> None:
    """BAD repaired, all environments equal those of the twin from here on."""
    turn_floor(envs, BAD)
    np.testing.assert_array_equal(envs.get_state(GOOD), twin.get_state(GOOD))
    twin.set_state(envs.get_state())
    for step in range(5):
        assert_same(envs.step(actions(step)), twin.step(actions(step)))
    np.testing.assert_array_equal(envs.get_state(), twin.get_state())
    assert_same(envs.reset(seed=7), twin.reset(seed=7))
    envs.close()
    twin.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_threads", THREADS)
def test_engine_error_in_step(xml_file: pathlib.Path, num_threads: int, mode: str) -> None:
    envs, twin = broken_pair(xml_file, num_threads, autoreset_mode=mode)
    before = envs.get_state(BAD)
    for step in range(2):
        with pytest.raises(EnvError) as caught:
            envs.step(actions(step))
        assert_failed(caught.value)
        results = caught.value.results
        assert_rows_same(results, twin.step(actions(step)), GOOD)
        assert not any(array[BAD].any() for array in results[:4])
        assert not any(results[4][key][BAD].any() for key in results[4])
        np.testing.assert_array_equal(envs.get_state(BAD), before)
    assert envs.stats()["errors"] == 4
    assert_goes_on(envs, twin)


SOME = {"reset_mask": np.array([True, True, False, True])}


@pytest.mark.parametrize("kwargs", [{}, {"seed": 5}, {"options": SOME}], ids=["", "seed", "mask"])
@pytest.mark.parametrize("num_threads", THREADS)
def test_engine_error_in_reset(
    xml_file: pathlib.Path, num_threads: int, kwargs: dict[str, Any]
) -> None:
    envs, twin = broken_pair(xml_file, num_threads)
    before = envs.get_state(BAD)
    with pytest.raises(EnvError) as caught:
        envs.reset(**kwargs)
    assert_failed(caught.value)
    # what is not reset has its latest observation
    assert_rows_same(caught.value.results, twin.reset(**kwargs), GOOD)
    assert "options" in kwargs or not caught.value.results[0][BAD].any()
    np.testing.assert_array_equal(envs.get_state(BAD), before)
    assert_goes_on(envs, twin)


@pytest.mark.parametrize("num_threads", THREADS)
def test_engine_error_in_send_and_recv(xml_file: pathlib.Path, num_threads: int) -> None:
    envs, twin = broken_pair(xml_file, num_threads)
    before = envs.get_state(BAD)
    envs.send(actions())
    with pytest.raises(EnvError) as caught:
        envs.recv()
    assert sorted(caught.value.env_ids) == BAD
    results = caught.value.results
    ids = results[4]["env_id"]
    assert sorted(ids) == GOOD
    assert_rows_same(results, twin.step(actions()), slice(None), ids)
    np.testing.assert_array_equal(envs.get_state(BAD), before)
    with pytest.raises(pyfastenv.NothingPendingError):
        envs.recv()
    assert_goes_on(envs, twin)


@pytest.mark.parametrize("num_threads", THREADS)
def test_engine_error_in_async_reset(xml_file: pathlib.Path, num_threads: int) -> None:
    envs, twin = broken_pair(xml_file, num_threads)
    before = envs.get_state(BAD)
    envs.async_reset(seed=5)
    failed: list[int] = []
    received: list[int] = []
    while len(failed) + len(received) < NUM_ENVS:
        try:
            received += envs.recv(1)[4]["env_id"].tolist()
        except EnvError as error:
            failed += error.env_ids
            received += error.results[4]["env_id"].tolist()
    assert (sorted(failed), sorted(received)) == (BAD, GOOD)
    twin.reset(seed=5)
    np.testing.assert_array_equal(envs.get_state(BAD), before)
    assert_goes_on(envs, twin)


@pytest.mark.parametrize("num_threads", THREADS)
def test_errors_under_way_are_not_reported_by_another_call(
    xml_file: pathlib.Path, num_threads: int
) -> None:
    envs, twin = broken_pair(xml_file, num_threads)
    envs.send(actions()[BAD], BAD)
    time.sleep(0.1)  # the helpers, if any, run into the errors
    with pytest.raises(pyfastenv.BusyError):
        envs.reset(options={"reset_mask": np.array([True, False, True, False])})
    envs.get_state([0, 2])
    with pytest.raises(EnvError) as caught:
        envs.recv()
    assert sorted(caught.value.env_ids) == BAD
    assert len(caught.value.results[1]) == 0
    assert_goes_on(envs, twin)


@pytest.mark.parametrize("num_threads", THREADS)
def test_engine_error_then_another_model_field(xml_file: pathlib.Path, num_threads: int) -> None:
    envs, twin = broken_pair(xml_file, num_threads)
    with pytest.raises(EnvError):
        envs.step(actions())
    twin.step(actions())
    for each in (envs, twin):  # the rows move in memory while a worker's mjData is broken
        each.set_model_field("body_mass", each.get_model_field("body_mass") * 1.1)
    assert_goes_on(envs, twin)


def test_engine_error_in_every_environment(xml_file: pathlib.Path) -> None:
    envs = make(xml_file, num_envs=6, num_threads=4)
    envs.reset(seed=0)
    break_contacts(envs, list(range(6)))
    with pytest.raises(EnvError, match="and 2 more") as caught:
        envs.step(np.zeros((6, 6), np.float32))
    assert caught.value.env_ids == tuple(range(6))


# ---- divergence ----------------------------------------------------------------------------------


def set_gain(envs: Any, factor: float, ids: list[int]) -> None:
    gain = np.zeros(envs.get_model_field("actuator_gainprm").shape[1:])
    gain[:, 0] = factor
    envs.set_model_field("actuator_gainprm", gain, ids)


def diverging_pair(num_threads: int, mode: str) -> tuple[Any, Any]:
    envs, twin = make(num_threads=num_threads, autoreset_mode=mode), make(autoreset_mode=mode)
    for each in (envs, twin):
        set_gain(each, 1.0, [0, 1, 2, 3])
        each.reset(seed=0)
        each.step(actions())
    set_gain(envs, 1e30, BAD)
    return envs, twin


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_threads", THREADS)
def test_divergence_ends_the_episode(num_threads: int, mode: str) -> None:
    envs, twin = diverging_pair(num_threads, mode)
    results, expected = envs.step(actions(1)), twin.step(actions(1))
    obs, rewards, terminations, truncations, infos = results
    assert_rows_same(results, expected, GOOD)
    is_bad = np.isin(np.arange(NUM_ENVS), BAD)
    np.testing.assert_array_equal(terminations, is_bad)
    np.testing.assert_array_equal(infos["diverged"], is_bad)
    np.testing.assert_array_equal(infos["_diverged"], is_bad)
    assert not truncations.any()
    assert not rewards[BAD].any()
    assert np.isfinite(obs).all()
    stats = envs.stats()
    assert (stats["diverged"], stats["episodes"], stats["errors"]) == (2, 2, 0)

    # the next episode is the twin's, had it been reset now
    set_gain(envs, 1.0, BAD)
    reset = {"options": {"reset_mask": is_bad}}
    if mode == "SameStep":
        np.testing.assert_array_equal(infos["_final_obs"], is_bad)
        assert all(np.isfinite(infos["final_obs"][i]).all() for i in BAD)
        assert_rows_same((obs,), (twin.reset(**reset)[0],), BAD)
    elif mode == "NextStep":
        results, expected = envs.step(actions(2)), twin.step(actions(2))
        assert_rows_same(results, expected, GOOD)
        assert "diverged" not in results[4]
        assert_rows_same((results[0],), (twin.reset(**reset)[0],), BAD)
    else:
        with pytest.raises(ResetNeededError, match="1, 3"):
            envs.step(actions(2))
        assert_same(envs.reset(**reset), twin.reset(**reset))
    np.testing.assert_array_equal(envs.get_state(), twin.get_state())
    for step in range(5):
        assert_same(envs.step(actions(step)), twin.step(actions(step)))


@pytest.mark.parametrize("num_threads", THREADS)
def test_divergence_in_recv(num_threads: int) -> None:
    envs, twin = diverging_pair(num_threads, "NextStep")
    envs.send(actions(1))
    results = envs.recv()
    ids = results[4]["env_id"]
    np.testing.assert_array_equal(results[4]["diverged"], np.isin(ids, BAD))
    np.testing.assert_array_equal(results[2], np.isin(ids, BAD))
    assert np.isfinite(results[0]).all()
    expected = twin.step(actions(1))
    good = np.isin(ids, GOOD)
    assert_rows_same(results, expected, good, ids[good])


# ---- scripts in a process of their own -----------------------------------------------------------


# what is interrupted prints the processor time that it took; then what the pool says and does
INTERRUPTED = {
    "step": (
        """
press()
try:
    envs.step(actions)
except KeyboardInterrupt:
    print(time.process_time() - sent[0])
try:
    envs.step(actions)
except pyfastenv.ResetNeededError as error:
    print("reset needed" if "interrupted" in str(error) else error)
envs.reset(seed=1)
envs.send(actions[:10], np.arange(10))
envs.recv(10)
print(envs.stats()["errors"])
""",
        ["reset needed", "0"],
    ),
    "recv, which loses nothing": (
        """
press()
envs.send(actions)
try:
    envs.recv()
except KeyboardInterrupt:
    print(time.process_time() - sent[0])
ids = envs.recv()[4]["env_id"]
print(sorted(ids.tolist()) == list(range(1000)))
""",
        ["True"],
    ),
    "reset": (
        """
envs = pyfastenv.make_vec("Humanoid-v5", 60_000, num_threads=int(sys.argv[1]))
press(0.05)
try:
    envs.reset(seed=0)
except KeyboardInterrupt:
    print(time.process_time() - sent[0])
try:
    envs.step(np.zeros((60_000, 17), np.float32))
except pyfastenv.ResetNeededError:
    print("reset needed")
mask = np.arange(60_000) < 10
envs.reset(seed=0, options={"reset_mask": mask})
envs.send(actions[:10], np.arange(10))
print(len(envs.recv()[1]))
""",
        ["reset needed", "10"],
    ),
}
HANDLER = """
def handler(*_):
    print(time.process_time() - sent[0])
    for inner in (envs.close, lambda: envs.step(actions), envs.get_state, envs.stats, envs.recv):
        try:
            inner()
            print("fine")
        except pyfastenv.BusyError as error:
            print("busy")
signal.signal(signal.SIGINT, handler)
press()
{}  # the handler has swallowed it: the call is completed
envs.close()
print(envs.closed)
"""
for call in ("envs.step(actions)", "envs.send(actions); envs.recv()"):
    said = ["busy", "busy", "busy", "fine", "busy", "True"]
    INTERRUPTED[f"a handler that uses the environment: {call}"] = HANDLER.format(call), said


@pytest.mark.parametrize(
    ("what", "num_threads"),
    [("step", 1), *((what, 1 + number % 2) for number, what in enumerate(INTERRUPTED, 1))],
)
def test_ctrl_c(what: str, num_threads: int) -> None:
    script, expected = INTERRUPTED[what]
    # what is completed after all takes half as long
    seconds = 2.0 if what in ("step", "reset") else 1.0
    delay, lines = interrupt(script, num_threads, seconds=seconds)
    assert 0 < delay < PROMPT
    assert lines == expected


def test_signal_handler_that_raises() -> None:
    _, lines = interrupt(
        """
def handler(*_):
    print(time.process_time() - sent[0])
    envs.close()
signal.signal(signal.SIGINT, handler)
press()
try:
    envs.step(actions)
except pyfastenv.BusyError:
    print("busy", envs.closed)
envs.reset(seed=0)
envs.send(actions[:10], np.arange(10))
envs.recv(10)
envs.close()
print(envs.closed)
""",
        2,
    )
    assert lines == ["busy False", "True"]


# ---- fork and pickle -----------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("under_way", [False, True])
def test_use_in_a_forked_child(num_threads: int, under_way: bool) -> None:
    script = f"""
vector = np.zeros((1, 17 * 6 + 6))
policy = pyfastenv.PolicySpec.of_vectors(vector, (17, 6), distribution="deterministic")
if {under_way}:
    envs.send(actions)
pid = os.fork()
if pid == 0:
    calls = [lambda: envs.step(actions), lambda: envs.recv(), lambda: envs.get_state(),
             lambda: envs.reset(), lambda: envs.reset(seed=1), lambda: envs.send(actions),
             lambda: pyfastenv.rollout(envs, policy, 5)]
    for call in calls:
        try:
            call()
        except pyfastenv.ForkedError as error:
            assert "fork" in str(error)
        else:
            os._exit(3)
    own = pyfastenv.make_vec("HalfCheetah-v5", 4, num_threads=int(sys.argv[1]))
    own.reset(seed=0)
    own.step(actions)
    envs.close()
    del envs, calls, call
    gc.collect()
    sys.exit(0)
print(wait(pid))
print(len(envs.recv()[0]) if {under_way} else len(envs.step(actions)[0]))
"""
    assert run_script(FORK + script, num_threads).split() == ["0", "4"]


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("end", ["sys.exit(0)", "del envs; gc.collect(); sys.exit(0)", "pass"])
def test_forked_child_ends(num_threads: int, end: str) -> None:
    script = f"""
import threading
thread = threading.Thread(target=lambda: [envs.step(actions) for _ in range(2000)])
thread.start()
time.sleep(0.02)
pid = os.fork()  # in the middle of a step
if pid == 0:
    {end}
else:
    print(wait(pid))
    thread.join()
    print(len(envs.step(actions)[0]))
"""
    assert run_script(FORK + script, num_threads).split() == ["0", "4"]


def test_forked_while_another_thread_receives() -> None:
    script = """
import threading
envs = pyfastenv.make_vec("Humanoid-v5", 2, num_threads=2, frame_skip=2000)
envs.reset(seed=0)
envs.send(np.zeros((2, 17), np.float32))
threads = [threading.Thread(target=envs.recv, args=(1,), kwargs={"max_envs": 1}) for _ in range(2)]
for thread in threads:
    thread.start()
time.sleep(0.02)
pid = os.fork()
if pid == 0:
    del envs, threads, thread
    gc.collect()
    sys.exit(0)
print(wait(pid))
for thread in threads:
    thread.join()
"""
    assert run_script(FORK + script, 2).split() == ["0"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pickled_into_another_process(tmp_path: pathlib.Path, method: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import multiprocessing, pickle, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np, pyfastenv

def work(data, queue):
    envs = pickle.loads(data)
    envs.reset(seed=0)
    queue.put(envs.step(np.zeros((4, 6), np.float32))[0])

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    envs = pyfastenv.make_vec("HalfCheetah-v5", 4, num_threads=4)
    envs.reset(seed=0)
    queue = context.Queue()
    process = context.Process(target=work, args=(pickle.dumps(envs), queue))
    process.start()
    obs = queue.get()
    process.join()
    print(process.exitcode, np.array_equal(obs, envs.step(np.zeros((4, 6), np.float32))[0]))
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 True\n", "")


# ---- the end -------------------------------------------------------------------------------------

ENDS = {
    "idle": "",
    "sent": "envs.send(actions)",
    "sent, then deleted": "envs.send(actions); del envs",
    "sent, kept by a cycle": "envs.send(actions); envs.me = envs",
    "results not received": "envs.send(actions); envs.recv(1, max_envs=1)",
    "receiving in a daemon thread": (
        "import threading; envs.send(actions);"
        "threading.Thread(target=envs.recv, daemon=True).start(); time.sleep(0.05)"
    ),
}


def processor_time_of_children() -> float:
    """Processor time of the children that have ended [s], whoever else computes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(("end", "num_threads"), [("sent", 1), *((end, 4) for end in ENDS)])
def test_interpreter_exit_without_close(end: str, num_threads: int) -> None:
    # the environments under way are finished, the queued ones are not, thirty times as many
    under_way = """
ids = np.arange(8 * envs.num_threads)
begin = time.process_time()
envs.send(actions[ids], ids)
envs.recv(len(ids))
print(time.process_time() - begin)
"""
    script = LONG + under_way + ENDS[end] + "\nprint(time.process_time())"
    before = processor_time_of_children()
    needed, ended = map(float, run_script(script, num_threads, 8.0).split())
    total = processor_time_of_children() - before
    assert total - ended < 3.0 + 6.0 * needed


def settled_threads(wanted: int = 0) -> int:
    """The process's threads; the kernel may list one a moment longer than it can be joined."""
    gc.collect()
    until = time.monotonic() + (600.0 if wanted else 0.0)
    while (count := len(os.listdir("/proc/self/task"))) > wanted and time.monotonic() < until:
        time.sleep(0.01)
    return count


@pytest.mark.parametrize("num_threads", THREADS)
def test_destruction_without_close_ends_the_threads(num_threads: int) -> None:
    threads = settled_threads()
    for _ in range(3):
        envs = make(num_threads=num_threads)
        envs.reset(seed=0)
        envs.send(actions())
        del envs
    assert settled_threads(threads) <= threads


@pytest.mark.parametrize(
    "kwargs", [{"nonsense": 1}, {"obs_dtype": "float16"}, {"ctrl_cost_weight": "much"}]
)
def test_failed_construction_leaves_nothing_behind(kwargs: dict[str, Any]) -> None:
    threads = settled_threads()
    for _ in range(3):
        with pytest.raises((TypeError, ValueError)):
            make(num_threads=4, **kwargs)
    assert settled_threads(threads) <= threads


# ---- another MuJoCo ------------------------------------------------------------------------------

BUILT = importlib.metadata.version("mujoco")


def install_beside(
    site: pathlib.Path, mujoco_library: str | None, mujoco_version: str | None
) -> None:
    """Copies pyfastenv and NumPy into an empty site folder, with a mujoco package of our making."""
    from pyfastenv import _core

    # each from where it is: an environment may see packages of several folders
    for name in ("numpy", "gymnasium", "farama_notifications", "cloudpickle", "typing_extensions"):
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        origin = pathlib.Path(spec.origin)
        package = origin if spec.submodule_search_locations is None else origin.parent
        (site / package.name).symlink_to(package)
        libraries = package.with_name(f"{name}.libs")  # of NumPy's wheel
        if libraries.exists():
            (site / libraries.name).symlink_to(libraries)
    shutil.copytree(
        pathlib.Path(pyfastenv.__file__).parent,
        site / "pyfastenv",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    shutil.copy(_core.__file__, site / "pyfastenv")
    install_mujoco(site, mujoco_library, mujoco_version)


def install_mujoco(
    site: pathlib.Path, mujoco_library: str | None, mujoco_version: str | None
) -> None:
    """A folder that looks like MuJoCo's package."""
    if mujoco_library is not None:
        (site / "mujoco").mkdir()
        (site / "mujoco" / "__init__.py").touch()
        if mujoco_library:
            (site / "mujoco" / mujoco_library).touch()
    if mujoco_version is not None:
        (site / f"mujoco-{mujoco_version}.dist-info").mkdir()
        (site / f"mujoco-{mujoco_version}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: mujoco\nVersion: {mujoco_version}\n"
        )


def import_error(*sites: pathlib.Path) -> str:
    script = """
try:
    import pyfastenv
except ImportError as error:
    print(error)
else:
    from pyfastenv import _core
    print("imported", _core.MUJOCO_VERSION)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sites))}
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],  # -S: no site-packages but ours
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("library", "found"),
    [("libmujoco.so.3.9.9", "3.9.9"), ("", "3.9.9"), (None, None)],
    ids=["other version", "no library", "no package"],
)
def test_another_mujoco(tmp_path: pathlib.Path, library: str | None, found: str | None) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install_beside(site, library, found)
    message = import_error(site)
    assert f"built against MuJoCo {BUILT}" in message
    assert ("MuJoCo 3.9.9 is installed" if found else "MuJoCo is not installed") in message
    assert f"mujoco=={BUILT}`" in message
    assert "rebuild" in message


def test_the_core_of_the_installed_mujoco(tmp_path: pathlib.Path) -> None:
    """A package with several cores takes the one that fits, and names all where none does."""
    from pyfastenv import _core

    site = tmp_path / "site"
    site.mkdir()
    install_beside(site, None, None)
    packages = pathlib.Path(importlib.util.find_spec("mujoco").origin).parents[1]  # type: ignore
    (site / "mujoco").symlink_to(packages / "mujoco")
    core = site / "pyfastenv" / pathlib.Path(_core.__file__).name
    folder = site / "pyfastenv" / "_cores" / BUILT
    folder.mkdir(parents=True)
    core.rename(folder / core.name)
    core.write_text("no library: of another MuJoCo")
    assert import_error(site) == f"imported {BUILT}"
    (site / "mujoco").unlink()
    shutil.copy(folder / core.name, core)
    folder.rename(folder.with_name("3.1.2"))
    folder.with_name("3.1.10").mkdir()
    install_mujoco(site, "libmujoco.so.3.9.9", "3.9.9")
    message = import_error(site)
    assert (
        f"built against MuJoCo 3.1.2, 3.1.10 and {BUILT} but MuJoCo 3.9.9 is installed" in message
    )


def test_right_mujoco_without_its_library(tmp_path: pathlib.Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install_beside(site, "", BUILT)
    message = import_error(site)
    # "built against 4.0.0 but 4.0.0 is installed" would help nobody
    assert "libmujoco" in message
    assert "reinstall" in message


def test_the_source_tree_before_the_installed_package(tmp_path: pathlib.Path) -> None:
    shutil.copytree(
        pathlib.Path(pyfastenv.__file__).parent,
        tmp_path / "pyfastenv",
        ignore=shutil.ignore_patterns("_core.*", "__pycache__"),
    )
    assert "No module named 'pyfastenv._core'" in import_error(tmp_path)  # some broken package
    (tmp_path / "csrc").mkdir()
    (tmp_path / "pyproject.toml").touch()
    message = import_error(tmp_path)
    assert f"source tree ({tmp_path})" in message and "run Python in another folder" in message


def test_mujoco_in_another_site_folder(tmp_path: pathlib.Path) -> None:
    site, other = tmp_path / "site", tmp_path / "other"
    site.mkdir()
    other.mkdir()
    install_beside(site, None, None)
    spec = importlib.util.find_spec("mujoco")
    assert spec is not None and spec.origin is not None
    (other / "mujoco").symlink_to(pathlib.Path(spec.origin).parent)
    assert import_error(site, other) == f"imported {BUILT}"


# ---- memory --------------------------------------------------------------------------------------

SCARCE = """
import resource, pyfastenv
pyfastenv.make_vec("HalfCheetah-v5", 4).reset(seed=0)
for spare in range(10, 80, 10):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + spare * 2**20, resource.RLIM_INFINITY))
    try:
        pyfastenv.make_vec("Humanoid-v5", 4, num_threads=1)
    except (MemoryError, RuntimeError, ValueError):
        print("refused", end=" ")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(pyfastenv.make_vec("Humanoid-v5", 4).reset(seed=0)[0].shape)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_lack_of_memory_does_not_end_the_process(tmp_path: pathlib.Path) -> None:
    """MuJoCo ends it where it finds none, unless its errors are caught."""
    assert run_script(SCARCE, cwd=tmp_path).endswith("(4, 348)\n")  # MuJoCo writes a log
