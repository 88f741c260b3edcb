"""How long the learners' files are: ``python bench/python/lines.py [COMMIT]``.

Beside what they were at a commit: by default the one before SAC, DDPG and PPO became plain PyTorch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pyfastenv.experiments.tables import table

ROOT = Path(__file__).parents[2]
BEFORE = "4124952"
# what each algorithm's reader reads, and what they share, under today's and earlier names
FILES = {
    "PPO": "algorithms/ppo/spec.py algorithms/ppo.py",
    "DDPG": "algorithms/ddpg/spec.py algorithms/ddpg.py",
    "SAC": "algorithms/sac/spec.py algorithms/sac.py learners/sac_learner.py",
    "MBPO": "algorithms/mbpo/spec.py algorithms/mbpo.py",
    "FlashSAC": "algorithms/flashsac/spec.py algorithms/flashsac.py",
}
SHARED = {
    "on policy": "training/on_policy.py training/actor_value.py",
    "off policy": "training/off_policy.py training/collecting.py training/actor_critic.py "
    "learners/actor_critic.py training/sac_training.py",
    "replay": "sampling/buffers.py",
    "networks": "nn/networks.py nn/unit_networks.py nn/functional.py nn/optim.py",
    "accelerators": "training/accelerators.py algorithms/ppo/accelerated.py "
    "algorithms/ddpg/accelerated.py algorithms/sac/accelerated.py learners/accelerators.py "
    "learners/ppo_accelerators.py learners/ddpg_accelerators.py learners/sac_accelerators.py",
    "MBPO's model and flow": "algorithms/mbpo/dynamics.py algorithms/mbpo/flow.py nn/flows.py "
    "learners/dynamics.py learners/flow_agent.py",
}


def counted(names: str, commit: str | None) -> int:
    """Lines of some files of the package; those that are not there have none."""
    return sum(_lines(f"pyfastenv/{name}", commit) for name in names.split())


def _lines(path: str, commit: str | None) -> int:
    if commit is None:
        there = ROOT / path
        return len(there.read_text().splitlines()) if there.is_file() else 0
    shown = subprocess.run(
        ["git", "-C", str(ROOT), "show", f"{commit}:{path}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return len(shown.stdout.splitlines()) if shown.returncode == 0 else 0


def main() -> None:
    """The program."""
    commit = sys.argv[1] if len(sys.argv) > 1 else BEFORE
    known = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"],
        capture_output=True,
        check=False,
    )
    if known.returncode != 0:
        sys.exit(f"{commit}: no commit of this checkout")
    for title, files in (("algorithms", FILES), ("shared", SHARED)):
        rows = [(name, counted(each, commit), counted(each, None)) for name, each in files.items()]
        rows.append(("in all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
        print(table((title, f"lines at {commit}", "lines now"), rows), end="\n\n")


if __name__ == "__main__":
    main()
