"""Combined jobs: rules without wildcards, which Snakemake prefers to those whose jobs they combine.

Included after all other rules. What is set for a rule on the command line or in a profile (resources, threads, groups,
--forcerun, --until, --omit-from) applies to its combined jobs as well.
"""

from snakemake.iocontainers import Wildcards

from saliency_assay.pipeline.combined import SEPARATE, Costs, Jobs, combine, is_combinable, settings_of
from saliency_assay.runtime.parts import FORCED

COMBINED = []
if not os.environ.get(SEPARATE):
    jobs = Jobs((rule for rule in workflow.rules if is_combinable(rule.name)), Wildcards)
    parts = jobs.of([*INPUTS.pages(), *INPUTS.all_tables()])
    COMBINED = combine(parts, Costs(CONFIG, CATALOG, STUDIES).is_small)


def inputs_of(job):
    """Return the function of a combined job's inputs."""

    # Snakemake calls it while it collects the jobs, when it has read the command line.
    def inputs(wildcards):
        dag, settings, names = workflow.dag, workflow.dag_settings, set(job.rules)
        if names & {rule.name for rule in dag.forcerules}:
            dag.forcerules.add(workflow.get_rule(job.name))
        for selected in (dag.untilrules, dag.omitrules):
            if names & selected:
                selected.add(job.name)
        if workflow.is_main_process:
            forced = [*settings.forcerun, *(settings.targets if settings.forcetargets else [])]
            os.environ[FORCED] = "*" if settings.forceall else "\n".join(map(str, forced))
        return job.inputs

    return inputs


def add_flags(file, wildcards):
    """Return an output of a part with its place in the report, which the wildcards of its rule determine."""
    path, shown = str(file), file.flags.get("report")
    if not shown:
        return path
    category, labels = (
        value(wildcards) if callable(value) else value for value in (shown.category, shown.labels)
    )
    return report(
        path, caption=shown.caption.get_path_or_uri(secret_free=True), category=category, labels=labels
    )


for job in COMBINED:
    bases = [workflow.get_rule(name) for name in job.rules]

    rule:
        name:
            job.name
        input:
            inputs_of(job),
        output:
            [add_flags(file, part.wildcards) for part in job.parts for file in part.output],
        log:
            f"<logs>/combined/{job.name}.log",
        priority: max(base.priority for base in bases)
        conda:
            f"../envs/{Path(bases[0].conda_env).name}"
        params:
            settings=settings_of(job, bases, f"{CONFIG.results}/.state/parts/{job.name}"),
        script:
            "../workflow/scripts/combined.py"

    combined_rule = workflow.get_rule(job.name)
    for base in bases:
        if not base.has_wildcards():
            workflow.ruleorder(job.name, base.name)
        combined_rule.resources.update(
            workflow.resource_settings._parsed_overwrite_resources.get(base.name, {})
        )
        combined_rule.resources["_cores"] = max(
            base.resources["_cores"].value, combined_rule.resources["_cores"].value
        )
        combined_rule.group = workflow.group_settings.overwrite_groups.get(base.name, combined_rule.group)
