"""Every figure in README and docs is what a JSON file in the repository says."""

from __future__ import annotations

import re
import runpy

import figures
import pytest
from figure_constants import CONSTANTS

if not (figures.ROOT / "bench" / "results").is_dir():
    pytest.skip("the measurements are not in a source distribution", allow_module_level=True)

# what looks like a measurement: 12,345 and 1.5; 3 with a unit; a table's cell that is a number
_FIGURE = re.compile(
    r"""(?<![\w.\-/]) [−-]? (?:
        \d{1,3} (?:,\d{3})+ (?:\.\d+)?
      | \d+\.\d+ (?! [\d.]*\.\d)
      | \d+ (?= \s? (?: % | × | ms\b | µs\b | ns\b | s\b | [KMG]i?B\b | M\b | minutes?\b
                      | seconds?\b | hours?\b | times\b | steps/s ) )
    ) | (?<= \|\  ) \** \d+ \** (?= \ \| )""",
    re.VERBOSE,
)
_NO_PROSE = (
    re.compile(r"```.*?```", re.DOTALL),  # code
    re.compile(r"<!--.*?-->", re.DOTALL),  # code that readers do not see
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\]\([^)]*\)"),  # where links lead
    re.compile(r"\[\d{4}\.\d{5}\]"),  # arXiv's numbers
)
DOCUMENTS = figures.claims()


def blank(text: str, start: int, end: int) -> str:
    return text[:start] + re.sub(r"\S", " ", text[start:end]) + text[end:]


def without_sources(document: str, claims: list[figures.Claim], constants: list[str]) -> list[str]:
    """The lines with figures that neither a claim nor a constant accounts for."""
    rest = document
    for one in claims:
        match = one.find(document)
        rest = blank(rest, match.start(), match.end())
    for constant in constants:
        if constant.startswith("#"):
            start = document.index(f"{constant}\n")
            following = re.search(r"^#", document[start + len(constant) :], re.MULTILINE)
            end = start + len(constant) + following.start() if following else len(document)
        else:
            pattern = re.sub(r"(?:\\\s)+", r"\\s+", re.escape(constant))
            found = re.search(pattern, document)
            assert found, f"nothing says {constant!r} any more"
            start, end = found.span()
        rest = blank(rest, start, end)
    for pattern in _NO_PROSE:
        rest = pattern.sub(lambda match: re.sub(r"\S", " ", match[0]), rest)
    lines = zip(rest.splitlines(), document.splitlines(), strict=True)
    return [
        f"{number}: {found[0]} in: {line}"
        for number, (left, line) in enumerate(lines, 1)
        for found in _FIGURE.finditer(left)
    ]


def test_the_model_of_many_cores_is_what_was_measured() -> None:
    scaling = runpy.run_path(str(figures.ROOT / "bench" / "python" / "scaling.py"))
    result = figures.read("bench/results/scaling.json")
    page = (figures.ROOT / "docs" / "scaling.md").read_text()
    assert scaling["written"](page, result) == page
    costs, rate = scaling["costs"](result), scaling["rate"]
    for num_envs in (64, 32_000):
        rates = [rate("HalfCheetah-v5", num_envs, cores, costs) for cores in (1, 2, 16, 64, 256)]
        assert all(r < c * rates[0] for r, c in zip(rates[1:], (2, 16, 64, 256), strict=True))
        assert rate("HalfCheetah-v5", num_envs, 64, costs, 1, True) <= rates[3]
        assert rate("HalfCheetah-v5", num_envs, 64, costs, 128) > rates[3]


def test_the_walk_is_what_was_measured() -> None:
    table = runpy.run_path(str(figures.ROOT / "bench" / "python" / "ten_minutes.py"))["table"]
    walk = figures.read("docs/results/ten_minutes.json")
    assert all(row["status"] == 0 for row in walk["steps"])
    assert table(walk) in (figures.ROOT / "docs" / "ten_minutes.md").read_text()


@pytest.mark.parametrize("path", DOCUMENTS)
def test_figures_are_the_measured_ones(path: str) -> None:
    document = (figures.ROOT / path).read_text()
    for one in DOCUMENTS[path]:
        assert one.find(document).groups() == one.values, f"{path}: {one.text} (make figures)"


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_figure_has_a_source(path: str) -> None:
    document = (figures.ROOT / path).read_text()
    constants = CONSTANTS.get(path, [])
    assert without_sources(document, DOCUMENTS[path], constants) == []


def test_a_figure_without_a_source_is_found() -> None:
    document = "## Speed\nIt is 4.3 times as fast (`1.5` of 7):\n\n| HalfCheetah | 976 | **12** |\n"
    assert [line.split(":")[0] for line in without_sources(document, [], [])] == ["2", "4", "4"]
    speed = figures.claim("It is {} times", "4.4")
    table = figures.claim("| HalfCheetah | {} | **{}** |", "976", "12")
    assert without_sources(document, [speed, table], []) == []
    assert len(without_sources(document, [speed], [])) == 2
    assert without_sources(document, [], ["## Speed"]) == []
    assert len(without_sources(document, [table], ["4.3 times as fast"])) == 0


def test_figures_are_written_anew() -> None:
    document = "| a | 1,000 | 2 |\nand ≥ 240 s,\nor 0.5 of it"
    claims = [
        figures.claim("| a | {} | {} |", "12", "3.5"),
        figures.claim("and {} s, or {} of it", "≥ 60", "0.75"),
    ]
    assert figures.rewritten(document, claims) == "| a | 12 | 3.5 |\nand ≥ 60 s,\nor 0.75 of it"
    with pytest.raises(AssertionError, match="0 places, expected 1"):
        figures.rewritten("nothing", claims)
