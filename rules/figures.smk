"""Figures and tables of studies of single maps and of retraining, and of the models."""


rule plot_scores:
    input:
        "<results>/tables/{study}/summary.csv",
    output:
        report(
            "<results>/figures/{study}/scores.html",
            caption="../workflow/report/scores.rst",
            category="Study {study}",
            labels={"shown": "all scores in numbers"},
        ),
    log:
        "<logs>/plot_scores/{study}.log",
    benchmark:
        "<benchmarks>/plot_scores/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.fidelity),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_scores,
    script:
        "../workflow/scripts/plot_scores.py"


rule plot_metric:
    input:
        unpack(INPUTS.plot_metric),
    output:
        report(
            "<results>/figures/{study}/{metric}_{figure}.svg",
            caption="../workflow/report/metric.rst",
            category="Study {study}",
            labels={"shown": "{metric}: {figure}"},
        ),
    log:
        "<logs>/plot_metric/{study}/{metric}_{figure}.log",
    benchmark:
        "<benchmarks>/plot_metric/{study}/{metric}_{figure}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.fidelity),
        figure=one_of(METRIC_FIGURES),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_metric,
    script:
        "../workflow/scripts/plot_metric.py"


rule plot_scatter:
    input:
        "<results>/tables/{study}/scores.parquet",
    output:
        report(
            "<results>/figures/{study}/infidelity_sensitivity.svg",
            caption="../workflow/report/scatter.rst",
            category="Study {study}",
            labels={"shown": "infidelity against sensitivity"},
        ),
    log:
        "<logs>/plot_scatter/{study}.log",
    benchmark:
        "<benchmarks>/plot_scatter/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.scatter),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_scatter,
    script:
        "../workflow/scripts/plot_scatter.py"


rule plot_gallery:
    input:
        unpack(INPUTS.plot_gallery),
    output:
        image="<results>/figures/{study}/gallery.png",
        page=report(
            "<results>/figures/{study}/gallery.html",
            caption="../workflow/report/gallery.rst",
            category="Study {study}",
            labels={"shown": "the same images under every method"},
        ),
    log:
        "<logs>/plot_gallery/{study}.log",
    benchmark:
        "<benchmarks>/plot_gallery/{study}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_gallery,
    script:
        "../workflow/scripts/plot_gallery.py"


rule plot_retrain:
    input:
        means="<results>/tables/{study}/means.parquet",
        summary="<results>/tables/{study}/summary.csv",
        data=INPUTS.study_data,
    output:
        accuracy=report(
            "<results>/figures/{study}/accuracy.svg",
            caption="../workflow/report/retrain_accuracy.rst",
            category="Study {study}",
            labels={"shown": "accuracy against the share occluded"},
        ),
        overlap=report(
            "<results>/figures/{study}/overlap.svg",
            caption="../workflow/report/retrain_overlap.rst",
            category="Study {study}",
            labels={"shown": "overlap of masks by iteration: MMO, MAMO, CMA"},
        ),
        summary=report(
            "<results>/figures/{study}/summary.html",
            caption="../workflow/report/retrain_summary.rst",
            category="Study {study}",
            labels={"shown": "accuracy and overlap in numbers"},
        ),
    log:
        "<logs>/plot_retrain/{study}.log",
    benchmark:
        "<benchmarks>/plot_retrain/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.retrain),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_retrain,
    script:
        "../workflow/scripts/plot_retrain.py"


rule plot_arm:
    input:
        unpack(INPUTS.plot_arm),
        means="<results>/tables/{study}/means.parquet",
    output:
        matrices=report(
            "<results>/figures/{study}/{protocol}_{fill}/matrices.svg",
            caption="../workflow/report/retrain_matrices.rst",
            category="Study {study}",
            labels={"shown": "overlap of every two masks ({protocol}, {fill})"},
        ),
        images=report(
            "<results>/figures/{study}/{protocol}_{fill}/images.html",
            caption="../workflow/report/retrain_images.rst",
            category="Study {study}",
            labels={"shown": "the same images over the iterations ({protocol}, {fill})"},
        ),
    log:
        "<logs>/plot_arm/{study}/{protocol}_{fill}.log",
    benchmark:
        "<benchmarks>/plot_arm/{study}/{protocol}_{fill}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.retrain),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_arm,
    script:
        "../workflow/scripts/plot_arm.py"


rule plot_leakage:
    input:
        means="<results>/tables/{study}/means.parquet",
        data=INPUTS.study_data,
    output:
        table="<results>/tables/{study}/leakage.csv",
        figure=report(
            "<results>/figures/{study}/leakage.svg",
            caption="../workflow/report/retrain_leakage.rst",
            category="Study {study}",
            labels={"shown": "leakage: what masks alone tell of the class"},
        ),
        page=report(
            "<results>/figures/{study}/leakage.html",
            caption="../workflow/report/retrain_leakage.rst",
            category="Study {study}",
            labels={"shown": "leakage in numbers"},
        ),
    log:
        "<logs>/plot_leakage/{study}.log",
    benchmark:
        "<benchmarks>/plot_leakage/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.leakage),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_leakage,
    script:
        "../workflow/scripts/plot_leakage.py"


rule plot_training:
    input:
        **INPUTS.plot_training(),
    output:
        curves=report(
            "<results>/figures/training.svg",
            caption="../workflow/report/training.rst",
            category="Models",
            labels={"shown": "training curves"},
        ),
        accuracy=report(
            "<results>/figures/accuracy.html",
            caption="../workflow/report/accuracy.rst",
            category="Models",
            labels={"shown": "accuracy of every model on every set"},
        ),
    log:
        "<logs>/plot_training.log",
    benchmark:
        "<benchmarks>/plot_training.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_training,
    script:
        "../workflow/scripts/plot_training.py"
