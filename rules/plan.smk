"""What it would take: snakemake plan."""


rule plan:
    log:
        f"{LOGS}/plan.log",
    localrule: True
    conda:
        "../envs/workflow.yaml"
    params:
        settings=plan_settings(),
    script:
        "../workflow/scripts/plan.py"
