"""The configuration as Pydantic models: the keys of each section, with types, defaults and ranges.

Of entries under ``data``, ``models``, ``methods`` and ``metrics``, these models check the keys that the workflow
itself reads; parameters of registered objects are checked against their registry records (``config.checks``).
``config/schema.yaml`` and ``docs/configuration.md`` are generated from these models.
"""

from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, create_model

from saliency_assay.data import DATA_KINDS
from saliency_assay.data.bam.classes import OBJECTS, SCENES
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
"""Kinds of data with settings in addition to the parameters of their registry records."""
FOLDERS = tuple(kind.name for kind in DATA_KINDS if kind.sources)
PLAIN = tuple(kind.name for kind in DATA_KINDS if kind.name not in (*COMPOSED, *FOLDERS))

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Above0 = Annotated[float, Field(gt=0), NUMBER]
LABEL = (
    "Name in figures, tables and the report; by default that of the registered object if the entry has its name, "
    "else the entry's name with spaces."
)
FUNCTION = "`package.module:name`, in the folder of the configuration or on `PYTHONPATH`."


# --- data -----------------------------------------------------------------------------------------------------


class DataSettings(Entry):
    """Keys of every data set. All other keys are parameters of its [kind](data.md)."""

    kind: str = Field(description="The registered kind of data.")
    label: OrAbsent[Line] = Field(None, description=LABEL)
    max_explained_images: Positive = Field(
        1000, description="Maximum number of test images for which saliency maps are generated."
    )
    explanation_order: Literal["balanced", "first"] = Field(
        "balanced",
        description="Selection of those images: balanced over classes, or the first of the data set.",
    )
    shards: Positive = Field(
        1,
        description="Number of shards, each of one or more blocks of 256 images, in which separate jobs generate and "
        "score maps.",
    )
    resident_limit: Above0 = Field(
        8,
        description="Gigabytes of training images that may be kept on the device; of a larger set, batches are "
        "prefetched.",
    )


class PlainData(DataSettings):
    """Images that come with a package."""

    kind: str = Field(description="The registered kind of data.", json_schema_extra={"enum": list(PLAIN)})


class FolderData(DataSettings):
    """Images in your own files."""

    kind: str = Field(description="The registered kind of data.", json_schema_extra={"enum": list(FOLDERS)})
    path: Text = Field(
        description="The folder of the data; [data](data.md) describes its content for each kind."
    )


class ComposedData(DataSettings):
    """Objects pasted on scenes; the entry provides the sets `NAME_os`, `NAME_0s`, `NAME_og` and others."""

    commonality: Distinct[Number] = Field(
        (),
        description="Shares k of the scene classes whose images all contain the common object; each adds a set "
        "`NAME_os_kNN`, for the first NN scene classes.",
    )
    common_object: Text = Field(
        "dog",
        description="The object of those sets, of the patches that test input independence, and of the TCAV concept.",
    )


class SyntheticData(ComposedData):
    """Synthetic objects pasted on synthetic scenes."""

    kind: Literal["synthetic"]


class CocoSource(Settings):
    """Annotated COCO images."""

    annotations: Text = Field(description="The JSON file of instance annotations.")
    images: Text = Field(description="The folder of the annotated images.")


def _coco_form(value: Any) -> str | None:
    return "folder" if isinstance(value, str) else "pairs" if isinstance(value, list) else None


Coco = Annotated[
    Annotated[Text, Tag("folder")] | Annotated[Sequence[CocoSource], Field(min_length=1), Tag("pairs")],
    Discriminator(_coco_form, custom_error_type="coco", custom_error_message="expected a string or a list"),
]


class BamData(ComposedData):
    """COCO objects pasted on MiniPlaces scenes."""

    kind: Literal["bam"]
    coco: Coco = Field(
        description="The COCO folder (`annotations/instances_NAME.json` next to `NAME/`), or pairs of annotation file "
        "and image folder."
    )
    miniplaces: Text = Field(
        description="The MiniPlaces folder (`images/train/b/bedroom/*.jpg`, `train.txt`, …), or a folder with one "
        "subfolder for each scene."
    )
    objects: Distinct[str] = Field(
        OBJECTS,
        min_length=2,
        description="COCO categories of the pasted objects; they are the object labels.",
    )
    scenes: Distinct[str] = Field(
        SCENES, min_length=2, description="Scene categories of the backgrounds; they are the scene labels."
    )


class CaptionData(DataSettings):
    """Images with a caption; the entry provides the sets `NAME_both`, `NAME_image` and `NAME_caption`."""

    kind: Literal["caption"]
    source: str = Field(description="The set of the images without captions.")
    classes: Distinct[str] = Field(min_length=2, max_length=2, description="Two of the classes of that set.")
    captions: OrAbsent[Distinct[Text]] = Field(
        None,
        min_length=2,
        max_length=2,
        description="The caption of each class; by default the class names.",
    )


def _data_model(entry: Any) -> str:
    """Return the tag of the model that validates an entry under ``data``."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    return kind if kind in COMPOSED else "folder" if kind in FOLDERS else "plain"


Data = Annotated[
    Annotated[BamData, Tag("bam")]
    | Annotated[SyntheticData, Tag("synthetic")]
    | Annotated[CaptionData, Tag("caption")]
    | Annotated[FolderData, Tag("folder")]
    | Annotated[PlainData, Tag("plain")],
    Discriminator(_data_model),
]


# --- models, methods, metrics -----------------------------------------------------------------------------------


def _entry_kind(entry: Any) -> str:
    """Return ``custom`` for an entry with a function, else ``registered``."""
    return "custom" if isinstance(entry, dict) and "function" in entry else "registered"


class Normalization(Settings):
    """Mean and standard deviation of each channel."""

    mean: Sequence[Number] = Field(min_length=1, description="Means.")
    std: Sequence[Above0] = Field(min_length=1, description="Standard deviations.")


class ModelSettings(Entry):
    """Keys of every model."""

    replaced_keys: ClassVar[Mapping[str, str]] = {"trained_on": "label"}

    data: str = Field(description="The training set.")
    trained_on: str = Field(description="The label of that set on which the model is trained.")
    label: OrAbsent[Line] = Field(None, description=LABEL)
    target: Literal["label", "predicted"] = Field(
        "label",
        description="The class that maps explain: the label of the image, or the class that the model predicts.",
    )
    weights: OrAbsent[Text] = Field(
        None,
        description="File of initial weights (a state dict); by default training starts from random weights.",
    )
    batch_size: Positive = Field(
        64, description="Batch size of evaluation and attribution; attribution uses at most 256."
    )
    normalization: OrAbsent[Normalization] = Field(
        None,
        description="Mean and standard deviation by which pixels in [0, 1] are normalized; by default those stored "
        "with the weights (ImageNet's if none are), or without weights those of the training images.",
    )
    training: dict[Any, Any] = Field({}, description="[Parameters of the training](models.md#training).")
    search: OrAbsent[dict[Any, Annotated[Distinct[Any], Field(min_length=1)]]] = Field(
        None,
        min_length=1,
        description="Values to try for parameters of the training; the combination with the highest validation "
        "accuracy is used.",
    )


class RegisteredModel(ModelSettings):
    """A model of a registered architecture. All other keys are parameters of the architecture."""

    architecture: str = Field(description="The registered [architecture](models.md).")


class CustomModel(ModelSettings):
    """A model whose network a custom function builds. All other keys are parameters of the function."""

    function: str = Field(description=f"The function that builds the network, {FUNCTION}")
    cam_layer: OrAbsent[Text] = Field(
        None, description="The layer whose channels Grad-CAM weights, as a path for `get_submodule`."
    )
    concept_layers: OrAbsent[Distinct[Text]] = Field(
        None,
        min_length=1,
        description="The layers for TCAV, from first to last, as paths for `get_submodule`.",
    )


class RegisteredMethod(Entry):
    """A registered method. All other keys are its parameters; only some methods have `base` or `background`."""

    method: OrAbsent[str] = Field(
        None, description="The registered [method](methods.md); by default the name of the entry."
    )
    label: OrAbsent[Line] = Field(None, description=LABEL)
    base: OrAbsent[str] = Field(
        None,
        description="The method to smooth, for smoothing methods: a name under `methods`, or a registered method.",
    )
    background: Positive = Field(
        100, description="Number of training images, for methods that take a sample of them."
    )


class CustomMethod(Entry):
    """A custom method. All other keys are parameters of the function."""

    function: str = Field(description=f"The function that generates maps, {FUNCTION}")
    label: OrAbsent[Line] = Field(None, description=LABEL)


class RegisteredMetric(Entry):
    """A registered metric. All other keys are its parameters."""

    metric: OrAbsent[str] = Field(
        None, description="The registered [metric](metrics.md); by default the name of the entry."
    )
    label: OrAbsent[Line] = Field(None, description=LABEL)


class CustomMetric(Entry):
    """A custom metric, with a `direction` or a `target`. All other keys are parameters of the function."""

    function: str = Field(description=f"The function that scores maps, {FUNCTION}")
    label: OrAbsent[Line] = Field(None, description=LABEL)
    direction: OrAbsent[Literal["higher", "lower"]] = Field(
        None, description="Whether higher or lower scores are better."
    )
    target: OrAbsent[Number] = Field(
        None, description="The ideal score, instead of a direction; scores closer to it are better."
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
        None, min_length=1, description="Names under `methods`; by default all."
    )


class ReliabilitySettings(Settings):
    """Settings of the reliability of metrics."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000), INTEGER] = Field(
        10_000, description="Bootstrap resamples for the confidence interval of Krippendorff's α."
    )
    level: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.999, description="Confidence level of the intervals of α and of mean correlations."
    )


class ReportSettings(Settings):
    """Settings of the report."""

    gallery_images: Annotated[int, Field(ge=1, le=20), INTEGER] = Field(
        6, description="Number of images in a gallery."
    )


STUDIES: Any = Field(
    {}, description="Studies by name; without studies, all data sets are built and all models are trained."
)


class Configuration(Settings):
    """A configuration file."""

    data: dict[Name, Data] = Field(min_length=1, description="Data sets by name.")
    models: dict[Name, Model] = Field({}, description="Models to train, by name; a study needs at least one.")
    methods: dict[Name, Method] = Field(
        {}, description="Saliency methods by name; a study needs at least one."
    )
    metrics: dict[Name, Metric] = Field({}, description="Metrics by name.")
    studies: dict[str, StudySettings] = STUDIES
    seeds: Distinct[Natural] = Field(
        (0,),
        min_length=1,
        description="Training seeds; every model is trained, explained and scored once for each seed.",
    )
    results: Text = Field("results", description="Folder of all outputs.")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Device of the models; `auto` is `cuda` if a GPU is available, else `cpu`."
    )
    reliability: ReliabilitySettings = Field(
        ReliabilitySettings(), description="Settings of the reliability of metrics."
    )
    report: ReportSettings = Field(ReportSettings(), description="Settings of the report.")


@cache
def configuration_of(kinds: tuple[StudyKind, ...]) -> type[Configuration]:
    """Return the Pydantic model of a configuration whose studies are of these kinds."""
    union: Any = reduce(or_, (Annotated[resolve(kind.settings), Tag(kind.name)] for kind in kinds))
    studies: Any = dict[Name, Annotated[union, Field(discriminator="kind")]]
    return create_model(
        "Configuration", __base__=Configuration, __doc__=Configuration.__doc__, studies=(studies, STUDIES)
    )
