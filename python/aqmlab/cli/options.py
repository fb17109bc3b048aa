"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Suppress progress and remarks on stderr.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", envvar="AQMLAB_SEED", help="The first seed; overrides the scenario's."),
]
Runs = Annotated[int | None, typer.Option("--runs", help="The number of seeds; overrides the scenario's.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", envvar="AQMLAB_JOBS", help="Runs in parallel; one per processor by default."
    ),
]
Arms = Annotated[list[str] | None, typer.Option("--arm", help="Only this arm; may be repeated.")]
Queue = Annotated[
    str | None,
    typer.Option("--queue", help="The queue to report on, * for all flows; the bottleneck by default."),
]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="Only this metric of `aqmlab metrics`; may be repeated.")
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="class", help="A row for each traffic class: `--by class`."),
]
ClassName = Annotated[str, typer.Option("--class", help="Only this traffic class.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")]
Pcap = Annotated[
    str | None,
    typer.Option(
        "--pcap",
        metavar="PORT[,PORT]",
        help="Capture packets at these ports, or at `all`, into packets.pcapng of each recording.",
    ),
]
PcapBytes = Annotated[
    int | None,
    typer.Option("--pcap-bytes", help="Bytes to keep of each captured packet; 128 by default."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Run live even if the load is expected to exceed this machine.")
]
StorePath = Annotated[
    Path | None,
    typer.Option("--store", envvar="AQMLAB_STORE", help="The store's directory; runs/store by default."),
]


def ports_of(text: str | None) -> tuple[str, ...]:
    """The ports that ``--pcap`` names; none if it is not given."""
    return () if text is None else tuple(port.strip() for port in text.split(","))
