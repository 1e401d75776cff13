"""The kinds of data set that the configuration can name.

To add one, write its builder in a module of this package and one line here. A builder returns the class names of
each label, and blocks: dicts of equally long arrays, among them ``image`` uint8 ``[n, C, H, W]``, ``split``
(``data/splits.py``) and one ``label_<name>`` int64 for each label. Only BAM's kinds are built in several steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from saliency_assay.registry.records import Parameter


@dataclass(frozen=True)
class DataKind:
    """One kind of data set as the configuration sees it.

    ``labels`` are the labels each image has. ``sets`` are the aligned image sets one entry gives, each a data
    set of its own; empty where the entry is the data set. ``parameters`` are the scalar ones only: lists of names
    are keys of the kind's model in ``config.settings``. ``sources`` are keys that name folders, which the builder is
    given as they are. ``files`` are patterns, relative to ``path``, of the files that it reads: their content counts
    as a parameter.
    """

    name: str
    function: str
    labels: tuple[str, ...]
    sets: tuple[str, ...]
    summary: str
    reference: str
    parameters: Mapping[str, Parameter]
    sources: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


_SPLIT = {
    "test_share": Parameter(0.1, minimum=0.01, maximum=0.5),
    "seed": Parameter(0, minimum=0),
}

# Of the kinds whose files say what is for testing; without a limit nothing is drawn.
_PART = {
    "images_per_class": Parameter(0, minimum=0),
    "seed": Parameter(0, minimum=0),
}

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
    **_SPLIT,
}

DATA_KINDS = (
    DataKind(
        name="bam",
        function="saliency_assay.data.bam.compose:compose",
        labels=("object", "scene"),
        sets=("os", "0s", "og", "os_scale", "os_location"),
        summary="objects cut from COCO photographs, pasted on MiniPlaces scenes",
        reference="Yang and Kim 2019, Benchmarking Attribution Methods with Relative Feature Importance",
        parameters=_BAM,
    ),
    DataKind(
        name="embedded",
        function="saliency_assay.data.synthetic.sources:write_sources",
        labels=("object", "scene"),
        sets=("os", "0s", "og", "os_scale", "os_location"),
        summary="drawn objects and scenes, written as COCO and MiniPlaces folders and read as bam reads them",
        reference="this project; composed as in Yang and Kim 2019",
        parameters={
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
        function="saliency_assay.data.caption:compose",
        labels=("class",),
        sets=("both", "image", "caption"),
        summary="pictures of two classes of another set, each beside a caption that names a class",
        reference="Yeh et al. 2019, On the (In)fidelity and Sensitivity of Explanations, section 5",
        parameters={
            "image_noise": Parameter(0.0, minimum=0, maximum=1),
            "caption_noise": Parameter(0.0, minimum=0, maximum=1),
            **_PART,
        },
    ),
    DataKind(
        name="digits",
        function="saliency_assay.data.readers.digits:digits",
        labels=("class",),
        sets=(),
        summary="scikit-learn's 1,797 handwritten digits, 8 × 8 pixels, enlarged",
        reference="Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, UCI repository",
        parameters={"size": Parameter(16, minimum=8, maximum=256), **_SPLIT},
    ),
    DataKind(
        name="mnist",
        function="saliency_assay.data.readers.mnist:mnist",
        labels=("class",),
        sets=(),
        summary="70,000 handwritten digits, 28 × 28 pixels, from the four original files",
        reference="LeCun et al. 1998, Gradient-based Learning Applied to Document Recognition",
        parameters={"size": Parameter(28, minimum=8, maximum=1024), **_PART},
        sources=("path",),
        files=("*-ubyte", "*-ubyte.gz"),
    ),
    DataKind(
        name="cifar10",
        function="saliency_assay.data.readers.cifar10:cifar10",
        labels=("class",),
        sets=(),
        summary="60,000 photographs of ten classes, 32 × 32 pixels, from the original files, python or binary",
        reference="Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images",
        parameters={"size": Parameter(32, minimum=8, maximum=1024), **_PART},
        sources=("path",),
        files=tuple(
            f"{folder}{name}"
            for folder in ("", "cifar-10-batches-*/")
            for name in ("data_batch_*", "test_batch*", "batches.meta*")
        ),
    ),
    DataKind(
        name="stl10",
        function="saliency_assay.data.readers.stl10:stl10",
        labels=("class",),
        sets=(),
        summary="STL-10's 13,000 labelled photographs of ten classes, 96 × 96 pixels, from the original binary files",
        reference="Coates, Ng and Lee 2011, An Analysis of Single-Layer Networks in Unsupervised Feature Learning",
        parameters={"size": Parameter(96, minimum=8, maximum=1024), **_PART},
        sources=("path",),
        files=("t*_[Xy].bin", "class_names.txt", "stl10_binary/t*_[Xy].bin", "stl10_binary/class_names.txt"),
    ),
    DataKind(
        name="folder",
        function="saliency_assay.data.readers.folder:folder",
        labels=("class",),
        sets=(),
        summary="image files of any size in a folder for each class, as ImageNet is laid out",
        reference="Russakovsky et al. 2015, ImageNet Large Scale Visual Recognition Challenge",
        parameters={
            "size": Parameter(224, minimum=8, maximum=1024),
            "crop_share": Parameter(1.0, minimum=0.1, maximum=1),
            "images_per_class": Parameter(0, minimum=0),
            "test_images_per_class": Parameter(0, minimum=0),
            "test_folder": Parameter("auto", choices=("auto", "test", "val")),
            **_SPLIT,
        },
        sources=("path",),
        files=("val/val_annotations.txt",),
    ),
)
