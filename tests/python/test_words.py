"""Docstrings of the package begin with a subject, and use the field's words."""

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pyfastenv"
if not PACKAGE.is_dir():
    pytest.skip("only in a clone", allow_module_level=True)

FILES = sorted(path for path in PACKAGE.rglob("*.py"))
RIDDLE = re.compile(r'^\s*r?"""(Of|By|What) .*', re.MULTILINE)
# said plainly: value, randomness, expensive, result in, reported
WORDS = re.compile(r"\b(opinions?|dear(er|est)?|(came|comes?) to|(told|tells?) of)\b")


def slips(text: str) -> list[str]:
    return [match[0].strip() for match in (*RIDDLE.finditer(text), *WORDS.finditer(text))]


def test_the_package_speaks_plainly() -> None:
    assert len(FILES) > 100
    found = {str(path.relative_to(PACKAGE)): slips(path.read_text()) for path in FILES}
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize("text", ['"""Of joints."""', "the critic's opinion", "was told of it"])
def test_a_slip_is_found(text: str) -> None:
    assert len(slips(text)) == 1
