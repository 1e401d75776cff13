"""Start and end of a run: GPUs, limit on job starts, locks of working directory and results, and check of models."""

from saliency_assay.pipeline.combined import base_rule
from saliency_assay.pipeline.dry_run import WORKFLOWS, unrecorded_text
from saliency_assay.pipeline.model_checks import check_models
from saliency_assay.pipeline.sources import check_sources
from saliency_assay.pipeline.snakemake_internals import remove_default_limit, storage_environment
from saliency_assay.pipeline.unshared import is_unshared, prepare
from saliency_assay.report.outcome import not_computed
from saliency_assay.runtime.slurm import begin_submitting, check_no_other_run, end_submitting
from saliency_assay.runtime.environment import announce
from saliency_assay.runtime.gpus import check_requests, share_gpus
from saliency_assay.runtime.lock import check_writable, hold
from saliency_assay.runtime.project import LAST_LINES

try:
    check_writable(Path.cwd())
except ValueError as error:
    sys.exit(str(error))

# A dry run, which has no onstart, reads the planned jobs from it.
WORKFLOWS.append(workflow)

# Snakemake sets a number of nodes only if an executor submits jobs to other machines.
ON_CLUSTER = workflow.nodes is not None

if CONFIG.device != "cpu":
    gpus = share_gpus(
        main=workflow.is_main_process,
        local=not ON_CLUSTER,
        submitted=workflow.remote_exec,
    )
    # One job per GPU, unless --resources sets another limit. Without a GPU, jobs are limited by cores alone.
    if gpus and "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", len(gpus))


def gpu_jobs():
    """Yield rule and resources of each job to run that uses a GPU if one is available."""
    for job in workflow.dag.needrun_jobs():
        if (job.params.get("settings") or {}).get("device") == "auto":
            yield base_rule(job.rule.name), job.resources


def packages_of_jobs():
    """Return the packages of all jobs to run.

    Computing the parameters of a job collects its packages, and Snakemake would do so only when the job starts.
    """
    for job in workflow.dag.needrun_jobs():
        job.params  # computed on access
    return JOB_SETTINGS.packages


onstart:
    if workflow.storage_settings.default_storage_provider is not None:
        os.environ.update(storage_environment(workflow))
    try:
        check_no_other_run(Path.cwd())
        if ON_CLUSTER:
            announce(packages_of_jobs())
            check_requests(gpu_jobs())
            if is_unshared(workflow):
                prepare(workflow, JOB_SETTINGS.files, CONFIG.sources)
        # Runs that only read use --nolock.
        if workflow.execution_settings.lock:
            hold(Path(CONFIG.results))
        if text := unrecorded_text(workflow.dag):
            print(f"Warning: {text}", file=sys.stderr)
        check_sources(workflow, CONFIG.files)
        check_models(workflow, PARAMS)
    except ValueError as error:
        sys.exit(str(error))
    # The queue of another scheduler is not searched for jobs.
    if ON_CLUSTER and workflow.executor_plugin.name == "slurm":
        begin_submitting(Path.cwd())
    remove_default_limit(workflow)


onsuccess:
    if ON_CLUSTER:
        end_submitting(Path.cwd())
    if LAST_LINES not in os.environ:
        for sentence in not_computed(Path(CONFIG.results), STUDIES.all):
            print(sentence, file=sys.stderr)


onerror:
    if ON_CLUSTER:
        end_submitting(Path.cwd())
