"""Check a search for training parameters, and a study of kind ``retrain``."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Catalogue, Model, Parameters
from saliency_assay.registry.records import shown
from saliency_assay.studies.retrain.settings import Retraining, RetrainStudy, retraining_from
from saliency_assay.training.settings import training_from


def trials_of(
    place: str, search: Mapping[str, Sequence[Any]], training: Parameters, catalogue: Catalogue
) -> tuple[Parameters, ...]:
    """Return every combination of the values in ``search``, the last parameter's changing first.

    Raises:
        ConfigError: a parameter that does not exist, a value out of range, no images to choose by, or no epochs.
    """
    if not search:
        return ()
    for name, values in search.items():
        parameter = look_up(f"{place}.search", "parameter", name, catalogue.training)
        for value in values:
            if problem := parameter.problem(value):
                raise ConfigError(f"{place}.search.{name}: found {shown(value)}, {problem}")
    _check_choice(place, search, training)
    trials = tuple(dict(zip(search, values, strict=True)) for values in product(*search.values()))
    for trial in trials:
        check_training(f"{place}.search", {**training, **trial})
    return trials


def check_training(place: str, training: Parameters) -> None:
    """Check that the settings of a training, each of them valid, fit together.

    Raises:
        ConfigError: they do not.
    """
    try:
        training_from(training)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None


def _check_choice(place: str, search: Mapping[str, Sequence[Any]], training: Parameters) -> None:
    """Check that every trial is trained, and evaluated on the same validation images."""
    why = "the search chooses by validation accuracy"
    if "validation_share" in search:
        fixed = "expected a fixed training.validation_share"
        raise ConfigError(f"{place}.search: found 'validation_share', {fixed}: {why}")
    if not training["validation_share"]:
        raise ConfigError(f"{place}.training.validation_share: found 0, expected above 0: {why}")
    for section, epochs in (("training", [training["epochs"]]), ("search", search.get("epochs", ()))):
        if 0 in epochs:
            raise ConfigError(f"{place}.{section}.epochs: found 0, expected at least 1: {why}")


def read_retraining(place: str, entry: RetrainStudy, model: Model, methods: Sequence[str]) -> Retraining:
    """Return the arms and masks of the study at ``place``.

    Raises:
        ConfigError: values that do not fit together, a method that is not the study's, a model that is not trained.
    """
    if not model.training["epochs"]:
        found = f"{model.name}, whose training.epochs is 0"
        raise ConfigError(
            f"{place}.model: found {found}; expected a model that is trained, to be trained again"
        )
    for method in entry.reductions:
        look_up(f"{place}.reductions", "method of the study", method, dict.fromkeys(methods))
    try:
        return retraining_from(entry)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
