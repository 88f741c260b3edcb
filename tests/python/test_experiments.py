"""The experiments: the judge, what is kept and resumed, the models; each once at tiny sizes."""

import itertools
import json
import math
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from pyfastenv import cli
from pyfastenv.experiments import flow, pictures, placement, profiling, registry, sampling, sections
from pyfastenv.experiments.claims import compare, verdict
from pyfastenv.experiments.clock import Clock
from pyfastenv.experiments.study import Measurement, Sizes, Study, rounds

ROOT = Path(__file__).parents[2]


# ---- the judge -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numerator", "outcome", "judgement"),
    [
        ([1.0, 1.01, 0.99, 1.0, 1.0], "equal", "**does not hold**"),
        ([1.5, 1.55, 1.45, 1.5, 1.5], "more", "**holds**"),
        ([0.5, 0.55, 0.45, 0.5, 0.5], "less", "**does not hold**"),
        ([1.0, 2.0, 0.5, 1.0, 1.0], "open", "open"),
        ([1.5], "open", "open"),
    ],
)
def test_a_claim_is_judged_by_its_interval(
    numerator: list[float], outcome: str, judgement: str
) -> None:
    ratio = compare(numerator, [1.0] * len(numerator))
    assert ratio.outcome == outcome
    assert verdict(ratio, "more").split(":")[0] == judgement


def test_the_interval_is_students() -> None:
    ratio = compare([2.0, 4.0, 8.0], [1.0, 2.0, 2.0])  # logs: ln 2, ln 2, ln 4
    mean, half = math.log(2.0) * 4 / 3, 2.9200 * math.log(2.0) / 3
    assert ratio.mean == pytest.approx(math.exp(mean))
    assert ratio.low == pytest.approx(math.exp(mean - half), rel=1e-3)
    assert ratio.high == pytest.approx(math.exp(mean + half), rel=1e-3)
    assert ratio.at_most == pytest.approx(ratio.high - 1.0)
    assert compare([1.0, 1.0], [2.0, 2.0]).at_most == pytest.approx(1.0)  # half is twice the other
    # a drift that meets both contestants of a round does not count
    assert compare([1.0, 10.0, 100.0], [1.0, 10.0, 100.0]).outcome == "equal"


def test_what_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="3 cannot be paired with 2"):
        compare([1.0] * 3, [1.0] * 2)
    with pytest.raises(ValueError, match="expected positive values"):
        compare([1.0, 0.0], [1.0, 1.0])
    assert verdict(None, "more", "needs a GPU") == "not measured: needs a GPU"


def test_a_claim_is_not_judged_where_its_setting_is_not_there() -> None:
    same, faster = compare([1.0, 1.01, 0.99], [1.0] * 3), compare([2.0, 2.1, 1.9], [1.0] * 3)
    assert verdict(same, "more", lacks="needs a GPU") == (
        "not measured: needs a GPU; here it is equal within 5%"
    )
    assert verdict(faster, "more", lacks="needs a GPU").endswith("here it is more")
    assert verdict(compare([1.0], [1.0]), "more", lacks="needs two").endswith("here a single run")
    assert verdict(faster, "more", lacks="") == "**holds**: it is more"


# ---- the study -----------------------------------------------------------------------------------


class Counter:
    """A plan of five measurements that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def run(self) -> dict[str, Any]:
        self.calls += 1
        return {"ms": float(self.calls)}

    def plan(self) -> list[Measurement]:
        contestants = [({"who": who}, self.run, 1.0) for who in "ab"]
        alone = Measurement("gpu", {}, self.run, 1.0, needs_cuda=True)
        return [*rounds(2, "turns", contestants), Measurement("one", {}, self.run, 1.0), alone]


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_cuda")
def test_what_is_measured_is_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counter = Counter()
    plan = counter.plan()
    assert [(one.about["who"], one.about["round"]) for one in plan[:4]] == [
        ("a", 0), ("b", 0), ("b", 1), ("a", 1),
    ]  # fmt: skip
    study: Study = Study("flow", Sizes(output=tmp_path))
    assert study.measure(plan[:3])
    study = Study("flow", Sizes(output=tmp_path))
    assert [one.key for one in study.missing(plan)] == ["turns, who a, round 1", "one"]
    assert study.measure(plan)
    assert counter.calls == 5
    assert "2 of 6 measurements, about 2 s" in capsys.readouterr().out
    assert study.measure(plan)
    assert counter.calls == 5
    assert "all 6 measurements are in" in capsys.readouterr().out
    assert study.rounds("turns", "ms", who="b") == [2.0, 3.0]
    assert study.part("one").ms.tolist() == [5.0]


@pytest.mark.usefixtures("no_cuda")
def test_a_part_may_be_measured_later_and_elsewhere(tmp_path: Path) -> None:
    config, counter = flow.Config(output=tmp_path), Counter()
    Study("flow", replace(config, learning=False)).measure(counter.plan()[:4])
    reporting = replace(config, report_only=True)
    assert not Study("flow", reporting).sizes.learning  # so a report does not miss it
    path = tmp_path / "results.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps(state | {"machine": state["machine"] | {"cpu": "an abacus"}}))
    alone = Measurement("learning", {}, counter.run, 1.0, apart=True)
    study = Study("flow", config)
    assert study.measure([*counter.plan()[:4], alone])
    assert counter.calls == 5
    assert study.state["machine"]["cpu"] == "an abacus"
    assert study.apart["learning"]["cpu"] == state["machine"]["cpu"]
    assert Study("flow", reporting).sizes.learning
    # its own rows have one machine too
    path.write_text(path.read_text().replace(json.dumps(state["machine"]["cpu"]), '"a slide rule"'))
    more = Measurement("learning", {"seed": 2}, counter.run, 1.0, apart=True)
    with pytest.raises(ValueError, match=r"another machine \(.*slide rule"):
        Study("flow", config).measure([more])


@pytest.mark.usefixtures("no_cuda")
def test_a_study_stops_when_its_time_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counter = Counter()
    assert not Study("flow", Sizes(output=tmp_path, minutes=0.0)).measure(counter.plan())
    assert counter.calls <= 1
    assert "the same command goes on" in capsys.readouterr().out


@pytest.mark.usefixtures("no_cuda")
def test_results_that_do_not_belong_here_are_refused(tmp_path: Path) -> None:
    config = flow.Config(output=tmp_path)
    Study("flow", config).measure(Counter().plan()[:1])
    with pytest.raises(ValueError, match=r"measured with steps 3000 \(now 7\); choose another"):
        Study("flow", replace(config, steps=7))
    with pytest.raises(ValueError, match="results of flow, not of placement"):
        Study("placement", placement.Config(output=tmp_path))
    path = tmp_path / "results.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps(state | {"machine": state["machine"] | {"cpu": "an abacus"}}))
    with pytest.raises(ValueError, match=r"another machine \(.*abacus.*another --output"):
        Study("flow", config).measure(Counter().plan())
    # a report can be made of them anywhere, of the sizes that were measured
    assert Study("flow", replace(config, steps=7, report_only=True)).sizes.steps == 3_000
    with pytest.raises(ValueError, match="measurements are missing, such as parts, program"):
        registry.run("flow", replace(config, report_only=True))
    del state["form"]
    path.write_text(json.dumps(state))
    with pytest.raises(ValueError, match="results of an older form"):
        Study("flow", config)
    path.write_text("{")
    with pytest.raises(ValueError, match="not an experiment's results"):
        Study("flow", config)
    with pytest.raises(ValueError, match="no results to report"):
        Study("flow", flow.Config(output=tmp_path / "none", report_only=True))


def test_a_clock_tells_mine_from_others() -> None:
    with Clock() as clock:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
    assert clock.seconds >= 0.1
    assert 0.0 < clock.cpus <= 1.2
    assert clock.row().keys() == {"seconds", "cpus", "others", "steal"}


# ---- the command line ----------------------------------------------------------------------------


def test_sizes_are_options() -> None:
    line = "sampling --workers 8 --envs-per-worker 4000 --timeout 1e-4 --iterations 1000"
    name, sizes = registry.parse(line.split())
    expected = sampling.Config(workers=8, envs_per_worker=(4_000,), timeout=(1e-4,))
    assert (name, sizes) == ("sampling", expected)
    name, sizes = registry.parse(["flow", "--quick", "--steps", "9", "--no-whole"])
    assert sizes == replace(flow.QUICK, steps=9, whole=False)
    name, sizes = registry.parse(["placement", "--sizes", "128", "--episodes", "500"])
    assert sizes == placement.Config(sizes=("128",))
    traced = profiling.Config(traces=Path("somewhere"))  # where they are kept is no size
    assert traced.measured() == profiling.Config().measured()
    # nor is what is left for another time
    assert flow.Config(learning=False).measured() == flow.Config().measured()


def test_names_are_checked_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_status:
        cli.main(["experiment", "nothing"])
    assert exit_status.value.code == 2
    assert "sampling" in capsys.readouterr().err


# ---- benchmarks ----------------------------------------------------------------------------------


def test_a_benchmark_keeps_its_sections_one_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = tmp_path / "turns.md"
    template.write_text("{% for name in results %}{{ name }} {% endfor %}{{ fast.rows[0].rate }}")

    def fast() -> Any:
        yield {"rate": 1.5}
        yield {"rate": 2.5}

    def broken() -> Any:
        yield {"rate": 3.5}
        raise RuntimeError("no more")

    parts = {"whole": lambda: {"rate": 7}, "fast": fast, "broken": broken}
    options = sections.Options(output=tmp_path / "out", only=("fast", "broken"))
    with pytest.raises(SystemExit, match="turns: broken failed"):
        sections.run("turns", parts, options, template=template)
    assert "rate 1.5" in capsys.readouterr().out
    path = tmp_path / "out" / "turns.json"
    kept = json.loads(path.read_text())
    assert [row["rate"] for row in kept["fast"]["rows"]] == [1.5, 2.5]
    assert [row["rate"] for row in kept["broken"]["rows"]] == [3.5]
    path.write_text(json.dumps({"another": {"rate": 9}} | kept))  # whose program knows more
    sections.run("turns", parts, replace(options, only=("whole",)), template=template)
    both = json.loads(path.read_text())
    assert list(both) == [*parts, "another"] and both["another"] == {"rate": 9}
    assert both["fast"] == kept["fast"] and both["whole"]["rate"] == 7
    page = path.with_suffix(".md")
    assert page.read_text() == "whole fast broken another 1.5\n"
    page.unlink()
    sections.run("turns", parts, replace(options, report_only=True), template=template)
    assert page.exists() and json.loads(path.read_text()) == both
    with pytest.raises(ValueError, match="only: expected some of whole, fast, broken, got slow"):
        sections.run("turns", parts, replace(options, only=("slow",)))
    flat = sections.run("flat", {"rows": fast}, replace(options, only=()), flat=True)
    assert [row["rate"] for row in flat["rows"]] == [1.5, 2.5] and "machine" in flat
    flat["machine"]["cpu"] = "another"
    path.write_text(json.dumps(flat))  # facts of one machine, for both sections
    with pytest.raises(ValueError, match=r"rows were measured on another, and this is .*: measure"):
        sections.run(
            "turns", {"rows": fast, "more": fast}, replace(options, only=("more",)), flat=True
        )


# ---- the experiments -----------------------------------------------------------------------------


def test_the_chain_drops_one_habit_after_the_other() -> None:
    programs = list(flow.chain().values())
    for before, after, (_, changes) in zip(programs[:-1], programs[1:], flow.REMEDIES, strict=True):
        assert before != after == replace(before, **changes)
    assert programs[-1].amp and not programs[-1].anomaly_mode


def test_parts_are_scaled_to_the_documents_sizes() -> None:
    config = flow.Config(
        part_steps=2, part_updates=10, part_epochs=3, part_states=1_000, part_agent_updates=4
    )
    assert flow.per_step(dict.fromkeys(flow.PARTS, 1_000.0), config) == {
        "environment step": 500.0,
        "20 SAC updates": 2_000.0,
        "rollout at every step": 1_000.0,
        "fits of the model": pytest.approx(40.0),
        "rollouts of the model": pytest.approx(400.0),
        "updates of the flow": 1.0,
        "agent that improves the model": pytest.approx(200.0),
    }


def test_the_documents_code_fails_as_printed_and_runs_mended() -> None:
    row = profiling.stale_code()
    assert "unexpected keyword argument" in row["printed"]
    assert row["mended"] == ""


TINY: dict[str, dict[str, Any]] = {
    "sampling": {
        "envs_per_worker": (2, 4), "workers": 2, "iterations": 4, "rounds": 1, "network_rounds": 1,
        "fewer_workers": (1,), "networks": ("64x64", "8x8"), "objects_per_worker": 1,
    },
    "placement": {"sizes": ("8",), "episodes": 21, "table_rounds": 1, "grid_rounds": 1, "seeds": 1},
    "flow": {"rounds": 1, "real": 300, "steps": 2, "slow_steps": 1, "learning_steps": 2,
             "rollout_lengths": (1,), "part_states": 50, "max_epochs": 1},
    "profiling": {"trainers": ("ppo",), "updates": (1,), "batches": 1, "rounds": 1, "repeats": 1,
                  "loaders": ("gymnasium in the loop", "ours in the loop", "ours, Collector",
                              "DataLoader, 1 worker")},
}  # fmt: skip


def table_widths(text: str) -> Iterator[set[int]]:
    """The numbers of cells in each Markdown table's rows."""
    lines = text.splitlines()
    for is_table, rows in itertools.groupby(lines, lambda line: line.startswith("|")):
        if is_table:
            yield {row.count("|") for row in rows}


@pytest.mark.usefixtures("no_cuda")
# the others' short versions run in `make experiments-quick`
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "profiling")) for name in TINY]
)
def test_each_leaves_a_report_and_can_make_it_again(name: str, tmp_path: Path) -> None:
    module = import_module(f"pyfastenv.experiments.{name}")
    config = replace(module.QUICK, output=tmp_path, **TINY[name])
    (path,) = registry.run(name, config)
    text = path.read_text() + (tmp_path / "appendix.md").read_text()
    assert "nan" not in text.split()
    widths = list(table_widths(text))
    assert len(widths) >= 6 and all(len(each) == 1 for each in widths)
    for picture in (line for line in text.splitlines() if line.startswith("![")):
        file = picture.rpartition("(")[2].rstrip(")")
        assert (tmp_path / file).stat().st_size > 10_000
    rows = json.loads((tmp_path / "results.json").read_text())["measurements"]
    assert len(rows) == len([one for one in module.plan(config) if not one.needs_cuda])
    path.unlink()
    (again,) = registry.run(name, module.Config(output=tmp_path, report_only=True))
    assert again.read_text() + (tmp_path / "appendix.md").read_text() == text


@pytest.mark.parametrize("name", registry.EXPERIMENTS)
def test_a_published_report_is_a_page_made_of_its_figures(name: str, tmp_path: Path) -> None:
    folder = ROOT / "docs" / "results" / name
    shutil.copy(folder / "results.json", tmp_path)
    module = import_module(f"pyfastenv.experiments.{name}")
    registry.run(name, module.Config(output=tmp_path, report_only=True))
    for page in ("report.md", "appendix.md"):
        assert (tmp_path / page).read_text() == (folder / page).read_text()
    text = (folder / "report.md").read_text()
    assert text.splitlines()[2].startswith(f"`pyfastenv experiment {name}`, ")
    assert len([word for word in text.split() if any(map(str.isalnum, word))]) <= 900


# ---- pictures ------------------------------------------------------------------------------------


def test_panels_that_share_rows_keep_each_name_beside_its_own_points() -> None:
    _, axes = pictures.panels(2, columns=2, sharey=True)
    groups = [{"ours": [4.0], "theirs": [1.0], "slow": [2.0]}, {"slow": [3.0], "new": [5.0]}]
    pictures.points_side_by_side(axes, groups)
    labels = [label.get_text() for label in axes[0].get_yticklabels()]  # the left panel's alone
    names = dict(zip(axes[0].get_yticks(), labels, strict=True))
    for panel, rows in zip(axes, groups, strict=True):
        drawn = [line for line in panel.get_lines() if line.get_marker() == "o"]
        found = {names[line.get_ydata()[0]]: line.get_xdata()[0] for line in drawn}
        assert found == {name: values[0] for name, values in rows.items()}
