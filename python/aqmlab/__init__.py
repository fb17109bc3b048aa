"""A laboratory for active queue management.

Running a scenario produces a recording. Metrics, statistics, figures and reports are computed from
recordings::

    import aqmlab

    experiment = aqmlab.run("scenarios/demo.toml")
    answer = aqmlab.answer(experiment)
    print(answer.estimate("RED", "queueing_delay_p99_s"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aqmlab.errors import AqmlabError, HostError, RecordingError, RunError, ScenarioError, UsageError

if TYPE_CHECKING:
    from aqmlab.api import (
        aqm_check,
        figure,
        metric_list,
        metric_show,
        plot,
        plot_law,
        report,
        schema,
        score_claims,
        show,
    )
    from aqmlab.bundles import bundle, check_bundle
    from aqmlab.bundles.verification import verify
    from aqmlab.calibration import Calibration, calibrate
    from aqmlab.characterization import Characterization, characterize
    from aqmlab.disciplines.catalogue import aqm_list, aqm_show
    from aqmlab.execution import Executed, execute, route
    from aqmlab.experiment import run, run_both
    from aqmlab.exports import export
    from aqmlab.exports.vectors import write_vectors
    from aqmlab.kit import judge
    from aqmlab.language.templates import new
    from aqmlab.live.doctor import doctor
    from aqmlab.metrics.scope import Scope
    from aqmlab.papers.citation import cite
    from aqmlab.paths import compare, load
    from aqmlab.playground_page import Playground, playground
    from aqmlab.rate_traces import RateTrace, trace_import
    from aqmlab.recordings.faithfulness import verdicts
    from aqmlab.recordings.recording import Run
    from aqmlab.results.answers import Answer, answer
    from aqmlab.results.cells import Axis, Cell
    from aqmlab.results.comparison import Comparison
    from aqmlab.results.results import Results
    from aqmlab.stats import Estimate
    from aqmlab.sweeps.beside import beside
    from aqmlab.sweeps.connection import Cluster
    from aqmlab.sweeps.forecast import forecast
    from aqmlab.sweeps.merge import merge
    from aqmlab.sweeps.query import query
    from aqmlab.sweeps.sweep import Sweep, sweep
    from aqmlab.tc import (
        TcLine,
        TcQueue,
        TcSkipped,
        TcTree,
        read_tc,
        read_tc_script,
        read_tc_trees,
        tc_lines,
    )

__all__ = [
    "Answer",
    "AqmlabError",
    "Axis",
    "Calibration",
    "Cell",
    "Characterization",
    "Cluster",
    "Comparison",
    "Estimate",
    "Executed",
    "HostError",
    "Playground",
    "RateTrace",
    "RecordingError",
    "Results",
    "Run",
    "RunError",
    "ScenarioError",
    "Scope",
    "Sweep",
    "TcLine",
    "TcQueue",
    "TcSkipped",
    "TcTree",
    "UsageError",
    "answer",
    "aqm_check",
    "aqm_list",
    "aqm_show",
    "beside",
    "bundle",
    "calibrate",
    "characterize",
    "check_bundle",
    "cite",
    "compare",
    "doctor",
    "execute",
    "export",
    "figure",
    "forecast",
    "judge",
    "load",
    "merge",
    "metric_list",
    "metric_show",
    "new",
    "playground",
    "plot",
    "plot_law",
    "query",
    "read_tc",
    "read_tc_script",
    "read_tc_trees",
    "report",
    "route",
    "run",
    "run_both",
    "schema",
    "score_claims",
    "show",
    "sweep",
    "tc_lines",
    "trace_import",
    "verdicts",
    "verify",
    "write_vectors",
]

# Imported on demand, so that `--help` need not wait for any of them.
_NAMES = {
    "aqmlab.results.answers": ("Answer", "answer"),
    "aqmlab.api": (
        *("aqm_check", "figure", "metric_list", "metric_show"),
        *("plot", "plot_law", "report", "schema", "score_claims", "show"),
    ),
    "aqmlab.bundles": ("bundle", "check_bundle"),
    "aqmlab.calibration": ("Calibration", "calibrate"),
    "aqmlab.characterization": ("Characterization", "characterize"),
    "aqmlab.results.comparison": ("Comparison",),
    "aqmlab.disciplines.catalogue": ("aqm_list", "aqm_show"),
    "aqmlab.live.doctor": ("doctor",),
    "aqmlab.execution": ("Executed", "execute", "route"),
    "aqmlab.experiment": ("run", "run_both"),
    "aqmlab.exports": ("export",),
    "aqmlab.playground_page": ("Playground", "playground"),
    "aqmlab.rate_traces": ("RateTrace", "trace_import"),
    "aqmlab.recordings.faithfulness": ("verdicts",),
    "aqmlab.recordings.recording": ("Run",),
    "aqmlab.results.cells": ("Axis", "Cell"),
    "aqmlab.results.results": ("Results",),
    "aqmlab.metrics.scope": ("Scope",),
    "aqmlab.papers.citation": ("cite",),
    "aqmlab.paths": ("compare", "load"),
    "aqmlab.kit": ("judge",),
    "aqmlab.language.templates": ("new",),
    "aqmlab.stats": ("Estimate",),
    "aqmlab.sweeps.beside": ("beside",),
    "aqmlab.sweeps.connection": ("Cluster",),
    "aqmlab.sweeps.forecast": ("forecast",),
    "aqmlab.sweeps.merge": ("merge",),
    "aqmlab.sweeps.query": ("query",),
    "aqmlab.sweeps.sweep": ("Sweep", "sweep"),
    "aqmlab.tc": (
        "TcLine",
        "TcQueue",
        "TcSkipped",
        "TcTree",
        "read_tc",
        "read_tc_script",
        "read_tc_trees",
        "tc_lines",
    ),
    "aqmlab.exports.vectors": ("write_vectors",),
    "aqmlab.bundles.verification": ("verify",),
    "aqmlab._core": ("__version__",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module's attributes are of any type)
    if name not in _MODULES:
        raise AttributeError(f"module `aqmlab` has no attribute `{name}`")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
