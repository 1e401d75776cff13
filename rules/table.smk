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
            *{facts["latex"] for facts in EXPORT_FACTS.values() if facts["latex"]},
            studies=EXPORT_FACTS,
            arms=[[model, seed] for model in STUDIED_MODELS for seed in CONFIG.seeds],
            level=CONFIG.reliability.level,
        ),
    script:
        "../workflow/scripts/table.py"
