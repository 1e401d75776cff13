"""Retrain and remask (ROAR, IteROAR): occlude what the maps of f_i point at, train f_{i+1} on what is left, and again."""


rule remask:
    input:
        unpack(remask_input),
    output:
        MASKS,
    log:
        f"{LOGS}/remask/{ARM}/iteration{{iteration}}{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/remask/{ARM}/iteration{{iteration}}{{part}}.tsv"
    wildcard_constraints:
        fill=one_of([*FILLS, SHARED]),
        part=f"({one_of(MASK_PARTS)})?",
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=lambda wildcards: resident_limit(CONFIG.studies[wildcards.study].data),
    params:
        settings=remask_settings,
    script:
        "../workflow/scripts/remask.py"


rule retrain:
    input:
        unpack(retrain_input),
    output:
        weights=f"{RETRAINED}/weights.pt",
        curve=f"{RETRAINED}/training.csv",
        predictions=f"{RETRAINED}/predictions.parquet",
    log:
        f"{LOGS}/retrain/{ARM}/iteration{{iteration}}.log",
    benchmark:
        f"{BENCHMARKS}/retrain/{ARM}/iteration{{iteration}}.tsv"
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=lambda wildcards: resident_limit(CONFIG.studies[wildcards.study].data),
    params:
        settings=retrain_settings,
    script:
        "../workflow/scripts/retrain.py"


rule leak:
    input:
        unpack(leak_input),
    output:
        f"{RETRAINED}/leakage.csv",
    log:
        f"{LOGS}/leak/{ARM}/iteration{{iteration}}.log",
    benchmark:
        f"{BENCHMARKS}/leak/{ARM}/iteration{{iteration}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=lambda wildcards: resident_limit(CONFIG.studies[wildcards.study].data),
    params:
        settings=leak_settings,
    script:
        "../workflow/scripts/leak.py"


rule score_retrain:
    input:
        unpack(score_retrain_input),
    output:
        RETRAIN_SCORES,
    log:
        f"{LOGS}/score_retrain/{ARM}.log",
    benchmark:
        f"{BENCHMARKS}/score_retrain/{ARM}.tsv"
    conda:
        "../envs/models.yaml"
    params:
        settings=score_retrain_settings,
    script:
        "../workflow/scripts/score_retrain.py"


rule tabulate_retrain:
    input:
        scores=lambda wildcards: arms_of(wildcards.study, RETRAIN_SCORES),
        data=lambda wildcards: DATA.format(data=CONFIG.studies[wildcards.study].data),
    output:
        scores=f"{RESULTS}/tables/{{study}}/scores.parquet",
        means=f"{RESULTS}/tables/{{study}}/means.parquet",
        summary=f"{RESULTS}/tables/{{study}}/summary.csv",
    log:
        f"{LOGS}/tabulate_retrain/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_retrain/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(RETRAIN_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "tabulate_retrain.py", **shown_settings(wildcards), seeds=len(CONFIG.seeds)
        ),
    script:
        "../workflow/scripts/tabulate_retrain.py"


rule tabulate_leakage:
    input:
        means=f"{RESULTS}/tables/{{study}}/means.parquet",
        data=lambda wildcards: DATA.format(data=CONFIG.studies[wildcards.study].data),
    output:
        f"{RESULTS}/tables/{{study}}/leakage.csv",
    log:
        f"{LOGS}/tabulate_leakage/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_leakage/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(LEAK_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings("tabulate_leakage.py", label=studied(wildcards).label),
    script:
        "../workflow/scripts/tabulate_leakage.py"
