"""Every span of README and docs says what the JSON files in the repository say."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("pandas")

BENCH = Path(__file__).parents[2] / "bench"
if not (BENCH / "results").is_dir():
    pytest.skip("the measurements are not in a source distribution", allow_module_level=True)
sys.path.append(str(BENCH / "python"))  # tests/fuzz has names of its own

import figures  # noqa: E402
import scaling  # noqa: E402

PAGES = [path for path in figures.pages() if "<!--=" in path.read_text()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_figures_are_the_measured_ones(path: Path) -> None:
    page = path.read_text()
    assert figures.rendered(page) == page, "make figures"


def test_pages_have_figures() -> None:
    count = {path.stem: len(figures.SPAN.findall(path.read_text())) for path in PAGES}
    assert count["README"] > 20 and sum(count.values()) > 150


def test_a_figure_is_written_anew() -> None:
    page = 'It is <!--=ratio("tasks", "Ant-v5", 64, "EnvPool"):.1f-->0.1<!--/--> times'
    page += '\n\n<!--="| a |"-->\n<!--/-->'
    new = figures.rendered(page)
    measured = figures.contest("tasks", "Ant-v5", 64)["ratios"]["EnvPool"]["median"]
    assert f":.1f-->{measured:.1f}<!--/--> times" in new
    assert new.endswith('<!--="| a |"-->\n| a |\n<!--/-->')
    assert figures.rendered(new) == new


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ('is <!--=ratio("tasks", "Ant-v6", 64, "EnvPool")-->1<!--/-->', "Ant-v6.*ValueError"),
        ("is <!--=unknown()-->1<!--/-->", "unknown.*NameError"),
        ("is <!--=1-->1", "not closed"),
        ("is <!--=1-->1 and <!--=2-->2<!--/-->", "not closed"),
        ("a\n<!--=1-->1<!--/--> b", "begins a line"),
        ("is <!--=1 if '--' else 2-->1<!--/-->", "two hyphens"),
    ],
)
def test_a_span_with_a_mistake_is_named(page: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        figures.rendered(page)


def test_the_model_of_many_cores_is_what_was_measured() -> None:
    costs, rate = scaling.costs(figures.read("bench/results/scaling.json")), scaling.rate
    for num_envs in (64, 32_000):
        rates = [rate("HalfCheetah-v5", num_envs, cores, costs) for cores in (1, 2, 16, 64, 256)]
        assert all(r < c * rates[0] for r, c in zip(rates[1:], (2, 16, 64, 256), strict=True))
        assert rate("HalfCheetah-v5", num_envs, 64, costs, 1, True) <= rates[3]
        assert rate("HalfCheetah-v5", num_envs, 64, costs, 128) > rates[3]


def test_the_walk_came_to_its_end() -> None:
    walk = figures.read("docs/results/ten_minutes.json")["steps"]
    assert walk and all(row["status"] == 0 for row in walk)
