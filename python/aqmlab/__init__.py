"""A laboratory for active queue management.

A scenario goes in, a recording comes out, and one set of metrics, statistics, figures and reports reads it::

    import aqmlab

    experiment = aqmlab.run("scenarios/demo.toml")
    answer = aqmlab.table(experiment)
    print(answer.estimate("RED", "queueing_delay_p99_s"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aqmlab.api import aqm_check, aqm_list, aqm_show, load, plot, plot_law, report, run, schema, show
from aqmlab.errors import AqmlabError, HostError, RecordingError, RunError, ScenarioError, UsageError
from aqmlab.recording import Experiment, Run
from aqmlab.stats import Estimate

if TYPE_CHECKING:
    from aqmlab.answers import Table, table
    from aqmlab.comparison import Comparison, compare
    from aqmlab.results import Axis, Cell, Results, load_results

__all__ = [
    "AqmlabError",
    "Axis",
    "Cell",
    "Comparison",
    "Estimate",
    "Experiment",
    "HostError",
    "RecordingError",
    "Results",
    "Run",
    "RunError",
    "ScenarioError",
    "Table",
    "UsageError",
    "aqm_check",
    "aqm_list",
    "aqm_show",
    "compare",
    "load",
    "load_results",
    "plot",
    "plot_law",
    "report",
    "run",
    "schema",
    "show",
    "table",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module's attributes are of any type)
    # These need NumPy, which an answer to `--help` should not wait for.
    if name in ("Table", "table"):
        from aqmlab import answers

        return getattr(answers, name)
    if name in ("Comparison", "compare"):
        from aqmlab import comparison

        return getattr(comparison, name)
    if name in ("Axis", "Cell", "Results", "load_results"):
        from aqmlab import results

        return getattr(results, name)
    if name == "__version__":
        from aqmlab import _core

        return _core.__version__
    raise AttributeError(f"module `aqmlab` has no attribute `{name}`")
