"""Checks of the section ``models``: registered architectures and custom networks."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any

from saliency_assay.config.checks import custom_parameters, file, files_of, look_up, parameters_of
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Catalog, DataEntry, Model, Parameters
from saliency_assay.config.settings import CustomModel, ModelSettings, RegisteredModel
from saliency_assay.models import checks
from saliency_assay.models.families import BUILDERS, Layered, family_of
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.records import short_repr, unknown
from saliency_assay.registry.signatures import GENERATOR, check_call
from saliency_assay.training.settings import training_from

BUILDER = ("classes", "channels", GENERATOR)
"""Keyword arguments of a function that builds a network."""


def read_model(
    name: str,
    entry: RegisteredModel | CustomModel,
    data: Mapping[str, DataEntry],
    catalog: Catalog,
) -> Model:
    """Return the record of an entry, checked against the sets of ``data``, the registry and the named files.

    Raises:
        ConfigError: the entry is not valid; the message describes the first fault.
    """
    place = f"models.{name}"
    network = _network_fields(place, entry, catalog)
    sets = {set_name: maker for maker in data.values() for set_name in maker.sets}
    maker = look_up(f"{place}.data", "set", entry.data, sets)
    look_up(f"{place}.trained_on", "label", entry.trained_on, dict.fromkeys(maker.labels_of(entry.data)))
    weights = file(f"{place}.weights", entry.weights) if entry.weights else ""
    training = parameters_of(f"{place}.training", catalog.training, entry.training)
    _check_training(f"{place}.training", training)
    if not weights and training.get("epochs") == 0:
        raise ConfigError(
            f"{place}.training.epochs: found 0, expected at least 1, or weights to be used as they are"
        )
    return Model(
        name=name,
        label=label_of(name, entry.label, catalog.architectures.get(network["architecture"])),
        **network,
        data=entry.data,
        trained_on=entry.trained_on,
        target=entry.target,
        weights=weights,
        batch_size=entry.batch_size,
        training=training,
        trials=_trials(place, entry.search or {}, training, catalog),
        normalization=_normalization(place, entry),
        token_grid=entry.token_grid or (),
        files=files_of(place, entry.function, entry.files) if isinstance(entry, CustomModel) else (),
    )


def _network_fields(place: str, entry: RegisteredModel | CustomModel, catalog: Catalog) -> dict[str, Any]:
    return (
        _custom_fields(place, entry)
        if isinstance(entry, CustomModel)
        else _registered_fields(place, entry, catalog)
    )


def _registered_fields(place: str, entry: RegisteredModel, catalog: Catalog) -> dict[str, Any]:
    """Return the fields of ``Model`` that describe a registered architecture, or a network of a library."""
    library, slash, network = entry.architecture.partition("/")
    if slash and library in BUILDERS:
        return _library_fields(place, entry, library, network)
    architectures = catalog.architectures
    if entry.architecture not in architectures:
        valid = [*architectures, *(f"{name}/NAME" for name in BUILDERS)]
        raise ConfigError(f"{place}.architecture: {unknown('architecture', entry.architecture, valid)}")
    record = architectures[entry.architecture]
    return {
        "architecture": record.name,
        "function": record.function,
        **_layers(entry, record),
        "parameters": parameters_of(place, record.parameters, entry.parameters, entry.own_keys()),
    }


def _library_fields(place: str, entry: RegisteredModel, library: str, network: str) -> dict[str, Any]:
    """Return the fields of ``Model`` that describe a network of torchvision or timm, whose builder checks the rest."""
    if find_spec(library) is None:
        raise ConfigError(
            f"{place}.architecture: found {entry.architecture!r}, but {library} is not installed; "
            f"run .venv/bin/pip install {library}"
        )
    return {
        "architecture": entry.architecture,
        "function": BUILDERS[library],
        **_layers(entry, family_of(library, network)),
        "parameters": {"name": network, **custom_parameters(place, entry.parameters)},
    }


def _layers(entry: ModelSettings, record: Layered | None) -> dict[str, Any]:
    """Return the layers of an entry, with defaults from the record of its architecture."""
    cam_layer = entry.cam_layer or (record.cam_layer if record else "")
    return {
        "cam_layer": cam_layer,
        "concept_layers": entry.concept_layers or (record.concept_layers if record else ()),
        "has_relu": record is None or record.has_relu,
        "has_attention": record is None or record.has_attention,
        "head_is_pool_linear": bool(record and record.head_is_pool_linear and cam_layer == record.cam_layer),
    }


def _custom_fields(place: str, entry: CustomModel) -> dict[str, Any]:
    """Return the fields of ``Model`` that describe a custom network.

    The call is checked against the source code of the function, which is not run.
    """
    if "architecture" in entry.parameters:
        raise ConfigError(f"{place}: found both function and architecture, expected one of them")
    try:
        check_call(entry.function, entry.parameters, positional=(), named=BUILDER)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
    return {
        "architecture": entry.function,
        "function": entry.function,
        **_layers(entry, None),
        "parameters": custom_parameters(place, entry.parameters),
    }


def _normalization(place: str, entry: ModelSettings) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return the mean and standard deviation of each channel; None if the entry has none."""
    if entry.normalization is None:
        return None
    mean, std = (tuple(map(float, values)) for values in (entry.normalization.mean, entry.normalization.std))
    if problem := checks.normalization(mean, std):
        raise ConfigError(f"{place}.normalization: {problem}")
    return mean, std


def _trials(
    place: str, search: Mapping[str, Sequence[Any]], training: Parameters, catalog: Catalog
) -> tuple[Parameters, ...]:
    """Return all combinations of the values in ``search``; those of the last parameter vary fastest.

    Raises:
        ConfigError: a parameter does not exist, a value is out of range, or there are no validation images or epochs.
    """
    if not search:
        return ()
    for name, values in search.items():
        parameter = look_up(f"{place}.search", "parameter", name, catalog.training)
        for value in values:
            if problem := parameter.problem(value):
                raise ConfigError(f"{place}.search.{name}: found {short_repr(value)}, {problem}")
    _check_search(place, search, training)
    trials = tuple(dict(zip(search, values, strict=True)) for values in product(*search.values()))
    for trial in trials:
        _check_training(f"{place}.search", {**training, **trial})
    return trials


def _check_training(place: str, training: Parameters) -> None:
    """Check that the settings of a training, each of them valid, are consistent.

    Raises:
        ConfigError: two settings contradict each other.
    """
    try:
        training_from(training)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None


def _check_search(place: str, search: Mapping[str, Sequence[Any]], training: Parameters) -> None:
    """Check that every trial is trained, and evaluated on the same validation images.

    Raises:
        ConfigError: there are no validation images, they differ between trials, or a trial has no epochs.
    """
    reason = "the search chooses by validation accuracy"
    if "validation_share" in search:
        expected = "expected a fixed training.validation_share"
        raise ConfigError(f"{place}.search: found 'validation_share', {expected}: {reason}")
    if not training["validation_share"]:
        raise ConfigError(f"{place}.training.validation_share: found 0, expected above 0: {reason}")
    for section, epochs in (("training", [training["epochs"]]), ("search", search.get("epochs", ()))):
        if 0 in epochs:
            raise ConfigError(f"{place}.{section}.epochs: found 0, expected at least 1: {reason}")
