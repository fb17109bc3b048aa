"""Print the packages in pyproject.toml that are needed to build and run aqmlab; arguments name extras."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
for extra in sys.argv[1:]:
    wanted += project["project"]["optional-dependencies"][extra]
sys.stdout.write("\n".join(wanted) + "\n")
