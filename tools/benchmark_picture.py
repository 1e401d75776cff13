"""Run the Python example of README.md, print its output, and save its figure as docs/images/benchmark.png.

Run it from the project's folder after ``make demo``: ``.venv/bin/python -m tools.benchmark_picture``.
"""

import re

import matplotlib as mpl
import matplotlib.pyplot as plt

from tools.picture_records import IMAGES, write_record
from tools.source_tree import ROOT

FIGURE = IMAGES / "benchmark.png"


def example() -> str:
    """Return the code of the example."""
    code: str
    [code] = [
        block
        for block in re.findall(
            r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
        )
        if "saliency_assay.benchmark(" in block
    ]
    return code


def main() -> None:
    """Run the example and save its figure."""
    mpl.use("agg")
    exec(compile(example(), "README.md", "exec"), {})
    plt.gcf().savefig(FIGURE, dpi=100, bbox_inches="tight", metadata={"Software": None})
    write_record(FIGURE)


if __name__ == "__main__":
    main()
