"""The command that makes bundles, and checks them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli.console import Exit, interruptible, say, set_quiet, tell_json
from aqmlab.cli.options import AsJson, Quiet
from aqmlab.errors import UsageError


def bundle(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH|FILE",
            help="The directory of an experiment or a sweep; with --check a bundle.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write; TITLE.zip by default.")
    ] = None,
    summaries: Annotated[
        bool,
        typer.Option(
            "--summaries", help="Leave out the tables of packets, of requests, and of single flows over time."
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check the files of a bundle against their SHA-256.")
    ] = False,
    rerun: Annotated[
        bool,
        typer.Option("--rerun", help="With --check: repeat one seed of each arm and compare the tables."),
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="The seed to repeat; the first by default.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Put an experiment or a sweep into one file that others can check and repeat offline.

    The file holds the scenario, recordings, lock files and hashes. --check exits with 4 if a file has changed
    since it was written, and --rerun with 1 if the tables of a repeated run differ.
    """
    set_quiet(quiet)
    if check:
        if output is not None or summaries:
            raise UsageError("`--check` writes no file; leave out `-o` and `--summaries`")
        _check(path, seed=seed, rerun=rerun, as_json=as_json)
        return
    if rerun or seed is not None or as_json:
        raise UsageError("`--rerun`, `--seed` and `--json` require `--check`; add it, or leave them out")
    from aqmlab.bundles import bundle as write

    with interruptible():
        file = write(path, output, summaries=summaries)
    typer.echo(str(file))
    say(f"check it   aqmlab bundle --check {file}")


def _check(file: Path, *, seed: int | None, rerun: bool, as_json: bool) -> None:
    from aqmlab.bundles.check import as_json as found_json
    from aqmlab.bundles.check import check_bundle
    from aqmlab.text.numbers import counted

    if seed is not None and not rerun:
        raise UsageError("`--seed` is the seed that `--rerun` repeats; add `--rerun`, or leave out `--seed`")
    with interruptible():
        found = check_bundle(file, rerun=rerun, seed=seed)
    if as_json:
        tell_json(found_json(found))
    else:
        size = f"{counted(found.files, 'file')}, {counted(found.recordings, 'recording')}"
        print(f"ok        {found.path}: {size}")
        for run in found.repeated:
            verdict = "differs" if run.differ else "same"
            of = ", ".join(run.differ) or f"all {run.tables} tables"
            versions = f" (versions differ: {'; '.join(run.parts)})" if run.parts else ""
            print(f"{verdict:<9} {run.arm}, seed {run.seed}: {of}{versions}")
    if not found.same:
        raise typer.Exit(Exit.CHECK_FAILED)
