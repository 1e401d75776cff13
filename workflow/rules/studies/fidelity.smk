"""Tables and figures of studies that score the maps of one model."""

FIDELITY_INPUTS, FIDELITY_PARAMS = INPUTS.of_kind("fidelity"), PARAMS.of_kind("fidelity")
FIGURES = {name for metric in CONFIG.metrics.values() for name in metric.figures}


rule tabulate_scores:
    """Tabulate the scores of a fidelity study."""
    input:
        FIDELITY_INPUTS.study_scores,
    output:
        scores="<results>/tables/{study}/scores.parquet",
        summary="<results>/tables/{study}/summary.csv",
    log:
        "<logs>/tabulate_scores/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_scores/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("fidelity")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=FIDELITY_PARAMS.tabulate_scores,  # studies
    script:
        "../../scripts/tabulate_scores.py"


rule plot_scores:
    """Write the page of all scores in numbers."""
    input:
        "<results>/tables/{study}/summary.csv",
    output:
        report(
            "<results>/figures/{study}/scores.html",
            caption="../../report/scores.rst",
            category=STUDIES.report_page,
            labels={"result": "Tables of all scores"},
        ),
    log:
        "<logs>/plot_scores/{study}.log",
    benchmark:
        "<benchmarks>/plot_scores/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("fidelity")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=FIDELITY_PARAMS.plot_scores,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_scores.py"


rule plot_metric:
    """Plot the scores of a metric."""
    input:
        unpack(FIDELITY_INPUTS.plot_metric),
    output:
        report(
            "<results>/figures/{study}/{metric}_{figure}.svg",
            caption="../../report/metric.rst",
            category=STUDIES.report_page,
            labels=FIDELITY_PARAMS.figure_label,
        ),
    log:
        "<logs>/plot_metric/{study}/{metric}_{figure}.log",
    benchmark:
        "<benchmarks>/plot_metric/{study}/{metric}_{figure}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("fidelity")),
        figure=one_of(FIGURES - {"curves", "areas"}),
    conda:
        "../../envs/report.yaml"
    params:
        settings=FIDELITY_PARAMS.plot_metric,  # data, methods, metrics, models, seeds, studies
    script:
        "../../scripts/plot_metric.py"


use rule plot_metric as plot_curves with:
    """Plot the curves of a metric."""
    output:
        report(
            "<results>/figures/{study}/{metric}_{figure}.svg",
            caption="../../report/metric_curves.rst",
            category=STUDIES.report_page,
            labels=FIDELITY_PARAMS.figure_label,
        ),
    log:
        "<logs>/plot_curves/{study}/{metric}_{figure}.log",
    benchmark:
        "<benchmarks>/plot_curves/{study}/{metric}_{figure}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("fidelity")),
        figure="curves",
    params:
        settings=FIDELITY_PARAMS.plot_curves,  # data, methods, metrics, models, seeds, studies


use rule plot_metric as plot_areas with:
    """Plot the areas of a metric."""
    output:
        report(
            "<results>/figures/{study}/{metric}_{figure}.svg",
            caption="../../report/metric_areas.rst",
            category=STUDIES.report_page,
            labels=FIDELITY_PARAMS.figure_label,
        ),
    log:
        "<logs>/plot_areas/{study}/{metric}_{figure}.log",
    benchmark:
        "<benchmarks>/plot_areas/{study}/{metric}_{figure}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("fidelity")),
        figure="areas",
    params:
        settings=FIDELITY_PARAMS.plot_areas,  # data, methods, metrics, models, seeds, studies


rule plot_scatter:
    """Plot infidelity against sensitivity."""
    input:
        data=INPUTS.study_data,
        scores="<results>/tables/{study}/scores.parquet",
    output:
        report(
            "<results>/figures/{study}/infidelity_sensitivity.svg",
            caption="../../report/scatter.rst",
            category=STUDIES.report_page,
            labels={"result": "Infidelity against sensitivity"},
        ),
    log:
        "<logs>/plot_scatter/{study}.log",
    benchmark:
        "<benchmarks>/plot_scatter/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("fidelity", "scatter")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=FIDELITY_PARAMS.plot_scatter,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_scatter.py"
