"""The command that checks recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli.console import interruptible, tell_json
from aqmlab.cli.options import AsJson
from aqmlab.errors import DamageError, RecordingError


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="Directories of experiments, runs, sweeps or stores.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check that every file of recordings is unchanged.

    Exits with 4 if a file has changed; each changed file is named.
    """
    from aqmlab.bundles.verification import Verified
    from aqmlab.bundles.verification import verify as check
    from aqmlab.text.numbers import counted

    found: list[Verified] = []
    with interruptible():
        for path in paths:
            try:
                found.append(check(path))
            except RecordingError as error:
                # The other directories are still checked.
                found.append(Verified(path, damaged=[str(error)]))
    if as_json:
        tell_json({"format_version": 1, "directories": [one.to_json() for one in found]})
    else:
        for one in found:
            size = f"{counted(one.recordings, 'recording')}, {counted(one.tables, 'table')}"
            size += f", {one.bytes / 1e6:.1f} MB"
            missing = f"; {counted(one.missing, 'run')} missing" if one.missing else ""
            print(f"{'damaged' if one.damaged else 'ok':<8} {one.path}: {size}{missing}")
    damaged = [reason for one in found for reason in one.damaged]
    if damaged:
        raise DamageError(
            damaged,
            "to repeat damaged runs, use `aqmlab sweep SCENARIO` for a store,"
            " or `aqmlab run SCENARIO --resume -o DIR` for an experiment",
        )
