"""Connection vectors: the exchanges of a scenario's connections, as a file.

``docs/vectors.md`` has the formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.arguments import names, typed, whole
from aqmlab.errors import UsageError, unknown
from aqmlab.language.scenario import Scenario, read, resolve
from aqmlab.recordings.plan import Plan
from aqmlab.system.files import save

if TYPE_CHECKING:
    from aqmlab.recordings.recording import Run

FORMATS = {"csv": ".csv", "parquet": ".parquet", "tmix": ".cvec"}
"""The formats, each with the extension of its files."""
KINDS = ("packmime", "requests", "trace")
"""Kinds of traffic whose connections carry exchanges."""


@typed
def write_vectors(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    output: Path | str,
    *,
    classes: str | Sequence[str] | None = None,
    seed: int | None = None,
    arm: str | None = None,
    format: str | None = None,
    duration_s: float | None = None,
    recording: Path | str | None = None,
) -> Path:
    """Write the exchanges of a scenario's connections for one seed, without running the scenario.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict.
    output
        The file to write; an existing one is replaced.
    classes
        Names of classes of kind ``packmime``, ``requests`` or ``trace``; all of those if not given.
    seed
        The seed of the run; the scenario's first seed, or the recording's, if not given.
    arm
        The arm whose traffic is written; it may be omitted if all arms have the same traffic.
    format
        ``"csv"``, ``"parquet"`` or ``"tmix"``; chosen by the extension of ``output`` if not given.
    duration_s
        Write the connections that open up to this time; by default, up to the end of the run.
    recording
        The directory of a run of this scenario with ``requests = { each = true }`` in ``[record]``:
        the times at which users open connections depend on the network, and are read from this recording.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ScenarioError
        If the scenario is wrong.
    UsageError
        If the requested vectors do not exist, or the format cannot represent them; nothing is written then.
    RecordingError
        If the recording cannot be read.
    HostError
        If the file cannot be written.
    """
    from aqmlab import _core

    output = Path(output)
    chosen = _format(output, format)
    about = resolve(scenario)
    if about["axes"]:
        raise UsageError("vectors cover a single case: use a scenario of one case, without [sweep]")
    run = None if recording is None else _run(recording, about, arm, seed)
    arms = _arms(about["arms"], arm if run is None else run.arm)
    seed = about["seeds"][0] if seed is None else whole(seed, "`seed`")
    if run is not None:
        seed = run.seed
    text, name = read(scenario)
    contents = {
        of["name"]: _core.vectors(
            text,
            name,
            of["name"],
            _classes(of, names(classes)),
            seed,
            of["end_ns"] if duration_s is None else round(duration_s * 1e9),
            chosen,
            None if run is None else run.file("requests"),
        )
        for of in arms
    }
    if len(set(contents.values())) > 1:
        listed = ", ".join(f"`{of}`" for of in contents)
        raise UsageError(f"the arms {listed} differ in their traffic; choose one with `--arm`")
    save(output, next(iter(contents.values())))
    return output


def _format(output: Path, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise unknown("format of vectors", given, FORMATS)
        return given
    for word, ending in FORMATS.items():
        if output.suffix == ending:
            return word
    endings = ", ".join(f"`{ending}` ({word})" for word, ending in FORMATS.items())
    raise UsageError(f"the extension of `{output}` names no format; use {endings}, or give `--format`")


def _arms(arms: Sequence[Mapping[str, Any]], wanted: str | None) -> list[Mapping[str, Any]]:
    chosen = [arm for arm in arms if wanted in (None, arm["name"])]
    if not chosen:
        raise unknown("arm", str(wanted), (arm["name"] for arm in arms))
    return chosen


def _classes(arm: Mapping[str, Any], wanted: Sequence[str] | None) -> list[str]:
    if wanted is not None:
        return list(dict.fromkeys(wanted))
    found = [of.name for of in Plan.of(arm["plan"]).classes if of.kind in KINDS]
    if not found:
        kinds = ", ".join(f'"{kind}"' for kind in KINDS)
        raise UsageError(f"no class of the scenario carries exchanges; kinds that do are {kinds}")
    return found


def _run(path: Path | str, about: Mapping[str, Any], arm: str | None, seed: int | None) -> Run:
    """Return the run of this scenario that a recording contains."""
    from aqmlab.results.loading import load_recording

    runs = [run for run in load_recording(path).runs if arm in (None, run.arm) and seed in (None, run.seed)]
    if len(runs) != 1:
        found = "no run that matches" if not runs else f"{len(runs)} runs that match"
        raise UsageError(f"`{path}` has {found} the request; name a single run with `--arm` and `--seed`")
    (run,) = runs
    digests = {of["name"]: of["digest"] for of in about["arms"]}
    if digests.get(run.arm) != run.manifest.plan_digest:
        raise UsageError(f"`{run.path}` belongs to another scenario: its plan is not that of arm `{run.arm}`")
    if "requests" not in run.manifest.tables:
        raise UsageError(
            f"`{run.path}` has no table `requests`; record it with `requests = {{ each = true }}` in [record]"
        )
    return run
