"""Training of models with each seed, and evaluation on every set on which a study compares them."""


rule train:
    """Train a model."""
    input:
        unpack(INPUTS.initial_weights),
        unpack(INPUTS.hyperparameters),
        data=INPUTS.model_data,
    output:
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        curve="<results>/models/{model}/seed{seed}/training.csv",
    log:
        "<logs>/train/{model}/seed{seed}.log",
    benchmark:
        "<benchmarks>/train/{model}/seed{seed}.tsv"
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=PARAMS.resident_limit_of_model,
        runtime=PARAMS.training_minutes,
        mem_mb=PARAMS.training_megabytes,
    params:
        settings=PARAMS.train,  # device, models
    script:
        "../scripts/train.py"


use rule train as trial with:
    """Train with one combination of a search; only the curve is kept."""
    input:
        unpack(INPUTS.initial_weights),
        data=INPUTS.model_data,
    output:
        curve="<results>/search/{model}/trial{trial}.csv",
    log:
        "<logs>/trial/{model}/trial{trial}.log",
    benchmark:
        "<benchmarks>/trial/{model}/trial{trial}.tsv"
    wildcard_constraints:
        model=one_of(SEARCHED),
        trial="[0-9]+",
    params:
        settings=PARAMS.trial,  # device, models, seeds


use rule train as finetune with:
    """Train a model further, for a metric that evaluates the fine-tuned model."""
    input:
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        data=INPUTS.model_data,
    output:
        weights="<results>/finetuned/{metric}/{model}/seed{seed}/weights.pt",
        curve="<results>/finetuned/{metric}/{model}/seed{seed}/training.csv",
    log:
        "<logs>/finetune/{metric}/{model}/seed{seed}.log",
    benchmark:
        "<benchmarks>/finetune/{metric}/{model}/seed{seed}.tsv"
    params:
        settings=PARAMS.finetune,  # device, metrics, models


rule select_hyperparameters:
    """Select the best combination of a search."""
    input:
        INPUTS.trials,
    output:
        "<results>/search/{model}/hyperparameters.json",
    log:
        "<logs>/select_hyperparameters/{model}.log",
    benchmark:
        "<benchmarks>/select_hyperparameters/{model}.tsv"
    wildcard_constraints:
        model=one_of(SEARCHED),
    priority: EARLY
    conda:
        "../envs/models.yaml"
    params:
        settings=PARAMS.select_hyperparameters,  # models
    script:
        "../scripts/select_hyperparameters.py"


rule evaluate:
    """Evaluate a model on every set on which a study compares it."""
    input:
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        data=INPUTS.evaluated_data,
    output:
        predictions="<results>/models/{model}/seed{seed}/predictions.parquet",
        evaluation="<results>/models/{model}/seed{seed}/evaluation.json",
    log:
        "<logs>/evaluate/{model}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate/{model}/seed{seed}.tsv"
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=PARAMS.evaluate,  # device, models, studies
    script:
        "../scripts/evaluate.py"
