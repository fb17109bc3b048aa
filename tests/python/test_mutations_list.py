"""The list of seeded mutations matches the code; the mutations themselves are run in the long lane."""

import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MUTATIONS = tomllib.loads((ROOT / "tests/mutations/mutations.toml").read_text())["mutation"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m["name"])
def test_what_a_mutation_changes_stands_exactly_once(mutation):
    assert (ROOT / mutation["file"]).read_text().count(mutation["find"]) == 1
    assert mutation["find"] != mutation["replace"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m["name"])
def test_a_mutation_names_tests_that_exist(mutation):
    arguments = mutation["tests"].split()
    if mutation["file"].endswith(".py"):
        assert all(argument.startswith("tests/python/test_") for argument in arguments)
        assert [file for file in arguments if not (ROOT / file).is_file()] == []
        return
    crate = ROOT / "crates" / arguments[arguments.index("-p") + 1]
    targets = [name for flag, name in pairwise(arguments) if flag == "--test"]
    assert crate.is_dir()
    places = {t: (crate / "tests" / f"{t}.rs", crate / "tests" / t / "main.rs") for t in targets}
    assert [t for t, files in places.items() if not any(f.is_file() for f in files)] == []


def test_names_are_different_and_every_entry_says_why():
    assert [n for n, times in Counter(m["name"] for m in MUTATIONS).items() if times > 1] == []
    assert all(m["why"] for m in MUTATIONS)


def test_there_are_at_least_twenty_of_transport_and_laws():
    places = ("crates/aqmlab-transport/src/", "crates/aqmlab-qdisc/src/law/")
    assert sum(m["file"].startswith(places) for m in MUTATIONS) >= 20
