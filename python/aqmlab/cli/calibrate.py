"""The command that finds the connection rate or the number of users for a given load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.cli.console import interruptible, say, set_quiet, tell_json
from aqmlab.cli.options import AsJson, Jobs, Quiet, ScenarioFile, Seed, Seeds, StorePath, labels_of
from aqmlab.cli.progress import ProgressLine, titled_text
from aqmlab.errors import UsageError

if TYPE_CHECKING:
    from aqmlab.calibration import Calibration
    from aqmlab.sweeps.progress import Progress


def calibrate(
    scenario: ScenarioFile,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="LOAD",
            help="The load: a share of the link's rate (`35 %`) or a rate (3.5Mbit).",
            show_default=False,
        ),
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="LINK",
            help="The link on which the load is measured, in either direction.",
            show_default=False,
        ),
    ],
    class_name: Annotated[
        list[str],
        typer.Option(
            "--class",
            metavar="NAME",
            help="The class whose rate or number of users is sought; may be repeated, and the"
            " ratio of the classes is kept.",
            show_default=False,
        ),
    ],
    direction: Annotated[
        str,
        typer.Option(
            "--direction",
            help="Measure in the direction of the responses, of the requests, or of the link as named:"
            " responses, requests or named.",
        ),
    ] = "responses",
    count: Annotated[
        str,
        typer.Option("--count", help="What to count: wire (with headers and acknowledgments) or payload."),
    ] = "wire",
    faster: Annotated[
        float, typer.Option("--faster", metavar="TIMES", help="The factor by which links are made faster.")
    ] = 10.0,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="LINK",
            help="A link that keeps its rate (access* for several); may be repeated.",
        ),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="CLASS",
            help="A class that also sends but whose load does not count; may be repeated.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(*Seeds, help="The number of seeds per value.")] = 10,
    seed: Seed = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="The length of a run; overrides the scenario's."),
    ] = None,
    warmup: Annotated[
        str | None, typer.Option("--warmup", metavar="TIME", help="The warm-up; overrides the scenario's.")
    ] = None,
    arm: Annotated[str | None, typer.Option("--arm", help="The arm, if the load depends on it.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="AXIS=LABEL", help="A label, if the load depends on its axis; may be repeated."
        ),
    ] = None,
    allow_overload: Annotated[
        bool, typer.Option("--allow-overload", help="Allow a target above the link's rate.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            "--write",
            metavar="FILE",
            help="Write a copy of the scenario with the value to FILE.",
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Write the value into the scenario itself.")
    ] = False,
    store: StorePath = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the connection rate or number of users that offers a given load on uncongested links.

    Runs the scenario with faster links, large queues and only the classes named, and fits the load as a
    function of the value; prints the value with its interval, and how much the load varies between seeds.
    Repeat an interrupted command to resume it.
    """
    from aqmlab.calibration import calibrate as find

    if in_place and output is not None:
        raise UsageError("`--output` and `--in-place` exclude each other; choose one")
    set_quiet(quiet)
    with interruptible(), ProgressLine(enabled=not quiet, text=titled_text) as line:

        def watch(what: str, now: Progress) -> None:
            line.update((what, now))

        found = find(
            scenario,
            class_name,
            target,
            on,
            direction=direction,
            count=count,
            faster=faster,
            keep=keep or (),
            others=others or (),
            runs=runs,
            seed=seed,
            duration=duration,
            warmup=warmup,
            arm=arm,
            where=labels_of(where),
            allow_overload=allow_overload,
            output=scenario if in_place else output,
            store=store,
            jobs=jobs,
            progress=watch,
        )
    if as_json:
        tell_json(found.to_json())
    else:
        _print(found)
    if in_place or output is not None:
        say(f"written    {scenario if in_place else output}")


def _print(found: Calibration) -> None:
    from aqmlab.cli.tables import answer_console, print_grid

    console = answer_console()
    print_grid(console, found.grid())
    console.print("\n".join(found.differences), style="dim", markup=False)
    for sentence in found.sentences():
        console.print()
        console.print(sentence, markup=False)
