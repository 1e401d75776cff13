"""Reading and checking of a study of kind ``bam`` in the configuration."""

from collections.abc import Mapping
from itertools import pairwise

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import DataEntry, Method, Model, Sections, Study
from saliency_assay.data.bam.set_names import classes_of
from saliency_assay.studies.bam.settings import BamStudy, delta_set


def read_study(name: str, entry: BamStudy, methods: tuple[str, ...], sections: Sections) -> Study:
    """Return the record of a study; check that its models were trained on the right data and labels.

    Raises:
        ConfigError: data, a model or an object does not exist or is not of the required kind, a method is called
            ``tcav``, or a method needs a background, which the images of input independence do not have.
    """
    place, models = f"studies.{name}", sections.models
    bam_data = {name: value for name, value in sections.data.items() if value.scenes}
    data = look_up(f"{place}.data", "BAM data", entry.data, bam_data)
    if entry.independence or entry.concepts:
        look_up(f"data.{data.name}.common_object", "object", data.common_object, dict.fromkeys(data.objects))
    pair = (entry.object_model, entry.scene_model)
    for label, model_name in zip(("object", "scene"), pair, strict=True):
        model = look_up(f"{place}.{label}_model", "model", model_name, models)
        _check_training(f"{place}.{label}_model", model, f"{data.name}_os", label)
    series = entry.series or ()
    _check_series(f"{place}.series", series, data, models)
    _check_methods(f"{place}.methods", entry, methods, sections.methods)
    options = {"series": series, "concepts": entry.concepts, "independence": entry.independence}
    variants = [f"{data.name}_os_{variant}" for variant in entry.robustness]
    evaluated = {
        model: [f"{data.name}_os", f"{data.name}_0s", f"{data.name}_og", *variants] for model in pair
    }
    for model_name in series:
        evaluated.setdefault(model_name, []).append(f"{data.name}_0s_k")
    pair_sets: dict[str, int] = {}
    if entry.independence:
        _check_independence(f"{place}.independence.model", entry.independence.model, data, models)
        pair_sets = {delta_set(name, seed): entry.independence.images for seed in sections.seeds}
        evaluated.setdefault(entry.independence.model, []).append(f"{data.name}_0s")
    return Study(
        name,
        entry.kind,
        entry.data,
        pair,
        methods,
        settings=entry,
        options=tuple(option for option, is_enabled in options.items() if is_enabled),
        other_models=tuple(evaluated),
        evaluated={model: tuple(sets) for model, sets in evaluated.items()},
        pair_sets=pair_sets,
    )


def _check_methods(
    place: str, entry: BamStudy, names: tuple[str, ...], methods: Mapping[str, Method]
) -> None:
    """Check that the methods can be used with the options of the study."""
    if entry.concepts and "tcav" in names:
        raise ConfigError(
            f"{place}: found 'tcav', which is the name of concepts in the study's tables; rename it"
        )
    for name in names:
        if entry.independence and methods[name].background:
            reason = "uses training images as its background, which the images of independence do not include"
            raise ConfigError(f"{place}: {name} {reason}; remove one of the two")


def _check_series(place: str, names: tuple[str, ...], data: DataEntry, models: Mapping[str, Model]) -> None:
    """Check that commonality increases from model to model, up to a model with the object in every class."""
    if not names:
        return
    series = [look_up(f"{place}.{index}", "model", name, models) for index, name in enumerate(names)]
    prefix = f"{data.name}_"
    series_sets = [name for name in data.sets if name.startswith(f"{prefix}os_k")]
    if not series_sets:
        raise ConfigError(f"data.{data.name}.commonality: missing, expected several k for {place}")
    for index, model in enumerate(series):
        if model.data not in series_sets or model.trained_on != "scene":
            expected = f"expected the scene label and one of {', '.join(series_sets)}"
            actual = f"{model.name} is trained on {model.data} with the {model.trained_on} label"
            raise ConfigError(f"{place}.{index}: {actual}, {expected}")
    classes = [classes_of(model.data.removeprefix(prefix)) for model in series]
    for index, (before, after) in enumerate(pairwise(classes), start=1):
        if after <= before:
            actual = f"{names[index]} on {series[index].data} after {series[index - 1].data}"
            raise ConfigError(f"{place}.{index}: found {actual}, expected k to increase")
    if classes[-1] != len(data.scenes):
        actual = f"{names[-1]} on {series[-1].data}"
        expected = f"expected a model of k = 1, on {prefix}os_k{len(data.scenes):02d}"
        raise ConfigError(
            f"{place}.{len(names) - 1}: found {actual}, {expected}, with which the others are compared"
        )


def _check_independence(place: str, name: str, data: DataEntry, models: Mapping[str, Model]) -> None:
    """Check that the model of input independence is trained on a set of the study's data."""
    model = look_up(place, "model", name, models)
    if model.data not in data.sets:
        actual = f"{model.name}, which is trained on {model.data}"
        raise ConfigError(f"{place}: found {actual}; expected one of {', '.join(data.sets)}")


def _check_training(place: str, model: Model, data: str, label: str) -> None:
    """Check the data and the label that a model was trained on."""
    if (model.data, model.trained_on) != (data, label):
        actual = f"trained on {model.data} with the {model.trained_on} label"
        raise ConfigError(f"{place}: {model.name} is {actual}, expected {data} and {label}")
