"""Claims: statements about metrics and arms in a small grammar, scored against the runs.

``docs/claims.md`` describes the grammar and the scoring. On the way from its text to its verdict, a claim
passes through

* :mod:`~aqmlab.claims.parse`, which turns it into a tree, and :mod:`~aqmlab.claims.check`, which checks the
  tree before any run; :mod:`~aqmlab.claims.functions` has one row per function;
* :mod:`~aqmlab.claims.decide`, which decides conditions made of many comparisons,
  :mod:`~aqmlab.claims.measure`, which defines the quantity of one comparison, and
  :mod:`~aqmlab.claims.seeds`, which computes its interval over the seeds;
* :mod:`~aqmlab.claims.score` and :mod:`~aqmlab.claims.text`, which write ``claims.json`` and
  sentences.
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
