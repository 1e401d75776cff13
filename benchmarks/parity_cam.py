"""Compare CAM methods and FullGrad with other code, on shared random weights and images in float64.

- The CAM methods and FullGrad: a clone of jacobgil/pytorch-grad-cam, which needs the packages ttach and
  opencv-python-headless. ``map`` is the sum of weighted channels, before their ReLU; ``output`` is the result of the
  whole program, which OpenCV resizes in float32, rescaled to [0, 1]. Its Eigen-CAM centers the channels and takes any
  sign; maps are equal up to their sign for a layer that centers its channels, and "as released" they differ.
- FullGrad: a clone of idiap/fullgrad-saliency, the authors' code. ``terms`` are gradient ⊙ input and gradient ⊙ bias of
  each layer, where the authors' two terms of a convolution with bias and of its BatchNorm are added; ``map`` is the
  whole map, for networks without such pairs, which the authors rescale separately.

Both add an ε to denominators, and their maps depend on the scale of the logits. The last layer is therefore multiplied
by 1e6, beside which ε is negligible, except for Score-CAM, whose softmax would select a single channel. Both align the
corners of small and large images in some of their interpolations; ours never do, so theirs are set to do the same. For
each comparison, the program prints the largest difference relative to the largest value of a map, and it exits with
status 1 if one is above 1e-5.

    python benchmarks/parity_cam.py --pytorch-grad-cam pytorch-grad-cam --fullgrad fullgrad-saliency
"""

import argparse
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import common  # noqa: F401  # puts the source folder first on the import path
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.cam import (
    eigencam,
    gradcam,
    gradcam_plus_plus,
    hirescam,
    layercam,
    scorecam,
    xgradcam,
)
from saliency_assay.methods.canonical import canonical, normalized
from saliency_assay.methods.fullgrad import full_gradient, fullgrad
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.cnn import vgg16, vgg16_bn
from saliency_assay.models.resnet import resnet8, resnet20

AGREEMENT = 1e-5
IMAGES, SIZE, CLASSES = 3, 64, 7
SCALE = 1e6
MEAN, STD = (0.3, 0.45, 0.6), (0.2, 0.25, 0.3)
NETWORKS: dict[str, tuple[Callable[..., nn.Module], dict[str, int], str]] = {
    "resnet8": (resnet8, {"width": 8}, "layer3"),
    "resnet20": (resnet20, {"width": 4}, "layer3"),
    "vgg16": (vgg16, {"width": 8, "hidden": 16, "pooled": 1}, "features.29"),
    "vgg16_bn": (vgg16_bn, {"width": 8, "hidden": 16, "pooled": 1}, "features.42"),
}
METHODS: dict[str, tuple[str, Callable[..., Tensor]]] = {
    "Grad-CAM": ("GradCAM", gradcam),
    "Grad-CAM++": ("GradCAMPlusPlus", gradcam_plus_plus),
    "LayerCAM": ("LayerCAM", layercam),
    "HiResCAM": ("HiResCAM", hirescam),
    "XGrad-CAM": ("XGradCAM", xgradcam),
    "Score-CAM (black)": ("ScoreCAM", partial(scorecam, baseline="black")),
    "Score-CAM (mean)": ("ScoreCAM", partial(scorecam, baseline="mean")),
}
Comparison = tuple[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pytorch-grad-cam", type=Path, required=True, help="clone of pytorch-grad-cam")
    parser.add_argument("--fullgrad", type=Path, required=True, help="clone of fullgrad-saliency")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_default_dtype(torch.float64)
    import_module("tqdm").tqdm = iter  # no progress bars
    nn.UpsamplingBilinear2d = partial(nn.Upsample, mode="bilinear")  # type: ignore[misc,assignment]
    sys.path[:0] = [str(options.pytorch_grad_cam), str(options.fullgrad)]
    worst = 0.0
    for name in NETWORKS:
        scaled = classifier(name, SCALE)
        comparisons = *fullgrad_terms(scaled), *fullgrad_maps(scaled, name)
        for comparison, largest in (*cam_methods(name), *eigencam_maps(name), *comparisons):
            print(f"{name:10} {comparison:45} {largest:8.1e}", flush=True)
            worst = max(worst, 0 if comparison.endswith("as released") else largest)
    sys.exit(worst > AGREEMENT)


def classifier(name: str, scale: float) -> Classifier:
    """Return a network whose weights, biases and statistics of BatchNorm are all random, the last layer scaled."""
    build, parameters, layer = NETWORKS[name]
    generator = torch.Generator().manual_seed(1)
    network = build(classes=CLASSES, channels=3, generator=generator, **parameters).double().eval()
    with torch.no_grad():
        for key, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                values = torch.randn(tensor.shape, generator=generator)
                values *= (2 / max(1, tensor[0].numel())) ** 0.5 if tensor.ndim > 1 else 0.3
                tensor.copy_(values.abs() + 0.5 if key.endswith(("running_var", "norm.weight")) else values)
        last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
        last.weight *= scale
        last.bias *= scale
    settings: dict[str, Any] = {"mean": MEAN, "std": STD, "cam_layer": layer, "concept_layers": []}
    return Classifier(network, classes=CLASSES, **settings).double().eval().requires_grad_(False)


def inputs(model: Classifier) -> tuple[Tensor, Tensor]:
    """Return images and their predicted classes."""
    images = torch.rand(IMAGES, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(2))
    return images, model(images).argmax(1)


def cam_methods(network: str) -> Iterator[Comparison]:
    """Compare the CAM methods with pytorch-grad-cam."""
    for name, (their_name, method) in METHODS.items():
        model = classifier(network, 1 if their_name == "ScoreCAM" else SCALE)
        images, targets = inputs(model)
        # Their Score-CAM multiplies the input by the mask, so that the baseline is a pixel for which the input is 0.
        is_normalized = "mean" in name
        maps, output = by_pytorch_grad_cam(their_name, model, images, targets, is_normalized=is_normalized)
        ours = partial(method, model, images, targets, generator=torch.Generator())
        resized = functional.interpolate(torch.from_numpy(maps)[:, None], size=(SIZE, SIZE), mode="bilinear")
        yield f"{name}: map", difference(ours(relu=False).numpy(), resized.numpy())
        yield f"{name}: output", difference(unit_range(ours()[:, 0].numpy()), output)


def eigencam_maps(network: str) -> Iterator[Comparison]:
    """Compare Eigen-CAM with pytorch-grad-cam for a layer that centers its channels, and for the layer as it is."""
    for name in ("map of centered channels", "as released"):
        model = classifier(network, 1)
        if "centered" in name:
            model.layer(model.cam_layer).register_forward_hook(
                lambda layer, inputs, output: output - output.mean((2, 3), keepdim=True)
            )
        images, targets = inputs(model)
        maps, _ = by_pytorch_grad_cam("EigenCAM", model, images, targets)
        resized = functional.interpolate(torch.from_numpy(maps)[:, None], size=(SIZE, SIZE), mode="bilinear")
        ours = eigencam(model, images, targets, generator=torch.Generator(), relu=False)
        signs = (ours * resized).sum((1, 2, 3), keepdim=True).sign()
        yield f"Eigen-CAM: {name}", difference((signs * ours).numpy(), resized.numpy())


def by_pytorch_grad_cam(
    name: str, model: Classifier, images: Tensor, targets: Tensor, *, is_normalized: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the maps before resizing, ``[N, h, w]``, and the final ones, ``[N, H, W]``."""
    library = import_module("pytorch_grad_cam")
    target = import_module("pytorch_grad_cam.utils.model_targets").ClassifierOutputTarget
    layers = [] if name == "FullGrad" else [model.layer(model.cam_layer)]
    explained: nn.Module = model.network if is_normalized else model
    maps: list[np.ndarray] = []
    with getattr(library, name)(explained, layers) as cam:
        compute = cam.get_cam_image
        cam.get_cam_image = lambda *args, **kwargs: maps.append(compute(*args, **kwargs)) or maps[-1]
        batch = (normalized(model, images) if is_normalized else images).clone().requires_grad_()
        output = cam(input_tensor=batch, targets=[target(int(index)) for index in targets])
    return maps[0] if maps else output, output


def fullgrad_terms(model: Classifier) -> Iterator[Comparison]:
    """Compare the terms of the full gradient with the authors' code."""
    images, targets = inputs(model)
    batch, terms = normalized(model, images), list[Tensor]()
    of_input, _ = full_gradient(canonical(model, batch), batch, targets, lambda _, term: terms.append(term))
    gradient, their_terms = authors(model).fullGradientDecompose(batch, targets)
    yield "FullGrad, authors: input term", difference(of_input.numpy(), (gradient * batch).detach().numpy())
    kinds = [
        type(layer)
        for layer in model.network.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear | nn.BatchNorm2d) and layer.bias is not None
    ]
    merged: list[Tensor] = []
    for index, (kind, term) in enumerate(zip(kinds, their_terms, strict=True)):
        if kind is nn.BatchNorm2d and index and kinds[index - 1] is nn.Conv2d:
            merged[-1] = merged[-1] + term
        else:
            merged.append(term)
    largest = (
        difference(ours.numpy(), theirs.detach().numpy())
        for ours, theirs in zip(reversed(terms), merged, strict=True)
    )
    yield f"FullGrad, authors: {len(merged)} terms of biases", max(largest)


def fullgrad_maps(model: Classifier, name: str) -> Iterator[Comparison]:
    """Compare FullGrad with the authors' code, and with pytorch-grad-cam, which rescales each channel by itself."""
    if name == "vgg16_bn":
        return
    images, targets = inputs(model)
    ours = partial(fullgrad, model, images, targets, generator=torch.Generator())
    theirs = authors(model).saliency(normalized(model, images), targets)
    yield "FullGrad, authors: map", difference(ours().numpy(), theirs.detach().numpy())
    _, output = by_pytorch_grad_cam("FullGrad", model, images, targets, is_normalized=True)
    channelwise = unit_range(ours(rescale="channel")[:, 0].numpy())
    yield "FullGrad, pytorch-grad-cam: output", difference(channelwise, output)


def authors(model: Classifier) -> Any:
    """Return the authors' object, which first checks the completeness of its decomposition."""
    module = import_module("saliency.fullgrad")
    module.F = _Interpolation()
    warnings.simplefilter("ignore", FutureWarning)  # of its hooks
    with redirect_stdout(io.StringIO()):
        return module.FullGrad(model.network, im_size=(3, SIZE, SIZE))


class _Interpolation:
    """PyTorch's functions, with an interpolation that does not align corners."""

    def __getattr__(self, name: str) -> Any:
        return getattr(functional, name)

    def interpolate(self, values: Tensor, size: tuple[int, int], mode: str, align_corners: bool) -> Tensor:
        return functional.interpolate(values, size=size, mode=mode)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference relative to the largest value of an image's map, over all images."""
    ours, theirs = ours.reshape(len(ours), -1), theirs.reshape(len(theirs), -1)
    scale = np.abs(theirs).max(1)
    assert scale.all()
    return float((np.abs(ours - theirs).max(1) / scale).max())


def unit_range(maps: np.ndarray) -> np.ndarray:
    """Rescale each map to [0, 1]."""
    low, high = (function(maps, (1, 2), keepdims=True) for function in (np.min, np.max))
    rescaled: np.ndarray = (maps - low) / (high - low)
    return rescaled


if __name__ == "__main__":
    main()
