"""Rewrite the outputs in the documents: texts that programs print, and the figures that commands draw.

    .venv/bin/python tools/outputs.py            rewrite all
    .venv/bin/python tools/outputs.py --check    only compare the texts; exit with 1 if one is stale

The text that a program prints is a block after ``<!-- output of `COMMAND` -->`` or
``<!-- output of the program above -->``. The commands of a figure are an indented line that draws into
docs/images, and the indented lines around it. A tutorial is a session in its own folder: blocks with a
title are files, indented lines are commands, and a block after
``<!-- printed by the last command -->`` is the output of the command above it.
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
NARROW = "96"  # width of tutorials, which are read on a page
ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(
    r"(?P<head><!-- output of (?:`(?P<command>[^`]+)`|the program above) -->\n```text\n).*?(?=```\n)",
    re.DOTALL,
)
LIVE = ("--both", "doctor", "live")
PROGRAM = re.compile(r"```python\n(.*?)```\n", re.DOTALL)
COMMANDS = re.compile(r"(?:^    aqmlab .*\n)+", re.MULTILINE)
STEP = re.compile(
    r"```\w+ title=\"(?P<name>[^\"]+)\"\n(?P<file>.*?)```\n"
    r"|^    (?P<command>(?:aqmlab|python) [^\n]*)\n"
    r"|(?P<head><!-- printed by the last command -->\n```text\n)(?P<shown>.*?)(?=```\n)",
    re.DOTALL | re.MULTILINE,
)


def printed(command: list[str], folder: Path, width: str = WIDTH) -> str:
    """The output of a command, without blanks at the ends of lines."""
    wide = {**os.environ, "COLUMNS": width}
    ended = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True, env=wide)
    return "".join(f"{line.rstrip()}\n" for line in ended.stdout.splitlines())


def aqmlab(line: str, scratch: Path) -> list[str]:
    """The words of a command line of aqmlab, changed so that its recordings are in a scratch folder."""
    words = [re.sub(r"^runs/", f"{scratch}/", word) for word in shlex.split(line)]
    return [sys.executable, "-m", *words]


def with_outputs(document: str) -> str:
    """The document with the texts that its commands and programs currently print."""

    def replaced(found: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as scratch:
            if found["command"]:
                return found["head"] + printed(aqmlab(found["command"], Path(scratch)), ROOT)
            program = PROGRAM.findall(document[: found.start()])[-1]
            return found["head"] + printed([sys.executable, "-c", program], Path(scratch))

    return SHOWN.sub(replaced, document)


def session(document: str, folder: Path, *, without: tuple[str, ...] = ()) -> str:
    """A tutorial with the current output of its commands, each run in ``folder`` after the previous ones."""
    last = ""

    def done(found: re.Match[str]) -> str:
        nonlocal last
        if found["name"]:
            (folder / found["name"]).write_text(found["file"], encoding="utf-8")
        elif found["head"]:
            return found["head"] + last
        elif "docs/images/" not in found["command"] and "scenarios/" not in found["command"]:
            program, *words = shlex.split(found["command"])
            if not set(without) & set(words):
                places = [str(place) for word in words for place in sorted(folder.glob(word)) or [word]]
                module = ["-m", "aqmlab"] if program == "aqmlab" else []
                last = printed([sys.executable, *module, *places], folder, NARROW)
        return found[0]

    return STEP.sub(done, document)


def with_session(file: Path, before: str) -> str:
    """The text of a document; if it is a tutorial, with the current output of its session."""
    if file.parent.name != "tutorials":
        return before
    with tempfile.TemporaryDirectory() as folder:
        return session(before, Path(folder), without=LIVE)


def figure_commands(document: str) -> Iterator[list[str]]:
    """The groups of commands that draw a figure."""
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
        after = with_session(file, with_outputs(before))
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
