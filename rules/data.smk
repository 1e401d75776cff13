"""From photographs, or none, to data sets with known feature importance."""


rule write_sources:
    output:
        # One file that names the content of all others: a folder would be known by its time alone.
        f"{RESULTS}/sources/{{collection}}/SHA256SUMS",
    log:
        f"{LOGS}/write_sources/{{collection}}.log",
    benchmark:
        f"{BENCHMARKS}/write_sources/{{collection}}.tsv"
    wildcard_constraints:
        collection=one_of(EMBEDDED),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=lambda wildcards: settings(
            "write_sources.py",
            parameters=parameters_of(
                CONFIG.data[wildcards.collection],
                "cutouts_per_object",
                "scenes_per_class",
                "source_size",
                "seed",
            ),
        ),
    script:
        "../workflow/scripts/write_sources.py"


rule collect_bam:
    input:
        unpack(collect_bam_input),
    output:
        cutouts=f"{RESULTS}/collections/{{collection}}/cutouts.zarr.zip",
        scenes=f"{RESULTS}/collections/{{collection}}/scenes.zarr.zip",
    log:
        f"{LOGS}/collect_bam/{{collection}}.log",
    benchmark:
        f"{BENCHMARKS}/collect_bam/{{collection}}.tsv"
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=collect_bam_settings,
    script:
        "../workflow/scripts/collect_bam.py"


rule compose_bam:
    input:
        cutouts=lambda wildcards: f"{RESULTS}/collections/{CONFIG.sets[wildcards.data].name}/cutouts.zarr.zip",
        scenes=lambda wildcards: f"{RESULTS}/collections/{CONFIG.sets[wildcards.data].name}/scenes.zarr.zip",
    output:
        DATA,
    log:
        f"{LOGS}/compose_bam/{{data}}.log",
    benchmark:
        f"{BENCHMARKS}/compose_bam/{{data}}.tsv"
    wildcard_constraints:
        data=one_of(BAM_SETS),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=compose_bam_settings,
    script:
        "../workflow/scripts/compose_bam.py"


rule compose_caption:
    input:
        lambda wildcards: DATA.format(data=CONFIG.sets[wildcards.data].source),
    output:
        DATA,
    log:
        f"{LOGS}/compose_caption/{{data}}.log",
    benchmark:
        f"{BENCHMARKS}/compose_caption/{{data}}.tsv"
    wildcard_constraints:
        data=one_of(CAPTION_SETS),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=compose_caption_settings,
    script:
        "../workflow/scripts/compose_caption.py"


rule build_data:
    output:
        DATA,
    log:
        f"{LOGS}/build_data/{{data}}.log",
    benchmark:
        f"{BENCHMARKS}/build_data/{{data}}.tsv"
    wildcard_constraints:
        data=one_of(PLAIN_SETS),
    priority: EARLIEST
    conda:
        "../envs/data.yaml"
    params:
        settings=build_data_settings,
    script:
        "../workflow/scripts/build_data.py"
