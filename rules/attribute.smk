"""Saliency maps: one job for each model, seed, set or part of it, and method."""


rule attribute:
    input:
        weights=f"{MODEL}/weights.pt",
        data=DATA,
    output:
        maps=MAPS,
        cost=COSTS,
    log:
        f"{LOGS}/attribute/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/attribute/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=attribute_settings,
    script:
        "../workflow/scripts/attribute.py"
