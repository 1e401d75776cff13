"""Public data, downloaded on request: snakemake data/downloaded/cifar10.json. No other rule has network access."""

from saliency_assay.data.download.catalog import DOWNLOADS


rule download:
    """Download public data."""
    output:
        "data/downloaded/{download}.json",
    log:
        "<logs>/download/{download}.log",
    benchmark:
        "<benchmarks>/download/{download}.tsv"
    wildcard_constraints:
        download=one_of(download.name for download in DOWNLOADS),
    # A local rule, because cluster nodes often have no network access.
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=PARAMS.download,
    script:
        "../scripts/download.py"
