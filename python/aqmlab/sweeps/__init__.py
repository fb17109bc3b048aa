"""Sweeps: many runs, stored by digest, executed by processes that may die, and read as one answer."""
