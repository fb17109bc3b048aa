"""Arguments and options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli import completion
from aqmlab.errors import UsageError

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster

    Where = str | Cluster
else:
    Where = str

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).", show_default=False)
]
RecordingPath = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="The directory of an experiment or a single run; `report` also accepts a sweep.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="The directory to create; runs/<time>-<title>-<digest> by default."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue in an existing directory; complete runs are kept, and more seeds may be asked for.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Suppress progress and remarks on stderr.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", envvar="AQMLAB_SEED", help="The first seed; overrides the scenario's."),
]
Seeds = ("--seeds", "--runs")
"""The names of the option for the number of seeds; the second one is the scenario's key."""
Runs = Annotated[int | None, typer.Option(*Seeds, help="The number of seeds; overrides the scenario's.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        envvar="AQMLAB_JOBS",
        help="Number of runs in parallel on this machine; one per processor by default.",
    ),
]
Arms = Annotated[
    list[str] | None,
    typer.Option("--arm", help="Only this arm; may be repeated.", autocompletion=completion.arms),
]
Queue = Annotated[
    str | None,
    typer.Option(
        "--queue", help="The queue to report on, or * for the whole network; the bottleneck by default."
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help="Only this metric of `aqmlab metrics`, with settings in braces if needed; may be repeated.",
        autocompletion=completion.metrics,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="class|kind|queue",
        help="A row for each traffic class: `--by class`; for each kind of packet (SYN, data, ACK, FIN)"
        " where some were lost or marked: `--by kind`; or for each queue inside another: `--by queue`.",
    ),
]
ClassName = Annotated[str, typer.Option("--class", help="Only this traffic class.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")]
Pcap = Annotated[
    str | None,
    typer.Option(
        "--pcap",
        metavar="PORT[,PORT]",
        help="Capture packets at these ports (`all`: every port) into packets.pcapng of each recording.",
    ),
]
PcapBytes = Annotated[
    int | None,
    typer.Option("--pcap-bytes", help="Bytes to keep of each captured packet; 128 by default."),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Run live even if the load is expected to exceed this machine's capacity."),
]
StorePath = Annotated[
    Path | None,
    typer.Option("--store", envvar="AQMLAB_STORE", help="The store's directory; runs/store by default."),
]


def _chosen_executor(
    *,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            envvar="AQMLAB_EXECUTOR",
            help="Where runs are executed: local, or dask for a Dask cluster.",
        ),
    ] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="The Dask scheduler, such as tcp://host:8786; DASK_SCHEDULER_ADDRESS by default.",
        ),
    ] = None,
    scheduler_file: Annotated[
        Path | None,
        typer.Option("--scheduler-file", metavar="FILE", help="The file written by the Dask scheduler."),
    ] = None,
    bring: Annotated[
        str | None,
        typer.Option(
            "--bring",
            metavar="WHAT",
            help="What workers without access to the store send back: summaries or recordings.",
        ),
    ] = None,
    tls_ca_file: Annotated[
        Path | None,
        typer.Option("--tls-ca-file", metavar="FILE", help="The authority's certificate, for tls:// (PEM)."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate of this client (PEM).")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Private key of this client (PEM).")
    ] = None,
) -> Where:
    """Return the executor selected by the options.

    Raises
    ------
    UsageError
        If the options contradict each other.
    """
    from aqmlab.sweeps.where import DASK

    of_dask = {
        "--scheduler": scheduler,
        "--scheduler-file": scheduler_file,
        "--bring": bring,
        "--tls-ca-file": tls_ca_file,
        "--tls-cert": tls_cert,
        "--tls-key": tls_key,
    }
    if executor != DASK:
        given = [option for option, value in of_dask.items() if value is not None]
        if given:
            raise UsageError(
                f"`{given[0]}` applies to a Dask cluster; add `--executor dask`, or leave it out"
            )
        return executor
    from aqmlab.sweeps.connection import Cluster
    from aqmlab.sweeps.parcel import chosen

    what = None if bring is None else chosen(bring)
    return Cluster(scheduler, scheduler_file, what, tls_ca_file, tls_cert, tls_key)


def on_executors(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of executors to a command, which receives them as one argument, ``executor``."""
    known, more = signature(command, eval_str=True), signature(_chosen_executor, eval_str=True).parameters
    parameters: list[Parameter] = []
    for parameter in known.parameters.values():
        named = parameter.replace(kind=Parameter.KEYWORD_ONLY)
        parameters += more.values() if parameter.name == "executor" else [named]

    @wraps(command)
    def with_executor(**given: Any) -> None:  # noqa: ANN401 (of all options)
        command(executor=_chosen_executor(**{name: given.pop(name) for name in more}), **given)

    with_executor.__signature__ = known.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_executor.__annotations__ = {}
    return with_executor


def ports_of(text: str | None) -> tuple[str, ...]:
    """Return the ports that ``--pcap`` names; none if it is not given."""
    return () if text is None else tuple(port.strip() for port in text.split(","))


def labels_of(where: list[str] | None) -> dict[str, str]:
    """Return, by axis, the labels that ``--where`` gives.

    Raises
    ------
    UsageError
        If a value does not have the form ``AXIS=LABEL``.
    """
    held = {}
    for text in where or ():
        axis, equals, label = text.partition("=")
        if not (axis and equals and label):
            raise UsageError(f"`{text}` names no axis; write `--where AXIS=LABEL`")
        held[axis] = label
    return held
