"""Saliency Assay: reads and checks the configuration, includes the stages, names the targets."""

import gc
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from saliency_assay.pipeline.code_digest import run_this_source
from snakemake.utils import min_version

min_version("9.27")

# A plan makes millions of small objects and keeps most: to look for garbage as often as usual takes a seventh of its time.
gc.set_threshold(100_000)

# All rules run in it with --software-deployment-method apptainer (docs/scaling.md); without that nothing looks for it.
# Below the working directory, because Snakemake takes no image whose path holds a space.
IMAGE = os.environ.get("SALIENCY_ASSAY_IMAGE", "containers/saliency_assay.sif")


container: IMAGE


# A configuration given on the command line replaces the demo; Snakemake would otherwise merge the two.
if not workflow.configfiles:

    configfile: f"{workflow.basedir}/config/config.yaml"


# A user's own functions are beside the configuration that names them.
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
include: "rules/plan.smk"
include: "rules/cluster.smk"


# The rules of each kind of study that has some of its own.
for path in sorted(Path(workflow.basedir).glob("rules/studies/*.smk")):

    include: path


rule all:
    """Make the report."""
    default_target: True
    input:
        "<results>/report.html",
