"""The end of a sweep: from its runs to tables, verdicts and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqmlab.results.results import Results
from aqmlab.sweeps.tables import write_tables
from aqmlab.system.files import CLAIMS_FILE

if TYPE_CHECKING:
    from aqmlab.claims import Scored


class Conclusion(NamedTuple):
    """The conclusion of a sweep.

    Attributes
    ----------
    results
        All finished runs, except those that cannot be read.
    claims
        The scenario's claims, scored.
    report
        The file of the report, if one was made.
    """

    results: Results
    claims: tuple[Scored, ...] = ()
    report: Path | None = None


def conclude(results: Results, *, judge: bool, report: bool) -> Conclusion:
    """Write the conclusions next to the runs; only one process at a time may do this in a sweep's directory.

    Parameters
    ----------
    results
        Results of a sweep.
    judge
        Whether to score the claims and make the report, as well as the tables; false while other shards are
        missing.
    report
        Whether to make the report if ``judge`` is true.

    Raises
    ------
    RecordingError
        If a recording cannot be read.
    OSError, HostError
        If something cannot be written.
    """
    results = results.sound()
    write_tables(results, results.path)
    if not judge:
        return Conclusion(results)
    claims = _scored(results)
    some = bool(results.runs)
    return Conclusion(results, claims, _reported(results, claims) if report and some else None)


def _scored(results: Results) -> tuple[Scored, ...]:
    if not results.claims:
        (results.path / CLAIMS_FILE).unlink(missing_ok=True)
        return ()
    from aqmlab.claims import score, write_claims

    scored = score(results)
    write_claims(scored, results.path)
    return scored


def _reported(results: Results, claims: tuple[Scored, ...]) -> Path:
    from aqmlab.reports import write_report

    return write_report(results, scored=claims)
