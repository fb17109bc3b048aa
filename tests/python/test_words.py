"""Words of the command line: parsed without Pydantic where possible, with the same result as with Typer."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from aqmlab.cli.quick_parse import read_quickly

seen: list[object] = []


class Colour(Enum):
    RED = "red"


def application():
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.command()
    def first(
        path: Path,
        count: Annotated[int | None, typer.Option()] = None,
        least: Annotated[int, typer.Option(min=3)] = 3,
        most: Annotated[int, typer.Option()] = 128,
        share: Annotated[float | None, typer.Option()] = None,
        there: Annotated[Path | None, typer.Option(exists=True)] = None,
        folder: Annotated[Path | None, typer.Option(file_okay=False)] = None,
        name: Annotated[list[str] | None, typer.Option()] = None,
        number: Annotated[list[int] | None, typer.Option()] = None,
        colour: Annotated[Colour | None, typer.Option()] = None,
        loud: Annotated[bool, typer.Option(callback=lambda value: not value)] = False,
        doubled: Annotated[str, typer.Option(callback=lambda value: value * 2)] = "a",
    ):
        seen.append((path, count, least, most, share, there, folder, name, number, colour, loud, doubled))

    @app.command()
    def second():
        seen.append("second")

    return app


def outcome(words, quick):
    """Return the arguments that the command receives, or how it exits."""
    seen.clear()
    command = get_command(application())
    if quick:
        read_quickly(command)
    try:
        command(words, standalone_mode=False)
    except typer.TyperException as error:
        return type(error).__name__, str(error)
    return list(map(repr, seen))


CASES = [
    ["first", "x"],
    ["first"],
    ["second"],
    ["first", "x", "--count", "12", "--least", "4", "--share", "0.5"],
    ["first", "x", "--count", "0012"],
    ["first", "x", "--count", "-1"],
    ["first", "x", "--count", " 7 "],
    ["first", "x", "--count", "1_000"],
    ["first", "x", "--count", "٣"],
    ["first", "x", "--count", "²"],
    ["first", "x", "--count", "9" * 18],
    ["first", "x", "--count", "9" * 40],
    ["first", "x", "--count", "many"],
    ["first", "x", "--count", ""],
    ["first", "x", "--least", "2"],
    ["first", "x", "--most", "12"],
    ["first", "x", "--most", "x"],
    ["first", "x", "--share", "much"],
    ["first", "x", "--there", "nowhere"],
    ["first", "x", "--there", "."],
    ["first", "x", "--folder", __file__],
    ["first", "x", "--folder", "."],
    ["first", "x", "--name", "a", "--name", "b"],
    ["first", "x", "--number", "1", "--number", "2"],
    ["first", "x", "--number", "1", "--number", "b"],
    ["first", "x", "--colour", "red"],
    ["first", "x", "--colour", "blue"],
    ["first", "x", "--loud", "--doubled", "b"],
    ["first", ""],
    ["first", "-"],
    ["third"],
]


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_words_are_read_as_typer_reads_them(words):
    assert outcome(words, quick=True) == outcome(words, quick=False)


def test_times_are_written_without_an_exponent():
    from aqmlab.text.numbers import time_text

    cases = {
        40: "40 s",
        0: "0 s",
        0.5: "0.5 s",
        1e-3: "0.001 s",
        96e-6: "96 us",
        2.5e-4: "250 us",
        3e-8: "30 ns",
    }
    assert {seconds: time_text(seconds) for seconds in cases} == cases
    assert time_text(12.345678, 3) == "12.3 s"
    assert time_text(-96e-6) == "-96 us"
    assert time_text(2e6) == "2000000 s"
