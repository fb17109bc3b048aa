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
        help="The directory of an experiment, of one run or, for `report`, of a sweep.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no remarks on stderr.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", envvar="AQMLAB_SEED", help="The first seed; as in the scenario if not given."),
]
Runs = Annotated[int | None, typer.Option("--runs", help="How many seeds; as in the scenario if not given.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", envvar="AQMLAB_JOBS", help="Runs side by side; one a processor if not given."
    ),
]
Arms = Annotated[list[str] | None, typer.Option("--arm", help="Only this arm; can be given again for more.")]
Queue = Annotated[
    str | None,
    typer.Option("--queue", help="The queue to look at, * for all flows; the bottleneck if not given."),
]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="Only this metric, of `aqmlab metrics`; again for more.")
]
ClassName = Annotated[str, typer.Option("--class", help="Only this traffic class.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Make no report.html.")]
Pcap = Annotated[
    str | None,
    typer.Option(
        "--pcap",
        metavar="PORT[,PORT]",
        help="Capture the packets of these ports, or of `all`, in packets.pcapng of each recording.",
    ),
]
PcapBytes = Annotated[
    int | None,
    typer.Option("--pcap-bytes", help="Bytes of each captured packet that are kept; 128 if not given."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Run live also what is expected to be too much for this machine.")
]
StorePath = Annotated[
    Path | None,
    typer.Option("--store", envvar="AQMLAB_STORE", help="The store's directory; runs/store if not given."),
]


def ports_of(text: str | None) -> tuple[str, ...]:
    """The ports that ``--pcap`` names; none if it is not given."""
    return () if text is None else tuple(port.strip() for port in text.split(","))
