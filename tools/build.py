"""Build the extension and install aqmlab into this interpreter's environment, if anything changed."""

import compileall
import subprocess
import sys
from pathlib import Path

root = Path(__file__).parent.parent
maturin = Path(sys.executable).parent / "maturin"
command = [str(maturin), "develop", "--release", "--quiet", "--skip-install"]
# The package is installed once, as an editable package; later builds only replace the extension module.
installed = subprocess.run(
    [sys.executable, "-m", "pip", "show", "--quiet", "--disable-pip-version-check", "aqmlab"],
    capture_output=True,
    check=False,
)
if installed.returncode != 0:
    command.remove("--skip-install")
status = subprocess.run(command, cwd=root, check=False).returncode
# pip compiles installed modules to byte code, but not the modules of an editable package.
compiled = compileall.compile_dir(root / "python" / "aqmlab", quiet=1)
sys.exit(status or not compiled)
