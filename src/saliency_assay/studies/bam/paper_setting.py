"""Comparison of a study's setting with that of Yang & Kim (2019, section 3 and appendix D)."""

from collections.abc import Iterable
from typing import TypedDict

from saliency_assay.config.data import DataEntry

SIDE = 128  # pixels, the size of the images of MiniPlaces
IMAGES_PER_PAIR = 1000
CLASSES = 10  # of objects, and of scenes
ARCHITECTURE = "ResNet-50"


class Setting(TypedDict):
    """Differences of a study from the paper."""

    phrase: str
    """Words that follow the verdict of a claim; empty if the setting does not differ."""
    differences: list[str]


def compare_setting(
    data: DataEntry, architectures: Iterable[str], *, starts_from_weights: bool = True
) -> Setting:
    """Return how the data and the models of a study differ from those of the paper.

    A setting is small if images are synthetic or smaller, or if there are fewer of them or fewer classes. The number
    of training seeds does not matter, because the paper reports one training of each model.

    Args:
        data: entry of the data collection.
        architectures: labels of the architectures of the study's models.
        starts_from_weights: True if the training of all models starts from given weights, as the paper's from ImageNet.
    """
    small = ["synthetic images"] if data.kind == "synthetic" else []
    sizes = {
        "pixels per side": (data.parameters["size"], SIDE),
        "images per pair of classes": (data.parameters["images_per_pair"], IMAGES_PER_PAIR),
        "object classes": (len(data.objects), CLASSES),
        "scene classes": (len(data.scenes), CLASSES),
    }
    small += [f"{size:,} {name}, not {paper:,}" for name, (size, paper) in sizes.items() if size < paper]
    others = ["no cut-out or scene in both training and test images"] if data.parameters["leak_free"] else []
    others += [f"{name}, not {ARCHITECTURE}" for name in dict.fromkeys(architectures) if name != ARCHITECTURE]
    others += [] if starts_from_weights else ["training from random weights"]
    phrase = "in this small setting" if small else "in this setting" if others else ""
    return {"phrase": phrase, "differences": [*small, *others]}
