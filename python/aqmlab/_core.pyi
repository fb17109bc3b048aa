from collections.abc import Callable, Sequence
from os import PathLike
from typing import Final

__all__ = ["RESULTS_VERSION", "__version__", "aqm_list", "aqm_show", "plan", "run", "schema"]

__version__: Final[str]
RESULTS_VERSION: Final[int]

def plan(text: str, file_name: str) -> str: ...
def schema() -> str: ...
def aqm_list() -> str: ...
def aqm_show(name: str) -> str: ...
def run(
    text: str,
    file_name: str,
    out_dir: str | PathLike[str],
    jobs: int,
    arms: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    progress: Callable[[dict[str, float]], object] | None = None,
    memory_cap: int = 0,
) -> str: ...
