"""Write the manual pages of the command line, one per command, from what `--help` prints.

.venv/bin/python tools/man_pages.py FOLDER      aqmlab.1, aqmlab-run.1, aqmlab-plot-series.1 and so on
"""

import inspect
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from aqmlab import _core
from aqmlab.cli.app import application

ROOT = Path(__file__).resolve().parent.parent
EXIT_CODES = "Exit codes:"


def escaped(text: str) -> str:
    """The text as roff input: backslashes and leading dots are escaped, and hyphens are ASCII."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in text.splitlines())


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text; a paragraph of indented lines keeps its line breaks."""
    for part in inspect.cleandoc(text.replace("\b", "")).strip().split("\n\n"):
        lines = [line for line in part.strip("\n").splitlines() if line.strip()]
        if all(line.startswith(" ") for line in lines):
            yield f".PP\n.nf\n{escaped(chr(10).join(lines))}\n.fi\n"
        elif lines:
            yield ".PP\n" + escaped(" ".join(line.strip() for line in lines)) + "\n"


def listed(heading: str, records: Iterable[tuple[str, str]]) -> str:
    """A section with one tagged paragraph per record."""
    rows = [
        f".TP\n.B {escaped(name)}\n{escaped(' '.join(about.split())) or chr(92) + '&'}\n"
        for name, about in records
    ]
    return f".SH {heading}\n{''.join(rows)}" if rows else ""


def visible(command: Any) -> dict[str, Any]:  # noqa: ANN401 (Typer does not export the type of its commands)
    """The subcommands of this command that `--help` lists."""
    return {name: below for name, below in getattr(command, "commands", {}).items() if not below.hidden}


def commit_date() -> str:
    """The date of the last commit, so that the same sources give the same pages."""
    asked = ["git", "log", "-1", "--format=%cs"]
    return subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def page(context: Any, date: str) -> str:  # noqa: ANN401
    """The manual page of a command, given the command's context."""
    command, names = context.command, context.command_path.split()
    first, *rest = paragraphs(command.help or "")
    first = first.removeprefix(".PP\n")
    parameters = [parameter for parameter in command.get_params(context) if not parameter.hidden]
    records = {
        kind: [
            record for p in parameters if p.param_type_name == kind and (record := p.get_help_record(context))
        ]
        for kind in ("argument", "option")
    }
    exits = [part for part in rest if part.startswith(f".PP\n{EXIT_CODES}")]
    about = [part for part in rest if part not in exits]
    title = "-".join(names)
    usage = escaped(" ".join(command.collect_usage_pieces(context)))
    other = ["aqmlab(1)"] if len(names) > 1 else []
    other += [f"{title}-{name}(1)" for name in visible(command)]
    return "".join(
        [
            f'.TH {title.upper()} 1 "{date}" "aqmlab {_core.__version__}" "aqmlab"\n',
            f".SH NAME\n{escaped(title)} \\- {first.strip().rstrip('.')}\n",
            f".SH SYNOPSIS\n.B {escaped(' '.join(names))}\n{usage}\n",
            ".SH DESCRIPTION\n",
            first,
            *about,
            listed("ARGUMENTS", records["argument"]),
            listed(
                "COMMANDS",
                ((name, below.get_short_help_str(200)) for name, below in visible(command).items()),
            ),
            listed("OPTIONS", records["option"]),
            *(
                f".SH EXIT STATUS\n{part.removeprefix(f'.PP{chr(10)}{EXIT_CODES}').lstrip()}"
                for part in exits
            ),
            see(other),
        ]
    )


def see(other: list[str]) -> str:
    """The references to other pages."""
    rows = [f".BR {escaped(name.removesuffix('(1)'))} (1)" for name in other]
    return ".SH SEE ALSO\n" + " ,\n".join(rows) + "\n" if rows else ""


def contexts(command: Any, name: str, parent: Any = None) -> Iterator[Any]:  # noqa: ANN401
    """The contexts that a command and its subcommands have when they are called."""
    context = command.context_class(command, info_name=name, parent=parent, **command.context_settings)
    yield context
    for below, inner in visible(command).items():
        yield from contexts(inner, below, context)


def main(folder: Path) -> None:
    """Write all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    date = commit_date()
    for context in contexts(get_command(application()), "aqmlab"):
        name = context.command_path.replace(" ", "-")
        (folder / f"{name}.1").write_text(page(context, date), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
