"""The site's code runs, its commands exist, and every public name has a place in the reference.

A page's Python blocks are one program, run from top to bottom. What a reader need not see stands in
comments of the page: ``<!-- setup … -->`` and ``<!-- check … -->`` are Python that runs there, and
``<!-- smaller`` has lines ``this => that``, replaced in the rest of the page so that it is quick.
"""

import importlib.util
import inspect
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

# before anything imports mujoco
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])

import pytest

import pyfastenv
from pyfastenv import cli, physics, planning
from pyfastenv.runs.registry import ALGORITHMS, algorithm_module

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
_PART = re.compile(
    r"^```python\n(?P<shown>.*?)^```$|^<!-- (?P<kind>setup|check|smaller)\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)
_SHELL = re.compile(r"^```(?:sh|bash|shell)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def program(page: str) -> str:
    """A page's Python, its lines where they are in the page."""
    text = (DOCS / page).read_text()
    lines: list[str] = []
    smaller: dict[str, str] = {}
    for part in _PART.finditer(text):
        if part["kind"] == "smaller":
            smaller |= dict(line.split(" => ") for line in part["hidden"].splitlines())
            continue
        code = part["shown"] or part["hidden"]
        for this in [this for this in smaller if this in code]:
            code = code.replace(this, smaller.pop(this))
        first_line = text.count("\n", 0, part.start()) + 1
        lines += [""] * (first_line - len(lines)) + code.splitlines()
    assert not smaller, f"{page} says nothing of {', '.join(smaller)} any more"
    return "\n".join(lines) + "\n"


WITH_CODE = [page for page in PAGES if "```python\n" in (DOCS / page).read_text()]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "page_" + re.sub(r"\W", "_", page.removesuffix(".md"))
    path = tmp_path / f"{name}.py"
    path.write_text(program(page))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # classes find their source by it
    spec.loader.exec_module(module)


def command_lines(page: str) -> Iterator[list[str]]:
    """The words of a page's shell lines."""
    for block in _SHELL.finditer((DOCS / page).read_text()):
        for line in block[1].replace("\\\n", " ").splitlines():
            if line.strip().startswith(("pyfastenv ", "make ")):
                yield shlex.split(line, comments=True)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_exist(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for tool, *words in command_lines(page):
        if tool == "make":
            assert words == [] or words[0] in targets, f"make {words[0]}"
            continue
        name, *options = [word for word in words if word != "&"]
        if name == "train" and options and not options[0].startswith("-"):
            check_training(options, monkeypatch)
            continue
        command = cli.COMMANDS[name]
        known = {f"--{p.replace('_', '-')}" for p in inspect.signature(command).parameters}
        if name == "sweep":  # options are the algorithm's
            own = {"--seeds", "--output"}
            config = algorithm_module(options[0]).Config
            assert {f"--{f.name.replace('_', '-')}" for f in fields(config)} | own >= {
                word for word in options if word.startswith("--")
            }
        elif name != "experiment":  # each experiment has options of its own
            unknown = {word for word in options if word.startswith("--")} - known
            assert not unknown, f"pyfastenv {name}: {unknown}"


def check_training(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether ``pyfastenv train`` takes the options; it does not train."""
    if options[-1] == "--help":
        assert options[0] in ALGORITHMS
        return
    module = algorithm_module(options[0])
    given: list[object] = []
    monkeypatch.setattr(module, "train", given.append)
    options = ["1" if word.startswith("$") else word for word in options]
    assert cli.main(["train", *options]) == 0
    assert len(given) == 1


def test_every_public_name_is_in_the_reference() -> None:
    reference = "".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    for name in pyfastenv.__all__:
        public = getattr(pyfastenv, name)
        inside = public.__module__ == "pyfastenv.errors"
        assert inside or re.search(rf"^::: pyfastenv\.{name}$", reference, re.MULTILINE), name
    for name in (*physics.__all__, *planning.__all__):
        assert re.search(rf"members: \[.*\b{name}\b", reference), name


def test_every_public_name_says_what_it_is() -> None:
    rooms = [(room, room.__all__) for room in (pyfastenv, physics, planning)]
    for room, names in rooms:
        for name in names:
            public = getattr(room, name)
            assert inspect.getdoc(public), name
            for member, value in vars(public).items() if inspect.isclass(public) else ():
                if inspect.isfunction(value) and not member.startswith("_"):
                    assert inspect.getdoc(getattr(public, member)), f"{name}.{member}"


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        if page.endswith("/appendix.md"):  # its report's
            assert "(appendix.md" in (DOCS / page).with_name("report.md").read_text(), page
        else:
            assert f": {page}\n" in navigation, page
