"""Export of all results: snakemake table."""


rule export_scores:
    """Export the scores of single images that rate a study's methods."""
    input:
        scores=INPUTS.rated_scores,
        data=INPUTS.rated_data,
    output:
        "<results>/export/{study}/scores.csv",
    log:
        "<logs>/export_scores/{study}.log",
    benchmark:
        "<benchmarks>/export_scores/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.rated),
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.export_scores,  # models, studies
    script:
        "../scripts/export_scores.py"


rule table:
    """Export all results as tables, and the figures as PDF."""
    input:
        INPUTS.exported_scores(),
        figures=INPUTS.vector_figures(),
        galleries=INPUTS.vector_galleries(),
        tables=INPUTS.all_tables(),
        trust=INPUTS.all_trust(),
        not_computed=INPUTS.all_not_computed(),
        evaluations=expand("<results>/models/{model}/seed{seed}/evaluation.json", **MODELS),
    output:
        results="<results>/export/results.csv",
        models="<results>/export/models.csv",
        not_computed="<results>/export/not_computed.csv",
        tex=expand("<results>/export/{study}.tex", study=STUDIES.rated),
        copies=INPUTS.exported_tables(),
        figures=INPUTS.exported_figures(),
        galleries=INPUTS.exported_galleries(),
        trust=INPUTS.exported_trust(),
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
