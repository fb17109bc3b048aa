"""Permitted dependencies of the packages, and requirements for publishing the crates for other programs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_wheels  # noqa: E402

PUBLISHED = {"aqmlab-units", "aqmlab-random", "aqmlab-params", "aqmlab-qdisc"}


@pytest.fixture(scope="module")
def packages():
    """All Rust packages that this platform builds."""
    host = re.search(
        r"host: (\S+)", subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    )[1]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = json.loads(listed.stdout)
    built = {node["id"] for node in found["resolve"]["nodes"]}
    return [package for package in found["packages"] if package["id"] in built]


def satisfied(expression: str, allowed: set[str]) -> bool:
    """Whether one of the licences offered by an SPDX expression is allowed; `/` is an older form of OR."""
    while inner := re.search(r"\(([^()]*)\)", expression):
        expression = expression.replace(inner[0], "allowed" if satisfied(inner[1], allowed) else "refused")
    ways = re.split(r" OR |/", expression)
    return any(all(part in {*allowed, "allowed"} for part in way.split(" AND ")) for way in ways)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-2.0/MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND Zlib", False),
        ("(MIT OR GPL-3.0-only) AND Apache-2.0", True),
    ],
)
def test_expressions_are_read_as_spdx_defines_them(expression, holds):
    assert satisfied(expression, {"MIT", "Apache-2.0"}) is holds


def test_the_package_imports_only_what_it_declares():
    """A wheel is installed without the packages that only tests and builds need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cluster"]]
    declared = {re.match(r"[\w-]+", requirement)[0] for requirement in wanted}
    # Distributed, Matplotlib and Jinja2 require dask, cycler and markupsafe, and use these in their
    # interfaces.
    known = sys.stdlib_module_names | declared | {"aqmlab", "dask", "cycler", "markupsafe"}
    for file in sorted((ROOT / "python").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            else:
                continue
            for name in names:
                assert name.split(".")[0] in known, f"{file}:{node.lineno}: {name}"


def test_every_rust_dependency_has_an_allowed_licence_and_comes_from_the_registry(packages):
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    assert len(packages) > 60
    for package in packages:
        assert package["source"] is None or package["source"].startswith("registry+")
        assert satisfied(package["license"], allowed), (package["name"], package["license"])


def test_crates_for_other_programs_can_be_published(packages):
    ours = {package["name"]: package for package in packages if package["source"] is None}
    assert {name for name, package in ours.items() if package["publish"] is None} == PUBLISHED
    for name in PUBLISHED:
        package = ours[name]
        for field in ("description", "license", "keywords", "categories", "rust_version"):
            assert package[field], (name, field)
        assert len(package["keywords"]) <= 5
        assert {
            (ROOT / "crates" / name / file).read_text()[:20] for file in ("LICENSE-MIT", "LICENSE-APACHE")
        }
        for needed in package["dependencies"]:
            if needed["name"].startswith("aqmlab-"):
                assert needed["name"] in PUBLISHED, name
                assert needed["req"] == f"^{package['version']}", name


@pytest.fixture
def wheel(tmp_path):
    """A function that writes a wheel with the files of a complete one, minus ``without``, plus ``more``."""

    def made(name="aqmlab-1-cp311-abi3-any.whl", without="", more=()):
        about = ("licenses/LICENSE-MIT", "licenses/LICENSE-APACHE", "sboms/aqmlab-py.cyclonedx.json")
        names = [
            *check_wheels.wanted(),
            "aqmlab/_core.abi3.so",
            *(f"aqmlab-1.dist-info/{part}" for part in about),
        ]
        names += [f"aqmlab-1.data/data/share/man/man1/aqmlab-{n}.1" for n in range(30)]
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            for member in [*names, *more]:
                if not without or without not in member:
                    file.writestr(member, "")
        return tmp_path / name

    return made


def test_a_whole_wheel_has_no_faults(wheel):
    assert check_wheels.faults(wheel(), check_wheels.wanted()) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"without": "scenarios/demo.toml"}, "lacks aqmlab/scenarios/demo.toml"),
        ({"more": ["aqmlab/scratch.py"]}, "has aqmlab/scratch.py, which is not in the repository"),
        ({"without": "_core.abi3"}, "has no aqmlab/_core.abi3.so"),
        ({"without": "share/man"}, "does not contain the manual pages"),
        ({"without": "sboms"}, "has no sboms/"),
        ({"without": "LICENSE-MIT"}, "has no licenses/LICENSE-MIT"),
        ({"name": "aqmlab-1-cp312-cp312-any.whl"}, "is not built for the stable ABI"),
    ],
)
def test_faults_of_wheels_are_found(wheel, changes, fault):
    assert check_wheels.faults(wheel(**changes), check_wheels.wanted()) == [fault]
