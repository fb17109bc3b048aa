"""The commands that print a scenario with every value resolved, and what a scenario may contain."""

from __future__ import annotations

from typing import Annotated

import typer

from aqmlab.cli.console import tell_json
from aqmlab.cli.options import Arms, AsJson, ScenarioFile


def show(
    scenario: ScenarioFile,
    arm: Arms = None,
    as_json: AsJson = False,
) -> None:
    """Print a scenario with every value resolved.

    Lists the arms, queues, traffic classes, axes with their labels, seeds and the number of runs, then every
    value with its origin.
    """
    from aqmlab.api import show as resolved
    from aqmlab.cli.scenario_tables import print_scenario

    answer = resolved(scenario)
    if as_json:
        tell_json(answer)
    else:
        print_scenario(answer, arm or [])


def schema(
    of: Annotated[
        str,
        typer.Argument(help="scenario, plan (its resolved form), or manifest (the description of a run)."),
    ] = "scenario",
) -> None:
    """Print the JSON Schema of scenarios, plans or manifests."""
    from aqmlab.api import schema as content

    tell_json(content(of))
