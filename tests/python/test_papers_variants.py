"""Variants of a paper's scenarios: a candidate's changes, and the arms, axes and traffic that they affect."""

import shutil
import tomllib
from pathlib import Path

import pytest

from aqmlab.errors import ScenarioError
from aqmlab.papers.check import problems
from aqmlab.papers.folder import find_paper, read_paper
from aqmlab.papers.paper import Thinned
from aqmlab.papers.variants import variant
from toy_paper import TOY

ROOT = Path(__file__).parents[2]


def toy_with(tmp_path: Path, candidate: str) -> Path:
    """The toy paper with one more setting, which has this candidate under the name `other`."""
    folder = tmp_path / "toy"
    shutil.copytree(TOY, folder)
    setting = (
        '[[setting]]\nname = "new"\nmark = "unknown"\nwhy = "Not stated."\nchosen = "own"\n'
        f"[setting.candidates]\nown = {{}}\nother = {candidate}\n"
    )
    text = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(text.replace("[reading]", f"{setting}[reading]"))
    return folder


def changed(folder: Path) -> dict:
    """The scenario under the other candidate."""
    paper = read_paper(folder)
    assert problems(paper) == []
    (experiment,) = paper.experiments
    return tomllib.loads(variant(paper, experiment, {"new": "other"}, Thinned()))


def arms(document: dict, key: str) -> dict:
    return {arm["name"]: arm.get(key) for arm in document["arm"]}


def test_what_is_for_one_arm_changes_no_other(tmp_path):
    own = tomllib.loads((TOY / "loss.toml").read_text())
    key = "topology.queue.max_p"
    document = changed(toy_with(tmp_path, f'{{ arm.RED = {{ "{key}" = 0.03 }} }}'))
    assert arms(document, key) == {**arms(own, key), "RED": 0.03}


def test_what_is_for_an_experiment_counts_more_than_what_is_for_all(tmp_path):
    key = "topology.queue.max_p"
    of_file = f'"loss.toml" = {{ arm.RED = {{ "{key}" = 0.04 }} }}'
    document = changed(toy_with(tmp_path, f'{{ {of_file}, arm.RED = {{ "{key}" = 0.03 }} }}'))
    assert arms(document, key)["RED"] == 0.04


def test_values_of_an_axis_are_changed_and_its_labels_stay():
    paper = find_paper(str(ROOT / "papers" / "blue"))
    experiment = paper.experiment("loss.toml")
    few = {"numbers of sources": "700 and 2800"}
    axes = tomllib.loads(variant(paper, experiment, few, Thinned()))["sweep"]["zip"]
    (sources,) = (axis for axis in axes if axis["name"] == "sources")
    assert sources == {
        "name": "sources",
        "labels": ["1000", "4000"],
        "traffic.senders.count": [700, 2800],
    }


def test_a_class_of_traffic_is_added(tmp_path):
    cbr = '{ "traffic.cbr" = { kind = "cbr", rate = "100kbit", size = "210B" } }'
    document = changed(toy_with(tmp_path, cbr))
    own = tomllib.loads((TOY / "loss.toml").read_text())
    assert document["traffic"] == [
        *own["traffic"],
        {"name": "cbr", "kind": "cbr", "rate": "100kbit", "size": "210B"},
    ]


def test_the_ablation_of_blue_is_the_twin_of_the_configuration_beside_it():
    paper = find_paper(str(ROOT / "papers" / "blue"))
    experiment = paper.experiment("traces.toml")
    for name in ("B1", "B2", "B3", "B4"):
        document = tomllib.loads(variant(paper, experiment, {"BLUE of the traces": name}, Thinned()))
        blue, even = (
            {
                key: arm.get(f"topology.queue.{key}", arm["topology.queue"][key])
                for key in ("d1", "d2", "freeze_time")
            }
            for arm in document["arm"]
            if arm["name"] in ("BLUE", "BLUE even")
        )
        assert even == {**blue, "d2": blue["d1"]}
        assert blue["d2"] == pytest.approx(blue["d1"] / 10)


def test_an_arm_that_there_is_not_is_a_problem(tmp_path):
    folder = toy_with(tmp_path, '{ arm.REED = { "topology.queue.max_p" = 0.03 } }')
    assert any(
        "other: there is no arm `REED`; did you mean `RED`" in problem
        for problem in problems(read_paper(folder))
    )


@pytest.mark.parametrize(
    ("candidate", "what"),
    [
        ("{ arm = 3 }", "candidate `other`: `arm` must be a table of arms"),
        ("{ arm.RED = 3 }", "candidate `other`: `arm` must have a table of scenario keys for each arm"),
        ('{ "loss.toml" = { arm.RED = 3 } }', "`arm` must have a table of scenario keys for each arm"),
        ('{ "loss.toml" = 3 }', "candidate `other`: `loss.toml` must be a table of scenario keys"),
        ('{ "gain.toml" = {} }', "there is no experiment `gain.toml`"),
    ],
)
def test_a_candidate_of_a_wrong_kind_is_told(tmp_path, candidate, what):
    with pytest.raises(ScenarioError) as refused:
        read_paper(toy_with(tmp_path, candidate))
    assert what in str(refused.value)


def test_a_finding_may_say_how_many_seeds_its_causes_have(tmp_path):
    folder = tmp_path / "toy"
    shutil.copytree(TOY, folder)
    text = (folder / "expected.toml").read_text()
    cause = 'cause = { "least RTO" = "200 ms" }\n'
    assert text.count(cause) == 1
    (folder / "expected.toml").write_text(text.replace(cause, f'{cause}cause_seeds = "scored"\n'))
    for path, seeds in ((TOY, 5), (folder, 0)):
        paper = read_paper(path)
        (finding,) = (f for f in paper.findings if f.causes)
        assert paper.multiverse.for_causes(finding) == Thinned(seeds)
