"""Scores, tables and figures of studies of the importance of parts."""

PARTS_INPUTS, PARTS_PARAMS = INPUTS.of_kind("parts"), PARAMS.of_kind("parts")


rule evaluate_interventions:
    """Evaluate a model on images without parts and objects."""
    input:
        weights=PARTS_INPUTS.study_weights,
        data=INPUTS.study_data,
    output:
        "<results>/interventions/{study}/seed{seed}.zarr.zip",
    log:
        "<logs>/evaluate_interventions/{study}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_interventions/{study}/seed{seed}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("parts")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=PARTS_PARAMS.evaluate_interventions,  # data, device, models, studies
    script:
        "../../scripts/evaluate_interventions.py"


rule score_parts:
    """Score a method by FunnyBirds' protocols."""
    input:
        weights=PARTS_INPUTS.study_weights,
        data=INPUTS.study_data,
        interventions="<results>/interventions/{study}/seed{seed}.zarr.zip",
        maps=PARTS_INPUTS.study_maps,
    output:
        "<results>/scores/parts/{study}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_parts/{study}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_parts/{study}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("parts")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=PARTS_PARAMS.score_parts,  # device, methods, models, studies
    script:
        "../../scripts/score_parts.py"


rule tabulate_parts:
    """Tabulate the means of FunnyBirds' protocols."""
    input:
        scores=PARTS_INPUTS.study_scores,
        evaluations=INPUTS.study_evaluations,
    output:
        protocols="<results>/tables/{study}/protocols.csv",
        summary="<results>/tables/{study}/summary.csv",
    log:
        "<logs>/tabulate_parts/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_parts/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("parts")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=PARTS_PARAMS.tabulate_parts,  # seeds, studies
    script:
        "../../scripts/tabulate_parts.py"


rule plot_parts:
    """Plot FunnyBirds' protocols."""
    input:
        protocols="<results>/tables/{study}/protocols.csv",
        order="<results>/tables/{study}/order.csv",
    output:
        figure=report(
            "<results>/figures/{study}/protocols.svg",
            caption="../../report/parts.rst",
            category=STUDIES.report_page,
            labels={"result": "FunnyBirds' protocols"},
        ),
        page=report(
            "<results>/figures/{study}/protocols.html",
            caption="../../report/parts_page.rst",
            category=STUDIES.report_page,
            labels={"result": "Table of FunnyBirds' protocols"},
        ),
    log:
        "<logs>/plot_parts/{study}.log",
    benchmark:
        "<benchmarks>/plot_parts/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("parts")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=PARTS_PARAMS.plot_parts,  # data, methods, metrics, models, reliability, studies
    script:
        "../../scripts/plot_parts.py"
