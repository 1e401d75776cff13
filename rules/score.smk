"""Metrics that judge the maps of one model one by one: what a metric asks the model itself, and scores."""


rule probe:
    input:
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        data="<results>/data/{data}.zarr.zip",
    output:
        "<results>/probes/{metric}/{model}/seed{seed}/{data}{part}.zarr.zip",
    log:
        "<logs>/probe/{metric}/{model}/seed{seed}/{data}{part}.log",
    benchmark:
        "<benchmarks>/probe/{metric}/{model}/seed{seed}/{data}{part}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.probe,
    script:
        "../workflow/scripts/probe.py"


rule score:
    input:
        unpack(INPUTS.score),
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        data="<results>/data/{data}.zarr.zip",
        maps="<results>/maps/{model}/seed{seed}/{data}/{method}{part}.zarr.zip",
    output:
        scores="<results>/scores/{metric}/{model}/seed{seed}/{data}/{method}{part}.parquet",
        curves="<results>/curves/{metric}/{model}/seed{seed}/{data}/{method}{part}.zarr.zip",
    log:
        "<logs>/score/{metric}/{model}/seed{seed}/{data}/{method}{part}.log",
    benchmark:
        "<benchmarks>/score/{metric}/{model}/seed{seed}/{data}/{method}{part}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.score,
    script:
        "../workflow/scripts/score.py"
