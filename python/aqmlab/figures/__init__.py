"""Figures as data: what a figure shows, computed once for files and pages."""
