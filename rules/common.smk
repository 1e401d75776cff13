"""The checked configuration, the paths of results, and the parameters that decide what runs again."""

import os
import re
import sys
from functools import cache

import yaml

from saliency_assay.config.catalogue import CATALOGUE
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.config.read import read
from saliency_assay.config.yaml_text import check_text
from saliency_assay.runtime.environment import versions_of
from saliency_assay.runtime.file_digests import FileDigests
from saliency_assay.runtime.provenance import fingerprint, plain
from saliency_assay.registry.records import module_of
from saliency_assay.config.errors import ConfigError
from saliency_assay.runtime.shards import part_names
from saliency_assay.registry.signatures import declared

try:
    for configfile in workflow.configfiles:
        check_text(Path(configfile), os.path.relpath(configfile))
    CONFIG = read(
        config,
        catalogue=CATALOGUE,
        source=os.path.relpath(workflow.configfiles[-1]),
    )
except ConfigError as error:
    sys.exit(str(error))

RESULTS = CONFIG.results
DATA = f"{RESULTS}/data/{{data}}.zarr.zip"
MODEL = f"{RESULTS}/models/{{model}}/seed{{seed}}"
MAPS = f"{RESULTS}/maps/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.zarr.zip"
COSTS = f"{RESULTS}/costs/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.json"
PROBE = f"{RESULTS}/probes/{{metric}}/{{model}}/seed{{seed}}/{{data}}{{part}}.zarr.zip"
SCORES = f"{RESULTS}/scores/{{metric}}/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.parquet"
CURVES = f"{RESULTS}/curves/{{metric}}/{{model}}/seed{{seed}}/{{data}}/{{method}}{{part}}.zarr.zip"
SEARCH = f"{RESULTS}/search/{{model}}"
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"
# Long jobs on which others wait come first, and before them the data that they need; else machines idle at the end.
EARLIEST, EARLY = 20, 10


def one_of(names):
    """A wildcard's regular expression: just these names (none at all matches nothing)."""
    return "|".join(map(re.escape, names)) or "(?!)"


COLLECTIONS = [name for name, entry in CONFIG.data.items() if entry.scenes]
EMBEDDED = [name for name in COLLECTIONS if CONFIG.data[name].kind == "embedded"]
BAM_SETS = [name for name, entry in CONFIG.sets.items() if entry.scenes]
CAPTION_SETS = [name for name, entry in CONFIG.sets.items() if entry.source]
PLAIN_SETS = [name for name in CONFIG.sets if name not in [*BAM_SETS, *CAPTION_SETS]]
# Made for one model: images of BAM beside the same images with a change that leaves the model's output as it is.
DELTA_SETS = {
    f"{name}_delta_seed{seed}": study.comparison.independence
    for name, study in CONFIG.studies.items()
    if study.comparison and study.comparison.independence
    for seed in CONFIG.seeds
}
FIDELITY_STUDIES = [name for name, study in CONFIG.studies.items() if study.kind == "fidelity"]
RATED_STUDIES = [name for name, study in CONFIG.studies.items() if study.kind != "gallery"]
SEARCHED = [name for name, model in CONFIG.models.items() if model.trials]
CAPTION_STUDIES = [name for name, study in CONFIG.studies.items() if study.kind == "caption"]
# What the names of maps and scores end in where a set is explained in parts.
PARTS = dict.fromkeys(name for entry in CONFIG.data.values() for name in part_names(entry.shards) if name)


wildcard_constraints:
    collection=one_of(COLLECTIONS),
    data=one_of([*CONFIG.sets, *DELTA_SETS]),
    model=one_of(CONFIG.models),
    method=one_of(CONFIG.methods),
    metric=one_of(CONFIG.metrics),
    part=f"({one_of(PARTS)})?",
    seed=one_of(map(str, CONFIG.seeds)),
    study=one_of(CONFIG.studies),


# Thousands of jobs run the same code, and a plan is of the code as it was when Snakemake started.
CODE_OF = cache(code_of)
# Where jobs run in a container or in Conda environments, Snakemake itself compares those.
PACKAGES_COUNT = not workflow.deployment_settings.deployment_method
PACKAGES = {}  # of all rules
FILES = FileDigests(Path(RESULTS) / ".state/digests.json")


# These run models. Tables they only write, so an update of what writes tables costs no GPU hour.
ON_DEVICE = ["train", "trial", "evaluate", "attribute", "probe", "score", "remask", "retrain", "leak"]
ON_DEVICE += ["find_delta", "score_concepts"]
TABLE_PACKAGES = {"pandas", "pyarrow"}


def settings(script, *functions, **values):
    """The one parameter of a rule: plain JSON, with the digest of all code behind it and the versions of its packages.

    Snakemake compares parameters as an unordered set of values, so there is one nested dict, and tracks only
    plain types. `functions` are the registered callables (`package.module:name`) that the job is given by name.
    """
    path = f"{workflow.basedir}/workflow/scripts/{script}"
    code = CODE_OF(path, *map(module_of, functions))
    ignored = TABLE_PACKAGES if Path(script).stem in ON_DEVICE else set()
    users = [module for module in map(module_of, functions) if module.partition(".")[0] != "saliency_assay"]
    names = {*code.packages} - ignored | {*CODE_OF(*users).packages}
    packages = versions_of(names) if PACKAGES_COUNT else {}
    PACKAGES.update(packages)
    return plain({**values, "code": code.digest, "environment": packages})


def build_data_settings(wildcards):
    entry = CONFIG.sets[wildcards.data]
    return settings(
        "build_data.py",
        entry.function,
        function=entry.function,
        parameters=entry.parameters,
        **({"files": FILES.of_all(entry.files)} if entry.files else {}),
    )


def compose_caption_settings(wildcards):
    entry = CONFIG.sets[wildcards.data]
    return settings(
        "compose_caption.py",
        classes=entry.classes,
        captions=entry.captions,
        parameters=entry.parameters,
        member=wildcards.data.removeprefix(f"{entry.name}_"),
    )


def registered_as(name):
    """What the paper's claims know a method by; one that smooths another than the gradient is another method."""
    method = CONFIG.methods[name]
    smoothed = method.base and method.base.method != "gradient"
    return f"{method.method} of {method.base.method}" if smoothed else method.method


def compared_as(name):
    """What Table 3 knows a method by: maps of the kind that infidelity takes them for, global or local."""
    method, asked = CONFIG.methods[name], CONFIG.metrics["infidelity_halves"].parameters["explanation"]
    kinds = {"gradient": "local", "gradient_x_input": "global"}
    if "times_input" in method.parameters:
        kinds[method.method] = "global" if method.parameters["times_input"] else "local"
    kind = kinds.get(method.method, asked)
    return registered_as(name) if kind == asked else f"{registered_as(name)}, {kind}"


def caption_settings(study):
    """The models of a caption study, the sets each was trained for, and what its methods are."""
    entry = CONFIG.studies[study]
    trained = [CONFIG.sets[CONFIG.models[model].data].name for model in entry.models]
    return {
        "image_model": entry.models[0],
        "caption_model": entry.models[1],
        "data": trained,
        "methods": {name: compared_as(name) for name in entry.methods},
    }


def model_settings(name):
    """What rebuilds a model from its weights file."""
    model = CONFIG.models[name]
    return {
        "architecture": model.architecture,
        "function": model.function,
        "parameters": model.parameters,
    }


def normalisation_settings(name):
    """Of a model whose entry says its own: retraining takes it from the first model's weights."""
    given = CONFIG.models[name].normalisation
    return {"normalisation": given} if given else {}


def explained_settings(wildcards):
    """Which images of a set are explained, and which class of each."""
    model = CONFIG.models[wildcards.model]
    asked = {"label": model.label, "target": model.target, "batch_size": model.batch_size}
    if wildcards.data in DELTA_SETS:
        images = 2 * DELTA_SETS[wildcards.data].images
        return {"explain": images, "order": "first", "where": {}, **asked}
    data = CONFIG.sets[wildcards.data]
    where = explained_where(data, wildcards.data)
    return {"explain": data.explain, "order": data.explain_order, "where": where, **asked}


def explained_where(data, name):
    """What the explained images of a set have in common, by its arrays."""
    if data.is_common(name):
        return {"label_scene": 0}  # the class whose images have the object under every k
    return {"aligned": 1} if data.source else {}


def method_settings(name):
    """What calls a method: of the entry only what its maps depend on."""
    method = CONFIG.methods[name]
    base = {"function": method.base.function, "parameters": method.base.parameters} if method.base else None
    return {
        "function": method.function,
        "parameters": method.parameters,
        "stream": method.stream,
        **({"base": base} if base else {}),
        **({"background": method.background} if method.background else {}),
    }


def method_functions(name):
    """Where the code of a method is."""
    method = CONFIG.methods[name]
    return [method.function, *([method.base.function] if method.base else [])]


def explaining_model(model, method):
    """What rebuilds a model for a method: with its CAM layer only where the method needs one."""
    layer = (
        {"cam_layer": CONFIG.models[model].cam_layer} if "cam_layer" in CONFIG.methods[method].needs else {}
    )
    return {**model_settings(model), **layer}


def attribute_settings(wildcards):
    method = CONFIG.methods[wildcards.method]
    return settings(
        "attribute.py",
        CONFIG.models[wildcards.model].function,
        *method_functions(method.name),
        model=explaining_model(wildcards.model, method.name),
        explained=explained_settings(wildcards),
        method=method.method,
        registered=method.registered,
        **method_settings(method.name),
        pairs=wildcards.data in DELTA_SETS,
        seed=int(wildcards.seed),
        device=CONFIG.device,
    )


def read_by(function, metric):
    """The parameters of a metric that one of its functions reads: the others must not run it again."""
    return {name: value for name, value in metric.parameters.items() if name in declared(function)}


def probe_settings(wildcards):
    metric = CONFIG.metrics[wildcards.metric]
    return settings(
        "probe.py",
        CONFIG.models[wildcards.model].function,
        metric.probe,
        model=model_settings(wildcards.model),
        explained=explained_settings(wildcards),
        probe=metric.probe,
        parameters=read_by(metric.probe, metric),
        stream=metric.metric,
        seed=int(wildcards.seed),
        device=CONFIG.device,
    )


def score_input(wildcards):
    metric = CONFIG.metrics[wildcards.metric]
    probe = {"probe": PROBE.format(**wildcards)} if "probed" in metric.takes else {}
    return {"weights": f"{MODEL}/weights.pt", "data": DATA, "maps": MAPS, **probe}


def score_settings(wildcards):
    """The method's own code only where the metric draws maps by it; otherwise the maps are all that it judges."""
    metric, draws = CONFIG.metrics[wildcards.metric], "explain" in CONFIG.metrics[wildcards.metric].takes
    method = {"method": method_settings(wildcards.method)} if draws else {}
    model = explaining_model(wildcards.model, wildcards.method) if draws else model_settings(wildcards.model)
    return settings(
        "score.py",
        CONFIG.models[wildcards.model].function,
        metric.function,
        *(method_functions(wildcards.method) if draws else []),
        model=model,
        function=metric.function,
        parameters=read_by(metric.function, metric) if metric.metric else metric.parameters,
        takes=metric.takes,
        scores=list(metric.directions),
        stream=metric.metric or metric.function,
        **method,
        batch_size=CONFIG.models[wildcards.model].batch_size,
        seed=int(wildcards.seed),
        device=CONFIG.device,
    )


def train_input(wildcards):
    model = CONFIG.models[wildcards.model]
    return {"data": DATA.format(data=model.data), **initial_weights(model), **chosen_settings(model)}


def trial_input(wildcards):
    model = CONFIG.models[wildcards.model]
    return {"data": DATA.format(data=model.data), **initial_weights(model)}


def train_settings(wildcards):
    model = CONFIG.models[wildcards.model]
    return settings(
        "train.py",
        model.function,
        model=model_settings(model.name),
        label=model.label,
        training=model.training,
        **normalisation_settings(model.name),
        **initial_settings(model),
        seed=int(wildcards.seed),
        device=CONFIG.device,
        state=f"{RESULTS}/.state/train/{wildcards.model}/seed{wildcards.seed}.pt",
    )


def trial_settings(wildcards):
    """One combination of the search, with the first seed: what is chosen holds for all of them."""
    model = CONFIG.models[wildcards.model]
    return settings(
        "trial.py",
        model.function,
        model=model_settings(model.name),
        label=model.label,
        training={**model.training, **model.trials[int(wildcards.trial)]},
        **normalisation_settings(model.name),
        **initial_settings(model),
        seed=CONFIG.seeds[0],
        device=CONFIG.device,
        state=f"{RESULTS}/.state/trial/{wildcards.model}/trial{wildcards.trial}.pt",
    )


def initial_weights(model):
    """The file that a training starts from, if not from scratch. Its date does not count: see `initial_settings`."""
    if not model.weights:
        return {}
    return {"weights": model.weights if is_result(model.weights) else ancient(model.weights)}


def is_result(path):
    """Whether a file may be made by a job of this run: then Snakemake knows when it changes."""
    return Path(path).resolve().is_relative_to(Path(RESULTS).resolve())


def chosen_settings(model):
    """The file of the combination that a search has chosen for a model that is searched for."""
    return {"chosen": f"{SEARCH}/chosen.json".format(model=model.name)} if model.trials else {}


def initial_settings(model):
    """The content of the file that a training starts from."""
    named = model.weights and not is_result(model.weights)
    return {"files": FILES.of_all([model.weights])} if named else {}


def resident_limit(data):
    """Megabytes. A resource, not a parameter: where images are kept is no reason to train again."""
    return round(1000 * CONFIG.sets[data].resident_limit)


def study_label(wildcards):
    return f"Study {wildcards.study}"


def gallery_set(study):
    """Galleries show the set that a study's first model was trained on."""
    return CONFIG.models[CONFIG.studies[study].models[0]].data


def flat(paths):
    """Paths, some of which are in lists."""
    return [path for each in paths for path in ([each] if isinstance(each, str) else each)]


def parts(data):
    """What the files of each part of a set end in; sets made for one model are whole."""
    return part_names(CONFIG.sets[data].shards_of(data) if data in CONFIG.sets else 1)


def all_parts(path, data, **at):
    """The files of a set's parts in their order; where `at` has several values, those of each together."""
    return expand(path, data=data, **at, part=parts(data))


def of_study(path, study, metrics):
    """The files of a study: for each metric and model all methods in their order, the seeds of each together."""
    entry = CONFIG.studies[study]
    at = {"metric": metrics, "method": entry.methods, "seed": CONFIG.seeds, "model": entry.models}
    return all_parts(path, entry.data, **at)


def figures_of(study):
    """The figures of a fidelity study's metrics: (metric, figure)."""
    return [
        (name, figure) for name in CONFIG.studies[study].metrics for figure in CONFIG.metrics[name].figures
    ]


def directions_of(study):
    """Return the directions of all scores of a study that rate its methods."""
    entry = CONFIG.studies[study]
    if entry.kind == "retrain":
        return {"accuracy": "lower"}  # what mattered is gone
    names = ("mcs", "idr", "iir") if entry.kind == "bam" else entry.metrics
    metrics = [CONFIG.metrics[name] for name in names]
    return {score: direction for metric in metrics for score, direction in metric.directions.items()}


def controls_of(study):
    """The methods of a study that know no model."""
    return [name for name in CONFIG.studies[study].methods if not CONFIG.methods[name].uses_model]


def pairs_of(study):
    """A study's metrics of infidelity, each with each of its metrics of sensitivity."""
    found = {score: [] for score in ("infidelity", "sensitivity_max")}
    for name in CONFIG.studies[study].metrics:
        for score in found.keys() & CONFIG.metrics[name].directions.keys():
            found[score].append(name)
    return [[one, two] for one in found["infidelity"] for two in found["sensitivity_max"]]


def plot_metric_input(wildcards):
    metric, entry = CONFIG.metrics[wildcards.metric], CONFIG.studies[wildcards.study]
    reads = metric.figures[wildcards.figure].reads
    at = {"metric": metric.name, "model": entry.models[0], "seed": CONFIG.seeds}
    return {
        "scores": of_study(SCORES, wildcards.study, [metric.name]),
        **({"curves": of_study(CURVES, wildcards.study, [metric.name])} if "curves" in reads else {}),
        **({"probes": all_parts(PROBE, entry.data, **at)} if "probed" in reads else {}),
    }


def plot_metric_settings(wildcards):
    metric = CONFIG.metrics[wildcards.metric]
    function = metric.figures[wildcards.figure].function
    return settings(
        "plot_metric.py",
        function,
        function=function,
        parameters=metric.parameters,
        labels=metric.labels,
        directions=metric.directions,
        methods=CONFIG.studies[wildcards.study].methods,
        seeds=CONFIG.seeds,
        caption=metric.summary,
    )
