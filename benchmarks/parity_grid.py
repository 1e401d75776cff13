"""Compare grid settings, attributions and localization scores with the program of Rao et al. (2022).

It needs a clone of sukrutrao/Attribution-Evaluation and the packages captum, scikit-image and tqdm. A ResNet-18 with
random weights, in float64, receives random grids. Compared are the logits of two corners in GridPG, DiFull and DiPart,
attributions at the input, after the second stage and after the last one, and the localization scores. Grad-CAM++ is
compared up to the exponential of the logit, a factor of the whole map. Printed are the largest differences, those of
maps relative to the largest value of a map; the exit status is 1 if one is above 1e-5.

    python benchmarks/parity_grid.py --attribution-evaluation Attribution-Evaluation
"""

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import common  # noqa: F401  # puts the source folder first on the import path
import torch
import torchvision
from torch import Tensor

from saliency_assay.methods.cam import gradcam, gradcam_plus_plus, hirescam, layercam
from saliency_assay.methods.gradient import gradient, gradient_x_input
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.grid_settings import of_setting
from saliency_assay.studies.grid.localization import localization, positive_attribution

AGREEMENT = 1e-5
GRIDS, SIZE, CELLS, CLASSES = 2, 32, 2, 1000
SETTINGS = {"gridpg": "GridPG", "difull": "DiFull", "dipart": "DiPart"}
LAYERS = {"Middle": "layer2", "Final": "layer4"}
INPUT_METHODS = {
    "Grad": lambda *inputs, **keywords: gradient(*inputs, **keywords).abs(),
    "IxG": partial(gradient_x_input, baseline="black"),
    "IntGrad": partial(integrated_gradients, steps=20, rule="gauss_legendre", baseline="black"),
}
LAYER_METHODS = {
    "IxG": partial(hirescam, relu=False),
    "GradCam": gradcam,
    "GradCamPlusPlus": gradcam_plus_plus,
    "LayerCam": layercam,
}


def main() -> int:
    """Print all differences, and return 1 if one is too large."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attribution-evaluation", type=Path, required=True)
    sys.path.insert(0, str(parser.parse_args().attribution_evaluation))
    sys.modules.setdefault("seaborn", ModuleType("seaborn"))  # of their figures
    largest = dict[str, float]()
    for name, difference in differences():
        largest[name] = max(largest.get(name, 0.0), difference)
    for name, difference in largest.items():
        print(f"{name}: largest difference {difference:.1e}")
    return int(any(not difference <= AGREEMENT for difference in largest.values()))


def differences() -> Iterator[tuple[str, float]]:
    """Yield the difference of each comparison, with its name."""
    theirs, ours = networks()
    settings = import_module("attribution_evaluation.models.settings")
    attributors = import_module("attribution_evaluation.attribution.attributors")
    generator = torch.Generator().manual_seed(1)
    grids = torch.rand(GRIDS, 3, CELLS * SIZE, CELLS * SIZE, generator=generator, dtype=torch.float64)
    targets = torch.randint(CLASSES, (GRIDS, CELLS**2), generator=generator)
    for setting, their_name in SETTINGS.items():
        container = settings.get_setting(their_name)(model=theirs, scale=CELLS).double().eval()
        for cell in (0, CELLS**2 - 1):
            classifier = of_setting(ours, setting, cells=CELLS, cell=cell)
            logits = container(grids, output_head_idx=cell)
            yield f"{their_name}, logits", float((classifier(grids) - logits).abs().max())
            for layer, method, ours_method in comparisons():
                attributor = attributors.AttributorContainer(container, method, "test")
                their_map = attributor.attribute_selection(
                    grids.clone().requires_grad_(),
                    targets[:, cell : cell + 1],
                    output_head_idx=cell,
                    conv_layer_idx=layer,
                ).double()
                own_layer = {"layer": LAYERS[layer]} if layer in LAYERS else {}
                maps = ours_method(classifier, grids, targets[:, cell], generator=generator, **own_layer)
                own_score = localization(positive_attribution(maps), cells=CELLS, cell=cell)
                resized, their_score = scored(their_map, cell)
                name = f"{their_name}, {method} at {layer}"
                if method == "GradCamPlusPlus":
                    resized, maps = (
                        values / values.amax((1, 2, 3), keepdim=True) for values in (resized, maps)
                    )
                own_map = maps.sum(1, keepdim=True)
                yield f"{name}, map", float((own_map - resized).abs().max() / resized.abs().max())
                yield f"{name}, score", float((own_score - their_score).abs().max())


def comparisons() -> Iterator[tuple[str, str, Any]]:
    """Yield layer, name in their program and function of each attribution."""
    yield from (("Input", name, method) for name, method in INPUT_METHODS.items())
    yield from ((layer, name, method) for layer in LAYERS for name, method in LAYER_METHODS.items())


def scored(maps: Tensor, cell: int) -> tuple[Tensor, Tensor]:
    """Return their maps ``[N, 1, H, W]`` in the size of the grid, and their localization scores ``[N]``."""
    utilities = import_module("attribution_evaluation.evaluation.utils")
    scores = import_module("attribution_evaluation.evaluation.localization")
    resized = utilities.interpolate_attributions(maps, img_dims=(CELLS * SIZE, CELLS * SIZE))
    positive = utilities.get_positive_attributions(resized)
    # Their scores are 0 for sums up to 1e-7, and depend on no scale otherwise.
    positive = positive / positive.sum((3, 4), keepdim=True)
    return resized[:, 0], scores.get_localization_score_single(positive, 0, cell, CELLS)[0]


def networks() -> tuple[Any, Classifier]:
    """Return their ResNet-18 with random weights, and a classifier of the same network."""
    torch.manual_seed(0)
    models = import_module("attribution_evaluation.models.models")
    build = torchvision.models.resnet18
    torchvision.models.resnet18 = lambda pretrained: build(weights=None)
    try:
        theirs = models.Resnet18Model().double().eval()
    finally:
        torchvision.models.resnet18 = build
    network = theirs.base_model
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for values in (module.weight, module.bias, module.running_mean, module.running_var):
                torch.nn.init.uniform_(values, 0.1, 0.5)
    classifier = Classifier(
        network, classes=CLASSES, mean=[0.0] * 3, std=[1.0] * 3, cam_layer="layer4", concept_layers=()
    )
    return theirs, classifier.double().requires_grad_(False)


if __name__ == "__main__":
    sys.exit(main())
