"""What a release says of itself agrees in all places."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

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
