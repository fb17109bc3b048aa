"""Seeded mutations: does the suite notice when transport or a law is wrong?

Each entry of tests/mutations/mutations.toml changes one expression of one file. For each, this program copies the
tree, applies the change, runs the named tests, and expects them to fail. A mutation that survives, no longer
applies, or does not compile is an error: the list must follow the code.

Usage: python3 tools/mutate.py [--only NAME] [--list]
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "mutations" / "mutations.toml"
# Built once, shared by all mutations, kept between calls: each then compiles one crate and what depends on it.
TREE = ROOT / "target" / "mutations"


def copy_sources() -> None:
    """Bring the copy's sources up to date; file times of unchanged files stay, so that cargo rebuilds little."""
    for name in ("Cargo.toml", "Cargo.lock", "crates", "vectors", "scenarios", "tests", "docs"):
        source, target = ROOT / name, TREE / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            continue
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(source, target, copy_function=shutil.copy2)


def run_tests(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run cargo test with these arguments in the copy."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TREE / "target"), "CARGO_TERM_COLOR": "never"}
    return subprocess.run(
        ["cargo", "test", "--quiet", *arguments], cwd=TREE, env=environment, capture_output=True, text=True, timeout=1200
    )


def try_mutation(mutation: dict[str, str]) -> str:
    """Apply one mutation, run its tests, undo it; the verdict: caught, survived, or why it could not be tried."""
    path = TREE / mutation["file"]
    original = path.read_text()
    if original.count(mutation["find"]) != 1:
        return f"does not apply: `{mutation['find']}` stands {original.count(mutation['find'])} times in {mutation['file']}"
    path.write_text(original.replace(mutation["find"], mutation["replace"]))
    try:
        result = run_tests(mutation["tests"].split())
    except subprocess.TimeoutExpired:
        return "caught"
    finally:
        path.write_text(original)
    if result.returncode == 0:
        return "survived"
    if "error: could not compile" in result.stderr or "error[E" in result.stderr:
        return "does not compile:\n" + result.stderr[-1500:]
    return "caught"


def main() -> int:
    """Try all mutations; 0 if every one is caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="try this one alone")
    parser.add_argument("--list", action="store_true", help="print the list and stop")
    options = parser.parse_args()
    mutations = tomllib.loads(LIST.read_text())["mutation"]
    chosen = [m for m in mutations if options.only in (None, m["name"])]
    if options.list or not chosen:
        print("\n".join(f"{m['name']:36} {m['file']}: {m['why']}" for m in mutations))
        return 0 if options.list else 2
    copy_sources()
    escaped = 0
    for mutation in chosen:
        begun = time.monotonic()
        verdict = try_mutation(mutation)
        escaped += verdict != "caught"
        print(f"{mutation['name']:36} {verdict}  ({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"{len(chosen) - escaped} of {len(chosen)} mutations caught")
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
