"""Tables and figures of studies of images with captions."""

CAPTION_INPUTS, CAPTION_PARAMS = INPUTS.of_kind("caption"), PARAMS.of_kind("caption")


rule tabulate_caption:
    """Tabulate the attribution of maps to image and caption."""
    input:
        scores=CAPTION_INPUTS.study_scores,
        predictions=CAPTION_INPUTS.study_predictions,
    output:
        premise="<results>/tables/{study}/premise.csv",
        table="<results>/tables/{study}/table.csv",
    log:
        "<logs>/tabulate_caption/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_caption/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("caption")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=CAPTION_PARAMS.tabulate_caption,  # data, methods, metrics, models, studies
    script:
        "../../scripts/tabulate_caption.py"


rule plot_caption:
    """Plot the attribution of maps to image and caption."""
    input:
        premise="<results>/tables/{study}/premise.csv",
        table="<results>/tables/{study}/table.csv",
    output:
        page=report(
            "<results>/figures/{study}/caption.html",
            caption="../../report/caption.rst",
            category=STUDIES.report_page,
            labels={"result": "Tables of the premise, INFD and attribution"},
        ),
        infidelity=report(
            "<results>/figures/{study}/infidelity.svg",
            caption="../../report/caption_infidelity.rst",
            category=STUDIES.report_page,
            labels={"result": "INFD of both models"},
        ),
        attribution=report(
            "<results>/figures/{study}/attribution.svg",
            caption="../../report/caption_attribution.rst",
            category=STUDIES.report_page,
            labels={"result": "Attribution on the half that the model uses"},
        ),
    log:
        "<logs>/plot_caption/{study}.log",
    benchmark:
        "<benchmarks>/plot_caption/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("caption")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=CAPTION_PARAMS.plot_caption,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_caption.py"
