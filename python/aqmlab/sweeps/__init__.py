"""Sweeps: many runs, kept under their digests, done by processes that may die, read as one answer."""
