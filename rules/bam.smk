"""Relative feature importance (BAM): the premise, MCS and IDR; the series, IIR and TCAV where a study asks for them."""


rule score_bam:
    input:
        unpack(INPUTS.score_bam),
    output:
        "<results>/scores/bam/{study}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_bam/{study}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_bam/{study}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.bam),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.score_bam,
    script:
        "../workflow/scripts/score_bam.py"


rule tabulate_bam:
    input:
        unpack(INPUTS.tabulate_bam),
    output:
        premise="<results>/tables/{study}/premise.csv",
        metrics="<results>/tables/{study}/metrics.csv",
    log:
        "<logs>/tabulate_bam/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_bam/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.bam),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.tabulate_bam,
    script:
        "../workflow/scripts/tabulate_bam.py"


rule score_series:
    input:
        unpack(INPUTS.score_series),
    output:
        "<results>/scores/series/{study}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_series/{study}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_series/{study}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.series),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.score_series,
    script:
        "../workflow/scripts/score_series.py"


rule find_delta:
    input:
        unpack(INPUTS.find_delta),
    output:
        "<results>/data/{study}_delta_seed{seed}.zarr.zip",
    log:
        "<logs>/find_delta/{study}/seed{seed}.log",
    benchmark:
        "<benchmarks>/find_delta/{study}/seed{seed}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.delta),
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.find_delta,
    script:
        "../workflow/scripts/find_delta.py"


rule score_independence:
    input:
        unpack(INPUTS.score_independence),
    output:
        "<results>/scores/independence/{study}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_independence/{study}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_independence/{study}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.delta),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.score_independence,
    script:
        "../workflow/scripts/score_independence.py"


rule score_concepts:
    input:
        unpack(INPUTS.score_concepts),
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        predictions="<results>/models/{model}/seed{seed}/predictions.parquet",
    output:
        "<results>/scores/concepts/{study}/seed{seed}/{model}.parquet",
    log:
        "<logs>/score_concepts/{study}/seed{seed}/{model}.log",
    benchmark:
        "<benchmarks>/score_concepts/{study}/seed{seed}/{model}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.concepts),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.score_concepts,
    script:
        "../workflow/scripts/score_concepts.py"
