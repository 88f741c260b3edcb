"""What a release says of itself agrees in all places."""

from __future__ import annotations

import re
import resource
import runpy
import subprocess
import sys
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


def cpu_seconds(script: str) -> float:
    """What a process of its own costs: the least of three."""
    costs = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-P", "-c", script], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(costs)


def test_importing_costs_little_beside_what_it_needs() -> None:
    needed = cpu_seconds("import numpy, gymnasium.envs.registration, importlib.metadata")
    assert cpu_seconds("import pyfastenv") < needed + 0.1


def test_importing_loads_nothing_else() -> None:
    script = (
        "import sys, pyfastenv; print(*{'torch', 'mujoco', 'numba', 'tyro'} & set(sys.modules))"
    )
    assert run_script(script).split() == []


def test_the_versions_page_is_what_was_measured() -> None:
    matrix = runpy.run_path(str(ROOT / "release" / "matrix.py"))
    page = (ROOT / "docs" / "versions.md").read_text()
    assert matrix["written"](page, matrix["read"]()) == page
    cell = {"mujoco": "3.3.0", "gymnasium": "1.4.0", "python": "3.11", "platform": "Linux x86_64"}
    cell |= {"passed": 1, "failed": 0, "lanes": 2, "mj_step": 3}
    other = matrix["written"](page, [cell])
    assert other.count("| 3.3.0 | 1.4.0 | 3.11 | Linux x86_64 | 1 | 0 | 2 | 3 |") == 1
