"""Try seeded mutations: errors in transport, laws, the simulator or statistics that the tests must detect.

Each entry of tests/mutations/mutations.toml changes one expression of one file. For each, this program
applies the change to a copy of the tree, builds, runs the named tests, and expects them to fail. A mutation
that survives, no longer applies or does not compile is an error: the list must follow the code.

Usage: python3 tools/mutate.py [--list] [--only NAME[,NAME...]]

Exit status: 0 all caught, 1 not all, 2 wrong usage or tests that fail without any mutation, 130 interrupted.
"""
# ruff: noqa: T201

import argparse
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "mutations" / "mutations.toml"
# The copy and its build are kept between calls, so each mutation compiles only one crate and its dependents.
TREE = ROOT / "target" / "mutations"
SOURCES = ("Cargo.toml", "Cargo.lock", "crates", "vectors", "scenarios", "tests", "docs", "peers")
PYTHON_SOURCES = ("pyproject.toml", "python")
"""Python tests use the extension module as it was last built: mutations of Python code need no build."""
# Tests that run ns-2 itself are skipped: not every machine has it, and mutations must be caught without it.
SKIPPED = ("--skip", "equals_ns2")
# A mutation may make a test run forever.
TEST_SECONDS = 600
BUILD_SECONDS = 1800


def sync_sources() -> None:
    """Bring the copy up to date.

    Only changed files are written, so that cargo rebuilds little. Written files get the current time, because
    cargo compares times: a file that was restored with its old time would not be built again.
    """
    wanted: set[Path] = set()
    for name in SOURCES + PYTHON_SOURCES:
        source = ROOT / name
        found = [source] if source.is_file() else [p for p in source.rglob("*") if p.is_file()]
        files = [file for file in found if file.parent.name != "__pycache__"]
        for file in files:
            target = TREE / file.relative_to(ROOT)
            wanted.add(target)
            content = file.read_bytes()
            if not target.is_file() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    for name in SOURCES + PYTHON_SOURCES:
        for file in (TREE / name).rglob("*"):
            if file.is_file() and file not in wanted:
                file.unlink()


def is_python(tests: str) -> bool:
    """Whether these are arguments for pytest, not for cargo."""
    return tests.startswith("tests/python/")


def interpreter() -> str:
    """The Python interpreter for which aqmlab is installed."""
    installed = ROOT / ".venv" / "bin" / "python"
    return str(installed) if installed.exists() else sys.executable


def run_tests(tests: str, seconds: int, *, only_build: bool = False) -> subprocess.CompletedProcess[str]:
    """Run these tests in the copy, and end their whole process group before returning."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TREE / "target"), "CARGO_TERM_COLOR": "never"}
    # A failing property must not leave its counterexample in the copy.
    environment["PROPTEST_DISABLE_FAILURE_PERSISTENCE"] = "1"
    if is_python(tests):
        # Python finds the copy before the installed package (the tree itself). No byte code is written,
        # because Python matches it to its source by time only.
        environment |= {"PYTHONPATH": str(TREE / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        selected = ["-x", "-p", "no:cacheprovider", "-m", "not slow", *tests.split()]
        command = [interpreter(), "-m", "pytest", *selected]
    else:
        command = ["cargo", "test", "--quiet", *(["--no-run"] if only_build else []), *tests.split()]
        command += ["--", *SKIPPED]
    process = subprocess.Popen(
        command,
        cwd=TREE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextmanager
def mutated(mutation: dict[str, str]) -> Iterator[None]:
    """Make the change in the copy while the `with` block runs, and undo it afterwards."""
    path = TREE / mutation["file"]
    original = path.read_text()
    path.write_text(original.replace(mutation["find"], mutation["replace"]))
    try:
        yield
    finally:
        path.write_text(original)


def try_mutation(mutation: dict[str, str]) -> tuple[bool, str]:
    """Whether one mutation is caught, and the tests that catch it, or why none does."""
    path = TREE / mutation["file"]
    times = path.read_text().count(mutation["find"]) if path.is_file() else 0
    if times != 1:
        return False, f"DOES NOT APPLY: the text to find occurs {times} times in {mutation['file']}"
    with mutated(mutation):
        return judge(mutation["tests"])


def judge(tests: str) -> tuple[bool, str]:
    """Build and run the tests in the mutated copy."""
    if not is_python(tests):
        built = run_tests(tests, BUILD_SECONDS, only_build=True)
        if built.returncode != 0:
            return False, "DOES NOT COMPILE\n" + built.stderr[-1500:]
    try:
        result = run_tests(tests, TEST_SECONDS)
    except subprocess.TimeoutExpired:
        return True, f"(no end within {TEST_SECONDS} s)"
    if result.returncode == 0:
        return False, "SURVIVED"
    failed = re.findall(r"^    ([\w:]+)$|^FAILED (\S+)", result.stdout, re.MULTILINE)
    if not failed and "panicked" not in result.stdout + result.stderr:
        return False, "NO TEST FAILED, but the run had errors\n" + (result.stdout + result.stderr)[-1500:]
    return True, ", ".join(dict.fromkeys(rust or python for rust, python in failed))


def broken_without_mutation(chosen: list[dict[str, str]]) -> bool:
    """Run every selection of tests on the unchanged copy: a test that fails anyway catches nothing."""
    for tests in sorted({m["tests"] for m in chosen}):
        result = run_tests(tests, BUILD_SECONDS)
        if result.returncode != 0:
            output = result.stdout + result.stderr
            print(f"{tests}: fails without any mutation:\n{output}", file=sys.stderr)
            return True
    return False


@contextmanager
def alone() -> Iterator[None]:
    """Lock the copy: two programs that mutate one tree would judge each other's mutations."""
    TREE.mkdir(parents=True, exist_ok=True)
    with (TREE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(chosen: list[dict[str, str]]) -> int:
    """Try the chosen mutations and print a summary."""
    escaped: list[str] = []
    tried = 0
    try:
        sync_sources()
        print(f"{len(chosen)} mutations; first, the tests run on the unchanged code", flush=True)
        if broken_without_mutation(chosen):
            return 2
        for mutation in chosen:
            begun = time.monotonic()
            caught, how = try_mutation(mutation)
            tried += 1
            if not caught:
                escaped.append(mutation["name"])
            verdict = "caught " if caught else "ESCAPED"
            seconds = f"{time.monotonic() - begun:4.0f} s"
            print(f"{verdict} {mutation['name']:36} {seconds}  {how}", flush=True)
    except KeyboardInterrupt:
        print(f"\ninterrupted after {tried} of {len(chosen)}", file=sys.stderr)
    print(f"{tried - len(escaped)} of {tried} mutations caught")
    for name in escaped:
        print(f"  not caught: {name}")
    if tried < len(chosen):
        return 130
    return 1 if escaped else 0


def main() -> int:
    """Read the arguments and the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME[,NAME...]", help="try these alone")
    parser.add_argument("--list", action="store_true", help="print the list and stop")
    options = parser.parse_args()
    mutations = tomllib.loads(LIST.read_text())["mutation"]
    if options.list:
        print("\n".join(f"{m['name']:36} {m['file']}: {m['why']}" for m in mutations))
        return 0
    only = options.only.split(",") if options.only else [m["name"] for m in mutations]
    unknown = set(only) - {m["name"] for m in mutations}
    if unknown:
        parser.error(f"no such mutation: {', '.join(sorted(unknown))} (--list shows all)")
    # On a stop signal, the program restores its copy and ends its tests.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with alone():
        return run([m for m in mutations if m["name"] in only])


if __name__ == "__main__":
    sys.exit(main())
