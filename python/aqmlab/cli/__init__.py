"""The command line: each command is one public function, its answer on stdout, its talk on stderr."""

from __future__ import annotations

from aqmlab.cli.app import main

__all__ = ["main"]
