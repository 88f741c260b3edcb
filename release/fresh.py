"""``make test-release NAME=fresh``: the wheel and README's example in a Debian without a compiler.

The Debian is a folder, entered by chroot, which needs root:

    debootstrap --variant=minbase --include=python3,python3-venv bookworm ROOT

    python release/fresh.py ROOT [--mujoco 4.0.0]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matrix
from cores import ROOT, mujoco_packages, run
from targets import PLATFORMS, VERSIONS

PLATFORM = PLATFORMS["x86_64"]
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "tcc", "zig", "ninja", "cmake")
FOLDER = Path("tmp/pyfastenv")  # in the Debian
CHROOT = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin") or "chroot"
# processor time: other programs do not count
IMPORT = (
    "import time; start = time.process_time(); import pyfastenv; print(time.process_time() - start)"
)


def main() -> None:
    """Installs, runs README's example, notes it in the table of versions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, help="folder of the Debian")
    parser.add_argument("--mujoco", default=VERSIONS[0], metavar="VERSION")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    found = [name for name in COMPILERS if shutil.which(name, path=str(root / "usr/bin"))]
    if found:
        sys.exit(f"{root}: expected no compiler, got {', '.join(found)}")
    shutil.rmtree(root / FOLDER, ignore_errors=True)
    python = next((root / "usr/bin").glob("python3.??")).name.removeprefix("python")
    download(root / FOLDER / "wheels", python, arguments.mujoco)
    shutil.copy(ROOT / "release" / "matrix.py", root / FOLDER)
    (root / FOLDER / "example.py").write_text(example())

    venv = f"/{FOLDER}/venv"
    inside(root, "python3", "-m", "venv", venv)
    inside(
        root, f"{venv}/bin/pip", "install", "--quiet", "--no-index", "--find-links",
        f"/{FOLDER}/wheels", *mujoco_packages(arguments.mujoco)[:1], "pyfastenv",
    )  # fmt: skip
    inside(root, f"{venv}/bin/python", f"/{FOLDER}/example.py")
    seconds = [float(inside(root, f"{venv}/bin/python", "-c", IMPORT)) for _ in range(5)]
    print(f"README's example ran; import pyfastenv: {min(seconds):.3f} s, the least of five")
    tell = "import json, matrix; print(json.dumps(matrix.here()))"
    (root / FOLDER / "tell.py").write_text(tell)  # beside matrix.py
    place = json.loads(inside(root, f"{venv}/bin/python", f"/{FOLDER}/tell.py"))
    matrix.add(place | {"ran": "README's example, without a compiler"})
    matrix.main([])


def download(folder: Path, python: str, mujoco: str) -> None:
    """The newest wheel and what it needs."""
    tag = f"cp{python.replace('.', '')}"
    wheels = sorted((ROOT / "dist").glob(f"pyfastenv-*-{tag}-*x86_64.whl"))
    if not wheels:
        sys.exit(f"expected a wheel for x86-64 and {tag} in dist/: make wheels")
    run(
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--only-binary=:all:", f"--python-version={python}", "--implementation=cp",
        *(f"--platform={name}" for name in PLATFORM.pip_tags), f"--dest={folder}",
        wheels[-1], *mujoco_packages(mujoco),
    )  # fmt: skip


def example() -> str:
    """README's first program that makes environments."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return next(block for block in blocks if "pyfastenv.make_vec(" in block)


def inside(root: Path, *command: str) -> str:
    """Runs a program in the Debian and returns its output; ends this one if it fails."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [CHROOT, root, *command], check=False, env=environment, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
