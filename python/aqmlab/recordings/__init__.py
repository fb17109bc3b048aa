"""Recordings of runs: plans, manifests, tables, time series, traces, and the verdict on live runs."""
