"""What every page has in common: its frame, its style and its content security policy."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from markupsafe import Markup, escape

from aqmlab.system.files import json_text

SCRIPTS = (
    *("csv.js", "chart.js", "figure.js", "panels.js", "distributions.js", "heat.js"),
    *("trade_off.js", "plain.js", "courses.js", "multiples.js", "table.js"),
)


def page(
    template: str,
    context: Mapping[str, Any],
    data: object = None,
    styles: Sequence[str] = (),
) -> str:
    """A self-contained page.

    Parameters
    ----------
    template
        Name of a template that extends ``base.html.j2``.
    context
        The context of the template. Everything in it except :class:`markupsafe.Markup` is escaped.
    data
        The data for the page's scripts; a page without data has no script.
    styles
        Names of this package's style sheets that the page needs in addition to the one that all pages have.
    """
    # Importing Jinja takes a long time, so only pages import it.
    from aqmlab.reports.templates import environment

    templates = environment()
    templates.filters["code"] = _code
    scripts = [] if data is None else list(map(resource, SCRIPTS))
    frame = {
        "data": "" if data is None else Markup(json_in_html(data)),
        "policy": content_security_policy(scripts),
        "style": Markup("".join(map(resource, ("style.css", *styles)))),
        "scripts": [Markup(script) for script in scripts],
    }
    return templates.get_template(template).render({**frame, **context})


def content_security_policy(scripts: Sequence[str]) -> str:
    """Return a content security policy that allows only these scripts to run and forbids all requests."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    # Inline styles are allowed because parts of figures carry their own colours.
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


def _code(text: str) -> Markup:
    """Format text between backticks as code; the rest is escaped."""
    pieces = str(escape(text)).split("`")
    return Markup("".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces)))


def json_in_html(value: object) -> str:
    """Return JSON that cannot close its script element."""
    return json_text(value, compact=True).replace("<", "\\u003c")


def unbroken(text: str) -> str:
    """Prevent line breaks between a number, its interval and its unit."""
    return re.sub(r"(?<=\d) (?=%|ms\b|Mbit/s)", "\u00a0", text.replace(" ± ", "\u00a0±\u00a0"))


def resource(name: str) -> str:
    """Return the text of a file of this package."""
    return (resources.files("aqmlab.reports") / name).read_text(encoding="utf-8")
