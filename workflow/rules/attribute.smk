"""Saliency maps: one job for each model, seed, shard of a data set, and method."""


rule attribute:
    """Compute the maps of a method."""
    input:
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        data="<results>/data/{data}.zarr.zip",
    output:
        maps="<results>/maps/{model}/seed{seed}/{data}/{method}{shard}.zarr.zip",
        cost="<results>/costs/{model}/seed{seed}/{data}/{method}{shard}.json",
    log:
        "<logs>/attribute/{model}/seed{seed}/{data}/{method}{shard}.log",
    benchmark:
        "<benchmarks>/attribute/{model}/seed{seed}/{data}/{method}{shard}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.attribute,  # data, device, methods, models
    script:
        "../scripts/attribute.py"
