"""Model responses and scores of metrics that evaluate single maps of one model."""


rule respond:
    """Compute the model responses that a metric compares maps with."""
    input:
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        data="<results>/data/{data}.zarr.zip",
    output:
        "<results>/responses/{metric}/{model}/seed{seed}/{data}{shard}.zarr.zip",
    log:
        "<logs>/respond/{metric}/{model}/seed{seed}/{data}{shard}.log",
    benchmark:
        "<benchmarks>/respond/{metric}/{model}/seed{seed}/{data}{shard}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.respond,  # data, device, metrics, models
    script:
        "../scripts/respond.py"


rule score:
    """Score maps by a metric."""
    input:
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        data="<results>/data/{data}.zarr.zip",
        maps="<results>/maps/{model}/seed{seed}/{data}/{method}{shard}.zarr.zip",
        responses=INPUTS.responses,
        finetuned=INPUTS.finetuned,
    output:
        scores="<results>/scores/{metric}/{model}/seed{seed}/{data}/{method}{shard}.parquet",
        curves="<results>/curves/{metric}/{model}/seed{seed}/{data}/{method}{shard}.zarr.zip",
    log:
        "<logs>/score/{metric}/{model}/seed{seed}/{data}/{method}{shard}.log",
    benchmark:
        "<benchmarks>/score/{metric}/{model}/seed{seed}/{data}/{method}{shard}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.score,  # device, methods, metrics, models
    script:
        "../scripts/score.py"
