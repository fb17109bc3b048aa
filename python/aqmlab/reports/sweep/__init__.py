"""The report over a sweep: one page with every cell, how the arms differ, and how far it can be trusted."""
