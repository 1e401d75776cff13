"""Saliency Assay: read and check the configuration, include all rules, and define the default target."""

import gc
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from saliency_assay.pipeline.code_digest import run_this_source
from snakemake.utils import min_version

min_version("9.27")

# Planning creates millions of small objects and keeps most; the default threshold would take a seventh of its time.
gc.set_threshold(100_000)

# The image of all rules with --software-deployment-method apptainer (docs/scaling.md); otherwise it need not exist.
# The path is relative to the working directory, because Snakemake refuses images whose path contains a space.
IMAGE = os.environ.get("SALIENCY_ASSAY_IMAGE", "containers/saliency_assay.sif")


container: IMAGE


# A configuration on the command line replaces the demo; with both, Snakemake would merge them.
if not workflow.configfiles:

    configfile: f"{workflow.basedir}/config/config.yaml"


# Custom functions are imported from the folder of the configuration file.
run_this_source(*(Path(file).parent for file in workflow.configfiles))


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/download.smk"
include: "rules/train.smk"
include: "rules/attribute.smk"
include: "rules/score.smk"
include: "rules/reliability.smk"
include: "rules/report.smk"
include: "rules/table.smk"
include: "rules/cluster.smk"


# The rules of single kinds of study; kinds without such a file use only the rules above.
for path in sorted(Path(workflow.basedir).glob("rules/studies/*.smk")):

    include: path


include: "rules/combined.smk"


rule all:
    """Create the report."""
    default_target: True
    input:
        "<results>/report.html",
