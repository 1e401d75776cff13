"""What it would take: snakemake plan."""


rule plan:
    """Estimate what each study takes."""
    log:
        "<logs>/plan.log",
    localrule: True
    conda:
        "../envs/workflow.yaml"
    params:
        settings=PARAMS.plan,
    script:
        "../workflow/scripts/plan.py"
