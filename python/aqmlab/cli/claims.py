"""`aqmlab claims`, and the last block of output of a scored scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.console import Exit, refuse_damage, tell_json
from aqmlab.cli.options import AsJson

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.results.results import Results

_STYLES = {"holds": "green", "fails": "bold red", "undecided": "yellow"}
_WIDTH = max(map(len, _STYLES)) + 2
_WIDE = 80


def claims(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="The directory that `run` or `sweep` wrote.", show_default=False),
    ],
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Score the [[claim]]s of this TOML file instead of the scenario's."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score the claims of a recording or a sweep again, or score other claims.

    Exits with 1 if a firm claim fails.
    """
    from aqmlab.claims import read_claims, score, to_json
    from aqmlab.paths import load

    results = load(path).sound()
    scored = score(results, None if file is None else read_claims(file))
    if as_json:
        tell_json(to_json(scored))
    else:
        print_claims(scored)
    refuse_damage(results)
    end_with(scored)


def scored_claims(results: Results) -> tuple[Scored, ...]:
    """Score the claims of a scenario that has been run, and write ``claims.json`` into its directory."""
    if not results.claims:
        return ()  # decided without importing the modules that score claims
    from aqmlab.claims import score, write_claims

    scored = score(results)
    write_claims(scored, results.path)
    return scored


def claims_json(scored: Sequence[Scored]) -> dict[str, Any]:
    """Return the claims for ``run --json``; empty if there are none."""
    if not scored:
        return {}
    from aqmlab.claims import to_json

    return {"claims": to_json(scored)}


def end_with(scored: Sequence[Scored]) -> None:
    """Exit with 1 if a firm claim fails."""
    if any(each.failed for each in scored):
        raise typer.Exit(Exit.CHECK_FAILED)


def print_claims(scored: Sequence[Scored]) -> None:
    """Print each claim with its verdict and the decisive comparisons."""
    from rich.text import Text

    from aqmlab.cli.tables import answer_console
    from aqmlab.text.tables import text_width

    console = answer_console()
    console.print(headline(scored), style="bold", markup=False)
    width = text_width()
    for each in scored:
        claim = each.claim
        about = ", ".join(part for part in (claim.strength, claim.source) if part)
        head = f"{each.status.ljust(_WIDTH)}{claim.name} ({about}): {claim.text or claim.expect}"
        shown = Text("\n".join([*_hanging(head, "", width), *_said(each, width)]))
        shown.stylize(_STYLES[each.status], 0, len(each.status))
        console.print(shown, soft_wrap=True)


def headline(scored: Sequence[Scored]) -> str:
    """``Claims: 5 hold, 1 fails, 2 are undecided; 31 comparisons, each at 95 %``."""
    if not scored:
        return "There are no claims."
    found = {status: sum(each.status == status for each in scored) for status in _STYLES}
    words = {
        "holds": ("holds", "hold"),
        "fails": ("fails", "fail"),
        "undecided": ("is undecided", "are undecided"),
    }
    said = ", ".join(f"{n} {words[status][n != 1]}" for status, n in found.items() if n)
    made = sum(len(each.parts) for each in scored)
    return f"Claims: {said}; {made} comparison{'s' * (made != 1)}, each at 95 %"


def _hanging(text: str, indent: str, width: int | None) -> list[str]:
    """Indent the lines of a paragraph: the first by ``indent``, continuation lines by more."""
    if width is None:
        return [indent + text]
    # If there is room, continuation lines begin to the right of the column of verdicts.
    further = " " * (_WIDTH if width >= _WIDE else 2)
    return wrap(
        text, width, initial_indent=indent and further, subsequent_indent=further, break_on_hyphens=False
    )


def _said(scored: Scored, width: int | None) -> list[str]:
    """Return the decisive comparisons as lines, preceded by the reason if the verdict is undecided.

    Only the first few comparisons are included; the JSON output lists them all.
    """
    from aqmlab.claims.text import first_of, placed_sentence

    lines = first_of(scored.deciding(), placed_sentence)
    reason = scored.verdict.reason
    said = lines if scored.status != "undecided" or not reason else [reason, *lines]
    return [line for each in said for line in _hanging(each, " " * _WIDTH, width)]
