"""Sweeps: many runs, stored under their digests, executed by processes that may die, read as one answer."""
