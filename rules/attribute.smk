"""Saliency maps: one job for each model, seed, set and method."""


rule attribute:
    input:
        weights=f"{MODEL}/weights.pt",
        data=DATA,
    output:
        maps=MAPS,
        cost=COSTS,
    log:
        f"{LOGS}/attribute/{{model}}/seed{{seed}}/{{data}}/{{method}}.log",
    benchmark:
        f"{BENCHMARKS}/attribute/{{model}}/seed{{seed}}/{{data}}/{{method}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=attribute_settings,
    script:
        "../workflow/scripts/attribute.py"
