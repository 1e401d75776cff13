"""The section ``data``: its keys, and checks of the sources of each entry."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from saliency_assay.config.checks import Catalog, folder, look_up, parameters_of
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import (
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
)
from saliency_assay.data import DATA_KINDS
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.set_names import set_label, set_names
from saliency_assay.data.image_lists import BOX_SUFFIXES, columns_of, is_list
from saliency_assay.registry.labels import label_of
from saliency_assay.runtime.shards import too_many
from saliency_assay.runtime.user_files import Source, UserFiles

COMPOSED = ("bam", "synthetic", "caption")
"""Kinds of data with keys in addition to the parameters in their registry records."""
FOLDERS = tuple(kind.name for kind in DATA_KINDS if kind.sources)
PLAIN = tuple(kind.name for kind in DATA_KINDS if kind.name not in (*COMPOSED, *FOLDERS))

LISTS = ("categories.txt", "train.txt", "val.txt", "object_categories.txt")
"""Files of MiniPlaces that list its scenes; none of them is required."""

DATA_KIND = "The kind of data."


class DataEntry(Entry):
    """Keys of every data set. Any other key is a parameter of the [kind of data](data.md)."""

    kind: str = Field(description=DATA_KIND)
    label: Line = Field("", description=LABEL)
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
    resident_limit: Annotated[float, Field(gt=0), NUMBER] = Field(
        8,
        description="Largest training set, in GB, that is kept on the device. Larger sets are loaded batch by batch.",
    )

    function: Derived[str] = ""
    labels: Derived[tuple[str, ...]] = ()
    """Labels of its images."""
    members: Derived[Mapping[str, str]] = Field({})
    """Sets that it provides, without the name of the entry, and their labels; empty for one set of its name."""
    objects: Derived[tuple[str, ...]] = ()
    scenes: Derived[tuple[str, ...]] = ()
    common_object: Derived[str] = ""
    """For composed kinds: the object of the commonality series, of the patch δ and of the TCAV concept."""
    source: Derived[str] = ""
    """For kind ``caption``: the set of the images without captions."""

    def complete(self, name: str, catalog: Catalog, files: UserFiles) -> None:
        """Check the entry ``data.name`` and set the derived fields; ``files`` recalls what is read from its sources.

        Raises:
            ConfigError: a kind, key or value does not exist or is not valid.
        """
        self.name, place = name, f"data.{name}"
        kind = look_up(f"{place}.kind", "kind of data", self.kind, catalog.data_kinds)
        common_sets = self._common_sets(place)
        parameters = parameters_of(place, kind.parameters, self.parameters, self.own_keys())
        sources = self._sources_of_keys(place, parameters, kind.sources, files)
        self.parameters = parameters | {key: source.path for key, source in sources.items()}
        for least, greatest in (("smallest", "largest"), ("variant_smallest", "variant_largest")):
            if parameters.get(least, 0) >= parameters.get(greatest, 1):
                problem = f"found {parameters[least]}, expected less than {greatest} ({parameters[greatest]})"
                raise ConfigError(f"{place}.{least}: {problem}")
        if fault := too_many(self.shards, self.max_explained_images):
            raise ConfigError(f"{place}.shards: {fault}")
        self.label = label_of(name, self.label, kind)
        self.function, self.labels = kind.function, kind.labels
        self.members = {member: kind.set_labels[member] for member in kind.sets} | common_sets
        fixed = [file for pattern in kind.files for file in files.matching(sources["path"].path, pattern)]
        self.sources = (*(Source(f"{place}.path", file) for file in fixed), *sources.values())

    def _sources_of_keys(
        self, place: str, parameters: Mapping[str, Any], keys: Iterable[str], files: UserFiles
    ) -> dict[str, Source]:
        """Return the folders and files whose paths become parameters of the function, by key."""
        return {key: folder(f"{place}.{key}", getattr(self, key)) for key in keys}

    def _common_sets(self, place: str) -> dict[str, str]:
        """Return the members of the entry's commonality series and their labels; empty without a series."""
        return {}

    @property
    def has_masks(self) -> bool:
        """True if its images have masks of an object or a caption."""
        return bool(self.members)

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets that it provides."""
        return tuple(self.labels_of_sets)

    @property
    def labels_of_sets(self) -> dict[str, str]:
        """Label of each set that it provides."""
        labels = {
            f"{self.name}_{member}": f"{self.label} ({label})".replace(") (", ", ")
            for member, label in self.members.items()
        }
        return labels or {self.name: self.label}

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return the labels of the images of the set ``name``.

        Sets of the commonality series contain at most one kind of object, so they have no object label.
        """
        return ("scene",) if self.is_common(name) else self.labels

    def is_common(self, name: str) -> bool:
        """Return True if the set ``name`` belongs to the commonality series: one object, in some scene classes."""
        member = name.removeprefix(f"{self.name}_")
        return bool(self.members) and (member == "0s_k" or member.startswith("os_k"))

    def shards_of(self, name: str) -> int:
        """Return the number of shards of the set ``name``.

        Sets of the commonality series are never split, because only one of their scene classes is explained.
        """
        return 1 if self.is_common(name) else self.shards


class PlainData(DataEntry):
    """Images that are part of a Python package."""

    kind: str = Field(description=DATA_KIND, json_schema_extra={"enum": list(PLAIN)})


class FolderData(DataEntry):
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

    columns: Derived[tuple[str, ...]] = ()
    """Columns of the list of images; empty for a folder."""

    def _sources_of_keys(
        self, place: str, parameters: Mapping[str, Any], keys: Iterable[str], files: UserFiles
    ) -> dict[str, Source]:
        """Return the folder or list of images, and that of its masks if it has any.

        Raises:
            ConfigError: a list is not valid, or a key contradicts it.
        """
        if not is_list(self.path):
            sources = {"path": folder(f"{place}.path", self.path)}
        else:
            sources = {"path": Source(f"{place}.path", self.path)}
            try:
                self.columns = tuple(
                    files.recall("columns", self.path, lambda: columns_of(Path(self.path)), [])
                )
            except (OSError, ValueError) as error:
                raise ConfigError(f"{place}.path: {error}") from None
            if self.masks and "mask" in self.columns:
                raise ConfigError(
                    f"{place}.masks: found {self.masks!r}, expected none with the column mask of {self.path}"
                )
            if parameters["test_folder"] != "auto":
                expected = "expected only with a folder of images; a list has the column split"
                raise ConfigError(f"{place}.test_folder: found {parameters['test_folder']!r}, {expected}")
        if self.masks is None:
            return sources
        is_boxes = Path(self.masks).suffix.lower() in BOX_SUFFIXES and not Path(self.masks).is_dir()
        suffixes = ", ".join(BOX_SUFFIXES)
        expected = f"a folder of masks that exists, other than path, or a file of boxes ({suffixes})"
        masks = Source(f"{place}.masks", self.masks, not is_boxes, is_boxes, expected)
        if Path(self.masks).resolve() == Path(self.path).resolve():
            raise ConfigError(masks.problem)
        return {**sources, "masks": masks}

    @property
    def has_masks(self) -> bool:
        """True if the folder or list has masks."""
        return self.masks is not None or "mask" in self.columns


class ComposedData(DataEntry):
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

    def _common_sets(self, place: str) -> dict[str, str]:
        # Checked only if it is used: a list of objects without the default ``dog`` is valid without a series.
        if not self.commonality:
            return {}
        look_up(f"{place}.common_object", "object", self.common_object, dict.fromkeys(self.objects))
        scenes = len(self.scenes)
        try:
            names = set_names(self.commonality, scenes)
        except ValueError as error:
            raise ConfigError(f"{place}.{error}") from None
        return {name: set_label(name, self.common_object, scenes) for name in names}


class SyntheticData(ComposedData):
    """Synthetic objects pasted on synthetic scenes."""

    kind: Literal["synthetic"] = Field(description=DATA_KIND)
    objects: Derived[tuple[str, ...]] = OBJECTS
    scenes: Derived[tuple[str, ...]] = SCENES


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

    coco_sources: Derived[tuple[tuple[str, str], ...]] = ()
    """Pairs of an annotation file and its image folder."""

    def complete(self, name: str, catalog: Catalog, files: UserFiles) -> None:
        """Check the entry and set the derived fields, as for every kind of data.

        Raises:
            ConfigError: as for every kind of data, or the COCO folder has no annotations.
        """
        super().complete(name, catalog, files)
        place, sources = f"data.{name}", list[Source]()
        if isinstance(self.coco, str):
            sources = [folder(f"{place}.coco", self.coco)]
            annotations = files.matching(self.coco, "annotations/instances_*.json")
            if not annotations and sources[0].exists:
                expected = "expected annotations/instances_NAME.json in it"
                raise ConfigError(f"{place}.coco: found {self.coco!r}, {expected}")
            names = [Path(path).stem.removeprefix("instances_") for path in annotations]
            images = [str(Path(self.coco) / split) for split in names]
            self.coco_sources = tuple(zip(annotations, images, strict=True))
        else:
            self.coco_sources = tuple((source.annotations, source.images) for source in self.coco)
        for index, (annotations_file, images_folder) in enumerate(self.coco_sources):
            sources.append(Source(f"{place}.coco.{index}.annotations", annotations_file))
            sources.append(folder(f"{place}.coco.{index}.images", images_folder))
        sources.append(folder(f"{place}.miniplaces", self.miniplaces))
        for list_name in LISTS:
            lists = files.matching(self.miniplaces, list_name)
            sources += [Source(f"{place}.miniplaces", path) for path in lists]
        self.sources = tuple(sources)


class CaptionData(DataEntry):
    """Images with captions. An entry `NAME` provides the sets `NAME_both`, `NAME_image` and `NAME_caption`."""

    kind: Literal["caption"] = Field(description=DATA_KIND)
    source: str = Field(description="The data set from which the images are taken.")
    classes: Distinct[str] = Field(min_length=2, max_length=2, description="Two classes of `source`.")
    captions: Distinct[Text] = Field(
        (),
        min_length=2,
        max_length=2,
        description="The caption of each class, in the order of `classes`; by default the class names.",
    )

    def complete(self, name: str, catalog: Catalog, files: UserFiles) -> None:
        """Check the entry and set the derived fields, as for every kind of data."""
        super().complete(name, catalog, files)
        self.captions = self.captions or self.classes


def _data_model(entry: Any) -> str:
    """Return the tag of the model that validates an entry under ``data``."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if kind == "folder":
        return "images"
    return kind if kind in COMPOSED else "folder" if kind in FOLDERS else "plain"


AnyData = Annotated[
    Annotated[BamData, Tag("bam")]
    | Annotated[SyntheticData, Tag("synthetic")]
    | Annotated[CaptionData, Tag("caption")]
    | Annotated[ImageFolderData, Tag("images")]
    | Annotated[FolderData, Tag("folder")]
    | Annotated[PlainData, Tag("plain")],
    Discriminator(_data_model),
]


def check_sets(data: Mapping[str, DataEntry]) -> None:
    """Check that no two entries provide sets of the same name, and the source of each entry of kind ``caption``.

    Raises:
        ConfigError: a name is not unique; or a source does not exist, has other labels, or has captions itself.
    """
    makers: dict[str, DataEntry] = {}
    for entry in data.values():
        for name in entry.sets:
            if name in makers:
                other = f"which data.{makers[name].name} makes too"
                raise ConfigError(f"data.{entry.name}: makes the set {name!r}, {other}; rename one")
            makers[name] = entry
    class_sets = {
        name: entry for name, entry in makers.items() if entry.labels == ("class",) and not entry.source
    }
    for entry in data.values():
        if entry.source:
            look_up(f"data.{entry.name}.source", "set with classes", entry.source, class_sets)
