"""Retraining on occluded images (ROAR, IteROAR): occlude pixels by the maps of f_i, train f_{i+1}, and repeat."""

RETRAIN_INPUTS, RETRAIN_PARAMS = INPUTS.of_kind("retrain"), PARAMS.of_kind("retrain")
RETRAININGS = [RETRAIN_INPUTS.retraining(study) for study in STUDIES.of_kind("retrain")]
FILLS = [fill for retraining in RETRAININGS for fill in retraining.fills]
MASK_SHARDS = [name for retraining in RETRAININGS for name in shard_suffixes(retraining.shards) if name]


pathvars:
    # One arm of a study: f_i and D_i for i = 0, 1, …
    arm="{study}/{protocol}/{method}/{fill}/seed{seed}",


wildcard_constraints:
    protocol=one_of(name for retraining in RETRAININGS for name in retraining.protocols),
    fill=one_of(FILLS),
    iteration="[0-9]+",


rule remask:
    """Compute the masks of the pixels that the maps of f_i select for occlusion."""
    input:
        weights=RETRAIN_INPUTS.weights,
        data=RETRAIN_INPUTS.model_data,
        masks=RETRAIN_INPUTS.masks_before,
    output:
        "<results>/remask/<arm>/iteration{iteration}/masks{shard}.zarr.zip",
    log:
        "<logs>/remask/<arm>/iteration{iteration}{shard}.log",
    benchmark:
        "<benchmarks>/remask/<arm>/iteration{iteration}{shard}.tsv"
    wildcard_constraints:
        fill=one_of([*FILLS, "shared"]),
        shard=f"({one_of(MASK_SHARDS)})?",
    priority: EARLY
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=PARAMS.resident_limit_of_study,
    params:
        settings=RETRAIN_PARAMS.remask,  # device, methods, models, studies
    script:
        "../../scripts/remask.py"


rule retrain:
    """Train f_i on the occluded images."""
    input:
        unpack(RETRAIN_INPUTS.initial_weights),
        unpack(RETRAIN_INPUTS.hyperparameters),
        data=RETRAIN_INPUTS.model_data,
        first=RETRAIN_INPUTS.first_weights,
        masks=RETRAIN_INPUTS.masks_before,
    output:
        weights="<results>/remask/<arm>/iteration{iteration}/weights.pt",
        curve="<results>/remask/<arm>/iteration{iteration}/training.csv",
        predictions="<results>/remask/<arm>/iteration{iteration}/predictions.parquet",
    log:
        "<logs>/retrain/<arm>/iteration{iteration}.log",
    benchmark:
        "<benchmarks>/retrain/<arm>/iteration{iteration}.tsv"
    priority: EARLY
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=PARAMS.resident_limit_of_study,
        runtime=PARAMS.training_minutes,
        mem_mb=PARAMS.training_megabytes,
    params:
        settings=RETRAIN_PARAMS.retrain,  # device, models, studies
    script:
        "../../scripts/retrain.py"


rule measure_mask_leakage:
    """Train classifiers on masks alone to measure mask leakage."""
    input:
        unpack(RETRAIN_INPUTS.hyperparameters),
        data=RETRAIN_INPUTS.model_data,
        masks=RETRAIN_INPUTS.masks_before,
    output:
        "<results>/remask/<arm>/iteration{iteration}/leakage.csv",
    log:
        "<logs>/measure_mask_leakage/<arm>/iteration{iteration}.log",
    benchmark:
        "<benchmarks>/measure_mask_leakage/<arm>/iteration{iteration}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        resident_limit=PARAMS.resident_limit_of_study,
        runtime=RETRAIN_PARAMS.leakage_minutes,
        mem_mb=PARAMS.training_megabytes,
    params:
        settings=RETRAIN_PARAMS.measure_mask_leakage,  # device, models, studies
    script:
        "../../scripts/measure_mask_leakage.py"


rule score_retrain:
    """Score an arm: accuracy, overlap and leakage by iteration."""
    input:
        data=RETRAIN_INPUTS.model_data,
        masks=RETRAIN_INPUTS.arm_masks,
        predictions=RETRAIN_INPUTS.arm_predictions,
        leakage=RETRAIN_INPUTS.arm_leakage,
    output:
        "<results>/scores/retrain/<arm>.parquet",
    log:
        "<logs>/score_retrain/<arm>.log",
    benchmark:
        "<benchmarks>/score_retrain/<arm>.tsv"
    conda:
        "../../envs/models.yaml"
    params:
        settings=RETRAIN_PARAMS.score_retrain,  # models, studies
    script:
        "../../scripts/score_retrain.py"


rule tabulate_retrain:
    """Tabulate a retrain study."""
    input:
        scores=RETRAIN_INPUTS.study_scores,
        data=RETRAIN_INPUTS.study_data,
    output:
        scores="<results>/tables/{study}/scores.parquet",
        means="<results>/tables/{study}/means.parquet",
        summary="<results>/tables/{study}/summary.csv",
    log:
        "<logs>/tabulate_retrain/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_retrain/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("retrain")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=RETRAIN_PARAMS.tabulate_retrain,  # models, seeds, studies
    script:
        "../../scripts/tabulate_retrain.py"


rule tabulate_rank_agreement:
    """Tabulate how far rankings agree with and without retraining, in both orders of occlusion, and with all fills."""
    input:
        scores="<results>/tables/{study}/scores.parquet",
        data=RETRAIN_INPUTS.study_data,
    output:
        "<results>/tables/{study}/rank_agreement.csv",
    log:
        "<logs>/tabulate_rank_agreement/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_rank_agreement/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("retrain")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=RETRAIN_PARAMS.tabulate_rank_agreement,  # methods, studies
    script:
        "../../scripts/tabulate_rank_agreement.py"


rule tabulate_leakage:
    """Tabulate mask leakage."""
    input:
        means="<results>/tables/{study}/means.parquet",
        data=RETRAIN_INPUTS.study_data,
    output:
        "<results>/tables/{study}/leakage.csv",
    log:
        "<logs>/tabulate_leakage/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_leakage/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("retrain", "leakage")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=RETRAIN_PARAMS.tabulate_leakage,  # models, studies
    script:
        "../../scripts/tabulate_leakage.py"


rule plot_retrain:
    """Plot accuracy and overlap."""
    input:
        means="<results>/tables/{study}/means.parquet",
        summary="<results>/tables/{study}/summary.csv",
        rank_agreement="<results>/tables/{study}/rank_agreement.csv",
        data=RETRAIN_INPUTS.study_data,
    output:
        accuracy=report(
            "<results>/figures/{study}/accuracy.svg",
            caption="../../report/retrain_accuracy.rst",
            category=STUDIES.report_page,
            labels={"result": "Accuracy by occluded share"},
        ),
        overlap=report(
            "<results>/figures/{study}/overlap.svg",
            caption="../../report/retrain_overlap.rst",
            category=STUDIES.report_page,
            labels={"result": "Overlap of masks by iteration: MMO, MAMO, CMA"},
        ),
        summary=report(
            "<results>/figures/{study}/summary.html",
            caption="../../report/retrain_summary.rst",
            category=STUDIES.report_page,
            labels={"result": "Tables of accuracy and overlap"},
        ),
    log:
        "<logs>/plot_retrain/{study}.log",
    benchmark:
        "<benchmarks>/plot_retrain/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("retrain")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=RETRAIN_PARAMS.plot_retrain,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_retrain.py"


rule plot_masks:
    """Plot the masks of all methods, and occluded images."""
    input:
        data=RETRAIN_INPUTS.gallery_data,
        masks=RETRAIN_INPUTS.first_masks,
        means="<results>/tables/{study}/means.parquet",
    output:
        matrices=report(
            "<results>/figures/{study}/{protocol}_{fill}/matrices.svg",
            caption="../../report/retrain_matrices.rst",
            category=STUDIES.report_page,
            labels=RETRAIN_PARAMS.matrices_label,
        ),
        images=report(
            "<results>/figures/{study}/{protocol}_{fill}/images.html",
            caption="../../report/retrain_images.rst",
            category=STUDIES.report_page,
            labels=RETRAIN_PARAMS.images_label,
        ),
    log:
        "<logs>/plot_masks/{study}/{protocol}_{fill}.log",
    benchmark:
        "<benchmarks>/plot_masks/{study}/{protocol}_{fill}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("retrain")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=RETRAIN_PARAMS.plot_masks,  # data, methods, metrics, models, report, seeds, studies
    script:
        "../../scripts/plot_masks.py"


rule plot_leakage:
    """Plot mask leakage."""
    input:
        means="<results>/tables/{study}/means.parquet",
        table="<results>/tables/{study}/leakage.csv",
    output:
        figure=report(
            "<results>/figures/{study}/leakage.svg",
            caption="../../report/retrain_leakage.rst",
            category=STUDIES.report_page,
            labels={"result": "Mask leakage: accuracy from masks alone"},
        ),
        page=report(
            "<results>/figures/{study}/leakage.html",
            caption="../../report/retrain_leakage.rst",
            category=STUDIES.report_page,
            labels={"result": "Table of mask leakage"},
        ),
    log:
        "<logs>/plot_leakage/{study}.log",
    benchmark:
        "<benchmarks>/plot_leakage/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("retrain", "leakage")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=RETRAIN_PARAMS.plot_leakage,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_leakage.py"
