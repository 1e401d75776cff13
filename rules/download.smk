"""Public data, for who asks for it by name: snakemake data/downloaded/cifar10.json. Nothing else opens the network."""

from saliency_assay.data.download.catalogue import DOWNLOADS


rule download:
    """Fetch public data."""
    output:
        "data/downloaded/{download}.json",
    log:
        "<logs>/download/{download}.log",
    benchmark:
        "<benchmarks>/download/{download}.tsv"
    wildcard_constraints:
        download=one_of(download.name for download in DOWNLOADS),
    # Where Snakemake runs: nodes of a cluster often have no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=PARAMS.download,
    script:
        "../workflow/scripts/download.py"
