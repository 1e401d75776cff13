"""Retrain and remask (ROAR, IteROAR): occlude what the maps of f_i point at, train f_{i+1} on what is left, and again."""


rule remask:
    input:
        unpack(INPUTS.remask),
    output:
        "<results>/remask/<arm>/iteration{iteration}/masks{part}.zarr.zip",
    log:
        "<logs>/remask/<arm>/iteration{iteration}{part}.log",
    benchmark:
        "<benchmarks>/remask/<arm>/iteration{iteration}{part}.tsv"
    wildcard_constraints:
        fill=one_of([*FILLS, SHARED]),
        part=f"({one_of(MASK_PARTS)})?",
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=PARAMS.resident_limit_of_study,
    params:
        settings=PARAMS.remask,
    script:
        "../workflow/scripts/remask.py"


rule retrain:
    input:
        unpack(INPUTS.retrain),
    output:
        weights="<results>/remask/<arm>/iteration{iteration}/weights.pt",
        curve="<results>/remask/<arm>/iteration{iteration}/training.csv",
        predictions="<results>/remask/<arm>/iteration{iteration}/predictions.parquet",
    log:
        "<logs>/retrain/<arm>/iteration{iteration}.log",
    benchmark:
        "<benchmarks>/retrain/<arm>/iteration{iteration}.tsv"
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=PARAMS.resident_limit_of_study,
    params:
        settings=PARAMS.retrain,
    script:
        "../workflow/scripts/retrain.py"


rule leak:
    input:
        unpack(INPUTS.leak),
    output:
        "<results>/remask/<arm>/iteration{iteration}/leakage.csv",
    log:
        "<logs>/leak/<arm>/iteration{iteration}.log",
    benchmark:
        "<benchmarks>/leak/<arm>/iteration{iteration}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=PARAMS.resident_limit_of_study,
    params:
        settings=PARAMS.leak,
    script:
        "../workflow/scripts/leak.py"


rule score_retrain:
    input:
        unpack(INPUTS.score_retrain),
    output:
        "<results>/scores/retrain/<arm>.parquet",
    log:
        "<logs>/score_retrain/<arm>.log",
    benchmark:
        "<benchmarks>/score_retrain/<arm>.tsv"
    conda:
        "../envs/models.yaml"
    params:
        settings=PARAMS.score_retrain,
    script:
        "../workflow/scripts/score_retrain.py"


rule tabulate_retrain:
    input:
        unpack(INPUTS.tabulate_retrain),
    output:
        scores="<results>/tables/{study}/scores.parquet",
        means="<results>/tables/{study}/means.parquet",
        summary="<results>/tables/{study}/summary.csv",
    log:
        "<logs>/tabulate_retrain/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_retrain/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.retrain),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.tabulate_retrain,
    script:
        "../workflow/scripts/tabulate_retrain.py"
