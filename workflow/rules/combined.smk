"""Combined jobs: rules without wildcards, which Snakemake prefers to those whose jobs they combine.

Included after all other rules. What is set for a rule on the command line or in a profile (resources, threads, groups,
--forcerun, --until, --omit-from) applies to its combined jobs as well.
"""

from saliency_assay.pipeline.combined import SEPARATE, Grouping, Jobs, combine, is_combinable
from saliency_assay.pipeline.combined import inputs_of, outputs_of, settings_of
from saliency_assay.pipeline.snakemake_internals import rules_by_name, take_resources

RULES, COMBINED = rules_by_name(rules, workflow), []
# Settings of combined jobs name files by their paths in the results folder, which storage does not have.
IS_STORED = workflow.storage_settings.default_storage_provider is not None
if not os.environ.get(SEPARATE) and not IS_STORED:
    jobs = Jobs({name: rule for name, rule in RULES.items() if is_combinable(name, rule)})
    targets = [*INPUTS.pages(), *INPUTS.all_maps(), *INPUTS.all_costs(), *INPUTS.all_scores()]
    targets += [*INPUTS.all_summary_files(), *INPUTS.all_tables()]
    targets += expand(INPUTS.paths.evaluation, **MODELS)
    # Another Snakefile that imports single rules of this workflow gets these rules alone.
    is_available = workflow.modifier.avail_rulename
    combined_jobs = combine(jobs.of(targets), Grouping(CONFIG, CATALOG, STUDIES))
    COMBINED = [job for job in combined_jobs if is_available(job.name)]

for job in COMBINED:
    bases = [RULES[name] for name in job.rules]

    rule:
        name:
            job.name
        input:
            inputs_of(job, RULES, workflow),
        output:
            outputs_of(job),
        log:
            f"<logs>/combined/{job.name}.log",
        priority: max(base.priority for base in bases)
        conda:
            f"../envs/{Path(bases[0].conda_env).name}"
        params:
            settings=settings_of(job, RULES, workflow, f"{CONFIG.results}/.state/parts"),
        script:
            "../scripts/combined.py"

    RULES[job.name] = rules_by_name(rules, workflow)[job.name]
    take_resources(RULES[job.name], bases, workflow)


# Jobs of an installed package run in its own environment, whatever the jobs of an importing Snakefile run in.
if not IS_CLONE:
    for each in RULES.values():
        each.conda_env = each.container_img = None
