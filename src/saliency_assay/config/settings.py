"""The configuration as Pydantic models: the keys of each section, with types, defaults and ranges.

Of entries under ``data``, ``models``, ``methods`` and ``metrics``, these models check the keys that the workflow
itself reads; parameters of registered objects are checked against their registry records (``config.checks``).
``config/schema.yaml`` and ``docs/configuration.md`` are generated from these models.
"""

from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, create_model

from saliency_assay.data import DATA_KINDS
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.registry.properties import COMPLEXITY, FAITHFULNESS, OTHER
from saliency_assay.registry.records import resolve
from saliency_assay.registry.settings import (
    INTEGER,
    NUMBER,
    Distinct,
    Entry,
    Line,
    Natural,
    Number,
    OrAbsent,
    Positive,
    Sequence,
    Settings,
    Text,
)
from saliency_assay.registry.study_kind import StudyKind

COMPOSED = ("bam", "synthetic", "caption")
"""Kinds of data with settings in addition to the parameters in their registry records."""
FOLDERS = tuple(kind.name for kind in DATA_KINDS if kind.sources)
PLAIN = tuple(kind.name for kind in DATA_KINDS if kind.name not in (*COMPOSED, *FOLDERS))

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Above0 = Annotated[float, Field(gt=0), NUMBER]
WITHOUT_FUNCTION = ConfigDict(
    json_schema_extra={"additionalProperties": True, "not": {"required": ["function"]}}
)
"""In the schema, an entry with a function is a custom one."""
LABEL = "Name in figures, tables and the report; see [Display names](#display-names) for the default."
FUNCTION = "as `package.module:name`; the module is in the folder of the configuration or on `PYTHONPATH`."
FILES = (
    "Files that the function reads; relative paths are relative to the folder that the module is imported from. A "
    "change of their content reruns the jobs that call the function."
)
DATA_KIND = "The kind of data."


# --- data -----------------------------------------------------------------------------------------------------


class DataSettings(Entry):
    """Keys of every data set. Any other key is a parameter of the [kind of data](data.md)."""

    kind: str = Field(description=DATA_KIND)
    label: OrAbsent[Line] = Field(None, description=LABEL)
    max_explained_images: Positive = Field(
        1000,
        description="Maximum number of explained images: test images for which saliency maps are computed.",
    )
    explanation_order: Literal["balanced", "first"] = Field(
        "balanced",
        description="Selection of the explained images: balanced over the classes, or the first test images.",
    )
    shards: Positive = Field(
        1,
        description="Number of shards into which the explained images are divided. Each shard has its own jobs and at "
        "least one block of 256 images.",
    )
    resident_limit: Above0 = Field(
        8,
        description="Largest training set, in GB, that is kept on the device. Larger sets are loaded batch by batch.",
    )


class PlainData(DataSettings):
    """Images that are part of a Python package."""

    kind: str = Field(description=DATA_KIND, json_schema_extra={"enum": list(PLAIN)})


class FolderData(DataSettings):
    """Images in a folder on your machine."""

    kind: str = Field(
        description=DATA_KIND, json_schema_extra={"enum": [name for name in FOLDERS if name != "folder"]}
    )
    path: Text = Field(
        description="The folder of the data. [Data](data.md) lists the files that each kind expects."
    )


class ImageFolderData(FolderData):
    """Image files, with or without masks of their objects."""

    kind: Literal["folder"] = Field(description=DATA_KIND)
    path: Text = Field(
        description="The folder of the images, with one folder per class, or a CSV file that [lists "
        "images](data.md#lists-of-images) with their labels."
    )
    masks: OrAbsent[Text] = Field(
        None,
        description="[Masks](data.md#masks) of the objects: a folder of PNG files, or a CSV or JSON file of boxes.",
    )


class ComposedData(DataSettings):
    """Objects pasted on scenes. An entry `NAME` provides several sets, such as `NAME_os`, `NAME_0s` and `NAME_og`."""

    commonality: Distinct[Number] = Field(
        (),
        description="Values of k, the share of scene classes whose images all contain the common object. Each value "
        "adds a set `NAME_os_kNN`, where NN is the number of these classes.",
    )
    common_object: Text = Field(
        "dog",
        description="The object in the sets `NAME_os_kNN`, in the patches for IIR, and in the TCAV concept.",
    )


class SyntheticData(ComposedData):
    """Synthetic objects pasted on synthetic scenes."""

    kind: Literal["synthetic"] = Field(description=DATA_KIND)


class CocoSource(Settings):
    """Annotated COCO images: an entry of the list under `coco`."""

    annotations: Text = Field(description="JSON file of instance annotations.")
    images: Text = Field(description="Folder of the annotated images.")


def _coco_form(value: Any) -> str | None:
    return "folder" if isinstance(value, str) else "pairs" if isinstance(value, list) else None


Coco = Annotated[
    Annotated[Text, Tag("folder")] | Annotated[Sequence[CocoSource], Field(min_length=1), Tag("pairs")],
    Discriminator(_coco_form, custom_error_type="coco", custom_error_message="expected a string or a list"),
]


class BamData(ComposedData):
    """COCO objects pasted on MiniPlaces scenes."""

    kind: Literal["bam"] = Field(description=DATA_KIND)
    coco: Coco = Field(
        description="The COCO folder, which contains `annotations/instances_SPLIT.json` and `SPLIT/` for each split; "
        "or a list of annotation files, each with its image folder."
    )
    miniplaces: Text = Field(
        description="The MiniPlaces folder (`images/train/b/bedroom/*.jpg`, `train.txt`, …), or a folder with one "
        "subfolder for each scene."
    )
    objects: Distinct[str] = Field(
        OBJECTS,
        min_length=2,
        description="COCO categories of the pasted objects: the object labels.",
    )
    scenes: Distinct[str] = Field(
        SCENES, min_length=2, description="Scene categories of the backgrounds: the scene labels."
    )


class CaptionData(DataSettings):
    """Images with captions. An entry `NAME` provides the sets `NAME_both`, `NAME_image` and `NAME_caption`."""

    kind: Literal["caption"] = Field(description=DATA_KIND)
    source: str = Field(description="The data set from which the images are taken.")
    classes: Distinct[str] = Field(min_length=2, max_length=2, description="Two classes of `source`.")
    captions: OrAbsent[Distinct[Text]] = Field(
        None,
        min_length=2,
        max_length=2,
        description="The caption of each class, in the order of `classes`; by default the class names.",
    )


def _data_model(entry: Any) -> str:
    """Return the tag of the model that validates an entry under ``data``."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if kind == "folder":
        return "images"
    return kind if kind in COMPOSED else "folder" if kind in FOLDERS else "plain"


Data = Annotated[
    Annotated[BamData, Tag("bam")]
    | Annotated[SyntheticData, Tag("synthetic")]
    | Annotated[CaptionData, Tag("caption")]
    | Annotated[ImageFolderData, Tag("images")]
    | Annotated[FolderData, Tag("folder")]
    | Annotated[PlainData, Tag("plain")],
    Discriminator(_data_model),
]


# --- models, methods, metrics -----------------------------------------------------------------------------------


def _entry_kind(entry: Any) -> str:
    """Return ``custom`` for an entry with a function, else ``registered``."""
    return "custom" if isinstance(entry, dict) and "function" in entry else "registered"


class Normalization(Settings):
    """Normalization of pixels in [0, 1], with one value per channel."""

    mean: Sequence[Number] = Field(min_length=1, description="Mean of each channel.")
    std: Sequence[Above0] = Field(min_length=1, description="Standard deviation of each channel.")


class ModelSettings(Entry):
    """Keys of every model."""

    replaced_keys: ClassVar[Mapping[str, str]] = {"trained_on": "label"}

    data: str = Field(description="The training set.")
    trained_on: str = Field(
        description="The label that the model learns, such as `object`, `scene` or `class`."
    )
    label: OrAbsent[Line] = Field(None, description=LABEL)
    target: Literal["label", "predicted"] = Field(
        "label",
        description="The class that maps explain: the image's label (`label`) or the predicted class (`predicted`).",
    )
    weights: OrAbsent[Text] = Field(
        None,
        description="File with [initial weights](models.md#initial-weights); by default, they are random.",
    )
    batch_size: Positive = Field(
        64,
        description="Images per batch in evaluation, attribution and scoring; attribution uses at most 256.",
    )
    normalization: OrAbsent[Normalization] = Field(
        None,
        description="Mean and standard deviation for normalizing pixels in [0, 1]. The default depends on "
        "[`weights`](models.md#initial-weights).",
    )
    training: dict[Any, Any] = Field({}, description="[Training parameters](models.md#training).")
    cam_layer: OrAbsent[Text] = Field(
        None,
        description="Path of the layer for Grad-CAM, as for `torch.nn.Module.get_submodule`; a negative number counts "
        "from the end, as in `blocks.-1`. Registered architectures have a default.",
    )
    token_grid: OrAbsent[Annotated[Sequence[Positive], Field(min_length=2, max_length=2)]] = Field(
        None,
        description="Rows and columns of the tokens that the CAM layer returns; by default, the largest grid of the "
        "images' aspect ratio. The tokens before the grid, such as a class token, are dropped.",
    )
    concept_layers: OrAbsent[Distinct[Text]] = Field(
        None,
        min_length=1,
        description="Paths of the layers for TCAV, from first to last. Registered architectures have a default.",
    )
    search: OrAbsent[dict[Any, Annotated[Distinct[Any], Field(min_length=1)]]] = Field(
        None,
        min_length=1,
        description="Values of training parameters for a [search](models.md#hyperparameter-search) by validation "
        "accuracy.",
    )


class RegisteredModel(ModelSettings):
    """A model with a registered architecture. Any other key is a parameter of the architecture."""

    architecture: str = Field(
        description="The registered [architecture](models.md#architectures), or a network of "
        "[torchvision or timm](models.md#torchvision-and-timm), such as `timm/vit_small_patch16_224`."
    )


class CustomModel(ModelSettings):
    """A model whose network is built by a custom function. Any other key is a parameter of the function."""

    function: str = Field(description=f"The function that builds the network, {FUNCTION}")
    files: Distinct[Text] = Field((), description=FILES)


class RegisteredMethod(Entry):
    """A registered method. Any other key is a parameter of the method."""

    model_config = WITHOUT_FUNCTION

    method: OrAbsent[str] = Field(
        None, description="The registered [method](methods.md); by default the name of the entry."
    )
    label: OrAbsent[Line] = Field(None, description=LABEL)
    base: OrAbsent[str] = Field(
        None,
        description="Only for smoothing methods: the method to smooth, an entry under `methods` or a registered "
        "method.",
    )
    background: Positive = Field(
        100, description="Only for methods that use training images: the number of these images."
    )


class CustomMethod(Entry):
    """A custom method. Any other key is a parameter of the function."""

    function: str = Field(description=f"The function that computes maps, {FUNCTION}")
    files: Distinct[Text] = Field((), description=FILES)
    label: OrAbsent[Line] = Field(None, description=LABEL)


class RegisteredMetric(Entry):
    """A registered metric. Any other key is a parameter of the metric."""

    model_config = WITHOUT_FUNCTION

    metric: OrAbsent[str] = Field(
        None, description="The registered [metric](metrics.md); by default the name of the entry."
    )
    label: OrAbsent[Line] = Field(None, description=LABEL)
    training: dict[Any, Any] = Field(
        {},
        description="Only for metrics that [fine-tune the model](metrics.md#f_fidelity): [training "
        "parameters](models.md#training) that differ from those of the model.",
    )


class CustomMetric(Entry):
    """A custom metric. It has either `direction` or `target`. Any other key is a parameter of the function."""

    function: str = Field(description=f"The function that scores maps, {FUNCTION}")
    files: Distinct[Text] = Field((), description=FILES)
    label: OrAbsent[Line] = Field(None, description=LABEL)
    direction: OrAbsent[Literal["higher", "lower"]] = Field(None, description="Which scores are better.")
    target: OrAbsent[Number] = Field(None, description="The ideal score; scores closer to it are better.")
    measures: OrAbsent[Line] = Field(
        None,
        description=f"Property of a map that it measures, such as `{FAITHFULNESS}` or `{COMPLEXITY}`, by which heat"
        f" maps group metrics; by default `{OTHER}`.",
    )


Model = Annotated[
    Annotated[RegisteredModel, Tag("registered")] | Annotated[CustomModel, Tag("custom")],
    Discriminator(_entry_kind),
]
Method = Annotated[
    Annotated[RegisteredMethod, Tag("registered")] | Annotated[CustomMethod, Tag("custom")],
    Discriminator(_entry_kind),
]
Metric = Annotated[
    Annotated[RegisteredMetric, Tag("registered")] | Annotated[CustomMetric, Tag("custom")],
    Discriminator(_entry_kind),
]


# --- studies, and the configuration ----------------------------------------------------------------------------


class StudySettings(Settings):
    """Keys of every study."""

    if TYPE_CHECKING:
        kind: str  # a literal in the model of each kind

    label: OrAbsent[Line] = Field(None, description=LABEL)
    methods: OrAbsent[Distinct[str]] = Field(
        None, min_length=1, description="Entries under `methods` to compare; by default all."
    )


class ReliabilitySettings(Settings):
    """Statistics of the [reliability](reliability.md) of metrics."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000), INTEGER] = Field(
        10_000, description="Number of bootstrap resamples for the confidence interval of Krippendorff's α."
    )
    level: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.999, description="Level of the confidence intervals of α and of inter-method reliability."
    )
    ranks: Literal["wins", "means"] = Field(
        "wins",
        description="What [rank sets](reliability.md#ranks) compare: how often methods have the better score on an"
        " image, or their mean scores.",
    )
    margin: OrAbsent[Annotated[float, Field(gt=0), NUMBER]] = Field(
        None,
        description="Largest difference of means of [equivalent](reliability.md#equivalence) methods; by default none"
        " are called equivalent.",
    )
    margin_unit: Literal["sd", "score"] = Field(
        "sd",
        description="Unit of `margin`: the standard deviation of all scores of a metric, or the score itself.",
    )


class ReportSettings(Settings):
    """Contents of the report."""

    gallery_images: Annotated[int, Field(ge=1, le=20), INTEGER] = Field(
        6, description="Number of images in each gallery of maps."
    )


STUDIES: Any = Field(
    {},
    description="Studies, by name. Without studies, the workflow builds all data sets and trains all models.",
)


class Configuration(Settings):
    """Sections and settings of a configuration."""

    data: dict[Name, Data] = Field(min_length=1, description="Data sets, by name.")
    models: dict[Name, Model] = Field({}, description="Models, by name; a study needs at least one.")
    methods: dict[Name, Method] = Field(
        {}, description="Attribution methods, by name; a study needs at least one."
    )
    metrics: dict[Name, Metric] = Field({}, description="Metrics, by name.")
    studies: dict[str, StudySettings] = STUDIES
    seeds: Distinct[Natural] = Field(
        (0,),
        min_length=1,
        description="Training seeds. Every model is trained, explained and scored once for each seed.",
    )
    results: Text = Field("results", description="Folder for all results.")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Device for the models; `auto` selects `cuda` if a GPU is available, and otherwise `cpu`.",
    )
    reliability: ReliabilitySettings = Field(
        ReliabilitySettings(), description="Statistics of the reliability of metrics."
    )
    report: ReportSettings = Field(ReportSettings(), description="Contents of the report.")


@cache
def configuration_of(kinds: tuple[StudyKind, ...]) -> type[Configuration]:
    """Return the Pydantic model of a configuration whose studies are of these kinds."""
    union: Any = reduce(or_, (Annotated[resolve(kind.settings), Tag(kind.name)] for kind in kinds))
    studies: Any = dict[Name, Annotated[union, Field(discriminator="kind")]]
    return create_model(
        "Configuration", __base__=Configuration, __doc__=Configuration.__doc__, studies=(studies, STUDIES)
    )
