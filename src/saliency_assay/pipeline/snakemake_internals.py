"""Attributes of Snakemake that its documentation does not describe, with the code that needs more than one of them.

``ATTRIBUTES`` lists those of its workflow that the project uses, here and elsewhere; a test looks each of them up in a
planned run, and ``make lint`` checks that no other is used. Update ``SEEN`` when the tests pass with a newer version.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from snakemake.io import regex_from_filepattern, update_wildcard_constraints
from snakemake.path_modifier import PathModifier
from snakemake.pathvars import Pathvars

from saliency_assay.runtime.project import RESULTS, STORAGE

SEEN = "9.27.1"
"""Version of Snakemake in which all of ``ATTRIBUTES`` were seen last."""
ATTRIBUTES: Mapping[str, str] = {
    "workflow.configfiles": "configuration files of the command line",
    "workflow.current_basedir": "folder of the Snakefile that is read",
    "workflow.dag": "graph of jobs",
    "workflow.dag.bfs": "jobs before other jobs",
    "workflow.dag.dependencies": "jobs that a job depends on",
    "workflow.dag.forcefiles": "files of --forcerun",
    "workflow.dag.forcerules": "rules of --forcerun",
    "workflow.dag.get_sources": "files that jobs on other machines get",
    "workflow.dag.jobs": "all jobs",
    "workflow.dag.needrun": "whether a job runs",
    "workflow.dag.needrun_jobs": "jobs that run",
    "workflow.dag.omitrules": "rules of --omit-from",
    "workflow.dag.reason": "why a job runs",
    "workflow.dag.untilrules": "rules of --until",
    "workflow.dag_settings": "targets and forced rules",
    "workflow.default_target": "target without any on the command line",
    "workflow.deployment_settings.deployment_method": "whether jobs run in Conda environments or containers",
    "workflow.execution_settings.lock": "whether the run locks its folder",
    "workflow.executor_settings": "settings of the executor, which depend on its plugin",
    "workflow.executor_plugin": "plugin of --executor, once jobs run",
    "workflow.get_rule": "rule by name",
    "workflow.global_resources": "limits of resources",
    "workflow.globals": "variables of the Snakefile",
    "workflow.group_settings.overwrite_groups": "groups of --groups",
    "workflow.is_main_process": "False in a job",
    "workflow.modifier": "names and paths of a module",
    "workflow.nodes": "number of jobs on other machines",
    "workflow.overwrite_workdir": "folder of --directory",
    "workflow.pathvars": "path variables of rules",
    "workflow.persistence.has_metadata": "whether a job has run before",
    "workflow.persistence.params_changed": "old and new parameters of a job",
    "workflow.register_resource": "limit of a resource",
    "workflow.remote_exec": "True in a job on another machine",
    "workflow.remote_execution_settings": "image of jobs on other machines, and the command before them",
    "workflow.resource_settings._parsed_overwrite_resources": "resources of --set-resources",
    "workflow.rules": "all rules",
    "workflow.spawned_job_args_factory": "options that Snakemake passes to jobs",
    "workflow.storage_settings.default_storage_provider": "plugin of --default-storage-provider",
    "workflow.storage_settings.shared_fs_usage": "uses of a file system that jobs share",
    "workflow.wildcard_constraints": "constraints of wildcards of all rules",
}
"""Attributes that exist once jobs are planned, with their meaning.

The scheduler, which exists only in a run, has ``job_rate_limiter``."""
DEFAULT_LIMIT = (100, 1)
"""Jobs and seconds of the default of ``--max-jobs-per-timespan``."""


def with_prefix(workflow: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a module, with the module's ``prefix`` or ``replace_prefix`` applied to ``results``.

    Snakemake itself would change inputs and outputs, but not the same paths in the settings of jobs. It no longer
    changes any path of the module after this call; paths of data remain relative to the working directory.

    Args:
        workflow: Snakemake's workflow while it reads a file of the module.
        config: the configuration that the module was given.
    """
    results = str(config.get("results") or RESULTS)
    modified = workflow.modifier.path_modifier.replace_prefix(f"{results}/")
    workflow.modifier.path_modifier = PathModifier(None, None, workflow)
    return {**config, "results": modified.rstrip("/")}


def set_pathvars(workflow: Any, **values: str) -> None:
    """Set Snakemake's path variables for the rules of this workflow, before those of an importing Snakefile."""
    workflow.pathvars.update(Pathvars.from_module(values))


def rules_by_name(rules: Any, workflow: Any) -> dict[str, Any]:
    """Return Snakemake's rules by their names in the workflow's own files, without those that are not imported.

    Args:
        rules: the global variable of this name in a Snakefile. The rules of a module have further names elsewhere.
        workflow: Snakemake's workflow while it reads a file of the module.
    """
    is_available = workflow.modifier.avail_rulename
    return {name: proxy.rule for name, proxy in rules._rules.items() if is_available(name)}


def take_resources(rule: Any, others: Iterable[Any], workflow: Any) -> None:
    """Give a rule the cores of other rules, and the resources that the command line or a profile sets for them."""
    for other in others:
        rule.resources.update(workflow.resource_settings._parsed_overwrite_resources.get(other.name, {}))
        rule.resources["_cores"] = other.resources["_cores"]


def apply_options(workflow: Any, combined: Any, rules: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Apply options of the command line that name one of ``rules`` to the rule of a combined job, too.

    Args:
        workflow: Snakemake's workflow, which has read the command line.
        combined: the rule of the combined job.
        rules: the rules of its parts, by name; on the command line, another Snakefile may have changed the names.

    Returns:
        The forced rules, files and targets, and whether all jobs are forced.

    Raises:
        ValueError: another Snakefile has changed a rule.
    """
    dag, settings = workflow.dag, workflow.dag_settings
    names = [rule.name for rule in rules.values()]
    groups = (workflow.group_settings.overwrite_groups.get(name) for name in names)
    combined.group = next(filter(None, groups), None)
    for rule in rules.values():
        if workflow.get_rule(rule.name) is not rule:
            # Snakemake then runs the jobs of the changed rule.
            raise ValueError(f"rule {rule.name}: changed by use rule … with, so its jobs are not combined")
    if not dag.forcerules.isdisjoint(rules.values()):
        dag.forcerules.add(combined)
    for selected in (dag.untilrules, dag.omitrules):
        if not selected.isdisjoint(names):
            selected.add(combined.name)
    targets = settings.targets if settings.forcetargets else ()
    return list(map(str, [*settings.forcerun, *targets, *dag.forcefiles])), bool(settings.forceall)


def remove_default_limit(workflow: Any) -> bool:
    """Remove the default limit on job starts from the scheduler of a running Snakemake workflow.

    With a limit, each pass of the scheduler of Snakemake 9.27 schedules another pass after the limit's timespan while
    jobs are ready, even if the limit is not reached. Each finished job starts such a chain of passes, and none of them
    ends. A limit set by the user is kept. If Snakemake lacks these attributes, nothing is changed.

    Returns:
        True if a limit was removed.
    """
    with suppress(AttributeError):
        scheduler = workflow.scheduler
        limiter = scheduler.job_rate_limiter
        if (limiter.max_jobs, limiter.timespan) == DEFAULT_LIMIT:
            scheduler.job_rate_limiter = None
            return True
    return False


def constrain_stored_outputs(workflow: Any) -> None:
    """Apply the constraints of wildcards to outputs in the storage of ``--default-storage-provider``.

    Snakemake 9.27 adds constraints to the query of a storage object, from which S3's path was read before, so that they
    have no effect and rules are ambiguous. Call this after the last rule.
    """
    for rule in workflow.rules:
        for output in rule.output:
            if output.is_storage:
                pattern = update_wildcard_constraints(
                    output.file, rule.wildcard_constraints, workflow.wildcard_constraints
                )
                output._regex = re.compile(regex_from_filepattern(pattern))


def storage_environment(workflow: Any) -> dict[str, str]:
    """Return the environment in which another Snakemake finds the files in ``--default-storage-provider``.

    They are the variables that Snakemake passes to its jobs on other machines, and ``STORAGE`` with the options.
    """
    job = workflow.spawned_job_args_factory
    options = [*job.get_storage_provider_args(), job.get_default_storage_provider_args()]
    return {**job.get_storage_provider_envvars(), STORAGE: " ".join(options)}
