"""Saliency maps: one job for each model, seed, set and method."""


rule attribute:
    input:
        weights=f"{MODEL}/weights.pt",
        data=DATA,
    output:
        MAPS,
    log:
        f"{LOGS}/attribute/{{model}}/seed{{seed}}/{{data}}/{{method}}.log",
    benchmark:
        f"{BENCHMARKS}/attribute/{{model}}/seed{{seed}}/{{data}}/{{method}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(
            "attribute.py",
            CONFIG.models[wildcards.model].function,
            CONFIG.methods[wildcards.method].function,
            model=explained_model_settings(wildcards.model, wildcards.method),
            label=CONFIG.models[wildcards.model].label,
            method=CONFIG.methods[wildcards.method].method,
            function=CONFIG.methods[wildcards.method].function,
            parameters=CONFIG.methods[wildcards.method].parameters,
            explain=CONFIG.sets[wildcards.data].explain,
            seed=int(wildcards.seed),
            batch_size=CONFIG.models[wildcards.model].batch_size,
            device=CONFIG.device,
        ),
    script:
        "../workflow/scripts/attribute.py"
