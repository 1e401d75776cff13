"""Record the median seconds of a job of each rule: ``python -m tools.rule_seconds results "2 cores of an Intel Xeon"``.

``make plan`` estimates times from them until jobs have run on the user's machine. Use the results of a run of the demo
on a machine without other load.
"""

import argparse
import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

from saliency_assay.pipeline.estimate import RULE_SECONDS, benchmark_seconds

PACKAGES = ("torch", "snakemake", "numpy")


def main() -> None:
    """Write the medians of all rules with benchmark files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="folder of results, which contains benchmarks/")
    parser.add_argument("machine", help="description of the machine, printed by make plan")
    options = parser.parse_args()
    seconds = {
        folder.name: round(median(measured), 2)
        for folder in sorted(options.results.glob("benchmarks/*"))
        if (measured := benchmark_seconds(folder))
    }
    if not seconds:
        raise SystemExit(f"{options.results}/benchmarks: found no benchmark files, expected those of a run")
    content = {
        "machine": options.machine,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "seconds": seconds,
    }
    RULE_SECONDS.write_text(f"{json.dumps(content, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
