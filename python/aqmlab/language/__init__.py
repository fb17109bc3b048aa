"""Scenarios as text: what callers pass, templates, and TOML files with the places of errors."""
