"""The section ``models``: registered architectures, and networks of a user's own."""

from collections.abc import Mapping
from typing import Any

from saliency_assay.config.checks import file, look_up, parameters_of
from saliency_assay.config.records import Catalogue, DataEntry, Model, Settings
from saliency_assay.config.retrain import check_training, trials_of
from saliency_assay.config.schema import ConfigError
from saliency_assay.registry.signatures import GENERATOR, check_call

KEYS = (
    "architecture", "data", "label", "target", "weights", "batch_size", "training", "search", "normalisation",
)  # fmt: skip
OWN_KEYS = ("function", "cam_layer", "concept_layers")
"""What a network of one's own has besides; of a registered one the record knows its layers."""
BUILDER = ("classes", "channels", GENERATOR)
"""What a function that builds a network is handed by name."""


def read_model(name: str, entry: Settings, data: Mapping[str, DataEntry], catalogue: Catalogue) -> Model:
    """One entry, checked against the sets that ``data`` makes, the registry and the files it names.

    Raises:
        ConfigError: the first fault found.
    """
    place = f"models.{name}"
    network = _own_network(place, entry) if "function" in entry else _registered(place, entry, catalogue)
    sets = {set_name: maker for maker in data.values() for set_name in maker.sets}
    maker = look_up(f"{place}.data", "set", entry["data"], sets)
    look_up(f"{place}.label", "label", entry["label"], dict.fromkeys(maker.labels_of(entry["data"])))
    weights = file(f"{place}.weights", entry["weights"]) if "weights" in entry else ""
    training = parameters_of(f"{place}.training", catalogue.training, entry["training"], ())
    check_training(f"{place}.training", training)
    if not weights and training.get("epochs") == 0:
        raise ConfigError(
            f"{place}.training.epochs: found 0, expected at least 1, or weights to be used as they are"
        )
    return Model(
        name=name,
        **network,
        data=entry["data"],
        label=entry["label"],
        target=entry["target"],
        weights=weights,
        batch_size=entry["batch_size"],
        training=training,
        trials=trials_of(place, entry.get("search", {}), training, catalogue),
        normalisation=_normalisation(place, entry),
    )


def _registered(place: str, entry: Settings, catalogue: Catalogue) -> dict[str, Any]:
    """What the registry says of the architecture, and the entry's parameters of it."""
    known = catalogue.architectures
    record = look_up(f"{place}.architecture", "architecture", entry["architecture"], known)
    return {
        "architecture": record.name,
        "function": record.function,
        "cam_layer": record.cam_layer,
        "concept_layers": record.concept_layers,
        "head_is_pool_linear": record.head_is_pool_linear,
        "parameters": parameters_of(place, record.parameters, entry, KEYS),
    }


def _own_network(place: str, entry: Settings) -> dict[str, Any]:
    """A user's function: every other key is a parameter, checked against the source without running it."""
    if "architecture" in entry:
        raise ConfigError(f"{place}: found both function and architecture, expected one of them")
    parameters = {key: value for key, value in entry.items() if key not in (*KEYS, *OWN_KEYS)}
    try:
        check_call(entry["function"], parameters, positional=(), named=BUILDER)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
    return {
        "architecture": entry["function"],
        "function": entry["function"],
        "cam_layer": entry.get("cam_layer", ""),
        "concept_layers": tuple(entry.get("concept_layers", ())),
        "head_is_pool_linear": False,
        "parameters": parameters,
    }


def _normalisation(place: str, entry: Settings) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Mean and deviation of each channel, where the entry says them."""
    if "normalisation" not in entry:
        return None
    mean, std = (tuple(map(float, entry["normalisation"][key])) for key in ("mean", "std"))
    if len(mean) != len(std):
        raise ConfigError(
            f"{place}.normalisation: found {len(mean)} values of mean and {len(std)} of std, "
            "expected one of each for each channel"
        )
    return mean, std
