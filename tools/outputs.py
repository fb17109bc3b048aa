"""Rewrite what the documents show of runs: printed texts, and the figures by the commands beside them.

    .venv/bin/python tools/outputs.py            rewrite all
    .venv/bin/python tools/outputs.py --check    only compare the texts; ends with 1 if one is stale

A printed text is a block after ``<!-- output of `COMMAND` -->`` or ``<!-- output of the program above -->``.
A figure is what an indented line of a document draws into docs/images, with the indented lines around it.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

WIDTH = "160"
ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(
    r"(?P<head><!-- output of (?:`(?P<command>[^`]+)`|the program above) -->\n```text\n).*?(?=```\n)",
    re.DOTALL,
)
PROGRAM = re.compile(r"```python\n(.*?)```\n", re.DOTALL)
COMMANDS = re.compile(r"(?:^    aqmlab .*\n)+", re.MULTILINE)


def printed(command: list[str], folder: Path) -> str:
    """What a command prints, without blanks at the ends of lines."""
    wide = {**os.environ, "COLUMNS": WIDTH}
    ended = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True, env=wide)
    return "".join(f"{line.rstrip()}\n" for line in ended.stdout.splitlines())


def aqmlab(line: str, scratch: Path) -> list[str]:
    """The words of a command line of aqmlab, its recordings in a scratch folder."""
    words = [re.sub(r"^runs/", f"{scratch}/", word) for word in shlex.split(line)]
    return [sys.executable, "-m", *words]


def with_outputs(document: str) -> str:
    """The document with the texts that its commands and programs print now."""

    def replaced(found: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as scratch:
            if found["command"]:
                return found["head"] + printed(aqmlab(found["command"], Path(scratch)), ROOT)
            program = PROGRAM.findall(document[: found.start()])[-1]
            return found["head"] + printed([sys.executable, "-c", program], Path(scratch))

    return SHOWN.sub(replaced, document)


def figure_commands(document: str) -> Iterator[list[str]]:
    """Groups of commands that end in a figure."""
    for group in COMMANDS.findall(document):
        if "docs/images/" in group:
            yield [line.strip() for line in group.splitlines()]


def main() -> int:
    """Compare or rewrite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the texts and write nothing")
    check = parser.parse_args().check
    stale = 0
    for file in DOCUMENTS:
        before = file.read_text(encoding="utf-8")
        after = with_outputs(before)
        if before != after:
            stale += 1
            sys.stdout.write(f"{file.relative_to(ROOT)}: {'stale: make docs' if check else 'rewritten'}\n")
        if check:
            continue
        file.write_text(after, encoding="utf-8")
        for commands in figure_commands(after):
            with tempfile.TemporaryDirectory() as scratch:
                for line in commands:
                    printed(aqmlab(line, Path(scratch)), ROOT)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
