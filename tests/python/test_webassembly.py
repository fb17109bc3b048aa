"""The simulator as a WebAssembly module: it imports nothing, and its runs have the digests of native ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import aqmlab

ROOT = Path(__file__).parents[2]
TARGET = "wasm32-unknown-unknown"
SCENARIOS = [
    *("classes", "demo", "global_synchronization", "graph", "lockout", "mm1"),
    *("one_flow", "parking_lot", "rtt_bias", "short_flows", "web_users"),
]
"""Ready-made scenarios that need no file and no kernel."""

HOST = """
import { readFileSync } from "node:fs";
const [file, ...scenarios] = process.argv.slice(2);
const module = new WebAssembly.Module(readFileSync(file));
const answers = scenarios.map((scenario) => {
  const { exports } = new WebAssembly.Instance(module, {});
  const text = new TextEncoder().encode(scenario);
  const at = exports.allocate(text.length);
  new Uint8Array(exports.memory.buffer, at, text.length).set(text);
  const answer = exports.run(at, text.length);
  const [start, length] = [Number(answer & 0xffffffffn), Number(answer >> 32n)];
  const told = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, start, length));
  exports.release(at, text.length);
  exports.release(start, length);
  return JSON.parse(told);
});
console.log(JSON.stringify({ imports: WebAssembly.Module.imports(module), answers }));
"""


def lack(what):
    """Skip the tests; hosted CI, which sets `CI`, must have everything, as in `tools/test.sh`."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def has_target():
    """Whether the compiler builds for WebAssembly; CI may install what that takes."""
    if shutil.which("rustup") is None:
        return False
    if os.environ.get("CI"):
        subprocess.run(["rustup", "target", "add", TARGET], capture_output=True, check=False)
    listed = ["rustup", "target", "list", "--installed"]
    return TARGET in subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split()


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Runs scenarios, given as text, in the module under Node."""
    node = shutil.which("node")
    if node is None:
        lack("Node is not installed")
    if not has_target():
        lack(f"the target {TARGET} is not installed")
    build = ["cargo", "build", "--quiet", "--locked", "--release", "--target", TARGET, "-p", "aqmlab-wasm"]
    subprocess.run(build, cwd=ROOT, check=True)
    module = (
        Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TARGET / "release" / "aqmlab_wasm.wasm"
    )
    host = tmp_path_factory.mktemp("node") / "host.mjs"
    host.write_text(HOST)

    def asked(*scenarios):
        ran = subprocess.run([node, host, module, *scenarios], capture_output=True, text=True, check=True)
        return json.loads(ran.stdout)

    return asked


def test_nothing_is_imported_and_runs_equal_native_ones(ask, tmp_path):
    files = [ROOT / "scenarios" / f"{name}.toml" for name in SCENARIOS]
    found = ask(*(file.read_text() for file in files))
    assert found["imports"] == []
    for file, answer in zip(files, found["answers"], strict=True):
        result = aqmlab.run(file, output=tmp_path / file.stem, arms=[answer["arm"]], runs=1, report=False)
        [native] = result.runs
        assert (answer["arm"], answer["seed"]) == (native.manifest.arm, native.manifest.seed)
        assert answer["events"] == native.manifest.events
        assert answer["tables"] == {name: table.digest for name, table in native.manifest.tables.items()}, (
            file.stem
        )


def test_a_wrong_scenario_is_refused_with_its_place(ask):
    [answer] = ask((ROOT / "scenarios" / "mm1.toml").read_text().replace("duration = ", "duratoin = "))[
        "answers"
    ]
    assert 'scenario.toml:7:1: unknown key "duratoin"' in answer["error"]


def test_a_scenario_that_names_a_file_is_refused(ask):
    text = (
        (ROOT / "scenarios" / "one_flow.toml")
        .read_text()
        .replace('"bulk"', '"trace"\nfile = "connections.csv"')
    )
    [answer] = ask(text)["answers"]
    assert "cannot read the trace `connections.csv`: a WebAssembly module has no files" in answer["error"]


@pytest.mark.parametrize(("ci", "outcome"), [("1", pytest.fail.Exception), (None, pytest.skip.Exception)])
def test_what_is_missing_fails_in_ci_and_is_skipped_elsewhere(ci, outcome, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="Node is not installed"):
        lack("Node is not installed")
