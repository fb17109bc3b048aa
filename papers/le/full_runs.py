"""Run each arm once at 98 % load, as long as in the paper: the middle 90 minutes of two hours are measured.

The last quarter of an hour is not simulated, because nothing is measured in it.

    python papers/le/full_runs.py [STORE]

prints the table in README.md. Its 20 runs take about two minutes of one core each. If it is interrupted,
call it again to resume.
"""

import sys
import tomllib
from pathlib import Path

import aqmlab

METRICS = {
    "drop_percent": ("lost, %", "{:.2f}"),
    "mark_percent": ("marked, %", "{:.1f}"),
    "throughput_bps": ("Mbit/s", "{:.1f}"),
    "requests_completed": ("requests, million", "{:.2f}"),
    "response_time_median_s": ("median, ms", "{:.0f}"),
    "response_time_p99_s": ("p99, s", "{:.2f}"),
    "response_time_cdf_area_percent": ("area, %", "{:.1f}"),
}
SCALES = {"throughput_bps": 1e-6, "requests_completed": 1e-6, "response_time_median_s": 1e3}


def full_length() -> dict[str, object]:
    """Returns the scenario of lab.toml at 98 % load, with the paper's length and one seed."""
    scenario = tomllib.loads((Path(__file__).parent / "lab.toml").read_text(encoding="utf-8"))
    axis = scenario["sweep"].pop("zip")[0]
    del scenario["sweep"]
    at = axis["labels"].index("98")
    for side in scenario["traffic"]:
        side["users"] = axis[f"traffic.{side['name']}.users"][at]
    return scenario | {"duration": "6300s", "warmup": "900s", "runs": 1}


def main() -> None:
    """Executes the runs that are missing and prints the table."""
    store = sys.argv[1] if len(sys.argv) > 1 else None
    results = aqmlab.sweep(full_length(), store=store, report=False).wait()
    print("| arm |", " | ".join(label for label, _ in METRICS.values()), "|")
    print("|---|" + "---|" * len(METRICS))
    for cell in results.cells:
        row = []
        for metric, (_, form) in METRICS.items():
            (value,) = results.values(metric, cell).values()
            row.append("" if value is None else form.format(value * SCALES.get(metric, 1)))
        print("|", cell.arm, "|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
