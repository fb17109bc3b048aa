"""The manual pages: one per command, with every option that its help shows; man reports no errors in them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from aqmlab.cli.app import application

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import man_pages  # noqa: E402


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    man_pages.main(folder)
    return folder


@pytest.fixture(scope="module")
def commands():
    """The contexts of all commands, by the names of their manual pages."""
    return {
        c.command_path.replace(" ", "-"): c for c in man_pages.contexts(get_command(application()), "aqmlab")
    }


def plain(text: str) -> str:
    return text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def test_each_command_has_a_page_with_all_its_options(written, commands):
    assert {file.stem for file in written.iterdir()} == set(commands)
    for name, context in commands.items():
        text = plain((written / f"{name}.1").read_text(encoding="utf-8"))
        options = context.command.get_help(context).partition("Options:")[2].partition("\nCommands:")[0]
        shown = set(re.findall(r"(?<![\w-])--?\w[\w-]*", options))
        assert {"-h", "--help"} <= shown
        missing = {word for word in shown if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)}
        assert not missing, name


def test_the_first_page_has_the_exit_codes_and_names_the_others(written):
    text = plain((written / "aqmlab.1").read_text(encoding="utf-8"))
    status = text.partition(".SH EXIT STATUS\n")[2]
    assert status.startswith("0 success, 1 a check or claim failed")
    assert ".BR aqmlab-run (1)" in status


def test_lines_that_look_like_requests_are_text():
    assert man_pages.escaped(".TH evil\n'so \\n-1") == "\\&.TH evil\n\\&'so \\en\\-1"


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_finds_nothing_to_warn_of(written):
    checked = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", *map(str, sorted(written.iterdir()))],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert checked.stdout + checked.stderr == ""


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_warns_of_nothing(written):
    for file in sorted(written.iterdir()):
        command = ["groff", "-man", "-Tutf8", "-ww", "-z", str(file)]
        checked = subprocess.run(command, check=False, capture_output=True, text=True)
        assert checked.stderr == "", file.name
