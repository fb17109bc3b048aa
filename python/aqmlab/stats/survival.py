"""The distribution function of durations, some of which are known only in part.

A duration is *completed* if its end was seen, *unfinished* if only its age at the end of the observation is
known (right-censored), and *failed* if something else ended it, after which it cannot complete (a competing
event). If it began before the observation, it had *entered* at some age (left-truncated): others that began
as early and ended sooner were not seen, so it says nothing about smaller ages.

The estimate is that of Aalen and Johansen (Scandinavian Journal of Statistics 5, 1978): at each age at which
durations end, the number that end is divided by the number at risk, which have entered before and not ended
before. Without failures it is the product-limit estimate of Kaplan and Meier (Journal of the American
Statistical Association 53, 1958), with delayed entry where durations entered late; if all durations are
completed and seen from their beginning, it is the empirical distribution function.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Counts = npt.NDArray[np.int64]


class Ages(NamedTuple):
    """Ages in any order, each with the number of durations that have it."""

    at: Floats
    number: Counts

    @staticmethod
    def of(values: npt.ArrayLike) -> Ages:
        """Return single values, each counted once."""
        import numpy as np

        at = np.asarray(values, dtype=np.float64)
        return Ages(at, np.ones(len(at), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Incidence:
    """The share of durations that complete, by age.

    Attributes
    ----------
    at
        The ages at which a duration ended, ascending.
    share
        The share that complete within each of these ages.
    left
        The share that have neither completed nor failed by then.
    known_to
        The age up to which the shares are known; infinite if they stay as they are after the last of ``at``.
        The estimate ends where no duration is at risk, unless all have ended by then.
    """

    at: Floats
    share: Floats
    left: Floats
    known_to: float


def incidence(
    completed: Ages, unfinished: Ages | None = None, failed: Ages | None = None, entered: Ages | None = None
) -> Incidence | None:
    """Estimate the share of durations that complete, by age; ``None`` if nothing is known at any age.

    At equal ages, completions and failures come before the ages of unfinished durations, and a duration that
    enters comes after all of them.

    Parameters
    ----------
    completed, unfinished, failed
        The ages at which durations ended, or were last seen.
    entered
        The ages at which durations entered, if they were not seen from their beginning. Each must end at a
        greater age.
    """
    import numpy as np

    none = Ages.of(())
    ends = [completed, failed or none, unfinished or none]
    late = entered or none
    at, where = np.unique(np.concatenate([part.at for part in ends]), return_inverse=True)
    if not len(at):
        return None
    parts = np.split(where, np.cumsum([len(part.at) for part in ends[:2]]))
    done, lost, cut = (
        np.bincount(places, weights=part.number, minlength=len(at))
        for places, part in zip(parts, ends, strict=True)
    )
    ended: Floats = np.asarray(done + lost + cut, dtype=np.float64)
    if ended.sum() == late.number[late.at > 0].sum():
        return None
    at_risk, remaining = _at_risk(at, ended, late)
    # The last age before the first at which none is at risk.
    known = min([len(at), *(np.flatnonzero(remaining == 0)[:1] + 1).tolist()])
    at, done, lost, at_risk = at[:known], done[:known], lost[:known], at_risk[:known]
    left: Floats = np.cumprod(1.0 - (done + lost) / at_risk, dtype=np.float64)
    share: Floats = np.cumsum(np.concatenate([[1.0], left[:-1]]) * done / at_risk)
    if left[-1] > 0:
        return Incidence(at, share, left, float(at[-1]))
    if known == len(ended):
        return Incidence(at, share, left, inf)
    # Durations that entered later exceed this age, so not all durations have ended by then.
    return Incidence(at[:-1], share[:-1], left[:-1], float(at[-2])) if known > 1 else None


def _at_risk(at: Floats, ended: Floats, late: Ages) -> tuple[Floats, Floats]:
    """Return the number of durations at risk just before each age, and just after it."""
    import numpy as np

    order = np.argsort(late.at, kind="stable")
    entries = np.concatenate([[0.0], np.cumsum(late.number[order])])
    at_birth = ended.sum() - late.number.sum()
    gone = np.cumsum(ended)
    before = at_birth + entries[np.searchsorted(late.at[order], at, side="left")] - (gone - ended)
    after = at_birth + entries[np.searchsorted(late.at[order], at, side="right")] - gone
    return before, after
