"""Claims: statements about metrics and arms in a small grammar of our own, scored by the runs.

``docs/claims.md`` has the grammar, and how a claim is scored. From its text to its verdict it passes

* :mod:`~aqmlab.claims.parse`, which makes a tree of it, and before any run :mod:`~aqmlab.claims.check`;
* :mod:`~aqmlab.claims.decide`, which decides conditions of many comparisons,
  :mod:`~aqmlab.claims.measure`, which says what one comparison is about, and :mod:`~aqmlab.claims.seeds`, by
  which that has an interval over the seeds;
* :mod:`~aqmlab.claims.score` and :mod:`~aqmlab.claims.text`, which make ``claims.json`` and sentences of it.
"""

from aqmlab.claims.claim import Claim, check_claims, read_claims
from aqmlab.claims.comparisons import ClaimComparison, Operand
from aqmlab.claims.names import Names
from aqmlab.claims.parse import parse
from aqmlab.claims.score import Scored, counts, score, to_json, write_claims
from aqmlab.claims.text import sentence

__all__ = [
    "Claim",
    "ClaimComparison",
    "Names",
    "Operand",
    "Scored",
    "check_claims",
    "counts",
    "parse",
    "read_claims",
    "score",
    "sentence",
    "to_json",
    "write_claims",
]
