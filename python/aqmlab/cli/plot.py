"""The commands that draw figures: of a recording, or of a law."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from aqmlab.cli import completion
from aqmlab.cli.console import interruptible, say, set_quiet
from aqmlab.cli.options import ClassName, Metrics, Queue, Quiet, RecordingPath, labels_of
from aqmlab.cli.progress import duration_s
from aqmlab.figures.kinds import kinds_text

_RECORDING = "recording"

Width = Annotated[
    str | None,
    typer.Option("--width", metavar="LENGTH", help="88mm, 9cm, 3.5in, 252pt, or 1col of a two-column paper."),
]
Height = Annotated[str | None, typer.Option("--height", metavar="LENGTH", help="As for --width.")]
FontSize = Annotated[float | None, typer.Option("--font-size", metavar="POINTS", help="The font size.")]
NoTitle = Annotated[bool, typer.Option("--no-title", help="Omit the title, for figures with a caption.")]
Style = Annotated[
    str | None,
    typer.Option("--style", metavar="NAME|FILE", help="paper, slides or gray; or a matplotlib style sheet."),
]


class _PathOrCommand(TyperGroup):
    """A word that is not the name of a command is the path of a recording: `aqmlab plot PATH KIND`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 (Typer's own types are private)
        if args and args[0] not in self.commands:
            args = [_RECORDING, *args]
        return super().resolve_command(ctx, args)


plot = typer.Typer(
    help="Draw one figure: `aqmlab plot PATH KIND` or `aqmlab plot law NAME`.",
    cls=_PathOrCommand,
    no_args_is_help=True,
    rich_markup_mode=None,
    # This allows options before the path.
    context_settings={"ignore_unknown_options": True},
)


@plot.command(_RECORDING)
def plot_recording(
    path: RecordingPath,
    kind: Annotated[
        str,
        typer.Argument(
            help=kinds_text(),
            show_default=False,
            autocompletion=completion.kinds,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file to write: .pdf, .svg or .png; for most kinds also .csv (the numbers);"
            " PATH/figures/KIND.pdf if not given.",
        ),
    ] = None,
    queue: Queue = None,
    flow: Annotated[
        list[str] | None,
        typer.Option("--flow", metavar="NAME", help="A flow, such as `ftp 3`, or a class; may be repeated."),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm", metavar="NAME", help="An arm; may be repeated.", autocompletion=completion.arms
        ),
    ] = None,
    class_name: ClassName = "*",
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="ARM",
            help="For requests or pages: the arm to draw in grey behind the others.",
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Show flows, or response and page times, starting at this time."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="TIME", help="Show flows, or response and page times, up to this time."
        ),
    ] = None,
    metric: Metrics = None,
    x: Annotated[
        str | None, typer.Option("--x", metavar="AXIS", help="For a sweep: the horizontal axis of each plot.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="AXIS",
            help="For a sweep: the axis with one plot per label, or the vertical axis of a map.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="AXIS=LABEL", help="Hold another axis at this label; may be repeated."
        ),
    ] = None,
    over: Annotated[
        str,
        typer.Option(
            "--over",
            help="What boxes and bars show: seeds (one value per seed), classes (the same for each class of"
            " traffic) or flows (the goodput of each flow).",
        ),
    ] = "seeds",
    width: Width = None,
    height: Height = None,
    font_size: FontSize = None,
    no_title: NoTitle = False,
    style: Style = None,
    quiet: Quiet = False,
) -> None:
    """Draw a recording or a sweep; only PATH and KIND are required."""
    from aqmlab.api import plot as draw

    set_quiet(quiet)
    from_s, until_s = (None if time is None else duration_s(time) for time in (begin, until))
    file = draw(
        path,
        kind,
        output,
        queue=queue,
        flows=flow or [],
        arms=arm or [],
        from_s=from_s,
        until_s=until_s,
        metrics=metric or [],
        x=x,
        by=by,
        where=labels_of(where),
        over=over,
        class_name=class_name,
        reference=reference,
        width=width,
        height=height,
        font_size=font_size,
        title=not no_title,
        style=style,
    )
    typer.echo(str(file))


@plot.command("law")
def plot_law(
    name: Annotated[
        str,
        typer.Argument(
            help="red, ared, scred, pi, rem or blue.",
            show_default=False,
            autocompletion=completion.disciplines,
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter, such as max_p=0.1; may be repeated."),
    ] = None,
    presets: Annotated[bool, typer.Option("--presets", help="Draw one line per preset.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", "--out", help="The file, .pdf, .svg, .png or .csv; law-NAME.pdf if not given."
        ),
    ] = None,
    rate: Annotated[str, typer.Option("--rate", help="The link's rate.")] = "10Mbit",
    delay: Annotated[
        str, typer.Option("--delay", help="The link's one-way delay; the path's RTT is twice that.")
    ] = "40ms",
    load: Annotated[
        float, typer.Option("--load", help="Load before and after the step, relative to the rate.")
    ] = 0.8,
    step_load: Annotated[
        float, typer.Option("--step", help="Load during the step, relative to the rate.")
    ] = 1.2,
    duration: Annotated[
        str,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="The duration; the step begins after a sixth of it and ends after two thirds of it.",
        ),
    ] = "60s",
    seed: Annotated[int, typer.Option("--seed", help="The seed of the discipline's draws.")] = 1,
    width: Width = None,
    height: Height = None,
    font_size: FontSize = None,
    no_title: NoTitle = False,
    style: Style = None,
    quiet: Quiet = False,
) -> None:
    """Draw a law: probability against average queue, or over time after a step in load.

    The laws of red, ared and scred are drawn against average queue, with their initial parameters; those of
    pi, rem, blue, pie, pi2 and dualpi2 are drawn over time, without TCP.
    """
    from aqmlab.api import plot_law as draw
    from aqmlab.laws import Bench, law_warnings, parse_settings

    set_quiet(quiet)
    bench = Bench(rate, delay, load, step_load, duration_s(duration))
    given = parse_settings(settings or [])
    with interruptible():
        file = draw(
            name,
            given,
            output,
            presets=presets,
            seed=seed,
            bench=bench,
            width=width,
            height=height,
            font_size=font_size,
            title=not no_title,
            style=style,
        )
    for warning in law_warnings(name, given, presets=presets, bench=bench):
        say(f"warning: {warning}")
    typer.echo(str(file))
