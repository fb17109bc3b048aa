"""Bundles: one file with runs and everything needed to repeat them offline, with hashes."""

from aqmlab.bundles.check import Checked, check_bundle
from aqmlab.bundles.write import bundle

__all__ = ["Checked", "bundle", "check_bundle"]
