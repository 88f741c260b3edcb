"""docs/architecture.md's list of rooms is the tree, and C++ rooms include one way."""

from __future__ import annotations

import ast
import re
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "docs").is_dir() or not (ROOT / "csrc").is_dir():
    pytest.skip("only in a clone", allow_module_level=True)

# rooms of which every file is named
NAMED = (
    *("csrc/core", "csrc/bindings", "pyfastenv/nn", "pyfastenv/vector"),
    *("pyfastenv/algorithms", "pyfastenv/training", "pyfastenv/publish", "pyfastenv/runs"),
    *("pyfastenv/sampling", "pyfastenv/tasks", "pyfastenv/planning"),
)
# headers that know nothing of ours, which rooms below theirs may include too
ALONE = {"mujoco/error_trap.h", "mujoco/owned.h", "mujoco/version.h"}
MOST_LINES = 500


def rooms() -> dict[str, str]:
    """Folder and what is said of it, in the order of the document: the upper ones first."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    listing = text.split("## Rooms", 1)[1].split("```", 2)[1]
    found: dict[str, str] = {}
    parent = room = ""
    for line in listing.strip().splitlines():
        match = re.match(r"( *)([\w/]+)/\s{2,}(.*)", line)
        if match is None:
            found[room] += "\n" + line
        elif match[2] == "pyfastenv":
            parent = room = "pyfastenv"
            found[room] = match[3]
        else:
            room = f"{parent}/{match[2]}" if match[1] else match[2]
            found[room] = match[3]
    return found


def folders(parent: str) -> set[str]:
    return {
        f"{parent}/{path.name}"
        for path in (ROOT / parent).iterdir()
        if path.is_dir() and any(path.rglob("*.py" if parent == "pyfastenv" else "*.h"))
    }


def test_rooms_are_the_folders() -> None:
    assert set(rooms()) - {"pyfastenv"} == folders("pyfastenv") | folders("csrc")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs git")
def test_no_module_is_ignored() -> None:
    """Wheels, commits and ruff leave out what .gitignore names."""
    modules = map(str, (ROOT / "pyfastenv").rglob("*.py"))
    command = ["git", "-C", str(ROOT), "check-ignore", "--no-index", *modules]
    assert subprocess.run(command, capture_output=True, text=True).stdout == ""


@pytest.mark.parametrize("room", NAMED)
def test_every_file_is_named(room: str) -> None:
    words = set(re.findall(r"\w+", rooms()[room]))
    stems = {p.stem for p in (ROOT / room).rglob("*") if p.suffix in (".cc", ".h", ".py")}
    assert sorted(stems - words - {"__init__"}) == []


def test_files_that_are_named_are_there() -> None:
    """The first column of the core's lines names files only."""
    names = [
        name
        for line in rooms()["csrc/core"].splitlines()[1:]
        for name in re.split(r"\s{2,}", line.strip())[0].split()
    ]
    there = {path.stem for path in (ROOT / "csrc" / "core").iterdir()}
    assert sorted(set(names)) == sorted(names) and set(names) == there


def test_rooms_of_cpp_include_one_way() -> None:
    order = [room.removeprefix("csrc/") for room in rooms() if room.startswith("csrc/")]
    upward = []
    for height, room in enumerate(order):
        for path in (ROOT / "csrc" / room).rglob("*"):
            if path.suffix not in (".cc", ".h"):
                continue
            for header in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
                if "/" not in header:  # installed beside each other: envs/task.h, task_frame.h
                    continue
                if order.index(header.split("/")[0]) < height and header not in ALONE:
                    upward.append(f"{path.relative_to(ROOT)}: {header}")
    assert upward == []


def imports_of(tree: ast.AST) -> set[str]:
    """What a module imports anywhere: in functions and for type checkers too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def module_graph(folder: Path) -> dict[str, set[str]]:
    """Modules of a package and those of it that each imports; packages' own names are left out."""
    files = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts): path
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    }
    return {
        name: imports_of(ast.parse(path.read_text())) & files.keys() for name, path in files.items()
    }


def test_no_python_modules_import_each_other() -> None:
    TopologicalSorter(module_graph(ROOT / "pyfastenv")).prepare()


@pytest.mark.parametrize("hidden", ["def f():\n", "if TYPE_CHECKING:\n"])
def test_a_circle_would_be_found(tmp_path: Path, hidden: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("from package import b\n")
    (package / "b.py").write_text(f"{hidden}    from package.a import name\n")
    with pytest.raises(CycleError, match="cycle"):
        TopologicalSorter(module_graph(package)).prepare()


@pytest.mark.parametrize("header", sorted(ALONE))
def test_headers_that_stand_alone_do(header: str) -> None:
    text = (ROOT / "csrc" / header).read_text()
    assert set(re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)) <= ALONE


def test_the_core_knows_neither_mujoco_nor_python() -> None:
    for path in (ROOT / "csrc" / "core").iterdir():
        assert not re.search(r"#include <(?!\w+>|pthread\.h>|unistd\.h>)", path.read_text()), path


def test_files_of_the_core_are_short() -> None:
    lengths = {p.name: len(p.read_text().splitlines()) for p in (ROOT / "csrc/core").iterdir()}
    assert max(lengths.values()) < MOST_LINES, lengths


def kernels() -> list[Path]:
    """Sources that are compiled for a vector unit that not every processor has."""
    text = (ROOT / "CMakeLists.txt").read_text()
    added = set(re.findall(r"add_kernels\((\S+\.cc) ", text))
    assert len(added) > 3
    stages = (ROOT / "csrc" / "lanes" / "stages").glob("*.cc")
    return sorted([*(ROOT / "csrc" / name for name in added), *stages])


@pytest.mark.parametrize("path", kernels(), ids=lambda path: path.name)
def test_kernels_use_no_template_that_other_files_may_use(path: Path) -> None:
    """The linker could keep the copy that only newer processors run."""
    types_and_c = {"memcpy", "integer_sequence", "make_integer_sequence"}
    assert set(re.findall(r"\bstd::(\w+)", path.read_text())) <= types_and_c
