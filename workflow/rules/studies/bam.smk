"""Relative feature importance (BAM): the premise, MCS and IDR; as options the series, IIR and TCAV."""

BAM_INPUTS, BAM_PARAMS = INPUTS.of_kind("bam"), PARAMS.of_kind("bam")


rule score_bam:
    """Score a method by MCS and IDR."""
    input:
        maps_o_os=BAM_INPUTS.maps_o_os,
        maps_s_os=BAM_INPUTS.maps_s_os,
        maps_s_0s=BAM_INPUTS.maps_s_0s,
        predictions_o=BAM_INPUTS.predictions_o,
        predictions_s=BAM_INPUTS.predictions_s,
        data=BAM_INPUTS.data_os,
        data_without=BAM_INPUTS.data_0s,
        variant_data=BAM_INPUTS.variant_data,
        variant_maps_o=BAM_INPUTS.variant_maps_o,
        variant_maps_s=BAM_INPUTS.variant_maps_s,
    output:
        "<results>/scores/bam/{study}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_bam/{study}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_bam/{study}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=BAM_PARAMS.score_bam,  # studies
    script:
        "../../scripts/score_bam.py"


rule tabulate_bam:
    """Tabulate the premise, MCS and IDR of a BAM study."""
    input:
        scores=BAM_INPUTS.bam_scores,
        predictions=BAM_INPUTS.study_predictions,
    output:
        premise="<results>/tables/{study}/premise.csv",
        metrics="<results>/tables/{study}/metrics.csv",
    log:
        "<logs>/tabulate_bam/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_bam/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.tabulate_bam,  # metrics, studies
    script:
        "../../scripts/tabulate_bam.py"


rule check_claims:
    """Rank the methods by every metric, and check the paper's claims."""
    input:
        unpack(BAM_INPUTS.check_claims),
    output:
        ranking="<results>/tables/{study}/ranking.csv",
        claims="<results>/tables/{study}/claims.csv",
        ranking_page=report(
            "<results>/figures/{study}/ranking.html",
            caption="../../report/ranking.rst",
            category=STUDIES.report_page,
            labels={"result": "Ranking of the methods by every metric"},
        ),
        claims_page=report(
            "<results>/figures/{study}/claims.html",
            caption="../../report/claims.rst",
            category=STUDIES.report_page,
            labels={"result": "Claims of the paper"},
        ),
    log:
        "<logs>/check_claims/{study}.log",
    benchmark:
        "<benchmarks>/check_claims/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.check_claims,  # data, methods, metrics, models, reliability, seeds, studies
    script:
        "../../scripts/check_claims.py"


rule plot_bam:
    """Plot the premise, MCS and IDR."""
    input:
        premise="<results>/tables/{study}/premise.csv",
        metrics="<results>/tables/{study}/metrics.csv",
    output:
        premise=report(
            "<results>/figures/{study}/premise.html",
            caption="../../report/premise.rst",
            category=STUDIES.report_page,
            labels={"result": "Premise: accuracy without object or scene"},
        ),
        mcs=report(
            "<results>/figures/{study}/mcs.svg",
            caption="../../report/mcs.rst",
            category=STUDIES.report_page,
            labels={"result": "MCS: model contrast score"},
        ),
        idr=report(
            "<results>/figures/{study}/idr.svg",
            caption="../../report/idr.rst",
            category=STUDIES.report_page,
            labels={"result": "IDR: input dependence rate"},
        ),
        metrics=report(
            "<results>/figures/{study}/metrics.html",
            caption="../../report/metrics.rst",
            category=STUDIES.report_page,
            labels={"result": "Table of MCS and IDR"},
        ),
    log:
        "<logs>/plot_bam/{study}.log",
    benchmark:
        "<benchmarks>/plot_bam/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.plot_bam,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_bam.py"


rule score_series:
    """Score a method by MCS between the models of a series."""
    input:
        maps=BAM_INPUTS.series_maps,
        predictions=BAM_INPUTS.series_predictions,
        data=BAM_INPUTS.last_series_data,
    output:
        "<results>/scores/series/{study}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_series/{study}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_series/{study}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "series")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=BAM_PARAMS.score_series,  # data, models, studies
    script:
        "../../scripts/score_series.py"


rule tabulate_series:
    """Tabulate a series."""
    input:
        scores=BAM_INPUTS.series_scores,
        predictions=BAM_INPUTS.series_predictions,
        concepts=BAM_INPUTS.concepts,
    output:
        commonality="<results>/tables/{study}/commonality.csv",
        series="<results>/tables/{study}/series.csv",
        correlation="<results>/tables/{study}/correlation.csv",
    log:
        "<logs>/tabulate_series/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_series/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "series")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.tabulate_series,  # data, models, studies
    script:
        "../../scripts/tabulate_series.py"


rule plot_series:
    """Plot a series."""
    input:
        predictions=BAM_INPUTS.first_series_predictions,
        data=BAM_INPUTS.series_data,
        maps=BAM_INPUTS.first_series_maps,
        commonality="<results>/tables/{study}/commonality.csv",
        series="<results>/tables/{study}/series.csv",
        correlation="<results>/tables/{study}/correlation.csv",
    output:
        accuracy=report(
            "<results>/figures/{study}/commonality.html",
            caption="../../report/commonality.rst",
            category=STUDIES.report_page,
            labels={"result": "Commonality series: accuracy with and without the common object"},
        ),
        figure=report(
            "<results>/figures/{study}/series.svg",
            caption="../../report/series.rst",
            category=STUDIES.report_page,
            labels={"result": "Commonality series: MCS by k"},
        ),
        maps=report(
            "<results>/figures/{study}/series_maps.png",
            caption="../../report/series_maps.rst",
            category=STUDIES.report_page,
            labels={"result": "Commonality series: maps of one image by model"},
        ),
    log:
        "<logs>/plot_series/{study}.log",
    benchmark:
        "<benchmarks>/plot_series/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "series")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.plot_series,  # data, methods, metrics, models, seeds, studies
    script:
        "../../scripts/plot_series.py"


rule score_concepts:
    """Measure by TCAV how much a model depends on the common object."""
    input:
        with_concept=BAM_INPUTS.data_os,
        without=BAM_INPUTS.data_0s,
        data=BAM_INPUTS.model_data,
        weights="<results>/models/{model}/seed{seed}/weights.pt",
        predictions="<results>/models/{model}/seed{seed}/predictions.parquet",
    output:
        "<results>/scores/concepts/{study}/seed{seed}/{model}.parquet",
    log:
        "<logs>/score_concepts/{study}/seed{seed}/{model}.log",
    benchmark:
        "<benchmarks>/score_concepts/{study}/seed{seed}/{model}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "concepts")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=BAM_PARAMS.score_concepts,  # data, device, metrics, models, studies
    script:
        "../../scripts/score_concepts.py"


rule tabulate_concepts:
    """Tabulate TCAV."""
    input:
        BAM_INPUTS.concept_scores,
    output:
        "<results>/tables/{study}/concepts.csv",
    log:
        "<logs>/tabulate_concepts/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_concepts/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "concepts")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.tabulate_concepts,  # metrics
    script:
        "../../scripts/tabulate_concepts.py"


rule plot_concepts:
    """Plot TCAV."""
    input:
        table="<results>/tables/{study}/concepts.csv",
        scores=BAM_INPUTS.concept_scores,
    output:
        figure=report(
            "<results>/figures/{study}/concepts.svg",
            caption="../../report/concepts.rst",
            category=STUDIES.report_page,
            labels={"result": "TCAV by layer"},
        ),
        page=report(
            "<results>/figures/{study}/concepts.html",
            caption="../../report/concepts.rst",
            category=STUDIES.report_page,
            labels={"result": "Table of TCAV"},
        ),
    log:
        "<logs>/plot_concepts/{study}.log",
    benchmark:
        "<benchmarks>/plot_concepts/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "concepts")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.plot_concepts,  # data, methods, metrics, models, studies
    script:
        "../../scripts/plot_concepts.py"


rule optimize_patch:
    """Optimize a patch that does not change the model output."""
    input:
        weights=BAM_INPUTS.independence_weights,
        data=BAM_INPUTS.data_os,
        data_without=BAM_INPUTS.data_0s,
    output:
        "<results>/data/{study}_delta_seed{seed}.zarr.zip",
    log:
        "<logs>/optimize_patch/{study}/seed{seed}.log",
    benchmark:
        "<benchmarks>/optimize_patch/{study}/seed{seed}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "independence")),
    priority: EARLY
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=BAM_PARAMS.optimize_patch,  # data, device, metrics, models, studies
    script:
        "../../scripts/optimize_patch.py"


rule score_independence:
    """Score a method by IIR."""
    input:
        maps=BAM_INPUTS.delta_maps,
        data="<results>/data/{study}_delta_seed{seed}.zarr.zip",
        predictions=BAM_INPUTS.independence_predictions,
    output:
        "<results>/scores/independence/{study}/seed{seed}/{method}.parquet",
    log:
        "<logs>/score_independence/{study}/seed{seed}/{method}.log",
    benchmark:
        "<benchmarks>/score_independence/{study}/seed{seed}/{method}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "independence")),
    conda:
        "../../envs/models.yaml"
    threads: 1
    params:
        settings=BAM_PARAMS.score_independence,  # metrics, studies
    script:
        "../../scripts/score_independence.py"


rule tabulate_independence:
    """Tabulate IIR and the patches."""
    input:
        scores=BAM_INPUTS.delta_scores,
        deltas=BAM_INPUTS.deltas,
    output:
        metrics="<results>/tables/{study}/independence.csv",
        deltas="<results>/tables/{study}/deltas.csv",
    log:
        "<logs>/tabulate_independence/{study}.log",
    benchmark:
        "<benchmarks>/tabulate_independence/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "independence")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.tabulate_independence,  # metrics, seeds, studies
    script:
        "../../scripts/tabulate_independence.py"


rule plot_independence:
    """Plot IIR and the patches."""
    input:
        deltas=BAM_INPUTS.deltas,
        data=BAM_INPUTS.data_os,
        metrics="<results>/tables/{study}/independence.csv",
        changes="<results>/tables/{study}/deltas.csv",
    output:
        iir=report(
            "<results>/figures/{study}/iir.svg",
            caption="../../report/iir.rst",
            category=STUDIES.report_page,
            labels={"result": "IIR: input independence rate"},
        ),
        iir_difference=report(
            "<results>/figures/{study}/iir_difference.svg",
            caption="../../report/iir_difference.rst",
            category=STUDIES.report_page,
            labels={"result": "IIR: relative change of attribution"},
        ),
        delta=report(
            "<results>/figures/{study}/delta.png",
            caption="../../report/delta.rst",
            category=STUDIES.report_page,
            labels={"result": "IIR: examples of δ"},
        ),
        convergence=report(
            "<results>/figures/{study}/convergence.svg",
            caption="../../report/convergence.rst",
            category=STUDIES.report_page,
            labels={"result": "IIR: convergence of δ"},
        ),
        independence=report(
            "<results>/figures/{study}/independence.html",
            caption="../../report/independence.rst",
            category=STUDIES.report_page,
            labels={"result": "Tables of IIR"},
        ),
    log:
        "<logs>/plot_independence/{study}.log",
    benchmark:
        "<benchmarks>/plot_independence/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "independence")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.plot_independence,  # data, methods, metrics, models, report, studies
    script:
        "../../scripts/plot_independence.py"


rule plot_pairs:
    """Plot maps with and without the patch."""
    input:
        data=BAM_INPUTS.first_delta,
        maps=BAM_INPUTS.first_delta_maps,
    output:
        image=report(
            "<results>/figures/{study}/pairs.png",
            caption="../../report/pairs.rst",
            category=STUDIES.report_page,
            labels={"result": "IIR: maps with and without δ"},
        ),
    log:
        "<logs>/plot_pairs/{study}.log",
    benchmark:
        "<benchmarks>/plot_pairs/{study}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.of_kind("bam", "independence")),
    conda:
        "../../envs/report.yaml"
    params:
        settings=BAM_PARAMS.plot_pairs,  # data, methods, metrics, models, report, studies
    script:
        "../../scripts/plot_pairs.py"
