"""Estimate of jobs, hours and storage: snakemake plan."""


rule plan:
    """Estimate the jobs, hours and storage of each study."""
    log:
        "<logs>/plan.log",
    localrule: True
    conda:
        "../envs/workflow.yaml"
    params:
        settings=PARAMS.plan,
    script:
        "../workflow/scripts/plan.py"
