"""Fails if a library contains fused multiply-add instructions: no_fused_multiply_add.py LIBRARY.

A fused operation rounds once where MuJoCo rounds twice. g++ 12 makes some against -ffp-contract=off
when it vectorizes straight-line code. sine_cosine.cc asks for them, to know a product's rounding
error. Needs objdump; without it, says so and passes.
"""

import re
import shutil
import subprocess
import sys

MEMBER = re.compile(r"^(\S+):\s+file format", re.MULTILINE)
ASKED_FOR = "sine_cosine.cc.o"
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
    parts = MEMBER.split(code.stdout)  # text, name, text, name, text, …
    found = [
        instruction
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
        if name != ASKED_FOR
        for instruction in FUSED.findall(text)
    ]
    if found:
        print(
            f"{library}: expected no fused multiply-add, got {len(found)}, first {found[0].strip()}"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
