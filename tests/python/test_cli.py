"""The command line: exit codes, output streams, and no traceback for a user's mistakes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
import tomli_w
from typer.main import get_command

import aqmlab as package
from aqmlab.cli import main
from aqmlab.cli.app import application
from aqmlab.cli.progress import ProgressLine, duration_text, progress_text
from aqmlab.sweeps.progress import Progress
from resealed import reseal
from signalled import started_with_all_signals

ROOT = Path(__file__).parents[2]


@pytest.fixture
def aqmlab(aqmlab_cli):
    return aqmlab_cli


def aqmlab_process(*words):
    command = [sys.executable, "-m", "aqmlab", *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_run_ends_with_a_table_and_the_report(aqmlab, small_file, tmp_path):
    ended = aqmlab("run", small_file, "-o", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    for word in (
        "Does it run?",
        "DropTail",
        "RED + ECN",
        "goodput [Mbit/s]",
        "queueing delay, p99 [ms]",
        "±",
    ):
        assert word in ended.stdout
    assert "mean ± 95 % t interval over 2 seeds (1 to 2)" in ended.stdout
    assert f"{tmp_path}/out/report.html" in ended.stderr
    assert (tmp_path / "out" / "report.html").is_file()


def test_json_is_alone_on_stdout(aqmlab, small_file, tmp_path):
    ended = aqmlab("run", small_file, "-o", tmp_path / "out", "--runs", "1", "--json", "-q")
    answer = json.loads(ended.stdout)
    assert ended.stderr == ""
    assert [cell["arm"] for cell in answer["cells"]] == ["DropTail", "RED + ECN"]
    goodput = answer["cells"][0]["values"]["goodput_bps"]
    assert goodput["n"] == 1
    assert goodput["half_width"] is None
    assert goodput["mean"] == goodput["by_seed"]["1"]


def test_one_run_says_that_it_has_no_interval(aqmlab, small_file, tmp_path):
    ended = aqmlab("run", small_file, "-o", tmp_path / "out", "--runs", "1", "--no-report")
    assert "one run (seed 1): no interval" in ended.stdout
    assert "±" not in ended.stdout
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["the file is empty"]),
        ("duration = [", ["bad.toml:1:"]),
        ('duration = "10s"\nwarmup = "20s"\n', ["bad.toml:"]),
        ('durration = "10s"\n', ["bad.toml:1:1", "durration", "duration"]),
    ],
)
def test_a_bad_scenario_is_exit_2_with_its_place(aqmlab, tmp_path, text, words):
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    for command in (["run", file, "-o", tmp_path / "out"], ["show", file]):
        ended = aqmlab(*command)
        assert ended.returncode == 2
        assert ended.stdout == ""
        assert "Traceback" not in ended.stderr
        for word in words:
            assert word in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "{tmp}/none.toml"], 2, "cannot read the scenario: No such file"),
        (["run", "{tmp}"], 2, "cannot read the scenario: Is a directory"),
        (["run", "{tmp}/binary.toml"], 2, "not UTF-8"),
        (["run"], 2, "Missing argument"),
        (["run", "{small}", "--bogus"], 2, "No such option"),
        (["run", "{small}", "--runs", "0"], 2, "`0` runs"),
        (["run", "{small}", "--seed", "-3"], 2, "the seed `-3`"),
        (["run", "{small}", "--jobs", "0"], 2, "`0` is not a valid number of jobs"),
        (
            ["run", "{small}", "--arm", "BLUE"],
            2,
            "there is no arm `BLUE`; the arms are `DropTail`, `RED + ECN`",
        ),
        (["run", "{small}", "-o", "{tmp}"], 2, "exists already"),
        (["run", "{small}", "-o", "{tmp}/binary.toml/out"], 3, "cannot make"),
        (["run", "{small}", "-o", "/proc/aqmlab/out"], 3, "cannot make"),
        (["show", "{small}", "--arm", "BLUE"], 2, "there is no arm"),
        (["report", "{tmp}/none"], 4, "no such directory"),
        (["claims", "{recording}", "{tmp}"], 2, "2 of the arguments are paths"),
        (["report", "{recording}", "--metric", "goodputt"], 2, "there is no metric `goodputt`"),
        (["report", "{recording}", "--queue", "x"], 2, "there is no queue `x`"),
        (["report", "{recording}", "--class", "x"], 2, "there is no class `x`"),
        (["report", "{recording}", "-o", "/proc/report.html"], 3, "cannot write"),
        (["plot", "{recording}", "pie"], 2, "there is no figure `pie`"),
        (["plot", "{recording}", "series", "-o", "{tmp}/x.gif"], 2, "no format for"),
        (["aqm", "show", "nosuch"], 2, "there is no discipline `nosuch`"),
        (["aqm", "show", "hhf"], 2, '"hhf" is not implemented yet; nearest: "fq_codel"'),
        (["aqm", "show", "pfifo"], 2, 'here it is called "droptail"'),
        (["nosuch"], 2, "No such command"),
    ],
)
def test_what_is_wrong_is_said_with_the_right_exit_code(
    aqmlab, words, code, message, tmp_path, small_file, experiment, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    names = {"tmp": tmp_path, "small": small_file, "recording": experiment.path}
    ended = aqmlab(*(word.format(**names) for word in words))
    assert ended.returncode == code, ended.stderr
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    assert not (tmp_path / "runs").exists()


def test_a_corrupt_recording_is_exit_4(aqmlab, experiment, tmp_path):
    shutil.copytree(experiment.path, tmp_path / "copy")
    (tmp_path / "copy" / "droptail" / "seed-1" / "summary.parquet").write_bytes(b"PAR1")
    ended = aqmlab("report", tmp_path / "copy")
    assert ended.returncode == 4
    assert "is corrupt" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seed", "x", "`seed` is not of type int"),
        ("tables", 5, "`tables` is not of type dict"),
        ("links", None, "`links` is not of type list"),
        ("plan", {}, "has a plan that cannot be read: `record` is missing"),
        ("plan", {"record": {}, "nodes": 3}, "has a plan that cannot be read: 'int' object is not iterable"),
    ],
)
def test_a_manifest_of_other_content_is_exit_4(aqmlab, experiment, tmp_path, key, value, message):
    shutil.copytree(experiment.path, tmp_path / "copy")
    file = tmp_path / "copy" / "droptail" / "seed-1" / "manifest.json"
    reseal(file.parent, **{key: value})
    ended = aqmlab("report", tmp_path / "copy")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert message in ended.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_an_unwritable_directory_is_exit_3(aqmlab, small_file, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    ended = aqmlab("run", small_file, "-o", locked / "out")
    assert ended.returncode == 3
    assert "Permission denied" in ended.stderr


def test_show_tells_every_value_with_its_origin(aqmlab, small_file):
    ended = aqmlab("show", small_file)
    assert ended.returncode == 0
    for word in ("topology.queue.limit", "30p", "given", "default"):
        assert word in ended.stdout
    # The names that a user needs most come first.
    head = [" ".join(line.split()) for line in ended.stdout.split("parameter")[0].splitlines() if line]
    assert head == [
        "Small",
        "Does it run?",
        "arms DropTail, RED + ECN",
        "queues bottleneck, reverse",
        "classes ftp (3 bulk), cbr (1 cbr)",
        "seeds 1 to 2",
        "runs 4: 2 arms, 1 case, 2 seeds",
        *(line for line in head if line.startswith("warning")),
        "DropTail",
    ]
    (arm, *_) = json.loads(aqmlab("show", small_file, "--json").stdout)["arms"]
    assert {"path", "value", "origin", "source", "help", "aliases"} == set(arm["parameters"][0])


def test_the_schema_is_one_and_accepts_what_runs(aqmlab, small):
    schema = json.loads(aqmlab("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(small)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(small | {"durration": "1s"})


def test_show_tells_what_a_sweep_varies(aqmlab, small_file):
    sweep = '[sweep]\n"topology.rate" = ["1Mbit", "2Mbit"]\n"traffic.ftp.count" = [1, 2, 3]\n'
    small_file.write_text(small_file.read_text() + sweep)
    shown = aqmlab("show", small_file)
    assert shown.returncode == 0, shown.stderr
    assert "The classes and values shown are those of the first case." in shown.stdout
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "runs 24: 2 arms, 6 cases, 2 seeds" in lines
    assert "rate topology.rate 1Mbit, 2Mbit" in lines
    assert "count traffic.ftp.count 1, 2, 3" in lines
    assert "topology.rate 1Mbit given scenario language" in lines


def test_disciplines_are_listed_and_shown(aqmlab):
    names = [entry["name"] for entry in json.loads(aqmlab("aqm", "list", "--json").stdout)]
    assert {"droptail", "red", "ared"} <= set(names)
    assert all(name in aqmlab("aqm", "list").stdout for name in names)
    red = json.loads(aqmlab("aqm", "show", "red", "--json").stdout)
    assert {"min_th", "max_th", "w_q", "max_p"} <= {param["name"] for param in red["params"]}
    assert "thresh_ (ns-2)" in aqmlab("aqm", "show", "red").stdout


def test_metrics_are_listed_a_line_each(aqmlab):
    entries = json.loads(aqmlab("metrics", "--json").stdout)
    head, _, *lines = aqmlab("metrics").stdout.splitlines()
    assert head.split() == ["name", "unit", "better", "scope", "parameters", "definition"]
    assert [line.split()[0] for line in lines] == [entry["name"] for entry in entries]
    assert all(line.endswith(entry["definition"]) for line, entry in zip(lines, entries, strict=True))
    by_name = {entry["name"]: entry for entry in entries}
    assert by_name["goodput_bps"]["asked_of"] == ["queue", "class", "router", "window"]
    assert by_name["queueing_delay_p99_s"]["asked_of"] == ["queue", "class"]
    assert [p["name"] for p in by_name["average_in_band_percent"]["parameters"]] == ["low", "high"]


def test_a_metric_is_told_with_its_source_and_parameters(aqmlab):
    shown = aqmlab("metrics", "loss_bins_percent")
    (entry,) = (e for e in json.loads(aqmlab("metrics", "--json").stdout) if e["name"] == "loss_bins_percent")
    assert json.loads(aqmlab("metrics", "loss_bins_percent", "--json").stdout) == entry
    for words in (entry["definition"], entry["source"], "Scope: queue, window.", "length of a bin"):
        assert words in " ".join(shown.stdout.split())
    wrong = aqmlab("metrics", "los_bins")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "error: there is no metric `los_bins`; did you mean `loss_bins_percent`?\n"


def test_report_can_look_at_one_class_and_one_metric(aqmlab, experiment, tmp_path):
    words = [
        "report",
        experiment.path,
        "--class",
        "cbr",
        "--metric",
        "goodput_bps",
        "-o",
        tmp_path / "r.html",
    ]
    answer = json.loads(aqmlab(*words, "--json").stdout)
    assert answer["class"] == "cbr"
    # 500 B every 40 ms is 100 kbit/s, headers of 28 B included; DropTail may lose some of it
    assert answer["cells"][0]["values"]["goodput_bps"]["mean"] == pytest.approx(100_000, rel=0.1)


@pytest.mark.parametrize("kind", ["series", "delay-cdf", "goodput-delay"])
@pytest.mark.parametrize(("ending", "magic"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_figures_are_the_same_bytes_twice(kind, ending, magic, experiment, tmp_path):
    from aqmlab.plots import draw

    files = [draw(experiment, kind, tmp_path / f"{i}.{ending}") for i in (1, 2)]
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(magic)
    assert first == second


def test_the_help_has_the_exit_codes():
    said = " ".join(aqmlab_process("--help").stdout.split())
    for code in (
        "0 success",
        "1 a check",
        "2 a usage",
        "3 this machine",
        "4 runs",
        "5 a live",
        "6 an arm was skipped",
        "130 interrupted",
    ):
        assert code in said


def commands():
    """Each command with the names of its options."""

    def below(command, words):
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                yield from below(inner, [*words, name])
        else:
            options = [p.opts for p in command.params if p.param_type_name == "option"]
            yield " ".join(words), options

    return dict(below(get_command(application()), []))


def test_options_have_the_same_names_in_every_command():
    usual = {"--output": "-o", "--jobs": "-j", "--quiet": "-q", "--seeds": "--runs", "--json": "--json"}
    for name, options in commands().items():
        # Random scripts are no runs.
        expected = usual | ({"--seeds": "--seeds"} if name == "aqm check" else {})
        for option in options:
            assert not {"--workers", "--out", "--write"} & {option[0]}, name
            for long, short in expected.items():
                assert {long, short} <= {*option} or not {long, short} & {*option}, (name, option)
    flags = {name: {flag for option in options for flag in option} for name, options in commands().items()}
    # These say nothing but the answer.
    answers = {
        "compare",
        "claims",
        "show",
        "doctor",
        "export",
        "verify",
        "metrics",
        "paper list",
        "cite",
        "schema",
        "trace-import",
        "playground",
    }
    of_aqm = {"aqm list", "aqm show", "aqm tc"}
    assert {name for name, known in flags.items() if "-q" not in known} == answers | of_aqm
    # These write a file, print text in a format of its own, or leave stdout to a program.
    without = {"new", "export", "vectors", "plot recording", "plot law", "cite", "schema", "exec", "shell"}
    without |= {"playground"}
    assert {name for name, known in flags.items() if "--json" not in known} == without


def test_every_command_is_a_function_or_the_page_on_python_names_its_function():
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`aqmlab .+) \| (.+) \|$", page.split("The exceptions are:")[1], re.M)
    listed = {
        name for row, _ in rows for name in re.findall(r"`(?:aqmlab )?((?:paper )?[a-z]+(?: tc| law)?)", row)
    }
    functions = {name for _, of in rows for name in re.findall(r"`([a-z_]+)`", of)}
    assert functions <= {*package.__all__}
    for name in commands():
        assert re.sub("[ -]", "_", name) in package.__all__ or name.removesuffix(" recording") in listed, name


def test_help_answers_at_once():
    times = []
    for _ in range(3):
        before = os.times()
        assert aqmlab_process("--help").returncode == 0
        after = os.times()
        times.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    # CPU time is measured, because the machine may be busy; heavy imports alone would take several times
    # the limit.
    assert min(times) < 0.5


HEAVY = ("numpy", "scipy", "duckdb", "matplotlib", "jinja2", "pydantic")


def imported(*words):
    """The heavy packages that a command imports."""
    code = f"import sys; sys.argv = {['aqmlab', *map(str, words)]}\n"
    code += "try:\n import aqmlab.cli as cli; cli.main()\nexcept SystemExit as end: assert not end.code\n"
    code += f"print(*(name for name in {HEAVY} if name in sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return ended.stdout.splitlines()[-1].split()


def test_help_imports_nothing_heavy():
    assert imported("--help") == []


def test_a_run_imports_what_its_answer_takes(small_file, tmp_path):
    # Importing NumPy or Pydantic would make such a run take a fifth longer.
    words = ("run", small_file, "--runs", "1", "-q", "-o")
    assert imported(*words, tmp_path / "bare", "--no-report") == ["duckdb"]
    assert imported(*words, tmp_path / "reported") == ["duckdb", "jinja2"]


def test_a_reader_that_goes_away_is_no_error(small_file):
    ended = subprocess.run(
        f"{sys.executable} -m aqmlab show {small_file} --json | head -1",
        shell=True,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.stdout.strip() == "{"
    assert ended.stderr == ""


def test_the_code_of_a_pipe_is_that_of_success_when_its_reader_goes_away(small_file):
    command = f"{sys.executable} -m aqmlab show {small_file} --json | head -1; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", command], check=False, capture_output=True).returncode == 0


def test_closed_output_is_no_error():
    command = f"{sys.executable} -m aqmlab aqm list >&-"
    ended = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_ctrl_c_before_any_command_is_no_traceback(monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("aqmlab.cli.app.execute", interrupt)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, *capsys.readouterr()) == (130, "", "")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_keeps_finished_runs_and_nothing_half_done(number, code, small, tmp_path):
    scenario, directory = tmp_path / "long.toml", tmp_path / "out"
    scenario.write_text(tomli_w.dumps({**small, "runs": 10_000}), encoding="utf-8")
    command = [sys.executable, "-m", "aqmlab", "run", scenario, "-o", directory, "-j", "2"]
    with started_with_all_signals(command) as process:
        deadline = time.monotonic() + 60
        while not list(directory.glob("*/seed-*/manifest.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out) == (code, "")
    assert err == (
        f"interrupted; finished runs are kept in `{directory}`; resume with `--resume -o {directory}`\n"
    )
    assert not [path for path in directory.rglob("*") if "partial" in path.name]
    rest = aqmlab_process("report", directory)
    assert rest.returncode == 0, rest.stderr
    assert "runs are missing" in rest.stdout


def test_a_single_finished_run_of_many_has_no_interval(aqmlab, experiment, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(experiment.path, copy)
    for run in experiment.runs:
        if run.seed != 1:
            shutil.rmtree(copy / run.path.relative_to(experiment.path))
    ended = aqmlab("report", copy)
    assert "one run (seed 1): no interval; " in ended.stdout
    assert "±" not in ended.stdout
    assert "One run (seed 1): no interval" in (copy / "report.html").read_text(encoding="utf-8")


def test_where_nothing_is_random_the_table_says_so(aqmlab, tmp_path):
    """Without random draws, the runs of all seeds are the same, so an interval of zero width proves
    nothing."""
    bulk = {"name": "ftp", "kind": "bulk", "count": 2, "rtt": "40ms"}
    topology = {"kind": "dumbbell", "rate": "2Mbit", "delay": "5ms"}
    scenario = {"duration": "5s", "warmup": "1s", "runs": 3, "topology": topology, "traffic": [bulk]}
    file = tmp_path / "fixed.toml"
    file.write_text(tomli_w.dumps(scenario), encoding="utf-8")
    ended = aqmlab("run", file, "-o", tmp_path / "out", "-q")
    assert "all seeds gave the same values in main: there is no interval" in ended.stdout
    assert ".00000" not in ended.stdout, "rounding of a mean is no spread"


def test_two_experiments_of_the_same_second_get_a_directory_each(aqmlab, small_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("aqmlab.sweeps.experiment_directory.directory_name", lambda _cases: "now")
    for _ in range(2):
        assert aqmlab("run", small_file, "-q", "--no-report", "--runs", "1").returncode == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["now", "now-2"]


def test_progress_in_words():
    now = Progress(runs_total=70, runs_done=12, events=6_200_000, to_go_s=8.1)
    assert progress_text(now, 2.0) == "runs 12/70 · 6/s · 3.1 M events/s · 8 s to go"
    assert progress_text(now, 0.0) == "runs 12/70"
    assert [duration_text(s) for s in (5, 200, 9000)] == ["5 s", "3 min", "2.5 h"]


def test_progress_is_one_line_on_a_terminal_and_seldom_elsewhere():
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    now = Progress(runs_total=2, runs_done=1)
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        with ProgressLine(stream=stream) as line:
            for _ in range(5):
                line.update(now)
    assert terminal.getvalue().count("runs 1/2") == 5
    assert "\n" not in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")
    assert file.getvalue() == ""
