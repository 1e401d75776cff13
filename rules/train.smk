"""Models: trained once for each seed, and evaluated on every set that a study compares them on."""


rule train:
    input:
        unpack(train_input),
    output:
        weights=f"{MODEL}/weights.pt",
        curve=f"{MODEL}/training.csv",
    log:
        f"{LOGS}/train/{{model}}/seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/train/{{model}}/seed{{seed}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(
            "train.py",
            CONFIG.models[wildcards.model].function,
            model=model_settings(wildcards.model),
            label=CONFIG.models[wildcards.model].label,
            training=CONFIG.models[wildcards.model].training,
            seed=int(wildcards.seed),
            device=CONFIG.device,
            state=f"{RESULTS}/.state/train/{wildcards.model}/seed{wildcards.seed}.pt",
        ),
    script:
        "../workflow/scripts/train.py"


rule evaluate:
    input:
        weights=f"{MODEL}/weights.pt",
        data=lambda wildcards: expand(DATA, data=evaluated_sets(wildcards.model)),
    output:
        predictions=f"{MODEL}/predictions.parquet",
        evaluation=f"{MODEL}/evaluation.json",
    log:
        f"{LOGS}/evaluate/{{model}}/seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{{model}}/seed{{seed}}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(
            "evaluate.py",
            CONFIG.models[wildcards.model].function,
            model=model_settings(wildcards.model),
            label=CONFIG.models[wildcards.model].label,
            sets=evaluated_sets(wildcards.model),
            batch_size=CONFIG.models[wildcards.model].batch_size,
            device=CONFIG.device,
        ),
    script:
        "../workflow/scripts/evaluate.py"
