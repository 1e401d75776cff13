"""Figures and tables of studies of single maps and of retraining, and of the models."""


rule plot_scores:
    input:
        f"{RESULTS}/tables/{{study}}/summary.csv",
    output:
        report(
            f"{FIGURES}/{{study}}/scores.html",
            caption="../workflow/report/scores.rst",
            category=study_label,
            labels={"shown": "all scores in numbers"},
        ),
    log:
        f"{LOGS}/plot_scores/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_scores/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(FIDELITY_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=settings("plot_scores.py"),
    script:
        "../workflow/scripts/plot_scores.py"


rule plot_metric:
    input:
        unpack(plot_metric_input),
    output:
        report(
            f"{FIGURES}/{{study}}/{{metric}}_{{figure}}.svg",
            caption="../workflow/report/metric.rst",
            category=study_label,
            labels={"shown": "{metric}: {figure}"},
        ),
    log:
        f"{LOGS}/plot_metric/{{study}}/{{metric}}_{{figure}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_metric/{{study}}/{{metric}}_{{figure}}.tsv"
    wildcard_constraints:
        study=one_of(FIDELITY_STUDIES),
        figure=one_of(dict.fromkeys(figure for study in FIDELITY_STUDIES for _, figure in figures_of(study))),
    conda:
        "../envs/report.yaml"
    params:
        settings=plot_metric_settings,
    script:
        "../workflow/scripts/plot_metric.py"


rule plot_scatter:
    input:
        f"{RESULTS}/tables/{{study}}/scores.parquet",
    output:
        report(
            f"{FIGURES}/{{study}}/infidelity_sensitivity.svg",
            caption="../workflow/report/scatter.rst",
            category=study_label,
            labels={"shown": "infidelity against sensitivity"},
        ),
    log:
        f"{LOGS}/plot_scatter/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_scatter/{{study}}.tsv"
    wildcard_constraints:
        study=one_of([study for study in FIDELITY_STUDIES if pairs_of(study)]),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings("plot_scatter.py", pairs=pairs_of(wildcards.study)),
    script:
        "../workflow/scripts/plot_scatter.py"


rule plot_gallery:
    input:
        data=lambda wildcards: DATA.format(data=gallery_set(wildcards.study)),
        maps=lambda wildcards: all_parts(
            MAPS,
            gallery_set(wildcards.study),
            model=CONFIG.studies[wildcards.study].models,
            seed=CONFIG.seeds[0],
            method=CONFIG.studies[wildcards.study].methods,
        ),
    output:
        image=f"{FIGURES}/{{study}}/gallery.png",
        page=report(
            f"{FIGURES}/{{study}}/gallery.html",
            caption="../workflow/report/gallery.rst",
            category=study_label,
            labels={"shown": "the same images under every method"},
        ),
    log:
        f"{LOGS}/plot_gallery/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_gallery/{{study}}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_gallery.py",
            models=CONFIG.studies[wildcards.study].models,
            methods=CONFIG.studies[wildcards.study].methods,
            images=min(CONFIG.gallery_images, CONFIG.sets[gallery_set(wildcards.study)].explain),
            order=CONFIG.sets[gallery_set(wildcards.study)].explain_order,
            where=explained_where(CONFIG.sets[gallery_set(wildcards.study)], gallery_set(wildcards.study)),
            seed=CONFIG.seeds[0],
        ),
    script:
        "../workflow/scripts/plot_gallery.py"


rule plot_retrain:
    input:
        means=f"{RESULTS}/tables/{{study}}/means.parquet",
        summary=f"{RESULTS}/tables/{{study}}/summary.csv",
        data=lambda wildcards: DATA.format(data=CONFIG.studies[wildcards.study].data),
    output:
        accuracy=report(
            f"{FIGURES}/{{study}}/accuracy.svg",
            caption="../workflow/report/retrain_accuracy.rst",
            category=study_label,
            labels={"shown": "accuracy against the share occluded"},
        ),
        overlap=report(
            f"{FIGURES}/{{study}}/overlap.svg",
            caption="../workflow/report/retrain_overlap.rst",
            category=study_label,
            labels={"shown": "overlap of masks by iteration: MMO, MAMO, CMA"},
        ),
        summary=report(
            f"{FIGURES}/{{study}}/summary.html",
            caption="../workflow/report/retrain_summary.rst",
            category=study_label,
            labels={"shown": "accuracy and overlap in numbers"},
        ),
    log:
        f"{LOGS}/plot_retrain/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_retrain/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(RETRAIN_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings("plot_retrain.py", **shown_settings(wildcards)),
    script:
        "../workflow/scripts/plot_retrain.py"


rule plot_arm:
    input:
        unpack(plot_arm_input),
        means=f"{RESULTS}/tables/{{study}}/means.parquet",
    output:
        matrices=report(
            f"{FIGURES}/{{study}}/{{protocol}}_{{fill}}/matrices.svg",
            caption="../workflow/report/retrain_matrices.rst",
            category=study_label,
            labels={"shown": "overlap of every two masks ({protocol}, {fill})"},
        ),
        images=report(
            f"{FIGURES}/{{study}}/{{protocol}}_{{fill}}/images.html",
            caption="../workflow/report/retrain_images.rst",
            category=study_label,
            labels={"shown": "the same images over the iterations ({protocol}, {fill})"},
        ),
    log:
        f"{LOGS}/plot_arm/{{study}}/{{protocol}}_{{fill}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_arm/{{study}}/{{protocol}}_{{fill}}.tsv"
    wildcard_constraints:
        study=one_of(RETRAIN_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=plot_arm_settings,
    script:
        "../workflow/scripts/plot_arm.py"


rule plot_leakage:
    input:
        means=f"{RESULTS}/tables/{{study}}/means.parquet",
        table=f"{RESULTS}/tables/{{study}}/leakage.csv",
    output:
        figure=report(
            f"{FIGURES}/{{study}}/leakage.svg",
            caption="../workflow/report/retrain_leakage.rst",
            category=study_label,
            labels={"shown": "leakage: what masks alone tell of the class"},
        ),
        page=report(
            f"{FIGURES}/{{study}}/leakage.html",
            caption="../workflow/report/retrain_leakage.rst",
            category=study_label,
            labels={"shown": "leakage in numbers"},
        ),
    log:
        f"{LOGS}/plot_leakage/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_leakage/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(LEAK_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=settings("plot_leakage.py"),
    script:
        "../workflow/scripts/plot_leakage.py"


STUDIED_MODELS = list(
    dict.fromkeys(model for study in CONFIG.studies.values() for model in study.all_models)
    if CONFIG.studies
    else CONFIG.models
)


rule plot_training:
    input:
        curves=expand(f"{MODEL}/training.csv", model=STUDIED_MODELS, seed=CONFIG.seeds),
        evaluations=expand(f"{MODEL}/evaluation.json", model=STUDIED_MODELS, seed=CONFIG.seeds),
    output:
        curves=report(
            f"{FIGURES}/training.svg",
            caption="../workflow/report/training.rst",
            category="Models",
            labels={"shown": "training curves"},
        ),
        accuracy=report(
            f"{FIGURES}/accuracy.html",
            caption="../workflow/report/accuracy.rst",
            category="Models",
            labels={"shown": "accuracy of every model on every set"},
        ),
    log:
        f"{LOGS}/plot_training.log",
    benchmark:
        f"{BENCHMARKS}/plot_training.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=settings(
            "plot_training.py",
            arms=[[model, seed] for model in STUDIED_MODELS for seed in CONFIG.seeds],
        ),
    script:
        "../workflow/scripts/plot_training.py"
