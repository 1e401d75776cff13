"""Write Snakemake's own report of all figures and tables, as one file that needs no network."""

import subprocess
import sys
from pathlib import Path

import yaml

from saliency_assay.job import job

with job("report", snakemake.log[0]):
    # The whole configuration as this run had it, command-line changes included: the report is made from it, too.
    Path(snakemake.output.configuration).write_text(
        yaml.safe_dump(snakemake.params.settings["configuration"], sort_keys=False, allow_unicode=True),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", *snakemake.params.settings["targets"]]
    command += ["--snakefile", str(Path(snakemake.scriptdir).parents[1] / "Snakefile")]
    command += [
        "--configfile",
        snakemake.output.configuration,
        "--report",
        snakemake.output.report,
        "--nolock",
    ]
    subprocess.run(command, check=True, stdout=sys.stderr, stderr=sys.stderr)
