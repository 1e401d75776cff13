"""Pages of the report, and the report itself: one HTML file with all pages, figures and tables."""


rule plot_gallery:
    """Plot the same images under every method."""
    input:
        unpack(INPUTS.gallery_tables),
        data=INPUTS.gallery_data,
        maps=INPUTS.gallery_maps,
        predictions=INPUTS.gallery_predictions,
        scores=INPUTS.gallery_scores,
    output:
        image="<results>/figures/{study}/gallery.png",
        vector="<results>/figures/{study}/gallery.pdf",
        thumbnails="<results>/figures/{study}/gallery.json",
        page=report(
            "<results>/figures/{study}/gallery.html",
            caption="../report/gallery.rst",
            category=STUDIES.report_page,
            labels={"result": "Maps of the same images by every method"},
        ),
    log:
        "<logs>/plot_gallery/{study}.log",
    benchmark:
        "<benchmarks>/plot_gallery/{study}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_gallery,  # data, methods, metrics, models, report, seeds, studies
    script:
        "../scripts/plot_gallery.py"


rule plot_training:
    """Plot training curves and accuracies."""
    input:
        curves=expand("<results>/models/{model}/seed{seed}/training.csv", **MODELS),
        evaluations=expand("<results>/models/{model}/seed{seed}/evaluation.json", **MODELS),
    output:
        curves=report(
            "<results>/figures/training.svg",
            caption="../report/training.rst",
            category="Models",
            labels={"result": "Training curves"},
        ),
        accuracy=report(
            "<results>/figures/accuracy.html",
            caption="../report/accuracy.rst",
            category="Models",
            labels={"result": "Accuracy by model and data set"},
        ),
    log:
        "<logs>/plot_training.log",
    benchmark:
        "<benchmarks>/plot_training.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_training,  # data, models, seeds, studies
    script:
        "../scripts/plot_training.py"


rule summarize:
    """Write the summary of a study, and the table of what it lacks because methods or metrics failed."""
    input:
        unpack(INPUTS.summary_files),
        evaluations=INPUTS.study_evaluations,
        methods=INPUTS.method_files,
    output:
        not_computed="<results>/tables/{study}/not_computed.csv",
        page=report(
            "<results>/figures/{study}/study.html",
            caption="../report/summary.rst",
            category=STUDIES.report_page,
            labels={"result": "Summary"},
        ),
    log:
        "<logs>/summarize/{study}.log",
    benchmark:
        "<benchmarks>/summarize/{study}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.summarize,  # data, methods, metrics, models, reliability, seeds, studies
    script:
        "../scripts/summarize.py"


rule document_methods:
    """Write the pages of methods and metrics."""
    input:
        costs=INPUTS.all_costs(),
        data=expand("<results>/data/{data}.zarr.zip", data=STUDIES.gallery_sets),
        reliability=expand("<results>/tables/{study}/reliability.csv", study=STUDIES.rated),
    output:
        methods=report(
            "<results>/figures/methods.html",
            caption="../report/methods.rst",
            category="Methods",
            labels={"result": "Descriptions and cost of the methods"},
        ),
        metrics=report(
            "<results>/figures/metrics.html",
            caption="../report/metrics_page.rst",
            category="Metrics",
            labels={"result": "Definitions and reliability of the metrics"},
        ),
    log:
        "<logs>/document_methods.log",
    benchmark:
        "<benchmarks>/document_methods.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.document_methods,  # data, methods, metrics, models, seeds, studies
    script:
        "../scripts/document_methods.py"


rule overview:
    """Write the overview and, if studies have evidence on metrics, the page on trust in metrics."""
    input:
        summaries=INPUTS.all_summary_files(),
        thumbnails=INPUTS.all_thumbnails(),
        evaluations=INPUTS.all_evaluations(),
        not_computed=INPUTS.all_not_computed(),
        figures=INPUTS.all_figures(),
        maps=INPUTS.all_maps(),
        evidence=INPUTS.all_evidence(),
        # Without studies the overview describes the sets.
        data=expand("<results>/data/{data}.zarr.zip", data=[] if STUDIES.all else STUDIES.gallery_sets),
    output:
        **(
            {
                "trust": report(
                    "<results>/figures/trust.html",
                    caption="../report/trust.rst",
                    category="Trust in metrics",
                    labels={"result": "Which metrics can be trusted"},
                ),
                "evidence": "<results>/tables/trust.csv",
            }
            if STUDIES.evidenced
            else {}
        ),
        overview=report(
            "<results>/figures/overview.html",
            caption="../report/overview.rst",
            category="Overview",
            labels={"result": "Results of all studies"},
        ),
    log:
        "<logs>/overview.log",
    benchmark:
        "<benchmarks>/overview.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.overview,  # data, methods, metrics, models, reliability, seeds, studies
    script:
        "../scripts/overview.py"


rule provenance:
    """Write the provenance page: configuration, versions, data and times."""
    input:
        figures=INPUTS.all_figures(),
        maps=INPUTS.all_maps(),
        data=expand("<results>/data/{data}.zarr.zip", data=STUDIES.gallery_sets),
        predictions=INPUTS.all_predictions(),
        scores=INPUTS.all_scores(),
    output:
        report(
            "<results>/figures/provenance.html",
            caption="../report/provenance.rst",
            category="Provenance",
            labels={"result": "Configuration, versions, data and run times"},
        ),
    log:
        "<logs>/provenance.log",
    benchmark:
        "<benchmarks>/provenance.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.provenance,  # the whole configuration
    script:
        "../scripts/provenance.py"


rule report:
    """Write the report."""
    input:
        INPUTS.pages(),
        captions=local(sorted(str(path) for path in Path(CAPTIONS).glob("*.rst"))),
    output:
        report="<results>/report.html",
        configuration="<results>/configuration.yaml",
    log:
        "<logs>/report.log",
    benchmark:
        "<benchmarks>/report.tsv"
    localrule: True
    conda:
        "../envs/workflow.yaml"
    params:
        settings=PARAMS.report,  # the whole configuration
    script:
        "../scripts/report.py"
