"""Metrics that judge the maps of one model one by one: what a metric asks the model itself, and scores."""


rule probe:
    input:
        weights=f"{MODEL}/weights.pt",
        data=DATA,
    output:
        PROBE,
    log:
        f"{LOGS}/probe/{{metric}}/{{model}}/seed{{seed}}/{{data}}{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/probe/{{metric}}/{{model}}/seed{{seed}}/{{data}}{{part}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=probe_settings,
    script:
        "../workflow/scripts/probe.py"


rule score:
    input:
        unpack(score_input),
    output:
        scores=SCORES,
        curves=CURVES,
    log:
        f"{LOGS}/score/{{metric}}/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/score/{{metric}}/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=score_settings,
    script:
        "../workflow/scripts/score.py"


rule tabulate_scores:
    input:
        lambda wildcards: of_study(SCORES, wildcards.study, CONFIG.studies[wildcards.study].metrics),
    output:
        scores=f"{RESULTS}/tables/{{study}}/scores.parquet",
        summary=f"{RESULTS}/tables/{{study}}/summary.csv",
    log:
        f"{LOGS}/tabulate_scores/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_scores/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(FIDELITY_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "tabulate_scores.py",
            study=wildcards.study,
            printed=CONFIG.studies[wildcards.study].printed,
        ),
    script:
        "../workflow/scripts/tabulate_scores.py"


rule tabulate_caption:
    input:
        scores=lambda wildcards: of_study(SCORES, wildcards.study, CONFIG.studies[wildcards.study].metrics),
        predictions=lambda wildcards: expand(
            PREDICTIONS, model=CONFIG.studies[wildcards.study].models, seed=CONFIG.seeds
        ),
    output:
        premise=f"{RESULTS}/tables/{{study}}/premise.csv",
        table=f"{RESULTS}/tables/{{study}}/table.csv",
    log:
        f"{LOGS}/tabulate_caption/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_caption/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(CAPTION_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings("tabulate_caption.py", **caption_settings(wildcards.study)),
    script:
        "../workflow/scripts/tabulate_caption.py"
