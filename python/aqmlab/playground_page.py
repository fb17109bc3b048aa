"""The playground, the simulator in a web page, as one file: for notebooks, and for people without aqmlab."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from aqmlab.arguments import typed
from aqmlab.errors import HostError, UsageError
from aqmlab.language.scenario import Scenario, read, resolve
from aqmlab.system.files import write_whole

PAGE = Path(__file__).with_name("playground.html")
"""The built page. `make playground` makes it, and wheels contain it."""
LONGEST = 100_000
"""The longest scenario that the page reads, in characters."""


@dataclass(frozen=True)
class Playground:
    """The playground as one HTML file, which sends nothing anywhere. A notebook shows it.

    Attributes
    ----------
    html
        The file's content.
    """

    html: str

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, which any browser opens, and return its path.

        Raises
        ------
        HostError
            If the file cannot be written.
        """
        file = Path(path)
        try:
            write_whole(file, self.html)
        except OSError as error:
            raise HostError(f"cannot write {file}: {error.strerror or error}") from error
        return file.absolute()

    def __repr__(self) -> str:
        return f"Playground({len(self.html) / 1e6:.1f} MB of HTML)"

    def _repr_html_(self) -> str:
        frame = "width:100%;height:56rem;border:0"
        return f'<iframe title="aqmlab playground" style="{frame}" srcdoc="{escape(self.html)}"></iframe>'


@typed
def playground(scenario: Scenario | None = None) -> Playground:
    """Return the playground: the simulator in a web page, which a notebook shows and ``save`` writes.

    The page contains the simulator and needs no network and no server. It takes about 2 MB.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict, with which the page begins; by default, the page begins with
        its knobs. The page refuses scenarios that name other files, and runs that take more than 400 MB.

    Raises
    ------
    ScenarioError
        If the scenario is wrong.
    UsageError
        If the scenario is too long for the page.
    HostError
        If this installation does not contain the page.
    """
    try:
        page = PAGE.read_text(encoding="utf-8")
    except OSError as error:
        message = (
            f"this installation has no playground ({PAGE}: {error.strerror}); `make playground` builds it"
        )
        raise HostError(message) from error
    if scenario is None:
        return Playground(page)
    resolve(scenario)
    toml, name = read(scenario)
    if len(toml) > LONGEST:
        raise UsageError(f"{name} has {len(toml)} characters; the playground reads at most {LONGEST}")
    squeeze = zlib.compressobj(9, wbits=-15)
    packed = base64.urlsafe_b64encode(squeeze.compress(toml.encode()) + squeeze.flush()).decode().rstrip("=")
    settings = f'<meta name="settings" content="toml={packed}">\n'
    return Playground(page.replace("</head>", f"{settings}</head>", 1))
