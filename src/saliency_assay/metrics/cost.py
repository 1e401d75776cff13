"""Cost of a score: the number of images, for each scored image, that go through the model.

The record of a metric has this number or names a function of this module, or has neither if the cost depends on the map
or the model. The model responses of the metric are included. A map counts as the passes of its method, see
``methods.cost``; passes of a single image of the batch are left out.
"""

import torch

from saliency_assay.methods.cost import Map, steps
from saliency_assay.metrics.regions import squares
from saliency_assay.metrics.sensitivity_n import subset_sizes


def orders_of_steps(inputs: Map) -> int:
    """Return the image, and one for each step of two orders that share no image (``aopc``)."""
    return 1 + 2 * steps(inputs) - (steps(inputs) == _pixels(inputs))


def blocks(inputs: Map) -> int:
    """Return the image, and one for each block of pixels (``deletion``)."""
    number = inputs.parameters["steps"]
    return 1 + (_pixels(inputs) if isinstance(number, str) else min(number, _pixels(inputs)))


def single_pixels(inputs: Map) -> int:
    """Return the image, and one for each replaced pixel (``faithfulness``, ``non_sensitivity``)."""
    return 1 + int(inputs.parameters["pixels"])


def orders_of_points(inputs: Map) -> int:
    """Return the image, and one for each share of pixels in two orders (``road``)."""
    return 1 + 2 * int(inputs.parameters["points"])


def samples_of_points(inputs: Map) -> int:
    """Return the image, and samples with and without the explanation for each of its sizes (``f_fidelity``)."""
    return 1 + 2 * int(inputs.parameters["points"] * inputs.parameters["samples"])


def sizes_of_subsets(inputs: Map) -> int:
    """Return the image, and the subsets of each size (``sensitivity_n``)."""
    sizes = subset_sizes(
        torch.empty(1, 1, *inputs.size), inputs.parameters["points"], inputs.parameters["largest"]
    )
    return 1 + len(sizes) * int(inputs.parameters["subsets"])


def subsets(inputs: Map) -> int:
    """Return the image, and one for each subset of pixels (``faithfulness_correlation``)."""
    return 1 + int(inputs.parameters["subsets"])


def cells(inputs: Map) -> int:
    """Return the image, and one for each cell of the grid (``single_deletion``)."""
    return 1 + int(inputs.parameters["grid"]) ** 2


def orders_of_regions(inputs: Map) -> int:
    """Return the image, and one for each region in two orders (``region_perturbation``)."""
    regions = 1 + int(squares(*inputs.size, inputs.parameters["side"]).max())
    number = min(int(inputs.parameters["regions"]), regions)
    return 1 + 2 * number - (number == regions)  # the image without any region is the last one of both orders


def groups(inputs: Map) -> int:
    """Return the image, and one for each group of pixels (``saco``)."""
    return 1 + int(inputs.parameters["groups"])


def samples(inputs: Map) -> int:
    """Return the image, and one for each sample (``infidelity_subset``)."""
    return 1 + int(inputs.parameters["samples"])


def explained_samples(inputs: Map) -> float:
    """Return a map for each sample (``sensitivity_max``)."""
    return inputs.parameters["samples"] * inputs.base  # type: ignore[no-any-return]


def evaluated_and_explained_samples(inputs: Map) -> float:
    """Return the image, and one and its map for each sample (``relative_stability``)."""
    return samples(inputs) + explained_samples(inputs)


def explained(inputs: Map) -> float:
    """Return one map (``emprt``)."""
    return inputs.base


def _pixels(inputs: Map) -> int:
    height, width = inputs.size
    return height * width
