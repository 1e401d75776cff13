"""How far scores can be trusted, for every study that rates methods: reliability of metrics, and order of methods."""


rule tabulate_reliability:
    input:
        unpack(rated_input),
    output:
        reliability=f"{RESULTS}/tables/{{study}}/reliability.csv",
        agreement=f"{RESULTS}/tables/{{study}}/agreement.csv",
        order=f"{RESULTS}/tables/{{study}}/order.csv",
        consistency=f"{RESULTS}/tables/{{study}}/consistency.csv",
        rankings=f"{RESULTS}/tables/{{study}}/rankings.csv",
        variance=f"{RESULTS}/tables/{{study}}/variance.csv",
    log:
        f"{LOGS}/tabulate_reliability/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_reliability/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(RATED_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=tabulate_reliability_settings,
    script:
        "../workflow/scripts/tabulate_reliability.py"


rule plot_reliability:
    input:
        **{name: rules.tabulate_reliability.output[name] for name in rules.tabulate_reliability.output.keys()},
    output:
        reliability=report(
            f"{FIGURES}/{{study}}/reliability.svg",
            caption="../workflow/report/reliability.rst",
            category=study_label,
            labels={"shown": "reliability: do images rank methods alike?"},
        ),
        agreement=report(
            f"{FIGURES}/{{study}}/agreement.svg",
            caption="../workflow/report/agreement.rst",
            category=study_label,
            labels={"shown": "reliability: do seeds, classes and halves agree?"},
        ),
        order=report(
            f"{FIGURES}/{{study}}/order.svg",
            caption="../workflow/report/order.rst",
            category=study_label,
            labels={"shown": "reliability: rank sets of the methods"},
        ),
        consistency=report(
            f"{FIGURES}/{{study}}/consistency.svg",
            caption="../workflow/report/consistency.rst",
            category=study_label,
            labels={"shown": "reliability: which metrics agree?"},
        ),
        page=report(
            f"{FIGURES}/{{study}}/reliability.html",
            caption="../workflow/report/reliability_page.rst",
            category=study_label,
            labels={"shown": "reliability in numbers"},
        ),
    log:
        f"{LOGS}/plot_reliability/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_reliability/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(RATED_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_reliability.py",
            controls=controls_of(wildcards.study),
            level=CONFIG.reliability.level,
        ),
    script:
        "../workflow/scripts/plot_reliability.py"
