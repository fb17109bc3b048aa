"""Print the packages that aqmlab requires to be built and to run, as listed in pyproject.toml; arguments name
extras."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
for extra in sys.argv[1:]:
    wanted += project["project"]["optional-dependencies"][extra]
sys.stdout.write("\n".join(wanted) + "\n")
