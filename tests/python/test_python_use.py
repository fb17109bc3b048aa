"""Results in Python: their repr, notebooks, data frames, and accepted arguments."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import replace
from operator import attrgetter

import duckdb
import numpy as np
import pytest

import aqmlab
from aqmlab import api
from aqmlab.claims import read_claims, score
from aqmlab.errors import HostError, ScenarioError, UsageError
from aqmlab.metrics import Scope
from aqmlab.recordings.time_series import run_series
from aqmlab.results.both import Both
from aqmlab.text.tables import text_of
from sweeping import tiny

CLAIM = """
[[claim]]
name = "more"
text = "RED & ECN delivers <more>."
expect = "goodput_bps{arm=DropTail} > 1kbit"
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    sweep = aqmlab.sweep(tiny(runs=2), store=tmp_path_factory.mktemp("store"), report=False, jobs=2)
    sweep.wait()
    return sweep


@pytest.fixture(scope="module")
def things(experiment, swept, tmp_path_factory):
    """One instance of every public class."""
    table = aqmlab.answer(experiment)
    results = aqmlab.load(swept.path)
    comparison = aqmlab.compare(f"{experiment.path}:DropTail", ":RED + ECN")
    file = tmp_path_factory.mktemp("claims") / "claims.toml"
    file.write_text(CLAIM.replace('bps"', '"'))
    (scored,) = score(aqmlab.load(experiment.path), read_claims(file))
    (series, *_) = run_series(experiment.tables, experiment.runs, "bottleneck")
    return {
        "Experiment": experiment,
        "Run": experiment.runs[0],
        "Answer": table,
        "Estimate": table.estimate("DropTail", "goodput_bps"),
        "Results": results,
        "Cell": results.cells[0],
        "Axis": results.axes[0],
        "Cells": aqmlab.answer(results, ["goodput_bps", "drop_percent"]),
        "Comparison": comparison,
        "Compared": comparison.compared[0],
        "Sweep": swept,
        "Scored": scored,
        "Series": series.queue,
        "RunSeries": series,
        "QueryResult": aqmlab.query("SELECT arm, seed, events FROM runs", swept.path.parent.parent),
        "Measured": results.measured(results.cells[0])[0],
        "Flows": results.measured(results.cells[0])[0].flows,
        "Both": Both(experiment.path, experiment, experiment, comparison),
    }


def test_every_repr_is_short(things):
    for name, thing in things.items():
        text = repr(thing)
        assert len(text) < 500, (name, len(text))
        assert {"Cells": "Answer", "Experiment": "Results"}.get(name, name) in text
        assert text.count("\n") < 3
    assert repr(things["Experiment"]).startswith(
        "<Results of 'Small': 2 arms (DropTail, RED + ECN), seeds 1 to 2, 4 finished runs, in '"
    )
    assert "7 metrics" not in repr(things["Answer"])
    assert repr(things["Answer"]).startswith(
        "<Answer of 'Small': 11 metrics of DropTail, RED + ECN; queue bottleneck"
    )
    assert "8 cells over rate, count" in repr(things["Results"])
    assert repr(things["Sweep"]).startswith("<Sweep ended: 16 of 16 runs done, in ")


def test_a_printed_table_is_that_of_the_command_line(things, aqmlab_cli):
    seen = aqmlab_cli("report", things["Experiment"].path).stdout
    table = things["Answer"]
    assert text_of(table.grid().lines()) in seen
    assert str(table.grid()) in str(table)
    assert table.footnote() in str(table)


HTML = ("Experiment", "Answer", "Estimate", "Results", "Cells", "Comparison", "Scored", "QueryResult", "Both")


@pytest.mark.parametrize("name", HTML)
def test_notebooks_show_whole_html_without_scripts(things, name):
    html = things[name]._repr_html_()
    opened = re.findall(r"<([a-z]+)", html)
    closed = re.findall(r"</([a-z]+)>", html)
    assert sorted(tag for tag in opened if tag != "br") == sorted(closed)
    assert not set(opened) - {"div", "p", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "br"}
    # A notebook chooses text and background colours, so a fixed colour would fit only one of two backgrounds.
    assert not re.search(r"color|background|url\(|http|on[a-z]+=", html)


def test_what_a_notebook_shows_of_an_experiment(things):
    html = things["Experiment"]._repr_html_()
    for words in ("Small", "Does it run?", "DropTail, RED + ECN", "1 to 2", "4 finished", "note: 2 seeds"):
        assert words in html
    assert str(things["Experiment"].path) in html


def test_texts_of_a_scenario_are_no_markup(experiment):
    evil = "<script>alert(1)</script> & <b>"
    named = replace(experiment, title=evil, question=evil)
    for html in (named._repr_html_(), aqmlab.answer(named)._repr_html_()):
        assert "<script" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;" in html


def test_what_cannot_be_read_is_told_in_the_notebook(experiment, tmp_path):
    import shutil

    copied = tmp_path / "copy"
    shutil.copytree(experiment.path, copied)
    for file in copied.glob("*/seed-1/summary.parquet"):
        file.write_bytes(b"PAR1 nothing PAR1")
    html = aqmlab.load(copied)._repr_html_()
    assert "not looked for:" in html
    assert "summary.parquet" in html


FRAMES = ("Answer", "Cells", "Comparison", "Series", "QueryResult", "Flows")


@pytest.mark.parametrize("name", FRAMES)
def test_arrow_streams_have_the_columns(things, name):
    thing = things[name]
    columns = {key: list(values) for key, (_, values) in thing._frame_columns().items()}
    assert columns
    for _ in range(2):
        # A stream can be read only once, but its source can be read any number of times.
        read = duckdb.connect().from_arrow(thing)
        assert read.columns == list(columns)
        assert [list(column) for column in zip(*read.fetchall(), strict=True)] == list(columns.values())


def test_a_table_has_a_row_a_run(things):
    columns = things["Answer"]._frame_columns()
    assert list(columns)[:3] == ["arm", "seed", "goodput_bps"]
    assert columns["arm"][1] == ["DropTail", "DropTail", "RED + ECN", "RED + ECN"]
    assert columns["seed"][1] == [1, 2, 1, 2]
    assert columns["mark_percent"][1] == [
        things["Answer"].by_seed(arm, "mark_percent")[seed]
        for arm in things["Answer"].arms
        for seed in (1, 2)
    ]
    swept = things["Cells"]._frame_columns()
    names = ["rate", "rate_bps", "count", "count_value", "arm", "seed", "goodput_bps", "drop_percent"]
    assert list(swept) == names
    assert len(swept["rate"][1]) == 16


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(things, library):
    pytest.importorskip(library)
    frame = things["Answer"].to_frame(library)
    assert list(frame.columns)[:3] == ["arm", "seed", "goodput_bps"]
    assert list(frame["seed"]) == [1, 2, 1, 2]
    flows = things["Experiment"].tables.to_frame("flows", library)
    assert list(flows.columns)[:2] == ["arm", "seed"]
    assert len(flows) == 16
    assert len(things["Results"].to_frame("goodput_bps", library)) == 16


def test_without_a_library_of_frames_the_package_is_named(things):
    program = (
        "import sys; sys.modules['pandas'] = sys.modules['polars'] = None\n"
        f"import aqmlab; table = aqmlab.answer(aqmlab.load({str(things['Experiment'].path)!r}))\n"
        "for library in (None, 'pandas', 'polars', 'panda'):\n"
        "    try: table.to_frame(library)\n"
        "    except aqmlab.AqmlabError as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "HostError neither `pandas` nor `polars` is installed: `pip install pandas`",
        "HostError `pandas` is not installed: `pip install pandas`",
        "HostError `polars` is not installed: `pip install polars`",
        "UsageError there is no data frame library `panda`; did you mean `pandas`?",
    ]
    assert issubclass(HostError, aqmlab.AqmlabError)


def test_wrong_names_are_told_with_the_nearest(things):
    table, cells = things["Answer"], things["Cells"]
    wrong = {
        "there is no arm `Droptail`; did you mean `DropTail`?": lambda: table.estimate(
            "Droptail", "goodput_bps"
        ),
        "there is no metric `goodput`; did you mean": lambda: table.estimate("DropTail", "goodput"),
        "there is no metric `drop_precent`; did you mean `drop_percent`?": lambda: table.difference(
            "DropTail", "RED + ECN", "drop_precent"
        ),
        "there is no arm `RED`": lambda: table.defined_in("RED", "goodput_bps"),
        "there is no metric `godput_bps`; did you mean `goodput_bps`?": lambda: cells.estimate(
            things["Results"].cells[0], "godput_bps"
        ),
        "there is no cell `X": lambda: cells.estimate(aqmlab.Cell((), "X"), "goodput_bps"),
        "there is no metric in this answer `backlog_error_percent`": lambda: table.estimate(
            "DropTail", "backlog_error_percent"
        ),
        "there is no table `flow`; did you mean `flows`?": lambda: things["Experiment"].tables.to_frame(
            "flow"
        ),
    }
    for message, call in wrong.items():
        with pytest.raises(UsageError, match=re.escape(message)):
            call()


def test_numbers_of_numpy_are_numbers(small, tmp_path):
    small["runs"] = np.int64(2)
    small["topology"]["queue"]["limit"] = "30p"
    small["traffic"][0]["count"] = np.int32(3)
    small["arm"][1]["topology.queue"] |= {"max_p": np.float64(0.1), "w_q": np.float32(0.5), "ecn": np.True_}
    plain = aqmlab.show(small)
    assert plain["arms"][1]["parameters"]
    small["sweep"] = {"topology.rate": np.array(["2Mbit", "4Mbit"]), "traffic.ftp.count": np.arange(1, 4)}
    assert aqmlab.show(small)["cases"] == 6
    del small["sweep"]
    done = aqmlab.run(
        small,
        output=tmp_path / "out",
        seed=np.int64(7),
        runs=np.uint8(1),
        jobs=np.int64(1),
        arms=np.array(["DropTail"]),
        report=False,
    )
    assert (done.seeds, done.arms) == ((7,), ("DropTail",))


@pytest.mark.parametrize(
    ("key", "value"), [("runs", 2.5), ("seed", "1"), ("jobs", np.float64(2)), ("runs", None)]
)
def test_what_is_no_whole_number_is_told(small, tmp_path, key, value):
    if value is None:
        assert aqmlab.show(small)["runs"] == 4
        return
    with pytest.raises(UsageError, match=f"`{key}` must be a whole number, not"):
        aqmlab.run(small, output=tmp_path / "out", **{key: value})
    assert not (tmp_path / "out").exists()


class Stranger:
    """Of no type that anything accepts."""


FUNCTIONS = [name for name in aqmlab.__all__ if inspect.isfunction(getattr(aqmlab, name))]
METHODS = {
    "Answer": ("by_seed", "estimate", "difference", "contrast", "defined_in"),
    "Results": ("axis", "runs_of", "select", "to_frame", "values"),
    "recordings.recording.Tables": ("arrays", "rows", "select", "to_frame"),
}


@pytest.mark.parametrize("name", [*FUNCTIONS, *(f"{of}.{name}" for of in METHODS for name in METHODS[of])])
def test_every_argument_of_a_wrong_type_is_refused_by_name(name):
    called = attrgetter(name)(aqmlab)
    names = []
    for parameter in inspect.signature(called).parameters.values():
        if parameter.kind == inspect.Parameter.VAR_KEYWORD:
            names += getattr(api, parameter.annotation[len("Unpack[") : -1]).__annotations__
        elif parameter.name != "self":
            names.append(parameter.name)
    for wrong in names:
        with pytest.raises(UsageError, match=f"^`{wrong}` must be .+, not `<.*>`$"):
            called(*([None] if "." in name else []), **{wrong: Stranger()})


def test_wrong_types_are_told_with_the_right_ones(small, tmp_path, experiment):
    answer = aqmlab.answer(experiment, "goodput_bps")
    wrong = {
        "`path` must be a path, not `None`": lambda: aqmlab.load(None),
        "`scenario` must be a path or a dict, not `5`": lambda: aqmlab.run(5),
        "`report` must be true or false, not `'no'`": lambda: aqmlab.run(small, report="no"),
        "`results` must be a `Results`, not `'runs/demo'`": lambda: aqmlab.answer("runs/demo"),
        "`metrics` must be text or a list, not `5`": lambda: aqmlab.answer(experiment, 5),
        "`executor` must be text or a `Cluster`, not `3`": lambda: aqmlab.sweep(small, executor=3),
        "`font_size` must be a number, not `'8'`": lambda: aqmlab.plot(".", "series", font_size="8"),
        "`of` must be a `Cell` or text, not `0`": lambda: answer.estimate(0, "goodput_bps"),
        "`metrics` must hold text, not `['goodput_bps']`": lambda: aqmlab.answer(
            experiment, [["goodput_bps"]]
        ),
        "`labels` must hold text, not `5`": lambda: experiment.select("RED + ECN", {"rate": 5}),
        "`window` must be a `Window` or a tuple of 2, not `(1, 2, 3)`": lambda: experiment.values(
            "goodput_bps", experiment.cells[0], Scope(window=(1, 2, 3))
        ),
        "`window` must hold a number, not `'2s'`": lambda: experiment.values(
            "goodput_bps", experiment.cells[0], Scope(window=(1, "2s"))
        ),
        "`runs` must hold a `Run`, not `5`": lambda: aqmlab.verdicts([5]),
        "`address` must be text, not `5`": lambda: aqmlab.Cluster(5),
        "there is no arm `RDE`; known: `DropTail`, `RED + ECN`": lambda: experiment.runs_of("RDE"),
    }
    for message, call in wrong.items():
        with pytest.raises(UsageError, match=re.escape(message)):
            call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'sed'"):
        aqmlab.run(small, sed=1, output=tmp_path / "out")


def test_one_name_is_a_list_of_one(small, tmp_path):
    done = aqmlab.run(
        small, output=tmp_path / "out", runs=1, arms="RED + ECN", pcap="bottleneck", report=False
    )
    assert done.arms == ("RED + ECN",)
    assert (done.runs[0].path / "packets.pcapng").stat().st_size > 0
    table = aqmlab.answer(done, "goodput_bps")
    assert [metric.name for metric in table.metrics] == ["goodput_bps"]
    with pytest.raises(UsageError, match="there is no arm `RED`; the arms are `DropTail`, `RED \\+ ECN`"):
        aqmlab.run(small, output=tmp_path / "other", arms="RED")
    with pytest.raises(ScenarioError):
        aqmlab.run({"title": np.array([1.5])}, output=tmp_path / "third")


def test_dir_is_what_is_public():
    assert dir(aqmlab) == sorted([*aqmlab.__all__, "__version__"])
    assert all(hasattr(aqmlab, name) for name in dir(aqmlab))
