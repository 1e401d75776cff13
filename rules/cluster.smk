"""Before the first job: the GPUs that jobs share, and nobody else may work in this folder or the folder of results."""

from saliency_assay.runtime.slurm import begin_submitting, check_alone, end_submitting
from saliency_assay.runtime.environment import announce
from saliency_assay.runtime.gpus import check_requests, share_gpus
from saliency_assay.runtime.lock import check_writable, hold

try:
    check_writable(Path.cwd())
except ValueError as error:
    sys.exit(str(error))

# Snakemake knows a number of nodes where an executor submits jobs, and none where they run on this machine.
ON_CLUSTER = workflow.nodes is not None

if CONFIG.device != "cpu":
    gpus = share_gpus(
        main=workflow.is_main_process,
        local=not ON_CLUSTER,
        submitted=workflow.remote_exec,
    )
    # One job on each GPU, unless --resources says otherwise. Without a GPU, jobs are limited by cores alone.
    if gpus and "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", len(gpus))


def on_gpu_if_there():
    """Rule and resources of each job to run that takes a GPU where it finds one."""
    for job in workflow.dag.needrun_jobs():
        if (job.params.get("settings") or {}).get("device") == "auto":
            yield job.rule.name, job.resources


def packages_of_jobs():
    """The packages of all jobs to run: their parameters, which collect them, are otherwise computed when they start."""
    for job in workflow.dag.needrun_jobs():
        job.params
    return JOB_SETTINGS.packages


onstart:
    try:
        check_alone(Path.cwd())
        if ON_CLUSTER:
            announce(packages_of_jobs())
            check_requests(on_gpu_if_there())
        # Asked for with --nolock by who only reads, such as the rule plan.
        if workflow.execution_settings.lock:
            hold(Path(CONFIG.results))
    except ValueError as error:
        sys.exit(str(error))
    if ON_CLUSTER:
        begin_submitting(Path.cwd())


onsuccess:
    if ON_CLUSTER:
        end_submitting(Path.cwd())


onerror:
    if ON_CLUSTER:
        end_submitting(Path.cwd())
