#!/usr/bin/env python3
"""Build the playground, a folder of static files, into target/playground."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = "wasm32-unknown-unknown"
PACKAGED = ROOT / "python/aqmlab/playground.html"
"""The page as one file, for `aqmlab.playground`; wheels contain it."""
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


def whole(place: Path) -> str:
    """Return the page in the folder ``place`` as one file, which needs no server."""
    names = [path.relative_to(place).as_posix() for path in sorted(place.rglob("*.js*"))]
    texts = {name: (place / name).read_text(encoding="utf-8") for name in names}
    begin, charts = texts.pop("whole.js"), texts.pop("chart.js")
    # The worker of a page without a server is no module, so it may import nothing.
    own = texts.pop("engine.js").replace("export ", "")
    texts["worker.js"] = own + re.sub(r"import .* from .*\n", "", texts["worker.js"])
    texts["run.js"] = texts["run.js"].replace(', { type: "module" }', "")
    engine = base64.b64encode(gzip.compress((place / "aqmlab.wasm").read_bytes(), mtime=0)).decode()
    types = {"js": "text/javascript", "json": "application/json", "wasm": "application/wasm"}
    files = json.dumps({"texts": texts, "engine": engine, "types": types}).replace("</", "<\\/")
    style = (place / "playground.css").read_text(encoding="utf-8")
    allowed = " ".join(f"'sha256-{digest(text)}'" for text in (begin, charts))
    policy = (
        f"default-src 'none'; script-src blob: {allowed} 'wasm-unsafe-eval'; worker-src blob:;"
        f" style-src 'sha256-{digest(style)}'; connect-src blob:; img-src blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    data = f'<script type="application/json" id="files">{files}</script>'
    start = f'<script type="module">{begin}</script>'
    page = (place / "index.html").read_text(encoding="utf-8")
    for old, new in [
        (r'(http-equiv="Content-Security-Policy" content=)"[^"]*"', rf'\1"{policy}"'),
        (r'(<link rel="(icon|preload|modulepreload)"[^>]*>\n)+', ""),
        (r'<link rel="stylesheet"[^>]*>', f"<style>{style}</style>"),
        (r'<script src="chart.js" defer></script>', f"<script>{charts}</script>"),
        (r'<script type="module" src="main.js"></script>\n', ""),
        (r"</body>", f"{data}\n{start}\n</body>"),
    ]:
        page, count = re.subn(old, lambda match, new=new: match.expand(new) if r"\1" in new else new, page)
        assert count == 1, old
    return page


def digest(text: str) -> str:
    """Return the digest by which a policy allows a text within a page."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def build(place: Path) -> None:
    """Build the engine and lay the page out in the folder ``place``, and as one file in the package."""
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target", TARGET, "-p", "aqmlab-wasm"]
    subprocess.run(command, cwd=ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TARGET / "release/aqmlab_wasm.wasm"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "playground", place)
    for file in SHARED:
        shutil.copyfile(file, place / file.name)
    (place / "aqmlab.wasm").write_bytes(bare(built.read_bytes()))
    PACKAGED.write_text(whole(place), encoding="utf-8")
    (place / "whole.js").unlink()


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
