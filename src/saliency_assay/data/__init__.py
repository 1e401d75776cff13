"""Records of the data kinds that a configuration can name.

To add a kind, write its builder in a module of this package (in ``readers/`` if it reads files) and its record here. A
builder returns a dict of the class names of each label, and an iterator of blocks. A block is a dict of equally long
arrays: ``image`` ``[n, C, H, W]``, uint8 or float32 in [0, 1], ``split`` (``data/splits.py``), one ``label_<name>``
int64 per label, and any others. Only the kinds ``bam`` and ``synthetic`` are built in several steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from saliency_assay.registry.records import Parameter
from saliency_assay.registry.signatures import parameters_of

SEED = Parameter(0, minimum=0)  # every kind has this parameter; it seeds the generator passed to the builder


@dataclass(frozen=True)
class DataKind:
    """Record of one kind of data set in the configuration.

    Attributes:
        name: value of ``kind`` in the configuration.
        label: name in figures, tables and pages.
        function: path of the builder, ``package.module:name``.
        summary: one line for the documentation.
        reference: source of the data.
        labels: names of the labels of each image.
        sets: suffixes of the aligned data sets that one entry produces; empty if the entry is a single data set.
        set_labels: names of ``sets`` in figures, tables and pages.
        table: all parameters of a kind that is built in several steps; empty if they are those of ``function``.
        sources: keys of folders or lists, which are passed to the builder unchanged.
        lists: parameters whose values are lists, which are described in the configuration schema.
        files: glob patterns, relative to ``path``, of the files that the builder reads. Their content counts as a
            parameter: a change reruns the jobs that depend on it.
        has_masks: True if its images always have masks of their objects, the array ``mask``.
        class_names: path of a function of the parameters in its signature that returns the class names in the order of
            their labels without building the data set; empty if there are ten, or they are listed in the configuration.
    """

    name: str
    label: str
    function: str
    summary: str
    reference: str
    labels: tuple[str, ...] = ("class",)
    sets: tuple[str, ...] = ()
    set_labels: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, Parameter] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    has_masks: bool = False
    class_names: str = ""

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Scalar parameters by name."""
        if self.table:
            return self.table
        excluded = ("block", *self.lists, *self.sources)
        return {**parameters_of(self.function, apart=excluded), "seed": SEED}


_BAM: Mapping[str, Parameter] = {
    "size": Parameter(64, minimum=8, maximum=1024),
    "images_per_pair": Parameter(1000, minimum=1, maximum=10_000),
    "cutouts_per_object": Parameter(1000, minimum=1, maximum=100_000),
    "scenes_per_class": Parameter(1000, minimum=1, maximum=100_000),
    "measure": Parameter("area", choices=("area", "side")),
    "smallest": Parameter(1 / 3, minimum=0.01, maximum=1),
    "largest": Parameter(1 / 2, minimum=0.01, maximum=1),
    "images_per_scene": Parameter(1000, minimum=1, maximum=100_000),
    "variant_smallest": Parameter(1 / 6, minimum=0.01, maximum=1),
    "variant_largest": Parameter(1 / 3, minimum=0.01, maximum=1),
    "min_object_area": Parameter(1024, minimum=1),
    "leak_free": Parameter(False),
    "test_share": Parameter(0.1, minimum=0.01, maximum=0.5),
    "seed": SEED,
}

_BAM_SETS: Mapping[str, str] = {
    "os": "objects on scenes",
    "0s": "scenes without objects",
    "og": "objects on gray",
    "os_scale": "other object sizes",
    "os_location": "other object positions",
}

DATA_KINDS = (
    DataKind(
        name="bam",
        label="BAM",
        function="saliency_assay.data.bam.compose:compose",
        labels=("object", "scene"),
        sets=tuple(_BAM_SETS),
        set_labels=_BAM_SETS,
        summary="objects cut out of COCO images, pasted onto MiniPlaces scenes",
        reference="Yang and Kim 2019, Benchmarking Attribution Methods with Relative Feature Importance",
        table=_BAM,
    ),
    DataKind(
        name="synthetic",
        label="Synthetic BAM",
        function="saliency_assay.data.synthetic.sources:write_sources",
        labels=("object", "scene"),
        sets=tuple(_BAM_SETS),
        set_labels=_BAM_SETS,
        summary="synthetic objects and scenes in the layouts of COCO and MiniPlaces, read like those of `bam`",
        reference="this project; composed as in Yang and Kim 2019",
        table={
            **_BAM,
            "size": Parameter(32, minimum=8, maximum=1024),
            "images_per_pair": Parameter(40, minimum=1, maximum=10_000),
            "images_per_scene": Parameter(60, minimum=1, maximum=10_000),
            "cutouts_per_object": Parameter(40, minimum=1, maximum=10_000),
            "scenes_per_class": Parameter(60, minimum=1, maximum=10_000),
            "min_object_area": Parameter(256, minimum=1),
            "source_size": Parameter(128, minimum=64, maximum=1024),
        },
    ),
    DataKind(
        name="caption",
        label="Captioned images",
        function="saliency_assay.data.caption:compose",
        sets=("both", "image", "caption"),
        set_labels={"both": "picture and caption", "image": "picture alone", "caption": "caption alone"},
        lists=("classes", "captions"),
        summary="images of two classes of another data set, each next to a caption that names one of the classes",
        reference="Yeh et al. 2019, On the (In)fidelity and Sensitivity of Explanations, section 5",
    ),
    DataKind(
        name="birds",
        label="Birds",
        function="saliency_assay.data.synthetic.birds:birds",
        summary="synthetic birds in front of objects; the class is a combination of variants of five parts",
        reference="this project; designed as in Hesse et al. 2023, FunnyBirds: A Synthetic Vision Dataset for a"
        " Part-Based Analysis of Explainable AI Methods",
        class_names="saliency_assay.data.synthetic.birds:class_names",
    ),
    DataKind(
        name="digits",
        label="Digits",
        function="saliency_assay.data.readers.digits:digits",
        summary="scikit-learn's 1,797 handwritten digits, 8 × 8 pixels, enlarged",
        reference="Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, UCI repository",
    ),
    DataKind(
        name="designed",
        label="Designed images",
        function="saliency_assay.data.synthetic.designed:designed",
        labels=("additive", "counting", "saturated", "conjunction", "half"),
        has_masks=True,
        summary="red, green and blue squares on gray noise, with a label for each architecture `designed/LABEL`",
        reference="this project",
    ),
    DataKind(
        name="mnist",
        label="MNIST",
        function="saliency_assay.data.readers.mnist:mnist",
        summary="70,000 handwritten digits, 28 × 28 pixels, from the four original files",
        reference="LeCun et al. 1998, Gradient-based Learning Applied to Document Recognition",
        sources=("path",),
        files=("*-ubyte", "*-ubyte.gz"),
    ),
    DataKind(
        name="cifar10",
        label="CIFAR-10",
        function="saliency_assay.data.readers.cifar10:cifar10",
        summary="60,000 real images of ten classes, 32 × 32 pixels, from the original files, binary version",
        reference="Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images",
        sources=("path",),
        files=tuple(
            f"{folder}{name}"
            for folder in ("", "cifar-10-batches-bin/")
            for name in ("data_batch_*.bin", "test_batch.bin", "batches.meta.txt")
        ),
    ),
    DataKind(
        name="stl10",
        label="STL-10",
        function="saliency_assay.data.readers.stl10:stl10",
        summary="STL-10's 13,000 labeled real images of ten classes, 96 × 96 pixels, from the original binary files",
        reference="Coates, Ng and Lee 2011, An Analysis of Single-Layer Networks in Unsupervised Feature Learning",
        sources=("path",),
        files=("t*_[Xy].bin", "class_names.txt", "stl10_binary/t*_[Xy].bin", "stl10_binary/class_names.txt"),
    ),
    DataKind(
        name="folder",
        label="Image folder",
        function="saliency_assay.data.readers.folder:folder",
        summary="image files of any size, in one folder per class or in a list, with or without masks of objects",
        reference="Russakovsky et al. 2015, ImageNet Large Scale Visual Recognition Challenge",
        sources=("path",),
        lists=("masks", "size", "window", "explained_classes"),
        files=("val_annotations.txt", "val/val_annotations.txt"),
        class_names="saliency_assay.data.image_folders:class_names",
    ),
    DataKind(
        name="coco",
        label="COCO images",
        function="saliency_assay.data.readers.coco_images:coco_images",
        summary="COCO images with objects of exactly one class and their masks, as test images",
        reference="Lin et al. 2014, Microsoft COCO: Common Objects in Context",
        sources=("coco",),
        lists=("classes", "size"),
        has_masks=True,
        class_names="saliency_assay.data.readers.coco_images:class_names",
    ),
)
