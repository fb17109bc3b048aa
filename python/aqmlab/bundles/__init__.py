"""Bundles: what has run and what it takes to repeat it, in one file, with hashes; for a referee, offline."""

from aqmlab.bundles.check import Checked, check_bundle
from aqmlab.bundles.write import bundle

__all__ = ["Checked", "bundle", "check_bundle"]
