"""Reading the counts of many runs in blocks of bounded size; the last few blocks stay in memory."""

from __future__ import annotations

import pytest

from aqmlab.metrics import Flows, FlowTotals, histograms
from aqmlab.recordings.recording import Tables
from aqmlab.results import reader as reader_module
from aqmlab.results.reader import Reader


def row(number, class_name="ftp", end_ns=None, delivered=0):
    return [number, class_name, 80_000_000, 0, end_ns, delivered, delivered, delivered, 1, *[None] * 8]


def test_flows_are_the_rows_that_were_put_in():
    rows = [row(0, end_ns=7), row(1, "cbr", delivered=2**62), row(2)]
    flows = Flows(rows)
    assert list(flows) == [FlowTotals(*fields) for fields in rows]
    assert (flows[1].class_name, flows[-1].flow, flows[1].measured_delivered_bytes) == ("cbr", 2, 2**62)
    assert list(flows[1:]) == list(flows)[1:]
    assert flows[0].measured_lost_outside_queues_packets is None
    assert len(flows) == 3
    assert (len(Flows([])), list(Flows([]))) == (0, [])


def test_flows_are_equal_if_all_their_rows_are():
    assert Flows([row(0), row(1)]) == Flows([row(0), row(1)])
    assert Flows([row(0), row(1)]) != Flows([row(0)])
    assert Flows([row(0)]) != Flows([row(0, delivered=1)])
    assert Flows([row(0)]) != Flows([row(0, end_ns=1)])


def test_flows_of_some_classes_share_their_columns():
    rows = [row(0), row(1, "cbr", delivered=5), row(2), row(3, "web", end_ns=7, delivered=9)]
    flows = Flows(rows)
    part = flows.of_classes({"ftp", "web"}.__contains__)
    assert [flow.flow for flow in part] == list(part.column("flow")) == [0, 2, 3]
    assert list(part) == [FlowTotals(*fields) for fields in rows if fields[1] != "cbr"]
    assert (len(part), part[2].measured_delivered_bytes, part[1:]) == (3, 9, Flows([rows[2], rows[3]]))
    assert part.of_classes("web".__eq__) == Flows([rows[3]])
    assert part.of_classes("cbr".__eq__) == Flows([]) == Flows([]).of_classes("ftp".__eq__)
    assert flows.of_classes(str.islower) is flows
    assert list(Flows([]).column("flow")) == []


@pytest.fixture
def queries(monkeypatch):
    """A list that receives, for each query of `flows`, the number of runs that it reads."""
    asked = []
    rows = Tables.rows

    def counted(tables, table, *words):
        if table == "flows":
            asked.append(len(tables.runs))
        return rows(tables, table, *words)

    monkeypatch.setattr(Tables, "rows", counted)
    return asked


def test_a_query_reads_as_many_flows_as_fit(experiment, queries, monkeypatch):
    runs = experiment.runs
    flows = [run.manifest.tables["flows"].rows for run in runs]
    assert len(runs) == 4
    assert len(set(flows)) == 1
    monkeypatch.setattr(reader_module, "FLOWS_READ_TOGETHER", 3 * flows[0])
    Reader().read(runs)
    assert queries == [3, 1]
    monkeypatch.setattr(reader_module, "FLOWS_READ_TOGETHER", 1)
    found = Reader()
    assert [found.measured(run, runs).run for run in runs] == list(runs)
    assert queries[2:] == [1, 1, 1, 1], "a run is read however many flows it has"


def test_of_too_many_flows_the_first_that_were_read_are_let_go(experiment, queries, monkeypatch):
    runs = experiment.runs
    flows = runs[0].manifest.tables["flows"].rows
    monkeypatch.setattr(reader_module, "FLOWS_READ_TOGETHER", flows)
    monkeypatch.setattr(reader_module, "FLOWS_KEPT", 2 * flows)
    reader = Reader()
    reader.read(runs)
    assert reader.measured(runs[3], runs).run is runs[3]
    assert reader.measured(runs[2], runs).run is runs[2]
    assert queries == [1, 1, 1, 1]
    assert list(reader.measured(runs[0], runs).flows) == list(Reader().measured(runs[0], ()).flows)
    assert queries == [1, 1, 1, 1, 1, 1]


def test_distributions_are_read_for_all_runs_at_once_and_few_are_kept(experiment, monkeypatch):
    asked = []
    rows = Tables.rows

    def counted(tables, table, columns, clauses="", runs=None):
        if "list(" in columns:  # a block of bins
            asked.append(clauses)
        return rows(tables, table, columns, clauses, runs)

    monkeypatch.setattr(Tables, "rows", counted)
    reader = Reader()
    reader.read(experiment.runs)
    assert asked == []
    everybody, ftp = (
        [reader.measured(run, ()).queues["bottleneck", name] for run in experiment.runs]
        for name in ("*", "ftp")
    )
    own = [totals.sojourn for totals in ftp]
    assert [bins.total for bins in own] == [totals.sojourn_sums[0] for totals in ftp]
    for totals in everybody:
        bins = totals.sojourn
        assert bins.total == totals.sojourn_sums[0] == totals["sojourn_count"]
        assert list(bins.low) == sorted(bins.low)
        assert all(low <= high for low, high in zip(bins.low, bins.high, strict=True))
        middles = sum(
            (low + high) * n / 2 for low, high, n in zip(bins.low, bins.high, bins.weight, strict=True)
        )
        assert totals.sojourn_mean_ns * bins.total == pytest.approx(middles, rel=1e-12)
        # A bin is at most 1 % wide.
        assert totals.sojourn_mean_ns * bins.total == pytest.approx(totals["sojourn_sum_ns"], rel=0.01)
    assert len(asked) == 2
    assert [totals.sojourn for totals in ftp] == own
    assert len(asked) == 2
    monkeypatch.setattr(histograms, "BINS_KEPT", 0)
    assert ftp[0].backlog == histograms.EMPTY_HISTOGRAM
    assert [totals.sojourn for totals in ftp] == own
    # The block of the backlogs has replaced all other blocks in memory.
    assert len(asked) == 4
