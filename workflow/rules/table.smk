"""Export of all results: snakemake table."""


rule table:
    """Export all results as tables, and the figures as PDF."""
    input:
        figures=INPUTS.vector_figures(),
        tables=INPUTS.all_tables(),
        not_computed=INPUTS.all_not_computed(),
        evaluations=expand("<results>/models/{model}/seed{seed}/evaluation.json", **MODELS),
    output:
        results="<results>/export/results.csv",
        models="<results>/export/models.csv",
        not_computed="<results>/export/not_computed.csv",
        tex=expand("<results>/export/{study}.tex", study=STUDIES.rated),
        copies=INPUTS.exported_tables(),
        figures=INPUTS.exported_figures(),
    log:
        "<logs>/table.log",
    benchmark:
        "<benchmarks>/table.tsv"
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.table,  # data, methods, metrics, models, reliability, seeds, studies
    script:
        "../scripts/table.py"
