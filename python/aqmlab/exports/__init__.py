"""Recordings and answers in the formats of other programs: CSV, flent, ns-2, qlog, Markdown, LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from aqmlab.arguments import names, typed
from aqmlab.errors import UsageError, unknown
from aqmlab.exports.chosen import Chosen, choose
from aqmlab.exports.csv_tables import csv_files
from aqmlab.exports.directory import written
from aqmlab.exports.flent import flent_file
from aqmlab.exports.ns2 import ns2_file
from aqmlab.exports.qlog import qlog_file
from aqmlab.exports.text_tables import TEXTS, answer_text

if TYPE_CHECKING:
    from aqmlab.results.results import Results

OF_A_RUN: Mapping[str, tuple[str, Callable[[Results, Chosen], bytes]]] = MappingProxyType(
    {
        "flent": (".flent.gz", flent_file),
        "ns2": (".tr", ns2_file),
        "qlog": (".qlog", qlog_file),
    }
)
"""The extension and the function of each format that writes a file per run."""
FORMATS = ("csv", *OF_A_RUN, *TEXTS)


@typed
def export(  # noqa: PLR0913 (keyword arguments)
    path: Path | str,
    to: str,
    output: Path | str | None = None,
    *,
    arms: str | Sequence[str] = (),
    seed: int | None = None,
    tables: str | Sequence[str] = (),
    metrics: str | Sequence[str] | None = None,
    queue: str | None = None,
) -> tuple[Path, ...]:
    """Write recordings in the format of another program.

    Parameters
    ----------
    path
        The directory of an experiment, a run or a sweep.
    to
        ``"csv"``: a file per recorded table. ``"flent"``, ``"ns2"``, ``"qlog"``: a file per run.
        ``"markdown"``, ``"latex"``: the table of the answer, with intervals.
    output
        The file or directory to create: a file for ``"markdown"`` and ``"latex"``, else a directory. By
        default, ``exports/answer.md``, ``exports/answer.tex`` or the directory ``exports/<format>`` in
        ``path``.
    arms, seed
        Only these arms, and only this seed; all if not given. The table of an answer always
        contains all arms and seeds.
    tables
        For CSV: only these tables.
    metrics, queue
        For Markdown and LaTeX: as in :func:`aqmlab.answer`; flent's ping also uses ``queue``.

    Returns
    -------
    tuple of Path
        The files that were written.

    Raises
    ------
    UsageError
        For an unknown format, arm, seed, table, metric or queue, if the output exists, or if the
        runs did not record what the format needs. Nothing is then written.
    RecordingError
        If a recording cannot be read.
    HostError
        If a file cannot be written.
    """
    from aqmlab.paths import load

    if to not in FORMATS:
        raise unknown("format", to, FORMATS)
    results = load(path)
    endings = TEXTS.get(to)
    default = Path(path) / "exports" / (to if endings is None else f"answer{endings}")
    place = default if output is None else Path(output)
    if place.exists():
        raise UsageError(f"`{place}` exists already; name another place with `-o`, or remove it")
    if endings is not None:
        _refuse({"--arm": arms, "--seed": seed, "--table": tables}, to)
        text = answer_text(results, to, names(metrics), queue)
        return written(place, {"": text.encode()})
    _refuse({"--metric": metrics} | ({} if to == "flent" else {"--queue": queue}), to)
    runs = choose(results, names(arms) or (), seed, queue)
    if to == "csv":
        return written(place, csv_files(results, runs, names(tables) or ()))
    _refuse({"--table": tables}, to)
    ending, make = OF_A_RUN[to]
    return written(place, {f"{one.stem}{ending}": make(results, one) for one in runs})


def _refuse(options: Mapping[str, object], to: str) -> None:
    for option, value in options.items():
        if value not in ((), None, []):
            raise UsageError(f"`{option}` has no effect in an export to {to}; leave it out")


__all__ = ["FORMATS", "export"]
