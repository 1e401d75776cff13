"""Combined jobs: rules without wildcards, which Snakemake prefers to those whose jobs they combine.

Included after all other rules. What is set for a rule on the command line or in a profile (resources, threads, groups,
--forcerun, --until, --omit-from) applies to its combined jobs as well.
"""

from saliency_assay.pipeline.combined import SEPARATE, Costs, Jobs, combine, is_combinable
from saliency_assay.pipeline.combined import inputs_of, outputs_of, settings_of

COMBINED = []
if not os.environ.get(SEPARATE):
    jobs = Jobs((rule for rule in workflow.rules if is_combinable(rule.name)))
    parts = jobs.of([*INPUTS.pages(), *INPUTS.all_tables()])
    COMBINED = combine(parts, Costs(CONFIG, CATALOG, STUDIES).is_small)

for job in COMBINED:
    bases = [workflow.get_rule(name) for name in job.rules]

    rule:
        name:
            job.name
        input:
            inputs_of(job, workflow),
        output:
            outputs_of(job),
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
