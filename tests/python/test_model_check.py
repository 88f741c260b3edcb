"""Model files that make MuJoCo throw C++ exceptions, which no one can catch: refused beforehand.

They are tried in a child process: without the check it is ended by a signal, at the model after the
last one of which it said something.
"""

import json
import subprocess
import sys
from pathlib import Path

BODY = '<body><joint type="slide"/><geom size="1"/></body>'
TRY = """
import json, os, resource, sys
if "ASAN_OPTIONS" not in os.environ:  # which bounds allocations itself
    resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
import pyfastenv
for path in sys.argv[1:]:
    said = "loaded"
    try:
        pyfastenv.make_vec("HalfCheetah-v5", num_threads=1, xml_file=path).reset(seed=0)
    except ValueError as error:
        said = str(error)
    print(json.dumps([path, said]), flush=True)
"""
NO_FILE = '<asset><model name="x"/></asset>'
TOO_MANY = '<size nuser_geom="2000000000"/>'
HILLS = '<asset><hfield name="h" nrow="60000" ncol="60000" size="1 1 1 1"/></asset>'
ATTACHED = '<asset><model name="x" file="{}.part.xml"/></asset>'
GOOD = (
    f'<!-- {NO_FILE} --><size nuser_geom="3"/>{ATTACHED}'
    '<asset><hfield name="h" nrow="40" ncol="40" size="1 1 1 1"/></asset>'
)
PART = '<body name="part"><geom size="1"/></body>'
# what a model has beside its body, and a file that it names; of which file something is said, what
CASES: dict[str, tuple[str, str, str, str]] = {
    "no file": (NO_FILE, "", "{}.xml", "<model>: expected an attribute 'file'"),
    "spaces": (NO_FILE.replace("/>", " />"), "", "{}.xml", "attribute 'file'"),
    "many": (TOO_MANY, "", "{}.xml", "nuser_geom: expected at most 1,000,000"),
    "hills": (HILLS, "", "{}.xml", "at most 268,435,456 heights, got 60000 x 60000"),
    "included": ('<include file="{}.part.xml"/>', NO_FILE, "{}.part.xml", "attribute 'file'"),
    "attached": (ATTACHED, TOO_MANY, "{}.part.xml", ""),
    "timestep": ('<option timestep="1e-320"/>', "", "{}.xml", "timestep"),
    "good": (GOOD, " ", "", "loaded"),
    "itself": ('<include file="{}.xml"/>', "", "", "cannot load"),
}


def write(path: Path, extra: str, body: str) -> Path:
    path.write_text(f"<mujoco>{extra}<worldbody>{body}</worldbody></mujoco>")
    return path


def test_models_over_which_mujoco_throws(tmp_path: Path) -> None:
    paths = []
    for name, (extra, part, _, _) in CASES.items():
        if part:
            inner = "" if name == "included" else PART if name == "good" else BODY
            write(tmp_path / f"{name}.part.xml", part, inner)
        paths.append(write(tmp_path / f"{name}.xml", extra.replace("{}", name), BODY))
    done = subprocess.run([sys.executable, "-c", TRY, *paths], capture_output=True, text=True)
    said = dict(json.loads(line) for line in done.stdout.splitlines())
    assert done.returncode == 0, f"{done.returncode} after {list(said)}: {done.stderr[-2000:]}"
    for path, (name, (_, _, file, words)) in zip(paths, CASES.items(), strict=True):
        assert words in said[str(path)], name
        assert (str(tmp_path / file.format(name)) if file else "") in said[str(path)], name
