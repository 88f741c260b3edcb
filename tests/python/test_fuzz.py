"""The fuzzers' short versions (``make fuzz`` runs the long ones); they see what is wrong."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import api
import batches
import children
import mjcf
import mujoco
import numpy as np
import pytest
import settings
import simulations
from kinds import KINDS
from session import Session

FOLDER = str(Path(api.__file__).parent)
POLE = """<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1" pos="0 0 1"/></body>
  </worldbody></mujoco>"""


def counted(result: dict[str, Any]) -> dict[str, int]:
    return {name: result.get(name, 0) for name in batches.COUNTED}


def test_random_calls(tmp_path: Path) -> None:
    sizes = ["--sessions", "72", "--calls-per-session", "200", "--workers", "1"]
    results = list(api.fuzz(["--seed", "20", "--folder", str(tmp_path), *sizes]))
    assert {result["kind"] for result in results} == {"right"}, results
    assert not list(tmp_path.iterdir())
    counts: Counter[str] = sum((Counter(counted(result)) for result in results), Counter())
    assert counts["calls"] >= 5_000
    assert counts["refused"] > 400
    assert counts["own_rows"] > 2_000
    assert counts["gymnasium_rows"] > 200


def test_broken_models(tmp_path: Path) -> None:
    results = list(mjcf.fuzz(["--seed", "20", "--files", "60", "--workers", "1"], tmp_path))
    counts = Counter(result["kind"] for result in results)
    assert counts.keys() <= set(mjcf.PROGRAM.fine), results
    assert counts["refused"] > 8
    assert counts["stepped"] > 8


def test_random_batches() -> None:
    """Of simulations, beside mujoco.batch's."""
    program = simulations.PROGRAM
    results = list(program.results(["--seed", "2", "--batches", "6", "--workers", "1"]))
    wrong = [result for result in results if result["kind"] not in program.fine]
    assert not wrong, wrong
    assert sum(result.get("steps", 0) for result in results) > 1_000, "lanes did nothing"


# ---- what goes wrong is seen ---------------------------------------------------------------------


def run(session: Session, names: list[str], fault: str | None = None) -> None:
    """Calls by name, each with a seed of its own."""
    for seed, name in enumerate(names):
        rng = random.Random(seed)
        session.run(KINDS[name].plan(session, rng, fault), rng)


@pytest.fixture
def session() -> Any:
    drawn = settings.draw(1, settings.IDS.index("HalfCheetahDir-v5"))
    chosen = replace(
        drawn,
        num_envs=3,
        mode="SameStep",
        limit=3,
        obs_dtype=None,
        infos=True,
        copy=True,
        kwargs={},
    )
    session = Session(chosen)
    run(session, ["first_reset", "step", "step", "step", "stats"])
    yield session
    session.close()


def test_a_wrong_reward_is_seen(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    right = session.pool.step

    def wrong(actions: Any) -> Any:
        result = right(actions)
        result[1][2] = np.nextafter(result[1][2], np.inf)
        return result

    monkeypatch.setattr(session.pool, "step", wrong)
    with pytest.raises(AssertionError, match="environment 2: reward"):
        run(session, ["step"])


def test_a_refused_call_that_moves_something_is_seen(session: Session) -> None:
    def call() -> None:
        session.pool.step(session.actions[:3])
        raise ValueError("no")

    plan = replace(
        KINDS["step"].plan(session, random.Random(0), None), call=call, errors={ValueError}
    )
    looking = random.Random(1)  # its first draw is below a fifth
    assert random.Random(1).random() < 0.2
    with pytest.raises(AssertionError, match="something moved"):
        session.run(plan, looking)


@pytest.mark.parametrize(("fault", "error"), [("shape", ValueError), (None, None)])
def test_another_exception_than_the_due_one_is_seen(
    session: Session, fault: str | None, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(actions: Any) -> Any:
        raise KeyError("what")

    monkeypatch.setattr(session.pool, "step", wrong)
    due = error.__name__ if error else "a result"
    with pytest.raises(AssertionError, match=f"expected {due}, got KeyError"):
        run(session, ["step"], fault)


def test_a_wrong_bit_of_a_batch_is_seen() -> None:
    model = mujoco.MjModel.from_xml_string(POLE)
    pair = simulations.Pair(model, np.random.default_rng(0))
    right = pair.ours.step

    def wrong(*args: Any, **kwargs: Any) -> None:
        right(*args, **kwargs)
        pair.ours.state[0, 1] = np.nextafter(pair.ours.state[0, 1], 9.0)

    pair.ours.__dict__["step"] = wrong
    pair.step()
    with pytest.raises(AssertionError, match=r"step: state\[0, 1\]"):
        pair.compare("step")
    pair.ours = MagicMock()
    with pytest.raises(AssertionError, match=r"bad call .* was not refused"):
        pair.bad()


@pytest.mark.parametrize("said", ["", "state differs"])
def test_one_batch_ends_in_its_verdict(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(pair: simulations.Pair) -> None:
        assert not said, said

    monkeypatch.setattr(simulations.Pair, "run", run)
    monkeypatch.setattr("sys.argv", ["simulations.py", "--only", "0"])
    assert simulations.PROGRAM.main("batches", simulations._show) == bool(said)


def test_a_call_that_should_be_refused_is_seen(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.pool, "step", lambda actions: None)
    with pytest.raises(AssertionError, match="expected ValueError, got a result"):
        run(session, ["step"], "bad")


def test_a_view_that_is_overwritten_too_early_is_seen(session: Session) -> None:
    obs = session.pool.step(session.actions[:3])[0]  # unknown to the model: only views are checked
    session._hold((obs,))
    obs += 1.0
    with pytest.raises(AssertionError, match="overwritten"):
        session._hold(())


def test_a_program_repeats_and_shortens(tmp_path: Path) -> None:
    """A file of calls, as a failure leaves it, runs again."""
    drawn = settings.draw(3, settings.IDS.index("CartPole-v1"))
    calls = [api.Call("first_reset", 1, None)] + [api.Call("step", i, None) for i in range(5)]
    program = api.Program({**api.asdict(drawn), "limit": 0}, [*calls, api.Call("step", 9, "bad")])
    program.write(tmp_path / "program.txt")
    assert api.Program.read(tmp_path / "program.txt") == program
    outcome = children.run(Path(api.__file__), ["--replay", str(tmp_path / "program.txt")], 60.0)
    assert outcome.good, outcome.errors
    assert len(outcome.output.splitlines()) == len(program.calls)


# ---- children ------------------------------------------------------------------------------------

ENDS = {
    "ok": "pass",
    "wrong": "raise SystemExit(children.FAILED)",
    "error": "raise KeyError",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGABRT": "os.abort()",
    "hang": "children.expect_within(0.2); time.sleep(60)",
}


@pytest.mark.parametrize("kind", ENDS)
def test_ends_of_children(tmp_path: Path, kind: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"import os, signal, sys, time\nsys.path.insert(0, {FOLDER!r})\n"
        f"import children\nchildren.guard()\n{ENDS[kind]}\n"
    )
    assert children.run(program, [], 60.0).kind == kind


@pytest.mark.skipif(children.BOUNDED_BY_SANITIZER, reason="the sanitizer bounds memory")
def test_a_child_that_wants_too_much_memory_gets_none(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {FOLDER!r})\n"
        "import children\nchildren.guard(2**30)\n"
        "try:\n    bytearray(2**31)\nexcept MemoryError:\n    print('none')\n"
    )
    assert children.run(program, [], 60.0).output == "none\n"


# ---- mutations -----------------------------------------------------------------------------------


def test_mutations_are_many_and_repeatable() -> None:
    texts = {mjcf.draw(5, number)[1] for number in range(20)}
    assert len(texts) == 20
    assert texts == {mjcf.draw(5, number)[1] for number in range(20)}
