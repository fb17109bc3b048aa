"""Messages about external failures: a closed pipe, a full disk, bytes that are not text."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w

import aqmlab
from aqmlab.system.files import json_text


@pytest.fixture
def failing(small, tmp_path):
    """A scenario with a firm claim that fails."""
    claim = {"name": "wrong", "expect": "goodput_bps{arm=DropTail} > 100Mbit"}
    file = tmp_path / "failing.toml"
    file.write_text(tomli_w.dumps(small | {"runs": 6, "duration": "3s", "claim": [claim]}), encoding="utf-8")
    return file


@pytest.mark.parametrize("streams", [{"stdout"}, {"stdout", "stderr"}])
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_reader_who_goes_costs_neither_the_report_nor_the_exit_code(failing, tmp_path, words, streams):
    command = [sys.executable, "-m", "aqmlab", "run", failing, "-o", tmp_path / "out", *words]
    pipes = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE if "stderr" in streams else subprocess.DEVNULL,
    }
    with subprocess.Popen(command, **pipes) as process:
        for name in streams:
            getattr(process, name).close()
    assert process.returncode == 1
    assert (tmp_path / "out" / "report.html").read_text().rstrip().endswith("</html>")
    assert json.loads((tmp_path / "out" / "claims.json").read_text())["counts"]["firm"]["fails"] == 1


def test_the_report_of_one_class_has_a_name_of_its_own(experiment, tmp_path, aqmlab_cli):
    import shutil

    copied = shutil.copytree(experiment.path, tmp_path / "copy")
    assert aqmlab_cli("report", copied).returncode == 0
    whole = (copied / "report.html").read_bytes()
    ended = aqmlab_cli("report", copied, "--class", "cbr")
    assert ended.returncode == 0
    assert f"report     {copied / 'report-cbr.html'}" in ended.stderr
    assert (copied / "report.html").read_bytes() == whole
    assert "Class cbr alone." in (copied / "report-cbr.html").read_text()
    assert "Class" not in aqmlab_cli("report", copied, "-o", tmp_path / "one.html").stderr
    assert aqmlab_cli("report", copied, "--class", "cbr", "-o", tmp_path / "two.html").returncode == 0
    assert "Class cbr alone." in (tmp_path / "two.html").read_text()


def test_numbers_that_are_none_are_null():
    content = {"a": [float("nan"), 1.5, (float("inf"),)], "b": {"c": -float("inf")}, "d": "NaN"}
    assert json.loads(json_text(content), parse_constant=pytest.fail) == {
        "a": [None, 1.5, [None]],
        "b": {"c": None},
        "d": "NaN",
    }


def test_nan_of_a_query_is_null(experiment, aqmlab_cli):
    ended = aqmlab_cli("query", "SELECT 'nan'::DOUBLE AS x, 'inf'::DOUBLE AS y", experiment.path, "--json")
    assert json.loads(ended.stdout, parse_constant=pytest.fail)["rows"] == [{"x": None, "y": None}]


@pytest.mark.parametrize("ending", ["pdf", "svg", "png", "csv"])
def test_a_figure_without_room_leaves_what_was_there(experiment, tmp_path, ending):
    file = tmp_path / f"figure.{ending}"
    command = [sys.executable, "-m", "aqmlab", "plot", experiment.path, "cumulative-ack", "-o", file]

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    def drawn():
        return subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=no_room)

    ended = drawn()
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr == f"error: cannot write `{file}`: File too large\n"
    assert list(tmp_path.iterdir()) == []
    file.write_text("of before")
    assert drawn().returncode == 3
    assert file.read_text() == "of before"
    assert list(tmp_path.iterdir()) == [file]


def test_a_query_that_is_no_text_is_refused(experiment):
    words = [sys.executable, "-m", "aqmlab", "query", b'SELECT 1 AS "a\xff"', os.fsencode(experiment.path)]
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, "error: the query is not UTF-8 text\n")


def test_a_recording_in_a_directory_that_is_no_text_is_not_called_corrupt(experiment, tmp_path):
    import shutil

    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff"))
    shutil.copytree(experiment.path, odd)
    with pytest.raises(aqmlab.RecordingError, match="its name is not UTF-8 text; rename the directory"):
        aqmlab.answer(aqmlab.load(odd))


def test_a_pipe_as_a_trace_is_refused_at_once(tmp_path, small):
    os.mkfifo(tmp_path / "trace.csv")
    traffic = [{"name": "web", "kind": "trace", "file": "trace.csv"}]
    arms = [{"name": "DropTail"}]
    scenario = tmp_path / "piped.toml"
    scenario.write_text(tomli_w.dumps(small | {"traffic": traffic, "arm": arms}), encoding="utf-8")
    words = [sys.executable, "-m", "aqmlab", "run", scenario]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "cannot read the trace `trace.csv`: it is a pipe" in ended.stderr


def test_every_wrong_claim_and_metric_is_told(small, tmp_path, aqmlab_cli):
    claims = [
        {"name": "one", "expect": "goodput_bpss{arm=DropTail} > 1Mbit"},
        {"name": "two", "expect": "goodput_bps{arm=DropTail} > 1Mbit"},
        {"name": "three", "expect": "goodput_bps{arm=RET} > 1Mbit"},
    ]
    file = tmp_path / "wrong.toml"
    file.write_text(tomli_w.dumps(small | {"claim": claims}), encoding="utf-8")
    for command in ("run", "sweep"):
        ended = aqmlab_cli(command, file)
        assert ended.returncode == 2
        first, second = ended.stderr.splitlines()
        assert f"{file}:" in first
        assert "claim `one`" in first
        assert second.startswith(f"{file}:")
        assert "claim `three`" in second
    metrics = ["goodput", "drop_percent", "delay"]
    file.write_text(tomli_w.dumps(small | {"metrics": metrics}), encoding="utf-8")
    ended = aqmlab_cli("run", file)
    assert [line.split("`")[1] for line in ended.stderr.splitlines()] == ["goodput", "delay"]


def test_every_mistake_in_a_file_of_claims_is_told(experiment, tmp_path, aqmlab_cli):
    file = tmp_path / "claims.toml"
    file.write_text(
        '[[claim]]\nname = "a"\nexpekt = "x"\nstrength = "hard"\n[[claim]]\nname = "b"\nexpect = ""\n',
        "utf-8",
    )
    ended = aqmlab_cli("claims", experiment.path, "--file", file)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 4
    assert all(str(file) in line for line in ended.stderr.splitlines())


def test_a_claim_that_cannot_be_scored_names_its_file(small, tmp_path, aqmlab_cli):
    claim = {"name": "late", "expect": "goodput_bps{arm='RED + ECN'} > 1kbit"}
    file = tmp_path / "late.toml"
    file.write_text(tomli_w.dumps(small | {"runs": 1, "duration": "2s", "claim": [claim]}), encoding="utf-8")
    ended = aqmlab_cli("run", file, "--arm", "DropTail", "-o", tmp_path / "out", "--no-report")
    assert "scenario.toml:" in ended.stdout


def test_more_runs_than_a_sweep_may_have_are_refused_before_they_are_planned(tmp_path, aqmlab_cli):
    from sweeping import tiny

    file = tmp_path / "many.toml"
    rates = [f"{rate}kbit" for rate in range(1000, 1007)]
    file.write_text(tomli_w.dumps(tiny(claim=[], sweep={"topology.rate": rates})), encoding="utf-8")
    for words in (("--dry-run",), ()):
        ended = aqmlab_cli("sweep", file, "--runs", "100000", "--store", tmp_path / "store", *words)
        assert ended.returncode == 2
        assert "7 cases of 2 arms with 100000 seeds each are 1400000 runs; at most 1000000" in ended.stderr


def test_a_forecast_warns_of_what_this_machine_lacks(tmp_path, aqmlab_cli, monkeypatch):
    import shutil

    from aqmlab.sweeps import forecast
    from sweeping import tiny

    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(tiny()), encoding="utf-8")
    words = ("sweep", file, "--dry-run", "--store", tmp_path / "store")
    assert "warning" not in aqmlab_cli(*words).stderr
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 5, 5))
    monkeypatch.setattr(forecast, "memory_cap", lambda _: 1)
    told = aqmlab_cli(*words).stderr
    assert f"warning: the disk of `{tmp_path / 'store'}` has 5e-06 MB left, and about " in told
    assert "warning: 24 of 24 runs need more memory than the 1e-06 MB that each of" in told


def test_numbers_have_no_signed_zero_and_no_infinity():
    from aqmlab.text.numbers import change_text, counted, fixed, number

    assert [fixed(-0.001, 2), fixed(-0.01, 2), number(-0.0)] == ["0.00", "-0.01", "0"]
    texts = [change_text(share) for share in (-0.0001, 0.0, 0.012, -0.034, float("inf"))]
    assert texts == ["0.0 %", "0.0 %", "+1.2 %", "−3.4 %", "–"]
    assert [counted(1, "run"), counted(2, "run")] == ["1 run", "2 runs"]


def test_remarks_of_several_classes_are_one():
    from aqmlab.recordings.faithfulness import grouped

    remarks = ["class `a`: x", "of all", "class `b`: x", "class `a`: y", "class `b`: x"]
    assert grouped(remarks) == ["classes `a`, `b`: x", "of all", "class `a`: y"]


def test_a_report_tells_of_how_many_flows_it_draws_windows(small, experiment, tmp_path):
    many = small | {"runs": 1, "duration": "2s", "arm": [{"name": "DropTail"}]}
    many["traffic"][0]["count"] = 12
    page = aqmlab.report(aqmlab.run(many, output=tmp_path / "many", report=False).path).read_text()
    assert "windows are drawn for the first 10 of 13 flows." in page
    few = aqmlab.report(experiment.path, tmp_path / "few.html").read_text()
    assert "windows are drawn" not in few
    assert "right-hand" not in few


def _in_encoding(encoding, *words):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "90"}
    command = [sys.executable, "-m", "aqmlab", *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, env=environment)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_encoding_that_lacks_characters_changes_neither_the_layout_nor_the_data(experiment, encoding):
    whole, shown = (_in_encoding(each, "report", experiment.path) for each in ("utf-8", encoding))
    assert (whole.returncode, shown.returncode, shown.stderr) == (0, 0, whole.stderr)
    words = [text.decode(each).split() for text, each in ((whole.stdout, "utf-8"), (shown.stdout, encoding))]
    assert len(words[0]) == len(words[1])
    table = shown.stdout.decode(encoding).split("\n\n")[1].splitlines()
    assert set(table[1]) == {"-"}
    assert len({len(line) for line in table[1:-1]}) == 1
    told = [_in_encoding(each, "report", experiment.path, "--json").stdout for each in ("utf-8", encoding)]
    assert json.loads(told[0].decode("utf-8")) == json.loads(told[1].decode(encoding))


def test_text_that_an_encoding_lacks_is_escaped(small, tmp_path):
    odd = tmp_path / "ö.toml"
    odd.write_text(tomli_w.dumps(small | {"title": "Schön − 漢"}), encoding="utf-8")
    shown = _in_encoding("ascii", "show", odd)
    assert (shown.returncode, b"Sch\\xf6n - \\u6f22" in shown.stdout) == (0, True)
    assert json.loads(_in_encoding("ascii", "show", odd, "--json").stdout)["title"] == "Schön − 漢"


@pytest.mark.parametrize("megabytes", [150, 900])
@pytest.mark.parametrize("command", ["report", "plot", "query", "run"])
def test_a_small_address_space_is_refused_with_a_reason(experiment, small_file, tmp_path, command, megabytes):
    paths = {
        "report": [experiment.path, "-o", tmp_path / "report.html"],
        "plot": [experiment.path, "series", "-o", tmp_path / "series.svg"],
        "query": ["SELECT 1", experiment.path],
        "run": [small_file, "-o", tmp_path / "out"],
    }
    words = [sys.executable, "-m", "aqmlab", command, *map(str, paths[command])]
    limit = megabytes * 1_000_000

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    ended = subprocess.run(words, check=False, capture_output=True, text=True, preexec_fn=limited)
    assert (ended.returncode, ended.stdout) == (3, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ")
    assert "(`ulimit -v`)" in line
    assert list(tmp_path.glob("[!s]*")) == []


@pytest.mark.parametrize("words", [("metrics",), ("run", "--help"), ("aqm", "show", "red")])
def test_commands_that_read_no_recording_work_in_a_small_address_space(words):
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (300_000_000, 300_000_000))

    command = [sys.executable, "-m", "aqmlab", *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=limited)
    assert (ended.returncode, ended.stderr) == (0, "")
