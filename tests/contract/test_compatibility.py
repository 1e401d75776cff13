"""Every method on every architecture: it works, or the configuration and the method itself say why not."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from support import CLASSES, bound, cyclic_targets, generator, random_images

from saliency_assay.config.methods import unsupported
from saliency_assay.methods import METHODS, Method
from saliency_assay.models import ARCHITECTURES, Architecture
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.registry.records import record_of

SMALL = {"width": 4, "hidden": 8, "pooled": 1, "heads": 2}
"""Parameters of a small network; architectures without them run at full size."""
GRAY: dict[str, Any] = {"classes": CLASSES, "mean": [0.4], "std": [0.2]}
COMMON = ("resnet8", "vit")
"""Small architectures that every method meets in CI."""


@cache
def small(name: str) -> Classifier:
    """The architecture for gray images of 32 pixels, or a designed one for colors, in evaluation mode."""
    record = record_of(ARCHITECTURES, name, "architecture")
    shape = {"classes": 2, "mean": [0.0] * 3, "std": [1.0] * 3} if record.is_designed else GRAY
    parameters = {key: value for key, value in SMALL.items() if key in record.parameters}
    blueprint = Blueprint(record.name, record.function, parameters, record.cam_layer, record.concept_layers)
    return build(blueprint, **shape, generator=generator(1)).eval()


def pairs() -> Iterator[Any]:
    """Yield each method with each architecture: of methods with equal needs, only the first meets all in CI."""
    first = {tuple(method.needs): method.name for method in reversed(METHODS)}
    for method, architecture in product(METHODS, ARCHITECTURES):
        is_first = first[tuple(method.needs)] == method.name
        is_long = (method.name, architecture.name) == (
            "scorecam",
            "resnet18",
        )  # a pass for each of 512 channels
        is_tried = architecture.name in COMMON or (is_first and not is_long)
        marks = () if is_tried else pytest.mark.exhaustive
        yield pytest.param(method, architecture, id=f"{method.name}-{architecture.name}", marks=marks)


@pytest.mark.parametrize(("method", "architecture"), list(pairs()))
def test_a_method_works_where_its_needs_are_met_and_refuses_elsewhere(
    method: Method, architecture: Architecture
) -> None:
    if (method.name, architecture.name) == ("scorecam", "resnet50"):
        pytest.skip("takes minutes for its 2,048 channels; resnet18 has the same layers of fewer channels")
    images = random_images(1, channels=3 if architecture.is_designed else 1, size=32, dtype=torch.float32)
    if architecture.is_designed:  # whose importance is known for pure colors
        images = images.round()
    few = {"squares": 8} if method.name == "optimal_square" else {}  # all of 32 × 32 pixels are two thousand
    attribute = bound(method, images, **few)
    if unsupported(method.needs, architecture):
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            attribute(small(architecture.name), images, cyclic_targets(1), generator=generator())
    else:
        maps = attribute(small(architecture.name), images, cyclic_targets(1), generator=generator())
        assert maps.shape == (images[:, :1] if method.one_channel else images).shape
        assert maps.isfinite().all()


def test_cam_needs_a_pooling_head_and_names_what_to_use_instead() -> None:
    cam = record_of(METHODS, "cam", "method")
    supported = {each.name: not unsupported(cam.needs, each) for each in ARCHITECTURES}
    assert (supported["resnet20"], supported["vgg16"], supported["mnist_cnn"]) == (True, False, False)
    images = random_images(2, channels=1, size=32, dtype=torch.float32)
    with pytest.raises(ValueError, match="gradcam"):
        bound(cam, images)(small("mnist_cnn"), images, cyclic_targets(2), generator=generator())
