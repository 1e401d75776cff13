"""Programs for those who work on the project: checks of the source tree and writers of generated pages."""

import sys
from pathlib import Path

# This tree is checked, even where another one is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
