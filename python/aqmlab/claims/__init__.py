"""Claims: statements about metrics and arms in a small grammar of our own, scored by the runs.

``docs/claims.md`` has the grammar, and how a claim is scored.
"""

from aqmlab.claims.claim import Claim, check_claims, read_claims
from aqmlab.claims.decide import Part, Side
from aqmlab.claims.names import Names
from aqmlab.claims.parse import parse
from aqmlab.claims.score import Scored, counts, score, to_json, write_claims
from aqmlab.claims.text import sentence

__all__ = [
    "Claim",
    "Names",
    "Part",
    "Scored",
    "Side",
    "check_claims",
    "counts",
    "parse",
    "read_claims",
    "score",
    "sentence",
    "to_json",
    "write_claims",
]
