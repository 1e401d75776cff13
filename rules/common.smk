"""The checked configuration, the paths of results, and the parameters that decide what runs again."""

import os
import re
import sys

import yaml

from saliency_assay.catalogue import CATALOGUE
from saliency_assay.config import read
from saliency_assay.provenance import code_of, plain
from saliency_assay.registry import module_of
from saliency_assay.schema import ConfigError, check_keys

try:
    for configfile in workflow.configfiles:
        check_keys(Path(configfile).read_text(encoding="utf-8"), os.path.relpath(configfile))
    CONFIG = read(
        config,
        schema=yaml.safe_load((Path(workflow.basedir) / "config/schema.yaml").read_text()),
        catalogue=CATALOGUE,
        source=os.path.relpath(workflow.configfiles[-1]),
    )
except ConfigError as error:
    sys.exit(str(error))

RESULTS = CONFIG.results
DATA = f"{RESULTS}/data/{{data}}.zarr.zip"
MODEL = f"{RESULTS}/models/{{model}}/seed{{seed}}"
MAPS = f"{RESULTS}/maps/{{model}}/seed{{seed}}/{{data}}/{{method}}.zarr.zip"
BAM_SCORES = f"{RESULTS}/scores/bam/{{study}}/seed{{seed}}/{{method}}.parquet"
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"


def one_of(names):
    """A wildcard's regular expression: just these names (none at all matches nothing)."""
    return "|".join(map(re.escape, names)) or "(?!)"


BAM_SETS = [name for name, entry in CONFIG.sets.items() if entry.members]
PLAIN_SETS = [name for name, entry in CONFIG.sets.items() if not entry.members]
COLLECTIONS = [name for name, entry in CONFIG.data.items() if entry.members]
EMBEDDED = [name for name in COLLECTIONS if CONFIG.data[name].kind == "embedded"]
BAM_STUDIES = [name for name, study in CONFIG.studies.items() if study.kind == "bam"]


wildcard_constraints:
    collection=one_of(COLLECTIONS),
    data=one_of(CONFIG.sets),
    model=one_of(CONFIG.models),
    method=one_of(CONFIG.methods),
    seed=one_of(map(str, CONFIG.seeds)),
    study=one_of(CONFIG.studies),


def settings(script, *functions, **values):
    """The one parameter of a rule: plain JSON, with the digest of all code behind it.

    Snakemake compares parameters as an unordered set of values, so there is one nested dict, and tracks only
    plain types. `functions` are the registered callables (`package.module:name`) that the job is given by name.
    """
    path = Path(workflow.basedir) / "workflow/scripts" / script
    return plain({**values, "code": code_of(str(path), *map(module_of, functions))})


def study_models(study):
    """f_o and f_s of a BAM study."""
    return CONFIG.studies[study].models


def evaluated_sets(model):
    """Sets that a model is evaluated on: its own, and all of the BAM studies that compare it."""
    studies = [study for study in CONFIG.studies.values() if study.kind == "bam" and model in study.models]
    sets = [f"{study.data}_{member}" for study in studies for member in ("os", "0s", "og")]
    return list(dict.fromkeys([CONFIG.models[model].data, *sets]))


def collect_bam_input(wildcards):
    """The lists of what there is; the photographs themselves are too many to be watched one by one."""
    entry = CONFIG.data[wildcards.collection]
    if entry.kind == "embedded":
        return {"sources": f"{RESULTS}/sources/{entry.name}/SHA256SUMS"}
    lists = [Path(entry.miniplaces) / name for name in ("categories.txt", "train.txt", "val.txt")]
    return {
        "annotations": [annotations for annotations, _ in entry.coco],
        "lists": [str(path) for path in lists if path.is_file()],
    }


def parameters_of(entry, *names):
    """Only the parameters that a job reads: a change of the others must not run it again."""
    return {name: entry.parameters[name] for name in names}


def collect_bam_settings(wildcards):
    entry = CONFIG.data[wildcards.collection]
    limits = ("cutouts_per_object", "scenes_per_class", "min_object_area")
    return settings(
        "collect_bam.py",
        coco=entry.coco,
        miniplaces=entry.miniplaces,
        objects=entry.objects,
        scenes=entry.scenes,
        parameters=parameters_of(entry, "size", "measure", "smallest", "largest", *limits),
    )


def compose_bam_settings(wildcards):
    entry = CONFIG.sets[wildcards.data]
    shape = ("size", "images_per_pair", "measure", "smallest", "largest", "test_share", "leak_free")
    return settings(
        "compose_bam.py",
        parameters=parameters_of(entry, *shape),
        seed=entry.parameters["seed"],
        member=wildcards.data.removeprefix(f"{entry.name}_"),
    )


def model_settings(name):
    """What rebuilds a model from its weights file."""
    model = CONFIG.models[name]
    return {
        "architecture": model.architecture,
        "function": model.function,
        "parameters": model.parameters,
    }


def attribute_settings(wildcards):
    """Of model and method only what the maps depend on: a CAM layer, a base or a background where there is one."""
    model, method = CONFIG.models[wildcards.model], CONFIG.methods[wildcards.method]
    layer = {"cam_layer": model.cam_layer} if "cam_layer" in method.needs else {}
    base = {"function": method.base.function, "parameters": method.base.parameters} if method.base else None
    return settings(
        "attribute.py",
        model.function,
        method.function,
        *([method.base.function] if method.base else []),
        model={**model_settings(model.name), **layer},
        label=model.label,
        method=method.method,
        function=method.function,
        registered=method.registered,
        stream=method.stream,
        parameters=method.parameters,
        **({"base": base} if base else {}),
        **({"background": method.background} if method.background else {}),
        explain=CONFIG.sets[wildcards.data].explain,
        seed=int(wildcards.seed),
        batch_size=model.batch_size,
        device=CONFIG.device,
    )


def train_input(wildcards):
    model = CONFIG.models[wildcards.model]
    initial = {"weights": model.weights} if model.weights else {}
    return {"data": DATA.format(data=model.data), **initial}


def score_bam_input(wildcards):
    f_o, f_s = study_models(wildcards.study)
    data = CONFIG.studies[wildcards.study].data
    at = {"seed": wildcards.seed, "method": wildcards.method}
    return {
        "maps_o_os": MAPS.format(model=f_o, data=f"{data}_os", **at),
        "maps_s_os": MAPS.format(model=f_s, data=f"{data}_os", **at),
        "maps_s_0s": MAPS.format(model=f_s, data=f"{data}_0s", **at),
        "predictions_o": f"{MODEL}/predictions.parquet".format(model=f_o, seed=wildcards.seed),
        "predictions_s": f"{MODEL}/predictions.parquet".format(model=f_s, seed=wildcards.seed),
        "data": DATA.format(data=f"{data}_os"),
        "data_without": DATA.format(data=f"{data}_0s"),
    }


def study_label(wildcards):
    return f"Study {wildcards.study}"


def gallery_set(study):
    """Galleries show the set that a study's first model was trained on."""
    return CONFIG.models[CONFIG.studies[study].models[0]].data
