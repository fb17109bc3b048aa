"""Layers: who may import whom in `python/aqmlab`, and no circles there."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import grimp
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]


def circles(graph):
    """The largest sets of nodes that all reach each other, in order; of a graph as successors by node."""

    def reached(node):
        found, ahead = set(), [node]
        while ahead:
            new = set(graph[ahead.pop()]) - found
            found |= new
            ahead += new
        return found

    reach = {node: reached(node) for node in graph}
    return sorted({tuple(sorted(m for m in reach[n] if n in reach[m])) for n in graph if n in reach[n]})


def test_what_a_circle_is():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == [("a", "b", "c"), ("d", "e")]


def test_python_keeps_its_contracts(capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the linter adds
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_no_python_modules_import_each_other_in_a_circle():
    # The contracts look at siblings; here a package's own file counts as a module too.
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    graph = grimp.build_graph("aqmlab", exclude_type_checking_imports=True, cache_dir=None)
    for ignored in {ignored for contract in contracts for ignored in contract["ignore_imports"]}:
        importer, imported = ignored.split(" -> ")
        graph.remove_import(importer=importer, imported=imported)
    assert circles({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}) == []
