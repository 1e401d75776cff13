"""All results for a paper: snakemake table."""


rule table:
    input:
        tables=EXPORTED,
        evaluations=rules.plot_training.input.evaluations,
    output:
        results=f"{EXPORT}/results.csv",
        models=f"{EXPORT}/models.csv",
        tex=expand(f"{EXPORT}/{{study}}.tex", study=RATED_STUDIES),
        copies=[path.replace(f"{RESULTS}/tables", EXPORT, 1) for path in EXPORTED],
    log:
        f"{LOGS}/table.log",
    benchmark:
        f"{BENCHMARKS}/table.tsv"
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        settings=settings(
            "table.py",
            kinds={study: CONFIG.studies[study].kind for study in RATED_STUDIES},
            arms=[[model, seed] for model in STUDIED_MODELS for seed in CONFIG.seeds],
            level=CONFIG.reliability.level,
        ),
    script:
        "../workflow/scripts/table.py"
