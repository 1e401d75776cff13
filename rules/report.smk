"""Pages that put all of a run into words, and the one HTML file that carries these and all figures and tables."""


rule summarise:
    input:
        unpack(summary_input),
    output:
        report(
            f"{FIGURES}/{{study}}/study.html",
            caption="../workflow/report/summary.rst",
            category=study_label,
            labels={"shown": SUMMARY},
        ),
    log:
        f"{LOGS}/summarise/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/summarise/{{study}}.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings("summarise.py", study=study_facts(wildcards.study)),
    script:
        "../workflow/scripts/summarise.py"


rule describe:
    input:
        costs=flat(all_parts(COSTS, **drawn) for drawn in DRAWN),
        data=expand(DATA, data=SHOWN_SETS),
        reliability=[f"{RESULTS}/tables/{study}/reliability.csv" for study in RATED_STUDIES],
    output:
        methods=report(
            f"{FIGURES}/methods.html",
            caption="../workflow/report/methods.rst",
            category="Methods",
            labels={"shown": "what the methods are, and what a map costs"},
        ),
        metrics=report(
            f"{FIGURES}/metrics.html",
            caption="../workflow/report/metrics_page.rst",
            category="Metrics",
            labels={"shown": "what the metrics are, and how reliable"},
        ),
    log:
        f"{LOGS}/describe.log",
    benchmark:
        f"{BENCHMARKS}/describe.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=describe_settings(),
    script:
        "../workflow/scripts/describe.py"


# In the order in which the report shows them; around them go the overview and provenance, which tell how long all took.
SHOWN = [
    *(path for study in CONFIG.studies for path in reported_of(study)),
    *(rules.describe.output if CONFIG.studies else []),
    *(rules.plot_training.output if STUDIED_MODELS else []),
]


rule overview:
    input:
        [path for study in CONFIG.studies for path in flat(summary_files(study).values())],
        [path for study in CONFIG.studies for paths in evaluations_of(study).values() for path in paths],
        SHOWN,
        maps=flat(all_parts(MAPS, **drawn) for drawn in DRAWN),
        data=[] if CONFIG.studies else expand(DATA, data=SHOWN_SETS),
    output:
        report(
            f"{FIGURES}/overview.html",
            caption="../workflow/report/overview.rst",
            category="Overview",
            labels={"shown": "results and their uncertainty"},
        ),
    log:
        f"{LOGS}/overview.log",
    benchmark:
        f"{BENCHMARKS}/overview.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=overview_settings(),
    script:
        "../workflow/scripts/overview.py"


rule provenance:
    input:
        SHOWN,
        maps=flat(all_parts(MAPS, **drawn) for drawn in DRAWN),
        data=expand(DATA, data=SHOWN_SETS),
        predictions=flat(predictions_of(study) for study in CONFIG.studies),
        scores=flat(scores_of(study) for study in CONFIG.studies),
    output:
        report(
            f"{FIGURES}/provenance.html",
            caption="../workflow/report/provenance.rst",
            category="Provenance",
            labels={"shown": "configuration, versions, data, times"},
        ),
    log:
        f"{LOGS}/provenance.log",
    benchmark:
        f"{BENCHMARKS}/provenance.tsv"
    conda:
        "../envs/report.yaml"
    params:
        settings=settings(
            "provenance.py",
            sets=SHOWN_SETS,
            benchmarks=BENCHMARKS,
            configuration=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        ),
    script:
        "../workflow/scripts/provenance.py"


REPORTED = [*rules.overview.output, *SHOWN, *rules.provenance.output]


rule report:
    input:
        REPORTED,
        captions=sorted(str(path) for path in Path(CAPTIONS).glob("*.rst")),
    output:
        report=f"{RESULTS}/report.html",
        configuration=f"{RESULTS}/configuration.yaml",
    log:
        f"{LOGS}/report.log",
    benchmark:
        f"{BENCHMARKS}/report.tsv"
    localrule: True
    conda:
        "../envs/workflow.yaml"
    params:
        settings=settings("report.py", targets=REPORTED, configuration=config),
    script:
        "../workflow/scripts/report.py"
