"""Relative feature importance (BAM): the premise, MCS and IDR; the series, IIR and TCAV where a study asks for them."""


rule score_bam:
    input:
        unpack(score_bam_input),
    output:
        BAM_SCORES,
    log:
        f"{LOGS}/score_bam/{{study}}/seed{{seed}}/{{method}}.log",
    benchmark:
        f"{BENCHMARKS}/score_bam/{{study}}/seed{{seed}}/{{method}}.tsv"
    wildcard_constraints:
        study=one_of(BAM_STUDIES),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(
            "score_bam.py",
            reduction=CATALOGUE.metrics["mcs"].reduction,
            study=wildcards.study,
            data=CONFIG.studies[wildcards.study].data,
            object_model=CONFIG.studies[wildcards.study].models[0],
            scene_model=CONFIG.studies[wildcards.study].models[1],
            variants=variants_of(wildcards.study),
            method=wildcards.method,
            seed=int(wildcards.seed),
        ),
    script:
        "../workflow/scripts/score_bam.py"


rule tabulate_bam:
    input:
        scores=lambda wildcards: expand(
            BAM_SCORES,
            study=wildcards.study,
            seed=CONFIG.seeds,
            method=CONFIG.studies[wildcards.study].methods,
        ),
        predictions=lambda wildcards: expand(
            PREDICTIONS,
            model=CONFIG.studies[wildcards.study].models,
            seed=CONFIG.seeds,
        ),
    output:
        premise=f"{TABLES}/premise.csv",
        metrics=f"{TABLES}/metrics.csv",
    log:
        f"{LOGS}/tabulate_bam/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_bam/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(BAM_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "tabulate_bam.py",
            data=CONFIG.studies[wildcards.study].data,
            object_model=CONFIG.studies[wildcards.study].models[0],
            scene_model=CONFIG.studies[wildcards.study].models[1],
            variants=variants_of(wildcards.study),
            metrics=metric_parameters("mcs", "idr"),
        ),
    script:
        "../workflow/scripts/tabulate_bam.py"


rule score_series:
    input:
        maps=lambda wildcards: series_maps(wildcards.study, wildcards.seed, wildcards.method),
        predictions=lambda wildcards: expand(
            PREDICTIONS, model=comparison_of(wildcards.study).series, seed=wildcards.seed
        ),
        data=lambda wildcards: DATA.format(data=series_data(wildcards.study)[-1]),
    output:
        SERIES_SCORES,
    log:
        f"{LOGS}/score_series/{{study}}/seed{{seed}}/{{method}}.log",
    benchmark:
        f"{BENCHMARKS}/score_series/{{study}}/seed{{seed}}/{{method}}.tsv"
    wildcard_constraints:
        study=one_of(SERIES_STUDIES),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(
            "score_series.py",
            reduction=CATALOGUE.metrics["mcs"].reduction,
            study=wildcards.study,
            method=wildcards.method,
            seed=int(wildcards.seed),
            **series_settings(wildcards.study),
        ),
    script:
        "../workflow/scripts/score_series.py"


rule find_delta:
    input:
        weights=lambda wildcards: f"{MODEL}/weights.pt".format(
            model=comparison_of(wildcards.study).independence.model, seed=wildcards.seed
        ),
        data=lambda wildcards: DATA.format(data=f"{CONFIG.studies[wildcards.study].data}_os"),
        data_without=lambda wildcards: DATA.format(data=f"{CONFIG.studies[wildcards.study].data}_0s"),
    output:
        f"{RESULTS}/data/{{study}}_delta_seed{{seed}}.zarr.zip",
    log:
        f"{LOGS}/find_delta/{{study}}/seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/find_delta/{{study}}/seed{{seed}}.tsv"
    wildcard_constraints:
        study=one_of(DELTA_STUDIES),
    priority: EARLY
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=find_delta_settings,
    script:
        "../workflow/scripts/find_delta.py"


rule score_independence:
    input:
        maps=lambda wildcards: all_parts(
            MAPS,
            delta_set(wildcards.study, wildcards.seed),
            model=comparison_of(wildcards.study).independence.model,
            **wildcards,
        ),
        data=lambda wildcards: DATA.format(data=delta_set(wildcards.study, wildcards.seed)),
        predictions=lambda wildcards: PREDICTIONS.format(
            model=comparison_of(wildcards.study).independence.model, seed=wildcards.seed
        ),
    output:
        DELTA_SCORES,
    log:
        f"{LOGS}/score_independence/{{study}}/seed{{seed}}/{{method}}.log",
    benchmark:
        f"{BENCHMARKS}/score_independence/{{study}}/seed{{seed}}/{{method}}.tsv"
    wildcard_constraints:
        study=one_of(DELTA_STUDIES),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(
            "score_independence.py",
            reduction=CATALOGUE.metrics["iir"].reduction,
            study=wildcards.study,
            data=CONFIG.studies[wildcards.study].data,
            model=comparison_of(wildcards.study).independence.model,
            method=wildcards.method,
            threshold=CONFIG.metrics["iir"].parameters["threshold"],
            seed=int(wildcards.seed),
        ),
    script:
        "../workflow/scripts/score_independence.py"


rule score_concepts:
    input:
        weights=f"{MODEL}/weights.pt",
        predictions=PREDICTIONS,
        with_concept=lambda wildcards: DATA.format(data=f"{CONFIG.studies[wildcards.study].data}_os"),
        without=lambda wildcards: DATA.format(data=f"{CONFIG.studies[wildcards.study].data}_0s"),
        data=lambda wildcards: DATA.format(data=concept_data(wildcards.study, wildcards.model)),
    output:
        CONCEPT_SCORES,
    log:
        f"{LOGS}/score_concepts/{{study}}/seed{{seed}}/{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/score_concepts/{{study}}/seed{{seed}}/{{model}}.tsv"
    wildcard_constraints:
        study=one_of(CONCEPT_STUDIES),
    conda:
        "../envs/models.yaml"
    threads: 1
    params:
        settings=score_concepts_settings,
    script:
        "../workflow/scripts/score_concepts.py"


rule tabulate_series:
    input:
        scores=lambda wildcards: expand(
            SERIES_SCORES,
            study=wildcards.study,
            seed=CONFIG.seeds,
            method=CONFIG.studies[wildcards.study].methods,
        ),
        predictions=lambda wildcards: expand(
            PREDICTIONS, model=comparison_of(wildcards.study).series, seed=CONFIG.seeds
        ),
        concepts=lambda wildcards: f"{TABLES}/concepts.csv" if wildcards.study in CONCEPT_STUDIES else [],
    output:
        commonality=f"{TABLES}/commonality.csv",
        series=f"{TABLES}/series.csv",
        correlation=f"{TABLES}/correlation.csv",
    log:
        f"{LOGS}/tabulate_series/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_series/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(SERIES_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings("tabulate_series.py", **series_settings(wildcards.study)),
    script:
        "../workflow/scripts/tabulate_series.py"


rule tabulate_concepts:
    input:
        concept_scores,
    output:
        f"{TABLES}/concepts.csv",
    log:
        f"{LOGS}/tabulate_concepts/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_concepts/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(CONCEPT_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "tabulate_concepts.py", significance=CONFIG.metrics["tcav"].parameters["significance"]
        ),
    script:
        "../workflow/scripts/tabulate_concepts.py"


rule tabulate_independence:
    input:
        scores=lambda wildcards: expand(
            DELTA_SCORES,
            study=wildcards.study,
            seed=CONFIG.seeds,
            method=CONFIG.studies[wildcards.study].methods,
        ),
        deltas=lambda wildcards: [DATA.format(data=delta_set(wildcards.study, seed)) for seed in CONFIG.seeds],
    output:
        metrics=f"{TABLES}/independence.csv",
        deltas=f"{TABLES}/deltas.csv",
    log:
        f"{LOGS}/tabulate_independence/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_independence/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(DELTA_STUDIES),
    conda:
        "../envs/report.yaml"
    params:
        settings=lambda wildcards: settings(
            "tabulate_independence.py",
            data=CONFIG.studies[wildcards.study].data,
            seeds=CONFIG.seeds,
            metrics=metric_parameters("iir"),
        ),
    script:
        "../workflow/scripts/tabulate_independence.py"
