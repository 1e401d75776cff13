"""Every method on two CIFAR-10 networks that were trained elsewhere, on twenty real test images.

.venv/bin/python -m pytest tests/real/test_methods_real.py -s    # prints how nearly maps sum to what they promise
"""

import tarfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from support import generator
from torch import Tensor, nn

from saliency_assay.methods import METHODS
from saliency_assay.methods.deeplift import deeplift
from saliency_assay.methods.engine import attribute
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.inference import to_pixels
from saliency_assay.models.normalization import IMAGENET
from saliency_assay.models.weights import load_initial, read_state
from saliency_assay.registry.records import record_of, resolve

EACH = 2
FEWER = {
    "integrated_gradients": {"steps": 50},
    "integrated_gradients_smoothgrad": {"samples": 4, "steps": 5},
    "smoothgrad": {"samples": 10},
    "smoothgrad_squared": {"samples": 10},
    "vargrad": {"samples": 10},
    "kernel_shap": {"segments": 16, "samples": 60},
    "lime": {"samples": 100},
    "rise": {"samples": 100},
    "extremal_perturbation": {"steps": 25},
    "expected_gradients": {"samples": 10},
    "gradient_shap": {"samples": 10},
    "guided_ig": {"steps": 10},
    "blur_ig": {"steps": 10},
    "xrai": {"steps": 5, "resolution": 64},
    "occlusion": {"window": 0.25, "stride": 0.125},
    "optimal_square": {"largest": 10, "squares": 60, "ridge": 0.1},
    "optimal_noisy_baseline": {"samples": 4000},
}
"""Parameters that keep twenty images within half a minute; the others have their defaults."""


@pytest.fixture(scope="module")
def cifar(real_data: Path) -> tuple[np.ndarray, np.ndarray]:
    """The first two test images of each class, uint8 ``[20, 3, 32, 32]``, and their classes."""
    classes, images, labels = {}, [], []
    with tarfile.open(real_data / "cifar10/cifar10_jpg.tar.xz") as archive:
        for member in archive:
            parts = Path(member.name).parts
            if member.isfile() and "test" in parts and len(classes.setdefault(parts[-2], [])) < EACH:
                classes[parts[-2]].append(np.asarray(Image.open(archive.extractfile(member)).convert("RGB")))
    for label, name in enumerate(sorted(classes)):
        images += classes[name]
        labels += [label] * EACH
    return np.stack(images).transpose(0, 3, 1, 2).copy(), np.array(labels, dtype=np.int64)


def resnet20(real_data: Path) -> Classifier:
    record = record_of(ARCHITECTURES, "resnet20", "architecture")
    blueprint = Blueprint(record.name, record.function, {}, record.cam_layer, record.concept_layers)
    model = build(blueprint, classes=10, mean=IMAGENET[0], std=IMAGENET[1], generator=generator())
    load_initial(model, real_data / "weights/resnet20-12fca82f.th", "resnet20")
    return model.eval()


def tutorial_cnn(real_data: Path) -> Classifier:
    """The small network of captum's tutorial, with biases everywhere."""
    layers = {
        "conv1": nn.Conv2d(3, 6, 5),
        "relu1": nn.ReLU(),
        "pool1": nn.MaxPool2d(2),
        "conv2": nn.Conv2d(6, 16, 5),
        "relu2": nn.ReLU(),
        "pool2": nn.MaxPool2d(2),
        "flatten": nn.Flatten(),
        "fc1": nn.Linear(400, 120),
        "relu3": nn.ReLU(),
        "fc2": nn.Linear(120, 84),
        "relu4": nn.ReLU(),
        "fc3": nn.Linear(84, 10),
    }
    network = nn.Sequential(OrderedDict(layers))
    network.load_state_dict(read_state(real_data / "weights/captum_cifar_torchvision.pt"))
    return Classifier(
        network, classes=10, mean=[0.5] * 3, std=[0.5] * 3, cam_layer="relu2", concept_layers=[]
    ).eval()


APPLICABLE = [
    method
    for method in METHODS
    if not {"attention", "exact_importance"} & {*method.needs} and "mask" not in method.takes
]
"""Methods for convolutional networks that were trained and images without masks."""

NETWORKS = {"resnet20": resnet20, "tutorial_cnn": tutorial_cnn}
ACCURACY = {"resnet20": 0.7, "tutorial_cnn": 0.4}  # as JPEGs the images score lower than published


@pytest.fixture(params=NETWORKS, scope="module")
def model(request: pytest.FixtureRequest, real_data: Path) -> Classifier:
    return NETWORKS[request.param](real_data)


@pytest.fixture(scope="module")
def logits(model: Classifier, cifar: tuple[np.ndarray, np.ndarray]) -> Tensor:
    """Logits of all images, float64 ``[20, 10]``."""
    with torch.no_grad():
        return model(to_pixels(torch.from_numpy(cifar[0]))).double()


@pytest.fixture(scope="module")
def maps(model: Classifier, cifar: tuple[np.ndarray, np.ndarray]) -> dict[str, Tensor]:
    """Maps of all images by every method that the network has what it needs for, float64 ``[20, C or 1, 32, 32]``."""
    images, labels = cifar
    pool_linear = any(isinstance(part, nn.AdaptiveAvgPool2d) for part in model.modules())
    drawn = {}
    for method in APPLICABLE:
        if "pool_linear_head" in method.needs and not pool_linear:
            continue
        parameters: dict[str, Any] = dict(FEWER.get(method.name, {}))
        if "background" in method.takes:
            parameters["background"] = to_pixels(torch.from_numpy(images[::10]))
        blocks = attribute(resolve(method.function), parameters, model, images, labels, seed=1, batch_size=20)
        drawn[method.name] = torch.cat([torch.from_numpy(block["map"]) for block in blocks]).double()
    return drawn


def test_the_networks_are_those_that_were_trained(
    model: Classifier, logits: Tensor, cifar: tuple[np.ndarray, np.ndarray]
) -> None:
    name = "resnet20" if hasattr(model.network, "linear") else "tutorial_cnn"
    assert (logits.argmax(1).numpy() == cifar[1]).mean() > ACCURACY[name]


def test_all_maps_are_finite_and_look_at_the_image(maps: dict[str, Tensor]) -> None:
    assert len(maps) >= len(APPLICABLE) - 1
    for name, saliency in maps.items():
        assert saliency.isfinite().all(), name
        if name != "constant":
            assert len(saliency.flatten(1).unique(dim=0)) > 0.9 * len(saliency), (
                name
            )  # GradCAM's ReLU may empty some


PROMISES = {
    # What a map sums to, and the errors allowed for the median and the worst image, as shares of the largest sum.
    # LRP-αβ promises it only where every neuron is given terms of both signs; in a few images one is not.
    "deeplift_rescale": ("difference from black", 1e-6, 1e-5),
    "deeplift": ("difference from black", 1e-6, 1e-5),
    "deep_shap": ("difference from the background", 1e-6, 1e-5),
    "kernel_shap": ("difference from black", 1e-6, 1e-5),
    "integrated_gradients": ("difference from black", 0.02, 0.2),
    "lrp_alpha_beta": ("logit", 1e-4, 1e-2),
    "deep_taylor": ("logit", 1e-5, 1e-3),
}


def test_maps_sum_to_what_they_promise(
    model: Classifier, maps: dict[str, Tensor], logits: Tensor, cifar: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = cifar
    pixels, targets = to_pixels(torch.from_numpy(images)), torch.from_numpy(labels)
    with torch.no_grad():
        black = model(torch.zeros_like(pixels[:1])).double()
        background = model(pixels[::10]).double().mean(0, keepdim=True)
    sums = {
        "logit": logits,
        "difference from black": logits - black,
        "difference from the background": logits - background,
    }
    rescale = deeplift(model, pixels, targets, generator=generator(), rule="rescale")
    drawn = {**maps, "deeplift_rescale": rescale.double()}
    for name, (promise, usual, worst) in PROMISES.items():
        expected = sums[promise].gather(1, targets[:, None])[:, 0]
        error = (drawn[name].sum((1, 2, 3)) - expected).abs() / expected.abs().max()
        print(f"{name:22} {promise:32} median {error.median():.1e} largest {error.max():.1e}")
        assert error.median() < usual, name
        exceptions = 5 if name == "lrp_alpha_beta" else 0
        assert (error >= worst).sum() <= exceptions, name
