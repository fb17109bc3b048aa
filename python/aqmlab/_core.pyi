from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Final, Self, final

__all__ = [
    "PARTS",
    "Sweep",
    "__version__",
    "aqm_check",
    "aqm_list",
    "aqm_show",
    "doctor",
    "host_parts",
    "kit_judge",
    "kit_situations",
    "law_curves",
    "live_run",
    "live_selftest",
    "plan",
    "quantity",
    "quantity_text",
    "run_digest",
    "run_one",
    "schema",
    "vectors",
]

__version__: Final[str]
PARTS: Final[dict[str, int]]

@final
class Sweep:
    def __new__(cls, text: str, file_name: str) -> Self: ...
    def about(self) -> str: ...
    def check(self, file_name: str, arms: Sequence[str], simulated: bool, pcap: Sequence[str]) -> None: ...
    def case(self, index: int) -> str: ...
    def labels(self, index: int) -> list[str]: ...

def plan(text: str, file_name: str) -> str: ...
def schema(of: str) -> str: ...
def quantity(text: str, unit: str) -> int: ...
def quantity_text(value: int, unit: str) -> str: ...
def aqm_list() -> str: ...
def aqm_show(name: str) -> str: ...
def kit_situations() -> str: ...
def kit_judge(
    factory: Callable[[float, int], object],
    round_trips: Callable[[float, float, float, float], object],
    name: str,
    situations: Sequence[str],
    runs: int,
) -> str: ...
def law_curves(text: str, file_name: str, averages: Sequence[float] | None = None) -> str: ...
def aqm_check(
    names: Sequence[str],
    first_seed: int,
    seeds: int | None,
    workers: int,
    progress: Callable[[dict[str, Any]], object] | None = None,
) -> str: ...
def run_one(
    toml: str,
    file_name: str,
    arm: str,
    seed: int,
    out_path: str | PathLike[str],
    memory_cap: int = 0,
    progress: Callable[[dict[str, float]], object] | None = None,
    pcap: Sequence[str] = ...,
    pcap_bytes: int = ...,
) -> str: ...
def live_run(
    toml: str,
    file_name: str,
    arm: str,
    seed: int,
    out_path: str | PathLike[str],
    force: bool = False,
    pcap: Sequence[str] = ...,
    pcap_bytes: int = ...,
    terminal: Sequence[int] | None = None,
    foreground: bool = False,
    progress: Callable[[dict[str, Any]], object] | None = None,
) -> str: ...
def live_selftest(progress: Callable[[dict[str, Any]], object] | None = None) -> str: ...
def doctor() -> str: ...
def host_parts(parts: dict[str, int], host: str) -> dict[str, int]: ...
def run_digest(plan_digest: str, seed: int, parts: dict[str, int]) -> str: ...
def vectors(
    toml: str,
    file_name: str,
    arm: str,
    classes: Sequence[str],
    seed: int,
    until_ns: int,
    format: str,
    requests: str | PathLike[str] | None = None,
) -> bytes: ...
