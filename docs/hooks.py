"""Additions of the site to docs/: pages of files that the documents link to, and the commands.

Documents link to sources as they do in the repository, ``../pyfastenv/nn/optim.py``. Each such
file becomes a page under ``source/``, so that no link leads out of the site.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
SOURCE = PurePosixPath("source")
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>~?")
_LANGUAGES = {".py": "python", ".h": "cpp", ".cc": "cpp", ".json": "json", ".toml": "toml"}
_PICTURES = (".png", ".svg", ".gif")
_SPANS = re.compile(r"<!--=.*?-->|<!--/-->", re.DOTALL)  # of bench/python/figures.py
_COMMANDS, _ENVIRONMENTS = "<!-- commands -->", "<!-- environments -->"
_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages of files that the documents link to."""
    documents = [file.src_uri for file in files if file.src_uri.endswith(".md")]
    waiting = [path for name in documents for path in _outside(name, ROOT / "docs" / name)]
    seen: set[PurePosixPath] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not (ROOT / path).exists():
            continue  # a missing file stays a broken link, which the strict build refuses
        seen.add(path)
        for file in _files(path, config):
            files.append(file)
        if (ROOT / path).is_dir():
            waiting += [path / name.name for name in _entries(ROOT / path)]
        elif path.suffix == ".md":
            waiting += _targets(path.parent, (ROOT / path).read_text())
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Leads links out of docs/ to the pages made for them; lists commands and environments; takes
    the marks of figures away."""
    markdown = _SPANS.sub("", markdown)
    for marker, made in ((_COMMANDS, commands), (_ENVIRONMENTS, environments)):
        if marker in markdown:
            markdown = markdown.replace(marker, made())
    name = PurePosixPath(page.file.src_uri)
    if name.parts[0] == SOURCE.name:
        return markdown

    def lead(match: re.Match[str]) -> str:
        path = _repository_path(PurePosixPath("docs") / name.parent, match[2])
        if path is None or path.parts[0] == "docs" or not (ROOT / path).exists():
            return match[0]
        there = os.path.relpath(_page_of(path), name.parent)
        return f"{match[1]}{there}{match[3]}"

    return _LINK.sub(lead, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Docstrings say ``:func:`name```; a page shows the name."""
    return _ROLE.sub("<code>", html)


def _outside(name: str, path: Path) -> list[PurePosixPath]:
    folder = PurePosixPath("docs") / PurePosixPath(name).parent
    return [target for target in _targets(folder, path.read_text()) if target.parts[0] != "docs"]


def _targets(folder: PurePosixPath, text: str) -> list[PurePosixPath]:
    """The repository's files that a text in a folder links to."""
    found = [_repository_path(folder, match[2]) for match in _LINK.finditer(text)]
    return [path for path in found if path is not None]


def _repository_path(folder: PurePosixPath, link: str) -> PurePosixPath | None:
    """Where a relative link leads, from the repository's root; None: to a site, or outside."""
    if ":" in link or link.startswith("/"):
        return None
    path = PurePosixPath(os.path.normpath(folder / link))
    return None if path.parts[:1] in ((), ("..",)) else path


def _page_of(path: PurePosixPath) -> PurePosixPath:
    if (ROOT / path).is_dir():
        return SOURCE / path / "index.md"
    if path.suffix in (".md", *_PICTURES):
        return SOURCE / path
    return SOURCE / f"{path}.md"


def _entries(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.suffix in _LANGUAGES and not path.name.startswith("_")
    )


def _files(path: PurePosixPath, config: Any) -> list[File]:
    """The site's file that stands for one of the repository's."""
    place = ROOT / path
    uri = _page_of(path).as_posix()
    if path.suffix in _PICTURES:
        return [File.generated(config, uri, content=place.read_bytes())]
    if place.is_dir():
        lines = [f"- [{entry.name}]({entry.name}.md)" for entry in _entries(place)]
        text = f"# {path}\n\n" + "\n".join(lines)
    elif path.suffix == ".md":
        text = place.read_text()
        text = _LINK.sub(lambda match: _within(path, match), text)
    else:
        contents = place.read_text()
        text = f"# {path}\n\n````{_LANGUAGES.get(path.suffix, 'text')}\n{contents}\n````\n"
    return [File.generated(config, uri, content=_NOT_SEARCHED + text)]


def _within(path: PurePosixPath, match: re.Match[str]) -> str:
    """A link of a page under source/, which lies deeper than its original."""
    target = _repository_path(path.parent, match[2])
    if target is None or not (ROOT / target).exists():
        return match[0]
    page = target.relative_to("docs") if target.parts[0] == "docs" else _page_of(target)
    there = os.path.relpath(page, (SOURCE / path).parent)
    return f"{match[1]}{there}{match[3]}"


def commands() -> str:
    """Every command of ``pyfastenv`` with what its ``--help`` prints."""
    from pyfastenv import cli

    texts = []
    for name, command in cli.COMMANDS.items():
        summary = (command.__doc__ or "").strip().splitlines()[0]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = _status(cli.main, [name, "--help"])
        if status != 0:
            raise RuntimeError(f"pyfastenv {name} --help: status {status}")
        help_text = re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue()).strip()
        block = f"\n\n```text\n{help_text}\n```" if help_text else ""
        texts.append(f"## pyfastenv {name}\n\n{summary}{block}\n")
    return "\n".join(texts)


def _status(main: Callable[[list[str]], int], arguments: list[str]) -> object:
    try:
        return main(arguments)
    except SystemExit as exit_status:
        return exit_status.code or 0


def environments() -> str:
    """Every environment with its spaces and the steps that an episode has at most."""
    import pyfastenv

    lines = ["| id | observations | actions | steps at most |", "|---|---|---|---|"]
    for env_id in pyfastenv.env_ids():
        with contextlib.closing(pyfastenv.make_vec(env_id, num_threads=1)) as envs:
            spaces = envs.single_observation_space, envs.single_action_space
            steps = envs.spec.max_episode_steps
        lines.append(f"| {env_id} | {' | '.join(map(_space, spaces))} | {steps} |")
    return "\n".join(lines) + "\n"


def _space(space: Any) -> str:
    if hasattr(space, "n"):
        return f"one of {space.n}"
    low, high = set(space.low), set(space.high)
    uniform = space.is_bounded() and len(low) == len(high) == 1
    bounds = f" in [{min(low):g}, {max(high):g}]" if uniform else ""
    return f"{space.shape[0]} × {space.dtype}{bounds}"
