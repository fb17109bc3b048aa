"""Results of many runs: cells, metrics by cell, comparisons."""
