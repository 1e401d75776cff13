"""Figures and pages of studies in which it is known what matters: BAM, and image or caption."""


rule plot_bam:
    input:
        premise=f"{RESULTS}/tables/{{study}}/premise.csv",
        metrics=f"{RESULTS}/tables/{{study}}/metrics.csv",
    output:
        premise=report(
            f"{FIGURES}/{{study}}/premise.html",
            caption="../workflow/report/premise.rst",
            category=study_label,
            labels={"shown": "premise: do objects matter to f_o, scenes to f_s?"},
        ),
        mcs=report(
            f"{FIGURES}/{{study}}/mcs.svg",
            caption="../workflow/report/mcs.rst",
            category=study_label,
            labels={"shown": "MCS: model contrast score"},
        ),
        idr=report(
            f"{FIGURES}/{{study}}/idr.svg",
            caption="../workflow/report/idr.rst",
            category=study_label,
            labels={"shown": "IDR: input dependence rate"},
        ),
        metrics=report(
            f"{FIGURES}/{{study}}/metrics.html",
            caption="../workflow/report/metrics.rst",
            category=study_label,
            labels={"shown": "MCS and IDR in numbers"},
        ),
    log:
        f"{LOGS}/plot_bam/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_bam/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(BAM_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_bam.py", study=wildcards.study, metrics=metric_parameters("mcs", "idr")
        ),
    script:
        "../workflow/scripts/plot_bam.py"


rule plot_series:
    input:
        commonality=f"{TABLES}/commonality.csv",
        series=f"{TABLES}/series.csv",
        correlation=f"{TABLES}/correlation.csv",
        predictions=lambda wildcards: expand(
            PREDICTIONS, model=comparison_of(wildcards.study).series, seed=CONFIG.seeds[0]
        ),
        data=lambda wildcards: expand(DATA, data=series_data(wildcards.study)),
        maps=lambda wildcards: [
            path
            for method in CONFIG.studies[wildcards.study].methods
            for path in series_maps(wildcards.study, CONFIG.seeds[0], method)
        ],
    output:
        accuracy=report(
            f"{FIGURES}/{{study}}/commonality.html",
            caption="../workflow/report/commonality.rst",
            category=study_label,
            labels={"shown": "the series: accuracy with and without the common object"},
        ),
        figure=report(
            f"{FIGURES}/{{study}}/series.svg",
            caption="../workflow/report/series.rst",
            category=study_label,
            labels={"shown": "the series: MCS against commonality"},
        ),
        maps=report(
            f"{FIGURES}/{{study}}/series_maps.html",
            caption="../workflow/report/series_maps.rst",
            category=study_label,
            labels={"shown": "the series: one image under every model"},
        ),
    log:
        f"{LOGS}/plot_series/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_series/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(SERIES_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_series.py",
            methods=CONFIG.studies[wildcards.study].methods,
            seed=CONFIG.seeds[0],
            **series_settings(wildcards.study),
        ),
    script:
        "../workflow/scripts/plot_series.py"


rule plot_concepts:
    input:
        table=f"{TABLES}/concepts.csv",
        scores=concept_scores,
    output:
        figure=report(
            f"{FIGURES}/{{study}}/concepts.svg",
            caption="../workflow/report/concepts.rst",
            category=study_label,
            labels={"shown": "TCAV: layer by layer, with random concepts"},
        ),
        page=report(
            f"{FIGURES}/{{study}}/concepts.html",
            caption="../workflow/report/concepts.rst",
            category=study_label,
            labels={"shown": "TCAV in numbers"},
        ),
    log:
        f"{LOGS}/plot_concepts/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_concepts/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(CONCEPT_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_concepts.py",
            concept=CONFIG.data[CONFIG.studies[wildcards.study].data].common_object,
            significance=CONFIG.metrics["tcav"].parameters["significance"],
        ),
    script:
        "../workflow/scripts/plot_concepts.py"


rule plot_independence:
    input:
        metrics=f"{TABLES}/independence.csv",
        changes=f"{TABLES}/deltas.csv",
        deltas=lambda wildcards: [DATA.format(data=delta_set(wildcards.study, seed)) for seed in CONFIG.seeds],
        data=lambda wildcards: DATA.format(data=f"{CONFIG.studies[wildcards.study].data}_os"),
    output:
        image=f"{FIGURES}/{{study}}/delta.png",
        iir=report(
            f"{FIGURES}/{{study}}/iir.svg",
            caption="../workflow/report/iir.rst",
            category=study_label,
            labels={"shown": "IIR: input independence rate"},
        ),
        iir_difference=report(
            f"{FIGURES}/{{study}}/iir_difference.svg",
            caption="../workflow/report/iir_difference.rst",
            category=study_label,
            labels={"shown": "IIR: relative change of attribution"},
        ),
        delta=report(
            f"{FIGURES}/{{study}}/delta.html",
            caption="../workflow/report/delta.rst",
            category=study_label,
            labels={"shown": "IIR: the changes without effect"},
        ),
        convergence=report(
            f"{FIGURES}/{{study}}/convergence.svg",
            caption="../workflow/report/convergence.rst",
            category=study_label,
            labels={"shown": "IIR: how the changes were found"},
        ),
        independence=report(
            f"{FIGURES}/{{study}}/independence.html",
            caption="../workflow/report/independence.rst",
            category=study_label,
            labels={"shown": "IIR in numbers"},
        ),
    log:
        f"{LOGS}/plot_independence/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_independence/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(DELTA_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_independence.py",
            study=wildcards.study,
            images=CONFIG.gallery_images,
        ),
    script:
        "../workflow/scripts/plot_independence.py"


rule plot_pairs:
    input:
        data=lambda wildcards: DATA.format(data=delta_set(wildcards.study, CONFIG.seeds[0])),
        maps=lambda wildcards: all_parts(
            MAPS,
            delta_set(wildcards.study, CONFIG.seeds[0]),
            model=comparison_of(wildcards.study).independence.model,
            seed=CONFIG.seeds[0],
            method=CONFIG.studies[wildcards.study].methods,
        ),
    output:
        image=f"{FIGURES}/{{study}}/pairs.png",
        page=report(
            f"{FIGURES}/{{study}}/pairs.html",
            caption="../workflow/report/pairs.rst",
            category=study_label,
            labels={"shown": "IIR: maps before and after the change"},
        ),
    log:
        f"{LOGS}/plot_pairs/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_pairs/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(DELTA_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_pairs.py",
            study=wildcards.study,
            model=comparison_of(wildcards.study).independence.model,
            methods=CONFIG.studies[wildcards.study].methods,
            images=CONFIG.gallery_images,
        ),
    script:
        "../workflow/scripts/plot_pairs.py"


rule judge_bam:
    input:
        unpack(judge_bam_input),
    output:
        ranking=f"{TABLES}/ranking.csv",
        claims=f"{TABLES}/claims.csv",
        ranking_page=report(
            f"{FIGURES}/{{study}}/ranking.html",
            caption="../workflow/report/ranking.rst",
            category=study_label,
            labels={"shown": "ranking of the methods by every metric"},
        ),
        claims_page=report(
            f"{FIGURES}/{{study}}/claims.html",
            caption="../workflow/report/claims.rst",
            category=study_label,
            labels={"shown": "the paper's claims, checked"},
        ),
    log:
        f"{LOGS}/judge_bam/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/judge_bam/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(BAM_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "judge_bam.py",
            study=wildcards.study,
            object_model=CONFIG.studies[wildcards.study].models[0],
            scene_model=CONFIG.studies[wildcards.study].models[1],
            data=CONFIG.studies[wildcards.study].data,
            methods={name: registered_as(name) for name in CONFIG.studies[wildcards.study].methods},
            classes={
                "object": len(CONFIG.data[CONFIG.studies[wildcards.study].data].objects),
                "scene": len(CONFIG.data[CONFIG.studies[wildcards.study].data].scenes),
            },
        ),
    script:
        "../workflow/scripts/judge_bam.py"


rule plot_caption:
    input:
        premise=f"{TABLES}/premise.csv",
        table=f"{TABLES}/table.csv",
    output:
        page=report(
            f"{FIGURES}/{{study}}/caption.html",
            caption="../workflow/report/caption.rst",
            category=study_label,
            labels={"shown": "image or caption: premise, INFD and attribution in numbers"},
        ),
        infidelity=report(
            f"{FIGURES}/{{study}}/infidelity.svg",
            caption="../workflow/report/caption_infidelity.rst",
            category=study_label,
            labels={"shown": "image or caption: INFD of both models"},
        ),
        attribution=report(
            f"{FIGURES}/{{study}}/attribution.svg",
            caption="../workflow/report/caption_attribution.rst",
            category=study_label,
            labels={"shown": "image or caption: attribution on the half that the model uses"},
        ),
    log:
        f"{LOGS}/plot_caption/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_caption/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(CAPTION_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "plot_caption.py",
            study=wildcards.study,
            methods={name: compared_as(name) for name in CONFIG.studies[wildcards.study].methods},
        ),
    script:
        "../workflow/scripts/plot_caption.py"
