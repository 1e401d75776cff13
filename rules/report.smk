"""Pages that put all of a run into words, and the one HTML file that carries these and all figures and tables."""


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


rule summarise:
    input:
        unpack(INPUTS.summarise),
    output:
        report(
            "<results>/figures/{study}/study.html",
            caption="../workflow/report/summary.rst",
            category="Study {study}",
            labels={"shown": "summary: ranks, intervals and reliability in words"},
        ),
    log:
        "<logs>/summarise/{study}.log",
    benchmark:
        "<benchmarks>/summarise/{study}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.summarise,
    script:
        "../workflow/scripts/summarise.py"


rule describe:
    input:
        **INPUTS.describe(),
    output:
        methods=report(
            "<results>/figures/methods.html",
            caption="../workflow/report/methods.rst",
            category="Methods",
            labels={"shown": "what the methods are, and what a map costs"},
        ),
        metrics=report(
            "<results>/figures/metrics.html",
            caption="../workflow/report/metrics_page.rst",
            category="Metrics",
            labels={"shown": "what the metrics are, and how reliable"},
        ),
    log:
        "<logs>/describe.log",
    benchmark:
        "<benchmarks>/describe.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.describe,
    script:
        "../workflow/scripts/describe.py"


rule overview:
    input:
        **INPUTS.overview(),
    output:
        report(
            "<results>/figures/overview.html",
            caption="../workflow/report/overview.rst",
            category="Overview",
            labels={"shown": "results and their uncertainty"},
        ),
    log:
        "<logs>/overview.log",
    benchmark:
        "<benchmarks>/overview.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.overview,
    script:
        "../workflow/scripts/overview.py"


rule provenance:
    input:
        **INPUTS.provenance(),
    output:
        report(
            "<results>/figures/provenance.html",
            caption="../workflow/report/provenance.rst",
            category="Provenance",
            labels={"shown": "configuration, versions, data, times"},
        ),
    log:
        "<logs>/provenance.log",
    benchmark:
        "<benchmarks>/provenance.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.provenance,
    script:
        "../workflow/scripts/provenance.py"


rule report:
    input:
        INPUTS.report(),
        captions=sorted(str(path) for path in Path(CAPTIONS).glob("*.rst")),
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
        settings=PARAMS.report,
    script:
        "../workflow/scripts/report.py"
