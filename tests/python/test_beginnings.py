"""The first commands: the demonstration from the package, and scenarios to begin with."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from aqmlab.language.templates import DEMO, TEMPLATES
from living import why_not

ROOT = Path(__file__).parents[2]
NOT_RUN_LIVE = why_not("root")


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty directory in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_demonstration_runs_where_there_is_no_clone(empty):
    # With -P and an empty directory, only the installed package is found.
    command = [sys.executable, "-P", "-m", "aqmlab", "demo", "--runs", "1"]
    ended = subprocess.run(command, cwd=empty, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    for word in ("RED and its relatives against DropTail", "goodput [Mbit/s]", "Adaptive RED + ECN"):
        assert word in ended.stdout
    (directory,) = (empty / "runs").iterdir()
    assert f"report     runs/{directory.name}/report.html" in ended.stderr
    assert (directory / "report.html").is_file()
    assert (directory / "scenario.toml").read_bytes() == DEMO.read_bytes()


def test_the_demonstration_is_one_file():
    assert (ROOT / "scenarios" / "demo.toml").samefile(DEMO)
    assert "aqmlab demo" in (ROOT / "tools" / "demo.sh").read_text(encoding="utf-8")


def test_demo_refuses_what_run_refuses(aqmlab_cli, empty):
    ended = aqmlab_cli("demo", "--runs", "0")
    assert (ended.returncode, ended.stdout, list(empty.iterdir())) == (2, "", [])
    assert "`0` runs" in ended.stderr


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_scenario_runs_as_it_stands(aqmlab_cli, empty, template):
    made = aqmlab_cli("new", "my study", "--template", template)
    assert (made.returncode, made.stdout) == (0, "my study.toml\n"), made.stderr
    assert made.stderr == f"run it     aqmlab {TEMPLATES[template]} 'my study.toml'\n"
    text = (empty / "my study.toml").read_text(encoding="utf-8")
    assert f"`aqmlab {TEMPLATES[template]} 'my study.toml'`" in text
    assert tomllib.loads(text)["title"] == "my study"
    assert "FILE" not in text
    assert "NAME" not in text
    simulate = "run" if TEMPLATES[template] == "live" else TEMPLATES[template]
    ran = aqmlab_cli(simulate, "my study.toml", "--runs", "1", "--no-report", "-q")
    assert ran.returncode == 0, ran.stderr
    assert "my study" in ran.stdout
    # A single run has no interval; this is the only doubt that the checks raise about the example.
    doubts = [line for line in ran.stdout.splitlines() if line.startswith(("serious", "warning"))]
    assert all("one run" in line for line in doubts), doubts


@pytest.mark.slow
@pytest.mark.skipif(bool(NOT_RUN_LIVE), reason=NOT_RUN_LIVE or "-")
@pytest.mark.usefixtures("empty")
def test_the_template_for_live_runs_runs_live(aqmlab_cli):
    assert aqmlab_cli("new", "real", "--template", "live").returncode == 0
    ended = aqmlab_cli("live", "real.toml", "--no-report", "-q")
    # On a busy machine, a run may be unfaithful; the experiment still has an answer.
    assert ended.returncode in (0, 5), ended.stderr
    assert "CoDel" in ended.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["new"], 2, "Missing argument"),
        (["new", "there"], 2, "`there.toml` exists already"),
        (["new", "there.toml"], 2, "`there.toml` exists already"),
        (["new", "x", "--template", "dumbel"], 2, "no template `dumbel`; did you mean `dumbbell`?"),
        (["new", ""], 2, "`` is not a name for a scenario"),
        (["new", ".toml"], 2, "`.toml` is not a name for a scenario"),
        (["new", "x/"], 2, "`x/` is not a name for a scenario"),
        (["new", "a\nb"], 2, "is not a name for a scenario"),
        (["new", "none/x"], 3, "cannot write `none/x.toml`: No such file"),
    ],
)
def test_nothing_is_overwritten_or_half_written(aqmlab_cli, empty, words, code, message):
    there = empty / "there.toml"
    there.write_text("mine\n", encoding="utf-8")
    ended = aqmlab_cli(*words)
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert message in ended.stderr
    assert list(empty.iterdir()) == [there]
    assert there.read_text(encoding="utf-8") == "mine\n"


@pytest.mark.usefixtures("empty")
def test_a_title_may_have_any_sign(aqmlab_cli):
    assert aqmlab_cli("new", 'a "b" \\ c').returncode == 0
    resolved = json.loads(aqmlab_cli("show", 'a "b" \\ c.toml', "--json").stdout)
    assert resolved["title"] == 'a "b" \\ c'
