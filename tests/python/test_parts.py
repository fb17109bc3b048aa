"""Each part of the program has a version; a run's digest covers those of the parts that its plan uses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import aqmlab
from aqmlab import _core
from aqmlab.recordings.integrity import FORMAT_VERSION, sealed
from aqmlab.recordings.manifest import parts_text
from aqmlab.results.comparison import why_not_paired
from aqmlab.sweeps.cases import Cases
from manifests import manifest, with_runs
from resealed import reseal
from sweeping import tiny


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


def test_tables_of_an_earlier_version_of_their_part_stay_and_are_not_measured(tmp_path, aqmlab_cli):
    made = aqmlab.run(one_case(), output=tmp_path / "out")
    run = made.runs[0]
    reseal(run.path, parts={**run.manifest.parts, "recording": 2})
    ended = aqmlab_cli("report", run.path)
    assert (ended.returncode, ended.stdout) == (4, "")
    assert f"`{run.path}` has tables of version 2 of the part `recording`" in ended.stderr
    assert aqmlab.verify(run.path).damaged == []
    assert aqmlab.query("SELECT DISTINCT seed FROM summary", run.path).rows == ((run.seed,),)


def test_runs_whose_traffic_was_drawn_by_other_parts_make_no_pairs(experiment):
    (cell,) = (cell for cell in experiment.cells if cell.arm == "DropTail")
    runs = experiment.runs_of(cell)
    parts = {name: version for name, version in runs[0].manifest.parts.items() if name != "traffic"}
    others = with_runs(
        experiment, [replace(run, manifest=replace(run.manifest, parts=parts)) for run in runs]
    )
    assert why_not_paired(experiment, cell, experiment, cell) == ""
    assert why_not_paired(experiment, cell, others, cell) == (
        "their runs used different versions of the program, which draw the same traffic with other parts"
    )


def test_versions_in_words():
    plan = {"nodes": [], "links": [], "classes": []}
    runs = [
        manifest(plan=plan, t0_ns=0, t1_ns=1, parts={"sim": 1, "qdisc.red": version}) for version in (10, 2)
    ]
    assert parts_text(runs) == "qdisc.red 2 and 10, sim 1"
