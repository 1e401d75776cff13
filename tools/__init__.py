"""Developer tools: checks of the source tree and generators of documentation pages."""

import sys
from pathlib import Path

# Import the package from this tree, even if another one is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
