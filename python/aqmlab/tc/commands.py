"""From shell scripts, lines of programs, or the output of ``tc qdisc show`` to the words of disciplines."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from aqmlab.errors import UsageError
from aqmlab.tc.effective import NoCounterpartError


class Source(Enum):
    """Who wrote the words of a discipline."""

    BARE = "bare"
    """A user, without ``tc``; the words may be anything else."""
    GIVEN = "given"
    """A user, for tc to read."""
    CHANGED = "changed"
    """A user, for ``tc qdisc change``, which keeps some of the options that are not given."""
    SHOWN = "shown"
    """tc, as the state of a discipline."""


@dataclass(frozen=True)
class Words:
    """The words of a discipline, beginning with its name.

    Attributes
    ----------
    line
        The number of the line, from 1.
    text
        The part of the line that these words are from.
    """

    line: int
    text: str
    words: tuple[str, ...]
    source: Source


@dataclass(frozen=True)
class Other:
    """A part of a line without the words of a discipline, and the reason."""

    line: int
    text: str
    reason: UsageError


EXAMPLE = "`red limit 400000 avpkt 1000 ecn`"
_WITH_VALUE = ("n", "netns", "b", "batch", "cf", "conf")
_COMMANDS = ("add", "change", "replace", "link", "delete", "show", "list", "get", "help")
_OBJECTS = ("qdisc", "class", "filter", "chain", "action", "monitor", "exec")
# A call in a program: `process.ParseArguments ("qdisc add dev sim0 root red limit 3000 avpkt 1024");`
_QUOTED = re.compile(r"""(["'`])(?=[^"'`]*\bqdisc\s+[acr])([^"'`]*)\1""")
_REDIRECTION = re.compile(r"\s\d*[<>]{1,2}\s*\S+")
_BETWEEN = re.compile(r"&&|\|\||[;|]")
_HANDLE = re.compile(r"(?:0*[0-9a-f]{1,4}(?::.*)?|none)", re.IGNORECASE)
_CLASS = re.compile(r"(?:[0-9a-f]{0,4}:[0-9a-f]{0,4}|[0-9a-f]{1,8}|root|none)", re.IGNORECASE)
_ALONE = ("root", "ingress", "clsact")
_PLACE = {"dev": None, "parent": _CLASS, "handle": _HANDLE, "ingress_block": None, "egress_block": None}


def disciplines(text: str) -> Iterator[Words | Other]:
    """Yield the words of each discipline in a text, in order.

    Lines may be joined by a backslash; comments and the indented lines of ``tc -s`` are skipped.
    """
    for number, part in parts(text):
        try:
            words, source = _discipline(split(part))
        except UsageError as reason:
            yield Other(number, part, reason)
        else:
            yield Words(number, part, tuple(words), source)


def parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a text, each with the number of its line."""
    lines = text.split("\n")
    number, shown_at = 0, None
    while number < len(lines):
        start, line = number + 1, lines[number]
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = f"{line[:-1]} {lines[number].lstrip()}"
        number += 1
        begun = line.lstrip()
        indent = len(line) - len(begun)
        if begun and (shown_at is None or indent <= shown_at):
            shown_at = indent if _SHOWN.match(begun) else None
        below_shown = shown_at is not None and indent > shown_at
        if shown_at is not None and begun.startswith("qdisc gred"):
            line = " ".join([line, *_virtual_queues(lines[number:], " " * (indent + 1))])
        for part in () if below_shown else _parts(line):
            yield start, part


def _virtual_queues(lines: Sequence[str], indent: str) -> Iterator[str]:
    """Yield the lines of gred's virtual queues, each of which may be followed by its statistics."""
    below = itertools.takewhile(lambda line: line.startswith(indent), lines)
    return (line.strip() for line in below if line.lstrip().startswith("vq "))


_SHOWN = re.compile(r"(?:qdisc|class) \S+ [0-9a-f]*:")
"""The beginning of a line of `tc qdisc show`, below which `tc -s` indents the lines of its statistics."""


def _parts(line: str) -> Iterator[str]:
    """Yield the commands of a line."""
    if quoted := _QUOTED.search(line):
        line = quoted[2]
    line = re.sub(r"(^|\s)#.*", "", line)
    yield from filter(None, (_REDIRECTION.sub("", f" {part}").strip() for part in _BETWEEN.split(line)))


def split(part: str) -> list[str]:
    """Return the words of a command."""
    try:
        return shlex.split(part)
    except ValueError as error:
        raise UsageError(f"`{part}` is not a command: {str(error).lower()}") from None


def _discipline(words: Sequence[str]) -> tuple[list[str], Source]:
    """Return the words of a discipline; what precedes ``tc``, such as ``sudo``, is ignored."""
    if words[0] == "qdisc" and len(words) > 2 and re.fullmatch(r"[0-9a-f]+:", words[2]):
        return [words[1], *_after_shown(words[3:])], Source.SHOWN
    at = next((i for i, word in enumerate(words) if word.rpartition("/")[2] == "tc"), None)
    if at is None and words[0] != "qdisc":
        return list(words), Source.BARE
    rest = list(words) if at is None else _after_options(words[at + 1 :])
    of = rest.pop(0) if rest else ""
    if _abbreviated(of, _OBJECTS) != "qdisc":
        raise NoCounterpartError(f"`tc {of}` names no queue discipline")
    command = _abbreviated(rest.pop(0) if rest else "list", _COMMANDS)
    if command is None:
        raise UsageError(
            f"tc knows no such command about disciplines; write one such as `tc qdisc add ... {EXAMPLE[1:]}"
        )
    if command in ("delete", "show", "list", "get", "help"):
        raise NoCounterpartError(f"`tc qdisc {command}` sets no queue discipline")
    return _after_place(rest), Source.CHANGED if command == "change" else Source.GIVEN


def _abbreviated(word: str, names: Sequence[str]) -> str | None:
    """Return the first name that begins with the word, as in tc."""
    return next((name for name in names if word and name.startswith(word)), None)


def _after_options(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name = rest.pop(0).lstrip("-")
        if name in _WITH_VALUE and rest:
            rest.pop(0)
    return rest


def _after_shown(words: Sequence[str]) -> list[str]:
    """The words after the place of a discipline in the output of ``tc qdisc show``."""
    rest = list(words)
    while rest and rest[0] in (
        "[offloaded]",
        *_ALONE,
        "dev",
        "parent",
        "refcnt",
        "ingress_block",
        "egress_block",
    ):
        del rest[: 1 if rest[0] in ("[offloaded]", *_ALONE) else 2]
    return rest


def _after_place(words: Sequence[str]) -> list[str]:
    """The words after the place of a discipline in a command."""
    rest, given = list(words), set[str]()
    while rest and (rest[0] in _ALONE or rest[0] in _PLACE or rest[0] in ("stab", "estimator")):
        word = rest.pop(0)
        if word == "stab":
            raise NoCounterpartError(
                "`stab` has no equivalent in aqmlab, where a packet counts with its own size"
            )
        if word in ("ingress", "clsact"):
            raise NoCounterpartError(f"`{word}` holds filters, and no packets")
        if word == "estimator":
            del rest[:2]  # estimates a rate, and has no influence on packets
            continue
        above = "root or parent" if word in (*_ALONE, "parent") else word
        if above in given:
            raise UsageError(f"tc refuses `{word}`: the command names its {above} twice")
        given.add(above)
        if word in _ALONE:
            continue
        value, form = rest.pop(0) if rest else "", _PLACE[word]
        if not value or (form and not form.fullmatch(value)):
            raise UsageError(f"`{value}` is not a value of `{word}`" if value else f"`{word}` has no value")
    if not rest:
        raise UsageError(f"there is no discipline; write one as tc does: {EXAMPLE}")
    if "dev" not in given:
        raise UsageError("tc refuses a command without `dev`")
    if not given & {"root or parent", "handle"}:
        raise UsageError("the kernel refuses a command with neither `root` nor `parent`")
    return rest
