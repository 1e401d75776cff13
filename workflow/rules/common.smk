"""The checked configuration, inputs and parameters of rules, and constraints of wildcards."""

import os
import sys

import yaml

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.yaml_text import check_text
from saliency_assay.pipeline.code_record import CODE_RECORD, CodeRecord
from saliency_assay.pipeline.inputs import Inputs
from saliency_assay.pipeline.snakemake_internals import set_pathvars, with_prefix
from saliency_assay.pipeline.params import Params
from saliency_assay.pipeline.paths import Paths, one_of
from saliency_assay.pipeline.job_settings import JobSettings
from saliency_assay.pipeline.studies import Studies
from saliency_assay.runtime.shards import shard_suffixes

# Of another Snakefile, which passes the configuration (docs/howto/module.md).
IS_MODULE = not workflow.modifier.is_main_snakefile()
try:
    if IS_MODULE:
        source = f"module {workflow.modifier.namespace}"
        config = with_prefix(workflow, config)
    else:
        source = os.path.relpath(workflow.configfiles[-1])
        for configfile in workflow.configfiles:
            check_text(Path(configfile), os.path.relpath(configfile))
    CONFIG = read(config, catalog=CATALOG, source=source)
    if workflow.is_main_process:
        CONFIG.files.save()
except ConfigError as error:
    sys.exit(str(error))


set_pathvars(
    workflow,
    results=CONFIG.results,
    logs=f"{CONFIG.results}/logs",
    benchmarks=f"{CONFIG.results}/benchmarks",
)

STUDIES = Studies(CONFIG, CATALOG.study_kinds)
# Inputs of rules that depend on wildcards or on the configuration.
INPUTS = Inputs(CONFIG, Paths(CONFIG.results), STUDIES)
JOB_SETTINGS = JobSettings(
    ROOT / "workflow/scripts",
    CATALOG.study_kinds.values(),
    # Snakemake tracks containers and Conda environments itself.
    with_versions=not IS_CLONE or not workflow.deployment_settings.deployment_method,
    record=CodeRecord(CODE_RECORD) if workflow.is_main_process else None,
)
# With its inputs, `PARAMS.<rule>` determines the results of a rule's jobs, which rerun when it changes.
PARAMS = Params(INPUTS, CATALOG, JOB_SETTINGS, config)

# Relative to the working directory, as all inputs are, so that a moved or copied checkout reruns nothing.
CAPTIONS = os.path.relpath(ROOT / "workflow/report")
# Priorities: long jobs on which others depend start early, after the data that they need, so that no machine idles.
EARLIEST, EARLY = 20, 10

COLLECTIONS = [name for name, entry in CONFIG.data.items() if entry.scenes]
SYNTHETIC = [name for name in COLLECTIONS if CONFIG.data[name].kind == "synthetic"]
BAM_SETS = [name for name, entry in CONFIG.sets.items() if entry.scenes]
CAPTION_SETS = [name for name, entry in CONFIG.sets.items() if entry.source]
PLAIN_SETS = [name for name in CONFIG.sets if name not in [*BAM_SETS, *CAPTION_SETS]]
# Wildcards of all models that studies explain.
MODELS = {"model": STUDIES.models, "seed": CONFIG.seeds}
SEARCHED = [name for name, model in CONFIG.models.items() if model.trials]
# Suffixes of file names of shards.
SHARDS = [name for entry in CONFIG.data.values() for name in shard_suffixes(entry.shards) if name]


wildcard_constraints:
    collection=one_of(COLLECTIONS),
    data=one_of([*CONFIG.sets, *STUDIES.pair_sets]),
    model=one_of(CONFIG.models),
    method=one_of(CONFIG.methods),
    metric=one_of(CONFIG.metrics),
    shard=f"({one_of(SHARDS)})?",
    seed=one_of(map(str, CONFIG.seeds)),
    study=one_of(CONFIG.studies),
