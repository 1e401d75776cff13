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
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=lambda wildcards: resident_limit(CONFIG.models[wildcards.model].data),
    params:
        settings=train_settings,
    script:
        "../workflow/scripts/train.py"


# A training with one combination of the settings that are searched, of which only the curve is kept.
use rule train as trial with:
    input:
        unpack(trial_input),
    output:
        curve=f"{SEARCH}/trial{{trial}}.csv",
    log:
        f"{LOGS}/trial/{{model}}/trial{{trial}}.log",
    benchmark:
        f"{BENCHMARKS}/trial/{{model}}/trial{{trial}}.tsv"
    wildcard_constraints:
        model=one_of(SEARCHED),
        trial="[0-9]+",
    params:
        settings=trial_settings,


rule choose:
    input:
        lambda wildcards: expand(
            f"{SEARCH}/trial{{trial}}.csv",
            model=wildcards.model,
            trial=range(len(CONFIG.models[wildcards.model].trials)),
        ),
    output:
        f"{SEARCH}/chosen.json",
    log:
        f"{LOGS}/choose/{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/choose/{{model}}.tsv"
    wildcard_constraints:
        model=one_of(SEARCHED),
    priority: EARLY
    conda:
        "../envs/models.yaml"
    params:
        settings=lambda wildcards: settings(
            "choose.py",
            training=CONFIG.models[wildcards.model].training,
            trials=CONFIG.models[wildcards.model].trials,
        ),
    script:
        "../workflow/scripts/choose.py"


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
            validation_share=CONFIG.models[wildcards.model].training["validation_share"],
            seed=int(wildcards.seed),
            batch_size=CONFIG.models[wildcards.model].batch_size,
            device=CONFIG.device,
        ),
    script:
        "../workflow/scripts/evaluate.py"
