"""Fails if a library contains fused multiply-add instructions: no_fused_multiply_add.py LIBRARY.

A fused operation rounds once where MuJoCo rounds twice. g++ 12 makes some against -ffp-contract=off
when it vectorizes straight-line code. Needs objdump; without it, says so and passes.
"""

import re
import shutil
import subprocess
import sys

FUSED = re.compile(r"\tvfn?m(?:add|sub|addsub|subadd)\d*\w+")


def main() -> int:
    library = sys.argv[1]
    if shutil.which("objdump") is None:
        print("no objdump: fused instructions were not looked for")
        return 0
    code = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", library],
        check=True,
        capture_output=True,
        text=True,
    )
    found = FUSED.findall(code.stdout)
    if found:
        print(
            f"{library}: expected no fused multiply-add, got {len(found)}, first {found[0].strip()}"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
