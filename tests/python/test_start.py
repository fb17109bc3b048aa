"""Parts that start-up omits are imported on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

import aqmlab
from aqmlab.cli.app import application
from aqmlab.reports.templates import Compiled, environment


def test_every_public_name_is_there():
    for name in aqmlab.__all__:
        assert getattr(aqmlab, name) is not None
        assert name in dir(aqmlab)
    assert set(aqmlab._MODULES) - {"__version__"} <= set(aqmlab.__all__)
    with pytest.raises(AttributeError, match="has no attribute `nothing`"):
        _ = aqmlab.nothing


def test_the_package_alone_imports_none_of_its_modules():
    code = "import sys, aqmlab; print(*(name for name in sys.modules if name.startswith('aqmlab.')))"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["aqmlab.errors"]


def test_a_command_imports_no_other_command():
    code = (
        "import sys; from aqmlab.cli.app import application; application(['cite', 'blue']);"
        " print(*(name for name in sys.modules if name.startswith('aqmlab.cli.')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = {name.removeprefix("aqmlab.cli.") for name in ended.stdout.split()}
    assert "cite" in found
    assert not found & {"aqm", "beginnings", "outcome", "paper", "plot", "report", "run", "sweep"}


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_list_of_commands_is_that_of_the_whole_application(option, capsys):
    def listed(words):
        get_command(application(words))([option], standalone_mode=False, prog_name="aqmlab")
        return capsys.readouterr().out

    whole = listed([])
    assert "sweep " in whole
    assert listed([option]) == whole


@pytest.fixture
def greeting(tmp_path, monkeypatch):
    """The output of a template with this text, compiled with a cache in ``tmp_path``."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)

    def read(text):
        (tmp_path / "greeting.j2").write_text(text, encoding="utf-8")
        templates = environment().overlay(bytecode_cache=Compiled(tmp_path))
        templates.loader = type(templates.loader)(tmp_path)
        return templates.get_template("greeting.j2").render(name="<you>")

    return read


def kept(folder):
    return list((folder / "__pycache__").glob("*"))


def test_a_template_is_compiled_once_and_again_when_it_changes(greeting, tmp_path):
    assert greeting("hello {{ name }}") == "hello &lt;you&gt;"
    (file,) = kept(tmp_path)
    first = file.read_bytes()
    assert greeting("hello {{ name }}") == "hello &lt;you&gt;"
    assert file.read_bytes() == first
    # The cached template is the one in use.
    file.write_bytes(first.replace(b"hello ", b"howdy "))
    assert greeting("hello {{ name }}") == "howdy &lt;you&gt;"
    assert greeting("bye {{ name }}") == "bye &lt;you&gt;"
    assert kept(tmp_path) == [file]


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_damaged_code_is_compiled_again(greeting, tmp_path, damage):
    assert greeting("hello {{ name }}") == "hello &lt;you&gt;"
    (file,) = kept(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:-20] if damage is None else damage)
    assert greeting("hello {{ name }}") == "hello &lt;you&gt;"
    assert file.read_bytes() == whole


def test_where_python_writes_no_code_templates_leave_none(greeting, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert greeting("hello {{ name }}") == "hello &lt;you&gt;"
    assert not (tmp_path / "__pycache__").exists()


def test_a_folder_that_cannot_be_written_is_no_hindrance(greeting, tmp_path):
    (tmp_path / "__pycache__").write_text("in the way", encoding="utf-8")
    assert greeting("hello {{ name }}") == "hello &lt;you&gt;"
