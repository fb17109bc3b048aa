"""The runs that a part of a paper needs, and messages about cells that the small version lacks."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from aqmlab.claims import Claim, Names
from aqmlab.claims.metric_query import cell_of
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.papers.folder import find_paper, read_paper
from aqmlab.papers.multiverse import multiverse
from aqmlab.papers.names import names_of
from aqmlab.papers.paper import Part
from aqmlab.papers.reproduce import Wanted, choose, reproduce
from aqmlab.papers.required_cells import required_cells
from aqmlab.papers.scoring import missing_labels
from aqmlab.results.cells import Cell
from claim_worlds import BUFFER, COUNT
from toy_paper import TOY

ROOT = Path(__file__).parents[2]
NAMES = Names(("RED", "DropTail"), (BUFFER, COUNT), ("bottleneck", "reverse"), ("ftp",))


def cells(expect, where=None, names=NAMES):
    """The cells that a claim needs, each as arm, buffer and count."""
    claim = Claim("c", expect, where=where or {})
    claim.check(names)
    found = {cell_of(what, names) for what in claim.asks(names)}
    return {(cell.arm, *(label for _, label in cell.settings)) for cell in found}


@pytest.mark.parametrize(
    ("expect", "where", "expected"),
    [
        ("jain_index{arm=RED, limit=4p, count=2} > 0", {}, {"RED 4p 2"}),
        ("jain_index{arm=RED} > 0", {"limit": "4p", "count": "2"}, {"RED 4p 2"}),
        # Braces take precedence over the bindings that enclose them.
        ("jain_index{arm=RED, limit=72p} > 0", {"limit": "4p", "count": "2"}, {"RED 72p 2"}),
        ("for all arm: jain_index > 0", {"limit": "4p", "count": "2"}, {"RED 4p 2", "DropTail 4p 2"}),
        (
            "for all limit in (4p to 36p): jain_index{arm=RED, count=6} > 0",
            {},
            {"RED 4p 6", "RED 12p 6", "RED 36p 6"},
        ),
        (
            "for all limit in (12p): jain_index{limit=next} > jain_index{limit=previous}",
            {"arm": "RED", "count": "2"},
            {"RED 4p 2", "RED 36p 2"},
        ),
        (
            "for all limit except (first): jain_index > jain_index{limit=first}",
            {"arm": "RED", "count": "2"},
            {"RED 4p 2", "RED 12p 2", "RED 36p 2", "RED 72p 2"},
        ),
        (
            "mean(max(jain_index over limit in (4p, 72p))) > mean(jain_index{limit=12p, arm=DropTail})",
            {"arm": "RED", "count": "2"},
            {"RED 4p 2", "RED 72p 2", "DropTail 12p 2"},
        ),
        (
            "argmax(jain_index over limit in (4p, 12p, 36p)) in (4p, 12p)",
            {"arm": "RED", "count": "2"},
            {"RED 4p 2", "RED 12p 2", "RED 36p 2"},
        ),
        (
            "increasing(share(jain_index > 0.5) over limit in (4p, 12p)) or not jain_index{limit=72p} < 1",
            {"arm": "RED", "count": "2"},
            {"RED 4p 2", "RED 12p 2", "RED 72p 2"},
        ),
        (
            "for all window in (every 1s from 0s until 9s): jain_index > 0",
            {"arm": "RED", "limit": "4p", "count": "2"},
            {"RED 4p 2"},
        ),
        ("any(jain_index > 0.5)", {"arm": "RED", "limit": "4p", "count": "2"}, {"RED 4p 2"}),
    ],
)
def test_a_claim_needs_the_cells_that_it_asks_about(expect, where, expected):
    assert {" ".join(of) for of in cells(expect, where)} == expected


def test_a_label_beyond_the_end_of_an_axis_is_told_without_a_run():
    claim = Claim("c", "for all limit: jain_index{limit=next} > 0", where={"arm": "RED", "count": "2"})
    claim.check(NAMES)
    with pytest.raises(ScenarioError, match="`72p` of `limit` has no next label"):
        claim.asks(NAMES)


def test_what_hangs_on_all_cells_needs_them_all():
    def count(expect, **names):
        claim = Claim("c", expect, where={"limit": "4p", "count": "2", "arm": "RED"})
        return required_cells(replace(NAMES, **names), [claim]).count

    two = {"queues": ("first", "last")}
    assert count("drop_percent > 0") == 1
    # Without a queue called `bottleneck`, the table is about the queue that is busiest over all cells.
    assert count("drop_percent > 0", **two) == 16
    assert count("drop_percent{queue=last} > 0", **two) == 1
    # Only flows that cross the queue count; the flows of a class have the same values at every queue.
    assert count("jain_index > 0", **two) == 16
    assert count("jain_index{queue=last} > 0", **two) == 1
    assert count("jain_index{class=ftp} > 0", **two) == 1
    assert count("goodput_share_percent{class=ftp} > 0", **two) == 16
    assert count("drop_percent > 0", queues=("only",)) == 1


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def test_a_finding_runs_the_cells_that_it_names(store):
    told = []
    paper = read_paper(TOY)
    done = reproduce(paper, wanted=Wanted(findings=["T3"]), seeds=5, store=store, jobs=2, notify=told.append)
    # The finding needs RED at 40 packets and DropTail at 80: two of six cells (two arms, three buffers).
    assert [(part.count, part.of) for of in told for part in of.values()] == [(2, 6)]
    assert done.runs == 10
    results = done.results["loss.toml"]
    assert Counter(cell.arm for cell in results.cells if results.runs_of(cell)) == {"RED": 1, "DropTail": 1}
    assert results.axis("limit").labels == ("8p", "40p", "80p")
    assert [f.status for f in done.findings] == ["holds"]
    whole = reproduce(paper, seeds=5, store=store, jobs=2)
    # The other four of six cells are run; a reading that may explain T2's failure is a step of its own.
    assert whole.runs == 20
    assert whole.findings[2].verdict == done.findings[0].verdict
    again = reproduce(paper, wanted=Wanted(findings=["T3"]), seeds=5, store=store)
    assert (again.runs, again.findings[0].verdict) == (0, done.findings[0].verdict)


def test_cells_that_are_neither_scored_nor_shown_are_not_run(store):
    told = []
    paper = read_paper(TOY)
    scored = replace(paper, findings=paper.findings[2:3], tables=(), figures=())
    done = reproduce(scored, seeds=5, store=store, jobs=2, notify=told.append)
    # The same two cells are run as in the test above, although no part of the paper is named.
    assert [(part.count, part.of) for of in told for part in of.values()] == [(2, 6)]
    results = done.results["loss.toml"]
    assert Counter(cell.arm for cell in results.cells if results.runs_of(cell)) == {"RED": 1, "DropTail": 1}
    assert [f.status for f in done.findings] == ["holds"]


def test_tables_and_figures_run_the_cells_that_they_show(store):
    paper = read_paper(TOY)

    def count(**wanted):
        told = []
        reproduce(paper, wanted=Wanted(**wanted), seeds=5, store=store, jobs=2, notify=told.append)
        return [part.count for of in told for part in of.values()]

    assert count(tables=["I"]) == [4]
    assert count(figures=["1"]) == [6]
    assert count(figures=["2a"]) == [2]
    assert count(figures=["3"]) == []
    assert count(findings=["T3"], tables=["I"]) == [4]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["III"], ["III, 72", "III, 300"]),
        (["iii"], ["III, 72", "III, 300"]),
        (["III, 72"], ["III, 72"]),
        # An exact name selects only that item.
        (["I"], ["I"]),
        (["III, 300", "III"], ["III, 300", "III, 72"]),
        (["9"], ["9a", "9b"]),
        (["con"], None),
        (["II"], None),
        (["III, 7"], None),
        (["1"], None),
        ([""], None),
    ],
)
def test_a_number_stands_for_all_its_parts(asked, found):
    (table,) = read_paper(TOY).tables
    names = ("I", "I, difference", "III, 72", "III, 300", "9a", "9b", "10", "12a", "convergence")
    paper = replace(read_paper(TOY), tables=tuple(replace(table, name=name) for name in names))
    if found is None:
        with pytest.raises(UsageError, match="there is no table"):
            choose(paper, Wanted(tables=asked))
        return
    assert [of.name for of in choose(paper, Wanted(tables=asked))[1]] == found


def test_readings_run_the_cells_too(store):
    paper = read_paper(TOY)
    table = multiverse(paper, wanted=Wanted(findings=["T2"]), store=store, jobs=2)
    assert [universe.findings[0].status for universe in table.universes] == ["fails"] * 4


def test_the_papers_findings_need_less_than_everything():
    paper = find_paper("blue")
    names = names_of(paper, paper.experiment("traces.toml"))
    claim = Claim(
        "X01", "backlog_mean_packets{arm=BLUE} > backlog_mean_packets{arm=RED}", where={"timeouts": "on"}
    )
    assert required_cells(names, [claim]).cells == {
        Cell((("timeouts", "on"),), "BLUE"),
        Cell((("timeouts", "on"),), "RED"),
    }


def test_a_label_that_the_small_version_lacks_is_called_so(store):
    done = reproduce(read_paper(TOY), quick=True, wanted=Wanted(findings=["T3"]), store=store, jobs=2)
    (scored,) = done.findings
    assert scored.status == "undecided"
    assert scored.parts[0].verdict.reason == "`40p` of `limit`: left out by --quick (`keep` in paper.toml)"
    # Only the cells of the small version are run: of the two parts, only the one with 80 packets is in this
    # version.
    assert done.runs == 0 or len(done.results["loss.toml"].seeds) == 5


@pytest.mark.parametrize(
    ("expect", "where", "expected"),
    [
        ("jain_index{limit=4p} > 0", {}, ""),
        ("jain_index{limit=12p, low=3} > 0", {}, "`12p` of `limit`"),
        ("jain_index > 0", {"limit": "12p", "count": "2"}, "`12p` of `limit`"),
        ("for all limit in (4p to 36p): jain_index{count=6} > 0", {}, "`36p` of `limit`, `6` of `count`"),
        ("max(jain_index over limit except (12p)) > 0", {}, "`12p` of `limit`"),
        ("argmax(jain_index over limit) in (4p, 36p)", {}, "`36p` of `limit`"),
        ("jain_index{from=36s, class=ftp} > 0", {}, ""),
        ("for all limit: jain_index > 0", {}, ""),
    ],
)
def test_what_is_left_out_is_named(expect, where, expected):
    small = replace(NAMES, axes=(replace(BUFFER, labels=("4p", "72p")), replace(COUNT, labels=("2",))))
    assert missing_labels(Claim("c", expect, where=where), NAMES, small) == expected


def test_what_is_too_small_for_a_statement_says_so(store):
    paper = read_paper(TOY)
    finding = replace(
        paper.findings[0],
        parts=(Part("loss.toml", "for all arm: decreasing(drop_percent over limit except (first))", {}),),
    )
    done = reproduce(
        replace(paper, findings=(finding,)), quick=True, wanted=Wanted(findings=["T1"]), store=store
    )
    reason = done.findings[0].parts[0].verdict.reason
    assert reason.startswith("what --quick keeps (`keep` in paper.toml) is not enough: ")
    assert "needs at least two labels" in reason


def test_a_figure_that_the_small_version_lacks_is_left_out(aqmlab_cli, store, tmp_path):
    done = aqmlab_cli(
        "paper", "reproduce", TOY, "--quick", "--figure", "2a", "--store", store, "-o", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "figure     2a is not in the small version: `40p` of `limit`: left out by --quick" in done.stderr


def test_the_command_says_how_many_cells_it_runs(aqmlab_cli, store, tmp_path):
    done = aqmlab_cli(
        "paper", "reproduce", TOY, "--finding", "T3", "--seeds", "5", "--store", store, "-o", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "cells      2 of the 6 in loss.toml: those that are scored or shown" in done.stderr
