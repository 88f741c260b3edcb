"""Study: one experiment's folder. Measures each thing once, keeps it, and writes the report.

results.json grows with every measurement (written whole, then renamed), so an experiment that was
interrupted goes on where it stopped. Knows nothing of what is measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pyfastenv.experiments.measure import Summary, machine
from pyfastenv.training.atomic import write_text
from pyfastenv.training.plots import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
NEEDS_CUDA = "needs CUDA"


class Study:
    """One experiment in one folder.

    Args:
        name: The experiment's.
        folder: Where report.md, results.json and the pictures go; made if missing.
        quick: Short versions that show that everything works, instead of the document's sizes.

    Attributes:
        has_cuda: Whether what needs a GPU can be measured.

    Raises:
        ValueError: The folder has results of another experiment, of the other length, or of another
            machine, whose times must not stand beside this one's.
    """

    def __init__(self, name: str, folder: Path, *, quick: bool):
        self.name = name
        self.folder = folder
        self.quick = quick
        self.has_cuda = torch.cuda.is_available()
        self._path = folder / "results.json"
        self._pictures: list[tuple[str, str]] = []
        length = "quick" if quick else "full"
        self._state: dict[str, Any] = {"experiment": name, "length": length, "measurements": {}}
        if self._path.exists():
            self._load(length)

    def _load(self, length: str) -> None:
        try:
            state = json.loads(self._path.read_text())
            found = (state["experiment"], state["length"])
        except (json.JSONDecodeError, KeyError) as error:
            raise ValueError(
                f"{self._path}: not an experiment's results ({error}); move the file away"
            ) from error
        if found != (self.name, length):
            raise ValueError(
                f"{self._path} has the results of `{found[0]} --{found[1]}`, not of "
                f"`{self.name} --{length}`; choose another --output"
            )
        self._state = state
        then, now = (
            {name: about.get(name) for name in ("cpu", "cpus_available", "gpu")}
            for about in (state.get("machine") or self._machine(), self._machine())
        )
        if then != now:
            raise ValueError(
                f"{self._path} was measured on another machine ({then}, this is {now}); choose "
                "another --output"
            )

    def _machine(self) -> dict[str, Any]:
        return machine() | {"gpu": torch.cuda.get_device_name() if self.has_cuda else None}

    def measure(self, key: str, run: Callable[[], Row], *, needs_cuda: bool = False) -> Row:
        """The result of ``run()``, from results.json if it is there already.

        Args:
            key: What is measured, unique in the experiment.
            run: Measures; returns numbers, strings and lists of them.
            needs_cuda: Without a GPU nothing runs and the result is ``{"skipped": NEEDS_CUDA}``.
        """
        known: Row | None = self._state["measurements"].get(key)
        if known is not None and not ("skipped" in known and self.has_cuda):
            return known
        if needs_cuda and not self.has_cuda:
            return self._keep(key, {"skipped": NEEDS_CUDA})
        print(f"  {key} …", flush=True)
        start = time.perf_counter()
        result = run()
        return self._keep(key, {**result, "measured_s": round(time.perf_counter() - start, 3)})

    def _keep(self, key: str, result: Row) -> Row:
        self._state["measurements"][key] = result
        self._state["machine"] = self._machine()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self._path, json.dumps(self._state, indent=2) + "\n")
        return result

    def picture(self, name: str, figure: Figure, caption: str) -> None:
        """Saves a figure as ``name.png`` for the report, and closes it."""
        from matplotlib import pyplot

        save_figure(figure, self.folder / f"{name}.png", dpi=150, bbox_inches="tight")
        pyplot.close(figure)
        self._pictures.append((name, caption))

    def report(self, title: str, sections: Sequence[tuple[str, str]], verdict: str) -> Path:
        """Writes report.md.

        Args:
            title: Of the report.
            sections: Headings and Markdown.
            verdict: What the numbers say of the document's claim, and what a user should do.
        """
        about = self._state.get("machine", {})
        versions = ", ".join(f"{k} {v}" for k, v in about.get("versions", {}).items() if v)
        length = "the document's sizes" if not self.quick else "a quick version, sizes reduced"
        lines = [
            f"# {title}",
            "",
            f"`pyfastenv experiment {self.name} --{self._state['length']}`: {length}. "
            f"{about.get('cpu')}, {about.get('cpus_available')} CPUs, GPU: "
            f"{about.get('gpu') or 'none'}; {versions}.",
            "",
            "## Verdict",
            "",
            verdict.strip(),
            "",
        ]
        for heading, text in sections:
            lines += [f"## {heading}", "", text.strip(), ""]
        for name, caption in self._pictures:
            lines += [f"![{caption}]({name}.png)", "", caption, ""]
        path = self.folder / "report.md"
        write_text(path, "\n".join(lines))
        return path


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; numbers are to be given as they should look."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def spread(values: Summary, form: str = ",.0f") -> str:
    """``median [q1, q3]``."""
    return f"{values['median']:{form}} [{values['q1']:{form}}, {values['q3']:{form}}]"
