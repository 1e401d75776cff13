"""Scores, tables and figures of studies of the validity of metrics."""

VALIDITY_INPUTS, VALIDITY_PARAMS = INPUTS.of_kind("validity"), PARAMS.of_kind("validity")


rule score_validity:
    """Score maps by a metric after known changes of the map, the model and the images."""
    input:
        unpack(VALIDITY_INPUTS.score_validity),
    output:
        "<results>/scores/validity/{study}/{metric}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_validity/{study}/{metric}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_validity/{study}/{metric}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("validity")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=VALIDITY_PARAMS.score_validity,  # data, device, methods, metrics, models, studies
    script:
        "../../scripts/score_validity.py"


rule tabulate_validity:
    """Tabulate the validity of a study's metrics."""
    input:
        rescored=VALIDITY_INPUTS.rescored,
        data=INPUTS.rated_data,
        scores=VALIDITY_INPUTS.study_scores,
        order="<results>/tables/{study}/order.csv",
        pairs="<results>/tables/{study}/pairs.csv",
        reliability="<results>/tables/{study}/reliability.csv",
        rankings="<results>/tables/{study}/rankings.csv",
        evaluations=INPUTS.study_evaluations,
    output:
        recommendations="<results>/tables/{study}/recommendations.csv",
        known_order="<results>/tables/{study}/known_order.csv",
        meta_consistency="<results>/tables/{study}/meta_consistency.csv",
        baselines="<results>/tables/{study}/baselines.csv",
        settings_pairs="<results>/tables/{study}/settings_pairs.csv",
    log:
        "<logs>/tabulate_validity/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_validity/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("validity")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=VALIDITY_PARAMS.tabulate_validity,  # methods, metrics, studies
    script:
        "../../scripts/tabulate_validity.py"


rule plot_validity:
    """Plot the validity of a study's metrics against their reliability."""
    input:
        **rules.tabulate_validity.output,
    output:
        scatter=report(
            "<results>/figures/{study}/validity.svg",
            caption="../../report/validity.rst",
            category=STUDIES.report_page,
            labels={"result": "Reliability against validity"},
        ),
        page=report(
            "<results>/figures/{study}/validity.html",
            caption="../../report/validity_page.rst",
            category=STUDIES.report_page,
            labels={"result": "Tables of validity"},
        ),
    log:
        "<logs>/plot_validity/{study}.log",
    benchmark:
        "<benchmarks>/plot_validity/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("validity")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=VALIDITY_PARAMS.plot_validity,  # data, methods, metrics, models, reliability, studies
    script:
        "../../scripts/plot_validity.py"
