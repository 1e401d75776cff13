"""Checks that what needs training images, or pixels of 8 bits, is not requested of data sets without them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from saliency_assay.config.errors import ConfigError

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration


def check_training_images(config: "Configuration") -> None:
    """Check models, studies, methods and metrics on data sets without training images.

    Raises:
        ConfigError: a model trains on such a set, or a study needs training images of it.
    """
    for model in config.models.values():
        if not config.sets[model.data].has_training_images and (model.training["epochs"] or model.search):
            key, actual = (
                ("search", "a search") if model.search else ("training.epochs", str(model.training["epochs"]))
            )
            expected = "none" if model.search else "0 and trained weights"
            raise ConfigError(
                f"models.{model.name}.{key}: found {actual}, expected {expected}, because the set {model.data} has no "
                "training images"
            )
    for study in config.studies.values():
        labeled = [name for name in study.all_models if config.models[name].multi_label]
        for metric in study.metrics if labeled else ():
            record = _record(config, metric)
            if record and record.finetuning:
                raise ConfigError(
                    f"studies.{study.name}.metrics: {metric} fine-tunes the model, which "
                    f"models.{labeled[0]}.multi_label excludes: training is on one class per image"
                )
        sets = {name: config.models[name].data for name in study.all_models}
        lacking = [name for name, data in sets.items() if not config.sets[data].has_training_images]
        deep = [data for data in sets.values() if not config.sets[data].has_bytes]
        if deep and config.catalog.study_kinds[study.kind].retrains_models:
            raise ConfigError(
                f"studies.{study.name}.model: found a model of the set {deep[0]}, which has a window; a study of kind "
                f"{study.kind} needs images of 8 bits"
            )
        for key, text in _needs(config, study.name) if lacking else ():
            raise ConfigError(
                f"studies.{study.name}.{key}: {text} training images, which the set {sets[lacking[0]]} "
                f"(models.{lacking[0]}) does not have"
            )


def _needs(config: "Configuration", name: str) -> Iterator[tuple[str, str]]:
    """Yield the key of a study and the beginning of an error for each thing that needs training images."""
    study = config.studies[name]
    for method in study.methods:
        if config.methods[method].background:
            yield "methods", f"{method} needs a background of"
    for metric in study.metrics:
        record = _record(config, metric)
        if record and record.finetuning:
            yield "metrics", f"{metric} fine-tunes the model, which needs"


def _record(config: "Configuration", metric: str) -> Any:
    """Return the registry record of an entry under ``metrics``, None for a custom metric."""
    return config.catalog.metrics.get(config.metrics[metric].metric)
