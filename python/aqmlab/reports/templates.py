"""The templates of pages, compiled once like Python modules."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.util import cache_from_source
from io import BytesIO
from os import getpid
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

_FOLDER = Path(__file__).parent


def environment() -> jinja2.Environment:
    """Return the environment of the templates, which escape everything except :class:`markupsafe.Markup`."""
    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.FileSystemLoader(_FOLDER),
        bytecode_cache=Compiled(_FOLDER),
    )


class Compiled(jinja2.BytecodeCache):
    """Caches compiled templates next to the byte code of Python modules, if Python may write there.

    Parameters
    ----------
    folder
        Folder of the templates. The code is cached in its ``__pycache__``, or under ``PYTHONPYCACHEPREFIX``.
    """

    # Compiling takes as long as the rest of writing a small report. Before it uses the code, Jinja checks a
    # digest of the template's text, and the versions of Jinja and Python.

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _file(self, bucket: Bucket) -> Path:
        return Path(cache_from_source(str(self._folder / f"{bucket.key}.py"))).with_suffix(".j2c")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load the cached code, if it belongs to this text."""
        with suppress(OSError, EOFError, ValueError, TypeError):
            bucket.load_bytecode(BytesIO(self._file(bucket).read_bytes()))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store the compiled code; if that is impossible, the template is compiled again the next time."""
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        partial = file.with_name(f".{file.name}.{getpid()}")
        with suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            partial.write_bytes(bucket.bytecode_to_string())
            partial.replace(file)
