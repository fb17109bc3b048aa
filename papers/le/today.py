"""Which findings of the UNC web study survive with users of 2025 and hosts of today: today.toml, scored finding by finding.

    python papers/le/today.py [STORE]

prints the tables of README.md. When called again, it resumes.
"""

import sys
from pathlib import Path

import aqmlab
from aqmlab.claims import Claim, score
from aqmlab.stats import estimate

AREA = "response_time_cdf_area_percent{within=2s}"


def area(arm: str) -> str:
    """Returns an arm's area under the distribution of response times up to 2 s."""
    return f"response_time_cdf_area_percent{{within=2s, arm={arm}}}"


def lost(arm: str) -> str:
    """Returns how much of the uncongested network's area an arm loses."""
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
        "PI and REM with ECN lose at most half of what drop-tail loses.",
        " and ".join(f"{lost(arm)} <= 0.5 * {lost('DT240')}" for arm in ("PI24-ECN", "REM24-ECN")),
    ),
    "L18": (
        "PI and REM with ECN are better than drop-tail, and than without ECN.",
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
        "Adaptive RED with ECN is the worst of those with ECN, and worse than drop-tail.",
        f"for all arm in (DT240, PI24-ECN, REM24-ECN): {AREA} > {area('ARED12-ECN')}",
    ),
}


def main() -> None:
    """Runs what is missing and prints the tables."""
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
