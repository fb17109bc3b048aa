"""Bundles: runs and everything needed to repeat them offline in one file, with hashes."""

from aqmlab.bundles.check import Checked, check_bundle
from aqmlab.bundles.write import bundle

__all__ = ["Checked", "bundle", "check_bundle"]
