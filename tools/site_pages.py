"""Build the documentation as a static, searchable site: target/site/html/index.html.

    .venv/bin/python tools/site_pages.py      (make site)

The pages are the Markdown files of the repository, in the same folders: each text exists once, and links
between the texts remain valid. This program generates the pages of the command line and of the Python
package, the gallery, and a page for each file of the repository that a text links to. Zensical builds the
site in its strict mode: a link without a target is an error. Neither the build nor any page fetches anything.
"""

import html
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import outputs

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "target" / "site"
PLAYGROUND = ROOT / "target" / "playground"
TO_PLAYGROUND = "playground-of-this-site"
"""Stands for the address of the playground until the place of the page that links to it is known."""
STAGED = PLACE / "pages"
OURS = ROOT / "tools" / "site"
REFERENCE = Path("docs/reference")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"(```.*?^```)", re.DOTALL | re.MULTILINE)
LANGUAGES = {".rs": "rust", ".py": "python", ".toml": "toml", ".sh": "bash", ".tcl": "tcl", ".cff": "yaml"}
ASSETS = {".svg", ".png", ".html", ".pdf"}


def texts() -> list[Path]:
    """The Markdown files of the repository, as paths relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [Path(line) for line in listed.stdout.splitlines() if not line.startswith("tests/")]


def page_of(target: Path) -> Path | None:
    """The site's page for a file or a folder of the repository; the page is created if there is none."""
    path = ROOT / target
    if path.is_dir():
        if (path / "README.md").is_file():
            return target / "README.md"
        files = [file for file in sorted(path.iterdir()) if file.is_file() and file.suffix in LANGUAGES]
        rows = [f"- [{file.name}]({page_of(file.relative_to(ROOT)).name})" for file in files]
        write(target / "README.md", f"# {target}\n\nFiles of this folder:\n\n" + "\n".join(rows) + "\n")
        return target / "README.md"
    if not path.is_file():
        return None
    if path.suffix == ".md":
        return target
    if path.suffix in ASSETS:
        (STAGED / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, STAGED / target)
        return target
    page = target.with_name(f"{target.name}.md")
    if not (STAGED / page).exists():
        language = LANGUAGES.get(path.suffix, "text")
        shown = path.read_text(encoding="utf-8")
        write(page, f"# {target.name}\n\n`{target}`\n\n````{language}\n{shown}\n````\n")
    return page


def write(page: Path, text: str) -> None:
    """Write one page of the site."""
    (STAGED / page).parent.mkdir(parents=True, exist_ok=True)
    (STAGED / page).write_text(text, encoding="utf-8")


def with_links(text: str, folder: Path) -> str:
    """The text with its links to files and folders of the repository replaced by links to their pages."""

    def led(found: re.Match[str]) -> str:
        target, hash_, anchor = found["target"].partition("#")
        if "://" in target or not target:
            return found[0]
        wanted = Path(os.path.normpath(folder / target))
        page = page_of(wanted)
        if page is None:
            raise SystemExit(f"{folder}: there is no file {wanted} for the link {found[0]}")
        relative = os.path.relpath(page, folder) if page != Path() else "README.md"
        return f"[{found['text']}]({relative}{hash_}{anchor})"

    parts = FENCED.split(text)
    return "".join(part if i % 2 else LINK.sub(led, part) for i, part in enumerate(parts))


def paper_figures() -> list[Path]:
    """The paths of the figures of all papers, simulated and live, relative to the root."""
    return sorted(path.relative_to(ROOT) for path in ROOT.glob("papers/*/figures/**/*.svg"))


def stage() -> None:
    """Copy all texts, their images and the files that they link to."""
    shutil.rmtree(PLACE, ignore_errors=True)
    for image in sorted((ROOT / "docs" / "images").iterdir()):
        page_of(image.relative_to(ROOT))
    for figure in paper_figures():
        page_of(figure)
    for text in texts():
        write(text, with_links((ROOT / text).read_text(encoding="utf-8"), text.parent))
    page = STAGED / "docs" / "playground.md"
    if PLAYGROUND.is_dir():
        title, rest = page.read_text(encoding="utf-8").split("\n", 1)
        opens = f'<p><a href="{TO_PLAYGROUND}">Open the playground</a></p>'
        page.write_text(f"{title}\n\n{opens}\n{rest}", encoding="utf-8")


def command_line() -> str:
    """The page of all commands, with the text of their --help."""
    from typer.main import get_command

    from aqmlab.cli.app import application

    def pages(command: object, name: str) -> Iterator[str]:
        helped = subprocess.run(
            [sys.executable, "-m", *name.split(), "--help"],
            check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "96"},
        )  # fmt: skip
        yield f"## {name}\n\n```text\n{helped.stdout.rstrip()}\n```\n"
        for sub, below in getattr(command, "commands", {}).items():
            if not below.hidden:
                yield from pages(below, f"{name} {sub}")

    return "# Command line\n\nThe text that `--help` prints for each command.\n\n" + "\n".join(
        pages(get_command(application()), "aqmlab")
    )


def section(text: str) -> str:
    """A NumPy-style docstring as Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", text, flags=re.MULTILINE)
    return re.sub(r"^(\w[\w, ]*)\n    ", r"\n`\1`:\n    ", text, flags=re.MULTILINE).replace("\n    ", "\n")


def python_package() -> str:
    """The page of the package's public names, from their docstrings."""
    package = importlib.import_module("aqmlab")
    shown = ["# Python package\n\nIts public names; [From Python](../python.md) explains their use.\n"]
    for name in sorted(package.__all__, key=str.lower):
        thing = getattr(package, name)
        if not callable(thing):
            continue
        try:
            call = str(inspect.signature(thing)).replace("'", "")
        except (TypeError, ValueError):
            call = "(...)"
        kind = "class " if inspect.isclass(thing) else ""
        about = section(inspect.getdoc(thing) or "")
        shown.append(f"## {name}\n\n```python\n{kind}aqmlab.{name}{call}\n```\n\n{about}\n")
        if inspect.isclass(thing):
            for method, value in vars(thing).items():
                about = inspect.getdoc(value) if not method.startswith("_") else None
                if about and (callable(value) or isinstance(value, property)):
                    shown.append(f"**`{method}`**: {section(about)}\n")
    return "\n".join(shown)


def shown_figure(title: str, figure: Path, commands: str = "") -> str:
    """One figure of the gallery, with the commands that draw it."""
    image = os.path.relpath(figure, REFERENCE)
    drawn = f"```text\n{commands}\n```\n\n" if commands else ""
    return f"### {title}\n\n![{title}]({image})\n\n{drawn}"


def title_of(figure: Path) -> str:
    """The title that is stored in a drawn figure."""
    return html.unescape(re.search(r"<dc:title>(.*?)</dc:title>", figure.read_text(encoding="utf-8"))[1])


def documented_figures() -> Iterator[str]:
    """The figures that commands in the documents draw."""
    for file in outputs.DOCUMENTS:
        page = os.path.relpath(file, ROOT / REFERENCE)
        for commands in outputs.figure_commands(file.read_text(encoding="utf-8")):
            for word in " ".join(commands).split():
                if word.startswith("docs/images/"):
                    title = title_of(ROOT / word)
                    yield shown_figure(title, Path(word), "\n".join(commands))
                    yield f"From [{file.relative_to(ROOT)}]({page}).\n"


def figures_of_papers() -> Iterator[str]:
    """The figures of each paper, simulated and live, in the paper's order."""
    from aqmlab.papers.folder import papers

    for paper in papers():
        place = Path("papers", paper.key)
        page = os.path.relpath(place / "README.md", REFERENCE)
        authors = paper.authors[0] + (" et al." if len(paper.authors) > 1 else "")
        yield f"## {authors}, {paper.year}\n\n[{paper.title}]({page})\n"
        for part, option, folder in ((paper, "", "figures"), (paper.live, " --live", "figures/live")):
            if not part or not part.figures:
                continue
            yield f"```text\naqmlab paper reproduce {paper.key}{option}\n```\n"
            for figure in part.figures:
                number = f"Figure {figure.name}: " if figure.name[0].isdigit() else ""
                if (ROOT / place / folder / figure.file_name).is_file():
                    yield shown_figure(number + figure.title, place / folder / figure.file_name)


def gallery() -> str:
    """The page of all figures."""
    about = "Every figure in the documentation and the papers, with the commands that draw it."
    shown = ["# Gallery\n\n" + about + "\n", "## The documentation\n", *documented_figures()]
    return "\n".join([*shown, *figures_of_papers()])


def add_playground(html_folder: Path) -> None:
    """Copy the playground into the built site, and lead the link on its page there."""
    shutil.copytree(PLAYGROUND, html_folder / "playground", dirs_exist_ok=True)
    for name in ("docs/playground.html", "docs/playground/index.html"):
        page = html_folder / name
        if page.is_file():
            target = os.path.relpath(html_folder / "playground/index.html", page.parent)
            page.write_text(page.read_text(encoding="utf-8").replace(TO_PLAYGROUND, target), encoding="utf-8")


def main() -> int:
    """Stage the pages and build the site."""
    stage()
    for name, page in [("cli", command_line), ("python", python_package), ("gallery", gallery)]:
        write(REFERENCE / f"{name}.md", page())
    shutil.copyfile(OURS / "zensical.toml", PLACE / "zensical.toml")
    for file in ("iframe-worker.js", "extra.css"):
        shutil.copyfile(OURS / file, STAGED / file)
    built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=PLACE, check=False)
    if PLAYGROUND.is_dir():
        add_playground(PLACE / "html")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
