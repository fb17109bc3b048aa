"""Results of an experiment: cells, values by seed, and errors that suggest the nearest valid name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import aqmlab
from aqmlab.metrics import Scope, Takes, Window, find
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import Asked
from aqmlab.paths import load
from aqmlab.recordings.recording import Tables
from aqmlab.results import results as results_module
from aqmlab.results.cells import Axis, Cell, short_names
from aqmlab.results.results import Missing, Results
from manifests import with_runs

COUNTED = "queueing_delay_p99_s"
"""A metric that does not accept a window."""


def swept(experiment, **changes):
    """The experiment's runs of both arms, as if from a sweep of two axes with two values each, and one with a
    single value."""
    axes = (
        Axis("topology.queue.limit", "queue.limit", ("topology.queue.limit",), ("30p", "60p")),
        Axis(
            "topology.reverse_queue.limit", "reverse_queue.limit", ("topology.reverse_queue.limit",), ("9p",)
        ),
        Axis("buffer", "buffer", ("topology.rate", "topology.delay"), ("small", "large")),
    )
    cells = [
        Cell(((axes[0].name, limit), (axes[1].name, "9p"), ("buffer", size)), arm)
        for limit in axes[0].labels
        for size in axes[2].labels
        for arm in experiment.arms
    ]
    runs = {
        (cell, run.seed): run
        for cell in cells
        for run in experiment.runs
        if run.arm == cell.arm and cell.label("buffer") == "small"
    }
    about = {
        "title": "Swept",
        "question": "",
        "path": experiment.path,
        "axes": axes,
        "arms": experiment.arms,
        "cells": tuple(cells),
        "seeds": (1, 2),
        "finished": runs,
    }
    return Results(**(about | changes))


def test_an_experiment_has_a_cell_for_each_arm(experiment):
    results = load(experiment.path)
    assert results.cells == (Cell((), "DropTail"), Cell((), "RED + ECN"))
    assert (results.axes, results.arms, results.seeds) == ((), ("DropTail", "RED + ECN"), (1, 2))
    assert (results.title, results.question, results.missing) == ("Small", "Does it run?", ())
    assert [run.seed for run in results.runs_of(results.cells[1])] == [1, 2]
    assert {run.arm for run in results.runs_of(results.cells[1])} == {"RED + ECN"}


def test_values_are_those_of_the_table(experiment):
    results = load(experiment.path)
    table = aqmlab.answer(experiment)
    for cell in results.cells:
        for name in ("goodput_bps", "queueing_delay_p99_s", "mark_percent"):
            assert results.values(name, cell) == table.by_seed(cell, name)
    ftp = aqmlab.answer(experiment, ["goodput_bps"], class_name="ftp").by_seed("DropTail", "goodput_bps")
    assert results.values("goodput_bps", results.cells[0], Scope(class_name="ftp")) == ftp
    assert ftp != table.by_seed("DropTail", "goodput_bps")


def test_the_tables_are_read_once(experiment, monkeypatch):
    results = with_runs(experiment, experiment.runs)
    asked = []
    rows = Tables.rows
    monkeypatch.setattr(Tables, "rows", lambda *words: asked.append(words[1]) or rows(*words))
    for _ in range(2):
        for cell in results.cells:
            results.values("goodput_bps", cell)["no matter"] = None
            results.values("drop_percent", cell)
            results.measured(cell)
    assert sorted(asked) == ["flows", "histograms", "summary"]
    assert set(results.values("goodput_bps", results.cells[0])) == {1, 2}


def test_many_runs_are_read_in_parts_to_the_same_values(experiment, monkeypatch):
    whole = swept(experiment)
    monkeypatch.setattr(results_module, "RUNS_READ_TOGETHER", 3)
    parts = swept(experiment)
    for cell in whole.cells:
        assert parts.values("goodput_bps", cell) == whole.values("goodput_bps", cell)
        assert [m.run for m in parts.measured(cell)] == list(parts.runs_of(cell))


def test_cells_that_share_a_run_each_have_its_values(experiment):
    results = swept(experiment)
    small, other = (
        results.select("DropTail", {"queue.limit": x, "buffer": "small"})[0] for x in ("30p", "60p")
    )
    assert small != other
    assert results.values("goodput_bps", small) == results.values("goodput_bps", other) != {}


def test_a_cell_without_a_finished_run_has_no_values(experiment):
    results = swept(experiment)
    (cell,) = results.select("DropTail", {"buffer": "large", "queue.limit": "30p"})
    assert results.values("goodput_bps", cell) == {}
    assert results.measured(cell) == results.runs_of(cell) == ()


def test_axes_are_found_by_any_tail_that_is_their_own(experiment):
    results = swept(experiment)
    for name in ("topology.queue.limit", "queue.limit"):
        assert results.axis(name) is results.axes[0]
        assert results.cells[0].label(name) == "30p"
    assert results.axis("buffer").labels == ("small", "large")
    for ask in (results.axis, results.cells[0].label):
        with pytest.raises(aqmlab.UsageError, match=r"may mean `topology.queue.limit`, `topology.rev"):
            ask("limit")
        with pytest.raises(aqmlab.UsageError, match="no axis `bufer`; did you mean `buffer`"):
            ask("bufer")
        with pytest.raises(aqmlab.UsageError, match=r"no axis `ueue.limit`"):
            ask("ueue.limit")


def test_selections_are_in_the_order_of_the_cells_and_wrong_names_are_told(experiment):
    results = swept(experiment)
    assert results.select() == results.cells
    assert results.select("RED + ECN", {"buffer": "large"}) == (results.cells[3], results.cells[7])
    for words, message in (
        (("RED+ECN",), r"no arm `RED\+ECN`; did you mean `RED \+ ECN`"),
        ((None, {"bufer": "large"}), "no axis `bufer`; did you mean `buffer`"),
        ((None, {"buffer": "larg"}), "no value of `buffer` `larg`; did you mean `large`"),
        ((None, {"queue.limit": "-"}), "no value of `topology.queue.limit` `-`; known: `30p`, `60p`"),
    ):
        with pytest.raises(aqmlab.UsageError, match=message):
            results.select(*words)


def test_wrong_metrics_queues_and_classes_are_told(experiment):
    results = load(experiment.path)
    cell = results.cells[0]
    for words, message in (
        ({"metric": "goodput_bp"}, "no metric `goodput_bp`; did you mean `goodput_bps`"),
        ({"scope": Scope("botleneck")}, "no queue `botleneck`; did you mean `bottleneck`"),
        ({"scope": Scope(class_name="fpt")}, "no class `fpt`; did you mean `ftp`"),
        (
            {"metric": COUNTED, "scope": Scope(window=(1.0, 2.0))},
            f"metric `{COUNTED}` covers the measured interval",
        ),
    ):
        with pytest.raises(aqmlab.UsageError, match=message):
            results.values(**({"metric": "goodput_bps", "cell": cell} | words))


def test_equal_scopes_are_one_query_in_every_process():
    bands = [("at_least", 1e3), ("below", 1e4)]
    one, other = (
        Scope("a-b", "web", window, dict(pairs), router="b")
        for window, pairs in ((Window(1.0, math.inf), bands), ((1.0, math.inf), bands[::-1]))
    )
    assert one == other
    assert hash(one) == hash(other)
    assert Asked("goodput_bps", one).key == Asked("goodput_bps", other).key
    keys = {Asked("goodput_bps", scope).key for scope in (one, replace(one, router="a"), Scope("a-b", "web"))}
    assert len(keys) == 3


def test_a_windowed_metric_is_told_its_window(experiment, monkeypatch):
    from aqmlab.metrics import registry

    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))

    @metric("until_s", label="", unit="s", definition="", source="", takes=Takes.QUEUE | Takes.WINDOW)
    def until(_run, _queue, window):
        return window.until_s

    results = load(experiment.path)
    cell = results.cells[0]
    assert results.values("until_s", cell, Scope(window=(1.0, 2.5))) == {1: 2.5, 2: 2.5}
    assert results.values("until_s", cell) == {1: 6.0, 2: 6.0}
    assert find("until_s").asked_of == ("queue", "window")
    assert "window" not in find(COUNTED).asked_of


def test_the_queue_is_the_bottleneck_of_all_or_the_busiest_of_the_cell(experiment):
    results = load(experiment.path)
    assert results.queue_of(results.cells[0]) == "bottleneck"
    # Without a queue of this name, the busier queue would be chosen; the queue of acknowledgments is nearly
    # idle.
    renamed = [
        replace(
            run,
            manifest=replace(run.manifest, links=tuple(replace(link, name="other") for link in run.links)),
        )
        for run in experiment.runs
    ]
    results = with_runs(experiment, renamed)
    busiest = max(
        (t["busy_ns"], queue) for m in experiment.measured() for (queue, c), t in m.queues.items() if c == "*"
    )[1]
    assert results.queue_of(results.cells[0]) == busiest


def test_runs_that_have_not_finished_are_named(experiment):
    partial = with_runs(experiment, experiment.runs[1:])
    assert partial.missing == (Missing(Cell((), "DropTail"), 1, "not run"),)


def test_cells_as_text(experiment):
    assert str(Cell((), "RED")) == "RED"
    assert (
        str(swept(experiment).cells[0]) == "DropTail, queue.limit 30p, reverse_queue.limit 9p, buffer small"
    )
    assert short_names(["rate", "topology.rate", "a.count"]) == ["rate", "topology.rate", "count"]
