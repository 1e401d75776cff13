"""BAM: which sets its models are compared on, and the parameters that decide what of its studies runs again."""

from saliency_assay.data.bam.set_names import classes_of

BAM_STUDIES = [name for name, kind in KIND_OF.items() if kind is BAM]
SERIES_STUDIES = [name for name in BAM_STUDIES if CONFIG.studies[name].comparison.series]
DELTA_STUDIES = [name for name in BAM_STUDIES if CONFIG.studies[name].comparison.independence]
CONCEPT_STUDIES = [name for name in BAM_STUDIES if CONFIG.studies[name].comparison.concepts]

BAM_SCORES = f"{RESULTS}/scores/bam/{{study}}/seed{{seed}}/{{method}}.parquet"
SERIES_SCORES = f"{RESULTS}/scores/series/{{study}}/seed{{seed}}/{{method}}.parquet"
DELTA_SCORES = f"{RESULTS}/scores/independence/{{study}}/seed{{seed}}/{{method}}.parquet"
CONCEPT_SCORES = f"{RESULTS}/scores/concepts/{{study}}/seed{{seed}}/{{model}}.parquet"
PREDICTIONS = f"{MODEL}/predictions.parquet"
TABLES = f"{RESULTS}/tables/{{study}}"
SHAPE = ("size", "measure", "smallest", "largest", "test_share", "leak_free")


def comparison_of(study):
    return CONFIG.studies[study].comparison


def metric_parameters(*names):
    """Parameters of BAM's metrics, in this order: that of the configuration must not run anything again."""
    return {name: CONFIG.metrics[name].parameters for name in names}


def variants_of(study):
    """The sets on which the study's metrics are measured beside X_os."""
    return [f"{CONFIG.studies[study].data}_os_{variant}" for variant in comparison_of(study).robustness]


def compared_sets(study, model):
    """The sets of a BAM study on which one of its models is evaluated."""
    data, comparison = CONFIG.studies[study].data, comparison_of(study)
    sets = []
    if model in CONFIG.studies[study].models:
        sets += [*(f"{data}_{member}" for member in ("os", "0s", "og")), *variants_of(study)]
    if model in comparison.series:
        sets.append(f"{data}_0s_k")
    if comparison.independence and model == comparison.independence.model:
        sets.append(f"{data}_0s")
    return sets


def evaluated_sets(model):
    """Sets that a model is evaluated on: its own, and all of the studies that compare it."""
    sets = [CONFIG.models[model].data]
    for name, study in CONFIG.studies.items():
        if name in BAM_STUDIES:
            sets += compared_sets(name, model)
        elif name in CAPTION_STUDIES and model in study.models:
            captioned = CONFIG.sets[CONFIG.models[model].data]
            sets += captioned.sets
    return list(dict.fromkeys(sets))


def collect_bam_input(wildcards):
    """The sources of embedded data; the lists that a user names count by content, in `collect_bam_settings`."""
    entry = CONFIG.data[wildcards.collection]
    if entry.kind == "embedded":
        return {"sources": f"{RESULTS}/sources/{entry.name}/SHA256SUMS"}
    return {"lists": [ancient(path) for path in lists_of(entry)]}


def lists_of(entry):
    """The files that list objects and scenes; the images themselves are too many to be watched one by one."""
    names = ("categories.txt", "train.txt", "val.txt", "object_categories.txt")
    lists = [Path(entry.miniplaces) / name for name in names]
    return [*(annotations for annotations, _ in entry.coco), *(str(path) for path in lists if path.is_file())]


def annotated_scenes(entry):
    """Which scenes have an annotation of their objects: the paths of the files alone, which are thousands."""
    root = f"{entry.miniplaces}/objects"
    folders = os.walk(root, followlinks=True)
    return fingerprint(
        sorted(f"{os.path.relpath(place, root)}/{file}" for place, _, files in folders for file in files)
    )


def parameters_of(entry, *names):
    """Only the parameters that a job reads: a change of the others must not run it again."""
    return {name: entry.parameters[name] for name in names}


def collect_bam_settings(wildcards):
    entry = CONFIG.data[wildcards.collection]
    limits = ("cutouts_per_object", "scenes_per_class", "min_object_area")
    parameters = parameters_of(entry, "size", "measure", "smallest", *limits)
    # Cut-outs are kept for the largest that any set pastes.
    parameters["largest"] = max(entry.parameters["largest"], entry.parameters["variant_largest"])
    watched = {} if entry.kind == "embedded" else {"files": FILES.of_all(lists_of(entry))}
    if watched and (Path(entry.miniplaces) / "objects").is_dir():
        watched["annotated_scenes"] = annotated_scenes(entry)
    return settings(
        "collect_bam.py",
        **watched,
        coco=entry.coco,
        miniplaces=entry.miniplaces,
        objects=entry.objects,
        scenes=entry.scenes,
        parameters=parameters,
    )


def compose_bam_settings(wildcards):
    """A set is given what it is made of: parameters of a variant are no reason to make the others again."""
    entry = CONFIG.sets[wildcards.data]
    member = wildcards.data.removeprefix(f"{entry.name}_")
    common = entry.is_common(wildcards.data)
    shape = [*SHAPE, "images_per_scene" if common else "images_per_pair"]
    shape += ["variant_smallest", "variant_largest"] if member == "os_scale" else []
    return settings(
        "compose_bam.py",
        parameters=parameters_of(entry, *shape),
        common_object=entry.common_object if common else "",
        seed=entry.parameters["seed"],
        member=member,
    )


def score_bam_input(wildcards):
    """Maps and predictions of both models, on X_os and its variants, and of the scene model without the object."""
    study = CONFIG.studies[wildcards.study]
    f_o, f_s = study.models
    at = {"seed": wildcards.seed, "method": wildcards.method}
    variants = variants_of(study.name)
    return {
        "maps_o_os": all_parts(MAPS, f"{study.data}_os", model=f_o, **at),
        "maps_s_os": all_parts(MAPS, f"{study.data}_os", model=f_s, **at),
        "maps_s_0s": all_parts(MAPS, f"{study.data}_0s", model=f_s, **at),
        "predictions_o": PREDICTIONS.format(model=f_o, seed=wildcards.seed),
        "predictions_s": PREDICTIONS.format(model=f_s, seed=wildcards.seed),
        "data": DATA.format(data=f"{study.data}_os"),
        "data_without": DATA.format(data=f"{study.data}_0s"),
        "variant_data": expand(DATA, data=variants),
        "variant_maps_o": flat(all_parts(MAPS, name, model=f_o, **at) for name in variants),
        "variant_maps_s": flat(all_parts(MAPS, name, model=f_s, **at) for name in variants),
    }


def series_data(study):
    """The set of each model of the series."""
    return [CONFIG.models[model].data for model in comparison_of(study).series]


def series_settings(study):
    """The models of a series with their k, and how many classes there are."""
    data = CONFIG.data[CONFIG.studies[study].data]
    members = [name.removeprefix(f"{data.name}_") for name in series_data(study)]
    return {
        "models": comparison_of(study).series,
        "sets": series_data(study),
        "without": f"{data.name}_0s_k",
        "k": [classes_of(member) / len(data.scenes) for member in members],
        "scene": data.scenes[0],
    }


def series_maps(study, seed, method):
    """A method's maps by each model of the series, whose sets are never split."""
    models = zip(comparison_of(study).series, series_data(study))
    return flat(all_parts(MAPS, data, model=model, seed=seed, method=method) for model, data in models)


def delta_set(study, seed):
    return f"{study}_delta_seed{seed}"


def find_delta_settings(wildcards):
    study = CONFIG.studies[wildcards.study]
    model = CONFIG.models[study.comparison.independence.model]
    # All but what only scores are made with.
    parameters = {
        name: value
        for name, value in CONFIG.metrics["iir"].parameters.items()
        if name not in ("threshold", "draws", "draw_size")
    }
    return settings(
        "find_delta.py",
        model.function,
        model=model_settings(model.name),
        common_object=CONFIG.data[study.data].common_object,
        images=study.comparison.independence.images,
        parameters=parameters,
        batch_size=model.batch_size,
        device=CONFIG.device,
    )


def concept_models(study):
    """All models whose dependence on the concept is asked for."""
    return [*CONFIG.studies[study].models, *comparison_of(study).series]


def concept_data(study, model):
    """The set whose images are tested: the model's own."""
    return CONFIG.models[model].data


def score_concepts_settings(wildcards):
    model, study = CONFIG.models[wildcards.model], CONFIG.studies[wildcards.study]
    data, parameters = CONFIG.data[study.data], CONFIG.metrics["tcav"].parameters
    return settings(
        "score_concepts.py",
        model.function,
        model={**model_settings(model.name), "concept_layers": model.concept_layers},
        name=model.name,
        study=study.name,
        data=concept_data(study.name, model.name),
        label=model.label,
        concept=data.common_object,
        # Sets of one commonality have no label of the object; their first scenes have it under every k.
        where={"label_scene": 0} if data.is_common(model.data) else {},
        limit=data.explain,
        parameters={name: value for name, value in parameters.items() if name != "significance"},
        batch_size=model.batch_size,
        seed=int(wildcards.seed),
        device=CONFIG.device,
    )


def judge_bam_input(wildcards):
    """The tables that the study has."""
    study = wildcards.study
    found = {"premise": f"{TABLES}/premise.csv", "metrics": f"{TABLES}/metrics.csv"}
    if study in SERIES_STUDIES:
        found |= {name: f"{TABLES}/{name}.csv" for name in ("commonality", "series", "correlation")}
    if study in CONCEPT_STUDIES:
        found["concepts"] = f"{TABLES}/concepts.csv"
    if study in DELTA_STUDIES:
        found |= {name: f"{TABLES}/{name}.csv" for name in ("independence", "deltas")}
    return found
