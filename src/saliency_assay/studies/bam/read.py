"""Check a study of kind ``bam``: its two models, and on request variants, a series, changed inputs, concepts."""

from collections.abc import Mapping
from itertools import pairwise

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import (
    Comparison,
    DataEntry,
    Independence,
    Method,
    Model,
    Study,
)
from saliency_assay.data.bam.set_names import classes_of
from saliency_assay.studies.bam.settings import BamStudy, IndependenceSettings


def read_comparison(
    place: str, entry: BamStudy, data: Mapping[str, DataEntry], models: Mapping[str, Model]
) -> Comparison:
    """Return the record of the study at ``place``, its models checked against the labels that they were trained on.

    Raises:
        ConfigError: data or a model that does not exist or does not fit.
    """
    composed = {name: value for name, value in data.items() if value.scenes}
    of = look_up(f"{place}.data", "BAM data", entry.data, composed)
    if entry.independence or entry.concepts:
        look_up(f"data.{of.name}.common_object", "object", of.common_object, dict.fromkeys(of.objects))
    for label, name in (("object", entry.object_model), ("scene", entry.scene_model)):
        model = look_up(f"{place}.{label}_model", "model", name, models)
        _trained_on(f"{place}.{label}_model", model, f"{of.name}_os", label)
    return Comparison(
        object_model=entry.object_model,
        scene_model=entry.scene_model,
        robustness=entry.robustness,
        series=_series(f"{place}.series", entry.series or (), of, models),
        independence=_independence(f"{place}.independence", entry.independence, of, models)
        if entry.independence
        else None,
        concepts=entry.concepts,
    )


def check_methods(study: Study, methods: Mapping[str, Method]) -> None:
    """Check that every part of the study works with its methods.

    Raises:
        ConfigError: a name that TCAV has in the study's tables, a method for which changed images have no background.
    """
    place, comparison = f"studies.{study.name}.methods", study.comparison
    if comparison and comparison.concepts and "tcav" in study.methods:
        raise ConfigError(f"{place}: found 'tcav', the name of concepts in the study's tables; rename it")
    for name in study.methods:
        if comparison and comparison.independence and methods[name].background:
            why = "takes training images as its background, of which images of independence have none"
            raise ConfigError(f"{place}: {name} {why}; leave out one of the two")


def _series(
    place: str, names: tuple[str, ...], data: DataEntry, models: Mapping[str, Model]
) -> tuple[str, ...]:
    """Return models of growing commonality; all are compared with the last, whose every class has the object."""
    if not names:
        return ()
    series = [look_up(f"{place}.{index}", "model", name, models) for index, name in enumerate(names)]
    prefix = f"{data.name}_"
    series_sets = [name for name in data.sets if name.startswith(f"{prefix}os_k")]
    if not series_sets:
        raise ConfigError(f"data.{data.name}.commonality: missing, {place} needs the sets of several k")
    for index, model in enumerate(series):
        if model.data not in series_sets or model.label != "scene":
            expected = f"expected the scene label and one of {', '.join(series_sets)}"
            found = f"{model.name} is trained on {model.data} with the {model.label} label"
            raise ConfigError(f"{place}.{index}: {found}, {expected}")
    classes = [classes_of(model.data.removeprefix(prefix)) for model in series]
    for index, (before, after) in enumerate(pairwise(classes), start=1):
        if after <= before:
            found = f"{names[index]} on {series[index].data} after {series[index - 1].data}"
            raise ConfigError(f"{place}.{index}: found {found}, expected k to grow")
    if classes[-1] != len(data.scenes):
        found = f"{names[-1]} on {series[-1].data}"
        expected = f"expected a model of k = 1, on {prefix}os_k{len(data.scenes):02d}"
        raise ConfigError(
            f"{place}.{len(names) - 1}: found {found}, {expected}: the others are held against it"
        )
    return tuple(names)


def _independence(
    place: str, entry: IndependenceSettings, data: DataEntry, models: Mapping[str, Model]
) -> Independence:
    model = look_up(f"{place}.model", "model", entry.model, models)
    if model.data not in data.sets:
        found = f"{model.name}, which is trained on {model.data}"
        raise ConfigError(f"{place}.model: found {found}; expected one of {', '.join(data.sets)}")
    return Independence(model.name, entry.images)


def _trained_on(place: str, model: Model, data: str, label: str) -> None:
    if (model.data, model.label) != (data, label):
        found = f"trained on {model.data} with the {model.label} label"
        raise ConfigError(f"{place}: {model.name} is {found}, expected {data} and {label}")
