"""Figures and tables of studies in which it is known what matters: BAM, and image or caption."""


rule plot_bam:
    input:
        premise="<results>/tables/{study}/premise.csv",
        metrics="<results>/tables/{study}/metrics.csv",
    output:
        premise=report(
            "<results>/figures/{study}/premise.html",
            caption="../workflow/report/premise.rst",
            category="Study {study}",
            labels={"shown": "premise: do objects matter to f_o, scenes to f_s?"},
        ),
        mcs=report(
            "<results>/figures/{study}/mcs.svg",
            caption="../workflow/report/mcs.rst",
            category="Study {study}",
            labels={"shown": "MCS: model contrast score"},
        ),
        idr=report(
            "<results>/figures/{study}/idr.svg",
            caption="../workflow/report/idr.rst",
            category="Study {study}",
            labels={"shown": "IDR: input dependence rate"},
        ),
        metrics=report(
            "<results>/figures/{study}/metrics.html",
            caption="../workflow/report/metrics.rst",
            category="Study {study}",
            labels={"shown": "MCS and IDR in numbers"},
        ),
    log:
        "<logs>/plot_bam/{study}.log",
    benchmark:
        "<benchmarks>/plot_bam/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.bam),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_bam,
    script:
        "../workflow/scripts/plot_bam.py"


rule plot_series:
    input:
        unpack(INPUTS.plot_series),
    output:
        commonality="<results>/tables/{study}/commonality.csv",
        series="<results>/tables/{study}/series.csv",
        correlation="<results>/tables/{study}/correlation.csv",
        accuracy=report(
            "<results>/figures/{study}/commonality.html",
            caption="../workflow/report/commonality.rst",
            category="Study {study}",
            labels={"shown": "the series: accuracy with and without the common object"},
        ),
        figure=report(
            "<results>/figures/{study}/series.svg",
            caption="../workflow/report/series.rst",
            category="Study {study}",
            labels={"shown": "the series: MCS against commonality"},
        ),
        maps=report(
            "<results>/figures/{study}/series_maps.html",
            caption="../workflow/report/series_maps.rst",
            category="Study {study}",
            labels={"shown": "the series: one image under every model"},
        ),
    log:
        "<logs>/plot_series/{study}.log",
    benchmark:
        "<benchmarks>/plot_series/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.series),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_series,
    script:
        "../workflow/scripts/plot_series.py"


rule plot_concepts:
    input:
        INPUTS.plot_concepts,
    output:
        table="<results>/tables/{study}/concepts.csv",
        figure=report(
            "<results>/figures/{study}/concepts.svg",
            caption="../workflow/report/concepts.rst",
            category="Study {study}",
            labels={"shown": "TCAV: layer by layer, with random concepts"},
        ),
        page=report(
            "<results>/figures/{study}/concepts.html",
            caption="../workflow/report/concepts.rst",
            category="Study {study}",
            labels={"shown": "TCAV in numbers"},
        ),
    log:
        "<logs>/plot_concepts/{study}.log",
    benchmark:
        "<benchmarks>/plot_concepts/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.concepts),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_concepts,
    script:
        "../workflow/scripts/plot_concepts.py"


rule plot_independence:
    input:
        unpack(INPUTS.plot_independence),
    output:
        metrics="<results>/tables/{study}/independence.csv",
        deltas="<results>/tables/{study}/deltas.csv",
        image="<results>/figures/{study}/delta.png",
        iir=report(
            "<results>/figures/{study}/iir.svg",
            caption="../workflow/report/iir.rst",
            category="Study {study}",
            labels={"shown": "IIR: input independence rate"},
        ),
        iir_difference=report(
            "<results>/figures/{study}/iir_difference.svg",
            caption="../workflow/report/iir_difference.rst",
            category="Study {study}",
            labels={"shown": "IIR: relative change of attribution"},
        ),
        delta=report(
            "<results>/figures/{study}/delta.html",
            caption="../workflow/report/delta.rst",
            category="Study {study}",
            labels={"shown": "IIR: the changes without effect"},
        ),
        convergence=report(
            "<results>/figures/{study}/convergence.svg",
            caption="../workflow/report/convergence.rst",
            category="Study {study}",
            labels={"shown": "IIR: how the changes were found"},
        ),
        independence=report(
            "<results>/figures/{study}/independence.html",
            caption="../workflow/report/independence.rst",
            category="Study {study}",
            labels={"shown": "IIR in numbers"},
        ),
    log:
        "<logs>/plot_independence/{study}.log",
    benchmark:
        "<benchmarks>/plot_independence/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.delta),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_independence,
    script:
        "../workflow/scripts/plot_independence.py"


rule plot_pairs:
    input:
        unpack(INPUTS.plot_pairs),
    output:
        image="<results>/figures/{study}/pairs.png",
        page=report(
            "<results>/figures/{study}/pairs.html",
            caption="../workflow/report/pairs.rst",
            category="Study {study}",
            labels={"shown": "IIR: maps before and after the change"},
        ),
    log:
        "<logs>/plot_pairs/{study}.log",
    benchmark:
        "<benchmarks>/plot_pairs/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.delta),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_pairs,
    script:
        "../workflow/scripts/plot_pairs.py"


rule judge_bam:
    input:
        unpack(INPUTS.judge_bam),
    output:
        ranking="<results>/tables/{study}/ranking.csv",
        claims="<results>/tables/{study}/claims.csv",
        ranking_page=report(
            "<results>/figures/{study}/ranking.html",
            caption="../workflow/report/ranking.rst",
            category="Study {study}",
            labels={"shown": "ranking of the methods by every metric"},
        ),
        claims_page=report(
            "<results>/figures/{study}/claims.html",
            caption="../workflow/report/claims.rst",
            category="Study {study}",
            labels={"shown": "the paper's claims, checked"},
        ),
    log:
        "<logs>/judge_bam/{study}.log",
    benchmark:
        "<benchmarks>/judge_bam/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.bam),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.judge_bam,
    script:
        "../workflow/scripts/judge_bam.py"


rule plot_caption:
    input:
        scores=INPUTS.study_scores,
        predictions=INPUTS.study_predictions,
    output:
        premise="<results>/tables/{study}/premise.csv",
        table="<results>/tables/{study}/table.csv",
        page=report(
            "<results>/figures/{study}/caption.html",
            caption="../workflow/report/caption.rst",
            category="Study {study}",
            labels={"shown": "image or caption: premise, INFD and attribution in numbers"},
        ),
        infidelity=report(
            "<results>/figures/{study}/infidelity.svg",
            caption="../workflow/report/caption_infidelity.rst",
            category="Study {study}",
            labels={"shown": "image or caption: INFD of both models"},
        ),
        attribution=report(
            "<results>/figures/{study}/attribution.svg",
            caption="../workflow/report/caption_attribution.rst",
            category="Study {study}",
            labels={"shown": "image or caption: attribution on the half that the model uses"},
        ),
    log:
        "<logs>/plot_caption/{study}.log",
    benchmark:
        "<benchmarks>/plot_caption/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.caption),
    conda:
        "../envs/report.yaml"
    params:
        settings=PARAMS.plot_caption,
    script:
        "../workflow/scripts/plot_caption.py"
