"""The section ``data``: its keys, and checks of the sources of each entry."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

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
    fault,
)
from saliency_assay.data import DATA_KINDS
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.set_names import set_label, set_names
from saliency_assay.data.image_folders import class_names, has_training_images
from saliency_assay.data.image_lists import BOX_SUFFIXES, columns_of, has_training_row, is_list
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.records import resolve, short_repr
from saliency_assay.registry.signatures import declared
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
        description="Maximum number of explained images.",
    )
    explanation_order: Literal["balanced", "first"] = Field(
        "balanced",
        description="Selection of explained images: balanced over classes, or the first ones.",
    )
    explained_classes: Distinct[Text] = Field(
        (),
        min_length=1,
        description="Classes of the explained images, for data with the label `class`; by default all.",
    )
    shards: Positive = Field(
        1,
        description="Number of [shards](data.md#shards) of the explained images, each with its own jobs.",
    )
    resident_limit: Annotated[float, Field(gt=0), NUMBER] = Field(
        8,
        description="Maximum size in GB of a training set kept on the device.",
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
    has_training_images: Derived[bool] = True
    """False if all images are test images."""
    always_has_masks: Derived[bool] = False
    """True for a kind whose images always have masks."""
    has_bytes: Derived[bool] = True
    """True if pixels are stored in 8 bits, False if they are float32."""

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
        paths = {key: source.path for key, source in sources.items()}
        self.parameters = parameters | paths | self._values_of_keys(place, parameters)
        for least, greatest in (("smallest", "largest"), ("variant_smallest", "variant_largest")):
            if parameters.get(least, 0) >= parameters.get(greatest, 1):
                problem = f"found {parameters[least]}, expected less than {greatest} ({parameters[greatest]})"
                raise ConfigError(f"{place}.{least}: {problem}")
        if fault := too_many(self.shards, self.max_explained_images):
            raise ConfigError(f"{place}.shards: {fault}")
        self.label = label_of(name, self.label, kind)
        self.function, self.labels, self.always_has_masks = kind.function, kind.labels, kind.has_masks
        self._check_explained_classes(place, kind.class_names)
        self.members = {member: kind.set_labels[member] for member in kind.sets} | common_sets
        fixed = [file for pattern in kind.files for file in files.matching(sources["path"].path, pattern)]
        self.sources = (*(Source(f"{place}.path", file) for file in fixed), *sources.values())

    def _check_explained_classes(self, place: str, class_names: str) -> None:
        """Check ``explained_classes``, as far as the names of the classes are known before the data set is built."""
        if not self.explained_classes:
            return
        if "class" not in self.labels:
            labels = ", ".join(self.labels)
            raise ConfigError(
                f"{place}.explained_classes: found with images of the labels {labels}, expected only with class"
            )
        for name in self.explained_classes:
            if classes := self.known_classes(class_names):
                look_up(f"{place}.explained_classes", "class", name, dict.fromkeys(classes))

    def known_classes(self, class_names: str) -> tuple[str, ...]:
        """Return the names of its classes by the function ``class_names`` of its kind; empty if they are not known yet.

        Raises:
            ConfigError: its folder or list is not valid.
        """
        if not class_names:
            return ()
        parameters = {name: self.parameters[name] for name in declared(class_names)}
        try:
            return tuple(resolve(class_names)(**parameters))
        except FileNotFoundError:  # reported by the job that reads the images, which may have run before
            return ()
        except (OSError, ValueError) as error:
            raise ConfigError(f"data.{self.name}.path: {error}") from None

    def _sources_of_keys(
        self, place: str, parameters: Mapping[str, Any], keys: Iterable[str], files: UserFiles
    ) -> dict[str, Source]:
        """Return the folders and files whose paths become parameters of the function, by key."""
        return {key: folder(f"{place}.{key}", getattr(self, key)) for key in keys}

    def _values_of_keys(self, place: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of other keys that become parameters of the function."""
        return {}

    def _common_sets(self, place: str) -> dict[str, str]:
        """Return the members of the entry's commonality series and their labels; empty without a series."""
        return {}

    @property
    def has_masks(self) -> bool:
        """True if its images have masks of an object or a caption."""
        return self.always_has_masks or bool(self.members)

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
        description=DATA_KIND,
        json_schema_extra={"enum": [name for name in FOLDERS if name not in ("folder", "coco")]},
    )
    path: Text = Field(description="Folder of the [files](data.md) that the kind expects.")


def _check_size(value: Any) -> Any:
    """Validate the side of square images, or a list of height and width, which becomes a tuple."""
    sides = value if isinstance(value, list) else [value, value]
    if len(sides) != 2 or not all(type(side) is int and 8 <= side <= 1024 for side in sides):
        expected = "an integer from 8 to 1024, or two of them: [height, width]"
        raise fault(f"found {short_repr(value)}, expected {expected}")
    return tuple(value) if isinstance(value, list) else value


_SIDE = {"type": "integer", "minimum": 8, "maximum": 1024}
Size = Annotated[
    Any,
    BeforeValidator(_check_size),
    Field(
        json_schema_extra={"anyOf": [_SIDE, {"type": "array", "items": _SIDE, "minItems": 2, "maxItems": 2}]}
    ),
]


SIZE = "Side of square images in pixels, or `[height, width]` ([image size](data.md#image-size-and-fit))."


def check_crop_share(place: str, parameters: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Check that ``crop_share`` is not among the ``values`` of an entry whose images are not cropped.

    Raises:
        ConfigError: it is.
    """
    if (fit := parameters["fit"]) != "crop" and "crop_share" in values:
        share = values["crop_share"]
        raise ConfigError(f"{place}.crop_share: found {share}, expected none with fit: {fit}")


class ImageFolderData(FolderData):
    """Image files, with or without masks of their objects."""

    kind: Literal["folder"] = Field(description=DATA_KIND)
    path: Text = Field(
        description="Folder of images with one folder per class, or a CSV [list of "
        "images](data.md#lists-of-images)."
    )
    masks: OrAbsent[Text] = Field(
        None,
        description="[Masks](data.md#masks-and-boxes-file-formats) of the objects: a folder of PNG files, or a CSV or"
        " JSON file of boxes.",
    )

    size: Size = Field(224, description=SIZE)

    window: Annotated[Sequence[Number], Field(min_length=2, max_length=2)] = Field(
        (),
        description="`[low, high]`: the [values](data.md#16-bit-images-and-windows) that become black and white, for "
        "16-bit images.",
    )

    columns: Derived[tuple[str, ...]] = ()
    """Columns of the list of images; empty for a folder."""

    def _sources_of_keys(
        self, place: str, parameters: Mapping[str, Any], keys: Iterable[str], files: UserFiles
    ) -> dict[str, Source]:
        """Return the folder or list of images, and that of its masks if it has any.

        Raises:
            ConfigError: a list is not valid, or a key contradicts it or another key.
        """
        check_crop_share(place, parameters, self.parameters)
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
        self._check_split(place, parameters, files)
        if self.masks is None:
            return sources
        is_boxes = Path(self.masks).suffix.lower() in BOX_SUFFIXES and not Path(self.masks).is_dir()
        suffixes = ", ".join(BOX_SUFFIXES)
        expected = f"a folder of masks that exists, other than path, or a file of boxes ({suffixes})"
        masks = Source(f"{place}.masks", self.masks, not is_boxes, is_boxes, expected)
        if Path(self.masks).resolve() == Path(self.path).resolve():
            raise ConfigError(masks.problem)
        return {**sources, "masks": masks}

    def _values_of_keys(self, place: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the size, the window, and the classes whose images need a mask.

        Raises:
            ConfigError: a window is not valid.
        """
        values: dict[str, Any] = {"size": self.size}
        if self.window:
            if self.window[0] >= self.window[1]:
                raise ConfigError(
                    f"{place}.window: found {list(self.window)}, expected two numbers, the smaller one first"
                )
            if not parameters["gray"]:
                raise ConfigError(
                    f"{place}.gray: found false with window, expected true, images of one channel"
                )
            values["window"] = self.window
            self.has_bytes = False
        # A folder must have a mask of each explained image. Boxes and lists may have none: there is no object.
        if self.explained_classes and self.masks and Path(self.masks).suffix.lower() not in BOX_SUFFIXES:
            values["explained_classes"] = self.explained_classes
        return values

    def _check_split(self, place: str, parameters: Mapping[str, Any], files: UserFiles) -> None:
        """Check that no key or list contradicts ``split: test``, and set ``has_training_images``."""
        values = parameters["test_folder"], parameters["split"]
        try:
            self.has_training_images = files.recall(
                f"training images {values}",
                self.path,
                lambda: has_training_images(self.path, *values),
                values[1] != "test",
            )
            if values[1] == "test" and Path(self.path).is_dir():
                class_names(path=self.path, test_folder=values[0], split=values[1])  # raises if it has splits
            contradicts = (
                parameters["split"] == "test"
                and "split" in self.columns
                and files.recall("training row", self.path, lambda: has_training_row(Path(self.path)), False)
            )
        except (OSError, ValueError) as error:
            raise ConfigError(f"{place}.path: {error}") from None
        if contradicts:
            raise ConfigError(
                f"{place}.split: found 'test', but {self.path} has rows of split train; remove the key or these rows"
            )
        for key in ("test_share", "test_images_per_class", "test_folder"):
            if not self.has_training_images and key in self.parameters:
                raise ConfigError(
                    f"{place}.{key}: found {short_repr(self.parameters[key])}, expected none, because all images are "
                    "test images"
                )

    @property
    def has_masks(self) -> bool:
        """True if the folder or list has masks."""
        return self.masks is not None or "mask" in self.columns


class ComposedData(DataEntry):
    """Objects pasted on scenes. An entry `NAME` provides several sets, such as `NAME_os`, `NAME_0s` and `NAME_og`."""

    commonality: Distinct[Number] = Field(
        (),
        description="[Commonalities](data.md#commonality) k of the common object. Each adds a set `NAME_os_kNN` "
        "(NN: number of scene classes with the object in every image).",
    )
    common_object: Text = Field(
        "dog",
        description="Object in the sets `NAME_os_kNN`, [IIR](metrics/bam.md#iir)'s patches and"
        " [TCAV](metrics/bam.md#tcav)'s concept.",
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
    """An entry of the list under `coco`."""

    annotations: Text = Field(description="JSON file of instance annotations.")
    images: Text = Field(description="Folder of the annotated images.")


def _coco_form(value: Any) -> str | None:
    return "folder" if isinstance(value, str) else "pairs" if isinstance(value, list) else None


Coco = Annotated[
    Annotated[Text, Tag("folder")] | Annotated[Sequence[CocoSource], Field(min_length=1), Tag("pairs")],
    Discriminator(_coco_form, custom_error_type="coco", custom_error_message="expected a string or a list"),
]


COCO = (
    "COCO folder with `annotations/instances_SPLIT.json` and `SPLIT/` for each split, or a list of annotation files "
    "with image folders."
)
"""Description of the key ``coco``."""


def coco_sources(
    place: str, coco: str | Sequence[CocoSource], files: UserFiles
) -> tuple[tuple[tuple[str, str], ...], list[Source]]:
    """Return pairs of an annotation file and its image folder, and all files and folders of the key ``coco``.

    Raises:
        ConfigError: the COCO folder exists and has no annotations.
    """
    sources = list[Source]()
    if isinstance(coco, str):
        sources.append(folder(f"{place}.coco", coco))
        annotations = files.matching(coco, "annotations/instances_*.json")
        if not annotations and sources[0].exists:
            expected = "expected annotations/instances_NAME.json in it"
            raise ConfigError(f"{place}.coco: found {coco!r}, {expected}")
        names = [Path(path).stem.removeprefix("instances_") for path in annotations]
        pairs = tuple((path, str(Path(coco) / split)) for path, split in zip(annotations, names, strict=True))
    else:
        pairs = tuple((source.annotations, source.images) for source in coco)
    for index, (annotations_file, images_folder) in enumerate(pairs):
        sources.append(Source(f"{place}.coco.{index}.annotations", annotations_file))
        sources.append(folder(f"{place}.coco.{index}.images", images_folder))
    return pairs, sources


class BamData(ComposedData):
    """COCO objects pasted on MiniPlaces scenes."""

    kind: Literal["bam"] = Field(description=DATA_KIND)
    coco: Coco = Field(description=COCO)
    miniplaces: Text = Field(
        description="The MiniPlaces folder, or a folder with one subfolder for each scene."
    )
    objects: Distinct[str] = Field(
        OBJECTS,
        min_length=2,
        description="COCO categories of the objects: the object labels.",
    )
    scenes: Distinct[str] = Field(SCENES, min_length=2, description="Scene categories: the scene labels.")

    coco_sources: Derived[tuple[tuple[str, str], ...]] = ()
    """Pairs of an annotation file and its image folder."""

    def complete(self, name: str, catalog: Catalog, files: UserFiles) -> None:
        """Check the entry and set the derived fields, as for every kind of data.

        Raises:
            ConfigError: as for every kind of data, or the COCO folder has no annotations.
        """
        super().complete(name, catalog, files)
        place = f"data.{name}"
        self.coco_sources, sources = coco_sources(place, self.coco, files)
        sources.append(folder(f"{place}.miniplaces", self.miniplaces))
        for list_name in LISTS:
            lists = files.matching(self.miniplaces, list_name)
            sources += [Source(f"{place}.miniplaces", path) for path in lists]
        self.sources = tuple(sources)


class CocoData(DataEntry):
    """COCO images that show objects of one class each, with masks. All are test images."""

    kind: Literal["coco"] = Field(description=DATA_KIND)
    coco: Coco = Field(description=COCO)
    classes: Distinct[Text] = Field(
        min_length=1, description="COCO categories that are the classes; an image shows exactly one of them."
    )
    size: Size = Field(224, description=SIZE)
    has_training_images: Derived[bool] = False

    def complete(self, name: str, catalog: Catalog, files: UserFiles) -> None:
        """Check the entry and set the derived fields, as for every kind of data.

        Raises:
            ConfigError: as for every kind of data, or the COCO folder has no annotations.
        """
        super().complete(name, catalog, files)
        self.parameters["coco"], sources = coco_sources(f"data.{name}", self.coco, files)
        self.sources = tuple(sources)

    def _sources_of_keys(
        self, place: str, parameters: Mapping[str, Any], keys: Iterable[str], files: UserFiles
    ) -> dict[str, Source]:
        return {}

    def _values_of_keys(self, place: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        check_crop_share(place, parameters, self.parameters)
        return {"classes": self.classes, "size": self.size}


class CaptionData(DataEntry):
    """Images with captions. An entry `NAME` provides the sets `NAME_both`, `NAME_image` and `NAME_caption`."""

    kind: Literal["caption"] = Field(description=DATA_KIND)
    source: str = Field(description="Data set of the images.")
    classes: Distinct[str] = Field(min_length=2, max_length=2, description="Two classes of `source`.")
    captions: Distinct[Text] = Field(
        (),
        min_length=2,
        max_length=2,
        description="Captions, in the order of `classes`; by default the class names.",
    )

    def complete(self, name: str, catalog: Catalog, files: UserFiles) -> None:
        """Check the entry and set the derived fields, as for every kind of data."""
        super().complete(name, catalog, files)
        self.captions = self.captions or self.classes
        for explained_class in self.explained_classes:
            look_up(f"data.{name}.explained_classes", "class", explained_class, dict.fromkeys(self.classes))


def _data_model(entry: Any) -> str:
    """Return the tag of the model that validates an entry under ``data``."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if kind == "folder":
        return "images"
    return kind if kind in (*COMPOSED, "coco") else "folder" if kind in FOLDERS else "plain"


AnyData = Annotated[
    Annotated[BamData, Tag("bam")]
    | Annotated[CocoData, Tag("coco")]
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
            source = look_up(f"data.{entry.name}.source", "set with classes", entry.source, class_sets)
            if not source.has_training_images:
                valid = (
                    ", ".join(name for name, maker in class_sets.items() if maker.has_training_images)
                    or "none"
                )
                raise ConfigError(
                    f"data.{entry.name}.source: found {entry.source!r}, which has no training images; valid: {valid}"
                )
            if not source.has_bytes:
                raise ConfigError(
                    f"data.{entry.name}.source: found {entry.source!r}, which has a window; expected images of 8 bits"
                )
