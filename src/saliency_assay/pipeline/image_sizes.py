"""Published numbers and sizes of images, which are known before a data set is built."""

from saliency_assay.config.configuration import Configuration
from saliency_assay.config.models import Model
from saliency_assay.config.studies import Study

IMAGES = {
    "mnist": (60_000, 10_000),
    "cifar10": (50_000, 10_000),
    "stl10": (5_000, 8_000),
    "imagenet": (1_281_167, 50_000),
}
"""Numbers of training and test images of public data, by kind of data set or, for kind ``folder``, by name."""
SIZES = {"mnist": 28, "cifar10": 32, "stl10": 96}
DIGITS = 1797
CLASSES = {"imagenet": 1000}
"""Numbers of classes other than ten."""
CAPTION_CLASSES = 2


def image_counts(config: Configuration, name: str) -> tuple[int, int]:
    """Return the numbers of training and test images of a set.

    Raises:
        KeyError: the set is not public or composed, so that its size is unknown.
    """
    entry = config.sets.get(name)
    if entry is None:
        return 0, 2 * _study_of_pairs(config, name).pair_sets[name]
    parameters = entry.parameters
    if entry.source:
        train, test = image_counts(config, entry.source)
        return train * CAPTION_CLASSES // 10, test * CAPTION_CLASSES // 10
    if entry.scenes:
        groups = 1 if entry.is_common(name) else len(entry.objects)
        each = parameters["images_per_scene" if entry.is_common(name) else "images_per_pair"]
        images = len(entry.scenes) * groups * each
        return round(images * (1 - parameters["test_share"])), round(images * parameters["test_share"])
    if entry.kind == "digits":
        test = round(DIGITS * parameters["test_share"])
        return DIGITS - test, test
    kind = entry.kind if entry.kind in IMAGES else entry.name
    limits = (parameters.get("images_per_class", 0), parameters.get("test_images_per_class", 0))
    limits = (limits[0], limits[1] or limits[0])
    train, test = (
        min(count, limit * CLASSES.get(kind, 10)) if limit else count
        for count, limit in zip(IMAGES[kind], limits, strict=True)
    )
    return train * entry.has_training_images, test


def explained_count(config: Configuration, name: str) -> int:
    """Return the number of explained images of a set; ``max_explained_images`` if the size of the set is unknown."""
    entry = config.sets.get(name)
    if entry is None:
        return image_counts(config, name)[1]
    try:
        return min(entry.max_explained_images, image_counts(config, name)[1])
    except KeyError:
        return entry.max_explained_images


def _study_of_pairs(config: Configuration, name: str) -> Study:
    """Return the study that has the set ``name`` of image pairs."""
    return next(study for study in config.studies.values() if name in study.pair_sets)


def image_shape(config: Configuration, name: str) -> tuple[int, int, int, int]:
    """Return the shape N, C, H, W of all images of a set.

    Raises:
        KeyError: the size of the set is unknown.
    """
    return sum(image_counts(config, name)), *one_image_shape(config, name)


def one_image_shape(config: Configuration, name: str) -> tuple[int, int, int]:
    """Return the shape C, H, W of an image of a set.

    Raises:
        KeyError: the set is of a custom kind without the parameter ``size``.
    """
    entry = config.sets.get(name) or config.data[_study_of_pairs(config, name).data]
    if entry.source:
        channels, height, width = one_image_shape(config, entry.source)
        return channels, height, 2 * width  # the caption is placed next to the image
    gray = entry.kind in ("mnist", "digits") or entry.parameters.get("gray")
    size = entry.parameters.get("size") or SIZES[entry.kind]
    height, width = (size, size) if isinstance(size, int) else size
    return 1 if gray else 3, height, width


def is_shape_known(config: Configuration, name: str) -> bool:
    """Return True if the shape of a set's images follows from the configuration, False for a set of a custom kind."""
    entry = config.sets[name]
    if entry.source:
        return is_shape_known(config, entry.source)
    return bool(entry.scenes) or entry.kind in (*SIZES, "digits", "folder", "coco")


def class_count(config: Configuration, model: Model) -> int:
    """Return the number of classes of a model."""
    if model.class_count:
        return model.class_count
    entry = config.sets[model.data]
    if entry.source:
        return CAPTION_CLASSES
    return len({"object": entry.objects, "scene": entry.scenes}.get(model.trained_on, ())) or CLASSES.get(
        entry.name, 10
    )
