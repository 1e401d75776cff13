"""Data sets, from real or synthetic images."""


rule write_sources:
    """Generate synthetic objects and scenes."""
    output:
        # A file with the digests of all others, because Snakemake tracks a folder by its modification time alone.
        "<results>/sources/{collection}/SHA256SUMS",
    log:
        "<logs>/write_sources/{collection}.log",
    benchmark:
        "<benchmarks>/write_sources/{collection}.tsv"
    wildcard_constraints:
        collection=one_of(SYNTHETIC),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=PARAMS.write_sources,  # data
    script:
        "../scripts/write_sources.py"


rule collect_bam:
    """Collect cut-outs and scenes."""
    input:
        unpack(INPUTS.collect_bam),
    output:
        cutouts="<results>/collections/{collection}/cutouts.zarr.zip",
        scenes="<results>/collections/{collection}/scenes.zarr.zip",
    log:
        "<logs>/collect_bam/{collection}.log",
    benchmark:
        "<benchmarks>/collect_bam/{collection}.tsv"
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=PARAMS.collect_bam,  # data
    script:
        "../scripts/collect_bam.py"


rule compose_bam:
    """Compose a set of objects in scenes."""
    input:
        cutouts=INPUTS.cutouts,
        scenes=INPUTS.scenes,
    output:
        "<results>/data/{data}.zarr.zip",
    log:
        "<logs>/compose_bam/{data}.log",
    benchmark:
        "<benchmarks>/compose_bam/{data}.tsv"
    wildcard_constraints:
        data=one_of(BAM_SETS),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=PARAMS.compose_bam,  # data
    script:
        "../scripts/compose_bam.py"


rule compose_caption:
    """Write captions on the images of a set."""
    input:
        INPUTS.without_captions,
    output:
        "<results>/data/{data}.zarr.zip",
    log:
        "<logs>/compose_caption/{data}.log",
    benchmark:
        "<benchmarks>/compose_caption/{data}.tsv"
    wildcard_constraints:
        data=one_of(CAPTION_SETS),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=PARAMS.compose_caption,  # data
    script:
        "../scripts/compose_caption.py"


rule build_data:
    """Build a data set by one function."""
    output:
        "<results>/data/{data}.zarr.zip",
    log:
        "<logs>/build_data/{data}.log",
    benchmark:
        "<benchmarks>/build_data/{data}.tsv"
    wildcard_constraints:
        data=one_of(PLAIN_SETS),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=PARAMS.build_data,  # data
    script:
        "../scripts/build_data.py"
