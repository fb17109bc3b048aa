"""Manifests, the descriptions of runs in ``manifest.json``. Only this module reads whole manifests.

``aqmlab schema manifest`` prints the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.errors import DamageError
from aqmlab.recordings.integrity import FORMAT_VERSION, read_json
from aqmlab.recordings.plan import Plan


@dataclass(frozen=True)
class LinkInfo:
    """A link: its name, capacity and propagation delay."""

    name: str
    rate_bps: int
    delay_ns: int


@dataclass(frozen=True)
class TableFacts:
    """A table's number of rows, the digest of its content, and the digest of its file."""

    rows: int
    digest: str
    file_digest: str


@dataclass(frozen=True)
class Manifest:
    """The description of a run.

    Attributes
    ----------
    format_version, aqmlab_version
        Versions of the files and of the program.
    parts
        The parts of the program that determined the result, each with its version.
    host
        ``"sim"`` or ``"live"``.
    title, arm, seed
        Identity of the run.
    plan, plan_digest
        The plan, and the digest of everything that determines its result, except the seed.
    t0_ns, t1_ns
        Beginning and end of the measured interval.
    stopped_by
        The cause of the run's end.
    tables
        The tables, by name.
    links
        The links, in the plan's order.
    books_balanced
        Whether the run's books balance.
    events, wall_s
        Number of events that the engine processed, and the real time that it took.
    live
        The facts that only the live router knows; ``None`` for a simulated run.
    left_behind
        Tables of the run that were not sent back by the worker of a cluster.
    """

    title: str
    arm: str
    seed: int
    plan: Plan
    plan_digest: str
    t0_ns: int
    t1_ns: int
    links: tuple[LinkInfo, ...]
    tables: Mapping[str, TableFacts] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION
    aqmlab_version: str = ""
    host: str = "sim"
    stopped_by: str = "time"
    books_balanced: bool = True
    events: int | None = None
    wall_s: float | None = None
    live: Mapping[str, Any] | None = None
    left_behind: Mapping[str, TableFacts] = field(default_factory=dict)

    @property
    def run_digest(self) -> str:
        """The name of the run in a store."""
        from aqmlab import _core

        return _core.run_digest(self.plan_digest, self.seed, dict(self.parts))

    @property
    def file_digests(self) -> dict[str, str]:
        """The SHA-256 of each table's file, by the table's name."""
        return {name: facts.file_digest for name, facts in self.tables.items()}


_REQUIRED: dict[str, type] = {
    "title": str,
    "arm": str,
    "seed": int,
    "t0_ns": int,
    "t1_ns": int,
    "plan": dict,
    "plan_digest": str,
    "links": list,
    "tables": dict,
    "aqmlab_version": str,
    "parts": dict,
}
"""The members without which a manifest cannot be read."""


def read_manifest(folder: Path, plans: MutableMapping[str, Plan] | None = None) -> Manifest:
    """The manifest of the recording in a directory.

    Parameters
    ----------
    folder
        The recording.
    plans
        The plans of runs opened before, by digest: many seeds share a plan, which is read and kept
        once.

    Raises
    ------
    RecordingError
        If it is missing, incomplete, corrupt or of another format; the message names the file and the
        error.
    """
    file = folder / "manifest.json"
    content = read_json(file)
    for key, kind in _REQUIRED.items():
        if key not in content:
            raise DamageError([f"`{file}` is incomplete: `{key}` is missing"])
        if not isinstance(content[key], kind):
            raise DamageError([f"`{file}` is corrupt: `{key}` is not of type {kind.__name__}"])
    known: MutableMapping[str, Plan] = {} if plans is None else plans
    digest = content["plan_digest"]
    if digest not in known:
        try:
            known[digest] = Plan.of(content["plan"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamageError([f"`{file}` has a plan that cannot be read: {_words(error)}"]) from error
    try:
        return manifest_of(content, known[digest])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamageError([f"`{file}` is incomplete: {_words(error)}"]) from error


def manifest_of(content: Mapping[str, Any], plan: Plan) -> Manifest:
    """A manifest from the content of its file, with the plan that was read from it.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If the content is not a manifest.
    """
    return Manifest(
        title=content["title"],
        arm=content["arm"],
        seed=content["seed"],
        plan=plan,
        plan_digest=content["plan_digest"],
        t0_ns=content["t0_ns"],
        t1_ns=content["t1_ns"],
        links=tuple(
            LinkInfo(str(link["name"]), int(link["rate_bps"]), int(link["delay_ns"]))
            for link in content["links"]
        ),
        tables=_facts(content["tables"]),
        left_behind=_facts(content.get("left_behind", {})),
        parts={str(name): int(version) for name, version in content["parts"].items()},
        format_version=content["format_version"],
        aqmlab_version=content["aqmlab_version"],
        host=content.get("host", "sim"),
        stopped_by=content.get("stopped_by", "time"),
        books_balanced=content.get("books_balanced", True),
        events=content.get("events"),
        wall_s=content.get("wall_s"),
        live=content.get("live"),
    )


def _facts(tables: Mapping[str, Any]) -> dict[str, TableFacts]:
    return {
        name: TableFacts(int(facts["rows"]), str(facts["digest"]), str(facts["file_digest"]))
        for name, facts in tables.items()
    }


def parts_text(manifests: Iterable[Manifest]) -> str:
    """The parts of the program behind the results: ``network 1, qdisc 1, qdisc.red 1 and 2, ...``."""
    versions: dict[str, set[int]] = {}
    for manifest in manifests:
        for name, version in manifest.parts.items():
            versions.setdefault(name, set()).add(version)
    numbers = {name: " and ".join(map(str, sorted(found))) for name, found in sorted(versions.items())}
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def _words(error: Exception) -> str:
    return f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
