"""What programs of a live run have written about themselves, as values with names."""

from aqmlab.recordings.programs.files import ResultsError
from aqmlab.recordings.programs.values import NAME, Written, written

__all__ = ["NAME", "ResultsError", "Written", "written"]
