"""What the pages that put a run into words are told: studies, methods and metrics as plain facts."""

from saliency_assay.metrics.formulas import FORMULAS

SUMMARY = "summary: ranks, intervals and reliability in words"


def summary_files(study):
    """What a study's words are made of, by name."""
    entry = CONFIG.studies[study]
    first = {"model": entry.models[0], "method": entry.methods[0], "seed": CONFIG.seeds[0]}
    files = {
        "data": DATA.format(data=gallery_set(study)),
        "maps": all_parts(MAPS, gallery_set(study), **first),
    }
    tables = ["order", "reliability", "rankings", "agreement"] if study in RATED_STUDIES else []
    own = KIND_OF[study].tables(options_of(study))
    tables += [name for name in KIND_OF[study].caution_tables if name in own]
    return files | {name: f"{RESULTS}/tables/{study}/{name}.csv" for name in tables}


def evaluations_of(study):
    """How good each model of a study is, by seed."""
    return {
        model: expand(f"{MODEL}/evaluation.json", model=model, seed=CONFIG.seeds)
        for model in CONFIG.studies[study].models
    }


def predictions_of(study):
    """The predictions of all models of a study, which record the packages that made the weights."""
    entry = CONFIG.studies[study]
    ordinary = expand(PREDICTIONS, model=entry.models, seed=CONFIG.seeds)
    steps = range(1, entry.retraining.iterations + 1) if study in RETRAIN_STUDIES else []
    paths = [
        path for step in steps for path in arms_of(study, f"{RETRAINED}/predictions.parquet", iteration=step)
    ]
    return [*ordinary, *paths]


def scores_of(study):
    """The score tables of a study."""
    entry = CONFIG.studies[study]
    if study in BAM_STUDIES:
        comparison = comparison_of(study)
        paths = {BAM_SCORES: True, SERIES_SCORES: comparison.series, DELTA_SCORES: comparison.independence}
        present = [path for path, is_in_study in paths.items() if is_in_study]
        return expand(present, study=study, seed=CONFIG.seeds, method=entry.methods)
    if study in RETRAIN_STUDIES:
        return arms_of(study, RETRAIN_SCORES)
    return of_study(SCORES, study, entry.metrics) if entry.metrics else []


def summary_input(wildcards):
    return {**summary_files(wildcards.study), "evaluations": flat(evaluations_of(wildcards.study).values())}


def study_facts(study):
    entry, kind = CONFIG.studies[study], KIND_OF[study]
    asks = {
        score: f"{metric.labels[score]}: {metric.summary}" if len(metric.directions) > 1 else metric.summary
        for metric in metrics_of(study)
        for score in metric.directions
    }
    return {
        "name": study,
        "question": kind.question_for(metric.takes for metric in metrics_of(study)),
        "variants": kind.variants,
        "explains_all_images": kind.explains_all_images,
        "cautions": kind.cautions,
        "references": references_of(study),
        "data": gallery_set(study),
        "models": {
            model: {
                "architecture": CONFIG.models[model].architecture,
                "label": CONFIG.models[model].label,
                "data": CONFIG.models[model].data,
            }
            for model in entry.models
        },
        "methods": entry.methods,
        "asks": asks | {score.name: score.summary for score in kind.scores},
        "seeds": len(CONFIG.seeds),
        "level": CONFIG.reliability.level,
    }


def cautions_of(*studies):
    """Where the sentences on limits of the ranks of studies come from."""
    return list(dict.fromkeys(filter(None, (KIND_OF[name].cautions for name in studies))))


def references_of(study):
    """What must be known of methods that are made to have the best score of one of the study's metrics."""
    exact = {
        "infidelity_halves": "halves",
        "infidelity_square": "square",
        "infidelity_noisy_baseline": "noisy_baseline",
    }
    entry = CONFIG.studies[study]
    pairs = [(method, metric) for metric in entry.metrics for method in entry.methods]
    return [
        f"{method} is fitted to the least {metric} there can be: a reference under this metric, not a candidate."
        for method, metric in pairs
        if CONFIG.methods[method].method == exact.get(CONFIG.metrics[metric].metric, ".")
    ]


def metrics_of(study):
    """The metrics that judge the maps of a study: its kind's, or those that its entry chooses."""
    entry = CONFIG.studies[study]
    return [CONFIG.metrics[name] for name in KIND_OF[study].metrics or entry.metrics]


def overview_settings():
    studies = [
        {**study_facts(study), "files": summary_files(study), "evaluations": evaluations_of(study)}
        for study in CONFIG.studies
    ]
    return settings(
        "overview.py",
        *cautions_of(*CONFIG.studies),
        studies=studies,
        sets=[] if CONFIG.studies else SHOWN_SETS,
        models=list(CONFIG.models),
        seeds=CONFIG.seeds,
        benchmarks=BENCHMARKS,
    )


# The maps of the galleries: each method of a study once for each of its models.
DRAWN = list(
    {
        (model, gallery_set(study), method): {
            "model": model,
            "data": gallery_set(study),
            "method": method,
            "seed": CONFIG.seeds[0],
        }
        for study, entry in CONFIG.studies.items()
        for model in entry.models
        for method in entry.methods
    }.values()
)
# Without studies all data sets are built and all models trained, and the report lists them.
SHOWN_SETS = list(dict.fromkeys(at["data"] for at in DRAWN) if CONFIG.studies else CONFIG.sets)


def describe_settings():
    """What the pages of methods and metrics say of each."""
    methods = dict.fromkeys(method for study in CONFIG.studies.values() for method in study.methods)
    metrics = {metric.name: metric for study in CONFIG.studies for metric in metrics_of(study)}
    return settings(
        "describe.py",
        methods=[method_facts(CONFIG.methods[name]) for name in methods],
        metrics=[metric_facts(metric) for metric in metrics.values()],
        drawn=[drawn_facts(at) for at in DRAWN],
        sets=SHOWN_SETS,
        studies=RATED_STUDIES,
    )


def drawn_facts(at):
    return {**at, "batch": CONFIG.models[at["model"]].batch_size, "parts": len(parts(at["data"]))}


def method_facts(method):
    record = CATALOGUE.methods.get(method.method)
    smoothed = {"base": method_facts(method.base)} if method.base else {}
    of = f" ({smoothed['base']['name']})" if smoothed else ""
    return {
        "name": method.name or method.method,
        "method": method.method,
        "summary": f"{record.summary}{of}" if record else method.summary or method.function,
        "reference": record.reference if record else method.function,
        "parameters": method.parameters,
        "signed": record.signed if record else None,
        "control": not method.uses_model,
        "background": method.background,
        **smoothed,
    }


def metric_facts(metric):
    record = CATALOGUE.metrics.get(metric.metric)
    ranges = {score.name: range_text(*score.range) for score in record.scores} if record else {}
    return {
        "name": metric.name,
        "metric": metric.metric,
        "judges_single_maps": metric.judges_single_maps,
        "summary": metric.summary,
        "reference": record.reference if record else metric.function,
        "formula": FORMULAS.get(metric.metric, ""),
        "reduction": record.reduction if record else "",
        "parameters": metric.parameters,
        "scores": [
            {
                "name": name,
                "label": metric.labels[name],
                "direction": direction,
                "range": ranges.get(name, ""),
            }
            for name, direction in metric.directions.items()
        ],
    }


def range_text(low, high):
    """A range as an interval; an end at infinity is open."""
    ends = [f"{end:g}" if abs(end) < float("inf") else "∞" for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}{')' if ends[1] == '∞' else ']'}"
