"""Reliability of metrics and order of methods, for every study that rates methods."""


rule tabulate_reliability:
    """Measure the reliability of a study's metrics, and rank its methods."""
    input:
        scores=INPUTS.rated_scores,
        data=INPUTS.rated_data,
    output:
        reliability="<results>/tables/{study}/reliability.csv",
        agreement="<results>/tables/{study}/agreement.csv",
        order="<results>/tables/{study}/order.csv",
        pairs="<results>/tables/{study}/pairs.csv",
        consistency="<results>/tables/{study}/consistency.csv",
        rankings="<results>/tables/{study}/rankings.csv",
        variance="<results>/tables/{study}/variance.csv",
        controls="<results>/tables/{study}/controls.csv",
    log:
        "<logs>/tabulate_reliability/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_reliability/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.rated),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.tabulate_reliability,  # methods, metrics, models, reliability, studies
    script:
        "../scripts/tabulate_reliability.py"


rule plot_reliability:
    """Plot the reliability of a study's metrics and the ranks of its methods."""
    input:
        **rules.tabulate_reliability.output,
    output:
        reliability=report(
            "<results>/figures/{study}/reliability.svg",
            caption="../report/reliability.rst",
            category=STUDIES.report_page,
            labels={"result": "Inter-rater and inter-method reliability"},
        ),
        agreement=report(
            "<results>/figures/{study}/agreement.svg",
            caption="../report/agreement.rst",
            category=STUDIES.report_page,
            labels={"result": "Agreement of seeds, classes and halves"},
        ),
        order=report(
            "<results>/figures/{study}/order.svg",
            caption="../report/order.rst",
            category=STUDIES.report_page,
            labels={"result": "Rank sets of the methods"},
        ),
        score_pairs=report(
            "<results>/figures/{study}/score_pairs.svg",
            caption="../report/score_pairs.rst",
            category=STUDIES.report_page,
            labels={"result": "Methods under two metrics"},
        ),
        consistency=report(
            "<results>/figures/{study}/consistency.svg",
            caption="../report/consistency.rst",
            category=STUDIES.report_page,
            labels={"result": "Correlations between metrics"},
        ),
        page=report(
            "<results>/figures/{study}/reliability.html",
            caption="../report/reliability_page.rst",
            category=STUDIES.report_page,
            labels={"result": "Tables of reliability, agreement and ranks"},
        ),
    log:
        "<logs>/plot_reliability/{study}.log",
    benchmark:
        "<benchmarks>/plot_reliability/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.rated),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_reliability,  # data, methods, metrics, models, reliability, studies
    script:
        "../scripts/plot_reliability.py"


rule compare_tasks:
    """Compare the orders of methods of all models and data sets."""
    input:
        order=INPUTS.across_tasks("order"),
        pairs=INPUTS.across_tasks("pairs"),
    output:
        agreement="<results>/tables/task_agreement.csv",
        pairs="<results>/tables/task_pairs.csv",
        page=report(
            "<results>/figures/across.html",
            caption="../report/across.rst",
            category="Across tasks",
            labels={"result": "Order of the methods across models and data sets"},
        ),
    log:
        "<logs>/compare_tasks.log",
    benchmark:
        "<benchmarks>/compare_tasks.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.compare_tasks,  # data, methods, metrics, models, studies
    script:
        "../scripts/compare_tasks.py"


rule tabulate_sweeps:
    """Tabulate the scores of all members of families of methods, and the orders under families of metrics."""
    input:
        scores=INPUTS.rated_scores,
        data=INPUTS.rated_data,
    output:
        sweeps="<results>/tables/{study}/sweeps.csv",
        metric_sweeps="<results>/tables/{study}/metric_sweeps.csv",
    log:
        "<logs>/tabulate_sweeps/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_sweeps/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.swept),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.tabulate_sweeps,  # methods, metrics, models, reliability, studies
    script:
        "../scripts/tabulate_sweeps.py"


rule plot_sweep:
    """Plot scores over the values of a swept method, or ranks of methods over those of a swept metric."""
    input:
        **rules.tabulate_sweeps.output,
        order="<results>/tables/{study}/order.csv",
    output:
        report(
            "<results>/figures/{study}/{section}_sweep_{family}.svg",
            caption="../report/sweep.rst",
            category=STUDIES.report_page,
            labels=PARAMS.sweep_label,
        ),
    log:
        "<logs>/plot_sweep/{study}/{section}_sweep_{family}.log",
    benchmark:
        "<benchmarks>/plot_sweep/{study}/{section}_sweep_{family}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.swept),
        section="methods|metrics",
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_sweep,  # data, methods, metrics, models, studies
    script:
        "../scripts/plot_sweep.py"
