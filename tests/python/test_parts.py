"""Each part of the program has a version; a run's digest covers the versions of the parts that its plan uses.

``recordings/format-3`` is a store of one sweep, written when the whole program had a single version.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import aqmlab
from aqmlab import _core
from aqmlab.recordings.integrity import FORMAT_VERSION, sealed
from aqmlab.recordings.manifest import PROGRAM, parts_text, read_manifest
from aqmlab.results.comparison import why_not_paired
from aqmlab.sweeps.cases import Cases
from aqmlab.sweeps.store import Store
from manifests import manifest
from sweeping import tiny

EARLY = Path(__file__).parent / "recordings" / "format-3"
TABLE = "queueing_delay_mean_s", "goodput_bps", "drop_percent"


def classes(kind):
    policed = {"kind": "policer", "rate": "1Mbit", "burst": "20kB", "queue": {"kind": kind}}
    return {"kind": "classes", "class": [{"name": "all", "queue": policed}]}


QUEUES = {
    "RED": {"kind": "red"},
    "Adaptive RED": {"kind": "ared"},
    "RED-PD": {"kind": "redpd"},
    "RED in a policer in classes": classes("red"),
    "PI": {"kind": "pi"},
    "CoDel": {"kind": "codel"},
    "PI in a policer in classes": classes("pi"),
}


def cases(tcp):
    (traffic,) = tiny()["traffic"]
    arms = [{"name": name, "topology.queue": queue} for name, queue in QUEUES.items()]
    return Cases(tiny(arm=arms, traffic=[traffic | {"tcp": tcp}], claim=[]), runs=1)


def one_case():
    return {name: value for name, value in tiny(runs=1).items() if name not in ("sweep", "claim")}


def moved(cells, part):
    """The arms whose runs have a different digest if the version of a part is incremented."""
    raised = {}
    for cell in cells:
        parts = {name: version + (name == part) for name, version in cell.parts.items()}
        now, then = (_core.run_digest(cell.plan_digest, 1, versions) for versions in (cell.parts, parts))
        raised.setdefault(cell.arm, set()).add(now != then)
    assert all(len(found) == 1 for found in raised.values())
    return [arm for arm, found in raised.items() if found == {True}]


@pytest.mark.parametrize(
    ("part", "arms"),
    [
        ("qdisc.red", ["RED", "Adaptive RED", "RED-PD", "RED in a policer in classes"]),
        ("qdisc.ared", ["Adaptive RED"]),
        ("qdisc.pi", ["PI", "PI in a policer in classes"]),
        ("qdisc.policer", ["RED in a policer in classes", "PI in a policer in classes"]),
        ("qdisc", list(QUEUES)),
        ("transport.reno", list(QUEUES)),
        ("transport.cubic", []),
        ("sim", list(QUEUES)),
        ("live", []),
    ],
)
def test_another_version_of_a_part_is_another_digest_of_the_runs_that_use_it(part, arms):
    assert moved(cases({}).cells, part) == arms


def test_another_version_of_cubic_moves_no_run_of_reno():
    assert moved(cases({"congestion": "cubic"}).cells, "transport.cubic") == list(QUEUES)
    assert moved(cases({"congestion": "cubic"}).cells, "transport.reno") == []


def test_only_simulated_runs_have_the_sender_that_tracks_segments():
    (traffic,) = tiny()["traffic"]
    scenario = tiny(traffic=[traffic | {"tcp": {"profile": "linux"}}], claim=[])
    simulated, live = (Cases(scenario, runs=1, host=host).cells[0].parts for host in ("sim", "live"))
    assert simulated.items() - live.items() == {
        (part, _core.PARTS[part]) for part in ("sim", "transport.segments")
    }
    with pytest.raises(ValueError, match="no host `both`"):
        _core.host_parts({}, "both")


def test_a_manifest_has_the_parts_that_the_plan_names(tmp_path):
    experiment = aqmlab.run(one_case(), output=tmp_path / "out")
    (planned,) = {json.dumps(cell.parts) for cell in Cases(tiny(), runs=1).cells if cell.arm == "RED"}
    (run,) = experiment.runs_of("RED")
    assert run.manifest.format_version == FORMAT_VERSION
    assert dict(run.manifest.parts) == json.loads(planned)
    assert run.manifest.parts["qdisc.red"] == json.loads(_core.aqm_show("red"))["version"]


def test_an_experiment_of_other_versions_is_not_resumed(tmp_path):
    scenario = one_case()
    aqmlab.run(scenario, output=tmp_path / "out")
    about = tmp_path / "out" / "experiment.json"
    content = json.loads(about.read_text())
    content["arms"][1]["parts"]["qdisc.red"] += 1
    about.write_text(sealed(content))
    with pytest.raises(aqmlab.UsageError, match="its arms differ, or have other values or versions"):
        aqmlab.run(scenario, output=tmp_path / "out", resume=True)


# --- before parts had versions


@pytest.fixture
def early(tmp_path):
    return Path(shutil.copytree(EARLY, tmp_path / "early"))


def test_the_fixture_is_of_one_version_for_all():
    for file in EARLY.glob("runs/*/*/manifest.json"):
        content = json.loads(file.read_text())
        assert (content["format_version"], content["results_version"]) == (3, 5)
        assert "parts" not in content
        assert dict(read_manifest(file.parent).parts) == {PROGRAM: 5}


def test_an_early_store_is_read_and_whole(early):
    (sweep,) = Store(early).sweeps()
    results = aqmlab.load(sweep)
    assert (len(results.cells), list(results.seeds)) == (2, [1])
    assert results.missing == ()
    written = (sweep / "results.csv").read_text()
    assert aqmlab.query("SELECT count(*), any_value(parts) FROM runs", early).rows == ((2, "program 5"),)
    assert all(Store(early).damage(digest) == () for digest in Store(early).digests())
    assert written == (EARLY / "sweeps" / sweep.name / "results.csv").read_text()


def test_runs_of_an_early_store_are_not_found_again_and_stay(early):
    (before,) = Store(early).sweeps()
    scenario = before / "scenario.toml"
    again = aqmlab.sweep(scenario, store=early)
    assert [ended.status for ended in again] == ["finished", "finished"]
    assert len(Store(early).digests()) == 4
    then, now = aqmlab.load(before), aqmlab.load(again.path)
    for cell in then.cells:
        for metric in TABLE:
            assert now.values(metric, cell) == then.values(metric, cell)


def test_early_runs_make_no_pairs_with_present_ones(early):
    (before,) = Store(early).sweeps()
    again = aqmlab.sweep(before / "scenario.toml", store=early)
    list(again)
    (red,) = (cell for cell in aqmlab.load(before).cells if cell.arm == "RED")
    reason = why_not_paired(aqmlab.load(before), red, aqmlab.load(again.path), red)
    assert reason == (
        "their runs used different versions of the program, which draw the same traffic with other parts"
    )


def test_versions_in_words():
    plan = {"nodes": [], "links": [], "classes": []}
    runs = [
        manifest(plan=plan, t0_ns=0, t1_ns=1, parts={"sim": 1, "qdisc.red": version}) for version in (10, 2)
    ]
    assert parts_text(runs) == "qdisc.red 2 and 10, sim 1"
