"""Layers: only permitted imports between Python modules, and no cycles of modules in Python or in a crate."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

from rust_modules import modules

ROOT = Path(__file__).parents[2]


def circles(graph):
    """The strongly connected components of a graph, in order; the graph lists successors by node."""

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
    monkeypatch.setattr(sys, "path", [*sys.path])  # a copy, because the linter adds entries
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_no_python_modules_import_each_other_in_a_circle():
    # The contracts compare siblings; here, a package's own `__init__` file also counts as a module.
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    graph = grimp.build_graph("aqmlab", exclude_type_checking_imports=True, cache_dir=None)
    for ignored in {ignored for contract in contracts for ignored in contract["ignore_imports"]}:
        importer, imported = ignored.split(" -> ")
        graph.remove_import(importer=importer, imported=imported)
    assert circles({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}) == []


@pytest.mark.parametrize("crate", sorted(folder.name for folder in (ROOT / "crates").iterdir()))
def test_no_modules_of_a_crate_name_each_other_in_a_circle(crate):
    graph = modules(ROOT / "crates" / crate / "src")
    assert circles(graph) == []


def test_how_modules_are_read(tmp_path):
    for name, text in {
        "lib.rs": "mod a; mod b; mod c; pub use a::*; pub use b::B;",
        "a/mod.rs": "mod inner; pub struct A; pub use inner::Inner; // crate::c::C",
        "a/inner.rs": 'use super::A; pub struct Inner; fn f() { let quoted = "crate::c::C"; }',
        "b.rs": "use crate::{A, a::Inner as I}; pub struct B; #[cfg(test)] mod tests { use crate::c::C; }",
        "c.rs": "pub struct C; impl C { fn f(&self) -> crate::B { super::b::made('\"', '{') } }",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert modules(tmp_path) == {
        (): set(),
        ("a",): set(),
        ("a", "inner"): {("a",)},
        ("b",): {("a",), ("a", "inner")},
        ("c",): {("b",)},
    }
    (tmp_path / "a/mod.rs").write_text("mod inner; pub use inner::Inner; pub struct A(Inner);")
    assert circles(modules(tmp_path)) == [(("a",), ("a", "inner"))]
