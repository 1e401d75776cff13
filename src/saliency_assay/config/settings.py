"""The configuration as Pydantic models: the keys of each section, with types, defaults and ranges.

Entries under ``data``, ``models``, ``methods`` and ``metrics`` are checked here for the keys that the workflow
itself reads; parameters of what they name are checked against its registry record (``config.checks``).
``config/schema.yaml`` and ``docs/configuration.md`` are generated from these models.
"""

from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, create_model

from saliency_assay.data import DATA_KINDS
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.registry.records import resolve
from saliency_assay.registry.settings import (
    INTEGER,
    NUMBER,
    Distinct,
    Entry,
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
"""Kinds of data that have settings of their own, beside the parameters of their records."""
FOLDERS = tuple(kind.name for kind in DATA_KINDS if kind.sources)
PLAIN = tuple(kind.name for kind in DATA_KINDS if kind.name not in (*COMPOSED, *FOLDERS))

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Above0 = Annotated[float, Field(gt=0), NUMBER]
FUNCTION = "`package.module:name`, beside the configuration or on `PYTHONPATH`."


# --- data -----------------------------------------------------------------------------------------------------


class DataSettings(Entry):
    """Keys of every data set. All others are parameters of its [kind](data.md)."""

    kind: str = Field(description="The registered kind of data.")
    max_explained_images: Positive = Field(
        1000, description="Test images on which saliency maps are generated; at most those there are."
    )
    explain_order: Literal["balanced", "first"] = Field(
        "balanced", description="Which test images: balanced over classes, or the first of the data set."
    )
    shards: Positive = Field(
        1,
        description="Shards in which maps are generated and scored, each by jobs of its own; each has 256 images or "
        "more.",
    )
    resident_limit: Above0 = Field(
        8,
        description="Gigabytes of images that a training keeps whole on its device; of a larger set it reads batches "
        "ahead.",
    )


class PlainData(DataSettings):
    """Images that come with a package."""

    kind: str = Field(description="The registered kind of data.", json_schema_extra={"enum": list(PLAIN)})


class FolderData(DataSettings):
    """Images in files of your own."""

    kind: str = Field(description="The registered kind of data.", json_schema_extra={"enum": list(FOLDERS)})
    path: Text = Field(
        description="The folder that holds the data; [data](data.md) describes it for each kind."
    )


class ComposedData(DataSettings):
    """Objects that are pasted on scenes; makes the sets `NAME_os`, `NAME_0s`, `NAME_og` and more."""

    commonality: Distinct[Number] = Field(
        (),
        description="The shares k of scene classes whose images all have the common object; each makes the set "
        "`NAME_os_kNN`, for the first NN classes.",
    )
    common_object: Text = Field(
        "dog",
        description="The object of those sets, of the changes that independence is tested with, and of the concept.",
    )


class SyntheticData(ComposedData):
    """Synthetic objects pasted on synthetic scenes."""

    kind: Literal["synthetic"]


class CocoSource(Settings):
    """Annotated COCO images."""

    annotations: Text = Field(description="Instance annotations, one JSON file.")
    images: Text = Field(description="The folder that its images are in.")


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
        description="COCO's folder (`annotations/instances_NAME.json` beside `NAME/`), or pairs of file and folder."
    )
    miniplaces: Text = Field(
        description="MiniPlaces' folder (`images/train/b/bedroom/*.jpg`, `train.txt`, …), or one with a folder for "
        "each scene."
    )
    objects: Distinct[str] = Field(
        OBJECTS, min_length=2, description="COCO categories that are pasted; they are the object labels."
    )
    scenes: Distinct[str] = Field(
        SCENES, min_length=2, description="Scene categories that are pasted on; they are the scene labels."
    )


class CaptionData(DataSettings):
    """Images with a caption; makes the sets `NAME_both`, `NAME_image` and `NAME_caption`."""

    kind: Literal["caption"]
    source: str = Field(description="The set that images are taken from.")
    classes: Distinct[str] = Field(min_length=2, max_length=2, description="Two of its classes.")
    captions: OrAbsent[Distinct[Text]] = Field(
        None,
        min_length=2,
        max_length=2,
        description="The words to write for them; by default the classes' names.",
    )


def _data_model(entry: Any) -> str:
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


def _whose(entry: Any) -> str:
    return "custom" if isinstance(entry, dict) and "function" in entry else "registered"


class Normalisation(Settings):
    """Mean and standard deviation of each channel."""

    mean: Sequence[Number] = Field(min_length=1, description="Means.")
    std: Sequence[Above0] = Field(min_length=1, description="Standard deviations.")


class ModelSettings(Entry):
    """Keys of every model."""

    data: str = Field(description="The set that the model is trained on.")
    label: str = Field(description="Which of the set's labels it learns.")
    target: Literal["label", "predicted"] = Field(
        "label", description="The class that maps explain: the image's label, or what the model predicts."
    )
    weights: OrAbsent[Text] = Field(
        None, description="File of initial weights (a state dict); without it, training starts from scratch."
    )
    batch_size: Positive = Field(
        64, description="Images a pass in evaluation and attribution; attribution takes at most 256."
    )
    normalisation: OrAbsent[Normalisation] = Field(
        None,
        description="What is subtracted and divided by before the network, for each channel of pixels in [0, 1]; by "
        "default what comes with the weights, or of the training images.",
    )
    training: dict[Any, Any] = Field({}, description="[Parameters of the training](models.md#training).")
    search: OrAbsent[dict[Any, Annotated[Distinct[Any], Field(min_length=1)]]] = Field(
        None,
        min_length=1,
        description="Values to try for parameters of the training; the combination of highest validation accuracy is "
        "taken.",
    )


class RegisteredModel(ModelSettings):
    """A model of a registered architecture. All other keys are parameters of the architecture."""

    architecture: str = Field(description="The registered [architecture](models.md).")


class CustomModel(ModelSettings):
    """A model whose network a custom function builds. All other keys are parameters of the function."""

    function: str = Field(description=f"The function that builds the network, {FUNCTION}")
    cam_layer: OrAbsent[Text] = Field(
        None, description="The layer whose channels Grad-CAM weighs, as `get_submodule` takes it."
    )
    concept_layers: OrAbsent[Distinct[Text]] = Field(
        None, min_length=1, description="The layers at which concepts are tested, first to last."
    )


class RegisteredMethod(Entry):
    """A registered method. All other keys are its parameters; `base` and `background` are those of few methods."""

    method: OrAbsent[str] = Field(
        None, description="The registered [method](methods.md); by default the entry's own name."
    )
    base: OrAbsent[str] = Field(
        None,
        description="For methods that smooth another one, its name under `methods`, or that of a registered method.",
    )
    background: Positive = Field(
        100, description="For methods that take a sample of training images, how many."
    )


class CustomMethod(Entry):
    """A custom method. All other keys are parameters of the function."""

    function: str = Field(description=f"The function that generates maps, {FUNCTION}")


class RegisteredMetric(Entry):
    """A registered metric. All other keys are its parameters."""

    metric: OrAbsent[str] = Field(
        None, description="The registered [metric](metrics.md); by default the entry's own name."
    )


class CustomMetric(Entry):
    """A custom metric, which has a `direction` or a `target`. All other keys are parameters of the function."""

    function: str = Field(description=f"The function that scores maps, {FUNCTION}")
    direction: OrAbsent[Literal["higher", "lower"]] = Field(None, description="Which scores are better.")
    target: OrAbsent[Number] = Field(
        None, description="The ideal value, in place of a direction; scores closer to it are better."
    )


Model = Annotated[
    Annotated[RegisteredModel, Tag("registered")] | Annotated[CustomModel, Tag("custom")],
    Discriminator(_whose),
]
Method = Annotated[
    Annotated[RegisteredMethod, Tag("registered")] | Annotated[CustomMethod, Tag("custom")],
    Discriminator(_whose),
]
Metric = Annotated[
    Annotated[RegisteredMetric, Tag("registered")] | Annotated[CustomMetric, Tag("custom")],
    Discriminator(_whose),
]


# --- studies, and the whole ---------------------------------------------------------------------------------------


class StudySettings(Settings):
    """Keys of every study."""

    if TYPE_CHECKING:
        kind: str  # each kind's model narrows it

    methods: OrAbsent[Distinct[str]] = Field(
        None, min_length=1, description="Names under `methods`; by default all."
    )


class ReliabilitySettings(Settings):
    """Settings of the reliability of metrics."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000), INTEGER] = Field(
        10_000, description="Resamples for the interval of Krippendorff's α."
    )
    level: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.999, description="Confidence level of the intervals of α and of mean correlations."
    )


class ReportSettings(Settings):
    """Settings of the report."""

    gallery_images: Annotated[int, Field(ge=1, le=20), INTEGER] = Field(
        6, description="Images that a gallery shows."
    )


STUDIES: Any = Field(
    {}, description="Studies by name; without any, all data sets are built and all models trained."
)


class Configuration(Settings):
    """A whole configuration file."""

    data: dict[Name, Data] = Field(min_length=1, description="Data sets by name.")
    models: dict[Name, Model] = Field({}, description="Models to train, by name; a study needs one.")
    methods: dict[Name, Method] = Field({}, description="Saliency methods by name; a study needs one.")
    metrics: dict[Name, Metric] = Field({}, description="Metrics by name.")
    studies: dict[str, StudySettings] = STUDIES
    seeds: Distinct[Natural] = Field(
        (0,),
        min_length=1,
        description="Training seeds; every model is trained, explained and scored once for each.",
    )
    results: Text = Field("results", description="Folder for everything that is made.")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Where models run; `auto` is `cuda` where there is one."
    )
    reliability: ReliabilitySettings = Field(
        ReliabilitySettings(), description="How the reliability of metrics is measured."
    )
    report: ReportSettings = Field(ReportSettings(), description="What the report shows.")


@cache
def configuration_of(kinds: tuple[StudyKind, ...]) -> type[Configuration]:
    """Return the model of a configuration whose studies are of these kinds."""
    union: Any = reduce(or_, (Annotated[resolve(kind.settings), Tag(kind.name)] for kind in kinds))
    studies: Any = dict[Name, Annotated[union, Field(discriminator="kind")]]
    return create_model(
        "Configuration", __base__=Configuration, __doc__=Configuration.__doc__, studies=(studies, STUDIES)
    )
