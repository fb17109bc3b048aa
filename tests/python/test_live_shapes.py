"""Live recordings that lack something because an earlier aqmlab wrote them or because they are damaged.

Missing values are left out, or shown as a dash. Only a missing verdict is an error."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

from aqmlab.cli.outcome import print_lateness, print_verdict
from aqmlab.errors import RecordingError
from aqmlab.recordings.faithfulness import faithfulness_of, verdicts
from aqmlab.recordings.recording import Run
from aqmlab.reports.live import lateness_chart, live_context
from aqmlab.reports.render import render
from aqmlab.reports.templates import environment
from aqmlab.soundness import live as checks
from aqmlab.text.numbers import NO_VALUE
from live_worlds import live_object
from manifests import with_runs
from resealed import reseal

WHOLE = live_object(faithful=False) | {
    "most_held": 50,
    "counters": {"ftp": {"client": {}, "server": {}}},
    "generator": {"lateness": {"count": 0, "bins": []}, "processor_percent": 3.0, "trouble": {}},
    "capture": {"bottleneck": {"packets": 0, "missed": 12}},
    "capture_failure": {"at_ns": 1_000_000_000, "reason": "the disk is full"},
}
ESSENTIAL = ("checks", "reasons")
OPTIONAL = tuple(key for key in WHOLE if key not in ESSENTIAL)
PARTS = [(key, inner) for key, part in WHOLE.items() if isinstance(part, dict) for inner in part]


def as_live(experiment, live):
    """The experiment as if its first run were live, with ``live`` in the run's manifest."""
    first = experiment.runs[0]
    run = Run(first.path, replace(first.manifest, host="live", live=live))
    return with_runs(experiment, (run, *experiment.runs[1:]))


def without(*keys):
    """The ``live`` part of a manifest after one key, which may be nested in another, has been removed."""
    live = copy.deepcopy(WHOLE)
    inside = live
    for key in keys[:-1]:
        inside = inside[key]
    del inside[keys[-1]]
    return live


def told(experiment):
    """All reports about live runs, joined: table, JSON and page."""
    found = verdicts(experiment.runs)
    print_verdict(found)
    print_lateness(experiment)
    results = experiment
    said = [
        f(results) for f in (checks.kept_time, checks.to_its_end, checks.stack_as_asked, checks.packets_kept)
    ]
    arms = [verdict.arm for verdict in found]
    chart = lateness_chart(found, arms)
    templates = environment()
    templates.filters["code"] = str
    page = templates.get_template("live.html.j2").module.faithfulness(
        live_context(found, arms), bool(chart.panels[0].marks)
    )
    return f"{json.dumps([verdict.to_json() for verdict in found])}\n{said}\n{page}"


def test_all_of_it_is_told(experiment, capsys):
    page = told(as_live(experiment, WHOLE))
    for words in (
        "ping p50 [us]",
        "<td>41.0</td><td>83.0</td><td>37433</td><td>1667</td>",
        "<dt>kernel</dt>",
    ):
        assert words in page
    assert "2300.0" in capsys.readouterr().out


@pytest.mark.parametrize("keys", [*((key,) for key in OPTIONAL), *PARTS], ids=".".join)
def test_what_is_missing_is_left_out(experiment, keys):
    told(as_live(experiment, without(*keys)))


def test_with_nothing_but_the_checks_there_is_a_verdict_and_a_report(experiment, capsys):
    bare = as_live(experiment, {key: WHOLE[key] for key in ESSENTIAL})
    verdict = faithfulness_of(bare.runs[0])
    assert verdict.text.startswith("NOT FAITHFUL: p99 lateness 2300 us")
    assert (verdict.lost_unseen, verdict.stall_count, verdict.lateness_s("p99")) == (None, None, None)
    told(bare)
    shown = capsys.readouterr().out
    assert NO_VALUE in shown
    assert "0.0" not in shown, "what is not known is no zero"
    page = render(bare)
    assert "NOT FAITHFUL" in page
    for heading in ("<h3>Stalls", "The limits of this machine", "<summary>The machine"):
        assert heading not in page


@pytest.mark.parametrize("keys", [("checks",), ("reasons",), ("checks", 0, "name"), ("checks", 0, "passed")])
def test_who_is_not_told_whether_a_run_was_faithful_is_told_that(experiment, keys):
    spoilt = as_live(experiment, without(*keys))
    message = f"`{spoilt.runs[0].path / 'manifest.json'}` is incomplete: `{keys[-1]}` of `live` is missing"
    with pytest.raises(RecordingError, match="is missing") as raised:
        told(spoilt)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "live", [5, "faithful", {"checks": 3, "reasons": []}, {"checks": [1], "reasons": []}]
)
def test_what_is_no_verdict_at_all_is_called_corrupt(experiment, live):
    with pytest.raises(RecordingError, match="is corrupt in `live`"):
        told(as_live(experiment, live))


def test_the_command_names_the_manifest_and_ends_with_4(experiment, tmp_path, aqmlab_cli):
    import shutil

    copied = shutil.copytree(experiment.path, tmp_path / "copied")
    file = next(copied.glob("*/seed-1/manifest.json"))
    reseal(file.parent, live=without("reasons"))
    ended = aqmlab_cli("report", copied)
    assert ended.returncode == 4
    assert ended.stderr == f"error: `{file}` is incomplete: `reasons` of `live` is missing\n"
    reseal(file.parent, live=without("lateness"))
    assert aqmlab_cli("report", copied).returncode == 0
