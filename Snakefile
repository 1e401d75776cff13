"""Saliency Assay: reads and checks the configuration, includes the stages, names the targets."""

import os
import sys
from pathlib import Path

# This checkout's library, for the Snakefile and for all scripts, even where another one is installed.
SOURCE = str(Path(workflow.basedir) / "src")
sys.path.insert(0, SOURCE)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))

from snakemake.utils import min_version

min_version("9.27")

# A configuration given on the command line replaces the demo; Snakemake would otherwise merge the two.
if not workflow.configfiles:

    configfile: f"{workflow.basedir}/config/config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/attribute.smk"
include: "rules/bam.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        f"{RESULTS}/report.html",
