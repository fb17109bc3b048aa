"""Texts and messages are spelt correctly and free of the turns of phrase that tests/prose.toml lists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = tomllib.loads((ROOT / "tests" / "prose.toml").read_text(encoding="utf-8"))
PATTERNS = [(re.compile(rule["match"]), rule) for rule in RULES["pattern"]]
GENERATED = re.compile(
    r"<!-- generated .*?<!-- end of the generated part -->|<!-- parameters -->.*?<!-- end of parameters -->",
    re.DOTALL,
)
FENCED = re.compile(
    r"^```.*?^```|^    .*?$|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE
)


def files(*globs: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", *globs], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def of_markdown(name: str) -> Iterator[tuple[int, str]]:
    """The prose of a text, line by line, without code, targets of links, quotations and generated tables."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for unchecked in (GENERATED, FENCED):
        text = unchecked.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    yield from enumerate(text.splitlines(), start=1)


def of_program(name: str) -> Iterator[tuple[int, str]]:
    """The texts that a module may print: its strings of several words, except its documentation."""
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in bare:
            continue
        if node.value.count(" ") > 1:
            yield node.lineno, node.value


def findings(lines: Iterator[tuple[int, str]], name: str) -> list[str]:
    exempt = {entry["text"] for entry in RULES.get("exempt", []) if entry["file"] == name}
    return [
        f"{name}:{number}: `{found[0]}`: write {rule['instead']}; {rule['reason']}"
        for number, line in lines
        if not any(text in line for text in exempt)
        for pattern, rule in PATTERNS
        for found in pattern.finditer(line)
    ]


# Files that are not checked, because others are writing them, or because they are quotations or generated
# from checked sources.
LEFT_ALONE = (
    "CHANGELOG.md",
    "ARTIFACT.md",
    "papers/le/",
    "papers/weigle/",
    "vectors/",
    "peers/",
    "benches/",
    "tests/",
)


def test_documents_read_well():
    names = [name for name in files("*.md") if not name.startswith(LEFT_ALONE)]
    generated = ("scorecard.md", "causes.md", "inference.md", "multiverse.md")
    names = [name for name in names if not (name.startswith("papers/") and name.endswith(generated))]
    assert not (wrong := [line for name in names for line in findings(of_markdown(name), name)]), "\n".join(
        wrong
    )


def test_messages_read_well():
    names = files("python/aqmlab/*.py", "python/aqmlab/**/*.py")
    assert not (wrong := [line for name in names for line in findings(of_program(name), name)]), "\n".join(
        wrong
    )


@pytest.mark.parametrize(
    "line",
    [
        "A line an arm.", "a row a cell", "Whoever finds it", "its size, for it is full", "nobody is told",
        "The simulator cares for neither.", "so many bytes", "beside the code",
        "the sum hangs on the largest",
    ],
)  # fmt: skip
def test_the_rules_find_what_they_are_for(line):
    assert findings(iter([(1, line.replace("A line an arm", "a line an arm"))]), "x.md")


@pytest.mark.parametrize(
    "line", ["One line per arm.", "for all arms, for each seed", "besides the code", "so many that it fails"]
)
def test_the_rules_leave_plain_sentences_alone(line):
    assert not findings(iter([(1, line)]), "x.md")


def test_words_are_spelt_correctly():
    names = files("*.md", "python/*.py", "crates/**/*.rs", "scenarios/*.toml")
    skipped = ("test", "crates/aqmlab-params/src/nearest", "CHANGELOG.md")
    names = [name for name in names if not any(part in name for part in skipped)]
    known = "ect,ons,fo,fpt,fro,enque,limti,ser"
    command = [sys.executable, "-m", "codespell_lib", "--quiet-level", "35", "-L", known, *names]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
