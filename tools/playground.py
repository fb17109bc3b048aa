#!/usr/bin/env python3
"""Build the playground, a folder of static files, into target/playground."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = "wasm32-unknown-unknown"
SHARED = [ROOT / "python/aqmlab/reports/chart.js"]
"""Files that the playground shares with other parts."""


def bare(module: bytes) -> bytes:
    """Return a WebAssembly module without its custom sections, which hold names and lines for debuggers."""
    kept, at = module[:8], 8
    while at < len(module):
        size, shift, begin = 0, 0, at + 1
        while True:
            byte, begin = module[begin], begin + 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if module[at] != 0:
            kept += module[at : begin + size]
        at = begin + size
    return kept


def build(place: Path) -> None:
    """Build the engine and lay the page out in the folder ``place``."""
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target", TARGET, "-p", "aqmlab-wasm"]
    subprocess.run(command, cwd=ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TARGET / "release/aqmlab_wasm.wasm"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "playground", place)
    for file in SHARED:
        shutil.copyfile(file, place / file.name)
    (place / "aqmlab.wasm").write_bytes(bare(built.read_bytes()))


def main() -> int:
    """Build the playground, or say what is missing."""
    if shutil.which("rustup"):
        subprocess.run(["rustup", "target", "add", TARGET], capture_output=True, check=False)
    place = ROOT / "target/playground"
    try:
        build(place)
    except subprocess.CalledProcessError:
        sys.stderr.write(f"the engine could not be built; does the compiler have the target {TARGET}?\n")
        return 3
    sys.stdout.write(
        f"the playground is in {place}; to serve it: python3 -m http.server --directory {place}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
