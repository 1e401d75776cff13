"""Tables and figures of studies of designed networks."""

DESIGNED_INPUTS, DESIGNED_PARAMS = INPUTS.of_kind("designed"), PARAMS.of_kind("designed")


rule tabulate_designed:
    """Tabulate methods and metrics against the exact importance of pixels."""
    input:
        DESIGNED_INPUTS.study_scores,
    output:
        method_truth="<results>/tables/{study}/method_truth.csv",
        metric_truth="<results>/tables/{study}/metric_truth.csv",
    log:
        "<logs>/tabulate_designed/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_designed/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("designed")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=DESIGNED_PARAMS.tabulate_designed,  # methods, metrics, reliability, studies
    script:
        "../../scripts/tabulate_designed.py"


rule plot_designed:
    """Plot methods and metrics against the exact importance of pixels."""
    input:
        **rules.tabulate_designed.output,
    output:
        methods=report(
            "<results>/figures/{study}/method_truth.svg",
            caption="../../report/method_truth.rst",
            category=STUDIES.report_page,
            labels={"result": "Methods against exact importance"},
        ),
        metrics=report(
            "<results>/figures/{study}/metric_truth.svg",
            caption="../../report/metric_truth.rst",
            category=STUDIES.report_page,
            labels={"result": "Metrics against exact importance"},
        ),
        page=report(
            "<results>/figures/{study}/truth_tables.html",
            caption="../../report/truth_tables.rst",
            category=STUDIES.report_page,
            labels={"result": "Tables of methods and metrics against exact importance"},
        ),
    log:
        "<logs>/plot_designed/{study}.log",
    benchmark:
        "<benchmarks>/plot_designed/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("designed")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=DESIGNED_PARAMS.plot_designed,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_designed.py"
