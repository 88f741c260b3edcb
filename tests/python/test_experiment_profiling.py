"""The experiment `profiling`: tables, loaders, the document's code; verdicts of made-up numbers."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import matplotlib
import torch

from pyfastenv.experiments import profiling
from pyfastenv.experiments.profiling import (
    BACKGROUND,
    FOREGROUND,
    LOADERS,
    OUR_BACKGROUND,
    OUR_FOREGROUND,
)
from pyfastenv.experiments.study import NEEDS_CUDA, Study

matplotlib.use("Agg")
SKIPPED = {"skipped": NEEDS_CUDA}
TRACES = {
    "PPO, cpu": {
        "iteration_ms": 100.0,
        "ranges_ms": {"env": 50.0, "update": 45.0, "the rest": 5.0},
        "trace": "ppo-cpu.trace.json",
    },
    "PPO, cuda": SKIPPED,
}
STALE = {"works": False, "error": "unexpected keyword argument 'activities'"}
OVERHEAD = {"ms": {"none": [10.0, 10.0], "CPU": [12.0, 12.0], "all": [20.0, 20.0]}}
NO_MEMORY = dict.fromkeys(("fixed", "variable", "ours"), SKIPPED)


def _loading(*waits: float) -> dict:
    return {
        name: profiling._of_batches([wait] * 4, [100.0] * 4)
        for name, wait in zip(LOADERS, waits, strict=True)
    }


def _overlap(gain: float) -> dict:
    return {
        "foreground": {"share": 0.5, "rates": [1_000.0] * 3},
        "overlap": {"share": 0.1, "rates": [gain * 1_000.0] * 3},
    }


def _memory(variable: list[float]) -> dict:
    def row(line: list[float]) -> dict:
        return {"reserved_mib": line, "allocated_mib": line, "retries": 1, "frees": 3}

    flat = row([100.0] * 20)
    return {"fixed": flat, "variable": row(variable), "ours": flat}


def _verdict(loading=None, overlap=1.2, stale=STALE, overhead=OVERHEAD, memory=NO_MEMORY) -> str:
    loading = loading or _loading(50.0, 2.0, 1.0, 0.5)
    return profiling.verdict(TRACES, loading, _overlap(overlap), stale, overhead, memory)


def test_a_trace_and_its_table(tmp_path):
    row = profiling.trace(tmp_path, "ppo", "cpu", quick=True)
    assert set(row["ranges_ms"]) >= {"env", "transfer", "forward", "update", "the rest"}
    assert sum(row["ranges_ms"].values()) == pytest.approx(row["iteration_ms"], rel=0.02, abs=0.3)
    assert json.loads((tmp_path / row["trace"]).read_text())["traceEvents"]
    assert (tmp_path / "ppo-cpu.profile.txt").exists()


def test_a_table_of_something_else():
    with pytest.raises(ValueError, match="expected a first line"):
        profiling.parse_table("nothing")


def test_the_documents_code_does_not_run():
    row = profiling.stale_code()
    assert not row["works"]
    assert "activities" in row["error"]


@pytest.mark.parametrize("name", [FOREGROUND, OUR_FOREGROUND, OUR_BACKGROUND])
def test_loaders(name):
    row = profiling.load(name, 2, updates=3)
    assert len(row["wait_ms"]) == len(row["learn_ms"]) == 2
    assert 0.0 < row["share"] < 1.0
    with pytest.raises(ValueError, match="loader: expected one of"):
        profiling.load("x", 1)


def test_verdict_when_it_holds():
    text = _verdict()
    assert "cost almost nothing holds: " in text
    assert "does not run" in text and "more the more it records holds" in text
    assert NEEDS_CUDA in text
    assert "ahead of every baseline in every row" in text
    assert "`--overlap` pays" in text


def test_verdict_when_it_does_not():
    text = _verdict(
        _loading(50.0, 60.0, 70.0, 80.0),
        overlap=0.9,
        stale={"works": True, "error": ""},
        overhead={"ms": {"none": [10.0], "CPU": [9.0], "all": [9.0]}},
    )
    assert "cost almost nothing does not hold" in text
    assert "document's code runs here" in text and "does not show in these numbers" in text
    assert "**not** ahead in 4" in text and "waits 70 against 50 ms" in text
    assert "`--overlap` does not pay" in text
    assert "holds in part" in _verdict(_loading(50.0, 20.0, 10.0, 0.5))


def test_verdict_on_the_allocator():
    jagged = [100.0, 120.0] * 10
    assert "reserved memory jagged holds" in _verdict(memory=_memory(jagged))
    assert "reserved memory jagged fails" in _verdict(memory=_memory([100.0] * 20))
    assert profiling.changes(jagged) == 17
    assert profiling.changes([1.0, 2.0] + [3.0] * 18) == 0


def test_pictures(tmp_path):
    study = Study("profiling", tmp_path, quick=True)
    study.picture("ranges", profiling.draw_ranges(TRACES), "")
    study.picture("loading", profiling.draw_loading(_loading(50.0, 1.0, 10.0, 0.5)), "")
    study.picture("allocator", profiling.draw_allocator(_memory([100.0, 120.0] * 10)), "")
    for name in ("ranges", "loading", "allocator"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_it_runs_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(profiling, "load", lambda name, count: _loading(50.0, 1.0, 10.0, 0.5)[name])
    monkeypatch.setattr(profiling, "trace", lambda *a, **k: dict(TRACES["PPO, cpu"]))
    monkeypatch.setattr(profiling, "ppo_overlap", lambda on, n: _overlap(1.2)["foreground"])
    monkeypatch.setattr(profiling, "profiler_overhead", lambda n: OVERHEAD)
    text = profiling.run(Study("profiling", tmp_path, quick=True)).read_text()
    assert text.count(NEEDS_CUDA) > 10
    assert "ui.perfetto.dev" in text
    assert BACKGROUND in text
    assert not (tmp_path / "allocator.png").exists()
