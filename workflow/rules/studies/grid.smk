"""Grids of images, localization scores, and tables and figures of grid studies."""

GRID_INPUTS, GRID_PARAMS = INPUTS.of_kind("grid"), PARAMS.of_kind("grid")


rule compose_grid:
    """Arrange test images that the model classifies with confidence in grids."""
    input:
        unpack(GRID_INPUTS.compose_grid),
    output:
        "<results>/grids/{study}.zarr.zip",
    log:
        "<logs>/compose_grid/{study}.log",
    benchmark:
        "<benchmarks>/compose_grid/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("grid")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=GRID_PARAMS.compose_grid,  # data, device, models, studies
    script:
        "../../scripts/compose_grid.py"


rule score_grid:
    """Score the maps of a method by their localization in grids, and aggregate them."""
    input:
        unpack(GRID_INPUTS.score_grid),
    output:
        scores="<results>/scores/grid/{study}/{setting}/seed{seed}/{method}.parquet",
        maps="<results>/aggatt/{study}/{setting}/seed{seed}/{method}.zarr.zip",
    log:
        "<logs>/score_grid/{study}/{setting}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_grid/{study}/{setting}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("grid")),
        setting="[a-z]+",
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=GRID_PARAMS.score_grid,  # device, methods, models, studies
    script:
        "../../scripts/score_grid.py"


rule tabulate_grid:
    """Tabulate the localization scores of a study."""
    input:
        scores=GRID_INPUTS.study_scores,
        data=GRID_INPUTS.rated_data,
    output:
        "<results>/tables/{study}/localization.csv",
    log:
        "<logs>/tabulate_grid/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_grid/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("grid")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=GRID_PARAMS.tabulate_grid,  # methods, models, reliability, studies
    script:
        "../../scripts/tabulate_grid.py"


rule plot_grid:
    """Plot the localization scores of a study."""
    input:
        "<results>/tables/{study}/localization.csv",
    output:
        figure=report(
            "<results>/figures/{study}/localization.svg",
            caption="../../report/grid_localization.rst",
            category=STUDIES.report_page,
            labels={"result": "Localization scores"},
        ),
        page=report(
            "<results>/figures/{study}/localization.html",
            caption="../../report/grid_page.rst",
            category=STUDIES.report_page,
            labels={"result": "Table of localization scores"},
        ),
    log:
        "<logs>/plot_grid/{study}.log",
    benchmark:
        "<benchmarks>/plot_grid/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("grid")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=GRID_PARAMS.plot_grid,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_grid.py"


rule plot_aggatt:
    """Plot the aggregated maps of a study in one setting."""
    input:
        GRID_INPUTS.aggregates,
    output:
        report(
            "<results>/figures/{study}/{setting}_aggatt.png",
            caption="../../report/grid_aggatt.rst",
            category=STUDIES.report_page,
            labels=GRID_PARAMS.figure_label,
        ),
    log:
        "<logs>/plot_aggatt/{study}/{setting}.log",
    benchmark:
        "<benchmarks>/plot_aggatt/{study}/{setting}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("grid")),
        setting="[a-z]+",
    conda:
        "../../envs/report.yaml"
    params:
        settings=GRID_PARAMS.plot_aggatt,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_aggatt.py"
