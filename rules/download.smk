"""Public data, for who asks for it by name: snakemake data/downloaded/cifar10.json. Nothing else opens the network."""

from saliency_assay.data.download.catalogue import DOWNLOADS


rule download:
    output:
        "data/downloaded/{download}.json",
    log:
        f"{LOGS}/download/{{download}}.log",
    benchmark:
        f"{BENCHMARKS}/download/{{download}}.tsv"
    wildcard_constraints:
        download=one_of(download.name for download in DOWNLOADS),
    # Where Snakemake runs: nodes of a cluster often have no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings("download.py"),
    script:
        "../workflow/scripts/download.py"
