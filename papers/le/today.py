"""Find out which findings of the UNC web study survive with users as in 2025 and today's hosts.

    python papers/le/today.py [STORE]

scores each finding on the runs of today.toml, and prints the tables in README.md. If it is interrupted, call
it again to resume.
"""

import sys
from pathlib import Path

import aqmlab
from aqmlab.claims import Claim, score
from aqmlab.stats import estimate

AREA = "response_time_cdf_area_percent{within=2s}"


def area(arm: str) -> str:
    """Returns the expression for an arm's area under the distribution of response times up to 2 s."""
    return f"response_time_cdf_area_percent{{within=2s, arm={arm}}}"


def lost(arm: str) -> str:
    """Returns the expression for the part of the uncongested network's area that an arm loses."""
    return f"({area('uncongested')} - {area(arm)})"


FINDINGS = {
    "L08": (
        "Without ECN, PI is the best.",
        f"for all arm in (DT240, REM24, ARED12): {AREA} < {area('PI24')}",
    ),
    "L09": (
        "Without ECN, Adaptive RED is the worst.",
        f"for all arm in (DT240, PI24, REM24): {AREA} > {area('ARED12')}",
    ),
    "L10": (
        "Without ECN, response times are poor under every discipline.",
        "for all arm in (DT240, PI24, REM24, ARED12): response_time_within_percent{within=1s, arm=uncongested}"
        " - response_time_within_percent{within=1s} >= 5 %",
    ),
    "L17": (
        "PI and REM with ECN lose at most half of the area that drop-tail loses.",
        " and ".join(f"{lost(arm)} <= 0.5 * {lost('DT240')}" for arm in ("PI24-ECN", "REM24-ECN")),
    ),
    "L18": (
        "PI and REM with ECN are better than drop-tail, and better than without ECN.",
        " and ".join(
            f"{area(f'{arm}-ECN')} > {area('DT240')} and {area(f'{arm}-ECN')} > {area(arm)}"
            for arm in ("PI24", "REM24")
        ),
    ),
    "L23": (
        "ECN has little effect on Adaptive RED.",
        "cdf_gap(response_time_within_percent{within=2s, arm=ARED12},"
        " response_time_within_percent{within=2s, arm=ARED12-ECN}) <= 3 %",
    ),
    "L24": (
        "Adaptive RED is the worst discipline with ECN, and worse than drop-tail.",
        f"for all arm in (DT240, PI24-ECN, REM24-ECN): {AREA} > {area('ARED12-ECN')}",
    ),
}


def main() -> None:
    """Executes the runs that are missing and prints the tables."""
    store = sys.argv[1] if len(sys.argv) > 1 else None
    results = aqmlab.sweep(Path(__file__).parent / "today.toml", store=store, report=False).wait()
    cases = list(dict.fromkeys(cell.settings for cell in results.cells))
    names = [", ".join(value for _, value in case) for case in cases]
    print("| finding |", " | ".join(names), "|")
    print("|---|" + "---|" * len(names))
    for name, (text, expect) in FINDINGS.items():
        claims = [Claim(f"{name} {i}", expect, text, dict(case)) for i, case in enumerate(cases)]
        verdicts = [scored.verdict.status for scored in score(results, claims)]
        print(f"| {name}: {text} |", " | ".join(verdicts), "|")
    print("\n| arm: area, % |", " | ".join(names), "|")
    print("|---|" + "---|" * len(names))
    for arm in results.arms:
        cells = {cell.settings: cell for cell in results.cells if cell.arm == arm}
        seeds = [results.values("response_time_cdf_area_percent", cells[case]).values() for case in cases]
        means = [estimate(value for value in values if value is not None) for values in seeds]
        print(f"| {arm} |", " | ".join(str(mean or "") for mean in means), "|")


if __name__ == "__main__":
    main()
