"""A release's version, licence and changelog agree in all places."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from scripts import run_script

import pyfastenv

ROOT = Path(__file__).parents[2]


def project() -> dict[str, str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


def test_the_version_is_one() -> None:
    assert project()["version"] == pyfastenv.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == pyfastenv.__version__  # type: ignore[index]
    assert project()["license"] in citation


def test_the_changelog_has_sections_in_order() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    releases = [line[3:] for line in lines if line.startswith("## ")]
    assert releases[0] == "Unreleased"
    for release in releases[1:]:
        assert re.fullmatch(r"\d+\.\d+\.\d+ – \d{4}-\d{2}-\d{2}", release), release
    assert releases[1].startswith(f"{pyfastenv.__version__} ")
    kinds = {line[4:] for line in lines if line.startswith("### ")}
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_issue_templates_are_forms(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    form = yaml.safe_load(path.read_text())
    if path.name == "config.yml":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids) > 0


def test_importing_loads_little_beside_what_it_needs() -> None:
    """A few small modules of ours; torch, mujoco, numba, tyro and the rest come when asked for."""
    loaded = "; import sys; print(*sys.modules)"
    needed = run_script("import numpy, gymnasium.envs.registration, importlib.metadata" + loaded)
    modules = set(run_script("import pyfastenv" + loaded).split())
    assert not {"torch", "mujoco", "numba", "tyro"} & modules
    others = modules - set(needed.split())
    assert "pyfastenv._core" in others
    assert {name.partition(".")[0] for name in others} == {"pyfastenv"}
    assert len(others) < 15


def test_wheels_have_cores_for_both_ends_of_the_range() -> None:
    """And for nothing outside it."""
    targets = runpy.run_path(str(ROOT / "release" / "targets.py"))
    (wanted,) = (d for d in project()["dependencies"] if d.startswith("mujoco"))
    oldest, newest = re.fullmatch(r"mujoco>=(\d+\.\d+),<=(\d+\.\d+\.\d+)", wanted).groups()  # type: ignore[union-attr]
    assert targets["VERSIONS"][0] == newest
    assert targets["VERSIONS"][-1] == f"{oldest}.0"
    numbers = [[int(n) for n in version.split(".")] for version in targets["VERSIONS"]]
    assert sorted(numbers, reverse=True) == numbers


def test_the_versions_page_is_what_was_measured() -> None:
    matrix = runpy.run_path(str(ROOT / "release" / "matrix.py"))
    page = (ROOT / "docs" / "versions.md").read_text()
    assert matrix["written"](page, matrix["read"]()) == page
    place = {"mujoco": "3.3.0", "python": "3.12", "platform": "Linux x86_64"}
    tested = {"gymnasium": "1.4.0", "passed": 1, "failed": 0, "lanes": 2, "mj_step": 3}
    cells = [
        place | tested,
        place | {"python": "3.11", "built": True},
        place | {"python": "3.14", "ran": "an example"},
        place | {"mujoco": "3.4.0"} | tested | {"failed": 5},
    ]
    other = matrix["written"](page, cells)
    assert "| Linux x86_64 | 3.3.0 | built | passed | not tried | run: an example |\n" in other
    assert "| Linux x86_64 | 3.4.0 | not tried | **5 failed** | not tried | not tried |\n" in other
    assert other.count("| 3.3.0 | 1.4.0 | 3.12 | Linux x86_64 | 1 | 0 | 2 | 3 |\n") == 1


def test_what_is_found_out_later_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = runpy.run_path(str(ROOT / "release" / "matrix.py"))
    monkeypatch.setitem(matrix["add"].__globals__, "RESULTS", tmp_path / "versions.json")
    place = {"mujoco": "3.3.0", "python": "3.12", "platform": "Linux x86_64"}
    for new in ({"built": True}, {"mujoco": "3.11.0"}, {"ran": "an example"}):
        matrix["add"](place | new)
    newest, oldest = matrix["read"]()
    assert newest == place | {"mujoco": "3.11.0"}
    assert oldest == place | {"built": True, "ran": "an example"}
